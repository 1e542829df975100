//! State that a node's tasks, links and callers share.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Duration;

use soloist_api::Event;
use tokio::sync::{Notify, Semaphore, broadcast, watch};
use tokio_util::sync::CancellationToken;

use super::event::unix_ms;
use super::event_rounds::EventRounds;
use super::fault::{Fault, LockedCore};
use super::follow::Follow;
use super::inquiry::{self, Inquiries};
use super::links_first::LinksFirst;
use super::longest::LongestFound;
use super::notice::Notices;
use super::state::NodeState;
use crate::config::Config;
use crate::membership::{LeaderClient, LeaderListener, Membership, ToLeader};
use crate::metrics::Metrics;
use soloist_core::Incarnation;
use soloist_core::epochs::lease::Lease;
use soloist_core::epochs::member::MemberState;
use soloist_core::epochs::message::ToMember;
use soloist_core::epochs::roster::Member;
use soloist_core::locks::wire;
use soloist_core::record::{Journal, SeenProblems};
use soloist_transport::links::{Handler, LinkChange, Links, Peer, Serving};
use soloist_transport::{Arrival, Code, Declined, Purpose, Refusal};

// Methods: questions from node to node in `inquiry.rs`, what is kept for dashboards in `kept.rs`.
pub(crate) struct Shared {
    pub config: Config,
    /// Owner of requests of this process that name none.
    pub owner: Arc<str>,
    core: Mutex<NodeState>,
    pub links_first: LinksFirst,
    /// Set once, immediately after this is created: links report to this value.
    pub links: OnceLock<Links>,
    pub inquiries: Inquiries,
    /// Limits concurrent questions to all nodes. Each needs memory for all their answers.
    pub looking: Semaphore,
    pub events: broadcast::Sender<Event>,
    /// The dashboards that follow the cluster from this node.
    pub follow: Follow,
    /// The clients that watch the events of all nodes from this node.
    pub event_rounds: EventRounds,
    /// What this node found lately of the longest waits in the cluster.
    pub longest_found: LongestFound,
    /// The problems that dashboards and `soloist doctor` have seen from this node.
    pub seen_problems: Mutex<SeenProblems>,
    /// When this node was started, in milliseconds since 1970.
    pub started_ms: u64,
    /// When its certificate expires, in milliseconds since 1970, if it has one.
    pub certificate_ends_ms: Option<u64>,
    pub metrics: Metrics,
    /// Wakes the timer when something is due earlier than it expects.
    pub alarm: Notify,
    pub no_hold_left: Notify,
    pub keeping: Keeping,
    pub notices: Notices,
    pub member_state: watch::Sender<MemberState>,
    /// Notified when the node has left and the keepers know it.
    pub left: Notify,
    /// Cancelled when the node admits no new requests.
    pub stopping: CancellationToken,
    /// Cancelled when the node no longer extends holds.
    pub draining: CancellationToken,
    pub stopped: CancellationToken,
    pub fault: Arc<Fault>,
}

/// A node's connection to the keepers, and its own role as a keeper.
pub(crate) struct Keeping {
    pub membership: Arc<Membership>,
    pub leader_client: LeaderClient,
}

/// Maximum number of concurrent questions to all nodes.
const LOOKING_MAX: usize = 16;

/// Number of events that a subscriber may lag behind.
const EVENTS_MAX: usize = 4096;

impl Shared {
    pub(crate) fn new(
        config: Config,
        core: NodeState,
        keeping: Keeping,
        notices: Notices,
        fault: Arc<Fault>,
        links_first: LinksFirst,
    ) -> Self {
        let owner = format!("{}, process {}", config.name, std::process::id());
        Shared {
            owner: owner.into(),
            fault,
            metrics: Metrics::new(config.metrics.lock_names),
            config,
            core: Mutex::new(core),
            links_first,
            links: OnceLock::new(),
            inquiries: Inquiries::default(),
            looking: Semaphore::new(LOOKING_MAX),
            events: broadcast::Sender::new(EVENTS_MAX),
            follow: Follow::default(),
            event_rounds: EventRounds::default(),
            longest_found: LongestFound::default(),
            seen_problems: Mutex::default(),
            started_ms: unix_ms(Duration::ZERO),
            certificate_ends_ms: None,
            alarm: Notify::new(),
            no_hold_left: Notify::new(),
            keeping,
            notices,
            member_state: watch::Sender::new(MemberState::Outside),
            left: Notify::new(),
            stopping: CancellationToken::new(),
            draining: CancellationToken::new(),
            stopped: CancellationToken::new(),
        }
    }

