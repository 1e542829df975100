//! The most often that one waiter is overtaken.
//!
//! A node of the weighted graph is a state in which a chosen node waits, with the messages of its
//! request that have not arrived, and the nodes that have requested since all had arrived.

use indexmap::IndexMap;
use rustc_hash::FxBuildHasher;
use soloist_algorithms::{NodeId, Phase};

use super::weighted::Weighted;
use super::{Worst, conclude};
use crate::search::Limit;
use crate::search::graph::{Graph, Step};
use crate::search::packed::PackedEnvelope;
use crate::search::system::Action;

/// A state in which a node waits.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Wait {
    state: u32,
    waiter: NodeId,
    /// The messages of its request that are in flight, sorted.
    pending: Vec<u32>,
    /// The nodes that have requested since all of these had arrived, one bit per node.
    later: u64,
}

type Waits = IndexMap<Wait, (), FxBuildHasher>;

/// The first state of a wait, and the way to it: the state before the request, and the request.
struct Root {
    node: u32,
    before: u32,
    request: Action,
}

pub(super) fn most(graph: &mut Graph, nodes_max: usize) -> Worst {
    let mut waits = Waits::default();
    let roots = roots(graph, &mut waits);
    if roots.is_empty() {
        return Worst::Most {
            most: 0,
            entries: 0,
            states: graph.len(),
            trace: Vec::new(),
        };
    }
    let mut weighted = Weighted::default();
    let mut number = 0;
    while let Some((wait, ())) = waits.get_index(number) {
        let wait = wait.clone();
        weighted.add_node(wait.state);
        for (label, step) in graph.steps(wait.state).iter().enumerate() {
            let Some((next, gain)) = wait.after(graph, step) else {
                continue;
            };
            let (target, _) = waits.insert_full(next, ());
            weighted.add_edge(target as u32, gain, label);
        }
        number += 1;
        if waits.len() > nodes_max {
            let (states, limit) = (waits.len(), Limit::States);
            return Worst::NotExhausted { states, limit };
        }
    }
    weighted.seal();
    let nodes: Vec<u32> = roots.iter().map(|root| root.node).collect();
    let longest = weighted.longest(&nodes);
    conclude(graph, &weighted, longest, |graph, node| {
        let root = roots.iter().find(|root| root.node == node);
        let root = root.expect("a wait begins with a request");
        let mut way = graph.way_to(root.before);
        way.push(root.request);
        way
    })
}

fn roots(graph: &Graph, waits: &mut Waits) -> Vec<Root> {
    let mut roots: Vec<Root> = Vec::new();
    for before in 0..graph.len() as u32 {
        for step in graph.steps(before) {
            let Action::Request(waiter) = step.action else {
                continue;
            };
            if graph.phase(step.target, waiter) != Phase::Waiting {
                continue;
            }
            let mut pending = in_flight(graph, step.target);
            for word in in_flight(graph, before) {
                let place = pending.binary_search(&word);
                pending.remove(place.expect("a request removes no message"));
            }
            let wait = Wait {
                state: step.target,
                waiter,
                pending,
                later: 0,
            };
            let (node, _) = waits.insert_full(wait, ());
            let node = node as u32;
            if roots.last().is_none_or(|last| last.node < node) {
                roots.push(Root {
                    node,
                    before,
                    request: step.action,
                });
            }
        }
    }
    roots
}

/// The messages in flight, sorted.
fn in_flight(graph: &Graph, state: u32) -> Vec<u32> {
    let envelopes = graph.system.envelopes(graph.state(state));
    let mut words: Vec<u32> = envelopes.map(PackedEnvelope::bare).collect();
    words.sort_unstable();
    words
}

impl Wait {
    /// The wait after a step, and how often the waiter is overtaken on it. `None` if the wait ends.
    fn after(&self, graph: &Graph, step: &Step) -> Option<(Wait, u32)> {
        let state = step.target;
        if graph.phase(state, self.waiter) != Phase::Waiting {
            return None;
        }
        let mut wait = Wait {
            state,
            ..self.clone()
        };
        if !self.pending.is_empty() {
            let mut left = in_flight(graph, state);
            wait.pending.retain(|word| {
                let place = left.binary_search(word);
                place.is_ok_and(|place| left.remove(place) == *word)
            });
            return Some((wait, 0));
        }
        if let Action::Request(node) = step.action {
            wait.later |= 1 << node.index();
        }
        let entered = graph.entered(self.state, state);
        let overtakes = entered.filter(|node| wait.later >> node.index() & 1 == 1);
        if let Some(node) = overtakes {
            wait.later &= !(1 << node.index());
        }
        Some((wait, u32::from(overtakes.is_some())))
    }
}
