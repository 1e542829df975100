//! Carries out the leader's decisions in background tasks, and handles their results.

use std::sync::Arc;

use tokio::time::sleep;

use super::{LeaderTask, MemberConnection, RETRY_AFTER, reply_to};
use crate::Moment;
use crate::keepers::KeeperError;
use crate::membership::wire::Reply;
use soloist_core::cluster_identity::Generation;
use soloist_core::epochs::leader::Leader;
use soloist_core::epochs::roster::{Applied, Command};
use soloist_core::keepers::LeaderDecision;

/// Result of a background task.
pub(super) enum Done {
    /// [`Command::Lead`] of a new cluster. The roster may show its effect before this result
    /// arrives.
    Founded(Result<Applied, KeeperError>),
    /// [`Command::Settle`] or [`Command::Identify`].
    Settled(Result<Applied, KeeperError>),
    Proposed(Result<Applied, KeeperError>),
    Confirmed(Result<(), KeeperError>),
    /// Whether a majority follows, after the outcome of a command was left open.
    Reached(Result<(), KeeperError>),
    /// A change of the keepers, and the request that asked for it, if one did.
    Changed(Option<(MemberConnection, u64)>, Result<(), KeeperError>),
    /// The id of a first keeper that has caught up.
    Learned(Result<u64, KeeperError>),
    /// Connections of nodes whose stores no longer count, with what to send them.
    Judged(Result<Vec<(MemberConnection, LeaderDecision)>, KeeperError>),
}

/// Half of the epochs of a generation.
const EPOCHS_HALF: u64 = 1 << (Generation::EPOCH_BITS - 1);

/// Warns early that the cluster's generation runs out of epochs. At most `left` more can begin.
pub(super) fn tell_epochs_left(left: u64) {
    match left {
        0 => tracing::error!(
            "the epochs of this generation are used up: no node can join or be evicted. Stop all \
             nodes, run `soloist cluster recover` on a keeper, which begins the next generation, \
             and start them"
        ),
        _ if left <= EPOCHS_HALF => tracing::warn!(
            left,
            "more than half of the epochs of this generation are used up; \
             `soloist cluster recover` begins the next generation"
        ),
        _ => {}
    }
}

