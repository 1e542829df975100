//! A lock that is held.

use std::time::Duration;

use soloist_api::Hold;
use tokio::sync::{oneshot, watch};

use crate::keeper::{Keeper, Standing, loss_in};
use crate::{Client, ClientError, Loss, LossReason, Moment, reached};

/// The lock is held. It is renewed in the background until it is released or lost; dropping the guard releases it.
#[must_use = "the lock is released as soon as its guard is dropped"]
pub struct Guard {
    held: Held,
    standing: watch::Receiver<Standing>,
    /// The hold is kept until this is dropped.
    _kept: oneshot::Sender<()>,
}

/// Why a release failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReleaseError {
    /// It was lost before: whoever relied on it was not alone.
    #[error(transparent)]
    Lost(#[from] Loss),
    /// The node did not confirm it. Without renewal, the hold ends at the latest after its time to live.
    #[error("the release was not confirmed: {0}; the hold ends by itself within {1:?}")]
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

    /// Greater than that of every earlier holder of this lock. Send it along to whatever the lock protects,
    /// see [`gate`](crate::gate).
    pub fn fence(&self) -> u64 {
        self.held.hold.fence
    }

    /// The lock's name.
    pub fn lock(&self) -> &str {
        &self.held.hold.lock
    }

    /// How long the hold lived without renewal when it was last renewed: its time to live, or what was left of its
    /// node's lease. Right after the grant, until its first renewal a moment later, at most three seconds.
    pub fn ttl(&self) -> Duration {
        self.standing.borrow().ttl
    }

    /// Until when the lock is surely held, as far as is known now; it moves on with each renewal.
    pub fn valid_until(&self) -> Moment {
        self.standing.borrow().valid_until
    }

    /// How much longer the lock is surely held, even if no renewal succeeds from now on; zero, once it is lost. It is
    /// counted from when the last renewal was sent, by a clock that also counts while the machine sleeps.
    pub fn valid_for(&self) -> Duration {
        let standing = self.standing.borrow();
        let loss = standing.loss.as_ref();
        let until = loss.map_or(standing.valid_until, |loss| {
            loss.since.min(standing.valid_until)
        });
        until.since(Moment::now())
    }

    /// Waits until [`valid_until`](Guard::valid_until) is later than `known`; for ever, once it is lost.
    pub async fn renewed_after(&self, known: Moment) {
        let mut standing = self.standing.clone();
        let renewed = standing.wait_for(|standing| standing.valid_until > known);
        if renewed.await.is_err() {
            std::future::pending().await
        }
    }

    /// Waits until the lock is lost, or certain to be lost because its node stops, and says why. In the second case
    /// [`valid_for`](Guard::valid_for) tells how much time is left: stop working, and release it. May be asked as often
    /// as one likes.
    pub async fn lost(&self) -> Loss {
        let mut standing = self.standing.clone();
        let found = standing.wait_for(|standing| standing.loss.is_some()).await;
        if let Some(loss) = found.ok().and_then(|standing| standing.loss.clone()) {
            return loss;
        }
        // Nobody renews any more: the runtime that did was shut down.
        let valid_until = self.valid_until();
        reached(valid_until).await;
        Loss {
            reason: LossReason::Expired,
            since: valid_until,
        }
    }

    /// Releases the lock, and says if it was lost before.
    pub async fn release(mut self) -> Result<(), ReleaseError> {
        let loss = self.standing.borrow().loss.clone();
        // While the node stops, the lock is still held, and the node waits for this.
        if let Some(loss) = loss.filter(|loss| loss.since <= Moment::now()) {
            self.held.is_over = true;
            return Err(loss.into());
        }
        let result = self.held.client.release(self.held.id()).await;
        // Whatever came of it, or else it is tried once more when this is dropped.
        let Err(error) = result else {
            self.held.is_over = true;
            return Ok(());
        };
        match loss_in(&error) {
            // The first answer was lost with its connection. Had somebody else released it, the
            // node would have told before.
            Some(loss) if loss.reason == LossReason::Released => Ok(()),
            Some(loss) => Err(loss.into()),
            None => Err(ReleaseError::NotConfirmed(error, self.valid_for())),
        }
    }
}

/// A hold that is released in the background when this is dropped, unless it is over.
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
        // If it fails, the hold ends with its time to live.
        let release = async move { drop(client.release(&hold).await) };
        self.client.in_background(release);
    }
}
