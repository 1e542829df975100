use std::sync::Arc;

use soloist_algorithms::chaudhuri_karaata::{AS_PUBLISHED, ChaudhuriKaraata, REPAIRS};
use soloist_algorithms::shape::Mesh;
use soloist_algorithms::{
    Algorithm, Channels, Effect, Message, NodeId, Outbox, Phase, Shape, Start, VariantSet,
};
use soloist_lab::network::{Envelope, Network};
use soloist_lab::search::{Bounds, Limits, Outcome, search};
use soloist_lab::world::{Event, Fault, World};

use crate::{deadlocks, holds};

/// Small meshes, full and ragged, each with the number of requests per node.
const MESHES: &[(&str, &[u8])] = &[
    ("1x1x1", &[2]),
    ("1x1x2", &[2, 2]),
    ("1x1x3", &[2, 2, 2]),
    ("2x1x2", &[2, 2, 2]),
    ("2x1x2", &[2, 2, 2, 2]),
    ("1x2x2", &[2, 2, 2, 2]),
    ("2x2x1", &[2, 2, 2, 2]),
    ("1x1x4", &[1, 1, 1, 1]),
    ("2x1x3", &[1, 1, 1, 1, 1]),
    ("1x2x3", &[1, 1, 1, 1, 1, 1]),
];

fn in_mesh(form: &str, requests: &[u8]) -> Bounds<Mesh> {
    Bounds {
        shape: Arc::new(Mesh::parse(form, requests.len()).unwrap()),
        ..Bounds::of::<ChaudhuriKaraata>(requests)
    }
}

fn as_published(form: &str, requests: &[u8]) -> Bounds<Mesh> {
    Bounds {
        variants: VariantSet::default().with(AS_PUBLISHED),
        ..in_mesh(form, requests)
    }
}

/// The token starts at each node in turn, both idle and with the node inside.
#[track_caller]
fn holds_from_everywhere(channels: Channels) {
    for (form, requests) in MESHES {
        for node in NodeId::all(requests.len()) {
            for start in [Start::idle(node), Start::inside(node)] {
                holds::<ChaudhuriKaraata>(&Bounds {
                    start,
                    limits: Limits::new(channels),
                    ..in_mesh(form, requests)
                });
            }
        }
    }
}

#[test]
fn holds_in_every_mesh_wherever_the_token_starts() {
    holds_from_everywhere(Channels::Fifo);
}

/// Assumption A2 requires FIFO channels; the repaired rules do not need them.
#[test]
fn holds_in_any_order_too() {
    holds_from_everywhere(Channels::Any);
}

/// C1: two requests, from planes 1 and 2, one after the other: plane 2 keeps plane 1's request.
#[test]
fn as_published_a_stale_request_strands_a_plane() {
    let outcome = search::<ChaudhuriKaraata>(&as_published("1x1x3", &[0, 1, 1]));
    let trace = deadlocks(outcome);
    let stale = "deliver 2 1 PERMIT 1 (token)";
    assert_eq!(
        trace.last().unwrap(),
        stale,
        "plane 2 sends its token to an earlier requester"
    );
    assert_eq!(
        trace
            .iter()
            .filter(|step| step.starts_with("request"))
            .count(),
        2
    );
}

/// C2: the head passes the token on and forgets its own plane: two planes, three nodes.
#[test]
fn as_published_a_head_does_not_ask_again() {
    for form in ["2x1x2", "1x2x2"] {
        let outcome = search::<ChaudhuriKaraata>(&Bounds {
            start: Start::inside(NodeId::new(1)),
            ..as_published(form, &[1, 0, 1])
        });
        let trace = deadlocks(outcome);
        assert_eq!(trace.last().unwrap(), "release 2");
        assert!(!trace.contains(&"release 0".to_owned()), "{trace:#?}");
    }
}

/// C3: copies of requests accumulate at a head that never requests anything.
#[test]
fn as_published_queues_outgrow_theorem_4() {
    let outcome = search::<ChaudhuriKaraata>(&as_published("1x1x3", &[0, 3, 3]));
    let Outcome::Broken { fault, .. } = outcome else {
        panic!("{outcome:#?}");
    };
    let Fault::Invariant { node, broken } = fault else {
        panic!("{fault}");
    };
    assert_eq!(node, NodeId::new(0));
    assert_eq!(broken, "more is queued than Theorem 4 allows");
}

/// Smaller cases show no fault: a single plane has no other plane to ask, and in two planes of one
/// node each there is no other node to forget.
#[test]
fn as_published_holds_in_the_smallest_meshes() {
    for (form, requests) in [("2x2x1", &[2, 2, 2, 2][..]), ("1x1x2", &[3, 3])] {
        holds::<ChaudhuriKaraata>(&as_published(form, requests));
    }
}

/// A cluster with its messages in flight, for long runs.
struct Run {
    world: World<ChaudhuriKaraata>,
    network: Network<<ChaudhuriKaraata as Algorithm>::Message>,
    out: Outbox<<ChaudhuriKaraata as Algorithm>::Message>,
    random: u64,
}

