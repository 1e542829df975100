//! Keepers in one process, connected by real sockets with TLS.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use soloist_api::NodeName;
use soloist_core::cluster_identity::ClusterIdentity;
use soloist_core::epochs::roster::{Applied, Change, Command, Member, Roster};
use soloist_core::name_hash::HashKey;
use soloist_core::{Incarnation, Term};
use soloist_node::cluster_memory::fresh_identity;
use soloist_node::identity::{Authority, Identity};
use soloist_node::keepers::store::FILE_NAME;
use soloist_node::keepers::{
    Keeper, KeeperError, KeeperNode, Settings, Store, StoreIdentity, View,
};
use soloist_testing::wait::within;
use soloist_transport::{Endpoint, Security};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// Far longer than these tests take. It only ends a test that hangs.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

/// Polls until the condition holds. Panics after [`TIMEOUT`].
pub(crate) async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    within(TIMEOUT, what, async || is_so()).await;
}

pub(crate) fn name(name: &str) -> NodeName {
    name.parse().unwrap()
}

/// Command that begins this epoch with one member.
pub(crate) fn begin(epoch: u64) -> Command {
    let member = Member {
        name: name("m"),
        incarnation: Incarnation(epoch),
        address: "127.0.0.1:7401".parse().unwrap(),
    };
    Command::Begin(Change {
        epoch,
        members: vec![member],
        key: HashKey::from_bytes(*b"0123456789abcdef"),
    })
}

pub(crate) fn identity(authority: &Authority, node: &str) -> Identity {
    let issued = authority.issue(&name(node), &[]).unwrap();
    Identity::from_pem(authority.certificate(), &issued.certificate, &issued.key).unwrap()
}

/// A node that may be a keeper. Its port and its data outlive its keeper.
pub(crate) struct Site {
    pub node: KeeperNode,
    pub identity: Identity,
    /// Identity that its store is created with.
    pub store: StoreIdentity,
    listener: Arc<TcpListener>,
    folder: TempDir,
    running: Option<(Arc<Keeper>, JoinHandle<()>)>,
}

impl Site {
    pub(crate) async fn new(authority: &Authority, cluster: ClusterIdentity, called: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().into();
        Site {
            node: KeeperNode {
                name: name(called),
                address,
            },
            identity: identity(authority, called),
            store: StoreIdentity::fresh(cluster),
            listener: Arc::new(listener),
            folder: tempfile::tempdir().unwrap(),
            running: None,
        }
    }

    pub(crate) fn keeper(&self) -> &Arc<Keeper> {
        &self.running.as_ref().unwrap().0
    }

    pub(crate) fn is_up(&self) -> bool {
        self.running.is_some()
    }

    /// Returns the term in which it leads, if a majority confirms that.
    pub(crate) async fn leads_in(&self) -> Option<Term> {
        let View { leads, term, .. } = self.keeper().view();
        let confirmed = leads && self.keeper().confirm_leadership(term).await.is_ok();
        confirmed.then_some(term)
    }

