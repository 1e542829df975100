//! Membership: connects each node to the keepers' leader, and runs the leader's side.
//!
//! - `wire`: the messages.
//! - `leader_client`: a node's side: finds the leader and stays connected to it. `knock`: one
//!   attempt to reach a keeper. `conversation`: the exchange of messages while the connection
//!   lasts.
//! - `serve`: a keeper's side of a connection from a node. `forward`: how a follower connects a
//!   node through to the leader.
//! - `leader_task`: the leader's task, from its election until it is deposed. It drives
//!   [`Leader`](soloist_core::epochs::leader::Leader). `clock_drift`: compares nodes' clocks with
//!   the leader's.
//! - `bootstrap`: how the first keepers form a cluster. `appointment`: how a node becomes a keeper
//!   later, and how its store is set aside when it no longer is one.
//! - `probe`: whether a cluster is alive, before it is recovered. `log`: log lines of the core.
//!
//! Invariants: a leader task has one [`Leader`](soloist_core::epochs::leader::Leader) and belongs
//! to one Raft term. It grants leases only after a quorum has confirmed that this keeper leads in
//! that term, and its decisions are committed in that term or not at all. A node that does not lead
//! answers only where the leader is.

mod appointment;
mod bootstrap;
mod clock_drift;
mod conversation;
mod forward;
#[cfg(test)]
mod golden;
mod knock;
mod leader_client;
mod leader_task;
pub(crate) mod log;
mod probe;
mod serve;
mod wire;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use bootstrap::FIRST_START;
pub(crate) use leader_client::{LeaderClient, LeaderClientTask, LeaderListener, ToLeader};
pub use probe::{Shown, probe};
pub(crate) use wire::{ClusterView, LeaderQuestion, LeaderView, Reply};

use crate::cluster_memory::{ClusterMemory, RememberError};
use crate::config::{Members, Nodes};
use crate::keepers::{Keeper, KeeperError, KeeperNode, Settings, Store, StoreError};
use crate::mutant::Planted;
use crate::node::event::unix_us;
use crate::node::fault::Fault;
use soloist_core::cluster_identity::ClusterIdentity;
use soloist_core::epochs::lease::Lease;
use soloist_core::record::Journal;
use soloist_transport::Refusals;
use soloist_transport::{ConnectionError, Dialled, Endpoint, Purpose};

/// Time for sending nodes the last messages when a keeper stops.
const LAST_WORDS: Duration = Duration::from_millis(300);

/// Buffer size of the connection between a node and its own keeper.
const LOOP_BYTES: usize = 64 << 10;

/// A node's membership, and its keeper if it runs one.
// Methods: first start in `bootstrap.rs`, becoming a keeper in `appointment.rs`, reaching a keeper
// in `knock.rs`, connections from nodes in `serve.rs` and `forward.rs`.
pub(crate) struct Membership {
    pub me: KeeperNode,
    /// Hash of the configuration that all nodes must share.
    pub fingerprint: [u8; 32],
    pub lease: Lease,
    /// The keepers that the configuration lists.
    pub first: Nodes,
    pub data: PathBuf,
    pub endpoint: Endpoint,
    /// Nodes refused by this keeper.
    pub refused: Refusals,
    /// Refusals of this node by keepers.
    pub refused_by: Refusals,
    /// The cluster that this node belongs to.
    pub memory: Arc<ClusterMemory>,
    keeper: RwLock<Option<Arc<Keeper>>>,
    /// Held while the keeper is started, replaced or stopped.
    changing: tokio::sync::Mutex<()>,
    /// News of this node's store that the leader has not been sent yet.
    stores: watch::Sender<appointment::StoreNews>,
    /// Where the leader task receives events, while this keeper leads.
    leader_events: watch::Sender<Option<mpsc::Sender<leader_task::LeaderEvent>>>,
    /// Whether this keeper leads and a change of epoch is under way.
    is_busy: watch::Sender<bool>,
    forwards: forward::Forwards,
    /// The leader that this node is connected to as a member.
    follows: watch::Sender<Option<KeeperNode>>,
    /// Connections from nodes that are being served.
    serving: TaskTracker,
    pub stop: CancellationToken,
    fault: Arc<Fault>,
    pub planted: Planted,
    /// What this node noted about its cluster.
    journal: Mutex<Journal>,
}

/// Why a node cannot be a keeper.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MembershipError {
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Raft does not start.
    #[error("the keeper cannot start: {0}")]
    Keeper(#[from] KeeperError),
    /// The cluster cannot be remembered, or is not the one that this node belongs to.
    #[error(transparent)]
    Memory(#[from] RememberError),
    /// The node was appointed under another id, and its own store may still count.
    #[error(
        "the keeper's store in {} may still have a vote; demote this node first", .0.display()
    )]
    StillCounts(PathBuf),
    /// The store belongs to another cluster than the node.
    #[error(
        "{} has a keeper's store of cluster {store}, but this node belongs to cluster {node}; \
         restore this node's own data folder, or delete all of it to join again",
        .data.display()
    )]
    MixedUp {
        /// The data folder.
        data: PathBuf,
        /// The cluster of the store.
        store: ClusterIdentity,
        /// The cluster that the node took part in.
        node: ClusterIdentity,
    },
    /// The node is stopping.
    #[error("the node stops")]
    Stopping,
}

