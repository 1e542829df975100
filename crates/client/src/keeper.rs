//! Keeps a hold: renews it, listens for its loss, and watches the clock.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use soloist_api::{EndReason, ErrorKind, Hold, Loss, ttl};
use tokio::sync::oneshot::error::TryRecvError;
use tokio::sync::{oneshot, watch};
use tokio::time::sleep;

use crate::{Client, ClientError, Moment, reached};

/// How long the node is asked to think before it says that nothing has happened.
const LISTEN_FOR: Duration = Duration::from_secs(30);

/// Most holds are over before anybody need keep them: a task for each would cost more than the lock itself.
const KEEP_AFTER: Duration = Duration::from_millis(20);

/// Unless they would not live much longer than that.
const KEEP_AT_ONCE: Duration = Duration::from_millis(500);

/// How a hold stands.
pub(crate) struct Standing {
    pub valid_until: Moment,
    /// How long the hold lived without renewal when that was promised.
    pub ttl: Duration,
    pub loss: Option<Loss>,
}

pub(crate) struct Keeper {
    pub client: Client,
    pub hold: String,
    /// Whether the hold was renewed since it was granted. Until then, the node promises a short time.
    pub is_confirmed: bool,
    pub standing: watch::Sender<Standing>,
}

/// Holds that have just begun. Those that last are kept by a task each.
#[derive(Default)]
pub(crate) struct Young {
    queue: Mutex<VecDeque<Newcomer>>,
}

struct Newcomer {
    since: Moment,
    keeper: Keeper,
    over: oneshot::Receiver<()>,
}

impl Young {
    /// Keeps a hold until `over` says, or can say no more, that its guard is gone.
    pub(crate) fn keep(self: &Arc<Self>, keeper: Keeper, over: oneshot::Receiver<()>) {
        let runtime = keeper.client.runtime.clone();
        if keeper.lives_for() < KEEP_AT_ONCE {
            runtime.spawn(keeper.keep(over));
            return;
        }
        let is_first = {
            let mut queue = self.queue();
            let since = Moment::now();
            queue.push_back(Newcomer {
                since,
                keeper,
                over,
            });
            queue.len() == 1
        };
        if is_first {
            // Made here: a runtime that is shut down drops tasks that never began.
            let end = ShutDown(Some(Arc::clone(self)));
            runtime.spawn(Arc::clone(self).grow_up(end));
        }
    }

    fn queue(&self) -> MutexGuard<'_, VecDeque<Newcomer>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// As long as there are any.
    async fn grow_up(self: Arc<Self>, mut end: ShutDown) {
        while let Some(pause) = self.keep_those_that_last() {
            sleep(pause).await;
        }
        end.0 = None;
    }

    /// Tells how long it takes until another may have to be kept.
    fn keep_those_that_last(&self) -> Option<Duration> {
        let mut queue = self.queue();
        loop {
            let age = Moment::now().since(queue.front()?.since);
            if age < KEEP_AFTER {
                return Some(KEEP_AFTER - age);
            }
            let Newcomer {
                keeper, mut over, ..
            } = queue.pop_front()?;
            if matches!(over.try_recv(), Err(TryRecvError::Empty)) {
                tokio::spawn(keeper.keep(over));
            }
        }
    }
}

/// When the runtime is shut down, nobody is kept any more, and guards see that.
struct ShutDown(Option<Arc<Young>>);

impl Drop for ShutDown {
    fn drop(&mut self) {
        if let Some(young) = &self.0 {
            young.queue().clear();
        }
    }
}

impl Keeper {
    /// Until the guard is gone (`over`), or the hold is lost.
    async fn keep(self, mut over: oneshot::Receiver<()>) {
        let loss = tokio::select! {
            // A guard that is released while its loss is noticed was released.
            biased;
            _ = &mut over => return,
            loss = self.lost() => loss,
        };
        let expired = loss.reason == EndReason::Expired;
        self.standing
            .send_modify(|standing| standing.loss = Some(loss));
        if expired {
            // A renewal whose answer was lost may have kept it alive at the node, for nobody. If this
            // fails, the hold ends with its time to live.
            let _ = self.client.release(&self.hold).await;
        }
    }

    /// How long the hold surely lives without renewal: no longer than its time to live, and no longer than its node may
    /// rely on being one of the cluster's.
    fn lives_for(&self) -> Duration {
        let valid_until = self.standing.borrow().valid_until;
        valid_until.since(Moment::now())
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
        let mut pause = if self.is_confirmed {
            ttl::renew_after(self.lives_for())
        } else {
            Duration::ZERO
        };
        loop {
            sleep(pause).await;
            let sent = Moment::now();
            let timeout = ttl::renewal_timeout(self.lives_for());
            match self.client.renew(&self.hold, timeout).await {
                Ok(hold) => {
                    let ttl = Duration::from_millis(hold.valid_for_ms);
                    self.standing.send_modify(|standing| {
                        if sent + ttl > standing.valid_until {
                            standing.valid_until = sent + ttl;
                            standing.ttl = ttl;
                        }
                    });
                    if let Some(loss) = self.ending(&hold) {
                        return loss;
                    }
                    pause = ttl::renew_after(self.lives_for());
                }
                Err(error) => match loss_in(&error) {
                    Some(loss) => return loss,
                    None => pause = ttl::renewal_pause(self.lives_for()),
                },
            }
        }
    }

    /// Has the node say at once when the hold is lost.
    async fn listen(&self) -> Loss {
        loop {
            let asked = Moment::now();
            let watched = self.client.watch(&self.hold, LISTEN_FOR).await;
            if let Ok(hold) = &watched
                && let Some(loss) = self.ending(hold)
            {
                return loss;
            }
            let pause = match watched {
                // A node that answers at once would be asked without end.
                Ok(_) if Moment::now().since(asked) > Duration::from_millis(100) => continue,
                Ok(_) => Duration::from_millis(100),
                Err(error) => match loss_in(&error) {
                    Some(loss) => return loss,
                    None => ttl::renewal_pause(self.lives_for()),
                },
            };
            sleep(pause).await;
        }
    }

    /// The node stops: the hold is valid for as long as was promised, and then lost.
    fn ending(&self, hold: &Hold) -> Option<Loss> {
        Some(Loss {
            reason: hold.ending?,
            since: self.standing.borrow().valid_until,
        })
    }

    /// Whatever the node would say: without renewal, the hold is over when its time has run out.
    async fn expire(&self) -> Loss {
        loop {
            let valid_until = self.standing.borrow().valid_until;
            reached(valid_until).await;
            if self.standing.borrow().valid_until == valid_until {
                return Loss {
                    reason: EndReason::Expired,
                    since: valid_until,
                };
            }
        }
    }
}

/// The loss that an answer tells of.
pub(crate) fn loss_in(error: &ClientError) -> Option<Loss> {
    let ClientError::Refused {
        kind,
        reason,
        ended_ago,
        ..
    } = error
    else {
        return None;
    };
    let reason = match kind {
        ErrorKind::NoSuchHold => EndReason::Forgotten,
        ErrorKind::Ended => reason.unwrap_or(EndReason::Other),
        _ => return None,
    };
    Some(Loss {
        reason,
        since: Moment::now().before(ended_ago.unwrap_or_default()),
    })
}
