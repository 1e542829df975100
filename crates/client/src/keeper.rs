//! Keeps a hold: renews it, listens for its loss, and watches the clock.

use std::time::Duration;

use soloist_api::ErrorKind;
use tokio::sync::{oneshot, watch};
use tokio::time::sleep;

use crate::{Client, ClientError, Loss, LossReason, Moment};

/// How long the node is asked to think before it says that nothing has happened.
const LISTEN_FOR: Duration = Duration::from_secs(30);

/// Short holds are over before anybody listens: that would cost more than the lock itself.
const LISTEN_AFTER: Duration = Duration::from_millis(20);

/// How a hold stands.
pub(crate) struct Standing {
    pub valid_until: Moment,
    pub loss: Option<Loss>,
}

pub(crate) struct Keeper {
    pub client: Client,
    pub hold: String,
    pub ttl: Duration,
    pub standing: watch::Sender<Standing>,
}

impl Keeper {
    /// Until the guard is released (`stop` says so), dropped (it says nothing any more), or the hold is lost.
    pub async fn keep(self, mut stop: oneshot::Receiver<()>) {
        let loss = tokio::select! {
            // A guard that is released while its loss is noticed was released.
            biased;
            released = &mut stop => {
                if released.is_err() {
                    self.release().await;
                }
                return;
            }
            loss = self.lost() => loss,
        };
        let expired = loss.reason == LossReason::Expired;
        self.standing
            .send_modify(|standing| standing.loss = Some(loss));
        if expired {
            // A renewal whose answer was lost may have kept it alive at the node, for nobody.
            self.release().await;
        }
    }

    /// If it fails, the hold ends with its time to live.
    async fn release(&self) {
        let _ = self.client.release(&self.hold).await;
    }

    async fn lost(&self) -> Loss {
        tokio::select! {
            loss = self.renew() => loss,
            loss = self.listen() => loss,
            loss = self.expire() => loss,
        }
    }

    /// Renews until the node says that there is nothing to renew.
    async fn renew(&self) -> Loss {
        let every = self.ttl / 3;
        let mut pause = every;
        loop {
            sleep(pause).await;
            let sent = Moment::now();
            // The next attempt is made over a new connection, so it is no use to wait for long.
            let patience = every.max(Duration::from_millis(10));
            match self.client.renew(&self.hold, patience).await {
                Ok(hold) => {
                    let valid_until = sent + Duration::from_millis(hold.valid_for_ms);
                    self.standing.send_modify(|standing| {
                        standing.valid_until = standing.valid_until.max(valid_until);
                    });
                    pause = every;
                }
                Err(error) => match loss_in(&error) {
                    Some(loss) => return loss,
                    None => pause = self.pause_after_failure(),
                },
            }
        }
    }

    /// Has the node say at once when the hold is lost.
    async fn listen(&self) -> Loss {
        sleep(LISTEN_AFTER).await;
        loop {
            let asked = Moment::now();
            let pause = match self.client.watch(&self.hold, LISTEN_FOR).await {
                // A node that answers at once would be asked without end.
                Ok(_) if Moment::now().since(asked) > Duration::from_millis(100) => continue,
                Ok(_) => Duration::from_millis(100),
                Err(error) => match loss_in(&error) {
                    Some(loss) => return loss,
                    None => self.pause_after_failure(),
                },
            };
            sleep(pause).await;
        }
    }

    /// Several attempts fit into what is left when a renewal has failed.
    fn pause_after_failure(&self) -> Duration {
        (self.ttl / 20).clamp(Duration::from_millis(5), Duration::from_secs(1))
    }

    /// Whatever the node would say: without renewal, the hold is over when its time has run out.
    async fn expire(&self) -> Loss {
        loop {
            let valid_until = self.standing.borrow().valid_until;
            valid_until.reached().await;
            if self.standing.borrow().valid_until == valid_until {
                return Loss {
                    reason: LossReason::Expired,
                    since: valid_until,
                };
            }
        }
    }
}

/// The loss that an answer tells of.
pub(crate) fn loss_in(error: &ClientError) -> Option<Loss> {
    let ClientError::Refused { kind, reason, .. } = error else {
        return None;
    };
    let reason = match kind {
        ErrorKind::NoSuchHold => LossReason::Forgotten,
        ErrorKind::Ended => LossReason::from_name(reason.as_deref().unwrap_or("ended")),
        _ => return None,
    };
    Some(Loss {
        reason,
        since: Moment::now(),
    })
}
