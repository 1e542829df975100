//! A small cluster as one value: its nodes, the keepers' leaders, the messages in flight, and the
//! faults that are present.
//!
//! - `state/space.rs`: the actions of a search, and what is checked in each state.
//! - `state/effects.rs`: what arrives, and what follows from it.
//! - `state/time.rs`: how time passes.
//! - `state/faults.rs`: faults, and their repair.
//! - `state/show.rs`: what a reader is told.

mod effects;
mod faults;
mod show;
mod space;
mod time;

use std::collections::BTreeMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use soloist_algorithms::Choice;
use soloist_api::{LockName, Moment, NodeName};
use soloist_core::epochs::leader::Leader;
use soloist_core::epochs::lease::Lease;
use soloist_core::epochs::member::{MemberState, Participant};
use soloist_core::epochs::roster::{Member, Roster};
use soloist_core::locks::LockRequest;
use soloist_core::name_hash::HashKeys;
use soloist_core::rules::{RuleError, Rules};
use soloist_core::{Term, Tuning};

use self::faults::Faults;
pub use self::faults::Renewal;
pub use self::space::Action;
use super::budget::Budget;
use super::describe;
use super::journal::Journal;
use super::setup::{index_of, named, names, rules, table};
use super::under_way::{UnderWay, Way};
use super::witness::{Violation, Witness};
use crate::breadth_first::Shared;

/// A step of time in a search.
pub const STEP: Duration = Duration::from_secs(1);

/// The lease of a search. Clocks run at the same rate here; drift is simulated elsewhere.
pub const LEASE: Lease = Lease {
    length: Duration::from_secs(3),
    drift: 0,
};

/// The keepers' leader of a term. A deposed leader keeps the roster from then, and learns nothing
/// new.
#[derive(Clone, Hash)]
struct Elected {
    leader: Leader,
    last: Option<Roster>,
}

/// What a cluster consists of. It never changes, so it is no part of a state's identity.
#[derive(Debug)]
pub struct Plan {
    /// The algorithm of the lock.
    pub choice: Choice,
    /// The nodes' names.
    pub names: Vec<NodeName>,
    /// The lease.
    pub lease: Lease,
    /// Whether a hold may be lost only on a node that a fault has hit.
    pub losses_need_faults: bool,
    /// Whether the current leader's confirmations may be late while there is another leader, or may
    /// be one. Those of a deposed leader may always be late.
    pub confirmations_wait: bool,
    /// Changes for tests.
    pub tuning: Tuning,
}

impl Plan {
    /// The rules of all nodes. The error is why a node would not take them.
    pub fn rules(&self) -> Result<Rules, RuleError> {
        rules(self.choice, self.names.len(), 1)
    }
}

#[derive(Clone)]
struct Fixed {
    plan: Arc<Plan>,
    rules: Arc<Rules>,
}

impl Hash for Fixed {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

/// A state of a small cluster.
// Methods: effects in `state/effects.rs`, faults in `state/faults.rs`, time in `state/time.rs`, the
// search in `state/space.rs`, text in `state/show.rs`.
#[derive(Clone, Hash)]
pub struct State {
    fixed: Fixed,
    now: Moment,
    budget: Budget,
    /// `None` while a node is down.
    nodes: Vec<Option<Shared<Participant>>>,
    /// How often each node was started.
    starts: Vec<u64>,
    /// The members that each node's links are connected to.
    members: Vec<Shared<Vec<Member>>>,
    under_way: UnderWay,
    roster: Shared<Roster>,
    term: Term,
    leaders: BTreeMap<Term, Shared<Elected>>,
    /// The term of the leader that each node is connected to.
    connected_to: Vec<Term>,
    faults: Faults,
    witness: Witness,
    journal: Journal,
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("State").finish_non_exhaustive()
    }
}

fn lock() -> LockName {
    LockName::new("a").expect("a name")
}

