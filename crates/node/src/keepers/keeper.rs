//! A keeper: its Raft, and what the rest of the node asks of it.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use openraft::error::{Fatal, InitializeError, RaftError};
use openraft::{ChangeMembers, ServerState};
use tokio::sync::watch;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::dial::Stream;
use super::error::{KeeperError, reason};
use super::network::Network;
use super::rpc::{self, COMMAND_BYTES_MAX};
use super::serve::{ServeEnd, Served};
use super::settings::Settings;
use super::store::{Closer, Store, Used};
use super::types::{KeeperNode, Membership, Proposal, Raft, id_of};
use crate::config::NodeName;
use crate::epochs::roster::{Applied, Command, Roster};

type Metrics = openraft::RaftMetrics<u64, KeeperNode>;

/// What a keeper knows at a moment. All of it may be out of date; what must be known for certain, the leader
/// knows after [`Keeper::confirm_leadership`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct View {
    /// Whether this keeper takes itself for the leader.
    pub leads: bool,
    /// Who leads.
    pub leader: Option<KeeperNode>,
    /// The term. In one term there may be several leaders, one after the other; but whoever was deposed by another leads
    /// again only in a later one.
    pub term: u64,
    /// The roster, as far as this keeper has it.
    pub roster: Arc<Roster>,
    /// All keepers, in the order of their names.
    pub keepers: Vec<KeeperNode>,
    /// Why this keeper does not run any more.
    pub stopped: Option<String>,
}

/// A keeper that runs. Dropping it stops it, a little later.
#[derive(Debug)]
pub struct Keeper {
    settings: Settings,
    raft: RunningRaft,
    store: Closer,
    used: Used,
    served: Served,
    rosters: watch::Receiver<Arc<Roster>>,
    views: watch::Receiver<View>,
    stop: CancellationToken,
}

