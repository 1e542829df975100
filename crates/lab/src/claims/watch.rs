//! Small clusters observed from outside: properties of every state, and the exact cost of
//! simultaneous requests.

use std::collections::VecDeque;
use std::sync::Arc;

use soloist_algorithms::{
    Algorithm, Effect, Message, NodeId, Outbox, Shape, Snapshot, Start, VariantSet,
};

use crate::check::Bounds;
use crate::check::graph::{Graph, NoGraph};
use crate::network::Envelope;
use crate::world::{Event, World};

/// Returns whether a property of the nodes and the messages in transit holds in every state within
/// the bounds, whatever other faults there are. Returns false if a node refuses what a correct peer
/// sent.
///
/// # Panics
/// If there are more states than allowed.
pub(super) fn always<A: Algorithm>(
    bounds: &Bounds<A::Shape>,
    is_so: impl Fn(&dyn Snapshot<A>) -> bool,
) -> bool {
    match Graph::<A>::walk(bounds) {
        Ok(graph) => (0..graph.len() as u32).all(|state| is_so(&graph.snapshot(state))),
        Err(NoGraph::Broken { .. }) => false,
        Err(NoGraph::NotExhausted { states, .. }) => panic!("more than {states} states"),
    }
}

/// The most messages sent in any complete interleaving within the bounds. The number of requests
/// must be finite, and so must their effects.
///
/// # Panics
/// If a node refuses what a correct peer sent, or there are more states than allowed.
pub(super) fn most_messages<A: Algorithm>(bounds: &Bounds<A::Shape>) -> usize {
    let Ok(graph) = Graph::<A>::walk(bounds) else {
        panic!("a node refused something, or there are too many states");
    };
    graph.envelopes(0) + most_from(&graph, 0, &mut vec![None; graph.len()])
}

/// The most messages sent from a state on. Runs are short, so the recursion is not deep.
fn most_from<A: Algorithm>(graph: &Graph<A>, state: u32, known: &mut Vec<Option<usize>>) -> usize {
    if let Some(most) = known[state as usize] {
        return most;
    }
    let mut most = 0;
    for step in graph.steps(state) {
        let delivered = usize::from(graph.message(state, step.action).is_some());
        let sent = graph.envelopes(step.target) + delivered - graph.envelopes(state);
        most = most.max(sent + most_from(graph, step.target, known));
    }
    known[state as usize] = Some(most);
    most
}

/// Number of tokens, at nodes and in transit.
pub(super) fn tokens<A: Algorithm>(cluster: &dyn Snapshot<A>) -> usize {
    let nodes = NodeId::all(cluster.len());
    let mut tokens = nodes.filter(|&n| cluster.node(n).has_token()).count();
    cluster.for_each_envelope(&mut |_, _, message| tokens += usize::from(message.is_token()));
    tokens
}

/// Number of messages when these nodes request once at the same time. A token that never rests has
/// just left `home`. All messages take equally long, and a node that enters leaves at once. `None`
/// if a request is not served.
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
    // More than a full round of all nodes per requester.
    let patience = 100 * (1 + shape.nodes()) * (1 + requesters.len());
    for _ in 0..patience {
        if crowd.is_over() {
            return Some(crowd.messages);
        }
        let Envelope { from, to, message } = crowd.under_way.pop_front()?;
        crowd.happen(to, Event::Deliver { from, to, message })?;
    }
    None
}

/// Nodes that request at once, and the messages in transit, in the order sent.
struct Crowd<A: Algorithm> {
    world: World<A>,
    under_way: VecDeque<Envelope<A::Message>>,
    out: Outbox<A::Message>,
    unserved: usize,
    messages: u64,
}

impl<A: Algorithm> Crowd<A> {
    fn is_over(&self) -> bool {
        let mut envelopes = self.under_way.iter();
        self.unserved == 0 && envelopes.all(|envelope| envelope.message.is_roaming())
    }

    fn happen(&mut self, node: NodeId, event: Event<A::Message>) -> Option<()> {
        self.world.apply(event, &mut self.out).ok()?;
        self.carry_out(node)
    }

    fn carry_out(&mut self, from: NodeId) -> Option<()> {
        let entered = self.out.entered();
        for effect in self.out.drain() {
            if let Effect::Send { to, message } = effect {
                // A move of a roaming token is not counted while no request waits.
                self.messages += u64::from(self.unserved > 0 || !message.is_roaming());
                self.under_way.push_back(Envelope { from, to, message });
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
    use soloist_algorithms::Phase;
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

    /// From node 1 on the ring 1, 2, 3: two moves to node 3. Later moves are not counted.
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
        let inside = |cluster: &dyn Snapshot<Central>| {
            let nodes = NodeId::all(cluster.len());
            nodes
                .filter(|&n| cluster.node(n).phase() == Phase::Inside)
                .count()
        };
        assert!(always::<Central>(&bounds, |cluster| inside(cluster) <= 1));
        assert!(!always::<Central>(&bounds, |cluster| inside(cluster) == 0));
        assert!(!always::<Central>(&bounds, |cluster| {
            let mut envelopes = 0;
            cluster.for_each_envelope(&mut |_, _, _| envelopes += 1);
            envelopes < 2
        }));
    }
}