impl State {
    /// All nodes are members of the first epoch, and there are no requests.
    ///
    /// # Panics
    /// If [`Plan::rules`] would be an error.
    pub fn new(choice: Choice, nodes: usize, budget: Budget, tuning: Tuning) -> Self {
        let plan = Plan {
            choice,
            names: names(nodes),
            lease: LEASE,
            losses_need_faults: budget.is_gentle(),
            confirmations_wait: true,
            tuning,
        };
        let mut state = Self::formed(plan, &[]);
        state.budget = budget;
        state
    }

    /// Nodes that are members of the first epoch, without requests, except for those that are down.
    ///
    /// # Panics
    /// If [`Plan::rules`] is an error.
    pub fn formed(plan: Plan, down: &[usize]) -> Self {
        let nodes = plan.names.len();
        let rules = plan.rules().expect("the caller has checked the rules");
        let mut state = State {
            now: Moment::default(),
            budget: Budget::default(),
            nodes: vec![None; nodes],
            starts: vec![0; nodes],
            members: vec![Shared::new(Vec::new()); nodes],
            under_way: UnderWay::default(),
            roster: Shared::new(Roster::default()),
            term: Term(0),
            leaders: BTreeMap::new(),
            connected_to: vec![Term(1); nodes],
            faults: Faults::default(),
            witness: Witness::new(nodes, plan.losses_need_faults),
            journal: Journal::default(),
            fixed: Fixed {
                plan: Arc::new(plan),
                rules: Arc::new(rules),
            },
        };
        let up = (0..nodes).filter(|node| !down.contains(node));
        let up: Vec<_> = up.collect();
        for &node in &up {
            state.create(node);
        }
        state.elect();
        while !up.iter().all(|&node| state.is_member(node)) || state.roster.is_changing() {
            state.settle().expect("no violation without faults");
        }
        state
    }

    /// This many elections may come. Until they have, no leader is confirmed at once.
    pub fn expect_elections(&mut self, elections: u8) {
        self.budget.elections = elections;
    }

    /// The current time.
    pub fn now(&self) -> Moment {
        self.now
    }

    fn plan(&self) -> &Plan {
        &self.fixed.plan
    }

    fn name(&self, node: usize) -> &NodeName {
        &self.plan().names[node]
    }

    /// Creates a node's next incarnation.
    fn create(&mut self, node: usize) {
        self.starts[node] += 1;
        let start = self.starts[node];
        let me = named(self.name(node).clone(), node, start);
        let table = table(&self.fixed.rules, self.plan().tuning, node, start);
        let participant = Participant::new(me, table, self.plan().lease, self.now);
        self.nodes[node] = Some(Shared::new(participant));
        self.members[node] = Shared::new(Vec::new());
        self.connected_to[node] = self.term.max(Term(1));
    }

    /// A client of this node requests the lock.
    pub fn request(&mut self, node: usize) -> Result<(), Violation> {
        self.witness.asks(node);
        self.with(node, |participant, now, out| {
            let ask = LockRequest::new("somebody");
            let table = participant.table_mut(now, out);
            let asked = table.acquire(now, &lock(), ask, &mut out.locks);
            asked.map(drop).map_err(|error| error.to_string())
        })
    }

    /// The client inside on this node releases the lock.
    ///
    /// # Panics
    /// If there is none.
    pub fn release(&mut self, node: usize) -> Result<(), Violation> {
        let hold = self.witness.hold(node).expect("it is held");
        // It may be lost by now.
        self.with(node, |participant, now, out| {
            let _ = participant.release(now, hold, out);
            Ok(())
        })
    }

    /// Checks that without further faults all waiters are served, and all later requests too.
    pub fn completes(mut self) -> Result<(), Violation> {
        self.faults = Faults::default();
        self.budget.elections = 0;
        for node in 0..self.nodes.len() {
            self.find_leader(node)?;
        }
        self.serve_all()?;
        for node in 0..self.nodes.len() {
            if self.nodes[node].is_some() && !self.is_draining(node) {
                self.request(node)?;
                self.look()?;
            }
        }
        self.serve_all()
    }

