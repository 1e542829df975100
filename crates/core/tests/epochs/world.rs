//! The simulated world: nodes, links that keep order but have random delays, keepers whose leaders
//! change, and one clock for all.

mod faults;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use soloist_algorithms::Choice;
use soloist_api::Moment;
use soloist_core::epochs::leader::{Leader, LeaderEffects};
use soloist_core::epochs::lease::Lease;
use soloist_core::epochs::member::{MemberEffects, MemberState, Participant};
use soloist_core::epochs::message::{ToKeepers, ToMember};
use soloist_core::epochs::roster::{Applied, Command, Member, Roster};
use soloist_core::locks::LockEvent;
use soloist_core::rules::Rules;

use crate::clients::Clients;
use crate::referee::{Clock, Entry, Referee};
use crate::setup::{index_of, rules};

use faults::Isolated;

pub const LEASE: Lease = Lease {
    length: Duration::from_millis(3000),
    drift: 5,
};

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
    WakeLeader(u64),
    Commit {
        term: u64,
        command: Command,
    },
    Confirm {
        term: u64,
    },
    Confirmed {
        term: u64,
    },
    Client(usize),
}

pub struct Node {
    /// `None` while it is down.
    pub participant: Option<Participant>,
    pub clock: Clock,
    members: Vec<Member>,
    lives: u64,
    /// While paused, its events go to the backlog.
    paused: bool,
    backlog: Vec<Event>,
    wakes_at: Option<u64>,
    pub to_keepers_cut: bool,
    pub from_keepers_cut: bool,
    /// Additional delay of each message between it and the keepers, in microseconds.
    pub away: u64,
    pub clients: Clients,
}

pub struct World {
    pub now: u64,
    pub rng: ChaCha8Rng,
    pub nodes: Vec<Node>,
    pub referee: Referee,
    pub clocks_keep_the_margin: bool,
    pub slowest: u64,
    /// Fraction of messages between members and keepers that is lost.
    pub loss: f64,
    lease: Lease,
    /// Number of `Barred` messages.
    pub barred: usize,
    /// Cut links: from and to.
    pub cuts: Vec<(usize, usize)>,
    /// Frames that wait for a cut link, with when they began to wait. They are not lost.
    held_back: Vec<((usize, usize), u64, Event)>,
    arrivals: HashMap<(usize, usize), u64>,
    events: BTreeMap<(u64, u64), Event>,
    scheduled: u64,
    pub roster: Roster,
    /// Leaders by term, each with its clock and its next wake-up. The last is the current leader;
    /// the others were deposed and do not know it yet.
    leaders: BTreeMap<u64, (Leader, Clock, u64)>,
    term: u64,
    isolated: Option<Isolated>,
    rules: Rules,
}

impl World {
    pub fn new(choice: Choice, nodes: usize, turns: u32, seed: u64) -> Self {
        Self::with_lease(LEASE, choice, nodes, turns, seed)
    }

