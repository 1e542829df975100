//! A lock and the guard that holds it, for programs that run a node in themselves.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::sync::oneshot::error::TryRecvError;

use super::Node;
use super::state::{Answer, Asked, Held};
use crate::Moment;
use soloist_api::{Fence, LockName};
use soloist_core::locks::{Ask, AskError, Client, Denial, End, HoldId, Ticket};

/// A lock, by name. Exists from first use; making one of these costs nothing.
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
    /// The node does not even let it wait.
    #[error(transparent)]
    Refused(#[from] AskError),
    /// Not granted in time.
    #[error("lock {0:?} was not granted in time")]
    Late(LockName),
    /// The node was stopped meanwhile.
    #[error("the node was stopped before lock {0:?} was granted")]
    NodeStopped(LockName),
    /// The same request was sent again, and is answered there, or it was cancelled.
    #[error("the request for lock {0:?} was sent again or cancelled: this one is not answered")]
    Superseded(LockName),
    /// The same request was granted before, and its hold has ended.
    #[error("the request was granted before, and hold {0:?} has ended")]
    Ended(HoldId),
}

/// The lock was lost before it was released: somebody else may hold it.
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

    /// Names whoever asks from now on, for those who look who holds and who waits.
    pub fn with_owner(mut self, owner: &str) -> Self {
        self.owner = owner.into();
        self
    }

    /// Waits until the lock is granted. May be dropped at any time: then nobody waits any more, and if
    /// the grant was on its way, it is passed on.
    pub async fn acquire(&self) -> Result<Guard, AcquireError> {
        self.acquire_until(None).await
    }

    /// As [`acquire`](Lock::acquire), for no longer than this.
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

/// What becomes of a waiter that is dropped.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum IfDropped {
    /// It waits no more. If it was granted the lock, and nobody was told, the lock is released.
    Cancel,
    /// It stays for a while, so that its request can be sent again.
    Stay,
}

impl Node {
    /// Waits until the lock is granted or denied. May be dropped at any time.
    pub(crate) async fn acquire(
        &self,
        name: &LockName,
        ask: Ask,
        if_dropped: IfDropped,
    ) -> Result<Arc<Held>, AcquireError> {
        // Who acquires and releases in a loop must let peers' messages through.
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

/// Somebody waits. If it is dropped without an answer, they wait no more.
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
        // Answers come only while somebody has this, so none comes between the look and what follows.
        let Some(mut core) = shared.living() else {
            return;
        };
        match (self.answer.try_recv(), self.if_dropped) {
            // The same request was sent again: the waiter is not this one's any more.
            (Err(TryRecvError::Closed), _) => {}
            (Err(TryRecvError::Empty), IfDropped::Cancel) => core.cancel(shared, self.ticket),
            (Err(TryRecvError::Empty), IfDropped::Stay) => core.abandon(shared, self.ticket),
            (Ok(Ok(held)), IfDropped::Cancel) => drop(core.release(shared, held.grant.hold)),
            // It is kept for a resend until its first promise is over.
            (Ok(Ok(_)), IfDropped::Stay) | (Ok(Err(_)), _) => {}
        }
    }
}

/// The lock is held. Dropping the guard releases it.
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

    /// Greater than the fence of every earlier hold of this lock: what is protected can refuse
    /// whoever comes late.
    pub fn fence(&self) -> Fence {
        self.held.grant.fence
    }

    /// How much longer the lock is certainly held, if nothing is heard meanwhile; zero, if it was lost.
    /// `None`: until it is released or the node stops. In a cluster with keepers it moves on as long as they are
    /// reached and the node does not stop.
    pub fn valid_for(&self) -> Option<Duration> {
        let shared = &self.node.shared;
        let Some(mut core) = shared.living() else {
            return Some(Duration::ZERO);
        };
        // Whether it has ended is known only after a look at the clock.
        core.look(shared);
        match core.promise(self.held.grant.hold) {
            Err(_) => Some(Duration::ZERO),
            Ok(until) => Some(until?.since(Moment::now())),
        }
    }

    /// Waits until the lock is lost, or certain to be lost, and tells why. When the node stops, this returns at once, and
    /// [`valid_for`](Guard::valid_for) tells how much time is left to finish and to release.
    pub async fn lost(&self) -> Lost {
        let shared = &self.node.shared;
        tokio::select! {
            biased;
            end = self.held.ended() => Lost(end),
            _ = shared.fault.happened() => Lost(End::EpochLost),
            () = shared.draining.cancelled() => Lost(End::NodeStopped),
        }
    }

    /// Gives the lock back, and tells if it was lost before.
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
