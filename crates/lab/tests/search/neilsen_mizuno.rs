use std::sync::Arc;

use soloist_algorithms::neilsen_mizuno::NeilsenMizuno;
use soloist_algorithms::shape::Tree;
use soloist_algorithms::{NodeId, Shape, Start};
use soloist_lab::search::Bounds;

use crate::holds;
use crate::raymond::{TREES_OF_5, TREES_TO_4};

fn on(form: &str, requests: &[u8], start: Start) -> Bounds<Tree> {
    Bounds {
        shape: Arc::new(Tree::parse(form, requests.len()).unwrap()),
        start,
        ..Bounds::of::<NeilsenMizuno>(requests)
    }
}

#[test]
fn holds_in_any_order_on_every_tree_of_up_to_four() {
    for (form, nodes, homes) in TREES_TO_4 {
        for home in homes.iter().copied().map(NodeId::new) {
            let requests = vec![2; nodes];
            holds::<NeilsenMizuno>(&on(form, &requests, Start::idle(home)));
            holds::<NeilsenMizuno>(&on(form, &requests, Start::inside(home)));
        }
    }
}

#[test]
fn holds_in_any_order_on_every_tree_of_five() {
    for (form, nodes, homes) in TREES_OF_5 {
        for home in homes.iter().copied().map(NodeId::new) {
            holds::<NeilsenMizuno>(&on(form, &vec![1; nodes], Start::idle(home)));
        }
    }
}
