//! When a lock has been used, and its home has used it last, is every node at rest again? In every
//! state in which nothing is under way and nobody waits or is inside, home asks, enters and leaves.

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
    Algorithm, Channels, NodeId, Phase, Shape, Snapshot, Start, Variant, VariantSet,
};

use super::graph::Graph;
use super::system::Action;
use super::{Bounds, ENDLESS};

/// When all nodes are at rest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Rest {
    /// Always, when nothing is under way and nobody waits or is inside.
    WhenQuiet,
    /// Then, if home was the last one inside.
    WhenHomeWasLast,
    /// Sometimes not even then.
    NotAlways,
}

fn is_quiet<A: Algorithm>(graph: &Graph<A>, state: u32) -> bool {
    let mut nodes = NodeId::all(graph.system.nodes);
    graph.letters(state) == 0 && nodes.all(|node| graph.phase(state, node) == Phase::Idle)
}

fn all_at_rest<A: Algorithm>(graph: &Graph<A>, state: u32) -> bool {
    let config = graph.system.bounds.config();
    let snapshot = graph.snapshot(state);
    let mut nodes = NodeId::all(graph.system.nodes);
    nodes.all(|node| snapshot.node(node).is_at_rest(&config.at(node)))
}

/// The quiet states that home's use of the lock leads to, in every order of events; nobody else asks.
fn after_home<A: Algorithm>(graph: &Graph<A>, from: u32, home: NodeId) -> Vec<u32> {
    let asks = |action| action == Action::Request(home);
    let first = graph.steps(from).into_iter().find(|step| asks(step.action));
    let mut open: Vec<u32> = first.iter().map(|step| step.target).collect();
    let mut seen = open.clone();
    let mut ends = Vec::new();
    while let Some(state) = open.pop() {
        if is_quiet(graph, state) {
            ends.push(state);
            continue;
        }
        for step in graph.steps(state) {
            let is_request = matches!(step.action, Action::Request(_));
            if !is_request && !seen.contains(&step.target) {
                seen.push(step.target);
                open.push(step.target);
            }
        }
    }
    ends
}

fn rest_of<A: Algorithm>(form: &str, variant: Option<Variant>, requests: &[u8]) -> Rest {
    let nodes = requests.len();
    let shape = match form {
        "" => A::Shape::default_for(nodes),
        form => A::Shape::parse(form, nodes).expect("a shape that there is"),
    };
    let shape = Arc::new(shape);
    let mut rest = Rest::WhenQuiet;
    for home in NodeId::all(nodes) {
        let bounds = Bounds {
            shape: Arc::clone(&shape),
            start: Start::idle(home),
            channels: Channels::Fifo,
            variants: variant
                .iter()
                .fold(VariantSet::default(), |set, v| set.with(*v)),
            keep_history: false,
            states_max: 1_000_000,
            ..Bounds::of::<A>(requests)
        };
        let Ok(graph) = Graph::<A>::walk(&bounds) else {
            panic!("{} has too many states", A::INFO.name);
        };
        let quiet = (0..graph.len() as u32).filter(|&state| is_quiet(&graph, state));
        for state in quiet {
            if !all_at_rest(&graph, state) {
                rest = rest.max(Rest::WhenHomeWasLast);
            }
            let ends = after_home(&graph, state, home);
            if ends.iter().any(|&end| !all_at_rest(&graph, end)) {
                rest = Rest::NotAlways;
            }
        }
    }
    rest
}

#[test]
fn what_comes_to_rest_by_itself() {
    let rest = Rest::WhenQuiet;
    assert_eq!(rest_of::<Central>("", None, &[ENDLESS; 3]), rest);
    let variant = Some(le_lann::RESTING);
    assert_eq!(rest_of::<LeLann>("", variant, &[ENDLESS; 3]), rest);
    let variant = Some(neamatollahi::RESTING);
    for (form, nodes) in [("2x2", 4), ("1x3", 3), ("3x1", 3)] {
        let requests = vec![ENDLESS; nodes];
        assert_eq!(rest_of::<Neamatollahi>(form, variant, &requests), rest);
    }
    assert_eq!(rest_of::<RicartAgrawala>("", None, &[2, 2, 1]), rest);
    assert_eq!(rest_of::<CarvalhoRoucairol>("", None, &[2, 2, 1]), rest);
    assert_eq!(rest_of::<Lamport>("", None, &[1, 1, 1]), rest);
    assert_eq!(rest_of::<Maekawa>("", None, &[2, 2, 1]), rest);
}

#[test]
fn what_comes_to_rest_when_home_uses_the_lock_last() {
    let rest = Rest::WhenHomeWasLast;
    for form in ["line", "star:3"] {
        assert_eq!(rest_of::<Raymond>(form, None, &[ENDLESS; 4]), rest);
        assert_eq!(rest_of::<NeilsenMizuno>(form, None, &[ENDLESS; 4]), rest);
    }
    for form in ["2x1x2", "1x1x4"] {
        assert_eq!(rest_of::<ChaudhuriKaraata>(form, None, &[ENDLESS; 4]), rest);
    }
}

#[test]
fn what_does_not_always_come_to_rest() {
    let rest = Rest::NotAlways;
    assert_eq!(rest_of::<NaimiTrehel>("", None, &[ENDLESS; 3]), rest);
    assert_eq!(rest_of::<SuzukiKasami>("", None, &[2, 2]), rest);
    assert_eq!(rest_of::<LodhaKshemkalyani>("", None, &[2, 2, 2]), rest);
    let variant = Some(STAIRCASE);
    assert_eq!(rest_of::<CarvalhoRoucairol>("", variant, &[2, 2, 2]), rest);
}