#[derive(Clone)]
struct RunningRaft(Raft);

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
    /// Starts with what the store has. A keeper whose store is new waits for others to take it in, or for
    /// [`initialize`](Self::initialize).
    pub async fn start(settings: Settings, store: Store) -> Result<Self, KeeperError> {
        let config = Arc::new(settings.config()?);
        let stop = CancellationToken::new();
        let (rosters, used) = (store.rosters(), store.used());
        let (log, machine, store) = store.split();
        let network = Network::new(settings.clone(), stop.clone());
        let me = settings.me.id();
        let raft = match Raft::new(me, config, network, log, machine).await {
            Ok(raft) => raft,
            Err(fatal) => {
                store.close().await;
                return Err(KeeperError::fatal(&fatal));
            }
        };
        let metrics = raft.metrics();
        let first = view(&metrics.borrow(), rosters.borrow().clone());
        let (tell, views) = watch::channel(first);
        tokio::spawn(watch_views(metrics, rosters.clone(), tell, stop.clone()));
        Ok(Keeper {
            served: Served::new(settings.me.name.clone(), stop.clone()),
            raft: RunningRaft(raft),
            settings,
            store,
            used,
            rosters,
            views,
            stop,
        })
    }

    /// Makes these the first keepers, this one among them. It may be done on one of them or on all, always with the
    /// same ones. Says whether there were none before; if there were, nothing changes.
    pub async fn initialize(&self, keepers: &[KeeperNode]) -> Result<bool, KeeperError> {
        let members = members(keepers)?;
        if !members.contains_key(&self.settings.me.id()) {
            let me = &self.settings.me.name;
            return Err(KeeperError::Keepers(format!("{me} is not among them")));
        }
        match self.raft.0.initialize(members).await {
            Ok(()) => Ok(true),
            Err(RaftError::APIError(InitializeError::NotAllowed(_))) => Ok(false),
            Err(RaftError::APIError(InitializeError::NotInMembers(error))) => {
                Err(KeeperError::Keepers(error.to_string()))
            }
            Err(RaftError::Fatal(fatal)) => Err(KeeperError::fatal(&fatal)),
        }
    }

    /// Whether nothing was ever agreed on in this keeper's store: no first keepers, no entry, no snapshot.
    pub fn is_new(&self) -> bool {
        !self.used.is_so()
    }

    /// Has a command carried out that was decided on in this term. When this returns `Ok`, a majority has it on disk,
    /// and this keeper's roster shows what became of it. If it leads in another term by now, the command is refused.
    pub async fn propose(&self, term: u64, command: Command) -> Result<Applied, KeeperError> {
        let bytes = rpc::encode(&command).map_or(usize::MAX, |bytes| bytes.len());
        if bytes > COMMAND_BYTES_MAX {
            return Err(KeeperError::TooLong { bytes });
        }
        let proposal = Proposal { term, command };
        let written = self.in_time(self.raft.0.client_write(proposal)).await?;
        Ok(written.map_err(KeeperError::write)?.data)
    }

    /// Asks a majority whether this keeper leads in this term. When this returns `Ok`, it did so at some moment since it
    /// was called, and its roster has everything that was decided before.
    pub async fn confirm_leadership(&self, term: u64) -> Result<(), KeeperError> {
        let began = Instant::now();
        let waited = self.settings.patience;
        let confirming = timeout(waited, self.raft.0.ensure_linearizable());
        match confirming.await {
            // Which term it was, the entry shows that a reader has to wait for. It is the later one of the leader's
            // first, blank entry and of the last one committed (openraft's `LeaderHandler::get_read_log_id`). The former
            // has the id of the leader's vote (`Leader::new`), also after a restart in the same term. The latter is
            // later only if this leader made it: entries of a higher one come with its vote, and end this
            // reign first (`VoteHandler::update_vote`). The vote that the others confirm is read in the same step; it
            // is the leader's, for a leader never stands for election (`RaftCore::handle_tick_election`), and
            // whoever has given its vote to a higher one refuses.
            Ok(Ok(read)) => match read.map_or(0, |read| read.leader_id.term) {
                found if found == term => Ok(()),
                found => Err(KeeperError::OtherTerm { asked: term, found }),
            },
            Ok(Err(error)) => Err(KeeperError::check(error, began.elapsed())),
            Err(_) => Err(KeeperError::NoMajority { waited }),
        }
    }

    /// The roster, as far as this keeper has it.
    pub fn roster(&self) -> Arc<Roster> {
        self.rosters.borrow().clone()
    }

    /// What this keeper knows, and its changes.
    pub fn views(&self) -> watch::Receiver<View> {
        self.views.clone()
    }

    /// What this keeper knows.
    pub fn view(&self) -> View {
        self.views.borrow().clone()
    }

    /// Makes a node a keeper, when it has the roster. It must run a keeper with a new store. For one that is a keeper,
    /// this changes its address.
    pub async fn promote(&self, node: KeeperNode) -> Result<(), KeeperError> {
        let id = node.id();
        let membership = self.membership();
        if let Some(there) = membership.membership().get_node(&id)
            && *there != node
        {
            if there.name != node.name {
                return Err(same_number(there, &node));
            }
            let moved = ChangeMembers::SetNodes(BTreeMap::from([(id, node.clone())]));
            self.change(moved).await?;
        }
        if membership.membership().voter_ids().any(|voter| voter == id) {
            return self.finish_change().await;
        }
        self.teach(node).await?;
        self.change(ChangeMembers::AddVoterIds(BTreeSet::from([id])))
            .await
    }

    /// Sends a node everything, until it has it. Raft itself is content with a node that lacks no more than a
    /// snapshot's worth, also with one that never answered; such a one would be missing in the next majority.
    async fn teach(&self, node: KeeperNode) -> Result<(), KeeperError> {
        let id = node.id();
        let added = self.in_time(self.raft.0.add_learner(id, node.clone(), false));
        let added = added.await?.map_err(KeeperError::write)?.log_id;
        let has_all = |metrics: &Metrics| {
            let progress = metrics.replication.as_ref();
            let has = progress.and_then(|progress| progress.get(&id).copied().flatten());
            has >= Some(added) || metrics.state != ServerState::Leader
        };
        let waited = self.settings.patience;
        let wait = self.raft.0.wait(Some(waited));
        match wait.metrics(has_all, "a new keeper has everything").await {
            // Whether this one still leads, the next step shows.
            Ok(_) => Ok(()),
            Err(_) => {
                // It must not be sent everything for ever because somebody mistyped an address.
                let gone = ChangeMembers::RemoveNodes(BTreeSet::from([id]));
                self.change(gone).await?;
                Err(KeeperError::Behind { node, waited })
            }
        }
    }

    /// Makes a keeper an ordinary node. It may be the leader itself.
    pub async fn demote(&self, name: &NodeName) -> Result<(), KeeperError> {
        let id = id_of(name);
        let membership = self.membership();
        let voters: BTreeSet<u64> = membership.membership().voter_ids().collect();
        let view = self.view();
        if !view.leads {
            let leader = view.leader;
            return Err(KeeperError::NotLeader { leader });
        }
        if !voters.contains(&id) {
            return Err(KeeperError::NotAKeeper(name.clone()));
        }
        if voters.len() == 1 {
            return Err(KeeperError::Last(name.clone()));
        }
        self.change(ChangeMembers::RemoveVoters(BTreeSet::from([id])))
            .await
    }

    /// Whether a change of the keepers was given up half-way: majorities of the keepers before it and after it are needed,
    /// or a node is sent everything that is no keeper.
    pub fn is_half_changed(&self) -> bool {
        unfinished(self.membership().membership()).is_some()
    }

    /// Brings a change of the keepers to its end that was given up half-way, if there is one.
    pub async fn finish_change(&self) -> Result<(), KeeperError> {
        while let Some(rest) = unfinished(self.membership().membership()) {
            self.change(rest).await?;
        }
        Ok(())
    }

    /// Answers another keeper until the connection ends. `peer` is the name in its certificate; none only on a
    /// plain connection of this machine. The stream begins with [`PREFACE`](rpc::PREFACE).
    pub async fn serve(&self, stream: impl Stream, peer: Option<NodeName>) -> ServeEnd {
        self.served.serve(stream, peer, &self.raft.0).await
    }

    /// Stops, and returns when the store's file is free.
    pub async fn shutdown(&self) {
        self.stop.cancel();
        // Only a Raft task that panicked is an error here, and it is gone all the same.
        let _ = self.raft.0.shutdown().await;
        self.store.close().await;
    }

    fn membership(&self) -> Arc<Membership> {
        self.raft.0.metrics().borrow().membership_config.clone()
    }

    async fn change(&self, change: ChangeMembers<u64, KeeperNode>) -> Result<(), KeeperError> {
        let changed = self.in_time(self.raft.0.change_membership(change, false));
        changed.await?.map_err(KeeperError::write)?;
        Ok(())
    }

    async fn in_time<T>(&self, doing: impl Future<Output = T>) -> Result<T, KeeperError> {
        let waited: Duration = self.settings.patience;
        timeout(waited, doing)
            .await
            .map_err(|_| KeeperError::Open { waited })
    }
}