    pub fn with_lease(lease: Lease, choice: Choice, nodes: usize, turns: u32, seed: u64) -> Self {
        let rules = rules(choice, nodes, turns);
        let mut world = World {
            now: 0,
            rng: ChaCha8Rng::seed_from_u64(seed),
            nodes: Vec::new(),
            referee: Referee::default(),
            clocks_keep_the_margin: true,
            slowest: 5_000,
            loss: 0.02,
            lease,
            barred: 0,
            cuts: Vec::new(),
            held_back: Vec::new(),
            arrivals: HashMap::new(),
            events: BTreeMap::new(),
            scheduled: 0,
            roster: Roster::default(),
            leaders: BTreeMap::new(),
            term: 0,
            isolated: None,
            rules,
        };
        for index in 0..nodes {
            let node = Node {
                participant: None,
                clock: world.some_clock(lease.drift),
                members: Vec::new(),
                lives: 0,
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

    /// Runs until this time.
    pub fn run_until(&mut self, end: u64) {
        while self.step(end) {}
        self.now = end;
    }

    /// Handles the next event. Returns false if there is none before this time.
    pub fn step(&mut self, end: u64) -> bool {
        let next = self.events.first_key_value();
        let Some((&(at, number), _)) = next.filter(|((at, _), _)| *at <= end) else {
            return false;
        };
        let event = self.events.remove(&(at, number)).expect("it is the first");
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
                    self.with(node, |participant, now, out| {
                        let received = participant.receive(now, from.incarnation, &bytes, out);
                        received.expect("no correct member sends this");
                    });
                }
            }
            Event::ToMember { to, message } => {
                if self.is_alive(&to) {
                    self.barred += usize::from(matches!(message, ToMember::Barred { .. }));
                    self.with(index_of(&to), |participant, now, out| {
                        participant.hear(now, message, out);
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
            Event::Client(node) => crate::clients::act(self, node),
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

    fn commit(&mut self, term: u64, command: Command) {
        if term != self.term {
            self.depose(term, Event::Commit { term, command });
            return;
        }
        match self.roster.apply(command) {
            Applied::Done => self.with_leader(term, |leader, roster, now, out| {
                leader.applied(now, roster, out);
            }),
            Applied::Refused => panic!("the only leader's command does not fit"),
        }
    }

    /// Incarnations of members for which a node's messages have been pending for too long.
    fn unreached(&self, node: usize) -> Vec<u64> {
        let limit = self.lease.apart_after().as_micros() as u64;
        let waiting = self.held_back.iter().filter_map(|(link, since, event)| {
            let Event::Frame { from, to, .. } = event else {
                return None;
            };
            let is_long = self.now - since >= limit;
            let is_late = link.0 == node && is_long && self.is_alive(from);
            is_late.then_some(to.incarnation)
        });
        let lives: BTreeSet<_> = waiting.collect();
        lives.into_iter().collect()
    }

    fn is_alive(&self, member: &Member) -> bool {
        let participant = self.nodes[index_of(member)].participant.as_ref();
        participant.is_some_and(|participant| participant.me() == member)
    }

    /// Lets a node handle an event, and carries out the effects.
    pub fn with<T>(
        &mut self,
        index: usize,
        event: impl FnOnce(&mut Participant, Moment, &mut MemberEffects) -> T,
    ) -> Option<T> {
        let now = self.local(index);
        let mut out = MemberEffects::default();
        let before = self.nodes[index].participant.as_ref()?.me().clone();
        let result = event(self.nodes[index].participant.as_mut()?, now, &mut out);
        if out.lapsed {
            self.nodes[index].members.clear();
            self.forget_who_is_gone(index);
        }
        if let Some(change) = out.links.take() {
            self.nodes[index].members = change.members;
            self.forget_who_is_gone(index);
        }
        let sends: Vec<_> = out
            .locks
            .sends()
            .map(|(to, bytes)| (to.index(), bytes.to_vec()))
            .collect();
        for (to, bytes) in sends {
            let to = self.nodes[index].members[to].clone();
            let link = (index, index_of(&to));
            let from = before.clone();
            self.schedule_frame(link, Event::Frame { from, to, bytes });
        }
        for event in std::mem::take(&mut out.locks.events) {
            self.note(index, &event);
            self.nodes[index].clients.note(&event);
        }
        for message in out.keepers {
            if !self.nodes[index].to_keepers_cut && !self.rng.random_bool(self.loss) {
                let from = self.nodes[index].participant.as_ref()?.me().clone();
                let delay = self.some_delay() + self.nodes[index].away;
                self.schedule(self.now + delay, Event::ToKeepers { from, message });
            }
        }
        let participant = self.nodes[index].participant.as_ref()?;
        self.referee
            .extend(index, |hold| participant.promise(hold).ok().flatten());
        if participant.has_left() {
            self.crash(index);
            return Some(result);
        }
        let next = participant.next_deadline();
        if let Some(next) = next {
            let left = next.since(self.local(index));
            self.wake(index, self.now + left.as_micros() as u64 * 21 / 20 + 1000);
        }
        Some(result)
    }

    fn wake(&mut self, index: usize, at: u64) {
        if self.nodes[index].wakes_at.is_none_or(|known| at < known) {
            self.nodes[index].wakes_at = Some(at);
            self.schedule(at, Event::Wake(index));
        }
    }

    fn schedule_frame(&mut self, link: (usize, usize), event: Event) {
        let mut held_back = self.held_back.iter();
        if self.cuts.contains(&link) || held_back.any(|(other, ..)| *other == link) {
            self.held_back.push((link, self.now, event));
            return;
        }
        let delay = self.some_delay();
        let last = self.arrivals.entry(link).or_default();
        *last = (self.now + delay).max(*last + 1);
        let at = *last;
        self.schedule(at, event);
    }

    fn note(&mut self, index: usize, event: &LockEvent) {
        match event {
            LockEvent::Granted { grant, .. } => {
                let (nodes, now) = (&self.nodes, self.now);
                let participant = nodes[index].participant.as_ref();
                let promise = participant.and_then(|one| one.promise(grant.hold).ok()?);
                let entry = Entry {
                    node: index,
                    hold: grant.hold,
                    promised: promise.unwrap_or_default(),
                };
                let is_valid = |entry: &Entry| entry.promised > nodes[entry.node].clock.at(now);
                let strict = self.clocks_keep_the_margin;
                self.referee
                    .enter(&grant.lock, grant.fence, entry, is_valid, strict);
            }
            // A client whose hold was lost may not have heard of it.
            LockEvent::Ended {
                hold, lock, end, ..
            } if !end.is_loss() => self.referee.leave(lock, *hold),
            _ => {}
        }
    }

    fn with_leader(
        &mut self,
        term: u64,
        event: impl FnOnce(&mut Leader, &Roster, Moment, &mut LeaderEffects),
    ) {
        let Some((leader, clock, wakes_at)) = self.leaders.get_mut(&term) else {
            return;
        };
        let mut out = LeaderEffects::default();
        let now = clock.at(self.now);
        let isolated = self.isolated.as_ref().filter(|one| one.term == term);
        let roster = isolated.map_or(&self.roster, |one| &one.roster);
        event(leader, roster, now, &mut out);
        if let Some(next) = leader.next_deadline(now) {
            let left = next.since(now).as_micros() as u64 * 21 / 20 + 1;
            let at = self.now + left;
            if *wakes_at <= self.now || at < *wakes_at {
                *wakes_at = at;
                self.schedule(at, Event::WakeLeader(term));
            }
        }
        for (to, message) in out.sends {
            let node = &self.nodes[index_of(&to)];
            let (cut, away) = (node.from_keepers_cut, node.away);
            if !cut && !self.rng.random_bool(self.loss) {
                let delay = self.some_delay() + away;
                self.schedule(self.now + delay, Event::ToMember { to, message });
            }
        }
        if let Some(command) = out.propose {
            let delay = self.some_delay();
            self.schedule(self.now + delay, Event::Commit { term, command });
        }
        if out.confirm {
            let delay = self.some_delay();
            self.schedule(self.now + delay, Event::Confirm { term });
        }
    }

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
