use std::sync::Arc;

use soloist_algorithms::raymond::{GREEDY, INITIALIZE, PIGGYBACK, Raymond};
use soloist_algorithms::shape::Tree;
use soloist_algorithms::{NodeId, Shape, Start, VariantSet};
use soloist_lab::search::Bounds;

use crate::holds;

/// Every tree of up to four nodes, each with its nodes up to symmetry.
pub(crate) const TREES_TO_4: [(&str, usize, &[u32]); 5] = [
    ("line", 1, &[0]),
    ("line", 2, &[0]),
    ("line", 3, &[0, 1]),
    ("line", 4, &[0, 1]),
    ("star:3", 4, &[0, 1]),
];

/// The same for every tree of five nodes: the line, the star, and the one between them.
pub(crate) const TREES_OF_5: [(&str, usize, &[u32]); 3] = [
    ("line", 5, &[0, 1, 2]),
    ("star:4", 5, &[0, 1]),
    ("kary:2", 5, &[0, 1, 2, 3]),
];

/// The default rules, and every combination of the paper's variants.
pub(crate) fn all_variants() -> impl Iterator<Item = VariantSet> {
    let variants = [PIGGYBACK, GREEDY, INITIALIZE];
    (0..1 << variants.len()).map(move |combination: u8| {
        let chosen = (0..)
            .zip(variants)
            .filter(|(i, _)| combination & 1 << i != 0);
        chosen.fold(VariantSet::default(), |set, (_, v)| set.with(v))
    })
}

fn on(form: &str, requests: &[u8]) -> Bounds<Tree> {
    Bounds {
        shape: Arc::new(Tree::parse(form, requests.len()).unwrap()),
        ..Bounds::of::<Raymond>(requests)
    }
}

#[test]
fn holds_on_every_tree_of_up_to_four_with_every_variant() {
    for (form, nodes, homes) in TREES_TO_4 {
        for &home in homes {
            for variants in all_variants() {
                holds::<Raymond>(&Bounds {
                    start: Start::idle(NodeId::new(home)),
                    variants,
                    ..on(form, &vec![2; nodes])
                });
            }
        }
    }
}

#[test]
fn holds_on_every_tree_of_five() {
    for (form, nodes, homes) in TREES_OF_5 {
        for &home in homes {
            holds::<Raymond>(&Bounds {
                start: Start::idle(NodeId::new(home)),
                ..on(form, &vec![1; nodes])
            });
        }
    }
}

#[test]
fn holds_on_every_tree_of_five_with_every_variant() {
    for (form, nodes, _) in TREES_OF_5 {
        for variants in all_variants() {
            holds::<Raymond>(&Bounds {
                variants,
                ..on(form, &vec![1; nodes])
            });
        }
    }
}

/// Also if the token's home is not the node inside.
#[test]
fn holds_for_every_node_that_starts_inside() {
    for (form, nodes, inside) in TREES_TO_4 {
        for &inside in inside {
            for variants in all_variants() {
                let start = Start {
                    home: NodeId::from_index(nodes - 1),
                    inside: Some(NodeId::new(inside)),
                };
                holds::<Raymond>(&Bounds {
                    start,
                    variants,
                    ..on(form, &vec![1; nodes])
                });
            }
        }
    }
}
