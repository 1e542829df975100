//! A cluster in simulated time: nodes whose clocks drift, links that keep order but have random
//! delays, and keepers whose leaders change.
//!
//! - `world/effects.rs`: what nodes and leaders do with an event, and what follows.
//! - `world/faults.rs`: faults, and their repair.

mod effects;
mod faults;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use soloist_algorithms::Choice;
use soloist_api::{Moment, NodeName};
use soloist_core::epochs::leader::Leader;
use soloist_core::epochs::lease::Lease;
use soloist_core::epochs::member::{MemberState, Participant};
use soloist_core::epochs::message::{ToKeepers, ToMember};
use soloist_core::epochs::roster::{Applied, Command, Member, Roster};
use soloist_core::name_hash::HashKeys;
use soloist_core::rules::Rules;
use soloist_core::{Incarnation, Term, Tuning};

use self::faults::Isolated;
use super::clients::Clients;
use super::describe;
use super::journal::Journal;
use super::referee::{Clock, Referee};
use super::setup::{index_of, names, rules};

/// The lease, unless another one is given.
pub const LEASE: Lease = Lease {
    length: Duration::from_millis(3000),
    drift: 5,
};

/// The world's time as a moment.
fn moment(now: u64) -> Moment {
    Moment::default() + Duration::from_micros(now)
}

/// A scheduled event.
enum Event {
    Frame {
        from: Member,
        to: Member,
        bytes: Vec<u8>,
    },
    ToKeepers {
        from: Member,
        message: ToKeepers,
    },
    ToMember {
        to: Member,
        message: ToMember,
    },
    Wake(usize),
    WakeLeader(Term),
    Commit {
        term: Term,
        command: Command,
    },
    Confirm {
        term: Term,
    },
    Confirmed {
        term: Term,
    },
    Client(usize),
}

/// A node and its clients.
pub struct Node {
    /// `None` while it is down.
    pub participant: Option<Participant>,
    /// Its clock.
    pub clock: Clock,
    members: Vec<Member>,
    starts: u64,
    /// While paused, its events go to the backlog.
    paused: bool,
    backlog: Vec<Event>,
    wakes_at: Option<u64>,
    /// Its messages to the keepers are lost.
    pub to_keepers_cut: bool,
    /// Messages of the keepers to it are lost.
    pub from_keepers_cut: bool,
    /// Additional delay of each message between it and the keepers, in microseconds.
    pub away: u64,
    /// Its clients.
    pub clients: Clients,
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Node").finish_non_exhaustive()
    }
}

/// A cluster in simulated time.
// Methods: effects in `world/effects.rs`, faults in `world/faults.rs`.
pub struct World {
    /// Microseconds since the start.
    pub now: u64,
    /// Determines everything that is left to chance.
    pub rng: ChaCha8Rng,
    /// The nodes.
    pub nodes: Vec<Node>,
    /// Checks all entries and exits.
    pub referee: Referee,
    /// Whether clocks differ by no more than the lease allows. Otherwise holds may overlap.
    pub clocks_keep_the_margin: bool,
    /// Maximum delay of most messages, in microseconds.
    pub slowest: u64,
    /// Fraction of messages between members and keepers that is lost.
    pub loss: f64,
    lease: Lease,
    /// Cut links: from and to.
    pub cuts: Vec<(usize, usize)>,
    /// Frames that wait for a cut link, with when they began to wait. They are not lost.
    held_back: Vec<((usize, usize), u64, Event)>,
    arrivals: HashMap<(usize, usize), u64>,
    events: BTreeMap<(u64, u64), Event>,
    scheduled: u64,
    /// What the keepers agree on.
    pub roster: Roster,
    /// Leaders by term, each with its clock and its next wake-up. The last is the current leader;
    /// the others were deposed and do not know it yet.
    leaders: BTreeMap<Term, (Leader, Clock, u64)>,
    term: Term,
    isolated: Option<Isolated>,
    rules: Rules,
    tuning: Tuning,
    /// The keys of the leader that is elected in a term.
    pub keys: fn(Term) -> HashKeys,
    choice: Choice,
    names: Vec<NodeName>,
    /// Incarnations that said that they leave.
    left: BTreeSet<Incarnation>,
    /// What was counted so far.
    pub counts: Counts,
    /// What went wrong first. Nothing happens after that.
    pub failure: Option<String>,
    journal: Journal,
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("World").finish_non_exhaustive()
    }
}

/// What happened to the members of a cluster.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counts {
    /// Members that were removed although they had not left.
    pub evictions: u64,
    /// Members that left in an orderly way.
    pub departures: u64,
    /// Messages that refuse a node because it cannot reach a member.
    pub barred: u64,
}