    /// Locks the node's state.
    ///
    /// # Panics
    /// If the node has failed. Callers that may run after that use [`living`](Shared::living).
    pub(crate) fn core(&self) -> LockedCore<'_> {
        self.living().expect("the node has not failed")
    }

    /// Locks the node's state, or returns `None` if the node has failed.
    pub(crate) fn living(&self) -> Option<LockedCore<'_>> {
        let core = self.core.lock().ok()?;
        Some(LockedCore::new(core, &self.fault))
    }

    /// Returns the cluster's leases, with the margin for clock drift.
    pub(crate) fn lease(&self) -> Lease {
        self.keeping.membership.lease
    }

    /// Returns the name of a lock's algorithm.
    pub(crate) fn algorithm(&self, lock: &str) -> &'static str {
        self.config.rules.rule(lock).choice().name
    }

    pub(crate) fn name(&self) -> &str {
        self.config.name.as_str()
    }

    pub(crate) fn links(&self) -> &Links {
        // Links may report something before the starting node has stored them here.
        self.links.wait()
    }

    /// Makes these members the peers of the links.
    pub(crate) fn link(&self, me: &Member, members: &[Member]) {
        let peers = members.iter().map(|member| Peer {
            name: member.name.to_string(),
            address: member.address.to_string(),
            incarnation: member.incarnation,
        });
        let set = (self.links()).set_peers(me.incarnation, peers.collect());
        set.expect("each member has its own name");
    }

    /// Returns why this node does not know the state of locks, or `None` while it is a member with
    /// a valid lease.
    pub(crate) fn why_unknown(&self) -> Option<String> {
        let member_state = match self.living() {
            Some(mut core) => {
                core.look(self);
                core.member_state()
            }
            None => return Some(format!("node {} has failed", self.name())),
        };
        let me = self.name();
        match member_state {
            MemberState::Member(_) => None,
            MemberState::Changing(epoch) => Some(format!(
                "the cluster is changing to epoch {epoch}, and no lock is granted meanwhile"
            )),
            MemberState::Outside => {
                let way = self.keeping.leader_client.way();
                let why = match &way.leader {
                    Some(leader) => {
                        format!("the keepers' leader, {leader}, has not admitted it yet")
                    }
                    None => format!("it cannot find the keepers' leader ({})", way.problems()),
                };
                Some(format!("node {me} is not a member of the cluster: {why}"))
            }
        }
    }

    /// Returns what this node noted about its cluster. Dashboards are updated soon after.
    pub(crate) fn journal(&self) -> MutexGuard<'_, Journal> {
        self.follow.news.notify_one();
        self.keeping.membership.journal()
    }

    /// Notes in the journal that a link broke or works again.
    fn note_link(&self, peer: &str, change: &LinkChange) {
        let mut journal = self.journal();
        let at_ms = unix_ms(Duration::ZERO);
        match change {
            LinkChange::Up => journal.link_up(at_ms, peer),
            LinkChange::Down { reason } | LinkChange::Refused { reason } => {
                journal.link_down(at_ms, peer, reason);
            }
            LinkChange::Goodbye | LinkChange::Full => {}
        }
    }

    /// Sends a message to the keepers' leader. It may be lost.
    pub(crate) fn send_to_leader(&self, message: ToLeader) {
        self.keeping.leader_client.send(message);
    }
}

impl LeaderListener for Shared {
    fn found_leader(&self) {
        self.core().find_leader(self);
    }

    fn receive_from_leader(&self, incarnation: Incarnation, message: ToMember) {
        self.core().receive_from_leader(self, incarnation, message);
    }
}

impl Handler for Shared {
    fn receive(
        &self,
        from: Incarnation,
        frames: &mut dyn Iterator<Item = &[u8]>,
    ) -> Result<(), String> {
        let _passing = self.links_first.pass();
        for frame in frames {
            match frame.first() {
                Some(&kind) if wire::is_lock(kind) => {
                    let received = self.core().receive(self, from, frame);
                    received.map_err(|error| error.to_string())?;
                }
                _ => inquiry::receive(self, from, frame)?,
            }
        }
        Ok(())
    }

    fn link_changed(&self, peer: &str, change: LinkChange) {
        self.note_link(peer, &change);
        match change {
            LinkChange::Up => tracing::info!(peer, "link up"),
            LinkChange::Goodbye => tracing::debug!(peer, "link closed: the peer is stopping"),
            LinkChange::Down { reason } => tracing::warn!(peer, reason, "link down"),
            LinkChange::Refused { reason } => tracing::warn!(peer, reason, "link refused"),
            LinkChange::Full => tracing::error!(peer, "link full: messages are not sent"),
        }
    }

    fn serve(&self, arrival: Arrival) -> Result<Serving, Declined> {
        let membership = &self.keeping.membership;
        let membership = Arc::clone(membership);
        match arrival.hello.purpose {
            Purpose::Member { .. } => Ok(Box::pin(async move { membership.serve(arrival).await })),
            Purpose::Forward => Ok(Box::pin(async move { membership.forward(arrival).await })),
            Purpose::Keeper { .. } => Ok(Box::pin(async move {
                match membership.keeper() {
                    Some(keeper) => {
                        keeper.serve(arrival).await;
                    }
                    None => {
                        let reason = format!("node {} is not a keeper", membership.me.name);
                        tracing::debug!("refused a keeper: {reason}");
                        arrival.refuse(Refusal::new(Code::Later, reason)).await;
                    }
                }
            })),
            Purpose::Link { .. } => unreachable!("links handle these themselves"),
        }
    }
}
