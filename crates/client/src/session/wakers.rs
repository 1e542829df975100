//! Wakes the tasks that wait for what arrives.
//!
//! A task that waits for an answer reads the connection itself. So a single caller is woken by the
//! socket, reads its answer, and no other task runs. With several callers, the driver task reads
//! and wakes those whose answers came.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use super::machine::RequestId;

/// The tasks that wait on a session. As a waker, it is what the socket wakes.
#[derive(Default)]
pub(super) struct Wakers(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    /// Tasks that wait for the answer to a request.
    callers: Vec<(RequestId, Waker)>,
    /// Tasks that wait for the loss or renewal of a hold.
    watchers: Vec<(RequestId, Waker)>,
    driver: Option<Waker>,
    /// Whether the driver must run.
    is_notified: bool,
    /// Whether the driver reads what nobody waits for as soon as it arrives. While callers are
    /// busy, it looks now and then instead: waking it for each answer would cost more than the
    /// answer.
    is_attentive: bool,
}

impl Inner {
    fn notify(&mut self) {
        self.is_notified = true;
        if let Some(driver) = self.driver.take() {
            driver.wake();
        }
    }
}

impl Wakers {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a caller, who reads the connection next.
    pub(super) fn register(&self, id: RequestId, waker: &Waker) {
        let mut inner = self.inner();
        match inner.callers.iter_mut().find(|(caller, _)| *caller == id) {
            Some((_, known)) => known.clone_from(waker),
            None => inner.callers.push((id, waker.clone())),
        }
    }

    pub(super) fn unregister(&self, id: RequestId) {
        let mut inner = self.inner();
        inner.callers.retain(|(caller, _)| *caller != id);
    }

    /// Returns whether this caller is the only task that waits for what arrives.
    pub(super) fn is_only(&self, id: RequestId) -> bool {
        let inner = self.inner();
        matches!(&inner.callers[..], [(caller, _)] if *caller == id) && inner.watchers.is_empty()
    }

    /// Registers a task that waits for a change of a hold, until the next change.
    pub(super) fn watch(&self, id: RequestId, waker: &Waker) {
        let mut inner = self.inner();
        let is_known =
            |(watched, known): &(RequestId, Waker)| *watched == id && known.will_wake(waker);
        if !inner.watchers.iter().any(is_known) {
            inner.watchers.push((id, waker.clone()));
        }
    }

    /// Wakes everybody who waits for one of these requests, except this caller.
    pub(super) fn wake_changed(&self, changed: &mut Vec<RequestId>, except: Option<RequestId>) {
        if changed.is_empty() {
            return;
        }
        let mut inner = self.inner();
        for (id, waker) in &inner.callers {
            if Some(*id) != except && changed.contains(id) {
                waker.wake_by_ref();
            }
        }
        if !inner.watchers.is_empty() {
            changed.sort_unstable();
            inner.watchers.retain(|(id, waker)| {
                let is_changed = changed.binary_search(id).is_ok();
                if is_changed {
                    waker.wake_by_ref();
                }
                !is_changed
            });
        }
        changed.clear();
    }

    /// Wakes everybody, because no driver will.
    pub(super) fn wake_all(&self) {
        let inner = self.inner();
        for (_, waker) in inner.callers.iter().chain(&inner.watchers) {
            waker.wake_by_ref();
        }
    }

    /// Makes the driver run.
    pub(super) fn notify(&self) {
        self.inner().notify();
    }

    /// Called when a caller becomes active: the driver need not read everything at once.
    pub(super) fn calm(&self) {
        let mut inner = self.inner();
        if std::mem::take(&mut inner.is_attentive) {
            inner.notify();
        }
    }

    pub(super) fn set_attentive(&self, is_attentive: bool) {
        self.inner().is_attentive = is_attentive;
    }

    /// Waits until the driver must run.
    pub(super) fn poll_notified(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut inner = self.inner();
        if std::mem::take(&mut inner.is_notified) {
            return Poll::Ready(());
        }
        inner.driver = Some(context.waker().clone());
        Poll::Pending
    }
}

impl Wake for Wakers {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let mut inner = self.inner();
        match &inner.callers[..] {
            [(_, caller)] if inner.watchers.is_empty() => caller.wake_by_ref(),
            [] if inner.watchers.is_empty() && !inner.is_attentive => {}
            _ => inner.notify(),
        }
    }
}
