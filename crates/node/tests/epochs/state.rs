//! A small cluster as one value: what can happen next, and what comes of it.

use std::collections::{BTreeMap, VecDeque};
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use soloist_algorithms::Choice;
use soloist_node::Moment;
use soloist_node::epochs::leader::{Leader, LeaderEffects};
use soloist_node::epochs::lease::Lease;
use soloist_node::epochs::member::{MemberEffects, Participant, Standing};
use soloist_node::epochs::message::{ToKeepers, ToMember};
use soloist_node::epochs::roster::{Applied, Command, Member, Roster};
use soloist_node::locks::{Ask, Fence, Happening, HoldId, LockName};

use xxhash_rust::xxh3::Xxh3;

use crate::world::{member, rules, table};

const STEP: Duration = Duration::from_secs(1);

/// Clocks run alike here: what margins are for is simulated elsewhere.
const LEASE: Lease = Lease {
    length: Duration::from_secs(3),
    drift: 0,
};

/// What may still happen, so that there is an end.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Budget {
    pub steps: u8,
    pub requests: u8,
    pub crashes: u8,
    pub cuts: u8,
    /// Renewals, and answers to them, that come at any time or never.
    pub slow: u8,
    pub elections: u8,
    /// A member does not hear of an election, and goes on with the leader before.
    pub astray: u8,
    /// A member says that a message was lost: another epoch begins for all.
    pub suspicions: u8,
}

impl Budget {
    /// Whether nobody can be taken for dead, so that no hold may be lost.
    fn is_gentle(&self) -> bool {
        self.crashes + self.cuts + self.slow + self.astray == 0
    }
}

/// A word between members and leaders, under way.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Word {
    ToKeepers(Member, ToKeepers),
    ToMember(Member, ToMember),
    Commit(u64, Command),
    Confirm(u64),
    Confirmed(u64),
}

/// What can happen next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    Request(usize),
    Release(usize),
    /// The next frame of a link arrives.
    Frame(usize, usize),
    /// A word arrives; one to the keepers, at the leader of this term.
    Word(usize, u64),
    Step,
    Crash(usize),
    Cut(usize),
    Slow(usize),
    Elect,
    Astray(usize),
    Suspect(usize),
}

/// A leader, with what it knows of the roster: one that was deposed learns nothing new.
#[derive(Clone, Hash)]
struct Office {
    leader: Leader,
    roster: Roster,
}

type Frame = (Member, Member, Vec<u8>);

/// Something that most copies of a state share, with its fingerprint.
#[derive(Clone)]
struct Shared<T> {
    value: Arc<T>,
    fingerprint: u128,
}

impl<T: Clone + Hash> Shared<T> {
    fn new(value: T) -> Self {
        Shared {
            fingerprint: fingerprint(&value),
            value: Arc::new(value),
        }
    }

    fn change<R>(&mut self, change: impl FnOnce(&mut T) -> R) -> R {
        let result = change(Arc::make_mut(&mut self.value));
        self.fingerprint = fingerprint(&*self.value);
        result
    }
}

impl<T> Hash for Shared<T> {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.fingerprint.hash(hasher);
    }
}

impl<T> Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

fn fingerprint(value: &impl Hash) -> u128 {
    let mut hasher = Xxh3::new();
    value.hash(&mut hasher);
    hasher.digest128()
}

#[derive(Clone, Hash)]
pub struct State {
    steps: u32,
    budget: Budget,
    is_gentle: bool,
    nodes: Vec<Option<Shared<Participant>>>,
    members: Vec<Shared<Vec<Member>>>,
    frames: BTreeMap<(usize, usize), VecDeque<Shared<Frame>>>,
    words: Vec<Shared<Word>>,
    roster: Shared<Roster>,
    term: u64,
    offices: BTreeMap<u64, Shared<Office>>,
    /// Its words do not reach the keepers, nor theirs it.
    cut: Option<usize>,
    /// The next renewal of this node, or the next answer to it, is under way for any time.
    slow: Option<usize>,
    /// It speaks with the leader before this one.
    astray: Option<usize>,
    holds: Vec<Option<HoldId>>,
    waiting: Vec<u8>,
    fence: Option<Fence>,
}

/// What went wrong.
pub type Violation = String;

