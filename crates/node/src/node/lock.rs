//! A lock and its guard, for programs that embed a node.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::sync::oneshot::error::TryRecvError;

use super::Node;
use super::state::{Answer, Asked, Held};
use crate::Moment;
use soloist_api::{Fence, LockName};
use soloist_core::locks::{Ask, AskError, Client, Denial, End, HoldId, Ticket};

/// A lock, by name. It exists from its first use; creating a handle costs nothing.
#[derive(Clone)]
pub struct Lock {
    node: Node,
    name: LockName,
    owner: Arc<str>,
    client: Client,
}

/// Why a lock was not acquired.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AcquireError {
    /// The node refused the request immediately.
    #[error(transparent)]
    Refused(#[from] AskError),
    /// Not granted in time.
    #[error("lock {0:?} was not granted in time")]
    Late(LockName),
    /// The node was stopped before the lock was granted.
    #[error("the node was stopped before lock {0:?} was granted")]
    NodeStopped(LockName),
    /// The same request was sent again and is answered there, or it was cancelled.
    #[error("the request for lock {0:?} was sent again or cancelled: this one is not answered")]
    Superseded(LockName),
    /// The same request was granted before, and its hold has ended.
    #[error("the request was granted before, and hold {0:?} has ended")]
    Ended(HoldId),
}

/// The lock was lost before it was released. Another client may hold it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the lock was lost before it was released: {0}")]
pub struct Lost(pub End);

impl Lock {
    pub(super) fn new(node: Node, name: LockName, owner: Arc<str>) -> Self {
        Lock {
            node,
            name,
            owner,
            client: Client::this_process(),
        }
    }

    /// The lock's name.
    pub fn name(&self) -> &LockName {
        &self.name
    }

    /// Sets the owner of later requests. Clients that list holders and waiters see this name.
    pub fn with_owner(mut self, owner: &str) -> Self {
        self.owner = owner.into();
        self
    }

    /// Waits until the lock is granted. Cancel safe: if the future is dropped, the request is
    /// cancelled, and a grant already on its way is passed on.
    pub async fn acquire(&self) -> Result<Guard, AcquireError> {
        self.acquire_until(None).await
    }

    /// Like [`acquire`](Lock::acquire), with a timeout.
    pub async fn try_acquire(&self, within: Duration) -> Result<Guard, AcquireError> {
        self.acquire_until(Some(Moment::now() + within)).await
    }

    async fn acquire_until(&self, until: Option<Moment>) -> Result<Guard, AcquireError> {
        let ask = Ask {
            owner: Arc::clone(&self.owner),
            ttl: None,
            until,
            client: self.client.clone(),
            request: None,
        };
        let held = self
            .node
            .acquire(&self.name, ask, IfDropped::Cancel)
            .await?;
        Ok(Guard {
            node: self.node.clone(),
            held,
        })
    }
}

/// What happens to a waiter that is dropped.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum IfDropped {
    /// It stops waiting. If it was already granted the lock and nobody was told, the lock is
    /// released.
    Cancel,
    /// It stays in the queue for a while, so that its request can be sent again.
    Stay,
}

impl Node {
    /// Waits until the lock is granted or denied. Cancel safe.
    pub(crate) async fn acquire(
        &self,
        name: &LockName,
        ask: Ask,
        if_dropped: IfDropped,
    ) -> Result<Arc<Held>, AcquireError> {
        // A task that acquires and releases in a loop must let the peers' messages through.
        tokio::task::consume_budget().await;
        let stopped = || AcquireError::NodeStopped(name.clone());
        let asked = {
            let mut core = self.shared.living().ok_or_else(stopped)?;
            core.acquire(&self.shared, name, ask)?
        };
        let (ticket, answer) = match asked {
            Asked::Granted(held) => return Ok(held),
            Asked::Waits(ticket, answer) => (ticket, answer),
            Asked::Ended(hold) => return Err(AcquireError::Ended(hold)),
        };
        let mut waiting = Waiting {
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
        let answer = answer.map_err(|_| AcquireError::Superseded(name.clone()))?;
        answer.map_err(|denial| match denial {
            Denial::Late => AcquireError::Late(name.clone()),
            Denial::NodeStopped => stopped(),
        })
    }
}

/// A waiter. If it is dropped without an answer, `if_dropped` decides what happens to the request.
struct Waiting<'n> {
    node: &'n Node,
    ticket: Ticket,
    answer: oneshot::Receiver<Answer>,
    if_dropped: IfDropped,
}

impl Drop for Waiting<'_> {
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

/// A held lock. Dropping the guard releases it.
#[must_use = "the lock is released as soon as its guard is dropped"]
pub struct Guard {
    node: Node,
    held: Arc<Held>,
}

impl Guard {
    /// The lock's name.
    pub fn name(&self) -> &LockName {
        &self.held.grant.lock
    }

    /// Returns the fencing token. It is greater than that of every earlier hold of this lock, so
    /// the protected resource can reject a late holder.
    pub fn fence(&self) -> Fence {
        self.held.grant.fence
    }

    /// Returns how much longer the lock is certainly held if no further message arrives, or zero
    /// if it was lost. `None` means until it is released or the node stops. In a cluster with
    /// keepers, the value is extended while the node reaches them and is not stopping.
    pub fn valid_for(&self) -> Option<Duration> {
        let shared = &self.node.shared;
        let Some(mut core) = shared.living() else {
            return Some(Duration::ZERO);
        };
        // Check the clock first: the hold may have expired.
        core.look(shared);
        match core.promise(self.held.grant.hold) {
            Err(_) => Some(Duration::ZERO),
            Ok(until) => Some(until?.since(Moment::now())),
        }
    }

    /// Waits until the lock is lost, or certain to be lost, and returns why. When the node stops,
    /// this returns immediately, and [`valid_for`](Guard::valid_for) returns how much time is left
    /// to finish and to release.
    pub async fn lost(&self) -> Lost {
        let shared = &self.node.shared;
        tokio::select! {
            biased;
            end = self.held.ended() => Lost(end),
            _ = shared.fault.happened() => Lost(End::EpochLost),
            () = shared.draining.cancelled() => Lost(End::NodeStopped),
        }
    }

    /// Releases the lock. Returns an error if it was lost before.
    pub async fn release(self) -> Result<(), Lost> {
        self.give_back()
    }

    fn give_back(&self) -> Result<(), Lost> {
        if let Some(end) = self.held.end() {
            return Err(Lost(end));
        }
        let shared = &self.node.shared;
        let Some(mut core) = shared.living() else {
            return Err(Lost(End::EpochLost));
        };
        let released = core.release(shared, self.held.grant.hold);
        released.map_err(|_| Lost(self.held.end().expect("it is no longer held")))
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.give_back();
    }
}
