//! Acquires locks, for the program that a node runs in and for clients of its HTTP API.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::StreamExt;
use tokio::sync::oneshot;
use tokio::sync::oneshot::error::TryRecvError;

use super::Node;
use super::gather::ask_all;
use super::inquiry::{self, NodeQuestion};
use super::state::{AcquireOutcome, Asked, SharedHold};
use crate::Moment;
use soloist_api::LockName;
pub(crate) use soloist_api::obstacle::{Obstacle, earlier, held_by, unknown};
use soloist_core::locks::{Denial, HoldId, LockRequest, LockView, RequestError, TRY_MAX, Ticket};

/// Interval at which the nodes are asked, in the meantime, whether anybody has got it.
const TRY_EVERY: Duration = Duration::from_millis(20);

/// What happens to a waiter that is dropped.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum IfDropped {
    /// It stops waiting. If it was already granted the lock and nobody was told, the lock is
    /// released.
    Cancel,
    /// It stays in the queue for a while, so that its request can be sent again.
    Stay,
}

/// Why a lock was not acquired.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum NotAcquired {
    /// The node refused the request immediately.
    #[error(transparent)]
    Refused(#[from] RequestError),
    /// Others hold it, or were earlier: see [`Node::obstacle`].
    #[error("lock {0:?} was not granted in time")]
    NotGranted(LockName),
    /// Nobody was seen to hold it or to be earlier, and yet a request that may not wait did not get
    /// it: see [`Node::why_not_seen`].
    #[error("lock {0:?} was not granted in time, although no holder was found")]
    NotSeen(LockName),
    /// The node was stopped before the lock was granted.
    #[error("the node was stopped before lock {0:?} was granted")]
    NodeStopped(LockName),
    /// The same request was sent again and is answered there, or it was cancelled.
    #[error("the request for lock {0:?} was sent again or cancelled")]
    Superseded(LockName),
    /// The same request was granted before, and its hold has ended.
    #[error("the request was already granted, and hold {0:?} has ended")]
    Ended(HoldId),
}

impl Node {
    /// Waits until the lock is granted or denied. Cancel safe.
    pub(crate) async fn acquire(
        &self,
        name: &LockName,
        ask: LockRequest,
        if_dropped: IfDropped,
    ) -> Result<Arc<SharedHold>, NotAcquired> {
        self.shared.links_first.stand_back().await;
        let stopped = || NotAcquired::NodeStopped(name.clone());
        let asked = {
            let mut core = self.shared.living().ok_or_else(stopped)?;
            core.acquire(&self.shared, name, ask)?
        };
        let (ticket, answer) = match asked {
            Asked::Granted(held) => return Ok(held),
            Asked::Waits(ticket, answer) => (ticket, answer),
            Asked::Ended(hold) => return Err(NotAcquired::Ended(hold)),
        };
        let mut waiting = WaiterGuard {
            node: self,
            ticket,
            answer,
            if_dropped,
        };
        let answer = tokio::select! {
            biased;
            answer = &mut waiting.answer => answer,
            _ = self.shared.fault.happened() => return Err(stopped()),
        };
        let answer = answer.map_err(|_| NotAcquired::Superseded(name.clone()))?;
        answer.map_err(|denial| match denial {
            Denial::NotGranted | Denial::NotMember => NotAcquired::NotGranted(name.clone()),
            Denial::NodeStopped => stopped(),
        })
    }