impl World {
    /// A cluster whose nodes have just started.
    ///
    /// # Panics
    /// If a node would not take [the rules](rules).
    pub fn new(choice: Choice, nodes: usize, turns: u32, seed: u64) -> Self {
        Self::with_lease(LEASE, choice, nodes, turns, seed)
    }

    /// A cluster with this lease.
    ///
    /// # Panics
    /// As [`new`](World::new).
    pub fn with_lease(lease: Lease, choice: Choice, nodes: usize, turns: u32, seed: u64) -> Self {
        Self::tuned(Tuning::default(), lease, choice, nodes, turns, seed)
    }

    /// A cluster with this lease, and with changes for tests.
    ///
    /// # Panics
    /// As [`new`](World::new).
    pub fn tuned(
        tuning: Tuning,
        lease: Lease,
        choice: Choice,
        nodes: usize,
        turns: u32,
        seed: u64,
    ) -> Self {
        let rules = rules(choice, nodes, turns).expect("the caller has checked the rules");
        let mut world = World {
            now: 0,
            rng: ChaCha8Rng::seed_from_u64(seed),
            nodes: Vec::new(),
            referee: Referee::default(),
            clocks_keep_the_margin: true,
            slowest: 5_000,
            loss: 0.02,
            lease,
            cuts: Vec::new(),
            held_back: Vec::new(),
            arrivals: HashMap::new(),
            events: BTreeMap::new(),
            scheduled: 0,
            roster: Roster::default(),
            leaders: BTreeMap::new(),
            term: Term(0),
            isolated: None,
            rules,
            tuning,
            keys: |term| HashKeys::new(u128::from(term.0).to_le_bytes()),
            choice,
            names: names(nodes),
            left: BTreeSet::new(),
            counts: Counts::default(),
            failure: None,
            journal: Journal::default(),
        };
        for index in 0..nodes {
            let node = Node {
                participant: None,
                clock: world.some_clock(lease.drift),
                members: Vec::new(),
                starts: 0,
                paused: false,
                backlog: Vec::new(),
                wakes_at: None,
                to_keepers_cut: false,
                from_keepers_cut: false,
                away: 0,
                clients: Clients::default(),
            };
            world.nodes.push(node);
            world.start(index);
            world.think(index);
        }
        world.elect();
        world
    }

    /// A clock that differs from every other one by at most this many percent.
    fn some_clock(&mut self, percent: u32) -> Clock {
        // A clock at one end of the range runs at (1 - x) / (1 + x) of one at the other end, which
        // is exactly the margin: 1 - percent.
        let most = i64::from(percent) * 1_000_000 / (200 - i64::from(percent));
        let faster_by = match self.rng.random_range(0..4) {
            0 => most,
            1 => -most,
            _ => self.rng.random_range(-most..=most),
        };
        Clock { faster_by }
    }

    /// Notes from now on what happens.
    pub fn record(&mut self) {
        self.journal = Journal::since(Moment::default());
    }

    /// Removes and returns the lines about what happened.
    pub fn take_lines(&mut self) -> Vec<String> {
        self.journal.take()
    }

    /// Adds a line.
    pub fn note(&mut self, line: impl FnOnce() -> String) {
        self.journal.note(moment(self.now), line);
    }

    fn fail(&mut self, reason: String) {
        self.note(|| format!("FAULT {reason}"));
        self.failure.get_or_insert(reason);
    }

    /// The time by this node's clock.
    pub fn local(&self, node: usize) -> Moment {
        self.nodes[node].clock.at(self.now)
    }

    fn schedule(&mut self, at: u64, event: Event) {
        self.scheduled += 1;
        self.events
            .insert((at.max(self.now), self.scheduled), event);
    }

    fn some_delay(&mut self) -> u64 {
        let most = self.slowest;
        match self.rng.random_range(0..10) {
            0 => self.rng.random_range(0..=most * 20),
            _ => self.rng.random_range(50..=most),
        }
    }

    /// Schedules the next action of a node's client.
    pub fn think(&mut self, node: usize) {
        let pause = self.rng.random_range(0..400_000);
        self.schedule(self.now + pause, Event::Client(node));
    }

    /// Runs until this time, or until something goes wrong.
    pub fn run_until(&mut self, end: u64) {
        while self.step(end) {}
        if self.failure.is_none() {
            self.now = end;
        }
    }

    /// Handles the next event. Returns false if there is none before this time, or if something
    /// went wrong.
    pub fn step(&mut self, end: u64) -> bool {
        let next = self.events.first_key_value();
        let next = next.filter(|_| self.failure.is_none());
        let Some((&(at, number), _)) = next.filter(|((at, _), _)| *at <= end) else {
            return false;
        };
        let event = self
            .events
            .remove(&(at, number))
            .expect("the first action is present");
        self.now = at;
        self.happen(event);
        true
    }