impl Membership {
    pub(crate) fn new(
        me: KeeperNode,
        fingerprint: [u8; 32],
        members: &Members,
        endpoint: Endpoint,
        memory: Arc<ClusterMemory>,
        fault: Arc<Fault>,
    ) -> Self {
        Membership {
            me,
            fingerprint,
            lease: members.lease,
            first: members.keepers.clone(),
            data: members.data.clone(),
            endpoint,
            refused: Refusals::default(),
            refused_by: Refusals::default(),
            memory,
            keeper: RwLock::default(),
            changing: tokio::sync::Mutex::default(),
            stores: watch::Sender::new(appointment::StoreNews::default()),
            leader_events: watch::Sender::new(None),
            is_busy: watch::Sender::new(false),
            forwards: forward::Forwards::default(),
            follows: watch::Sender::new(None),
            serving: TaskTracker::new(),
            stop: CancellationToken::new(),
            fault,
            planted: Planted::from_env(),
            journal: Mutex::new(Journal::new(unix_us())),
        }
    }

    /// What this node noted about its cluster. The mutex is never held while another one is locked.
    pub(crate) fn journal(&self) -> MutexGuard<'_, Journal> {
        self.journal.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// This node's keeper, if it runs one.
    pub(crate) fn keeper(&self) -> Option<Arc<Keeper>> {
        let keeper = self.keeper.read().unwrap_or_else(PoisonError::into_inner);
        keeper.clone()
    }

    fn set_keeper(&self, keeper: Option<Arc<Keeper>>) {
        *self.keeper.write().unwrap_or_else(PoisonError::into_inner) = keeper;
    }

    /// Returns whether anything was ever agreed on in this node's store.
    fn has_store(&self) -> bool {
        self.keeper().is_some_and(|keeper| !keeper.is_new())
    }

    /// Starts a keeper with this store. The caller holds `changing`.
    async fn start_keeper(self: &Arc<Self>, store: Store) -> Result<Arc<Keeper>, MembershipError> {
        let settings = Settings::for_lease(self.me.clone(), self.endpoint.clone(), &self.lease);
        let keeper = Arc::new(Keeper::start(settings, store).await?);
        self.memory.show_store(keeper.identity().cluster);
        self.set_keeper(Some(Arc::clone(&keeper)));
        self.tell_store(None);
        let task = leader_task::run_leader(Arc::clone(self), Arc::clone(&keeper));
        self.fault.watch("the leader's task", task);
        tokio::spawn(Arc::clone(self).heed_successors(Arc::clone(&keeper)));
        tokio::spawn(Arc::clone(self).show_cluster(keeper.identities()));
        Ok(keeper)
    }

    /// Opens a connection to a keeper, as a member.
    async fn dial(
        &self,
        keeper: &KeeperNode,
        within: Duration,
    ) -> Result<Dialled, ConnectionError> {
        let address = keeper.address.to_string();
        let purpose = self.purpose();
        let dialling = self.endpoint.dial(&keeper.name, &address, purpose, within);
        dialling.await
    }

    /// Opens a connection to this node's own keeper, as a member.
    async fn dial_itself(self: &Arc<Self>) -> Result<Dialled, ConnectionError> {
        let (here, there) = tokio::io::duplex(LOOP_BYTES);
        let own = Arc::clone(self);
        tokio::spawn(async move {
            let me = &own.me.name;
            let greeted = own.endpoint.greet(Box::new(there), Some(me), me.as_str());
            match greeted.await {
                Ok(arrival) => own.serve(arrival).await,
                Err(declined) => own.endpoint.dismiss(declined).await,
            }
        });
        let sending = self
            .endpoint
            .send_hello(Box::new(here), &self.me.name, self.purpose());
        sending.await
    }

    fn purpose(&self) -> Purpose {
        Purpose::Member {
            fingerprint: self.fingerprint,
        }
    }

    /// The first keepers, as Raft nodes.
    pub(crate) fn first_keepers(&self) -> Vec<KeeperNode> {
        let first = self.first.iter();
        first
            .map(|(_, name, address)| KeeperNode {
                name: name.clone(),
                address: address.clone(),
            })
            .collect()
    }

    /// Waits until no change of epoch is under way, if this keeper leads. Another leader would have
    /// to start it again.
    pub(crate) async fn finish(&self) {
        // The sender lives as long as `self`, so this does not fail.
        let _ = self.is_busy.subscribe().wait_for(|is_busy| !is_busy).await;
    }

    /// Stops leading and stops the keeper, after the last messages to nodes were sent.
    pub(crate) async fn close(&self) {
        self.stop.cancel();
        self.serving.close();
        let _ = timeout(LAST_WORDS, self.serving.wait()).await;
        // Waits for a keeper that is being started. Later ones are not started.
        let _changing = self.changing.lock().await;
        if let Some(keeper) = self.keeper() {
            keeper.shutdown().await;
        }
    }
}
