//! Connection to the keepers' leader. Finds the current leader, and reconnects when the connection
//! ends or another keeper leads.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep, timeout};

use super::Membership;
use super::conversation::Ended;
use super::knock::{Leading, Tried, Unreached, Way};
use super::wire::{LeaderQuestion, Reply};
use crate::keepers::KeeperNode;
use soloist_api::NodeName;
use soloist_core::Incarnation;
use soloist_core::epochs::message::{ToKeepers, ToMember};
use soloist_core::epochs::roster::Member;
use soloist_transport::Backoff;

/// Capacity of the send queue. Messages beyond it are dropped; the member retries.
const SEND_QUEUE_MAX: usize = 64;
const QUESTIONS_MAX: usize = 64;
/// A connection that lasted this long resets the back-off.
const STABLE_AFTER: Duration = Duration::from_secs(1);
const RETRY_MIN: Duration = Duration::from_millis(10);

/// Number of keepers whose last failed attempt is remembered.
const TRIED_MAX: usize = 16;
/// How often a node without a leader logs that.
const TELL_EVERY: Duration = Duration::from_secs(5);

/// Receives what the leader sends to this node.
pub(crate) trait LeaderListener: Send + Sync + 'static {
    /// Called when a leader was found. Messages sent before this call may have been lost.
    fn found_leader(&self);
    /// Called for each message that the leader sends to this incarnation of the node.
    fn receive_from_leader(&self, incarnation: Incarnation, message: ToMember);
}

/// What a node knows of the keepers.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct WayToLeader {
    /// The leader, while this node is connected to it.
    pub leader: Option<KeeperNode>,
    /// All keepers, as the last leader listed them.
    pub keepers: Option<Vec<KeeperNode>>,
    /// Why the last attempt at each keeper failed, since the connection was lost.
    pub tried: BTreeMap<NodeName, String>,
}

impl WayToLeader {
    /// Lists the keepers that were tried, and why each attempt failed.
    pub(crate) fn problems(&self) -> String {
        if self.tried.is_empty() {
            return "none was tried yet".to_owned();
        }
        let each = self.tried.iter();
        let each: Vec<_> = each.map(|(name, why)| format!("{name}: {why}")).collect();
        each.join(", ")
    }

    fn note(&mut self, keeper: NodeName, problem: String) {
        // Leaders that keepers name come from the network, so their number is bounded.
        if self.tried.len() >= TRIED_MAX && !self.tried.contains_key(&keeper) {
            self.tried.clear();
        }
        self.tried.insert(keeper, problem);
    }
}

/// The leader cannot be reached, or did not answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the keepers' leader cannot be reached; check that a majority of the keepers runs")]
pub(crate) struct NoLeader;

/// A message to the leader.
pub(crate) struct ToLeader {
    pub from: Member,
    /// Number of holds on this node.
    pub holds: usize,
    pub message: ToKeepers,
}

/// Handle for sending to the keepers' leader.
pub(crate) struct LeaderClient {
    messages: mpsc::Sender<ToLeader>,
    questions: mpsc::Sender<(LeaderQuestion, oneshot::Sender<Reply>)>,
    way: watch::Receiver<WayToLeader>,
    exchanged: Arc<AtomicU64>,
}

impl LeaderClient {
    /// Creates a client. The search for the leader starts when the task runs.
    pub(crate) fn new(membership: Arc<Membership>) -> (Self, LeaderClientTask) {
        let (messages, incoming) = mpsc::channel(SEND_QUEUE_MAX);
        let (questions, asked) = mpsc::channel(QUESTIONS_MAX);
        let (tell, way) = watch::channel(WayToLeader::default());
        let exchanged = Arc::<AtomicU64>::default();
        let leader_client = LeaderClient {
            messages,
            questions,
            way,
            exchanged: Arc::clone(&exchanged),
        };
        let client_task = LeaderClientTask {
            unreached: Unreached::new(&membership),
            membership,
            messages: incoming,
            questions: asked,
            way: tell,
            next: 0,
            exchanged,
        };
        (leader_client, client_task)
    }

    /// Sends a message to the leader. It may be lost.
    pub(crate) fn send(&self, message: ToLeader) {
        let _ = self.messages.try_send(message);
    }

    /// Asks the leader, and waits for the reply.
    pub(crate) async fn ask(
        &self,
        question: LeaderQuestion,
        within: Duration,
    ) -> Result<Reply, NoLeader> {
        let (sender, reply) = oneshot::channel();
        if self.way.borrow().leader.is_none() {
            return Err(NoLeader);
        }
        let sent = self.questions.try_send((question, sender));
        sent.map_err(|_| NoLeader)?;
        match timeout(within, reply).await {
            Ok(Ok(reply)) => Ok(reply),
            _ => Err(NoLeader),
        }
    }

    /// Waits until this node has left the leader `former`, and returns the next one that it finds,
    /// which may be the same. `None` if the node stops.
    pub(crate) async fn next_leader(&self, former: &NodeName) -> Option<KeeperNode> {
        let mut way = self.way.clone();
        let is_former = |leader: &KeeperNode| leader.name == *former;
        let left = way.wait_for(|way| !way.leader.as_ref().is_some_and(is_former));
        left.await.ok()?;
        let found = way.wait_for(|way| way.leader.is_some()).await.ok()?;
        found.leader.clone()
    }

    /// Number of messages exchanged with the leader.
    pub(crate) fn messages(&self) -> u64 {
        self.exchanged.load(Ordering::Relaxed)
    }

    /// What is known of the keepers now.
    pub(crate) fn way(&self) -> WayToLeader {
        self.way.borrow().clone()
    }
}

