//! A small cluster as one value: the enabled actions, and their effects.

mod effects;

use std::collections::BTreeMap;
use std::time::Duration;

use soloist_algorithms::Choice;
use soloist_api::LockName;
use soloist_api::Moment;
use soloist_core::epochs::leader::Leader;
use soloist_core::epochs::lease::Lease;
use soloist_core::epochs::member::{MemberState, Participant};
use soloist_core::epochs::roster::{Member, Roster};
use soloist_core::locks::Ask;

use crate::budget::Budget;
use crate::setup::{index_of, member, rules, table};
use crate::under_way::{Parcel, Shared, UnderWay, Way, fingerprint};
use crate::witness::{Violation, Witness};

pub const STEP: Duration = Duration::from_secs(1);

/// Clocks run at the same rate here. Drift is simulated elsewhere.
pub const LEASE: Lease = Lease {
    length: Duration::from_secs(3),
    drift: 0,
};

/// What can happen next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    Request(usize),
    Release(usize),
    /// The next message on this channel arrives.
    Arrive(Way),
    Step,
    Crash(usize),
    /// Messages between the node and the keepers are lost from now on.
    Cut(usize),
    Heal,
    /// Its clock no longer wakes it up.
    Sleep(usize),
    /// Its next renewal, or the next answer to one, arrives at any time.
    Slow(usize, Renewal),
    /// All nodes turn to the new leader. One of them may not learn of it until the old leader does.
    Elect(Option<usize>),
    Suspect(usize),
    /// The first cannot reach the second.
    Miss(usize, usize),
    /// It is told to stop.
    Stop(usize),
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Renewal {
    Asked,
    Granted,
}

/// A leader. A deposed leader keeps the roster from then, and learns nothing new.
#[derive(Clone, Hash)]
struct Membership {
    leader: Leader,
    last: Option<Roster>,
}

#[derive(Clone, Hash)]
pub struct State {
    steps: u32,
    budget: Budget,
    nodes: Vec<Option<Shared<Participant>>>,
    members: Vec<Shared<Vec<Member>>>,
    under_way: UnderWay,
    roster: Shared<Roster>,
    term: u64,
    offices: BTreeMap<u64, Shared<Membership>>,
    /// The term of the leader that each node is connected to.
    speaks_with: Vec<u64>,
    cut: Option<usize>,
    asleep: Option<usize>,
    slow: Option<(usize, Renewal)>,
    missed: Option<(usize, usize)>,
    witness: Witness,
}

fn lock() -> LockName {
    LockName::new("a").expect("a name")
}

impl State {
    /// All nodes are members of the first epoch, and there are no requests.
    pub fn new(choice: Choice, nodes: usize, budget: Budget) -> Self {
        let rules = rules(choice, nodes, 1);
        let now = Moment::default();
        let node = |index| Participant::new(member(index, 1), table(&rules, index, 1), LEASE, now);
        let mut state = State {
            steps: 0,
            budget: Budget {
                steps: 20,
                elections: 0,
                ..budget
            },
            nodes: (0..nodes)
                .map(|index| Some(Shared::new(node(index))))
                .collect(),
            members: vec![Shared::new(Vec::new()); nodes],
            under_way: UnderWay::default(),
            roster: Shared::new(Roster::default()),
            term: 0,
            offices: BTreeMap::new(),
            speaks_with: vec![1; nodes],
            cut: None,
            asleep: None,
            slow: None,
            missed: None,
            witness: Witness::new(nodes, budget.is_gentle()),
        };
        state.elect();
        while !(0..nodes).all(|node| state.is_member(node)) || state.roster.is_changing() {
            state.settle().expect("nothing goes wrong without faults");
        }
        state.budget = budget;
        state
    }

    fn now(&self) -> Moment {
        Moment::default() + STEP * self.steps
    }

