//! The guard of a held lock.

use std::time::Duration;

use soloist_api::Hold;
use tokio::sync::{oneshot, watch};

use crate::keeper::{Keeper, Standing, loss_in};
use crate::{Client, ClientError, Loss, LossReason, Moment, reached};

/// A held lock. The hold is renewed in the background until it is released or lost. Dropping the
/// guard releases the lock.
#[must_use = "the lock is released as soon as its guard is dropped"]
pub struct Guard {
    held: Held,
    standing: watch::Receiver<Standing>,
    /// Dropping this stops the renewal of the hold.
    _kept: oneshot::Sender<()>,
}

/// Why a release failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReleaseError {
    /// The lock was lost before the release, so the work may have overlapped with another holder's.
    #[error(transparent)]
    Lost(#[from] Loss),
    /// The node did not confirm the release. The hold is no longer renewed, and expires within this
    /// time.
    #[error("the release was not confirmed: {0}; the hold expires within {1:?}")]
    NotConfirmed(ClientError, Duration),
}

impl Guard {
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
        Guard {
            held,
            standing,
            _kept: kept,
        }
    }

    /// The fencing token, greater than that of every earlier holder of this lock. Send it along
    /// with every request to the protected resource, see [`gate`](crate::gate).
    pub fn fence(&self) -> u64 {
        self.held.hold.fence
    }

    /// The lock's name.
    pub fn lock(&self) -> &str {
        &self.held.hold.lock
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

    /// How much longer the lock is certainly held, even if no further renewal succeeds. Returns
    /// zero once the lock is lost. The time is counted from when the last successful renewal was
    /// sent, on a clock that keeps counting while the machine sleeps.
    pub fn valid_for(&self) -> Duration {
        let standing = self.standing.borrow();
        let loss = standing.loss.as_ref();
        let until = loss.map_or(standing.valid_until, |loss| {
            loss.since.min(standing.valid_until)
        });
        until.since(Moment::now())
    }

    /// Waits until [`valid_until`](Guard::valid_until) is later than `known`. Never returns if the
    /// lock is lost before that.
    pub async fn renewed_after(&self, known: Moment) {
        let mut standing = self.standing.clone();
        let renewed = standing.wait_for(|standing| standing.valid_until > known);
        if renewed.await.is_err() {
            std::future::pending().await
        }
    }

    /// Waits until the lock is lost, or certain to be lost because its node is stopping, and
    /// returns the reason. In the second case [`valid_for`](Guard::valid_for) is the time that is
    /// left: stop working, and release the lock. Later calls return the same loss immediately.
    pub async fn lost(&self) -> Loss {
        let mut standing = self.standing.clone();
        let found = standing.wait_for(|standing| standing.loss.is_some()).await;
        if let Some(loss) = found.ok().and_then(|standing| standing.loss.clone()) {
            return loss;
        }
        // The runtime that renewed the hold was shut down.
        let valid_until = self.valid_until();
        reached(valid_until).await;
        Loss {
            reason: LossReason::Expired,
            since: valid_until,
        }
    }

    /// Releases the lock. Returns an error if it was already lost.
    pub async fn release(mut self) -> Result<(), ReleaseError> {
        let loss = self.standing.borrow().loss.clone();
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
            Some(loss) if loss.reason == LossReason::Released => Ok(()),
            Some(loss) => Err(loss.into()),
            None => Err(ReleaseError::NotConfirmed(error, self.valid_for())),
        }
    }
}

/// A hold that is released in the background when this is dropped, unless `is_over` is set.
pub(crate) struct Held {
    client: Client,
    hold: Hold,
    is_over: bool,
}

impl Held {
    pub fn new(client: Client, hold: Hold) -> Self {
        Held {
            client,
            hold,
            is_over: false,
        }
    }

    pub fn id(&self) -> &str {
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
