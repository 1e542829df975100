//! A whole cluster in one process, with real sockets and TLS: to try things, to measure, to test.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::net::TcpListener;

use crate::config::{
    Api, Config, Metrics, NodeName, Nodes, NodesError, RuleError, RuleSettings, Rules, Security,
    Ttl,
};
use crate::identity::{Authority, Identity, IdentityError};
use crate::{Node, StartError};

/// What the cluster is like.
#[derive(Clone, Debug)]
pub struct LocalSettings {
    /// How many nodes.
    pub nodes: usize,
    /// How locks are run.
    pub rule: RuleSettings,
    /// Whether links are protected.
    pub tls: bool,
    /// Where the nodes' Unix sockets are put.
    pub folder: PathBuf,
}

/// Why the cluster cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LocalError {
    /// No free port.
    #[error("no free port on this machine's loopback address: {0}")]
    Listen(#[from] io::Error),
    /// A rule that cannot be.
    #[error(transparent)]
    Rule(#[from] RuleError),
    /// Nodes that cannot be together.
    #[error(transparent)]
    Nodes(#[from] NodesError),
    /// No certificate.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// A node does not start.
    #[error(transparent)]
    Start(#[from] StartError),
}

/// A cluster whose nodes are called `n1`, `n2` and so on.
pub struct LocalCluster {
    /// The nodes, in the order of their numbers.
    pub nodes: Vec<Node>,
}

impl LocalCluster {
    /// Starts all nodes, on free ports.
    ///
    /// ```
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// use soloist_node::config::RuleSettings;
    /// use soloist_node::local::{LocalCluster, LocalSettings};
    ///
    /// let cluster = LocalCluster::start(LocalSettings {
    ///     nodes: 3,
    ///     rule: RuleSettings::default(),
    ///     tls: true,
    ///     folder: std::env::temp_dir(),
    /// }).await.unwrap();
    /// let lock = cluster.nodes[1].lock("nightly").unwrap();
    /// let guard = lock.acquire().await.unwrap();
    /// println!("inside, with fence {}", guard.fence());
    /// guard.release().await.unwrap();
    /// cluster.stop().await;
    /// # });
    /// ```
    pub async fn start(settings: LocalSettings) -> Result<Self, LocalError> {
        let mut listeners = Vec::new();
        let mut roster = Vec::new();
        // As many digits in each name, so that their order is that of the numbers.
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
        let rules = Rules::new(&nodes, &settings.rule, &[])?;
        let mut started = Vec::new();
        for ((_, name, _), listener) in nodes.iter().zip(listeners) {
            let config = Config {
                name: name.clone(),
                nodes: nodes.clone(),
                listen: None,
                security: Security::Insecure,
                rules: rules.clone(),
                ttl: Ttl::default(),
                api: Api {
                    socket: socket(&settings.folder, name),
                    tcp: None,
                },
                metrics: Metrics::default(),
            };
            let identity = authority
                .as_ref()
                .map(|authority| identity(authority, name));
            started.push(Node::start_on(config, identity.transpose()?, listener)?);
        }
        Ok(LocalCluster { nodes: started })
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

fn socket(folder: &Path, name: &NodeName) -> PathBuf {
    folder.join(format!("{name}.sock"))
}

fn identity(authority: &Authority, name: &NodeName) -> Result<Identity, IdentityError> {
    let issued = authority.issue(name, &[])?;
    Identity::from_pem(authority.certificate(), &issued.certificate, &issued.key)
}
