//! A small cluster as one value: what can happen next, and what comes of it.

use std::collections::BTreeMap;
use std::time::Duration;

use soloist_algorithms::Choice;
use soloist_node::Moment;
use soloist_node::epochs::leader::{Leader, LeaderEffects};
use soloist_node::epochs::lease::Lease;
use soloist_node::epochs::member::{MemberEffects, Participant, Standing};
use soloist_node::epochs::message::{ToKeepers, ToMember};
use soloist_node::epochs::roster::{Applied, Command, Member, Roster};
use soloist_node::locks::{Ask, LockName};

use crate::budget::Budget;
use crate::setup::{index_of, member, rules, table};
use crate::under_way::{Parcel, Shared, UnderWay, Way, fingerprint};
use crate::witness::{Violation, Witness};

pub const STEP: Duration = Duration::from_secs(1);

/// Clocks run alike here: what margins are for is simulated elsewhere.
pub const LEASE: Lease = Lease {
    length: Duration::from_secs(3),
    drift: 0,
};

/// What can happen next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    Request(usize),
    Release(usize),
    /// The next of what is on this way arrives.
    Arrive(Way),
    Step,
    Crash(usize),
    Cut(usize),
    Slow(usize),
    /// All turn to the leader that is elected; but one, perhaps, does not hear of it until the leader before does.
    Elect(Option<usize>),
    Suspect(usize),
}

/// A leader, with what it knows of the roster: one that was deposed learns nothing new.
#[derive(Clone, Hash)]
struct Office {
    leader: Leader,
    roster: Roster,
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
    offices: BTreeMap<u64, Shared<Office>>,
    /// The term of the leader that each node speaks with.
    speaks_with: Vec<u64>,
    /// Its words do not reach the keepers, nor theirs it.
    cut: Option<usize>,
    /// The next renewal of this node, or the next answer to it, is under way for any time.
    slow: Option<usize>,
    witness: Witness,
}

fn lock() -> LockName {
    LockName::new("a").expect("a name")
}

