//! Observes runs of algorithms that order requests by id: do entries follow that order, and what
//! does each request cost, given the requests concurrent with it?

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::hash::{Hash, Hasher};

use soloist_algorithms::{Algorithm, Effect, Message, NodeId, Outbox, Phase, RequestId};
use soloist_lab::network::{Envelope, Network};
use soloist_lab::search::Bounds;
use soloist_lab::world::{Event, World};

/// An algorithm whose requests have ids.
pub(crate) trait Ordered: Algorithm {
    /// The node's latest request.
    fn own(&self) -> RequestId;

    /// The request that a message makes, if any.
    fn made_by(from: NodeId, message: &Self::Message) -> Option<RequestId>;
}

#[derive(Clone, Copy)]
enum Action {
    Request(NodeId),
    Release(NodeId),
    Deliver(usize),
}

/// A cluster, its messages in flight, and the observations so far.
#[derive(Clone, Hash)]
pub(crate) struct Run<A: Algorithm> {
    world: World<A>,
    network: Network<A::Message>,
    left: Vec<u8>,
    seen: Seen,
}

#[derive(Clone, Hash, Default)]
pub(crate) struct Seen {
    /// Every request, and its cost in messages of each kind.
    pub costs: BTreeMap<RequestId, [u32; 3]>,
    /// (r, s) if the node of s received the REQUEST of r after s was made.
    received_after: BTreeSet<(RequestId, RequestId)>,
    entered_last: Option<RequestId>,
}

impl Seen {
    /// The requests concurrent with this one: Lodha and Kshemkalyani 2000, Definition 1.
    pub(crate) fn concurrent(&self, one: RequestId) -> impl Iterator<Item = RequestId> {
        let after = |r, s| self.received_after.contains(&(r, s));
        let others = self.costs.keys().copied();
        others.filter(move |&other| after(one, other) && after(other, one))
    }
}

impl<A: Ordered> Run<A> {
    fn new(bounds: &Bounds<A::Shape>) -> Self {
        Run {
            world: World::new(&bounds.shape, bounds.start, bounds.variants),
            network: Network::new(),
            left: bounds.requests.clone(),
            seen: Seen::default(),
        }
    }

    fn actions(&self, bounds: &Bounds<A::Shape>) -> Vec<Action> {
        let deliverable = self.network.deliverable(bounds.limits.channels);
        let mut actions: Vec<_> = deliverable.map(Action::Deliver).collect();
        for (node, state) in self.world.iter() {
            match state.phase() {
                Phase::Idle if self.left[node.index()] > 0 => actions.push(Action::Request(node)),
                Phase::Inside => actions.push(Action::Release(node)),
                Phase::Idle | Phase::Waiting => {}
            }
        }
        actions
    }

    fn act(&mut self, bounds: &Bounds<A::Shape>, action: Action) {
        let (node, event) = match action {
            Action::Request(node) => {
                self.left[node.index()] -= 1;
                (node, Event::Request(node))
            }
            Action::Release(node) => (node, Event::Release(node)),
            Action::Deliver(place) => {
                let Envelope { from, to, message } = self.network.take(place);
                self.note_arrival(from, to, &message);
                (to, Event::Deliver { from, to, message })
            }
        };
        let mut out = Outbox::new();
        self.world.apply(event, &mut out).unwrap();
        let own = self.world.node(node).own();
        for effect in out.drain() {
            match effect {
                Effect::Send { to, message } => {
                    // An answer to a REQUEST is charged to the other request: see note_arrival.
                    if message.kind() != 1 {
                        self.seen.costs.entry(own).or_default()[message.kind()] += 1;
                    }
                    let envelope = Envelope {
                        from: node,
                        to,
                        message,
                    };
                    self.network.send(bounds.limits.channels, envelope);
                }
                Effect::Enter => {
                    self.seen.costs.entry(own).or_default();
                    let before = self.seen.entered_last.replace(own);
                    assert!(before < Some(own), "{own} entered after {before:?}");
                }
            }
        }
    }

    /// Kind 1 is the answer to a REQUEST.
    fn note_arrival(&mut self, from: NodeId, to: NodeId, message: &A::Message) {
        if let Some(request) = A::made_by(from, message) {
            let made = self.seen.costs.keys().filter(|r| r.node == to);
            let pairs: Vec<_> = made.map(|&made| (request, made)).collect();
            self.seen.received_after.extend(pairs);
        }
        if message.kind() == 1 {
            let answered = self.world.node(to).own();
            self.seen.costs.entry(answered).or_default()[1] += 1;
        }
    }

    /// Returns whether every request was served and no message is in flight.
    fn is_over(&self) -> bool {
        self.network.envelopes().is_empty()
            && self.left.iter().all(|&left| left == 0)
            && self.world.iter().all(|(_, n)| n.phase() == Phase::Idle)
    }
}

/// Explores all interleavings and calls `check` at the end of each.
pub(crate) fn watch_all<A: Ordered>(bounds: &Bounds<A::Shape>, check: impl Fn(&Seen)) {
    let mut known = HashSet::new();
    let mut stack = vec![Run::<A>::new(bounds)];
    let mut ends = 0;
    while let Some(run) = stack.pop() {
        for action in run.actions(bounds) {
            let mut after = run.clone();
            after.act(bounds, action);
            let mut hasher = DefaultHasher::new();
            after.hash(&mut hasher);
            if known.insert(hasher.finish()) {
                stack.push(after);
            }
        }
        if run.is_over() {
            ends += 1;
            check(&run.seen);
        }
    }
    assert!(ends > 0, "no run ended");
}

/// Runs one random interleaving to its end.
pub(crate) fn watch_random<A: Ordered>(bounds: &Bounds<A::Shape>, seed: u64) -> Seen {
    let mut run = Run::<A>::new(bounds);
    let mut random = seed;
    loop {
        let actions = run.actions(bounds);
        if actions.is_empty() {
            assert!(run.is_over(), "a node waits forever");
            return run.seen;
        }
        let pick = split_mix(&mut random) as usize % actions.len();
        run.act(bounds, actions[pick]);
    }
}

/// Steele, Lea and Flood 2014: a pinned generator, so that a seed always gives the same run.
fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
