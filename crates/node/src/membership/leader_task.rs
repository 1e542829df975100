//! The leader's task: runs from this keeper's election until it is deposed.

mod decisions;
mod questions;
mod stores;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use soloist_api::{NAP_MAX, Reading, nap};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use self::decisions::{Done, tell_epochs_left};
use self::questions::KeeperChange;
use self::stores::Stores;
use super::Membership;
use super::clock_drift::Clocks;
use super::log::log;
use super::wire::{FromKeeper, LeaderQuestion, Reply};
use crate::Moment;
use crate::keepers::{Keeper, KeeperError, KeeperNode, View};
use crate::mutant::Mutant;
use crate::node::event::unix_ms;
use soloist_api::NodeName;
use soloist_core::Term;
use soloist_core::cluster_identity::{ClusterId, ClusterIdentity};
use soloist_core::epochs::leader::{Leader, LeaderEffects};
use soloist_core::epochs::lease::Lease;
use soloist_core::epochs::message::ToKeepers;
use soloist_core::epochs::roster::{Applied, Change, Command, Member};
use soloist_core::keepers::StoreClaim;
use soloist_core::name_hash::HashKeys;
use soloist_core::notice::Notice;
use soloist_core::record::Note;

/// Capacity of the leader task's event queue.
const EVENTS_MAX: usize = 1024;
/// Pause before a failed operation is retried.
const RETRY_AFTER: Duration = Duration::from_millis(50);

/// Events that connections send to the leader task.
pub(super) enum LeaderEvent {
    /// A node has connected.
    Opened {
        name: NodeName,
        sender: mpsc::Sender<FromKeeper>,
    },
    /// A node's connection has closed.
    Closed {
        name: NodeName,
        connection: MemberConnection,
    },
    Message {
        from: Member,
        clock: u64,
        holds: u32,
        message: ToKeepers,
    },
    Question {
        connection: MemberConnection,
        number: u64,
        question: LeaderQuestion,
    },
    /// The store of a node's keeper, if it has one.
    Store {
        name: NodeName,
        connection: MemberConnection,
        claim: Option<StoreClaim>,
    },
    /// A node that was appointed did not become a keeper.
    Declined { id: u64, reason: String },
}

/// A connection from a node, which may be closed by now.
pub(super) type MemberConnection = mpsc::WeakSender<FromKeeper>;

/// Maximum number of connections per node name; beyond it, the oldest is closed. A node has more
/// than one while dead ones are not detected, and two nodes may have the same name by mistake.
const CONNECTIONS_MAX: usize = 4;

/// Leads whenever this keeper is elected, until the keeper or the node stops.
pub(super) async fn run_leader(membership: Arc<Membership>, keeper: Arc<Keeper>) {
    let mut views = keeper.views();
    loop {
        let elected = views.wait_for(|view| view.leads || view.stopped.is_some());
        let term = tokio::select! {
            () = membership.stop.cancelled() => return,
            elected = elected => match elected {
                Ok(view) if view.leads => view.term,
                _ => return,
            },
        };
        let cluster = match take_over(&keeper, term, &membership.lease).await {
            Ok(cluster) => cluster,
            Err(_) => {
                sleep(RETRY_AFTER).await;
                continue;
            }
        };
        let (sender, events) = mpsc::channel(EVENTS_MAX);
        let mut task = LeaderTask::new(&membership, &keeper, term, cluster, events);
        membership.leader_events.send_replace(Some(sender));
        let elected = Note::Elected { term: term.0 };
        membership.journal().note(unix_ms(Duration::ZERO), elected);
        tracing::info!(term = term.0, "this keeper became the leader");
        task.run().await;
        // No command of this task is proposed from here on.
        task.work.shutdown().await;
        membership.is_busy.send_replace(false);
        membership.leader_events.send_replace(None);
        tracing::info!(term = term.0, "this keeper is no longer the leader");
    }
}