    pub fn actions(&self) -> Vec<Action> {
        let Budget {
            steps,
            requests,
            crashes,
            cuts,
            heals,
            sleeps,
            slow,
            elections,
            suspicions,
            complaints,
            stops,
        } = self.budget;
        let alive = (0..self.nodes.len()).filter(|&node| self.nodes[node].is_some());
        let mut actions = Vec::new();
        for node in alive {
            if requests > 0 && node < 2 && self.witness.is_idle(node) && !self.drains(node) {
                actions.push(Action::Request(node));
            }
            if self.witness.hold(node).is_some() {
                actions.push(Action::Release(node));
            }
            if stops > 0 && node == 0 {
                actions.push(Action::Stop(node));
            }
            if crashes > 0 {
                actions.push(Action::Crash(node));
            }
            if suspicions > 0 && node == 0 {
                actions.push(Action::Suspect(node));
            }
            if cuts > 0 && self.cut.is_none() {
                actions.push(Action::Cut(node));
            }
            if sleeps > 0 && node == 0 {
                actions.push(Action::Sleep(node));
            }
            if slow > 0 && self.slow.is_none() && node == 0 {
                let slow = |renewal| Action::Slow(node, renewal);
                actions.extend([Renewal::Asked, Renewal::Granted].map(slow));
            }
        }
        if complaints > 0 && self.missed.is_none() {
            actions.push(Action::Miss(0, 1));
        }
        if heals > 0 && self.cut.is_some() {
            actions.push(Action::Heal);
        }
        actions.extend(self.under_way.ways().map(Action::Arrive));
        if steps > 0 {
            actions.push(Action::Step);
        }
        if elections > 0 {
            actions.extend([None, Some(0), Some(1)].map(Action::Elect));
        }
        actions
    }

    pub fn apply(&mut self, action: Action) -> Result<(), Violation> {
        self.act(action)?;
        self.witness.look(self.now())
    }

    fn act(&mut self, action: Action) -> Result<(), Violation> {
        match action {
            Action::Request(node) => {
                self.budget.requests -= 1;
                self.witness.asks(node);
                self.with(node, |participant, now, out| {
                    let ask = Ask::new("somebody");
                    let asked = participant.acquire(now, &lock(), ask, out);
                    asked.map(drop).map_err(|error| error.to_string())
                })
            }
            Action::Release(node) => {
                let hold = self.witness.hold(node).expect("it is held");
                // It may be lost by now.
                self.with(node, |participant, now, out| {
                    let _ = participant.release(now, hold, out);
                    Ok(())
                })
            }
            Action::Arrive(way) => {
                let parcel = self.under_way.take(way).expect("something is there");
                self.arrive(way, Parcel::clone(&parcel))
            }
            Action::Step => {
                self.budget.steps -= 1;
                self.step()
            }
            Action::Crash(node) => {
                self.budget.crashes -= 1;
                self.nodes[node] = None;
                self.witness.crashes(node);
                self.drop_what_leads_nowhere();
                Ok(())
            }
            Action::Cut(node) => {
                self.budget.cuts -= 1;
                self.cut = Some(node);
                self.witness.may_lose(node);
                Ok(())
            }
            Action::Heal => {
                self.budget.heals -= 1;
                self.cut = None;
                Ok(())
            }
            Action::Sleep(node) => {
                self.budget.sleeps -= 1;
                self.asleep = Some(node);
                self.witness.may_lose(node);
                Ok(())
            }
            Action::Slow(node, renewal) => {
                self.budget.slow -= 1;
                self.slow = Some((node, renewal));
                self.witness.may_lose(node);
                Ok(())
            }
            Action::Suspect(node) => {
                self.budget.suspicions -= 1;
                self.with(node, |participant, _, out| {
                    participant.suspect(out);
                    Ok(())
                })
            }
            Action::Miss(node, other) => {
                self.budget.complaints -= 1;
                self.witness.may_lose(node);
                self.witness.may_lose(other);
                self.missed = Some((node, other));
                Ok(())
            }
            Action::Stop(node) => {
                self.budget.stops -= 1;
                self.witness.may_lose(node);
                self.with(node, |participant, now, out| {
                    participant.drain(now, out);
                    Ok(())
                })
            }
            Action::Elect(astray) => {
                self.budget.elections -= 1;
                self.elect();
                let mut nodes = 0..self.nodes.len();
                nodes.try_for_each(|node| match astray == Some(node) {
                    true => Ok(()),
                    false => self.turn(node),
                })
            }
        }
    }

    /// Checks that without further faults all waiters are served, and all later requests too.
    pub fn completes(mut self) -> Result<(), Violation> {
        self.cut = None;
        self.asleep = None;
        self.slow = None;
        self.missed = None;
        self.budget.elections = 0;
        for node in 0..self.nodes.len() {
            self.turn(node)?;
        }
        self.serve_all()?;
        self.budget.requests = self.nodes.len() as u8;
        for node in 0..self.nodes.len() {
            if self.nodes[node].is_some() && !self.drains(node) {
                self.apply(Action::Request(node))?;
            }
        }
        self.serve_all()
    }

