//! A running node: its lock table, links and timer, and the guards that it hands out.

pub(crate) mod acquire;
pub(crate) mod all_events;
pub(crate) mod event;
mod event_rounds;
pub(crate) mod fault;
pub(crate) mod follow;
pub(crate) mod gather;
pub(crate) mod inquiry;
mod kept;
mod links_first;
pub(crate) mod listing;
mod lock;
mod longest;
pub(crate) mod lookout;
mod memory;
mod notice;
pub(crate) mod sessions;
pub(crate) mod shared;
pub(crate) mod state;

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use soloist_api::{NAP_MAX, compiled_here, nap};
use tokio::net::TcpListener;
use tokio::time::timeout;

pub use event::Events;
pub use lock::NodeGuard;

use crate::Moment;
use crate::cluster_memory::{ClusterMemory, MemoryError};
use crate::config::Config;
use crate::keepers::KeeperNode;
use crate::membership::{LeaderClient, LeaderClientTask, Membership, MembershipError};
use fault::Fault;
use links_first::LinksFirst;
use notice::Notices;
use shared::{Keeping, Shared};
use soloist_core::Incarnation;
use soloist_core::epochs::member::{MemberState, Participant};
use soloist_core::epochs::roster::Member;
use soloist_core::locks::{Settings, Table};
use soloist_transport::identity::{Identity, IdentityError};
use soloist_transport::links::{self, Limits, LinkStatus, Links, LinksError};
use soloist_transport::{Endpoint, Security};
use state::NodeState;

/// Maximum number of locks in a node's table.
const LOCKS_MAX: usize = 1 << 22;

/// An unused lock is forgotten, or returned home, after this time.
const FORGET_AFTER: Duration = Duration::from_secs(10);

/// A node. Cheap to clone; it runs until it is [stopped](Node::stop).
///
/// Its locks are those of the trait [`Locks`](crate::Locks).
// Methods: acquiring in `acquire.rs` and `lock.rs`, events in `event.rs` and `all_events.rs`, views
// of all nodes in `gather.rs`, `lookout.rs` and `follow.rs`.
#[derive(Clone)]
pub struct Node {
    pub(crate) shared: Arc<Shared>,
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Node")
            .field("name", &self.name())
            .finish_non_exhaustive()
    }
}

/// Why a node cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// Its address cannot be listened on.
    #[error("cannot listen on {address}: {source}; {}", advice(.source))]
    Listen {
        /// The address.
        address: String,
        /// The cause.
        source: io::Error,
    },
    /// Its certificate cannot be used.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// Its links cannot be started.
    #[error(transparent)]
    Links(#[from] LinksError),
    /// A socket pair within the process cannot be created.
    #[error("cannot create a socket pair: {0}; raise the limit of open files")]
    Sockets(io::Error),
    /// Its saved cluster state cannot be used.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// It is a keeper, and its keeper cannot start.
    #[error(transparent)]
    Membership(#[from] MembershipError),
}

fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => "is another node running there?",
        io::ErrorKind::AddrNotAvailable => {
            "this machine does not have that address; behind NAT, set `listen` to an address that \
             it has"
        }
        io::ErrorKind::PermissionDenied => {
            "use a port above 1023, or allow the process to use lower ones"
        }
        _ => "check the node's `address`, `listen`, or its line in [keepers]",
    }
}

impl Node {
    /// Starts a node from its configuration.
    pub async fn start(config: Config) -> Result<Node, StartError> {
        let identity = config.identity()?;
        let address = config.listens_on().to_string();
        let listener = TcpListener::bind(&address).await;
        let listener = listener.map_err(|source| StartError::Listen { address, source })?;
        Self::start_on(config, identity, listener).await
    }

    /// Like [`start`](Node::start), with a listening socket and a certificate that was already
    /// read. Without a certificate, links are not protected.
    pub fn start_on(
        config: Config,
        identity: Option<Identity>,
        listener: TcpListener,
    ) -> impl Future<Output = Result<Node, StartError>> + Send {
        compiled_here(Self::start_tasks(config, identity, listener))
    }

