use std::sync::Arc;

use soloist_algorithms::le_lann::{LeLann, LeLannMessage, RESTING};
use soloist_algorithms::shape::Ring;
use soloist_algorithms::{
    Algorithm, Channels, Effect, Message, NodeId, Outbox, Phase, Shape, Start, VariantSet,
};
use soloist_lab::network::{Envelope, Network};
use soloist_lab::search::Bounds;
use soloist_lab::simulate::Random;
use soloist_lab::world::{Event, World};

use crate::{fair, holds};

/// The restless and the resting variant.
fn forms() -> [VariantSet; 2] {
    let restless = VariantSet::default();
    [restless, restless.with(RESTING)]
}

/// No node inside and the token at each node in turn; then each node inside.
fn starts(nodes: usize) -> impl Iterator<Item = Start> {
    let idle = NodeId::all(nodes).map(Start::idle);
    idle.chain(NodeId::all(nodes).map(Start::inside))
}

fn holds_in_both_forms(start: Start, requests: &[u8]) {
    for variants in forms() {
        holds::<LeLann>(&Bounds {
            start,
            variants,
            ..Bounds::of::<LeLann>(requests)
        });
    }
}

#[test]
fn holds_in_any_order_from_any_start() {
    for nodes in 1..=4 {
        for start in starts(nodes) {
            holds_in_both_forms(start, &vec![2; nodes]);
        }
    }
}

/// The node that starts inside is the token's resting place, whichever node is home.
#[test]
fn holds_when_home_is_another_node() {
    let start = Start {
        home: NodeId::new(2),
        inside: Some(NodeId::new(0)),
    };
    holds_in_both_forms(start, &[2, 2, 2]);
}

#[test]
fn nobody_starves_on_the_restless_ring() {
    for nodes in 1..=4 {
        fair::serves_all::<LeLann>(&fair::endless::<LeLann>(nodes), usize::MAX);
    }
}

/// Over FIFO channels, endless runs have finitely many states.
#[test]
fn nobody_starves_on_the_resting_ring() {
    for nodes in 1..=4 {
        let mut bounds = fair::endless::<LeLann>(nodes);
        bounds.variants = VariantSet::default().with(RESTING);
        bounds.limits.channels = Channels::Fifo;
        fair::serves_all::<LeLann>(&bounds, usize::MAX);
    }
}

/// A REQUEST that the token overtakes repeatedly can be joined by more and more of them, so the
/// messages in flight are limited to five.
#[test]
fn nobody_starves_on_the_resting_ring_when_messages_overtake_each_other() {
    fair::serves_all::<LeLann>(
        &Bounds {
            variants: VariantSet::default().with(RESTING),
            ..fair::endless::<LeLann>(3)
        },
        5,
    );
}

/// A ring driven step by step. Asserts that there is always exactly one token.
struct Driven {
    world: World<LeLann>,
    network: Network<LeLannMessage>,
    sent: usize,
}

impl Driven {
    fn resting(nodes: usize, start: Start) -> Self {
        let shape = Arc::new(Ring::default_for(nodes));
        let variants = VariantSet::default().with(RESTING);
        let mut driven = Driven {
            world: World::new(&shape, start, variants),
            network: Network::new(),
            sent: 0,
        };
        let mut out = Outbox::new();
        for node in NodeId::all(nodes) {
            driven.world.start(node, &mut out).unwrap();
            driven.post(node, &mut out);
        }
        driven
    }

    fn happen(&mut self, node: NodeId, event: Event<LeLannMessage>) {
        let mut out = Outbox::new();
        self.world.apply(event, &mut out).unwrap();
        self.world.check_invariants().unwrap();
        self.post(node, &mut out);
    }

    fn post(&mut self, from: NodeId, out: &mut Outbox<LeLannMessage>) {
        for effect in out.drain() {
            if let Effect::Send { to, message } = effect {
                let envelope = Envelope { from, to, message };
                self.network.send(Channels::Any, envelope);
                self.sent += 1;
            }
        }
        let here = self.world.iter().filter(|(_, node)| node.has_token());
        let envelopes = self.network.envelopes().iter();
        let under_way = envelopes.filter(|envelope| envelope.message.is_token());
        assert_eq!(here.count() + under_way.count(), 1, "one token");
    }

    fn deliver(&mut self, place: usize) {
        let Envelope { from, to, message } = self.network.take(place);
        self.happen(to, Event::Deliver { from, to, message });
    }

    /// Releases the node inside and delivers all messages in random order, until nothing more can
    /// happen.
    fn drain(&mut self, random: &mut Random) {
        for _ in 0..10_000 {
            let is_inside = |node: &NodeId| self.world.node(*node).phase() == Phase::Inside;
            let inside = NodeId::all(self.world.len()).find(is_inside);
            let envelopes = self.network.envelopes().len() as u64;
            let choice = random.below(envelopes + u64::from(inside.is_some()));
            match inside {
                _ if choice < envelopes => self.deliver(choice as usize),
                Some(node) => self.happen(node, Event::Release(node)),
                None => return,
            }
        }
        panic!("messages never stop");
    }
}

#[test]
fn an_idle_resting_ring_sends_nothing() {
    for nodes in 1..=8 {
        let home = NodeId::from_index(nodes / 2);
        let driven = Driven::resting(nodes, Start::idle(home));
        assert_eq!(driven.sent, 0);
        assert!(driven.world.node(home).has_token());
        let mut driven = Driven::resting(nodes, Start::inside(home));
        driven.happen(home, Event::Release(home));
        assert_eq!(driven.sent, 0);
        assert!(driven.world.node(home).has_token());
    }
}

/// N-p REQUESTs from the node p places to the right of the resting place, and N moves of the token.
#[test]
fn a_lone_request_costs_at_most_2n_minus_1_messages() {
    let mut random = Random::new(1, 1);
    for nodes in 1..=8 {
        for home in NodeId::all(nodes) {
            let mut driven = Driven::resting(nodes, Start::idle(home));
            for node in NodeId::all(nodes) {
                let places = (node.index() + nodes - home.index()) % nodes;
                let cost = if places == 0 { 0 } else { 2 * nodes - places };
                driven.sent = 0;
                driven.happen(node, Event::Request(node));
                driven.drain(&mut random);
                assert_eq!(driven.sent, cost, "{node} of {nodes}, home {home}");
            }
        }
    }
}

/// This is why an unused lock may be forgotten.
#[test]
fn a_resting_ring_that_is_drained_is_as_new() {
    for seed in 0..300 {
        let mut random = Random::new(seed, 2);
        let nodes = 1 + random.below(8) as usize;
        let home = NodeId::from_index(random.below(nodes as u64) as usize);
        let mut driven = Driven::resting(nodes, Start::idle(home));
        let new = driven.world.clone();
        for _ in 0..200 {
            let envelopes = driven.network.envelopes().len() as u64;
            let choice = random.below(envelopes + nodes as u64);
            if choice < envelopes {
                driven.deliver(choice as usize);
                continue;
            }
            let node = NodeId::from_index((choice - envelopes) as usize);
            match driven.world.node(node).phase() {
                Phase::Idle => driven.happen(node, Event::Request(node)),
                Phase::Inside => driven.happen(node, Event::Release(node)),
                Phase::Waiting => {}
            }
        }
        driven.drain(&mut random);
        assert_eq!(driven.world, new, "seed {seed}");
    }
}