/// Confirms that a majority follows and that everything decided before is applied, then commits the
/// start of this leader's term.
async fn take_over(
    keeper: &Keeper,
    term: Term,
    lease: &Lease,
) -> Result<ClusterIdentity, KeeperError> {
    keeper.confirm_leadership(term).await?;
    identify(keeper, term).await?;
    if keeper.roster().is_founded() {
        // This keeper may have led earlier in the same term, before it was disconnected or
        // restarted, and may have left commands in its log that no majority has. This command is
        // ordered after them. It also tells any later leader, whatever its configuration, how long
        // it must wait for the leases granted from now on.
        let lease = lease.guarded();
        keeper.propose(term, Command::Lead { lease }).await?;
    }
    keeper.identity().cluster.ok_or(KeeperError::Changing)
}

/// Assigns an identity to a cluster that was created before clusters had one. This comes before any
/// other decision, because it changes the layout of fencing tokens.
async fn identify(keeper: &Keeper, term: Term) -> Result<(), KeeperError> {
    let roster = keeper.roster();
    if roster.cluster().is_some() {
        return Ok(());
    }
    let Some(generation) = roster.first_generation(rand::random()) else {
        tracing::error!("the epochs of this cluster are used up: bootstrap a new cluster");
        return Err(KeeperError::Keepers("no epoch is left".to_owned()));
    };
    let id = ClusterId::from_bytes(rand::random());
    let cluster = ClusterIdentity { id, generation };
    tracing::info!("this cluster is from a release without cluster ids; its id is now {cluster}");
    match keeper.propose(term, Command::Identify { cluster }).await? {
        Applied::Done => Ok(()),
        Applied::Refused => Err(KeeperError::Changing),
    }
}

// Methods: decisions in `leader_task/decisions.rs`, questions in `leader_task/questions.rs`, stores
// in `leader_task/stores.rs`.
struct LeaderTask<'o> {
    membership: &'o Membership,
    keeper: &'o Arc<Keeper>,
    term: Term,
    cluster: ClusterIdentity,
    began: Reading,
    views: watch::Receiver<View>,
    /// `None` until the first keepers have formed the cluster: nothing is decided before that.
    leader: Option<Leader>,
    events: mpsc::Receiver<LeaderEvent>,
    /// Connections of each node. One name may have several, of earlier incarnations or of another
    /// node; messages carry the incarnation.
    nodes: HashMap<NodeName, Vec<mpsc::Sender<FromKeeper>>>,
    clocks: Clocks,
    /// Number of holds of each member, as of its last renewal.
    holds: HashMap<NodeName, u32>,
    stores: Stores,
    /// The keepers that nodes were last told of.
    told: Vec<KeeperNode>,
    work: JoinSet<Done>,
    /// Whether a change of the keepers is under way.
    is_changing_keepers: bool,
    /// Whether [`Command::Settle`] was proposed by this task.
    has_settled: bool,
    retry_at: Option<Moment>,
    /// Since when no majority has followed, if the last attempt failed.
    unfollowed: Option<Moment>,
    is_over: bool,
}

impl<'o> LeaderTask<'o> {
    fn new(
        membership: &'o Membership,
        keeper: &'o Arc<Keeper>,
        term: Term,
        cluster: ClusterIdentity,
        events: mpsc::Receiver<LeaderEvent>,
    ) -> Self {
        LeaderTask {
            membership,
            keeper,
            term,
            cluster,
            began: Reading::take(),
            views: keeper.views(),
            leader: None,
            events,
            nodes: HashMap::new(),
            clocks: Clocks::new(&membership.lease),
            holds: HashMap::new(),
            stores: Stores::default(),
            told: keeper.view().keepers,
            work: JoinSet::new(),
            is_changing_keepers: false,
            has_settled: false,
            retry_at: None,
            unfollowed: None,
            is_over: false,
        }
    }