    async fn start_tasks(
        config: Config,
        identity: Option<Identity>,
        listener: TcpListener,
    ) -> Result<Node, StartError> {
        let security = match &identity {
            Some(identity) => Security::tls(identity),
            None => Security::Plain,
        };
        let memory = ClusterMemory::load(&config.members.data)?;
        let endpoint = Endpoint::new(config.name.clone(), security).in_cluster(memory.shown());
        let settings = links::Settings {
            endpoint: endpoint.clone(),
            fingerprint: config.fingerprint(),
            limits: Limits::default(),
        };
        let table = Table::new(Settings {
            rules: config.rules.clone(),
            ttl_max: config.ttl.max,
            limits: config.limits,
            locks_max: LOCKS_MAX,
            forget_after: FORGET_AFTER,
            turns_away_after: Some(config.members.lease.outside_max()),
            seed: rand::random(),
        });
        let core = core(&config, table);
        let fault = Arc::new(Fault::default());
        let (keeping, client_task) = keep(&config, endpoint, memory, &fault);
        let membership = Arc::clone(&keeping.membership);
        let (notices, log) = Notices::new();
        let links_first = LinksFirst::new().map_err(StartError::Sockets)?;
        let mut shared = Shared::new(
            config,
            core,
            keeping,
            notices,
            Arc::clone(&fault),
            links_first,
        );
        let expires_s = identity.as_ref().map(Identity::expires_unix_s);
        shared.certificate_ends_ms = expires_s.map(|seconds| seconds.saturating_mul(1000));
        let shared = Arc::new(shared);
        membership.begin().await?;
        let links = match Links::start(settings, listener, shared.clone()) {
            Ok(links) => links,
            Err(error) => {
                membership.close().await;
                return Err(error.into());
            }
        };
        let set = shared.links.set(links);
        assert!(set.is_ok(), "links are set once");
        tokio::spawn(log);
        fault.watch("its timer", keep_time(Arc::clone(&shared)));
        fault.watch(
            "its connection to the leader",
            client_task.run(shared.clone()),
        );
        tokio::spawn(close_after_fault(Arc::clone(&shared)));
        Ok(Node { shared })
    }

    /// Plants a fault in this node.
    #[cfg(feature = "mutants")]
    pub fn plant(&self, mutant: crate::Mutant) {
        self.shared.keeping.membership.planted.plant(mutant);
    }

    /// Waits until this node fails because of a panic, and returns the reason. By then it has
    /// stopped talking to its peers, and its holds are lost with its lease. The process should
    /// exit.
    pub async fn failed(&self) -> String {
        self.shared.fault.happened().await.to_owned()
    }

    /// Waits until this node is a member of an epoch, and no change of epoch is in progress.
    pub async fn ready(&self) {
        let mut member_state = self.shared.member_state.subscribe();
        let takes_part =
            |member_state: &MemberState| matches!(member_state, MemberState::Member(_));
        // The sender lives as long as this node.
        let _ = member_state.wait_for(takes_part).await;
    }

    /// Returns the current epoch, or `None` while this node is not a member or the epoch is
    /// changing.
    pub fn epoch(&self) -> Option<u64> {
        match self.shared.living()?.member_state() {
            MemberState::Member(epoch) => Some(epoch),
            MemberState::Changing(_) | MemberState::Outside => None,
        }
    }

    /// Returns the number of members of the epoch, including this node.
    pub fn members(&self) -> usize {
        let core = self.shared.living();
        core.map_or(0, |core| core.members().len())
    }

    /// Returns how long this node's locks stood still during the last change of epoch, or `None` if
    /// this node was not a member before it.
    pub fn standstill(&self) -> Option<Duration> {
        self.shared.living()?.stood_still()
    }

    /// Returns the number of messages exchanged with the keepers' leader.
    pub fn leader_messages(&self) -> u64 {
        self.shared.keeping.leader_client.messages()
    }

    /// This node's name.
    pub fn name(&self) -> &str {
        self.shared.name()
    }

    /// Returns the number of locks in this node's table: held, waited for, or recently used.
    pub fn locks(&self) -> usize {
        let core = self.shared.living();
        core.map_or(0, |core| core.table().locks())
    }