    fn serve_all(&mut self) -> Result<(), Violation> {
        for _ in 0..40 {
            self.budget.steps = 1;
            self.settle()?;
            for node in 0..self.nodes.len() {
                if self.witness.hold(node).is_some() {
                    self.apply(Action::Release(node))?;
                }
            }
            if self.witness.is_content() {
                return Ok(());
            }
        }
        Err(format!("somebody waits for ever: {:?}", self.witness))
    }

    /// Delivers everything in flight, then advances time by a step.
    fn settle(&mut self) -> Result<(), Violation> {
        loop {
            let next = self.under_way.ways().next();
            match next {
                Some(way) => self.apply(Action::Arrive(way))?,
                None => return self.apply(Action::Step),
            }
        }
    }

    fn elect(&mut self) {
        if let Some(office) = self.offices.get_mut(&self.term) {
            let last = Some(Roster::clone(&self.roster));
            office.change(|office| office.last = last);
        }
        self.term += 1;
        let office = Membership {
            leader: Leader::elected(LEASE, self.now(), &self.roster),
            last: None,
        };
        self.offices.insert(self.term, Shared::new(office));
    }

    fn step(&mut self) -> Result<(), Violation> {
        self.steps += 1;
        self.witness.forget(self.now());
        let awake = (0..self.nodes.len()).filter(|node| self.asleep != Some(*node));
        for node in awake.collect::<Vec<_>>() {
            let unreached = self.unreached(node);
            self.with(node, |participant, now, out| {
                participant.miss(unreached);
                participant.tick(now, out);
                Ok(())
            })?;
        }
        for term in self.offices.keys().copied().collect::<Vec<_>>() {
            self.with_leader(term, |leader, roster, now, out| {
                leader.tick(now, roster, out)
            })?;
        }
        Ok(())
    }

    /// Incarnations of other members that it reports as unreachable.
    fn unreached(&self, node: usize) -> Vec<u64> {
        let missed = self.missed.filter(|(from, _)| *from == node);
        let members = self.members[node].iter();
        let lives = members.filter(|member| missed == Some((node, index_of(member))));
        lives.map(|member| member.incarnation).collect()
    }

    fn is_member(&self, node: usize) -> bool {
        let participant = self.nodes[node].as_ref();
        participant.is_some_and(|one| matches!(one.member_state(), MemberState::Member(_)))
    }

    fn is_alive(&self, member: &Member) -> bool {
        let node = self.nodes[index_of(member)].as_ref();
        node.is_some_and(|participant| participant.me() == member)
    }

    /// A leader finds out that it was deposed, and so do the nodes that are connected to it.
    fn depose(&mut self, term: u64) -> Result<(), Violation> {
        self.offices.remove(&term);
        self.drop_what_leads_nowhere();
        let mut nodes = 0..self.nodes.len();
        nodes.try_for_each(|node| self.turn(node))
    }

    /// Connects a node to the current leader.
    fn turn(&mut self, node: usize) -> Result<(), Violation> {
        if self.speaks_with[node] == self.term {
            return Ok(());
        }
        self.speaks_with[node] = self.term;
        self.drop_what_leads_nowhere();
        self.with(node, |participant, now, out| {
            participant.find_leader(now, out);
            Ok(())
        })
    }

    fn drains(&self, node: usize) -> bool {
        let participant = self.nodes[node].as_ref();
        participant.is_some_and(|one| one.is_draining())
    }

    /// Whether it may grant the lock.
    fn has_lease(&self, node: usize) -> bool {
        let participant = self.nodes[node].as_ref();
        let until = participant.and_then(|participant| participant.valid_until());
        until.is_some_and(|until| until > self.now())
    }

    /// Whether the state is quiescent: time is over and nothing is in flight. Every path passes
    /// through such a state, whatever else happens.
    pub fn is_at_rest(&self) -> bool {
        self.budget.steps == 0 && self.under_way.ways().next().is_none()
    }

    pub fn fingerprint(&self) -> u128 {
        fingerprint(self)
    }
}
