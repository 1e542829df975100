//! A keeper: its Raft instance, and its interface for the rest of the node.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use openraft::error::{InitializeError, RaftError};
use openraft::{ChangeMembers, ServerState};
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::error::KeeperError;
use super::gate::Gate;
use super::handover::Handover;
use super::network::Network;
use super::pre_vote::PreVote;
use super::rpc::{self, COMMAND_BYTES_MAX};
use super::serve::{ServeEnd, Served};
use super::settings::Settings;
use super::store::{AppliedMembership, Closer, Store, StoreIdentity, Used};
use super::successor::Successor;
use super::types::{KeeperNode, Membership, Metrics, Proposal, Raft};
use super::view::{View, view, watch_views};
use soloist_api::NodeName;
use soloist_core::Term;
use soloist_core::cluster_identity::ClusterIdentity;
use soloist_core::epochs::roster::{Applied, Command, Roster};
use soloist_core::keepers::NoAnswer;
use soloist_transport::Arrival;

/// A running keeper. Dropping it stops it shortly afterwards.
// Methods: leadership transfer in `handover.rs`, what it knows of others in `known.rs`.
#[derive(Debug)]
pub struct Keeper {
    pub(super) settings: Settings,
    pub(super) raft: RunningRaft,
    store: Closer,
    used: Used,
    identity: watch::Receiver<StoreIdentity>,
    pub(super) gate: Gate,
    network: Network,
    pub(super) handover: Handover,
    successor: Successor,
    served: Served,
    rosters: watch::Receiver<Arc<Roster>>,
    views: watch::Receiver<View>,
    pub(super) stop: CancellationToken,
}

#[derive(Clone)]
pub(super) struct RunningRaft(pub(super) Raft);