/// What is left to do of a change of the keepers. Raft does it in steps, and whoever asked for it may be gone after the first.
fn unfinished(
    membership: &openraft::Membership<u64, KeeperNode>,
) -> Option<ChangeMembers<u64, KeeperNode>> {
    if membership.get_joint_config().len() > 1 {
        // The keepers after the change, and nobody else.
        return Some(ChangeMembers::AddVoterIds(BTreeSet::new()));
    }
    let learners: BTreeSet<u64> = membership.learner_ids().collect();
    (!learners.is_empty()).then_some(ChangeMembers::RemoveNodes(learners))
}

fn members(keepers: &[KeeperNode]) -> Result<BTreeMap<u64, KeeperNode>, KeeperError> {
    let mut members = BTreeMap::new();
    for keeper in keepers {
        if let Some(other) = members.insert(keeper.id(), keeper.clone()) {
            return Err(same_number(&other, keeper));
        }
    }
    Ok(members)
}

/// Two names with one number are as good as impossible; a name that is there twice is not.
fn same_number(one: &KeeperNode, other: &KeeperNode) -> KeeperError {
    KeeperError::Keepers(format!(
        "{one} and {other} have the same number; give one of them another name"
    ))
}

async fn watch_views(
    mut metrics: watch::Receiver<Metrics>,
    mut rosters: watch::Receiver<Arc<Roster>>,
    tell: watch::Sender<View>,
    stop: CancellationToken,
) {
    let (mut told_to, mut more_rosters, mut runs) = (false, true, true);
    while runs {
        tokio::select! {
            () = stop.cancelled(), if !told_to => told_to = true,
            changed = metrics.changed() => runs = changed.is_ok(),
            // It ends a moment before or after Raft does; why, only Raft's own last words say.
            changed = rosters.changed(), if more_rosters => more_rosters = changed.is_ok(),
        }
        let mut now = view(
            &metrics.borrow_and_update(),
            rosters.borrow_and_update().clone(),
        );
        if !runs && now.stopped.is_none() {
            now.leads = false;
            now.stopped = Some(reason(&Fatal::Panicked));
        }
        tell.send_if_modified(|before| {
            if let (None, Some(reason), false) = (&before.stopped, &now.stopped, told_to) {
                tracing::error!("this keeper has stopped: {reason}");
            }
            let news = *before != now;
            if news {
                *before = now;
            }
            news
        });
    }
}

fn view(metrics: &Metrics, roster: Arc<Roster>) -> View {
    let membership = metrics.membership_config.membership();
    let node = |id: &u64| membership.get_node(id).cloned();
    let stopped = metrics.running_state.as_ref().err().map(reason);
    let voters: BTreeSet<u64> = membership.voter_ids().collect();
    let mut keepers: Vec<_> = voters.iter().filter_map(node).collect();
    keepers.sort_unstable_by(|one, other| one.name.cmp(&other.name));
    View {
        leads: metrics.state == ServerState::Leader && stopped.is_none(),
        leader: metrics.current_leader.as_ref().and_then(node),
        term: metrics.current_term,
        roster,
        keepers,
        stopped,
    }
}
