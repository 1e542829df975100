//! Pre-vote: before a keeper stands for election, it asks the others whether they would vote for
//! it.
//!
//! openraft 0.9 has no pre-vote. A keeper that stalls, or returns after it was disconnected, would
//! raise the term and depose a leader that all others follow. So Raft's own elections are off. This
//! task measures how long the leader has been silent, asks all voters, and lets Raft stand for
//! election only when a majority would vote for it. A sole voter elects itself.
//!
//! The answers affect only when an election is held; Raft counts the votes.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use openraft::ServerState;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::handover::Handover;
use super::network::Network;
use super::store::LogStore;
use super::types::{LogId, Membership, Raft};
use soloist_core::epochs::lease::Elections;

/// The state of a keeper that matters for elections.
struct MemberState {
    leads: bool,
    /// Whether the last vote was for a leader that was elected.
    follows: bool,
    /// When the leader, or a candidate that this keeper voted for, was last heard from. `None` if
    /// that has not happened since this keeper started.
    heard: Option<Instant>,
    last_log: Option<LogId>,
    membership: Arc<Membership>,
}

impl std::fmt::Debug for PreVote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PreVote")
    }
}

/// Asks before an election, and answers other keepers that ask.
pub(super) struct PreVote {
    me: u64,
    raft: Raft,
    log: LogStore,
    handover: Handover,
    elections: Elections,
    started: Instant,
}

impl PreVote {
    /// Disables Raft's own elections.
    pub(super) fn new(
        me: u64,
        raft: Raft,
        log: LogStore,
        handover: Handover,
        elections: Elections,
    ) -> Arc<Self> {
        raft.runtime_config().elect(false);
        Arc::new(PreVote {
            me,
            raft,
            log,
            handover,
            elections,
            started: Instant::now(),
        })
    }

    async fn member_state(&self) -> Option<MemberState> {
        let membership = self.raft.metrics().borrow().membership_config.clone();
        let last_log = self.log.last().await.ok()?;
        let member_state = self.raft.with_raft_state(move |state| MemberState {
            leads: state.server_state == ServerState::Leader,
            follows: state.vote_ref().is_committed(),
            heard: state.vote_last_modified(),
            last_log,
            membership,
        });
        member_state.await.ok()
    }

    /// Returns whether this keeper would vote for a keeper whose log ends at `last_log`. It would
    /// if it does not lead or is handing leadership over, has not heard from another leader lately,
    /// and its own log is not longer.
    pub(super) async fn would_vote(&self, last_log: Option<LogId>) -> bool {
        let Some(member_state) = self.member_state().await else {
            return false;
        };
        let lease = self.elections.leader_lease();
        let is_led =
            member_state.follows && member_state.heard.is_some_and(|at| at.elapsed() < lease);
        let leads = member_state.leads && !self.handover.is_under_way();
        !leads && !is_led && last_log >= member_state.last_log
    }

    /// Holds elections until the keeper stops.
    pub(super) async fn hold_elections(self: Arc<Self>, network: Network, stop: CancellationToken) {
        tokio::select! {
            () = stop.cancelled() => {}
            () = self.run(&network) => {}
        }
    }

    async fn run(&self, network: &Network) {
        let mut jitter = rand::random();
        while let Some(member_state) = self.member_state().await {
            let membership = member_state.membership.membership();
            let is_voter = membership.voter_ids().any(|id| id == self.me);
            if member_state.leads || !is_voter || self.handover.is_under_way() {
                sleep(self.elections.timeout / 2).await;
                continue;
            }
            let is_alone = membership.voter_ids().all(|id| id == self.me);
            if !is_alone {
                let most = self.silence_max(&member_state, jitter);
                let left = most.saturating_sub(self.silence(&member_state));
                if !left.is_zero() {
                    sleep(left.min(self.elections.timeout / 2)).await;
                    continue;
                }
                if !self.is_wanted(network, &member_state).await
                    || self.has_heard_since(&member_state).await
                {
                    sleep(
                        self.elections
                            .timeout
                            .mul_f64(0.25 + rand::random::<f64>() / 2.0),
                    )
                    .await;
                    continue;
                }
            }
            // An error means that Raft has stopped; the loop condition notices that.
            let _ = self.raft.trigger().elect().await;
            jitter = rand::random();
            sleep(self.elections.timeout).await;
        }
    }

    /// Returns whether this keeper heard from a leader or voted for a candidate after `before`. A
    /// pre-vote can take an election timeout if a voter does not answer. If another keeper was
    /// elected meanwhile, standing for election would depose it.
    async fn has_heard_since(&self, before: &MemberState) -> bool {
        let now = self.member_state().await;
        now.is_none_or(|now| now.heard != before.heard)
    }

    fn silence(&self, member_state: &MemberState) -> Duration {
        member_state.heard.unwrap_or(self.started).elapsed()
    }

    /// How long a leader or an election may be silent before this keeper holds a pre-vote.
    fn silence_max(&self, member_state: &MemberState, jitter: f64) -> Duration {
        match (member_state.heard, member_state.follows) {
            (None, _) => Duration::ZERO,
            (Some(_), true) => self.elections.leader_silence_max(jitter),
            (Some(_), false) => self.elections.candidate_silence_max(jitter),
        }
    }

    /// Asks all other voters, and returns whether a majority would vote for this keeper. Waits for
    /// all answers: one of them may show a later generation of the cluster.
    async fn is_wanted(&self, network: &Network, member_state: &MemberState) -> bool {
        let membership = member_state.membership.membership();
        let voters: BTreeSet<u64> = membership.voter_ids().collect();
        let others = voters.iter().filter(|id| **id != self.me);
        let known = others.filter_map(|id| Some((*id, membership.get_node(id)?)));
        let limit = self.elections.timeout;
        let asked = known.map(|(id, node)| async move {
            let last_log = member_state.last_log;
            let would_vote = network.pre_vote(id, node, last_log, limit).await;
            would_vote.then_some(id)
        });
        let asked: FuturesUnordered<_> = asked.collect();
        let granted = asked.filter_map(|granted| async move { granted });
        let mut granted: BTreeSet<u64> = granted.collect().await;
        granted.insert(self.me);
        let configs = membership.get_joint_config().iter();
        configs
            .map(|config| (config.intersection(&granted).count(), config.len()))
            .all(|(yes, all)| yes > all / 2)
    }
}
