//! A running node: the lock table, its links, its timer, and the guards that it gives out.

pub(crate) mod event;
pub(crate) mod fault;
pub(crate) mod inquiry;
pub(crate) mod lock;
mod notice;
pub(crate) mod shared;
pub(crate) mod state;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use soloist_api::{NAP_MAX, nap};
use tokio::net::TcpListener;
use tokio::time::timeout;

pub use event::Events;
pub use lock::{AcquireError, Guard, Lock, Lost};

use crate::Moment;
use crate::cluster_memory::{ClusterMemory, MemoryError};
use crate::config::Config;
use crate::identity::{Identity, IdentityError};
use crate::keepers::KeeperNode;
use crate::links::{self, Limits, LinkStatus, Links, LinksError};
use crate::membership::{LeaderClient, LeaderClientTask, Membership, MembershipError};
use crate::transport::{Endpoint, Security};
use fault::Fault;
use notice::Notices;
use shared::{Keeping, Shared};
use soloist_api::{LockName, LockNameError};
use soloist_core::epochs::member::{MemberEffects, MemberState, Participant};
use soloist_core::epochs::roster::Member;
use soloist_core::locks::{Settings, Table};
use state::NodeState;

/// How many locks a node may have to do with.
const LOCKS_MAX: usize = 1 << 22;

/// After how long without use a lock is forgotten, or sent home.
const FORGET_AFTER: Duration = Duration::from_secs(10);

/// A node. Cheap to clone; it runs until it is [stopped](Node::stop).
#[derive(Clone)]
pub struct Node {
    pub(crate) shared: Arc<Shared>,
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
        /// What is wrong.
        source: io::Error,
    },
    /// Its certificate cannot be used.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// Its links cannot be made.
    #[error(transparent)]
    Links(#[from] LinksError),
    /// What it remembers of its cluster cannot be used.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// It is a keeper, and cannot keep.
    #[error(transparent)]
    Membership(#[from] MembershipError),
}

fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => "is another node running there?",
        io::ErrorKind::AddrNotAvailable => {
            "this machine has no such address; behind NAT, say with `listen` which one it has"
        }
        io::ErrorKind::PermissionDenied => "use a port above 1023, or give the right to lower ones",
        _ => "check the node's `address`, `listen`, or its line in [keepers]",
    }
}

impl Node {
    /// Starts a node as its configuration says.
    pub async fn start(config: Config) -> Result<Node, StartError> {
        let identity = config.identity()?;
        let address = config.listens_on().to_string();
        let listener = TcpListener::bind(&address).await;
        let listener = listener.map_err(|source| StartError::Listen { address, source })?;
        Self::start_on(config, identity, listener).await
    }