    async fn run(&mut self) {
        // Leadership is confirmed, so the wait for leases granted by earlier leaders starts here.
        self.lead();
        while !self.is_over {
            let now = Moment::now();
            let deadline = self
                .leader
                .as_ref()
                .and_then(|leader| leader.next_deadline(now));
            let next = deadline.into_iter().chain(self.retry_at).min();
            let pause = next.map_or(NAP_MAX, |next| nap(next.since(now)));
            self.note_busy();
            tokio::select! {
                biased;
                () = self.membership.stop.cancelled() => return,
                changed = self.views.changed() => self.look(changed.is_ok()),
                Some(done) = self.work.join_next() => match done {
                    Ok(done) => self.take(done),
                    Err(error) => match error.try_into_panic() {
                        Ok(panic) => std::panic::resume_unwind(panic),
                        Err(_) => return,
                    },
                },
                event = self.events.recv() => match event {
                    Some(event) => self.read(event),
                    None => return,
                },
                () = sleep(pause) => self.tick(),
            }
        }
        // Send the reply to the operator whose change of keepers ended this task.
        let last = async {
            while self.is_changing_keepers
                && let Some(Ok(done)) = self.work.join_next().await
            {
                if matches!(done, Done::Changed(..)) {
                    self.take(done);
                }
            }
        };
        let _ = timeout(RETRY_AFTER, last).await;
    }

    /// Publishes whether a change of epoch is under way: a command is not decided yet, or the epoch
    /// that was begun last is not installed.
    fn note_busy(&self) {
        let is_proposing = self.leader.as_ref().is_some_and(Leader::is_proposing);
        let is_busy = is_proposing || self.keeper.roster().is_changing();
        self.membership.is_busy.send_if_modified(|before| {
            let news = *before != is_busy;
            *before = is_busy;
            news
        });
    }

    /// Starts to lead, or continues to form the cluster from the first keepers.
    fn lead(&mut self) {
        let roster = self.keeper.roster();
        if roster.is_founded() {
            let now = Moment::now();
            let next = roster.next_epoch();
            tell_epochs_left((roster.last_epoch() + 1).saturating_sub(next));
            let keys = HashKeys::new(rand::random());
            self.leader = Some(Leader::elected(self.membership.lease, now, &roster, keys));
            self.tell_keepers();
            return;
        }
        if self.is_changing_keepers {
            return;
        }
        if self.membership.not_yet(&self.told).is_empty() {
            self.is_changing_keepers = true;
            let lease = self.membership.lease.guarded();
            return self.propose(Command::Lead { lease });
        }
        self.bring_together();
    }

    /// Handles a change of the keeper's view.
    fn look(&mut self, runs: bool) {
        let (leads, keepers) = {
            let view = self.views.borrow_and_update();
            let leads = runs && view.leads && view.term == self.term;
            (leads, view.keepers.clone())
        };
        if !leads {
            self.is_over = true;
            return;
        }
        if keepers != self.told {
            self.told = keepers;
            self.tell_keepers();
            self.stores.judge_again();
        }
        self.tick();
    }

    fn tell_keepers(&mut self) {
        let names: Vec<_> = self.nodes.keys().cloned().collect();
        for name in names {
            self.send(&name, self.welcome());
        }
    }

    fn welcome(&self) -> FromKeeper {
        let begun = self.keeper.roster();
        FromKeeper::Welcome {
            keepers: self.told.clone(),
            cluster: self.cluster,
            epoch: begun.begun().map_or(0, |change| change.epoch),
        }
    }

    fn tick(&mut self) {
        self.retry_at = self.retry_at.filter(|at| *at > Moment::now());
        self.judge_stores();
        if !self.is_changing_keepers && self.keeper.should_finish_change() {
            self.change_keepers(None, KeeperChange::Finish);
        }
        if self.leader.is_none() {
            return self.lead();
        }
        self.settle();
        self.drive(|leader, now, roster, out| leader.tick(now, roster, out));
    }