/// The task behind a [`LeaderClient`].
// Methods: the exchange of messages in `conversation.rs`.
pub(crate) struct LeaderClientTask {
    pub(super) membership: Arc<Membership>,
    pub(super) messages: mpsc::Receiver<ToLeader>,
    pub(super) questions: mpsc::Receiver<(LeaderQuestion, oneshot::Sender<Reply>)>,
    pub(super) way: watch::Sender<WayToLeader>,
    /// Index of the keeper that was tried last.
    next: usize,
    unreached: Unreached,
    /// Number of messages sent and received.
    pub(super) exchanged: Arc<AtomicU64>,
}

impl LeaderClientTask {
    /// Finds the leader and follows it, until the node stops.
    pub(crate) async fn run(mut self, listener: Arc<dyn LeaderListener>) {
        let stop = self.membership.stop.clone();
        tokio::select! {
            () = stop.cancelled() => {}
            () = self.search(&*listener) => {}
        }
    }

    async fn search(&mut self, listener: &dyn LeaderListener) {
        let mut backoff = Backoff::new(RETRY_MIN, self.membership.lease.search_pause_max());
        let mut hint = None;
        let mut tell_at = Instant::now() + TELL_EVERY;
        loop {
            let is_hinted = hint.is_some();
            let way = hint.take().unwrap_or_else(|| self.next_way());
            let keeper = &way.keeper;
            match self.membership.knock(&way).await {
                Tried::Leads(leading) => {
                    let began = Instant::now();
                    self.follow(way, leading, listener).await;
                    // Two nodes that replace each other's connection must not do so in a tight
                    // loop.
                    if began.elapsed() > STABLE_AFTER {
                        backoff.reset();
                    }
                    tell_at = Instant::now() + TELL_EVERY;
                }
                Tried::Elsewhere(leader) => {
                    let problem = match &leader {
                        Some(leader) => format!("says that {} is the leader", leader.name),
                        None => "knows of no leader".to_owned(),
                    };
                    self.note(keeper, problem);
                    hint = leader.map(|leader| self.unreached.way(leader, keeper));
                }
                Tried::Unreached(reason) => {
                    self.unreached.note(keeper);
                    self.note(keeper, reason);
                }
                Tried::Refused(reason) => self.note(keeper, reason),
            }
            if tell_at <= Instant::now() {
                let tried = self.way.borrow().problems();
                tracing::warn!(
                    tried,
                    "cannot find the keepers' leader: this node is not a member; retrying"
                );
                tell_at = Instant::now() + TELL_EVERY;
            }
            if is_hinted || hint.is_none() {
                sleep(backoff.next(rand::random())).await;
            }
        }
    }

    /// Stays connected to the leader. While connected through a follower, looks for a direct
    /// connection.
    async fn follow(&mut self, mut way: Way, mut leading: Leading, listener: &dyn LeaderListener) {
        loop {
            match &way.through {
                Some(through) => {
                    tracing::info!(leader = %way.keeper, %through, "connected to the leader through a follower");
                }
                None => tracing::debug!(leader = %way.keeper, "connected to the keepers' leader"),
            }
            self.way.send_replace(WayToLeader {
                leader: Some(way.keeper.clone()),
                keepers: Some(leading.keepers),
                tried: BTreeMap::new(),
            });
            self.membership
                .follows
                .send_replace(Some(way.keeper.clone()));
            self.complain_of_lost_store();
            let membership = Arc::clone(&self.membership);
            let ended = tokio::select! {
                ended = self.converse(leading.stream, leading.cluster, listener) => ended,
                direct = membership.find_direct(&way) => {
                    leading = direct;
                    way.through = None;
                    continue;
                }
            };
            if matches!(ended, Ended::Silent) || way.through.is_some() {
                self.unreached.note(&way.keeper);
            }
            break;
        }
        self.membership.follows.send_replace(None);
        self.way.send_modify(|way| way.leader = None);
    }

    /// Remembers why an attempt failed.
    fn note(&self, keeper: &KeeperNode, problem: String) {
        let name = keeper.name.clone();
        self.way.send_modify(|way| way.note(name, problem));
    }

    /// Logs an error if this node is listed as a keeper but has no store. Its store was lost, and
    /// it must not vote with an empty one.
    fn complain_of_lost_store(&mut self) {
        let me = &self.membership.me.name;
        let way = self.way.borrow();
        let mut keepers = way.keepers.iter().flatten();
        let is_counted = keepers.any(|keeper| keeper.name == *me);
        if is_counted && self.membership.keeper().is_none() {
            tracing::error!(
                "this keeper has lost its store in {} and does not vote: restore it with `soloist \
                 cluster demote {me}`, then `soloist cluster promote {me}`",
                self.membership.data.display()
            );
        }
    }

    /// Picks the next keeper to try: one of the current keepers, or of those in the configuration,
    /// since all of the current ones may be gone. Skips keepers that could not be reached lately,
    /// if there are others.
    fn next_way(&mut self) -> Way {
        let mut all = self.way.borrow().keepers.clone().unwrap_or_default();
        for first in self.membership.first_keepers() {
            // A keeper that has moved may be in the configuration with its new address.
            if !all.contains(&first) {
                all.push(first);
            }
        }
        let following = (1..=all.len()).map(|step| (self.next + step) % all.len());
        let reached = following
            .clone()
            .find(|&next| !self.unreached.is(&all[next]));
        self.next = reached.or(following.clone().next()).unwrap_or_default();
        Way {
            keeper: all.swap_remove(self.next),
            through: None,
        }
    }
}
