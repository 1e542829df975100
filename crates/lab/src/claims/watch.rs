//! Small clusters watched from outside: what is so in every state, and what requests that are made
//! at one moment cost exactly.

use std::collections::hash_map::DefaultHasher;
use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use soloist_algorithms::{
    Algorithm, Effect, Message, NodeId, Outbox, Phase, Shape, Start, VariantSet,
};

use crate::check::Bounds;
use crate::network::{Letter, Network};
use crate::world::{Event, Fault, World};

/// More states than this are too many for a claim.
const STATES_MAX: usize = 300_000;

/// Something that can happen next.
#[derive(Clone, Copy)]
enum Step {
    Request(NodeId),
    Release(NodeId),
    /// The message at this place of the list of messages under way arrives.
    Deliver(usize),
}

#[derive(Clone, Hash)]
struct State<A: Algorithm> {
    world: World<A>,
    network: Network<A::Message>,
    left: Vec<u8>,
}

impl<A: Algorithm> State<A> {
    fn first(bounds: &Bounds<A::Shape>) -> Result<Self, Fault> {
        let mut state = State {
            world: World::new(&bounds.shape, bounds.start, bounds.variants),
            network: Network::new(),
            left: bounds.requests.clone(),
        };
        let mut out = Outbox::new();
        for node in NodeId::all(state.world.len()) {
            state.world.start(node, &mut out)?;
            state.post(node, bounds, &mut out);
        }
        Ok(state)
    }

    fn steps(&self, bounds: &Bounds<A::Shape>) -> Vec<Step> {
        let own = self
            .world
            .iter()
            .filter_map(|(node, state)| match state.phase() {
                Phase::Idle if self.left[node.index()] > 0 => Some(Step::Request(node)),
                Phase::Inside => Some(Step::Release(node)),
                Phase::Idle | Phase::Waiting => None,
            });
        let deliverable = self.network.deliverable(bounds.channels);
        own.chain(deliverable.map(Step::Deliver)).collect()
    }

    fn act(&mut self, step: Step, bounds: &Bounds<A::Shape>) -> Result<(), Fault> {
        let (node, event) = match step {
            Step::Request(node) => {
                self.left[node.index()] -= 1;
                (node, Event::Request(node))
            }
            Step::Release(node) => (node, Event::Release(node)),
            Step::Deliver(place) => {
                let Letter { from, to, message } = self.network.take(place);
                (to, Event::Deliver { from, to, message })
            }
        };
        let mut out = Outbox::new();
        self.world.apply(event, &mut out)?;
        self.post(node, bounds, &mut out);
        Ok(())
    }

    fn post(&mut self, from: NodeId, bounds: &Bounds<A::Shape>, out: &mut Outbox<A::Message>) {
        for effect in out.drain() {
            if let Effect::Send { to, message } = effect {
                let letter = Letter { from, to, message };
                self.network.send(bounds.channels, letter);
            }
        }
    }

    fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        hasher.finish()
    }
}

/// Whether something is so of the nodes and the messages under way in every state within the bounds. It
/// is not if a node refuses what a correct peer sent.
///
/// # Panics
/// If there are more states than a claim may take.
pub(super) fn always<A: Algorithm>(
    bounds: &Bounds<A::Shape>,
    is_so: impl Fn(&World<A>, &[Letter<A::Message>]) -> bool,
) -> bool {
    let Ok(first) = State::<A>::first(bounds) else {
        return false;
    };
    let mut seen = HashSet::from([first.fingerprint()]);
    let mut stack = vec![first];
    while let Some(state) = stack.pop() {
        if !is_so(&state.world, state.network.letters()) {
            return false;
        }
        for step in state.steps(bounds) {
            let mut after = state.clone();
            if after.act(step, bounds).is_err() {
                return false;
            }
            if seen.insert(after.fingerprint()) {
                assert!(seen.len() <= STATES_MAX, "too many states for a claim");
                stack.push(after);
            }
        }
    }
    true
}

/// The most messages that are sent in any interleaving within the bounds, up to its end. Requests must be
/// finite in number, and so must be what comes of them.
///
/// # Panics
/// If a node refuses what a correct peer sent, or there are more states than a claim may take.
pub(super) fn most_messages<A: Algorithm>(bounds: &Bounds<A::Shape>) -> usize {
    let first = State::<A>::first(bounds).expect("nothing to refuse");
    let sent = first.network.letters().len();
    sent + most_from(&first, bounds, &mut HashMap::new())
}

/// The most messages that are sent from a state on. Runs are short, so recursion is not deep.
fn most_from<A: Algorithm>(
    state: &State<A>,
    bounds: &Bounds<A::Shape>,
    known: &mut HashMap<u64, usize>,
) -> usize {
    let fingerprint = state.fingerprint();
    if let Some(&most) = known.get(&fingerprint) {
        return most;
    }
    let mut most = 0;
    for step in state.steps(bounds) {
        let mut after = state.clone();
        after.act(step, bounds).expect("nothing to refuse");
        let delivered = usize::from(matches!(step, Step::Deliver(_)));
        let letters = |state: &State<A>| state.network.letters().len();
        let sent = letters(&after) + delivered - letters(state);
        most = most.max(sent + most_from(&after, bounds, known));
    }
    assert!(known.len() < STATES_MAX, "too many states for a claim");
    known.insert(fingerprint, most);
    most
}

