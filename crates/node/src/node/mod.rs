//! A running node: the lock table, its links, its timer, and the guards that it gives out.

pub(crate) mod core;
pub(crate) mod event;
pub(crate) mod inquiry;
mod lock;
pub(crate) mod shared;
mod untold;

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;

pub use event::Events;
pub use lock::{AcquireError, Guard, Lock, Lost};

use crate::Moment;
use crate::config::Config;
use crate::identity::{Identity, IdentityError};
use crate::links::{self, Limits, LinkStatus, Links, LinksError, Peer};
use crate::locks::{Effects, End, Epoch, LockName, LockNameError, Settings, Table};
use core::Core;
use shared::Shared;

/// The only epoch there is, as long as nodes do not change it.
pub(crate) const EPOCH: u64 = 1;

/// How many may wait on a node.
const WAITERS_MAX: usize = 1 << 20;

/// How many locks a node may have to do with.
const LOCKS_MAX: usize = 1 << 22;

/// After how long without use a lock is forgotten, or sent home.
const FORGET_AFTER: Duration = Duration::from_secs(10);

/// The timer looks at least so often: it does not count while the machine sleeps, deadlines do.
const TIMER_MAX: Duration = Duration::from_secs(1);

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
}

fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => "is another node running there?",
        io::ErrorKind::AddrNotAvailable => {
            "this machine has no such address; behind NAT, say with `listen` which one it has"
        }
        io::ErrorKind::PermissionDenied => "use a port above 1023, or give the right to lower ones",
        _ => "check the node's address in [nodes], or `listen`",
    }
}

impl Node {
    /// Starts a node as its configuration says.
    pub async fn start(config: Config) -> Result<Node, StartError> {
        let identity = config.identity()?;
        let address = config.listens_on().to_string();
        let listener = TcpListener::bind(&address).await;
        let listener = listener.map_err(|source| StartError::Listen { address, source })?;
        Self::start_on(config, identity, listener)
    }

    /// As [`start`](Node::start), on a socket that listens already and with a certificate that was
    /// read already; without one, links are not protected.
    pub fn start_on(
        config: Config,
        identity: Option<Identity>,
        listener: TcpListener,
    ) -> Result<Node, StartError> {
        let mut table = Table::new(Settings {
            rules: config.rules.clone(),
            ttl_max: config.ttl.max,
            waiters_max: WAITERS_MAX,
            locks_max: LOCKS_MAX,
            forget_after: FORGET_AFTER,
            seed: rand::random(),
        });
        let epoch = Epoch {
            number: EPOCH,
            me: config.me(),
            nodes: config.nodes.len(),
            inside: HashMap::new(),
        };
        // Nobody waits yet, so nothing comes of it.
        table.install(Moment::now(), epoch, &mut Effects::new());
        let peers = config.nodes.iter().map(|(_, name, address)| Peer {
            name: name.to_string(),
            address: address.to_string(),
        });
        let settings = links::Settings {
            me: config.name.to_string(),
            incarnation: rand::random(),
            epoch: EPOCH,
            fingerprint: config.rules.fingerprint(),
            peers: peers.collect(),
            security: match &identity {
                Some(identity) => links::Security::tls(identity),
                None => links::Security::Plain,
            },
            limits: Limits::default(),
        };
        let shared = Arc::new(Shared::new(config, Core::new(table)));
        let links = Links::start(settings, listener, shared.clone())?;
        let set = shared.links.set(links);
        assert!(set.is_ok(), "links are set once");
        tokio::spawn(keep_time(Arc::clone(&shared)));
        Ok(Node { shared })
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
        self.shared.core().table().locks()
    }

    /// Its links, in the order of the nodes' names.
    pub fn links(&self) -> Vec<LinkStatus> {
        self.shared.links().status()
    }

    /// Stops: lets nobody new in, waits up to `within` for holds to end, ends those that are left
    /// as lost, sends what is still to be sent, and closes the links.
    pub async fn stop(&self, within: Duration) {
        self.shared.core().stop(&self.shared);
        self.shared.stopping.cancel();
        let ended = async {
            loop {
                let ended = self.shared.no_hold_left.notified();
                if self.shared.core().table().holds() == 0 {
                    return;
                }
                ended.await;
            }
        };
        let _ = tokio::time::timeout(within, ended).await;
        self.shared.core().end_all(&self.shared, End::NodeStopped);
        self.shared.stopped.cancel();
        self.shared.links().close(LAST_FRAMES).await;
    }
}

/// How long peers may take to acknowledge the last frames of a node that stops.
const LAST_FRAMES: Duration = Duration::from_secs(2);

/// Lets the table do what is due.
async fn keep_time(shared: Arc<Shared>) {
    loop {
        let next = shared.core().tick(&shared);
        let pause = next.map_or(TIMER_MAX, |next| next.since(Moment::now()).min(TIMER_MAX));
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = shared.alarm.notified() => {}
            () = shared.stopped.cancelled() => return,
        }
        shared.metrics.tidy_up();
    }
}
