//! A whole cluster in one process, with real sockets and TLS, for experiments, benchmarks and
//! tests.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::time::{sleep, timeout};

use crate::config::{Api, Config, Members, Metrics, Nodes, NodesError, Security, Ttl};
use crate::{FIRST_START, Node, StartError};
use soloist_api::{Address, NodeName, compiled_here};
use soloist_core::epochs::lease::Lease;
use soloist_core::limits::Limits;
use soloist_core::rules::{RuleError, RuleSettings, Rules};
use soloist_transport::identity::{Authority, Identity, IdentityError};

/// Settings of a local cluster.
#[derive(Clone, Debug)]
pub struct LocalSettings {
    /// Number of nodes.
    pub nodes: usize,
    /// The rule for all locks.
    pub rule: RuleSettings,
    /// Whether links use TLS.
    pub tls: bool,
    /// How long members may rely on being members.
    pub lease: Lease,
    /// Folder for the nodes' Unix sockets.
    pub folder: PathBuf,
    /// Folder for the nodes' persistent state, with one folder per node.
    pub data: PathBuf,
}

impl LocalSettings {
    /// Settings with TLS, the default rule and the default lease. Sockets and state are in
    /// `folder`.
    pub fn new(nodes: usize, folder: &Path) -> Self {
        LocalSettings {
            nodes,
            rule: RuleSettings::default(),
            tls: true,
            lease: Lease::default(),
            folder: folder.to_owned(),
            data: folder.join("data"),
        }
    }

    /// Sets the algorithm of all locks.
    #[must_use]
    pub fn with_algorithm(mut self, name: &str) -> Self {
        self.rule.algorithm = name.to_owned();
        self
    }
}

/// Why the cluster cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LocalError {
    /// There is no free port, or a file cannot be created.
    #[error("no free port on the loopback address, or no temporary folder: {0}")]
    Listen(#[from] io::Error),
    /// The rule is invalid.
    #[error(transparent)]
    Rule(#[from] RuleError),
    /// The list of nodes is invalid.
    #[error(transparent)]
    Nodes(#[from] NodesError),
    /// A certificate cannot be issued or used.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// A node cannot start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The cluster did not form in time.
    #[error("the cluster did not form within {READY_MAX:?}; the machine may be overloaded")]
    NotReady,
}

/// Timeout for the cluster to form.
const READY_MAX: Duration = Duration::from_secs(60);

/// A cluster whose nodes are called `n1`, `n2` and so on.
#[derive(Debug)]
pub struct LocalCluster {
    /// The nodes, in the order of their numbers.
    pub nodes: Vec<Node>,
    /// Addresses of their links.
    pub addresses: Vec<Address>,
    /// The CA of their certificates, if they use TLS.
    pub authority: Option<Authority>,
}

impl LocalCluster {
    /// Starts all nodes, on free ports. The first three are the keepers, or the first one if there
    /// are fewer than three.
    ///
    /// ```
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// use soloist_node::local::{LocalCluster, LocalSettings};
    /// use soloist_node::{Guard, Locks};
    ///
    /// let folder = tempfile::tempdir().unwrap();
    /// let settings = LocalSettings::new(3, folder.path());
    /// let cluster = LocalCluster::start(settings).await.unwrap();
    /// let lock = cluster.nodes[1].lock("nightly").unwrap();
    /// let guard = lock.acquire().await.unwrap();
    /// println!("inside, with fence {}", guard.fence());
    /// guard.release().await.unwrap();
    /// cluster.stop().await;
    /// # });
    /// ```
    pub fn start(settings: LocalSettings) -> impl Future<Output = Result<Self, LocalError>> + Send {
        compiled_here(Self::start_nodes(settings))
    }

    async fn start_nodes(settings: LocalSettings) -> Result<Self, LocalError> {
        let mut listeners = Vec::new();
        let mut roster = Vec::new();
        // Names have equally many digits, so that they sort by number.
        let digits = settings.nodes.to_string().len();
        for number in 1..=settings.nodes {
            let listener = TcpListener::bind("127.0.0.1:0").await?;
            let name: NodeName = format!("n{number:0digits$}")
                .parse()
                .expect("a node's name");
            let address = listener.local_addr()?.to_string();
            roster.push((name, address.parse().expect("an address")));
            listeners.push(listener);
        }
        let authority = settings.tls.then(|| Authority::new("local")).transpose()?;
        let nodes = Nodes::new(roster)?;
        let rules = Rules::for_any(&settings.rule, &[])?;
        if let Some((_, first, _)) = nodes.iter().next() {
            let data = settings.data.join(first.as_str());
            std::fs::create_dir_all(&data)?;
            std::fs::write(data.join(FIRST_START), "")?;
        }
        let mut started = Vec::new();
        for ((_, name, address), listener) in nodes.iter().zip(listeners) {
            let config = Config {
                name: name.clone(),
                members: members(&settings, &nodes, name, address)?,
                listen: None,
                security: Security::Insecure,
                rules: rules.clone(),
                ttl: Ttl::default(),
                api: Api::at(socket(&settings.folder, name)),
                // Its only client is usually the program that runs it.
                limits: Limits::alone(),
                metrics: Metrics::default(),
                io_threads: Config::IO_THREADS,
            };
            let identity = authority
                .as_ref()
                .map(|authority| identity(authority, name));
            started.push(Node::start_on(config, identity.transpose()?, listener).await?);
        }
        let addresses = nodes.iter().map(|(_, _, address)| address.clone());
        let cluster = LocalCluster {
            nodes: started,
            addresses: addresses.collect(),
            authority,
        };
        let together = timeout(READY_MAX, cluster.together());
        together.await.map_err(|_| LocalError::NotReady)?;
        Ok(cluster)
    }

    /// Waits until all nodes are members of the same epoch.
    pub async fn together(&self) {
        let epoch_of = |node: &Node| (node.epoch(), node.members());
        let are_together = || {
            let first = epoch_of(&self.nodes[0]);
            let is_whole = first.0.is_some() && first.1 == self.nodes.len();
            is_whole && self.nodes.iter().all(|node| epoch_of(node) == first)
        };
        while !are_together() {
            sleep(Duration::from_millis(5)).await;
        }
    }

    /// Stops all nodes.
    pub async fn stop(&self) {
        let stops = self
            .nodes
            .iter()
            .cloned()
            .map(|node| tokio::spawn(async move { node.stop(Duration::ZERO).await }));
        for stop in stops.collect::<Vec<_>>() {
            stop.await.expect("a node stops without panic");
        }
    }
}

fn members(
    settings: &LocalSettings,
    nodes: &Nodes,
    name: &NodeName,
    address: &Address,
) -> Result<Members, NodesError> {
    let count = if nodes.len() < 3 { 1 } else { 3 };
    let first = nodes.iter().take(count);
    let first = first.map(|(_, name, address)| (name.clone(), address.clone()));
    Ok(Members {
        address: address.clone(),
        keepers: Nodes::new(first)?,
        data: settings.data.join(name.as_str()),
        lease: settings.lease,
    })
}

fn socket(folder: &Path, name: &NodeName) -> PathBuf {
    folder.join(format!("{name}.sock"))
}

fn identity(authority: &Authority, name: &NodeName) -> Result<Identity, IdentityError> {
    let issued = authority.issue(name, &[])?;
    Identity::from_pem(authority.certificate(), &issued.certificate, &issued.key)
}
