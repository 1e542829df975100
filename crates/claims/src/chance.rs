//! Random walks of a cluster that are observed after each step. They measure what a simulated run
//! does not report, at sizes too large for a search.

use std::sync::Arc;

use soloist_algorithms::{
    Algorithm, Channels, Effect, NodeId, Outbox, Phase, Shape, Start, VariantSet,
};
use soloist_lab::network::{Envelope, Network};
use soloist_lab::simulate::Random;
use soloist_lab::world::{Event, Fault, World};

/// A cluster, its messages in transit, and a random generator.
pub(super) struct Cluster<A: Algorithm> {
    pub(super) world: World<A>,
    pub(super) network: Network<A::Message>,
    pub(super) random: Random,
    channels: Channels,
    /// Number of requests that each node may still make.
    left: Vec<u8>,
}

/// A step and its effects.
pub(super) struct Step<M> {
    /// The node that took the step.
    pub(super) node: NodeId,
    /// Sender and content of the message that arrived, or `None` if the node requested or released.
    pub(super) arrived: Option<(NodeId, M)>,
    /// Messages that the node sent.
    pub(super) sent: Vec<M>,
    /// Whether the node entered.
    pub(super) entered: bool,
}

impl<A: Algorithm> Cluster<A> {
    /// A cluster with the token at node 0. Each node makes this many requests.
    pub(super) fn new(
        shape: &Arc<A::Shape>,
        variants: VariantSet,
        channels: Channels,
        requests: u8,
        seed: u64,
    ) -> Self {
        let start = Start::idle(NodeId::new(0));
        Cluster {
            world: World::new(shape, start, variants),
            network: Network::new(),
            random: Random::new(seed, 0),
            channels,
            left: vec![requests; shape.nodes()],
        }
    }

    /// Returns a random item, or `None` if there are none.
    pub(super) fn pick<T: Copy>(&mut self, items: &[T]) -> Option<T> {
        match items.len() as u64 {
            0 => None,
            count => Some(items[self.random.below(count) as usize]),
        }
    }

    /// Takes a random step of all enabled ones. Returns `None` if none is enabled.
    pub(super) fn step(&mut self) -> Option<Result<Step<A::Message>, Fault>> {
        let mut events = Vec::new();
        for (node, state) in self.world.iter() {
            match state.phase() {
                Phase::Idle if self.left[node.index()] > 0 => events.push((node, None)),
                Phase::Inside => events.push((node, None)),
                Phase::Idle | Phase::Waiting => {}
            }
        }
        let envelopes = self.network.envelopes();
        let arriving = self.network.deliverable(self.channels);
        events.extend(arriving.map(|place| (envelopes[place].to, Some(place))));
        let (node, place) = self.pick(&events)?;
        Some(self.happen(node, place))
    }

    /// Delivers the message at this place. Without one, the node requests or releases.
    fn happen(&mut self, node: NodeId, place: Option<usize>) -> Result<Step<A::Message>, Fault> {
        let mut arrived = None;
        let event = if let Some(place) = place {
            let Envelope { from, to, message } = self.network.take(place);
            arrived = Some((from, message.clone()));
            Event::Deliver { from, to, message }
        } else if self.world.node(node).phase() == Phase::Inside {
            Event::Release(node)
        } else {
            self.left[node.index()] -= 1;
            Event::Request(node)
        };
        let mut out = Outbox::new();
        self.world.apply(event, &mut out)?;
        self.world.check_invariants()?;
        let entered = out.entered();
        let sent = self.post(node, &mut out);
        Ok(Step {
            node,
            arrived,
            sent,
            entered,
        })
    }

    /// Sends a node's messages, and returns them.
    pub(super) fn post(&mut self, from: NodeId, out: &mut Outbox<A::Message>) -> Vec<A::Message> {
        let mut sent = Vec::new();
        for effect in out.drain() {
            if let Effect::Send { to, message } = effect {
                sent.push(message.clone());
                let envelope = Envelope { from, to, message };
                self.network.send(self.channels, envelope);
            }
        }
        sent
    }

    /// Returns whether all requests were made and every node is idle.
    pub(super) fn all_served(&self) -> bool {
        let idle = |(_, node): (NodeId, &A)| node.phase() == Phase::Idle;
        self.left.iter().all(|&left| left == 0) && self.world.iter().all(idle)
    }
}
