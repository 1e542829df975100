//! The guard of a held lock.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use soloist_api::{EndReason, Fence, Guard, LockName, Loss, ReleaseError};

use crate::session::{Denial, Hold, RequestId, Session, SessionKey};
use crate::{Client, Moment};

/// A lock that is held through a node elsewhere. The hold is renewed in the background until it is
/// released or lost. Dropping the guard releases the lock and does not wait for the node's answer:
/// see [`Client::settle`].
#[must_use = "the lock is released as soon as its guard is dropped"]
pub struct ClientGuard {
    /// Keeps the session open.
    _client: Client,
    session: Arc<Session>,
    id: RequestId,
    lock: LockName,
    fence: Fence,
    is_over: bool,
}

impl ClientGuard {
    pub(crate) fn new(
        client: Client,
        session: Arc<Session>,
        id: RequestId,
        lock: LockName,
        fence: Fence,
    ) -> Self {
        ClientGuard {
            _client: client,
            session,
            id,
            lock,
            fence,
            is_over: false,
        }
    }

    fn hold(&self) -> Hold {
        let hold = self.session.hold(self.id);
        hold.expect("it is held until its guard is gone")
    }

    /// How long the hold was valid for when it was last renewed: its time to live, or the time left
    /// on its node's lease if that is shorter.
    pub fn ttl(&self) -> Duration {
        self.hold().length
    }

    /// Time until which the lock is certainly held. Renewals extend it.
    pub fn valid_until(&self) -> Moment {
        self.hold().until
    }

    /// What another process needs to end the session that this lock is held in, and all other holds
    /// of that session. `None` if the session has ended.
    pub fn session_key(&self) -> Option<SessionKey> {
        self.session.key()
    }

    /// Waits until [`valid_until`](ClientGuard::valid_until) is later than `known`. Never returns
    /// if the lock is lost before that.
    pub async fn renewed_after(&self, known: Moment) {
        let changed = self.session.changed(self.id, |hold| hold.until > known);
        changed.await;
    }
}

impl Guard for ClientGuard {
    fn name(&self) -> &LockName {
        &self.lock
    }

    fn fence(&self) -> Fence {
        self.fence
    }

    fn valid_for(&self) -> Duration {
        let hold = self.hold();
        let until = hold
            .loss
            .map_or(hold.until, |loss| loss.since.min(hold.until));
        until.since(Moment::now())
    }

    async fn lost(&self) -> Loss {
        let loss = self.session.lost(self.id).await;
        loss.expect("it is held until its guard is gone")
    }

    async fn release(mut self) -> Result<(), ReleaseError> {
        let until = self.valid_until();
        let result = self.session.release(self.id).await;
        self.is_over = true;
        match result {
            Ok(()) => Ok(()),
            Err(Denial::Lost(loss)) if loss.reason == EndReason::Released => Ok(()),
            Err(Denial::Lost(loss)) => Err(loss.into()),
            Err(Denial::GivenUp(error)) => Err(ReleaseError::NotConfirmed {
                source: error.copy().into(),
                expires_within: until.since(Moment::now()),
            }),
            Err(Denial::Refused(failure)) => Err(ReleaseError::NotConfirmed {
                source: failure.detail.into(),
                expires_within: until.since(Moment::now()),
            }),
        }
    }
}

impl Drop for ClientGuard {
    fn drop(&mut self) {
        if !self.is_over {
            self.session.drop_request(self.id);
        }
    }
}

impl fmt::Debug for ClientGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientGuard")
            .field("name", self.name())
            .field("fence", &self.fence())
            .finish_non_exhaustive()
    }
}