fn index_of(member: &Member) -> usize {
    (member.incarnation >> 32) as usize
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
            is_gentle: budget.is_gentle(),
            budget: Budget {
                steps: 20,
                ..budget
            },
            nodes: (0..nodes)
                .map(|index| Some(Shared::new(node(index))))
                .collect(),
            members: vec![Shared::new(Vec::new()); nodes],
            frames: BTreeMap::new(),
            words: Vec::new(),
            roster: Shared::new(Roster::default()),
            term: 0,
            offices: BTreeMap::new(),
            cut: None,
            slow: None,
            astray: None,
            holds: vec![None; nodes],
            waiting: vec![0; nodes],
            fence: None,
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
            astray,
            suspicions,
        } = self.budget;
        let alive = (0..self.nodes.len()).filter(|&node| self.nodes[node].is_some());
        let mut actions = Vec::new();
        for node in alive {
            if requests > 0 && node < 2 && self.waiting[node] == 0 && self.holds[node].is_none() {
                actions.push(Action::Request(node));
            }
            if self.holds[node].is_some() {
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
            if astray > 0 && self.offices.len() > 1 && node == 0 {
                actions.push(Action::Astray(node));
            }
        }
        let links = self.frames.keys();
        actions.extend(links.map(|&(from, to)| Action::Frame(from, to)));
        for (index, word) in self.words.iter().enumerate() {
            match **word {
                Word::ToKeepers(..) => {
                    let terms = self.offices.keys();
                    actions.extend(terms.map(|&term| Action::Word(index, term)));
                }
                _ => actions.push(Action::Word(index, 0)),
            }
        }
        if steps > 0 {
            actions.push(Action::Step);
        }
        if elections > 0 {
            actions.push(Action::Elect);
        }
        actions
    }

    pub fn apply(&mut self, action: Action) -> Result<(), Violation> {
        match action {
            Action::Request(node) => {
                self.budget.requests -= 1;
                self.waiting[node] += 1;
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
                let hold = self.holds[node].expect("it is held");
                // It may be lost by now.
                self.with(node, |participant, now, out| {
                    let _ = participant.release(now, hold, out);
                    Ok(())
                })
            }
            Action::Frame(from, to) => {
                let frames = self.frames.get_mut(&(from, to)).expect("it has frames");
                let frame = frames.pop_front().expect("it has frames");
                if frames.is_empty() {
                    self.frames.remove(&(from, to));
                }
                self.receive(&frame)
            }
            Action::Word(index, term) => {
                let word = self.words.remove(index);
                self.hear(Word::clone(&word), term)
            }
            Action::Step => {
                self.budget.steps -= 1;
                self.step()
            }
            Action::Crash(node) => {
                self.budget.crashes -= 1;
                self.nodes[node] = None;
                self.holds[node] = None;
                self.waiting[node] = 0;
                Ok(())
            }
            Action::Cut(node) => {
                self.budget.cuts -= 1;
                self.cut = Some(node);
                Ok(())
            }
            Action::Astray(node) => {
                self.budget.astray -= 1;
                self.astray = Some(node);
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
            Action::Elect => {
                self.budget.elections -= 1;
                self.elect();
                Ok(())
            }
        }
    }

    /// From here on nothing goes wrong: everybody who waits must be served.
    pub fn completes(mut self) -> Result<(), Violation> {
        self.cut = None;
        self.slow = None;
        self.astray = None;
        for _ in 0..40 {
            self.budget.steps = 1;
            self.settle()?;
            for node in 0..self.nodes.len() {
                if self.holds[node].is_some() {
                    self.apply(Action::Release(node))?;
                }
            }
            if self.waiting.iter().all(|waiting| *waiting == 0) {
                return Ok(());
            }
        }
        Err(format!("somebody waits for ever: {:?}", self.waiting))
    }

    /// All that is under way arrives, and a step of time goes by.
    fn settle(&mut self) -> Result<(), Violation> {
        loop {
            if let Some(&(from, to)) = self.frames.keys().next() {
                self.apply(Action::Frame(from, to))?;
            } else if !self.words.is_empty() {
                self.apply(Action::Word(0, self.term))?;
            } else {
                return self.apply(Action::Step);
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

    fn receive(&mut self, (from, to, bytes): &Frame) -> Result<(), Violation> {
        if !self.is_alive(to) {
            return Ok(());
        }
        self.with(index_of(to), |participant, now, out| {
            let received = participant.receive(now, from.incarnation, bytes, out);
            received.map_err(|error| error.to_string())
        })
    }

    fn hear(&mut self, word: Word, term: u64) -> Result<(), Violation> {
        match word {
            Word::ToKeepers(from, message) => self.with_leader(term, |leader, roster, now, out| {
                leader.receive(now, roster, &from, message, out);
            }),
            Word::ToMember(to, message) if self.is_alive(&to) => {
                self.with(index_of(&to), |participant, now, out| {
                    participant.hear(now, message, out);
                    Ok(())
                })
            }
            Word::ToMember(..) => Ok(()),
            Word::Commit(term, command) => self.commit(term, command),
            Word::Confirm(term) if term == self.term => {
                self.put(Word::Confirmed(term));
                Ok(())
            }
            // A leader that was deposed finds out.
            Word::Confirm(term) => {
                self.offices.remove(&term);
                Ok(())
            }
            Word::Confirmed(term) => self.with_leader(term, |leader, roster, now, out| {
                leader.confirmed(now, roster, out);
            }),
        }
    }

    fn commit(&mut self, term: u64, command: Command) -> Result<(), Violation> {
        if term != self.term {
            self.offices.remove(&term);
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
            let link = self.frames.entry((index, index_of(&to))).or_default();
            link.push_back(Shared::new((before.clone(), to, bytes.to_vec())));
        }
        for happening in &out.locks.happenings {
            self.note(index, happening)?;
        }
        for message in out.keepers {
            self.say(index, Word::ToKeepers(me.clone(), message))?;
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
            self.put(Word::Commit(term, command));
        }
        for (to, message) in out.sends {
            self.say(index_of(&to), Word::ToMember(to, message))?;
        }
        if out.confirm {
            // A leader that has no rival is confirmed at once.
            match self.offices.len() == 1 {
                true => self.hear(Word::Confirmed(term), term)?,
                false => self.put(Word::Confirm(term)),
            }
        }
        Ok(())
    }

    /// A word between a node and the keepers is lost, comes at once, or at any time.
    fn say(&mut self, node: usize, word: Word) -> Result<(), Violation> {
        let is_renewal = matches!(
            word,
            Word::ToKeepers(_, ToKeepers::Renew { .. } | ToKeepers::Join)
                | Word::ToMember(_, ToMember::Granted { .. })
        );
        if self.cut == Some(node) {
            return Ok(());
        }
        if is_renewal && self.slow == Some(node) {
            self.slow = None;
        } else if self.astray == Some(node) {
            let first = self.offices.keys().next().copied();
            return self.hear(word, first.unwrap_or(self.term));
        } else if is_renewal {
            return self.hear(word, self.term);
        }
        self.put(word);
        Ok(())
    }

    /// The same word twice makes no difference.
    fn put(&mut self, word: Word) {
        let word = Shared::new(word);
        let mut others = self.words.iter();
        if others.all(|other| other.fingerprint != word.fingerprint) {
            self.words.push(word);
            // They are in no order.
            self.words.sort_unstable_by_key(|word| word.fingerprint);
        }
    }

    /// The referee.
    fn note(&mut self, node: usize, happening: &Happening) -> Result<(), Violation> {
        match happening {
            Happening::Granted { grant, .. } => {
                self.waiting[node] -= 1;
                let now = self.now();
                let holders = (0..self.nodes.len()).filter(|&other| self.holds[other].is_some());
                let mut others = holders.filter(|&other| {
                    let participant = self.nodes[other].as_ref();
                    let until = participant.and_then(|participant| participant.valid_until());
                    until.is_some_and(|until| until > now)
                });
                if let Some(other) = others.next() {
                    return Err(format!("node {node} enters while node {other} is inside"));
                }
                if self.fence >= Some(grant.fence) {
                    return Err(format!("fence {} after {:?}", grant.fence, self.fence));
                }
                self.fence = Some(grant.fence);
                self.holds[node] = Some(grant.hold);
            }
            Happening::Ended { end, .. } => {
                self.holds[node] = None;
                if end.is_loss() && self.is_gentle {
                    return Err(format!(
                        "node {node} loses its hold, and nothing was wrong with it"
                    ));
                }
            }
            Happening::Waiting { .. } | Happening::Denied { .. } => {}
        }
        Ok(())
    }

    pub fn is_last_step(&self) -> bool {
        self.budget.steps == 0
    }

    pub fn fingerprint(&self) -> u128 {
        fingerprint(self)
    }
}