/// How many tokens there are, at the nodes and under way.
pub(super) fn tokens<A: Algorithm>(world: &World<A>, letters: &[Letter<A::Message>]) -> usize {
    let here = world.iter().filter(|(_, node)| node.has_token()).count();
    let under_way = letters.iter().filter(|letter| letter.message.is_token());
    here + under_way.count()
}

/// The messages of a cluster in which these nodes ask once at the same moment, as the token leaves `home` if it
/// never rests. Every message takes equally long, and who enters leaves at once. None if somebody is
/// not served.
pub(super) fn cost_at_once<A: Algorithm>(
    shape: &Arc<A::Shape>,
    variants: VariantSet,
    home: NodeId,
    requesters: &[NodeId],
) -> Option<u64> {
    let mut crowd = Crowd::<A> {
        world: World::new(shape, Start::idle(home), variants),
        under_way: VecDeque::new(),
        out: Outbox::new(),
        unserved: requesters.len(),
        messages: 0,
    };
    for node in NodeId::all(shape.nodes()) {
        crowd.world.start(node, &mut crowd.out).ok()?;
        crowd.carry_out(node)?;
    }
    for &node in requesters {
        crowd.happen(node, Event::Request(node))?;
    }
    // A full round of all nodes for each of them, and then some.
    let patience = 100 * (1 + shape.nodes()) * (1 + requesters.len());
    for _ in 0..patience {
        if crowd.is_over() {
            return Some(crowd.messages);
        }
        let Letter { from, to, message } = crowd.under_way.pop_front()?;
        crowd.happen(to, Event::Deliver { from, to, message })?;
    }
    None
}

/// Nodes that ask at once, and what is under way, in the order sent.
struct Crowd<A: Algorithm> {
    world: World<A>,
    under_way: VecDeque<Letter<A::Message>>,
    out: Outbox<A::Message>,
    unserved: usize,
    messages: u64,
}

impl<A: Algorithm> Crowd<A> {
    fn is_over(&self) -> bool {
        let mut letters = self.under_way.iter();
        self.unserved == 0 && letters.all(|letter| letter.message.is_roaming())
    }

    fn happen(&mut self, node: NodeId, event: Event<A::Message>) -> Option<()> {
        self.world.apply(event, &mut self.out).ok()?;
        self.carry_out(node)
    }

    fn carry_out(&mut self, from: NodeId) -> Option<()> {
        let entered = self.out.entered();
        for effect in self.out.drain() {
            if let Effect::Send { to, message } = effect {
                // A restless token's move that nobody waits for is nobody's cost.
                self.messages += u64::from(self.unserved > 0 || !message.is_roaming());
                self.under_way.push_back(Letter { from, to, message });
            }
        }
        if entered {
            self.unserved -= 1;
            self.happen(from, Event::Release(from))?;
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use soloist_algorithms::central::Central;
    use soloist_algorithms::le_lann::LeLann;
    use soloist_algorithms::ricart_agrawala::RicartAgrawala;

    use super::*;

    fn together<A: Algorithm>(nodes: usize, home: usize, requesters: &[usize]) -> Option<u64> {
        let shape = Arc::new(A::Shape::default_for(nodes));
        let requesters: Vec<_> = requesters.iter().map(|&n| NodeId::from_index(n)).collect();
        let home = NodeId::from_index(home);
        cost_at_once::<A>(&shape, VariantSet::default(), home, &requesters)
    }

    #[test]
    fn those_who_ask_at_once_cost_what_the_formulas_say() {
        assert_eq!(together::<RicartAgrawala>(10, 0, &[3]), Some(18));
        assert_eq!(together::<RicartAgrawala>(10, 0, &[3, 4, 9]), Some(54));
        assert_eq!(together::<Central>(5, 0, &[0, 1, 2]), Some(6));
    }

    /// From node 1 on the ring 1, 2, 3: two moves to node 3, and what comes after is nobody's cost.
    #[test]
    fn a_restless_token_costs_only_while_somebody_waits() {
        assert_eq!(together::<LeLann>(4, 1, &[3]), Some(2));
        assert_eq!(together::<LeLann>(4, 1, &[2, 3]), Some(2));
    }

    #[test]
    fn the_most_messages_are_those_of_all_requests() {
        let bounds = Bounds::of::<Central>(&[2, 1, 2]);
        assert_eq!(most_messages::<Central>(&bounds), 9);
    }

    #[test]
    fn what_is_not_always_so_is_found() {
        let bounds = Bounds::of::<Central>(&[0, 1, 1]);
        assert!(always::<Central>(&bounds, |world, _| world.inside() <= 1));
        assert!(!always::<Central>(&bounds, |world, _| world.inside() == 0));
        assert!(!always::<Central>(&bounds, |_, letters| letters.len() < 2));
    }
}
