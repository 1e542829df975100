//! A panic while the node's state is locked, or in a task that the node cannot work without, ends
//! the node. A node that survived it would look alive and serve nobody.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, MutexGuard, OnceLock};
use std::thread::panicking;

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