    fn happen(&mut self, event: Event) {
        let whom = match &event {
            Event::Frame { to, .. } | Event::ToMember { to, .. } => Some(index_of(to)),
            Event::Wake(node) | Event::Client(node) => Some(*node),
            _ => None,
        };
        if let Some(node) = whom.filter(|&node| self.nodes[node].paused) {
            self.nodes[node].backlog.push(event);
            return;
        }
        match event {
            Event::Frame { from, to, bytes } => {
                let node = index_of(&to);
                if self.is_alive(&to) {
                    let received = self.with(node, |participant, now, out| {
                        participant.receive(now, from.incarnation, &bytes, out)
                    });
                    if let Some(Err(error)) = received {
                        let (name, from) = (&self.names[node], from.name);
                        self.fail(format!("{name} refuses a message from {from}: {error}"));
                    }
                }
            }
            Event::ToMember { to, message } => {
                if self.is_alive(&to) {
                    self.counts.barred += u64::from(matches!(message, ToMember::Barred { .. }));
                    self.with(index_of(&to), |participant, now, out| {
                        participant.receive_from_leader(now, message, out);
                    });
                }
            }
            Event::Wake(node) => {
                self.nodes[node].wakes_at = None;
                let unreached = self.unreached(node);
                self.with(node, |participant, now, out| {
                    participant.miss(unreached);
                    participant.tick(now, out);
                });
            }
            Event::Client(node) => crate::epochs::clients::act(self, node),
            Event::ToKeepers { from, message } => {
                let term = self.leader_asked_by(index_of(&from));
                self.with_leader(term, |leader, roster, now, out| {
                    leader.receive(now, roster, &from, message, out);
                });
            }
            Event::WakeLeader(term) => {
                self.with_leader(term, |leader, roster, now, out| {
                    leader.tick(now, roster, out)
                });
            }
            Event::Commit { term, command } => self.commit(term, command),
            Event::Confirm { term } if term == self.term => {
                let delay = self.some_delay();
                self.schedule(self.now + delay, Event::Confirmed { term });
            }
            // A deposed leader finds out that it is deposed.
            Event::Confirm { term } => self.depose(term, Event::Confirm { term }),
            Event::Confirmed { term } => {
                self.with_leader(term, |leader, roster, now, out| {
                    leader.confirmed(now, roster, out);
                });
            }
        }
    }

    fn commit(&mut self, term: Term, command: Command) {
        if term != self.term {
            self.depose(term, Event::Commit { term, command });
            return;
        }
        let before = self.roster.begun().map(|change| change.members.clone());
        let line = describe::command(&command);
        if self.roster.apply(command) == Applied::Refused {
            return self.fail(format!("the keepers refuse a command: {line}"));
        }
        self.note(|| format!("the keepers commit: {line}"));
        let members = self.roster.begun().map(|change| &change.members);
        let is_gone = |member: &&Member| !members.is_some_and(|members| members.contains(member));
        for member in before.iter().flatten().filter(is_gone) {
            match self.left.contains(&member.incarnation) {
                true => self.counts.departures += 1,
                false => self.counts.evictions += 1,
            }
        }
        self.with_leader(term, |leader, roster, now, out| {
            leader.applied(now, roster, out);
        });
    }

    /// Incarnations of members for which a node's messages have been pending for too long.
    fn unreached(&self, node: usize) -> Vec<Incarnation> {
        let limit = self.lease.apart_after().as_micros() as u64;
        let waiting = self.held_back.iter().filter_map(|(link, since, event)| {
            let Event::Frame { from, to, .. } = event else {
                return None;
            };
            let is_long = self.now - since >= limit;
            let is_late = link.0 == node && is_long && self.is_alive(from);
            is_late.then_some(to.incarnation)
        });
        let incarnations: BTreeSet<_> = waiting.collect();
        incarnations.into_iter().collect()
    }

    fn is_alive(&self, member: &Member) -> bool {
        let participant = self.nodes[index_of(member)].participant.as_ref();
        participant.is_some_and(|participant| participant.me() == member)
    }

    /// Number of leaders so far.
    pub fn leaders_elected(&self) -> u64 {
        self.term.0
    }

    /// Whether all nodes are members.
    pub fn are_all_members(&self) -> bool {
        let is_member = |member_state: &Option<MemberState>| {
            matches!(member_state, Some(MemberState::Member(_)))
        };
        self.member_states().iter().all(is_member)
    }

    /// The states of all nodes, for failure messages.
    pub fn member_states(&self) -> Vec<Option<MemberState>> {
        let nodes = self.nodes.iter();
        nodes
            .map(|node| {
                node.participant
                    .as_ref()
                    .map(|participant| participant.member_state())
            })
            .collect()
    }
}