    fn read(&mut self, event: LeaderEvent) {
        match event {
            LeaderEvent::Opened { name, sender } => {
                let _ = sender.try_send(self.welcome());
                let connections = self.nodes.entry(name).or_default();
                connections.push(sender);
                if connections.len() > CONNECTIONS_MAX {
                    connections.remove(0);
                }
                if self.leader.is_none() {
                    self.lead();
                }
            }
            LeaderEvent::Closed { name, connection } => {
                let closed = connection.upgrade();
                let is_it = |there: &mpsc::Sender<_>| {
                    let closed = closed.as_ref();
                    closed.is_some_and(|closed| closed.same_channel(there))
                };
                if let Some(connections) = self.nodes.get_mut(&name) {
                    connections.retain(|there| !is_it(there));
                    if connections.is_empty() {
                        self.nodes.remove(&name);
                        self.stores.forget(&name);
                    }
                }
            }
            LeaderEvent::Message {
                from,
                clock,
                holds,
                message,
            } => {
                let now = Moment::now();
                if matches!(message, ToKeepers::Renew { .. }) {
                    self.holds.insert(from.name.clone(), holds);
                }
                if let Some(percent) = self.clocks.compare(&from, now, clock) {
                    tracing::error!(
                        node = %from.name, percent,
                        "a member's clock runs at another rate than this leader's"
                    );
                    self.send(&from.name, FromKeeper::Clock { percent });
                }
                self.drive(|leader, now, roster, out| {
                    leader.receive(now, roster, &from, message, out);
                });
            }
            LeaderEvent::Question {
                connection,
                number,
                question,
            } => self.answer(connection, number, question),
            LeaderEvent::Store {
                name,
                connection,
                claim,
            } => {
                self.stores.claimed(name, connection, claim);
                self.tick();
            }
            LeaderEvent::Declined { id, reason } => self.stores.declined(id, reason),
        }
    }

    /// Runs one step of the leader, and carries out its effects.
    fn drive(
        &mut self,
        act: impl FnOnce(&mut Leader, Moment, &soloist_core::epochs::roster::Roster, &mut LeaderEffects),
    ) {
        let Some(leader) = &mut self.leader else {
            return;
        };
        (self.membership.planted).panic_if(Mutant::PanicInLeader);
        let clock = Reading::take();
        if clock.has_slept_since(self.began) {
            // The machine was suspended, so it is unknown how long leases have run. This task ends;
            // the next leader, which may be this keeper, waits for all leases.
            self.is_over = true;
            return;
        }
        let mut out = LeaderEffects::default();
        let roster = self.keeper.roster();
        act(leader, clock.now, &roster, &mut out);
        self.note_departures(&out);
        log(out.notices);
        for (member, message) in out.sends {
            let incarnation = member.incarnation;
            self.send(
                &member.name,
                FromKeeper::Message {
                    incarnation,
                    message,
                },
            );
        }
        if out.confirm {
            let (keeper, term) = (Arc::clone(self.keeper), self.term);
            self.work
                .spawn(async move { Done::Confirmed(keeper.confirm_leadership(term).await) });
        }
        if let Some(command) = out.propose {
            self.propose(command);
        }
    }

    /// Notes which members the change that is about to begin leaves out, and why.
    fn note_departures(&mut self, out: &LeaderEffects) {
        let Some(Command::Begin(Change { epoch, .. })) = &out.propose else {
            return;
        };
        let mut journal = self.membership.journal();
        for notice in &out.notices {
            let note = match notice {
                Notice::Left(node) => Note::Left {
                    node: node.to_string(),
                    epoch: *epoch,
                },
                Notice::Evicted { member, reason } => Note::Evicted {
                    node: member.to_string(),
                    epoch: *epoch,
                    reason: reason.clone(),
                    // Copied, since this change may be refused and proposed again.
                    holds: self.holds.get(member).copied(),
                },
                _ => continue,
            };
            journal.note(unix_ms(Duration::ZERO), note);
        }
    }

    /// Forgets the holds of nodes that are no longer members.
    fn forget_holds(&mut self) {
        let roster = self.keeper.roster();
        let Some(change) = roster.begun() else {
            return;
        };
        let is_member = |name: &NodeName| change.members.iter().any(|one| one.name == *name);
        self.holds.retain(|name, _| is_member(name));
    }

    /// Sends a message to a node, on all of its connections. A connection whose queue is full is
    /// closed, and the node reconnects.
    fn send(&mut self, name: &NodeName, message: FromKeeper) {
        if let Some(connections) = self.nodes.get_mut(name) {
            connections.retain(|sender| sender.try_send(message.clone()).is_ok());
            if connections.is_empty() {
                self.nodes.remove(name);
            }
        }
    }
}

/// Sends a reply. It is lost if the connection is closed or its queue is full; the node asks again.
fn reply_to(connection: &MemberConnection, number: u64, reply: Reply) {
    if let Some(sender) = connection.upgrade() {
        let _ = sender.try_send(FromKeeper::Reply { number, reply });
    }
}