impl LeaderTask<'_> {
    /// Commits that the longer leases of earlier leaders are over, once they are, so that later
    /// leaders do not wait for them.
    pub(super) fn settle(&mut self) {
        let longest = self.keeper.roster().longest_lease();
        let lease = self.membership.lease.guarded();
        let are_over = Moment::now().since(self.began.now) >= longest;
        if longest > lease && are_over && !self.has_settled {
            self.has_settled = true;
            self.propose(Command::Settle { lease });
        }
    }

    pub(super) fn propose(&mut self, command: Command) {
        match &command {
            Command::Begin(change) => {
                let (epoch, members) = (change.epoch, change.members.len());
                tracing::info!(epoch, members, "beginning the next epoch");
                let left = self.keeper.roster().last_epoch().saturating_sub(epoch);
                if left == 0 || left == EPOCHS_HALF {
                    tell_epochs_left(left);
                }
            }
            Command::Install { epoch } => {
                let holds = self.leader.as_ref().map_or(0, Leader::holds_reported);
                tracing::info!(epoch, holds, "installing the epoch");
            }
            Command::HoldOff(held_off) => {
                let nodes = held_off.len();
                tracing::info!(nodes, "nodes must wait before they may join");
            }
            Command::Lead { .. } => tracing::info!("the first keepers formed the cluster"),
            Command::Settle { .. } => {
                tracing::info!("longer leases of previous leaders have expired")
            }
            Command::Identify { cluster } => {
                tracing::info!(%cluster, "assigning the cluster's id")
            }
        }
        let (keeper, term) = (Arc::clone(self.keeper), self.term);
        let done = match command {
            Command::Lead { .. } => Done::Founded,
            Command::Settle { .. } | Command::Identify { .. } => Done::Settled,
            Command::Begin(_) | Command::Install { .. } | Command::HoldOff(_) => Done::Proposed,
        };
        self.work
            .spawn(async move { done(keeper.propose(term, command).await) });
    }

    pub(super) fn take(&mut self, done: Done) {
        if matches!(
            done,
            Done::Founded(Ok(_))
                | Done::Settled(Ok(_))
                | Done::Proposed(Ok(_))
                | Done::Confirmed(Ok(()))
                | Done::Reached(Ok(()))
        ) {
            self.unfollowed = None;
        }
        match done {
            Done::Founded(founded) => {
                self.is_changing_keepers = false;
                match founded {
                    Ok(_) => self.tick(),
                    Err(error) => {
                        self.failed(&error);
                        self.retry_soon();
                    }
                }
            }
            Done::Settled(Ok(_)) => {}
            Done::Settled(Err(error)) => self.failed(&error),
            Done::Proposed(Ok(Applied::Done)) => {
                self.forget_holds();
                self.drive(|leader, now, roster, out| leader.applied(now, roster, out));
            }
            Done::Proposed(Err(error @ KeeperError::Open { .. })) => {
                self.failed(&error);
                // The command is in this keeper's log and may still be committed. More of them
                // would only queue up behind it.
                self.wait_for_majority();
            }
            Done::Proposed(refused) => {
                if let Err(error) = &refused {
                    self.failed(error);
                }
                self.leader.iter_mut().for_each(Leader::refused);
                self.retry_soon();
            }
            Done::Reached(Ok(())) => {
                self.leader.iter_mut().for_each(Leader::refused);
                self.retry_soon();
            }
            Done::Reached(Err(error)) => {
                self.failed(&error);
                self.wait_for_majority();
            }
            Done::Confirmed(Ok(())) => {
                self.drive(|leader, now, roster, out| leader.confirmed(now, roster, out));
            }
            Done::Confirmed(Err(error)) => {
                if let Some(leader) = &mut self.leader {
                    leader.unconfirmed();
                }
                self.failed(&error);
                self.retry_soon();
            }
            Done::Learned(result) => {
                self.is_changing_keepers = false;
                match result {
                    Ok(id) => self.learned(id),
                    Err(error) => tracing::warn!("cannot add a first keeper: {error}"),
                }
                self.retry_soon();
            }
            Done::Judged(result) => {
                if let Err(error) = &result {
                    self.failed(error);
                }
                self.judged(result);
                self.retry_soon();
            }
            Done::Changed(asked, result) => {
                self.is_changing_keepers = false;
                let hands_over = matches!(result, Err(KeeperError::Leads(_)));
                if let Err(error) = &result {
                    tracing::warn!("cannot change the keepers: {error}");
                }
                if let Some((connection, number)) = asked {
                    let reply = match result {
                        Ok(()) => Reply::Done,
                        Err(KeeperError::Leads(me)) => Reply::HandsOver(me),
                        Err(error) => Reply::Refused(error.to_string()),
                    };
                    reply_to(&connection, number, reply);
                }
                if hands_over {
                    // This task ends when the view shows that the keeper no longer leads.
                    self.keeper.hand_over();
                }
                self.retry_soon();
            }
        }
    }

    fn wait_for_majority(&mut self) {
        let (keeper, term) = (Arc::clone(self.keeper), self.term);
        self.work.spawn(async move {
            sleep(RETRY_AFTER).await;
            Done::Reached(keeper.confirm_leadership(term).await)
        });
    }

    fn failed(&mut self, error: &KeeperError) {
        match error {
            KeeperError::NotLeader { .. } | KeeperError::OtherTerm { .. } => self.is_over = true,
            KeeperError::Stopped { .. } => self.is_over = true,
            error => {
                tracing::warn!("the other keepers do not follow this leader: {error}");
                // Raft lets this keeper lead until it hears of another leader.
                let now = Moment::now();
                let since = *self.unfollowed.get_or_insert(now);
                self.is_over |= now.since(since) > self.membership.lease.unfollowed_max();
            }
        }
    }

    pub(super) fn retry_soon(&mut self) {
        self.retry_at = Some(Moment::now() + RETRY_AFTER);
    }
}