    /// Waits until it leads, and returns the term.
    pub(crate) async fn leads(&self) -> Term {
        let began = Instant::now();
        loop {
            match self.leads_in().await {
                Some(term) => return term,
                None => assert!(began.elapsed() < TIMEOUT, "it does not lead"),
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.folder().join(FILE_NAME)
    }

    pub(crate) fn endpoint(&self) -> Endpoint {
        Endpoint::new(self.node.name.clone(), Security::tls(&self.identity))
    }

    pub(crate) fn settings(&self) -> Settings {
        let mut settings = Settings::new(self.node.clone(), self.endpoint());
        settings.snapshot_every = 8;
        settings
    }

    pub(crate) async fn start(&mut self) {
        self.start_with(self.settings()).await;
    }

    pub(crate) async fn start_with(&mut self, settings: Settings) {
        let (folder, me) = (self.folder(), &self.node.name);
        let store = if Store::exists(folder) {
            Store::open_in(folder, me).await
        } else {
            Store::create(folder, me, self.store).await
        };
        let store = store.unwrap();
        let keeper = Arc::new(Keeper::start(settings, store).await.unwrap());
        let serving = listen(self.listener.clone(), self.endpoint(), keeper.clone());
        self.running = Some((keeper, tokio::spawn(serving)));
    }

    /// Its Raft id.
    pub(crate) fn id(&self) -> u64 {
        self.keeper().identity().id
    }

    pub(crate) async fn stop(&mut self) {
        let (keeper, serving) = self.running.take().unwrap();
        serving.abort();
        keeper.shutdown().await;
    }
}

/// Serves the keeper as a node does on its port.
async fn listen(listener: Arc<TcpListener>, endpoint: Endpoint, keeper: Arc<Keeper>) {
    loop {
        let (tcp, _) = listener.accept().await.unwrap();
        let (endpoint, keeper) = (endpoint.clone(), keeper.clone());
        tokio::spawn(async move {
            // A peer that is stopped may close its connections at any point.
            let Ok((stream, certified)) = endpoint.take(tcp).await else {
                return;
            };
            match endpoint.greet(stream, certified.as_ref(), "a peer").await {
                Ok(arrival) => {
                    keeper.serve(arrival).await;
                }
                Err(declined) => endpoint.dismiss(declined).await,
            }
        });
    }
}

pub(crate) struct Cluster {
    pub authority: Authority,
    pub identity: ClusterIdentity,
    pub sites: Vec<Site>,
}

impl Cluster {
    /// Nodes that are not running and have no stores.
    pub(crate) async fn stopped(names: &[&str]) -> Self {
        let mut cluster = Cluster {
            authority: Authority::new("orchestra").unwrap(),
            identity: fresh_identity(),
            sites: Vec::new(),
        };
        for name in names {
            let site = cluster.site(name).await;
            cluster.sites.push(site);
        }
        cluster
    }

    /// Running keepers that know each other. The first one has bootstrapped the cluster.
    pub(crate) async fn start(names: &[&str]) -> Self {
        let mut cluster = Self::stopped(names).await;
        cluster.found().await;
        cluster
    }

    /// Starts all nodes. The first one bootstraps the cluster and makes the others keepers.
    pub(crate) async fn found(&mut self) {
        for site in &mut self.sites {
            site.start().await;
        }
        let founder = self.sites[0].keeper();
        assert!(founder.initialize().await.unwrap());
        self.sites[0].leads().await;
        let mut others = BTreeSet::new();
        for site in &self.sites[1..] {
            let appointed = founder.appoint_learner(site.id(), site.node.clone());
            appointed.await.unwrap();
            others.insert(site.id());
        }
        if !others.is_empty() {
            founder.make_voters(others).await.unwrap();
        }
    }

    /// A node of this cluster that is not running yet.
    pub(crate) async fn site(&self, called: &str) -> Site {
        Site::new(&self.authority, self.identity, called).await
    }

    /// Makes a running node a keeper.
    pub(crate) async fn promote(&mut self, site: Site) {
        let (id, node) = (site.id(), site.node.clone());
        let promoted = async |keeper: Arc<Keeper>| keeper.promote(id, node.clone()).await;
        self.change(promoted).await;
        self.sites.push(site);
    }

    /// Makes a keeper an ordinary node.
    pub(crate) async fn demote(&self, called: &str) {
        let called = name(called);
        let demoted = async |keeper: Arc<Keeper>| match keeper.demote(&called).await {
            // An earlier attempt that returned an error has succeeded.
            Err(KeeperError::NotAKeeper(_)) => Ok(()),
            other => other,
        };
        self.change(demoted).await;
    }

    /// Index of a leader that a majority confirms.
    pub(crate) async fn leader(&self) -> usize {
        self.leader_and_term().await.0
    }

    /// Index of a leader that a majority confirms, and its term.
    pub(crate) async fn leader_and_term(&self) -> (usize, Term) {
        let began = Instant::now();
        loop {
            for (place, site) in self.sites.iter().enumerate() {
                if site.is_up()
                    && let Some(term) = site.leads_in().await
                {
                    return (place, term);
                }
            }
            assert!(began.elapsed() < TIMEOUT, "no leader");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Begins this epoch. Retries if the leader changes.
    pub(crate) async fn begin(&self, epoch: u64) {
        let is_done = |roster: &Roster| roster.next_epoch() == epoch + 1;
        self.decide(begin(epoch), is_done).await;
    }

    /// Proposes this command until it is applied. Retries if the leader changes.
    pub(crate) async fn decide(&self, command: Command, is_done: impl Fn(&Roster) -> bool) {
        let began = Instant::now();
        loop {
            let (leader, term) = self.leader_and_term().await;
            let keeper = self.sites[leader].keeper();
            match keeper.propose(term, command.clone()).await {
                Ok(Applied::Done) => return,
                // An earlier attempt that returned an error has succeeded.
                Ok(Applied::Refused) if is_done(&keeper.roster()) => return,
                // The leader was re-elected in another term in the meantime.
                Ok(Applied::Refused) => {}
                Err(KeeperError::NotLeader { .. } | KeeperError::Open { .. }) => {}
                Err(error) => panic!("{error}"),
            }
            assert!(
                began.elapsed() < TIMEOUT,
                "not committed in time: {command:?}"
            );
        }
    }

    /// Changes the keepers. Retries if the leader changes. A leader that would remove itself hands
    /// over first.
    pub(crate) async fn change(
        &self,
        change: impl AsyncFn(Arc<Keeper>) -> Result<(), KeeperError>,
    ) {
        let began = Instant::now();
        loop {
            let keeper = self.sites[self.leader().await].keeper();
            match change(keeper.clone()).await {
                Ok(()) => return,
                Err(KeeperError::Leads(_)) => keeper.hand_over(),
                Err(
                    KeeperError::Changing
                    | KeeperError::NotLeader { .. }
                    | KeeperError::NoMajority { .. }
                    | KeeperError::Open { .. },
                ) => {}
                Err(error) => panic!("{error}"),
            }
            assert!(began.elapsed() < TIMEOUT, "the keepers do not change");
        }
    }

    pub(crate) fn epoch(&self, place: usize) -> u64 {
        self.sites[place].keeper().roster().next_epoch() - 1
    }

    /// Waits until all running keepers have this epoch.
    pub(crate) async fn all_have(&self, epoch: u64) {
        for (place, site) in self.sites.iter().enumerate() {
            if site.is_up() {
                let what = format!("{} has epoch {epoch}", site.node.name);
                until(&what, || self.epoch(place) == epoch).await;
            }
        }
    }
}