    /// Returns the status of its links, sorted by node name.
    pub fn links(&self) -> Vec<LinkStatus> {
        let mut links = self.shared.links().status();
        links.sort_by(|one, other| one.name.cmp(&other.name));
        links
    }

    /// Stops gracefully. No new requests are admitted, and holds continue for up to `within`. After
    /// that no hold is extended, and holders are told. A hold ends when it is released or when the
    /// time last promised to its holder has passed, at most one lease later. Then the node leaves,
    /// so the others need not wait for its lease to expire.
    ///
    /// May be dropped and called again, to shorten `within`. A promise is never shortened.
    pub fn stop(&self, within: Duration) -> impl Future<Output = ()> + Send {
        compiled_here(self.drain_and_leave(within))
    }

    async fn drain_and_leave(&self, within: Duration) {
        let shared = &self.shared;
        let drain = async {
            (shared.core()).drive(shared, |part, now, out| part.stop(now, out));
            shared.stopping.cancel();
            let _ = timeout(within, self.no_hold_left()).await;
            (shared.core()).drive(shared, |part, now, out| part.drain(now, out));
            shared.draining.cancel();
            self.no_hold_left().await;
            let _ = timeout(LEAVE_MAX, self.left()).await;
        };
        tokio::select! {
            biased;
            // A failed node cannot stop gracefully.
            _ = shared.fault.happened() => return,
            () = drain => {}
        }
        let membership = &shared.keeping.membership;
        let _ = timeout(LEAVE_MAX, membership.finish()).await;
        membership.close().await;
        shared.stopped.cancel();
        // Members have no use for frames from a node that has left.
        shared.links().close(Duration::ZERO).await;
    }

    async fn no_hold_left(&self) {
        loop {
            let ended = self.shared.no_hold_left.notified();
            if self.shared.core().table().holds() == 0 {
                return;
            }
            ended.await;
        }
    }

    /// Waits until the keepers know that this node has left.
    async fn left(&self) {
        loop {
            let left = self.shared.left.notified();
            if self.shared.core().has_left() {
                return;
            }
            left.await;
        }
    }
}

/// Creates the state of a node that wants to become a member.
fn core(config: &Config, table: Table) -> NodeState {
    let me = Member {
        name: config.name.clone(),
        incarnation: Incarnation(rand::random()),
        address: config.members.address.clone(),
    };
    let part = Participant::new(me, table, config.members.lease, Moment::now());
    NodeState::new(part)
}

fn keep(
    config: &Config,
    endpoint: Endpoint,
    memory: Arc<ClusterMemory>,
    fault: &Arc<Fault>,
) -> (Keeping, LeaderClientTask) {
    let kept = &config.members;
    let me = KeeperNode {
        name: config.name.clone(),
        address: kept.address.clone(),
    };
    let membership = Arc::new(Membership::new(
        me,
        config.fingerprint(),
        kept,
        endpoint,
        memory,
        Arc::clone(fault),
    ));
    let (leader_client, client_task) = LeaderClient::new(Arc::clone(&membership));
    (
        Keeping {
            membership,
            leader_client,
        },
        client_task,
    )
}

/// Timeout for leaving the cluster.
const LEAVE_MAX: Duration = Duration::from_secs(1);

/// Timer task. Runs what is due.
async fn keep_time(shared: Arc<Shared>) {
    loop {
        let next = shared.core().tick(&shared);
        let pause = next.map_or(NAP_MAX, |next| nap(next.since(Moment::now())));
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = shared.alarm.notified() => {}
            () = shared.stopped.cancelled() => return,
        }
    }
}

/// Closes all connections of a node that has failed. Its lease then expires.
async fn close_after_fault(shared: Arc<Shared>) {
    tokio::select! {
        _ = shared.fault.happened() => {}
        () = shared.stopped.cancelled() => return,
    }
    shared.stopping.cancel();
    shared.draining.cancel();
    shared.stopped.cancel();
    shared.keeping.membership.close().await;
    shared.links().close(Duration::ZERO).await;
}