impl State {
    /// All nodes are members of the first epoch, and nobody wants anything.
    pub fn new(choice: Choice, nodes: usize, budget: Budget) -> Self {
        let rules = rules(choice, nodes, 1);
        let now = Moment::default();
        let node = |index| Participant::new(member(index, 1), table(&rules, index, 1), LEASE, now);
        let mut state = State {
            steps: 0,
            budget: Budget {
                steps: 20,
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
            slow: None,
            witness: Witness::new(nodes, budget.is_gentle()),
        };
        state.elect();
        let is_member = |node: &Option<Shared<Participant>>| {
            let standing = node.as_ref().map(|node| node.standing());
            matches!(standing, Some(Standing::Member(_)))
        };
        while !state.nodes.iter().all(is_member) || state.roster.is_changing() {
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
            slow,
            elections,
            suspicions,
        } = self.budget;
        let alive = (0..self.nodes.len()).filter(|&node| self.nodes[node].is_some());
        let mut actions = Vec::new();
        for node in alive {
            if requests > 0 && node < 2 && self.witness.is_idle(node) {
                actions.push(Action::Request(node));
            }
            if self.witness.hold(node).is_some() {
                actions.push(Action::Release(node));
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
            if slow > 0 && self.slow.is_none() && node == 0 {
                actions.push(Action::Slow(node));
            }
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
        match action {
            Action::Request(node) => {
                self.budget.requests -= 1;
                self.witness.asks(node);
                self.with(node, |participant, now, out| {
                    let ask = Ask {
                        owner: "somebody".into(),
                        ttl: None,
                        until: None,
                    };
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
                Ok(())
            }
            Action::Slow(node) => {
                self.budget.slow -= 1;
                self.slow = Some(node);
                Ok(())
            }
            Action::Suspect(node) => {
                self.budget.suspicions -= 1;
                self.with(node, |participant, _, out| {
                    participant.suspect(out);
                    Ok(())
                })
            }
            Action::Elect(astray) => {
                self.budget.elections -= 1;
                self.elect();
                for node in 0..self.nodes.len() {
                    if astray != Some(node) {
                        self.turn(node);
                    }
                }
                Ok(())
            }
        }
    }

    /// From here on nothing goes wrong: everybody who waits must be served.
    pub fn completes(mut self) -> Result<(), Violation> {
        self.cut = None;
        self.slow = None;
        (0..self.nodes.len()).for_each(|node| self.turn(node));
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

    /// All that is under way arrives, and a step of time goes by.
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
        self.term += 1;
        let office = Office {
            leader: Leader::elected(LEASE, self.now(), &self.roster),
            roster: Roster::clone(&self.roster),
        };
        self.offices.insert(self.term, Shared::new(office));
    }

    fn step(&mut self) -> Result<(), Violation> {
        self.steps += 1;
        for node in 0..self.nodes.len() {
            self.with(node, |participant, now, out| {
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

    fn is_alive(&self, member: &Member) -> bool {
        let node = self.nodes[index_of(member)].as_ref();
        node.is_some_and(|participant| participant.me() == member)
    }

    fn arrive(&mut self, way: Way, parcel: Parcel) -> Result<(), Violation> {
        match (way, parcel) {
            (Way::Link { to: index, .. }, Parcel::Frame { from, to, bytes }) => {
                if !self.is_alive(&to) {
                    return Ok(());
                }
                self.with(index, |participant, now, out| {
                    let received = participant.receive(now, from.incarnation, &bytes, out);
                    received.map_err(|error| error.to_string())
                })
            }
            (Way::ToLeader { term, .. }, Parcel::ToKeepers(from, message)) => {
                self.with_leader(term, |leader, roster, now, out| {
                    leader.receive(now, roster, &from, message, out);
                })
            }
            (Way::ToMember { to: index, .. }, Parcel::ToMember(to, message)) => {
                if !self.is_alive(&to) {
                    return Ok(());
                }
                self.with(index, |participant, now, out| {
                    participant.hear(now, message, out);
                    Ok(())
                })
            }
            (Way::Commit { term }, Parcel::Commit(command)) => self.commit(term, command),
            (Way::Confirm { term }, Parcel::Confirm) => {
                match term == self.term {
                    true => self.put(way, Parcel::Confirmed),
                    false => self.depose(term),
                }
                Ok(())
            }
            (Way::Confirm { term }, Parcel::Confirmed) => {
                self.with_leader(term, |leader, roster, now, out| {
                    leader.confirmed(now, roster, out);
                })
            }
            (way, parcel) => unreachable!("{parcel:?} on {way:?}"),
        }
    }

    /// A leader finds out that it is none any more, and so do those who speak with it.
    fn depose(&mut self, term: u64) {
        self.offices.remove(&term);
        self.drop_what_leads_nowhere();
        for node in 0..self.nodes.len() {
            if self.speaks_with[node] == term {
                self.turn(node);
            }
        }
    }

    /// From now on it speaks with the leader.
    fn turn(&mut self, node: usize) {
        self.speaks_with[node] = self.term;
        self.drop_what_leads_nowhere();
    }

    fn put(&mut self, way: Way, parcel: Parcel) {
        if !self.leads_nowhere(way) {
            self.under_way.put(way, parcel);
        }
    }

    fn drop_what_leads_nowhere(&mut self) {
        let ways = self.under_way.ways();
        let nowhere: Vec<_> = ways.filter(|way| self.leads_nowhere(*way)).collect();
        for way in nowhere {
            self.under_way.drop_all(way);
        }
    }

    /// Whether nobody is there any more.
    fn leads_nowhere(&self, way: Way) -> bool {
        match way {
            Way::Link { to, .. } => self.nodes[to].is_none(),
            Way::ToMember { term, to } => self.nodes[to].is_none() || self.speaks_with[to] != term,
            Way::ToLeader { term, .. } | Way::Commit { term } | Way::Confirm { term } => {
                !self.offices.contains_key(&term)
            }
        }
    }

    fn commit(&mut self, term: u64, command: Command) -> Result<(), Violation> {
        if term != self.term {
            self.depose(term);
            return Ok(());
        }
        let applied = self.roster.change(|roster| roster.apply(command.clone()));
        if applied == Applied::Refused {
            return Err(format!("the leader's command does not fit: {command:?}"));
        }
        let roster = Roster::clone(&self.roster);
        let office = self.offices.get_mut(&term).expect("a leader is there");
        office.change(|office| office.roster = roster);
        self.with_leader(term, |leader, roster, now, out| {
            leader.applied(now, roster, out)
        })
    }

    /// Something happens to a node, and what comes of it is carried out.
    fn with(
        &mut self,
        index: usize,
        event: impl FnOnce(&mut Participant, Moment, &mut MemberEffects) -> Result<(), Violation>,
    ) -> Result<(), Violation> {
        let now = self.now();
        let Some(participant) = &mut self.nodes[index] else {
            return Ok(());
        };
        let before = participant.me().clone();
        let mut out = MemberEffects::default();
        participant.change(|participant| event(participant, now, &mut out))?;
        let me = participant.me().clone();
        if let Some(change) = out.links.take() {
            self.members[index] = Shared::new(change.members);
        }
        for (to, bytes) in out.locks.sends() {
            let to = self.members[index][to.index()].clone();
            let link = Way::Link {
                from: index,
                to: index_of(&to),
            };
            let frame = Parcel::Frame {
                from: before.clone(),
                to,
                bytes: bytes.to_vec(),
            };
            self.put(link, frame);
        }
        for happening in &out.locks.happenings {
            let nodes = &self.nodes;
            let relies = |node: usize| {
                let participant = nodes[node].as_ref();
                let until = participant.and_then(|participant| participant.valid_until());
                until.is_some_and(|until| until > now)
            };
            self.witness.sees(index, happening, relies)?;
        }
        for message in out.keepers {
            let is_renewal = matches!(message, ToKeepers::Renew { .. } | ToKeepers::Join);
            let way = Way::ToLeader {
                from: index,
                term: self.speaks_with[index],
            };
            self.say(
                index,
                way,
                Parcel::ToKeepers(me.clone(), message),
                is_renewal,
            )?;
        }
        Ok(())
    }

    fn with_leader(
        &mut self,
        term: u64,
        event: impl FnOnce(&mut Leader, &Roster, Moment, &mut LeaderEffects),
    ) -> Result<(), Violation> {
        let now = self.now();
        let Some(office) = self.offices.get_mut(&term) else {
            return Ok(());
        };
        let mut out = LeaderEffects::default();
        office.change(|Office { leader, roster }| event(leader, roster, now, &mut out));
        if let Some(command) = out.propose {
            self.put(Way::Commit { term }, Parcel::Commit(command));
        }
        for (to, message) in out.sends {
            let is_renewal = matches!(message, ToMember::Granted { .. });
            let node = index_of(&to);
            let way = Way::ToMember { term, to: node };
            self.say(node, way, Parcel::ToMember(to, message), is_renewal)?;
        }
        if out.confirm {
            // A leader that has no rival is confirmed at once.
            match self.offices.len() == 1 {
                true => self.arrive(Way::Confirm { term }, Parcel::Confirmed)?,
                false => self.put(Way::Confirm { term }, Parcel::Confirm),
            }
        }
        Ok(())
    }

    /// A word between a node and the keepers is lost, comes at once, or at any time.
    fn say(
        &mut self,
        node: usize,
        way: Way,
        word: Parcel,
        is_renewal: bool,
    ) -> Result<(), Violation> {
        if self.cut == Some(node) {
            return Ok(());
        }
        if is_renewal && self.slow == Some(node) {
            self.slow = None;
        } else if is_renewal {
            return self.arrive(way, word);
        }
        self.put(way, word);
        Ok(())
    }

    /// Whether time is over and nothing is under way. Whatever else may happen, every way comes by here.
    pub fn is_at_rest(&self) -> bool {
        self.budget.steps == 0 && self.under_way.ways().next().is_none()
    }

    pub fn fingerprint(&self) -> u128 {
        fingerprint(self)
    }
}