    /// Acquires a lock unless another request is earlier. Requests the lock and asks all nodes at
    /// the same time, so that a free lock is granted without extra delay. Cancel safe.
    pub(crate) async fn try_acquire(
        &self,
        name: &LockName,
        mut ask: LockRequest,
    ) -> Result<Arc<SharedHold>, NotAcquired> {
        let asked = Moment::now();
        let (is_resend, own) = {
            let stopped = || NotAcquired::NodeStopped(name.clone());
            let core = self.shared.living().ok_or_else(stopped)?;
            let known = ask
                .request
                .and_then(|id| core.table().request(&ask.client, id));
            (known.is_some(), core.table().view(asked, name))
        };
        ask.until = Some(asked + TRY_MAX);
        let late = |error| match error {
            NotAcquired::NotGranted(name) => NotAcquired::NotSeen(name),
            other => other,
        };
        let taken = || Err(NotAcquired::NotGranted(name.clone()));
        let mut acquire = pin!(self.acquire(name, ask, IfDropped::Cancel));
        // A request that is sent again does not count as its own predecessor, and it waits no
        // longer than it would have at first.
        if is_resend {
            return acquire.await.map_err(late);
        }
        if own.is_some() {
            return taken();
        }
        let granted = tokio::select! {
            biased;
            granted = &mut acquire => granted,
            () = self.wait_for_earlier_request(name, asked) => {
                // The holder seen may be this request itself, in which case the answer is already
                // there.
                tokio::select! {
                    biased;
                    granted = &mut acquire => granted,
                    () = std::future::ready(()) => return taken(),
                }
            }
        };
        granted.map_err(late)
    }

    /// Returns when another request holds the lock, or certainly began to wait for it before
    /// `asked`.
    pub(crate) async fn wait_for_earlier_request(&self, name: &LockName, asked: Moment) {
        let question = NodeQuestion::Lock(name.to_string());
        loop {
            let mut answers = ask_all(self, |_| question.clone());
            while let Some((_, answer)) = answers.next().await {
                let Some(inquiry::NodeAnswer::Lock(Some(view))) = answer else {
                    continue;
                };
                if is_before(&view, Moment::now().since(asked)) {
                    return;
                }
            }
            tokio::time::sleep(TRY_EVERY).await;
        }
    }

    /// Asks all nodes why a lock was not granted in time.
    pub(crate) async fn obstacle(&self, name: &LockName) -> Obstacle {
        Obstacle::of(self.lock_info(name).await)
    }

    /// Why a lock that nobody was seen with was not granted to a request that may not wait.
    pub(crate) fn why_not_seen(&self) -> String {
        self.shared.why_unknown().unwrap_or(format!(
            "no holder was found, but the lock was not granted within {TRY_MAX:?}: a node may be \
             down or slow"
        ))
    }
}

/// Returns whether the lock is held there, or has a waiter that has waited for longer than this. If
/// two requests try at the same time, one of them gets the lock.
fn is_before(view: &LockView, waited_for: Duration) -> bool {
    let longest = view.waiters.iter().map(|waiter| waiter.waited_for).max();
    view.holder.is_some() || longest.is_some_and(|longest| longest > waited_for)
}

/// A waiter. If it is dropped without an answer, `if_dropped` decides what happens to the request.
struct WaiterGuard<'n> {
    node: &'n Node,
    ticket: Ticket,
    answer: oneshot::Receiver<AcquireOutcome>,
    if_dropped: IfDropped,
}

impl Drop for WaiterGuard<'_> {
    fn drop(&mut self) {
        if self.answer.is_terminated() {
            return;
        }
        let shared = &self.node.shared;
        // Answers are sent only while the node's state is locked, so none can arrive after
        // `try_recv`.
        let Some(mut core) = shared.living() else {
            return;
        };
        match (self.answer.try_recv(), self.if_dropped) {
            // The same request was sent again, and the waiter now belongs to that one.
            (Err(TryRecvError::Closed), _) => {}
            (Err(TryRecvError::Empty), IfDropped::Cancel) => core.cancel(shared, self.ticket),
            (Err(TryRecvError::Empty), IfDropped::Stay) => core.abandon(shared, self.ticket),
            (Ok(Ok(held)), IfDropped::Cancel) => drop(core.release(shared, held.grant.hold)),
            // The hold is kept for a resend until its first promise expires.
            (Ok(Ok(_)), IfDropped::Stay) | (Ok(Err(_)), _) => {}
        }
    }
}
