//! Leadership transfer.
//!
//! openraft does not let a keeper stand for election if an entry in its own log removes it from the
//! voters, even if that entry is not committed. A leader that removed itself and crashed before
//! others had the entry could leave them without a leader: they need its vote, and its log is
//! longer than theirs. So a leader never removes itself. It hands leadership over, and the next
//! leader removes it.
//!
//! To hand over, a leader stops its heartbeats and everything else that its followers would take
//! for a sign of life. It votes for the first follower that holds a pre-vote, and does not stand
//! for election itself. If no other keeper leads in time, it leads again.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use super::error::KeeperError;
use super::keeper::Keeper;
use super::types::Metrics;

/// How long a leader whose hand-over failed waits before it starts another one by itself. A
/// hand-over requested by an operator does not wait.
const RETRY_AFTER: Duration = Duration::from_secs(30);

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Progress {
    is_under_way: bool,
    failed_at: Option<Instant>,
}

/// Whether a keeper is handing leadership over. Clones share the state.
#[derive(Clone, Debug, Default)]
pub(super) struct Handover(Arc<watch::Sender<Progress>>);

impl Handover {
    pub(super) fn is_under_way(&self) -> bool {
        self.0.borrow().is_under_way
    }

    /// Notifies when a hand-over begins and ends.
    pub(super) fn subscribe(&self) -> watch::Receiver<Progress> {
        self.0.subscribe()
    }

    /// Starts a hand-over. Returns `false` if one is under way already.
    fn begin(&self) -> bool {
        self.0.send_if_modified(|progress| {
            let begins = !progress.is_under_way;
            progress.is_under_way = true;
            begins
        })
    }

    fn end(&self, failed_at: Option<Instant>) {
        self.0.send_replace(Progress {
            is_under_way: false,
            failed_at,
        });
    }

    fn has_failed_lately(&self) -> bool {
        let failed_at = self.0.borrow().failed_at;
        failed_at.is_some_and(|at| at.elapsed() < RETRY_AFTER)
    }
}

impl Keeper {
    /// Stops leading, so that another keeper takes over. Returns at once; the view shows that this
    /// keeper does not lead. If no other keeper leads within [`Elections::handover_max`], this one
    /// leads again.
    ///
    /// [`Elections::handover_max`]: soloist_core::epochs::lease::Elections::handover_max
    pub fn hand_over(&self) {
        if !self.handover.begin() {
            return;
        }
        let (raft, handover, me) = (self.raft.0.clone(), self.handover.clone(), self.gate.id);
        let (limit, stop) = (self.settings.elections.handover_max(), self.stop.clone());
        raft.runtime_config().heartbeat(false);
        tracing::info!("handing leadership over to another keeper");
        tokio::spawn(async move {
            let mut metrics = raft.metrics();
            let is_taken_over = |metrics: &Metrics| {
                let leader = metrics.current_leader;
                metrics.running_state.is_err() || leader.is_some_and(|leader| leader != me)
            };
            let failed_at = tokio::select! {
                () = stop.cancelled() => None,
                waited = timeout(limit, metrics.wait_for(is_taken_over)) => {
                    waited.is_err().then(Instant::now)
                }
            };
            if failed_at.is_some() {
                tracing::warn!(
                    "no other keeper took over leadership within {limit:?}: this one resumes, or \
                     stands for election"
                );
            }
            raft.runtime_config().heartbeat(true);
            handover.end(failed_at);
        });
    }

    /// Fails while this keeper hands leadership over: it must not give a sign of life as a leader.
    pub(super) fn check_not_handing_over(&self) -> Result<(), KeeperError> {
        if self.handover.is_under_way() {
            Err(KeeperError::NotLeader { leader: None })
        } else {
            Ok(())
        }
    }

    /// Returns whether the change of the keepers that is under way removes this one.
    fn is_leaving(&self) -> bool {
        let membership = self.membership();
        let configs = membership.membership().get_joint_config();
        let next = configs.last().filter(|_| configs.len() > 1);
        next.is_some_and(|next| !next.contains(&self.gate.id))
    }

    /// Fails if the next change of the membership would remove this keeper from the voters.
    pub(super) fn check_stays(&self) -> Result<(), KeeperError> {
        if self.is_leaving() {
            Err(KeeperError::Leads(self.settings.me.name.clone()))
        } else {
            Ok(())
        }
    }

    /// Returns whether a change of the keepers was left half-way and this keeper, if it leads,
    /// should act now: complete the change, or hand over if the change removes this keeper.
    pub fn should_finish_change(&self) -> bool {
        let waits = self.is_leaving() && self.handover.has_failed_lately();
        self.is_half_changed() && !waits
    }
}