impl std::fmt::Debug for RunningRaft {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Raft")
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Keeper {
    /// Starts the keeper that the store belongs to, with the state in the store. If the store is
    /// new, the keeper waits for a leader to add it, or for [`initialize`](Self::initialize).
    pub async fn start(settings: Settings, store: Store) -> Result<Self, KeeperError> {
        let config = Arc::new(settings.config()?);
        let stop = CancellationToken::new();
        let (rosters, used) = (store.rosters(), store.used());
        let (identity, members) = (store.identities(), store.members());
        let me = store.identity().id;
        let (log, machine, store) = store.split();
        let log_end = log.clone();
        let successor = Successor::default();
        let network = Network::new(me, settings.clone(), successor.clone(), stop.clone());
        let raft = match Raft::new(me, config, network.clone(), log, machine).await {
            Ok(raft) => raft,
            Err(fatal) => {
                store.close().await;
                return Err(KeeperError::fatal(&fatal));
            }
        };
        let handover = Handover::default();
        let pre_vote = PreVote::new(
            me,
            raft.clone(),
            log_end,
            handover.clone(),
            settings.elections,
        );
        tokio::spawn(Arc::clone(&pre_vote).hold_elections(network.clone(), stop.clone()));
        let metrics = raft.metrics();
        let gate = Gate {
            id: me,
            members,
            metrics: metrics.clone(),
        };
        let first = view(&metrics.borrow(), rosters.borrow().clone(), false);
        let (tell, views) = watch::channel(first);
        let sources = (metrics, rosters.clone(), handover.clone());
        tokio::spawn(watch_views(sources, tell, stop.clone()));
        Ok(Keeper {
            served: Served::new(gate.clone(), pre_vote, stop.clone()),
            gate,
            network,
            handover,
            successor,
            identity,
            raft: RunningRaft(raft),
            settings,
            store,
            used,
            rosters,
            views,
            stop,
        })
    }

    /// Makes this keeper the first and only one. Returns `false` without a change if
    /// there were keepers already.
    pub async fn initialize(&self) -> Result<bool, KeeperError> {
        let members = BTreeMap::from([(self.gate.id, self.settings.me.clone())]);
        match self.raft.0.initialize(members).await {
            Ok(()) => Ok(true),
            Err(RaftError::APIError(InitializeError::NotAllowed(_))) => Ok(false),
            Err(RaftError::APIError(InitializeError::NotInMembers(error))) => {
                Err(KeeperError::Keepers(error.to_string()))
            }
            Err(RaftError::Fatal(fatal)) => Err(KeeperError::fatal(&fatal)),
        }
    }

    /// The identity of this keeper and its cluster. The cluster is `None` only if it was created
    /// before clusters had an identity, and no leader has committed one yet.
    pub fn identity(&self) -> StoreIdentity {
        *self.identity.borrow()
    }

    /// Watches [`identity`](Self::identity).
    pub fn identities(&self) -> watch::Receiver<StoreIdentity> {
        self.identity.clone()
    }

    /// The keepers according to the applied log. This cannot be rolled back.
    pub fn applied_membership(&self) -> AppliedMembership {
        self.gate.members.borrow().clone()
    }

    /// Returns whether the applied membership once had this id and no longer has it.
    pub fn is_former(&self, id: u64) -> bool {
        self.gate.is_former(id)
    }

    /// Checks whether Raft requests of the keeper `from` to the keeper `to` may be answered here.
    pub fn may_answer(&self, from: u64, to: u64) -> Result<(), NoAnswer> {
        self.gate.may_answer(from, to)
    }

    /// Waits until a keeper shows a later generation of this cluster, which has replaced this
    /// keeper. Returns `None` when this keeper stops.
    pub async fn succeeded_by(&self) -> Option<ClusterIdentity> {
        tokio::select! {
            () = self.stop.cancelled() => None,
            successor = self.successor.shown() => Some(successor),
        }
    }

    /// Returns whether nothing was ever agreed on in this keeper's store: it has no initial
    /// membership, no entry and no snapshot.
    pub fn is_new(&self) -> bool {
        !self.used.is_so()
    }

    /// Commits a command that was decided on in this term. When this returns `Ok`, a majority has
    /// it on disk, and this keeper's roster shows its effect. If this keeper leads in another term
    /// by now, the command is refused.
    pub async fn propose(&self, term: Term, command: Command) -> Result<Applied, KeeperError> {
        let bytes = rpc::encode(&command).map_or(usize::MAX, |bytes| bytes.len());
        if bytes > COMMAND_BYTES_MAX {
            return Err(KeeperError::TooLong { bytes });
        }
        self.check_not_handing_over()?;
        let proposal = Proposal { term, command };
        let written = self.in_time(self.raft.0.client_write(proposal)).await?;
        Ok(written.map_err(KeeperError::write)?.data)
    }

    /// Asks a majority whether this keeper leads in this term. When this returns `Ok`, it led at
    /// some moment since the call, and its roster has everything that was decided before the call.
    pub async fn confirm_leadership(&self, term: Term) -> Result<(), KeeperError> {
        self.check_not_handing_over()?;
        let waited = self.settings.majority_timeout;
        let confirming = timeout(waited, self.raft.0.ensure_linearizable());
        match confirming.await {
            // The read log id, which a reader must wait for, shows in which term leadership was
            // confirmed. It is the later one of the leader's first, blank entry and of the last
            // committed one (openraft's `LeaderHandler::get_read_log_id`). The former has the id of
            // the leader's vote (`Leader::new`), also after a restart in the same term. The latter
            // is later only if this leader proposed it: entries of a higher leader come with its
            // vote, which ends this leadership first (`VoteHandler::update_vote`). The vote that
            // the others confirm is read in the same step. It is the leader's own, since a leader
            // never stands for election (`RaftCore::handle_tick_election`), and a keeper that has
            // voted for a higher one refuses.
            Ok(Ok(read)) => match Term(read.map_or(0, |read| read.leader_id.term)) {
                found if found == term => Ok(()),
                found => Err(KeeperError::OtherTerm { asked: term, found }),
            },
            Ok(Err(error)) => Err(KeeperError::check(error, waited)),
            Err(_) => Err(KeeperError::NoMajority { waited }),
        }
    }

    /// The roster according to this keeper's applied log.
    pub fn roster(&self) -> Arc<Roster> {
        self.rosters.borrow().clone()
    }

    /// Watches [`view`](Self::view).
    pub fn views(&self) -> watch::Receiver<View> {
        self.views.clone()
    }

    /// What this keeper knows now.
    pub fn view(&self) -> View {
        self.views.borrow().clone()
    }

    /// Makes a node the keeper `id` once it has caught up. The node must run a keeper whose store
    /// has that id, and the id must be fresh. If the node is that keeper already, this updates its
    /// address. A node that does not catch up in time is not a keeper, and its id cannot be used
    /// again.
    pub async fn promote(&self, id: u64, node: KeeperNode) -> Result<(), KeeperError> {
        match self.appoint_learner(id, node).await {
            // A mistyped address must not leave a learner behind that is sent the log forever.
            Err(error @ KeeperError::Behind { .. }) => {
                let gone = ChangeMembers::RemoveNodes(BTreeSet::from([id]));
                self.change(gone).await?;
                return Err(error);
            }
            appointed => appointed?,
        }
        if self.is_voter(id) {
            self.finish_change().await
        } else {
            self.make_voters(BTreeSet::from([id])).await
        }
    }

    /// Adds a node as a learner, the keeper `id` without a vote, and returns when it has caught up.
    /// If that times out, the node stays a learner: call this again, or
    /// [`remove_learner`](Self::remove_learner).
    pub async fn appoint_learner(&self, id: u64, node: KeeperNode) -> Result<(), KeeperError> {
        self.make_way(id, &node).await?;
        if self.is_voter(id) {
            Ok(())
        } else {
            self.teach(id, node).await
        }
    }

    /// Makes learners voters, all of them in one change.
    pub async fn make_voters(&self, ids: BTreeSet<u64>) -> Result<(), KeeperError> {
        self.change(ChangeMembers::AddVoterIds(ids)).await
    }

    /// Removes a learner. Its id cannot be used again.
    pub async fn remove_learner(&self, name: &NodeName) -> Result<(), KeeperError> {
        let membership = self.membership();
        let learners = membership.membership().learner_ids();
        let ids = self.called(name).into_iter();
        let learners: BTreeSet<u64> = learners.collect();
        let gone: BTreeSet<u64> = ids.filter(|id| learners.contains(id)).collect();
        if gone.is_empty() {
            Ok(())
        } else {
            self.change(ChangeMembers::RemoveNodes(gone)).await
        }
    }

    /// Checks that the node can have this id, updates its address if it has moved, and removes its
    /// other learners.
    async fn make_way(&self, id: u64, node: &KeeperNode) -> Result<(), KeeperError> {
        if self.is_former(id) {
            return Err(KeeperError::Former { id });
        }
        let others = self.called(&node.name).into_iter();
        if let Some(id) = others
            .filter(|&other| other != id)
            .find(|id| self.is_voter(*id))
        {
            let name = node.name.clone();
            return Err(KeeperError::OtherId { name, id });
        }
        match self.membership().membership().get_node(&id) {
            Some(there) if there == node => return Ok(()),
            Some(there) if there.name == node.name => {
                let moved = ChangeMembers::SetNodes(BTreeMap::from([(id, node.clone())]));
                return self.change(moved).await;
            }
            Some(there) => {
                let problem = format!("{id:016x} is the id of {there}, not of {node}");
                return Err(KeeperError::Keepers(problem));
            }
            None => {}
        }
        // Left from an earlier promotion that was given up. It never voted.
        self.remove_learner(&node.name).await
    }

    /// Adds a learner, and waits until it has caught up. Raft itself accepts a node that is at most
    /// one snapshot behind, even one that never answered. Such a node would be missing from the
    /// next majority.
    async fn teach(&self, id: u64, node: KeeperNode) -> Result<(), KeeperError> {
        self.check_stays()?;
        let added = self.in_time(self.raft.0.add_learner(id, node.clone(), false));
        let added = added.await?.map_err(KeeperError::write)?.log_id;
        let has_all = |metrics: &Metrics| {
            let progress = metrics.replication.as_ref();
            let has = progress.and_then(|progress| progress.get(&id).copied().flatten());
            has >= Some(added) || metrics.state != ServerState::Leader
        };
        let waited = self.settings.majority_timeout;
        let wait = self.raft.0.wait(Some(waited));
        match wait.metrics(has_all, "the new keeper has caught up").await {
            Ok(metrics) if metrics.state == ServerState::Leader => Ok(()),
            Ok(_) => Err(KeeperError::NotLeader {
                leader: self.view().leader,
            }),
            Err(_) => Err(KeeperError::Behind { node, waited }),
        }
    }

    /// The ids of a node in the membership: one, unless it was promoted again before an earlier
    /// change was complete.
    fn called(&self, name: &NodeName) -> Vec<u64> {
        let membership = self.membership();
        let nodes = membership.membership().nodes();
        let called = nodes.filter(|(_, node)| node.name == *name);
        called.map(|(id, _)| *id).collect()
    }

    fn is_voter(&self, id: u64) -> bool {
        let membership = self.membership();
        membership.membership().voter_ids().any(|voter| voter == id)
    }

    /// Makes a keeper an ordinary node. The leader does not demote itself but returns
    /// [`KeeperError::Leads`]: [hand over](Self::hand_over), and ask the next leader.
    pub async fn demote(&self, name: &NodeName) -> Result<(), KeeperError> {
        let view = self.view();
        if !view.leads {
            let leader = view.leader;
            return Err(KeeperError::NotLeader { leader });
        }
        let called = self.called(name).into_iter();
        let goes: BTreeSet<u64> = called.filter(|id| self.is_voter(*id)).collect();
        if goes.is_empty() {
            return Err(KeeperError::NotAKeeper(name.clone()));
        }
        let voters: BTreeSet<u64> = self.membership().membership().voter_ids().collect();
        if voters.is_subset(&goes) {
            return Err(KeeperError::Last(name.clone()));
        }
        if goes.contains(&self.gate.id) {
            // A majority follows, so one of the followers can take over.
            self.confirm_leadership(view.term).await?;
            return Err(KeeperError::Leads(name.clone()));
        }
        self.change(ChangeMembers::RemoveVoters(goes)).await
    }

    /// Returns whether a change of the keepers was left half-way: it still needs majorities of both
    /// the old and the new keepers, or a learner is left over.
    pub fn is_half_changed(&self) -> bool {
        self.unfinished().is_some()
    }

    /// Completes a change of the keepers that was left half-way, if there is one. Returns
    /// [`KeeperError::Leads`] if that would demote this keeper.
    pub async fn finish_change(&self) -> Result<(), KeeperError> {
        while let Some(rest) = self.unfinished() {
            self.change(rest).await?;
        }
        Ok(())
    }

    /// The next step of an incomplete change of the keepers. Raft changes them in steps, and the
    /// task that started the change may be gone after the first.
    fn unfinished(&self) -> Option<ChangeMembers<u64, KeeperNode>> {
        let membership = self.membership();
        let membership = membership.membership();
        if membership.get_joint_config().len() > 1 {
            // Leaves the joint configuration: only the new keepers remain.
            return Some(ChangeMembers::AddVoterIds(BTreeSet::new()));
        }
        // During bootstrap, learners are expected: all first keepers are added before any of them
        // except the founder votes.
        let learners: BTreeSet<u64> = membership.learner_ids().collect();
        let is_over = self.roster().is_founded() && !learners.is_empty();
        is_over.then_some(ChangeMembers::RemoveNodes(learners))
    }

    /// Answers another keeper until the connection ends.
    pub async fn serve(&self, arrival: Arrival) -> ServeEnd {
        self.served.serve(arrival, &self.raft.0).await
    }

    /// The other keepers that follow this one, as far as it has heard lately.
    pub fn followers(&self) -> Vec<NodeName> {
        let membership = self.membership();
        let membership = membership.membership();
        let within = self.settings.elections.follower_silence_max();
        let voters = membership.voter_ids();
        let followers = voters.filter(|id| self.network.is_followed_by(*id, within));
        let nodes = followers.filter_map(|id| membership.get_node(&id));
        nodes.map(|node| node.name.clone()).collect()
    }

    /// Number of refused connections from other keepers.
    pub fn refusals(&self) -> u64 {
        self.served.refused.count()
    }

    /// Stops, and returns when the store's file is released.
    pub async fn shutdown(&self) {
        self.stop.cancel();
        // This fails only if a Raft task panicked, and then it has ended too.
        let _ = self.raft.0.shutdown().await;
        self.store.close().await;
    }

    pub(super) fn membership(&self) -> Arc<Membership> {
        self.raft.0.metrics().borrow().membership_config.clone()
    }

    async fn change(&self, change: ChangeMembers<u64, KeeperNode>) -> Result<(), KeeperError> {
        self.check_stays()?;
        let changed = self.in_time(self.raft.0.change_membership(change, false));
        changed.await?.map_err(KeeperError::write)?;
        Ok(())
    }

    async fn in_time<T>(&self, doing: impl Future<Output = T>) -> Result<T, KeeperError> {
        let waited: Duration = self.settings.majority_timeout;
        timeout(waited, doing)
            .await
            .map_err(|_| KeeperError::Open { waited })
    }
}