    fn serve_all(&mut self) -> Result<(), Violation> {
        for _ in 0..40 {
            self.settle()?;
            for node in 0..self.nodes.len() {
                if self.witness.hold(node).is_some() {
                    self.release(node)?;
                    self.look()?;
                }
            }
            if self.witness.is_content() {
                return Ok(());
            }
        }
        let names = self.plan().names.iter().enumerate();
        let waiting = names.filter(|(node, _)| self.witness.waits(*node));
        let waiting = describe::list(waiting.map(|(_, name)| name), "nobody");
        Err(format!("waits forever: {waiting}"))
    }

    /// Delivers everything in flight, then advances time by a step.
    fn settle(&mut self) -> Result<(), Violation> {
        while let Some(way) = self.under_way.first() {
            self.deliver(way)?;
            self.look()?;
        }
        self.step()?;
        self.look()
    }

    /// Checks that at most one client is inside.
    pub fn look(&self) -> Result<(), Violation> {
        self.witness.look(self.now, &self.plan().names)
    }

    /// The keepers elect a new leader. The one before does not know it yet.
    pub fn elect(&mut self) {
        if let Some(elected) = self.leaders.get_mut(&self.term) {
            let last = Some(Roster::clone(&self.roster));
            elected.change(|elected| elected.last = last);
        }
        self.term = self.term.next();
        let elected = Elected {
            leader: Leader::tuned(
                self.plan().tuning,
                self.plan().lease,
                self.now,
                &self.roster,
                HashKeys::new([0; 16]),
            ),
            last: None,
        };
        self.leaders.insert(self.term, Shared::new(elected));
        let leader = describe::leader(self.term);
        self.journal
            .note(self.now, || format!("{leader} is elected"));
    }

    /// A leader finds out that it was deposed, and so do the nodes that are connected to it.
    fn depose(&mut self, term: Term) -> Result<(), Violation> {
        self.leaders.remove(&term);
        self.faults.isolated.remove(&term);
        let leader = describe::leader(term);
        self.journal
            .note(self.now, || format!("{leader} learns that it was deposed"));
        self.drop_what_leads_nowhere();
        let mut nodes = 0..self.nodes.len();
        nodes.try_for_each(|node| self.find_leader(node))
    }

    /// Connects a node to the current leader.
    pub fn find_leader(&mut self, node: usize) -> Result<(), Violation> {
        if self.connected_to[node] == self.term || self.faults.paused.contains(&node) {
            return Ok(());
        }
        self.connected_to[node] = self.term;
        self.drop_what_leads_nowhere();
        self.with(node, |participant, now, out| {
            participant.find_leader(now, out);
            Ok(())
        })
    }

    /// The state machine of a node, or `None` while it is down.
    pub fn node(&self, node: usize) -> Option<&Participant> {
        self.nodes[node].as_deref()
    }

    /// What the clients observe.
    pub fn witness(&self) -> &Witness {
        &self.witness
    }

    /// What the keepers agree on.
    pub fn roster(&self) -> &Roster {
        &self.roster
    }

    /// The terms of the leaders. All but the last were deposed and do not know it yet.
    pub fn terms(&self) -> impl Iterator<Item = Term> {
        self.leaders.keys().copied()
    }

    /// The leader of a term, if it does not know that it was deposed.
    pub fn leader(&self, term: Term) -> Option<&Leader> {
        self.leaders.get(&term).map(|elected| &elected.leader)
    }

    /// The channels with messages in flight.
    pub fn ways(&self) -> impl Iterator<Item = Way> {
        self.under_way.ways()
    }

    fn is_member(&self, node: usize) -> bool {
        let participant = self.nodes[node].as_ref();
        participant.is_some_and(|one| matches!(one.member_state(), MemberState::Member(_)))
    }

    fn is_alive(&self, member: &Member) -> bool {
        let node = self.nodes[index_of(member)].as_ref();
        node.is_some_and(|participant| participant.me() == member)
    }

    /// Whether the node was told to stop.
    pub fn is_draining(&self, node: usize) -> bool {
        let participant = self.nodes[node].as_ref();
        participant.is_some_and(|one| one.is_draining())
    }

    /// Whether it may grant the lock.
    fn has_lease(&self, node: usize) -> bool {
        let participant = self.nodes[node].as_ref();
        let until = participant.and_then(|participant| participant.valid_until());
        until.is_some_and(|until| until > self.now)
    }
}