    /// As [`start`](Node::start), on a socket that listens already and with a certificate that was
    /// read already; without one, links are not protected.
    pub async fn start_on(
        config: Config,
        identity: Option<Identity>,
        listener: TcpListener,
    ) -> Result<Node, StartError> {
        #[cfg(feature = "mutants")]
        plant_from_env();
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
            seed: rand::random(),
        });
        let core = core(&config, table);
        let fault = Arc::new(Fault::default());
        let (keeping, client_task) = keep(&config, endpoint, memory, &fault);
        let membership = Arc::clone(&keeping.membership);
        let (notices, log) = Notices::new();
        let shared = Shared::new(config, core, keeping, notices, Arc::clone(&fault));
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
        shared.core().carry_out(&shared);
        tokio::spawn(log);
        fault.watch("its timer", keep_time(Arc::clone(&shared)));
        fault.watch(
            "its connection to the leader",
            client_task.run(shared.clone()),
        );
        tokio::spawn(close_after_fault(Arc::clone(&shared)));
        Ok(Node { shared })
    }

    /// Waits until this node fails because of a panic, and tells how. It has left its peers alone then, and its holds are
    /// lost with its lease. The process should end.
    pub async fn failed(&self) -> String {
        self.shared.fault.happened().await.to_owned()
    }

    /// Waits until this node takes part in an epoch: it is let in, and nothing is being changed.
    pub async fn ready(&self) {
        let mut member_state = self.shared.member_state.subscribe();
        let takes_part =
            |member_state: &MemberState| matches!(member_state, MemberState::Member(_));
        // It lives as long as this node does.
        let _ = member_state.wait_for(takes_part).await;
    }

    /// The epoch in which this node takes part; nothing, while it takes part in none.
    pub fn epoch(&self) -> Option<u64> {
        match self.shared.living()?.member_state() {
            MemberState::Member(epoch) => Some(epoch),
            MemberState::Changing(_) | MemberState::Outside => None,
        }
    }

    /// How many nodes take part in the epoch, this one among them.
    pub fn members(&self) -> usize {
        let core = self.shared.living();
        core.map_or(0, |core| core.members().len())
    }

    /// How long this node's locks stood still when the epoch was changed last; nothing, if it took part in no epoch before.
    pub fn standstill(&self) -> Option<Duration> {
        self.shared.living()?.stood_still()
    }

    /// How many words it has exchanged with the keepers' leader.
    pub fn words(&self) -> u64 {
        self.shared.keeping.leader_client.words()
    }

    /// The lock of this name.
    pub fn lock(&self, name: &str) -> Result<Lock, LockNameError> {
        let owner = format!("{}, process {}", self.name(), std::process::id());
        Ok(Lock::new(self.clone(), LockName::new(name)?, owner.into()))
    }

    /// This node's name.
    pub fn name(&self) -> &str {
        self.shared.name()
    }

    /// How many locks it has to do with: they are held, waited for, or were used a little while ago.
    pub fn locks(&self) -> usize {
        let core = self.shared.living();
        core.map_or(0, |core| core.table().locks())
    }

    /// Its links, in the order of the nodes' names.
    pub fn links(&self) -> Vec<LinkStatus> {
        let mut links = self.shared.links().status();
        links.sort_by(|one, other| one.name.cmp(&other.name));
        links
    }

    /// Stops in good order. Nobody new gets in, and holds go on for up to `within`. From then on no hold is extended, and
    /// holders are told. A hold ends when it is released, or when the time that its holder was last promised has passed,
    /// at most a lease later. Then the node leaves: others need not wait for its lease.
    ///
    /// May be dropped and called again, to shorten `within`. A promise is not shortened.
    pub async fn stop(&self, within: Duration) {
        let shared = &self.shared;
        let drain = async {
            shared.core().stop(shared);
            shared.stopping.cancel();
            let _ = timeout(within, self.no_hold_left()).await;
            shared.core().drain(shared);
            shared.draining.cancel();
            self.no_hold_left().await;
            let _ = timeout(LEAVE_MAX, self.left()).await;
        };
        tokio::select! {
            biased;
            // There is nothing left to do in good order.
            _ = shared.fault.happened() => return,
            () = drain => {}
        }
        let membership = &shared.keeping.membership;
        let _ = timeout(LEAVE_MAX, membership.finish()).await;
        membership.close().await;
        shared.stopped.cancel();
        // Members have no use for frames of a node that has left.
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

/// A node that wants to be a member.
fn core(config: &Config, table: Table) -> NodeState {
    let me = Member {
        name: config.name.clone(),
        incarnation: rand::random(),
        address: config.members.address.clone(),
    };
    let part = Participant::new(me, table, config.members.lease, Moment::now());
    NodeState::new(part, MemberEffects::default())
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

/// How long the keepers may take to let a node go.
const LEAVE_MAX: Duration = Duration::from_secs(1);

/// Lets the table do what is due.
async fn keep_time(shared: Arc<Shared>) {
    loop {
        let next = shared.core().tick(&shared);
        let pause = next.map_or(NAP_MAX, |next| nap(next.since(Moment::now())));
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = shared.alarm.notified() => {}
            () = shared.stopped.cancelled() => return,
        }
        shared.metrics.tidy_up();
    }
}

/// A node that has failed says nothing to anybody any more. Its lease runs out.
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

/// Plants the fault that SOLOIST_MUTANT names, for tests of the executable.
#[cfg(feature = "mutants")]
fn plant_from_env() {
    use soloist_core::Mutant;

    let name = std::env::var("SOLOIST_MUTANT");
    let panics = [Mutant::PanicInCore, Mutant::PanicInLeader];
    let mut all = panics.into_iter().chain(Mutant::ALL);
    if let Some(mutant) = name
        .ok()
        .and_then(|name| all.find(|one| format!("{one:?}") == name))
    {
        Mutant::plant(Some(mutant));
    }
}
