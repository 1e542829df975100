//! The lock API of a node in this process.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use soloist_api::{
    AcquireError, EndReason, Fence, Guard, LockName, Locks, Loss, Moment, ReleaseError, Request,
    check_owner,
};
use soloist_core::locks::{Client, LockRequest, RequestError};

use super::Node;
use super::acquire::{IfDropped, NotAcquired, unknown};
use super::state::SharedHold;

impl Locks for Node {
    type Guard = NodeGuard;

    async fn request(&self, request: Request) -> Result<NodeGuard, AcquireError> {
        let owner = match request.owner {
            Some(owner) => {
                check_owner(&owner).map_err(|error| AcquireError::Refused(error.into()))?;
                owner
            }
            None => Arc::clone(&self.shared.owner),
        };
        let ask = LockRequest {
            owner,
            ttl: None,
            until: request.wait.map(|wait| Moment::now() + wait),
            client: Client::this_process(),
            request: None,
        };
        let name = &request.lock;
        let acquired = match request.wait {
            Some(Duration::ZERO) => self.try_acquire(name, ask).await,
            _ => self.acquire(name, ask, IfDropped::Cancel).await,
        };
        match acquired {
            Ok(held) => Ok(NodeGuard {
                node: self.clone(),
                held,
                loss: OnceLock::new(),
            }),
            Err(error) => Err(self.acquire_error(error).await),
        }
    }
}

impl Node {
    async fn acquire_error(&self, error: NotAcquired) -> AcquireError {
        match error {
            NotAcquired::NotGranted(lock) => self.obstacle(&lock).await.error(lock),
            NotAcquired::NotSeen(lock) => AcquireError::Unknown {
                detail: unknown(&lock, &self.why_not_seen()),
                lock,
            },
            NotAcquired::Refused(
                error @ (RequestError::Quota(_)
                | RequestError::Ttl { .. }
                | RequestError::LocksFull(_)),
            ) => AcquireError::Refused(error.into()),
            error => AcquireError::Unavailable(error.into()),
        }
    }
}

/// A lock that this process holds through its own node. The hold needs no renewal: it lasts until
/// it is released, or until the node stops or loses its lease. Dropping the guard releases it.
#[must_use = "the lock is released as soon as its guard is dropped"]
pub struct NodeGuard {
    node: Node,
    held: Arc<SharedHold>,
    /// The loss as it was first reported.
    loss: OnceLock<Loss>,
}

impl Guard for NodeGuard {
    fn name(&self) -> &LockName {
        &self.held.grant.lock
    }

    fn fence(&self) -> Fence {
        self.held.grant.fence
    }

    fn valid_for(&self) -> Duration {
        let shared = &self.node.shared;
        let Some(mut core) = shared.living() else {
            return Duration::ZERO;
        };
        // Check the clock first: the hold may have expired.
        core.look(shared);
        match core.promise(self.held.grant.hold) {
            Err(_) => Duration::ZERO,
            Ok(until) => until.map_or(Duration::MAX, |until| until.since(Moment::now())),
        }
    }

    async fn lost(&self) -> Loss {
        let shared = &self.node.shared;
        let reason = tokio::select! {
            biased;
            reason = self.held.ended() => reason,
            _ = shared.fault.happened() => EndReason::EpochLost,
            () = shared.draining.cancelled() => EndReason::NodeStopped,
        };
        self.loss(reason)
    }

    async fn release(self) -> Result<(), ReleaseError> {
        Ok(self.give_back()?)
    }
}

impl NodeGuard {
    fn give_back(&self) -> Result<(), Loss> {
        if let Some(reason) = self.held.end() {
            return Err(self.loss(reason));
        }
        let shared = &self.node.shared;
        let released = match shared.living() {
            Some(mut core) => core.release(shared, self.held.grant.hold),
            None => return Err(self.loss(EndReason::EpochLost)),
        };
        released.map_err(|_| self.loss(self.held.end().expect("the lock is no longer held")))
    }

    fn loss(&self, reason: EndReason) -> Loss {
        *self.loss.get_or_init(|| Loss {
            reason,
            since: self.lost_since(),
        })
    }

    /// When the hold ended, or will end because the node is stopping.
    fn lost_since(&self) -> Moment {
        let hold = self.held.grant.hold;
        let known = self.node.shared.living().and_then(|core| {
            let promise = core.promise(hold);
            promise.unwrap_or_else(|_| core.table().ended_at(hold))
        });
        known.unwrap_or_else(Moment::now)
    }
}

impl Drop for NodeGuard {
    fn drop(&mut self) {
        if self.held.end().is_none() {
            let _ = self.give_back();
        }
    }
}

impl fmt::Debug for NodeGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodeGuard")
            .field("name", self.name())
            .field("fence", &self.fence())
            .finish_non_exhaustive()
    }
}
