//! After a lock was used, no message is in flight and all nodes are idle: is every node quiescent
//! again, so that each can forget its part by itself? See `Algorithm::rests_alone`.

use std::sync::Arc;

use soloist_algorithms::carvalho_roucairol::{CarvalhoRoucairol, STAIRCASE};
use soloist_algorithms::central::Central;
use soloist_algorithms::chaudhuri_karaata::ChaudhuriKaraata;
use soloist_algorithms::lamport::Lamport;
use soloist_algorithms::le_lann::{self, LeLann};
use soloist_algorithms::lodha_kshemkalyani::LodhaKshemkalyani;
use soloist_algorithms::maekawa::Maekawa;
use soloist_algorithms::naimi_trehel::NaimiTrehel;
use soloist_algorithms::neamatollahi::{self, Neamatollahi};
use soloist_algorithms::neilsen_mizuno::NeilsenMizuno;
use soloist_algorithms::raymond::Raymond;
use soloist_algorithms::ricart_agrawala::RicartAgrawala;
use soloist_algorithms::suzuki_kasami::SuzukiKasami;
use soloist_algorithms::{
    Algorithm, Channels, Config, NodeId, Phase, Shape, Snapshot, Start, Variant, VariantSet,
};

use super::graph::Graph;
use super::plan::Plan;
use super::{Bounds, ENDLESS, Limits};

fn is_quiet(graph: &Graph, state: u32) -> bool {
    let mut nodes = NodeId::all(graph.system.nodes);
    graph.envelopes(state) == 0 && nodes.all(|node| graph.phase(state, node) == Phase::Idle)
}

fn all_at_rest<A: Algorithm>(graph: &Graph, state: u32, config: &Config<A::Shape>) -> bool {
    let snapshot = graph.snapshot::<A>(state);
    let mut nodes = NodeId::all(graph.system.nodes);
    nodes.all(|node| snapshot.node(node).is_at_rest(&config.at(node)))
}

/// Returns whether all nodes are quiescent in every state in which no message is in flight and all
/// nodes are idle.
fn rests_when_quiet<A: Algorithm>(form: &str, variants: VariantSet, requests: &[u8]) -> bool {
    let nodes = requests.len();
    let shape = match form {
        "" => A::Shape::default_for(nodes),
        form => A::Shape::parse(form, nodes).expect("a valid shape"),
    };
    let shape = Arc::new(shape);
    let mut homes = NodeId::all(nodes);
    homes.all(|home| {
        let bounds = Bounds {
            shape: Arc::clone(&shape),
            start: Start::idle(home),
            variants,
            limits: Limits {
                keep_history: false,
                states_max: 1_000_000,
                ..Limits::new(Channels::Fifo)
            },
            ..Bounds::of::<A>(requests)
        };
        let Ok(graph) = Graph::walk(&Plan::of::<A>(&bounds), &mut |_| true) else {
            panic!("{} has too many states", A::INFO.name);
        };
        let mut quiet = (0..graph.len() as u32).filter(|&state| is_quiet(&graph, state));
        quiet.all(|state| all_at_rest::<A>(&graph, state, &bounds.config()))
    })
}

/// Asserts that what the algorithm declares (`rests_alone`) matches what the search finds.
#[track_caller]
fn rests<A: Algorithm>(alone: bool, form: &str, variant: Option<Variant>, requests: &[u8]) {
    let variants = variant.iter();
    let variants = variants.fold(VariantSet::default(), |set, v| set.with(*v));
    let name = A::INFO.name;
    let start = Start::idle(NodeId::new(0));
    assert_eq!(A::rests_alone(variants, start), alone, "{name}");
    assert_eq!(
        rests_when_quiet::<A>(form, variants, requests),
        alone,
        "{name}"
    );
}

#[test]
fn which_algorithms_come_to_rest() {
    rests::<Central>(true, "", None, &[ENDLESS; 3]);
    rests::<LeLann>(true, "", Some(le_lann::RESTING), &[ENDLESS; 3]);
    let variant = Some(neamatollahi::RESTING);
    for (form, nodes) in [("2x2", 4), ("1x3", 3), ("3x1", 3)] {
        rests::<Neamatollahi>(true, form, variant, &vec![ENDLESS; nodes]);
    }
    rests::<RicartAgrawala>(true, "", None, &[2, 2, 1]);
    rests::<CarvalhoRoucairol>(true, "", None, &[2, 2, 1]);
    rests::<Lamport>(true, "", None, &[1, 1, 1]);
    rests::<Maekawa>(true, "", None, &[2, 2, 1]);
}

#[test]
fn which_algorithms_forget_together() {
    rests::<Raymond>(false, "line", None, &[ENDLESS; 4]);
    rests::<NeilsenMizuno>(false, "line", None, &[ENDLESS; 4]);
    rests::<ChaudhuriKaraata>(false, "2x1x2", None, &[ENDLESS; 4]);
    rests::<NaimiTrehel>(false, "", None, &[ENDLESS; 3]);
    rests::<SuzukiKasami>(false, "", None, &[2, 2]);
    rests::<LodhaKshemkalyani>(false, "", None, &[2, 2, 1]);
    rests::<CarvalhoRoucairol>(false, "", Some(STAIRCASE), &[2, 2, 1]);
}
