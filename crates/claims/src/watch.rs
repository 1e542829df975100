//! Small clusters observed from outside: tokens, and the exact cost of simultaneous requests.

use std::collections::VecDeque;
use std::sync::Arc;

use soloist_algorithms::{
    Algorithm, Effect, Message, NodeId, Outbox, Shape, Snapshot, Start, VariantSet,
};
use soloist_lab::network::Envelope;
use soloist_lab::world::{Event, World};

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
    let mut crowd = Crowd::<A>::new(shape, variants, home)?;
    crowd.serve(requesters)?;
    Some(crowd.messages)
}

/// The same, if the token is faster than all other messages: these arrive when all are served.
pub(super) fn cost_with_fast_token<A: Algorithm>(
    shape: &Arc<A::Shape>,
    home: NodeId,
    requesters: &[NodeId],
) -> Option<u64> {
    let mut crowd = Crowd::<A>::new(shape, VariantSet::default(), home)?;
    crowd.is_token_fast = true;
    crowd.serve(requesters)?;
    Some(crowd.messages)
}

/// Number of messages of one request after these nodes have requested at once and were served.
pub(super) fn cost_after<A: Algorithm>(
    shape: &Arc<A::Shape>,
    home: NodeId,
    before: &[NodeId],
    requester: NodeId,
) -> Option<u64> {
    let mut crowd = Crowd::<A>::new(shape, VariantSet::default(), home)?;
    crowd.serve(before)?;
    let messages = crowd.messages;
    crowd.serve(&[requester])?;
    Some(crowd.messages - messages)
}

/// Nodes that request at once, and the messages in transit, in the order sent.
struct Crowd<A: Algorithm> {
    world: World<A>,
    in_flight: VecDeque<Envelope<A::Message>>,
    out: Outbox<A::Message>,
    unserved: usize,
    messages: u64,
    /// Whether the token overtakes all other messages while a request is not served.
    is_token_fast: bool,
}

impl<A: Algorithm> Crowd<A> {
    fn new(shape: &Arc<A::Shape>, variants: VariantSet, home: NodeId) -> Option<Self> {
        let mut crowd = Crowd::<A> {
            world: World::new(shape, Start::idle(home), variants),
            in_flight: VecDeque::new(),
            out: Outbox::new(),
            // The moves of a token that has just left its home count.
            unserved: 1,
            messages: 0,
            is_token_fast: false,
        };
        for node in NodeId::all(shape.nodes()) {
            crowd.world.start(node, &mut crowd.out).ok()?;
            crowd.carry_out(node)?;
        }
        Some(crowd)
    }

    /// Lets these nodes request, and delivers messages until all are served.
    fn serve(&mut self, requesters: &[NodeId]) -> Option<()> {
        self.unserved = requesters.len();
        for &node in requesters {
            self.happen(node, Event::Request(node))?;
        }
        // More than a full round of all nodes per requester.
        let steps_max = 100 * (1 + self.world.len()) * (1 + requesters.len());
        for _ in 0..steps_max {
            if self.is_over() {
                return Some(());
            }
            let Envelope { from, to, message } = self.next()?;
            self.happen(to, Event::Deliver { from, to, message })?;
        }
        None
    }

    /// Takes the next message to arrive.
    fn next(&mut self) -> Option<Envelope<A::Message>> {
        let mut envelopes = self.in_flight.iter();
        let token = envelopes.position(|envelope| envelope.message.is_token());
        let place = token.filter(|_| self.is_token_fast && self.unserved > 0);
        self.in_flight.remove(place.unwrap_or(0))
    }

    fn is_over(&self) -> bool {
        let mut envelopes = self.in_flight.iter();
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
                self.in_flight.push_back(Envelope { from, to, message });
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
    fn concurrent_requests_cost_what_the_formulas_say() {
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
}
