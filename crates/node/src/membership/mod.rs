//! Where nodes and the keepers' leader meet: one connection from each node to the leader.
//!
//! - `wire`: what they say on it. `desk`: the keeper's end of a connection. `post`: the node's end, which looks for the
//!   leader. `conversation`: what is said while the connection lasts.
//! - `reign`: the leader's task, from its election until it is deposed; it drives [`Leader`](soloist_core::epochs::leader::Leader).
//! - `knock`: one try to reach a keeper. `forward`: how a follower connects a node through to the leader.
//! - `founding`: how the first keepers come together. `appointment`: how a node becomes a keeper later, and how its
//!   store is set aside when it is one no more.
//! - `probe`: whether a cluster is alive, before it is recovered.
//!
//! Invariants: one [`Leader`](soloist_core::epochs::leader::Leader) for each reign; what it grants was confirmed, and what it
//! decides was written, in the very term of that reign. Who is not the leader says so, and nothing else.

mod appointment;
mod bootstrap;
mod clock_drift;
mod conversation;
mod forward;
mod knock;
mod leader_client;
mod leader_task;
pub(crate) mod log;
mod probe;
mod serve;
mod wire;

use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use bootstrap::FIRST_START;
pub(crate) use leader_client::{LeaderClient, LeaderClientTask, LeaderListener};
pub use probe::{Shown, probe};
pub(crate) use wire::{ClusterView, Question, Reply};

use crate::cluster_memory::{ClusterMemory, RememberError};
use crate::config::{Kept, Nodes};
use crate::keepers::{Keeper, KeeperError, KeeperNode, Settings, Store, StoreError};
use crate::node::fault::Fault;
use crate::throttle::Refusals;
use crate::transport::{ConnectionError, Dialled, Endpoint, Purpose};
use soloist_core::cluster_identity::ClusterIdentity;
use soloist_core::epochs::lease::Lease;

/// How long it may take to send nodes what was said to them when a keeper stops.
const LAST_WORDS: Duration = Duration::from_millis(300);

/// What may be under way between a node and its own keeper.
const LOOP_BYTES: usize = 64 << 10;

/// A node's membership: its part in keeping the roster, if it is a keeper or becomes one.
pub(crate) struct Membership {
    pub me: KeeperNode,
    /// What all nodes must agree on.
    pub fingerprint: [u8; 32],
    pub lease: Lease,
    /// The first keepers.
    pub first: Nodes,
    pub data: PathBuf,
    pub endpoint: Endpoint,
    /// Nodes that this keeper refused.
    pub refused: Refusals,
    /// Times that a keeper refused this node.
    pub refused_by: Refusals,
    /// The cluster that this node belongs to.
    pub memory: Arc<ClusterMemory>,
    keeper: RwLock<Option<Arc<Keeper>>>,
    /// Held while the keeper is started, replaced or stopped.
    changing: tokio::sync::Mutex<()>,
    /// What the leader has not been told yet of this node's store.
    stores: watch::Sender<appointment::StoreNews>,
    /// Where the reign takes letters, while this keeper leads.
    reign: watch::Sender<Option<mpsc::Sender<leader_task::LeaderEvent>>>,
    /// This keeper leads, and there is something that it has begun.
    is_busy: watch::Sender<bool>,
    forwards: forward::Forwards,
    /// The leader that this node is connected to as a member.
    follows: watch::Sender<Option<KeeperNode>>,
    /// Connections of nodes that are being answered.
    serving: TaskTracker,
    pub stop: CancellationToken,
    fault: Arc<Fault>,
}

/// Why a node cannot be a keeper.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MembershipError {
    /// Its store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Its Raft does not start.
    #[error("the keeper cannot start: {0}")]
    Keeper(#[from] KeeperError),
    /// The cluster cannot be remembered, or it is another one.
    #[error(transparent)]
    Memory(#[from] RememberError),
    /// It was appointed under another id, and its own store may still count.
    #[error(
        "the keeper's store in {} may still count; demote this node first", .0.display()
    )]
    StillCounts(PathBuf),
    /// Its store belongs to another cluster than the node.
    #[error(
        "{} holds a keeper's store of cluster {store}, and this node belongs to cluster {node}; \
         restore the data folder that belongs to this node, or delete all of it to join again",
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
    /// It begins nothing any more.
    #[error("the node stops")]
    Stopping,
}

impl Membership {
    pub fn new(
        me: KeeperNode,
        fingerprint: [u8; 32],
        kept: &Kept,
        endpoint: Endpoint,
        memory: Arc<ClusterMemory>,
        fault: Arc<Fault>,
    ) -> Self {
        Membership {
            me,
            fingerprint,
            lease: kept.lease,
            first: kept.keepers.clone(),
            data: kept.data.clone(),
            endpoint,
            refused: Refusals::default(),
            refused_by: Refusals::default(),
            memory,
            keeper: RwLock::default(),
            changing: tokio::sync::Mutex::default(),
            stores: watch::Sender::new(appointment::StoreNews::default()),
            reign: watch::Sender::new(None),
            is_busy: watch::Sender::new(false),
            forwards: forward::Forwards::default(),
            follows: watch::Sender::new(None),
            serving: TaskTracker::new(),
            stop: CancellationToken::new(),
            fault,
        }
    }

    /// This node's keeper, if it runs one.
    pub fn keeper(&self) -> Option<Arc<Keeper>> {
        let keeper = self.keeper.read().unwrap_or_else(PoisonError::into_inner);
        keeper.clone()
    }

    fn set_keeper(&self, keeper: Option<Arc<Keeper>>) {
        *self.keeper.write().unwrap_or_else(PoisonError::into_inner) = keeper;
    }

    /// Whether anything was ever agreed on in this node's store.
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
        let saying = self
            .endpoint
            .say_hello(Box::new(here), &self.me.name, self.purpose());
        saying.await
    }

    fn purpose(&self) -> Purpose {
        Purpose::Member {
            fingerprint: self.fingerprint,
        }
    }

    /// The first keepers, as Raft knows them.
    fn first_keepers(&self) -> Vec<KeeperNode> {
        let first = self.first.iter();
        first
            .map(|(_, name, address)| KeeperNode {
                name: name.clone(),
                address: address.clone(),
            })
            .collect()
    }

    /// Waits until no change of epoch is under way here, if this keeper leads: another leader would have to begin it
    /// again.
    pub async fn finish(&self) {
        // It lives as long as this does.
        let _ = self.is_busy.subscribe().wait_for(|is_busy| !is_busy).await;
    }

    /// Stops leading and keeping, when nodes have been sent what was said to them.
    pub async fn close(&self) {
        self.stop.cancel();
        self.serving.close();
        let _ = timeout(LAST_WORDS, self.serving.wait()).await;
        // A keeper that is being started right now is waited for; later ones are not started.
        let _changing = self.changing.lock().await;
        if let Some(keeper) = self.keeper() {
            keeper.shutdown().await;
        }
    }
}
