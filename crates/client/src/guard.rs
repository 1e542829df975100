//! The guard of a held lock.

use std::fmt;
use std::time::Duration;

use soloist_api::{EndReason, Fence, Guard, Hold, LockName, Loss, ReleaseError};
use tokio::sync::{oneshot, watch};

use crate::keeper::{Keeper, Standing, loss_in};
use crate::{Client, Moment, reached};

/// A lock that is held through a node elsewhere. The hold is renewed in the background until it is
/// released or lost. Dropping the guard releases the lock, in the background: see
/// [`Client::settle`].
#[must_use = "the lock is released as soon as its guard is dropped"]
pub struct ClientGuard {
    held: Held,
    standing: watch::Receiver<Standing>,
    /// Dropping this stops the renewal of the hold.
    _kept: oneshot::Sender<()>,
}

impl ClientGuard {
    pub(crate) fn new(held: Held, ttl: Duration, since: Moment, is_confirmed: bool) -> Self {
        let (told, standing) = watch::channel(Standing {
            valid_until: since + ttl,
            ttl,
            loss: None,
        });
        let (kept, over) = oneshot::channel();
        let keeper = Keeper {
            client: held.client.clone(),
            hold: held.id().to_owned(),
            is_confirmed,
            standing: told,
        };
        held.client.young.keep(keeper, over);
        ClientGuard {
            held,
            standing,
            _kept: kept,
        }
    }

    /// How long the hold was valid for when it was last renewed: its time to live, or the time left
    /// on its node's lease if that is shorter. Between the grant and the first renewal, which
    /// follows shortly, this is at most three seconds.
    pub fn ttl(&self) -> Duration {
        self.standing.borrow().ttl
    }

    /// Time until which the lock is certainly held. Renewals extend it.
    pub fn valid_until(&self) -> Moment {
        self.standing.borrow().valid_until
    }

    /// Waits until [`valid_until`](ClientGuard::valid_until) is later than `known`. Never returns
    /// if the lock is lost before that.
    pub async fn renewed_after(&self, known: Moment) {
        let mut standing = self.standing.clone();
        let renewed = standing.wait_for(|standing| standing.valid_until > known);
        if renewed.await.is_err() {
            std::future::pending().await
        }
    }
}

impl Guard for ClientGuard {
    fn name(&self) -> &LockName {
        self.held.lock()
    }

    fn fence(&self) -> Fence {
        self.held.hold.fence
    }

    fn valid_for(&self) -> Duration {
        let standing = self.standing.borrow();
        let loss = standing.loss.as_ref();
        let until = loss.map_or(standing.valid_until, |loss| {
            loss.since.min(standing.valid_until)
        });
        until.since(Moment::now())
    }

    async fn lost(&self) -> Loss {
        let mut standing = self.standing.clone();
        let found = standing.wait_for(|standing| standing.loss.is_some()).await;
        if let Some(loss) = found.ok().and_then(|standing| standing.loss) {
            return loss;
        }
        // The runtime that renewed the hold was shut down.
        let valid_until = self.valid_until();
        reached(valid_until).await;
        Loss {
            reason: EndReason::Expired,
            since: valid_until,
        }
    }

    async fn release(mut self) -> Result<(), ReleaseError> {
        let loss = self.standing.borrow().loss;
        // A loss in the future means that the node is stopping. The lock is still held, and the
        // node waits for its release.
        if let Some(loss) = loss.filter(|loss| loss.since <= Moment::now()) {
            self.held.is_over = true;
            return Err(loss.into());
        }
        let result = self.held.client.release(self.held.id()).await;
        // After a failure, dropping `self.held` tries to release once more.
        let Err(error) = result else {
            self.held.is_over = true;
            return Ok(());
        };
        match loss_in(&error) {
            // The first response was lost with its connection. If another client had released the
            // hold, the node would have reported the loss earlier.
            Some(loss) if loss.reason == EndReason::Released => Ok(()),
            Some(loss) => Err(loss.into()),
            None => Err(ReleaseError::NotConfirmed {
                source: error.into(),
                expires_within: self.valid_for(),
            }),
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

/// A hold that is released in the background when this is dropped, unless `is_over` is set.
pub(crate) struct Held {
    client: Client,
    lock: LockName,
    hold: Hold,
    is_over: bool,
}

impl Held {
    pub(crate) fn new(client: Client, lock: LockName, hold: Hold) -> Self {
        Held {
            client,
            lock,
            hold,
            is_over: false,
        }
    }

    pub(crate) fn lock(&self) -> &LockName {
        &self.lock
    }

    pub(crate) fn id(&self) -> &str {
        &self.hold.hold
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let client = self.client.clone();
        let hold = std::mem::take(&mut self.hold.hold);
        // If this fails, the hold expires after its time to live.
        let release = async move { drop(client.release(&hold).await) };
        self.client.in_background(release);
    }
}
