//! A panic while the node's state is locked, or in a task that the node cannot work without, ends
//! the node. A node that survived it would look alive and serve nobody.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, MutexGuard, OnceLock};
use std::thread::panicking;
use std::time::Duration;

use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::state::NodeState;

/// Whether a node has failed, and why.
#[derive(Default)]
pub(crate) struct Fault {
    reason: OnceLock<String>,
    happened: CancellationToken,
}

impl Fault {
    /// Reports that the node has failed. Only the first reason is kept.
    pub(crate) fn report(&self, reason: String) {
        if self.reason.set(reason).is_ok() {
            tracing::error!(
                "this node has failed and is no longer a member: {}",
                self.reason()
            );
        }
        self.happened.cancel();
    }

    pub(crate) fn has_happened(&self) -> bool {
        self.happened.is_cancelled()
    }

    /// Waits until the node fails, and returns the reason.
    pub(crate) async fn happened(&self) -> &str {
        self.happened.cancelled().await;
        self.reason()
    }

    fn reason(&self) -> &str {
        self.reason.get().map_or("", String::as_str)
    }

    /// Runs a task that the node cannot work without.
    pub(crate) fn watch(
        self: &Arc<Self>,
        what: &'static str,
        task: impl Future<Output = ()> + Send + 'static,
    ) {
        let fault = Arc::clone(self);
        tokio::spawn(async move {
            // A cancelled task ends with its runtime.
            let Err(error) = tokio::spawn(task).await else {
                return;
            };
            if let Ok(panic) = error.try_into_panic() {
                let text = panic.downcast_ref::<&str>().copied();
                let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
                fault.report(format!(
                    "{what} panicked: {}",
                    text.unwrap_or("no reason given")
                ));
            }
        });
    }
}

/// Runs a task until it ends, and again after a pause if it panics. The node works without it, but
/// somebody waits for what it does.
pub(super) async fn again_after_panics<T>(what: &'static str, pause: Duration, task: impl Fn() -> T)
where
    T: Future<Output = ()> + Send + 'static,
{
    while let Err(error) = tokio::spawn(task()).await
        && error.is_panic()
    {
        tracing::error!(
            "{what} panicked, and is tried again: the panic message is on stderr, above"
        );
        sleep(pause).await;
    }
}

/// The locked node state. A panic while it is locked is a [`Fault`] of the node.
pub(crate) struct LockedCore<'s> {
    core: MutexGuard<'s, NodeState>,
    fault: &'s Fault,
    /// Whether the thread was already panicking, for example while dropping a guard of this node.
    was_panicking: bool,
}

impl<'s> LockedCore<'s> {
    pub(crate) fn new(core: MutexGuard<'s, NodeState>, fault: &'s Fault) -> Self {
        LockedCore {
            core,
            fault,
            was_panicking: panicking(),
        }
    }
}

impl Deref for LockedCore<'_> {
    type Target = NodeState;

    fn deref(&self) -> &NodeState {
        &self.core
    }
}

impl DerefMut for LockedCore<'_> {
    fn deref_mut(&mut self) -> &mut NodeState {
        &mut self.core
    }
}

impl Drop for LockedCore<'_> {
    fn drop(&mut self) {
        if panicking() && !self.was_panicking {
            let reason = "its state machine panicked; the panic message is on stderr, above";
            self.fault.report(reason.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[tokio::test]
    async fn a_task_that_panics_is_run_again_until_it_ends() {
        let runs = Arc::new(AtomicUsize::new(0));
        let task = || {
            let runs = Arc::clone(&runs);
            async move {
                let before = runs.fetch_add(1, Ordering::Relaxed);
                assert!(before == 2, "the first two runs panic");
            }
        };
        again_after_panics("a test", Duration::ZERO, task).await;
        assert_eq!(runs.load(Ordering::Relaxed), 3);
    }
}