impl Run {
    fn new(form: &str, nodes: usize, seed: u64) -> Self {
        let shape = Arc::new(Mesh::parse(form, nodes).unwrap());
        Run {
            world: World::new(&shape, Start::idle(NodeId::new(0)), VariantSet::default()),
            network: Network::new(),
            out: Outbox::new(),
            random: seed,
        }
    }

    /// Picks one of `choices`, by the high bits of Knuth's linear congruential generator.
    fn pick(&mut self, choices: usize) -> usize {
        self.random = self
            .random
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.random >> 33) as usize % choices
    }

    /// Performs a random enabled event. Returns false if there is none.
    fn step(&mut self, may_ask: bool) -> bool {
        let mut events: Vec<_> = self
            .world
            .iter()
            .filter_map(|(node, state)| match state.phase() {
                Phase::Idle if may_ask => Some(Event::Request(node)),
                Phase::Inside => Some(Event::Release(node)),
                Phase::Idle | Phase::Waiting => None,
            })
            .collect();
        let deliverable: Vec<_> = self.network.deliverable(Channels::Fifo).collect();
        let choices = events.len() + deliverable.len();
        if choices == 0 {
            return false;
        }
        let choice = self.pick(choices);
        let event = match choice.checked_sub(events.len()) {
            None => events.swap_remove(choice),
            Some(place) => {
                let Envelope { from, to, message } = self.network.take(deliverable[place]);
                Event::Deliver { from, to, message }
            }
        };
        let from = match event {
            Event::Request(node) | Event::Release(node) => node,
            Event::Deliver { to, .. } => to,
        };
        self.world.apply(event, &mut self.out).unwrap();
        for effect in self.out.drain() {
            if let Effect::Send { to, message } = effect {
                let envelope = Envelope { from, to, message };
                self.network.send(Channels::Fifo, envelope);
            }
        }
        true
    }

    /// Number of green and yellow tokens, including those in flight between planes.
    fn tokens(&self) -> usize {
        let here = self.world.iter().filter(|(_, node)| node.has_token());
        let envelopes = self.network.envelopes().iter();
        here.count()
            + envelopes
                .filter(|envelope| envelope.message.is_token())
                .count()
    }
}

/// Invariants I1 and I2: there is one privileged plane, or its token is in flight. When no node
/// requests any longer, every request gets served.
#[test]
fn one_privileged_plane_at_any_time() {
    for (form, nodes) in [("3x3x3", 27), ("2x2x7", 26), ("1x1x9", 9), ("4x2x2", 13)] {
        for seed in 0..20 {
            let mut run = Run::new(form, nodes, seed);
            for step in 0.. {
                if !run.step(step < 3_000) {
                    break;
                }
                assert_eq!(run.tokens(), 1, "{form}, seed {seed}, step {step}");
                run.world.check_invariants().unwrap();
            }
            let idle = |(_, node): (_, &ChaudhuriKaraata)| node.phase() == Phase::Idle;
            assert!(
                run.world.iter().all(idle),
                "{form}, seed {seed}: {:#?}",
                run.world
            );
        }
    }
}

/// The printed rules with some of their repairs.
fn partly_repaired(form: &str, requests: &[u8], repairs: &[usize]) -> Bounds<Mesh> {
    let published = as_published(form, requests);
    let add = |set: VariantSet, repair: &usize| set.with(REPAIRS[*repair]);
    Bounds {
        variants: repairs.iter().fold(published.variants, add),
        ..published
    }
}

/// The smaller repair: REQUESTs still go to all planes.
#[test]
fn the_smaller_repair_is_live_and_keeps_to_theorem_4() {
    let meshes: [(&str, &[u8]); 6] = [
        ("1x1x2", &[3, 3]),
        ("1x1x3", &[2, 2, 2]),
        ("2x1x2", &[2, 2, 2]),
        ("1x2x2", &[1, 1, 1, 1]),
        ("2x2x1", &[2, 2, 2, 2]),
        ("1x1x4", &[1, 1, 1, 1]),
    ];
    for (form, requests) in meshes {
        holds::<ChaudhuriKaraata>(&partly_repaired(form, requests, &[0, 1]));
    }
}

/// C1 and C2 without C3: planes that ask once, but not again.
#[test]
fn planes_that_do_not_ask_again_wait_forever() {
    for (form, requests) in [("1x1x3", &[0, 1, 1][..]), ("2x1x2", &[1, 1, 1])] {
        let outcome = search::<ChaudhuriKaraata>(&partly_repaired(form, requests, &[1]));
        deadlocks(outcome);
    }
}

/// C3 without C1 and C2.
#[test]
fn planes_that_ask_each_time_outgrow_theorem_4() {
    let bounds = partly_repaired("1x1x3", &[0, 6, 6], &[0]);
    let outcome = search::<ChaudhuriKaraata>(&bounds);
    let Outcome::Broken { fault, .. } = &outcome else {
        panic!("{outcome:#?}");
    };
    assert!(fault.to_string().contains("Theorem 4"), "{fault}");
}
