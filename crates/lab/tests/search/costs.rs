//! The most messages per entry, compared with a plain enumeration of all runs.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::Arc;

use soloist_algorithms::central::Central;
use soloist_algorithms::maekawa::Maekawa;
use soloist_algorithms::naimi_trehel::NaimiTrehel;
use soloist_algorithms::raymond::Raymond;
use soloist_algorithms::ricart_agrawala::RicartAgrawala;
use soloist_algorithms::suzuki_kasami::SuzukiKasami;
use soloist_algorithms::{Algorithm, Channels, Effect, NodeId, Outbox, Phase, Shape, VariantSet};
use soloist_lab::search::{Aim, Bounds, Worst, worst};
use soloist_lab::world::{Event, World};

/// A run so far: the cluster, the requests left, the messages in flight, and the costs.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Run<A: Algorithm> {
    world: World<A>,
    left: Vec<u8>,
    flight: BTreeMap<(NodeId, NodeId), VecDeque<A::Message>>,
    messages: u64,
    entries: u64,
}

impl<A: Algorithm> Run<A> {
    fn new(bounds: &Bounds<A::Shape>) -> Self {
        let mut run = Run {
            world: World::new(&bounds.shape, bounds.start, VariantSet::default()),
            left: bounds.requests.clone(),
            flight: BTreeMap::new(),
            messages: 0,
            entries: 0,
        };
        for node in NodeId::all(bounds.requests.len()) {
            let mut out = Outbox::new();
            run.world.start(node, &mut out).expect("a node starts");
            run.post(node, &mut out);
        }
        run
    }

    fn post(&mut self, from: NodeId, out: &mut Outbox<A::Message>) {
        for effect in out.drain() {
            match effect {
                Effect::Enter => self.entries += 1,
                Effect::Send { to, message } => {
                    self.messages += 1;
                    self.flight
                        .entry((from, to))
                        .or_default()
                        .push_back(message);
                }
            }
        }
    }

    /// The run after an event.
    fn after(mut self, event: Event<A::Message>) -> Self {
        let (node, mut out) = (event.node(), Outbox::new());
        self.world
            .apply(event, &mut out)
            .expect("nothing is refused");
        self.post(node, &mut out);
        self
    }

    /// All runs that are one event longer.
    fn longer(&self, channels: Channels) -> Vec<Self> {
        let mut runs = Vec::new();
        for (node, state) in self.world.iter() {
            let mut next = self.clone();
            match state.phase() {
                Phase::Idle if self.left[node.index()] > 0 => {
                    next.left[node.index()] -= 1;
                    runs.push(next.after(Event::Request(node)));
                }
                Phase::Inside => runs.push(next.after(Event::Release(node))),
                Phase::Idle | Phase::Waiting => {}
            }
        }
        for (&(from, to), queue) in &self.flight {
            let deliverable = match channels {
                Channels::Fifo => 1,
                Channels::Any => queue.len(),
            };
            for place in 0..deliverable {
                let mut next = self.clone();
                let queue = next.flight.get_mut(&(from, to)).expect("it is in flight");
                let message = queue.remove(place).expect("a place in the queue");
                if queue.is_empty() {
                    next.flight.remove(&(from, to));
                }
                runs.push(next.after(Event::Deliver { from, to, message }));
            }
        }
        runs
    }

    fn is_complete(&self) -> bool {
        let mut nodes = self.world.iter();
        self.flight.is_empty() && nodes.all(|(_, state)| state.phase() == Phase::Idle)
    }
}

/// The largest ratio of messages to entries over all complete runs.
fn enumerated<A: Algorithm>(bounds: &Bounds<A::Shape>) -> (u64, u64) {
    let first = Run::<A>::new(bounds);
    let mut seen = HashSet::from([first.clone()]);
    let mut open = vec![first];
    let mut most = (0, 1);
    while let Some(run) = open.pop() {
        let cost = (run.messages, run.entries);
        if run.is_complete() && cost.0 * most.1 > most.0 * cost.1 {
            most = cost;
        }
        for next in run.longer(bounds.limits.channels) {
            if seen.insert(next.clone()) {
                open.push(next);
            }
        }
    }
    most
}

#[track_caller]
fn agrees<A: Algorithm>(bounds: &Bounds<A::Shape>) -> (u64, u64) {
    let expected = enumerated::<A>(bounds);
    match worst::<A>(bounds, Aim::Messages, &mut |_| true) {
        Worst::Most { most, entries, .. } => {
            let is_equal = most * expected.1 == expected.0 * entries;
            assert!(is_equal, "{most}/{entries} instead of {expected:?}");
            (most, entries)
        }
        worst => panic!("{worst:?}"),
    }
}

fn on<A: Algorithm>(form: &str, requests: &[u8]) -> Bounds<A::Shape> {
    Bounds {
        shape: Arc::new(A::Shape::parse(form, requests.len()).expect("a shape")),
        ..Bounds::of::<A>(requests)
    }
}

/// A lone entry of another node costs 3; those of the coordinator cost nothing, so a run in which
/// all nodes enter costs less per entry.
#[test]
fn a_coordinator_costs_three_messages_per_entry() {
    let cost = agrees::<Central>(&Bounds::of::<Central>(&[1, 1, 1]));
    assert_eq!(cost, (3, 1));
    agrees::<Central>(&Bounds::of::<Central>(&[2, 1, 2]));
}

/// Raymond 1989, §5: 2D messages. The first entry of the far end costs that; each entry between the
/// ends makes the average smaller.
#[test]
fn a_line_costs_twice_its_diameter() {
    let line = |requests: &[u8]| on::<Raymond>("line", requests);
    assert_eq!(agrees::<Raymond>(&line(&[1, 1, 1])), (4, 1));
    assert_eq!(agrees::<Raymond>(&line(&[2, 2])), (2, 1));
    agrees::<Raymond>(&line(&[1, 1, 1, 1]));
}

#[test]
fn maekawas_members_cost_more_under_contention() {
    let grid = |requests: &[u8]| on::<Maekawa>("grid", requests);
    let (messages, entries) = agrees::<Maekawa>(&grid(&[0, 0, 1, 1]));
    // A request alone costs 3(K-1) = 6.
    assert!(messages > 6 * entries);
    agrees::<Maekawa>(&grid(&[1, 1, 1]));
}

#[test]
fn permissions_and_broadcast_tokens_cost_what_they_always_cost() {
    let cost = agrees::<RicartAgrawala>(&Bounds::of::<RicartAgrawala>(&[1, 1, 1]));
    assert_eq!(cost, (4, 1));
    let cost = agrees::<SuzukiKasami>(&Bounds::of::<SuzukiKasami>(&[1, 1, 1]));
    assert_eq!(cost, (3, 1));
}

#[test]
fn naimi_and_trehels_paths_are_never_longer_than_the_cluster() {
    let bounds = Bounds::of::<NaimiTrehel>(&[1, 1, 1]);
    let (messages, entries) = agrees::<NaimiTrehel>(&bounds);
    assert!(messages <= 3 * entries, "{messages}/{entries}");
}
