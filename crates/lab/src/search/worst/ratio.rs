//! The most messages per entry in endless runs: the largest ratio over all cycles.
//!
//! Dinkelbach's method: given the ratio p/q of some cycle, each step gains q messages and loses p
//! for an entry. A cycle with a positive gain has a larger ratio, and the search goes on with that.
//! If there is none, the ratio is the largest. Positive cycles are found as in Bellman and Ford's
//! algorithm. All numbers are integers, so the result is exact.
//!
//! Only strongly connected components in which a fair run can stay are examined. A fair run can
//! repeat a cycle of such a component as often as it likes between the other steps that it owes, so
//! that its messages per entry come as close to the ratio as one likes.

use super::Worst;
use super::weighted::{Edge, Weighted};
use crate::search::components::Components;
use crate::search::graph::{Endless, Graph};
use crate::search::starvation;

/// A step within a component. Its states are numbered from 0.
struct Arc {
    source: u32,
    target: u32,
    edge: Edge,
    messages: i64,
    entries: i64,
}

/// A cycle and its totals.
#[derive(Default)]
struct Cycle {
    messages: i64,
    entries: i64,
    edges: Vec<Edge>,
}

pub(super) fn most(graph: &mut Graph) -> Worst {
    let weighted = Weighted::of_messages(graph);
    let mut best = Cycle {
        entries: 1,
        ..Cycle::default()
    };
    let mut place = vec![u32::MAX; graph.len()];
    Components::new(&*graph, |_| true).for_each(|component| {
        component.sort_unstable();
        let arcs = arcs(graph, &weighted, component, &mut place);
        if arcs.is_empty() || best.entries == 0 || !starvation::is_trap(graph, component) {
            return;
        }
        while let Some(cycle) = better(component.len(), &arcs, &best) {
            best = cycle;
            if best.entries == 0 {
                break;
            }
        }
    });
    let states = graph.len();
    let first = best.edges.first().map_or(0, |edge| edge.source);
    let run = Endless {
        way: graph.way_to(first),
        cycle: weighted.actions(graph, &best.edges),
    };
    let (trace, cycle) = graph.describe_endless(run);
    if best.entries == 0 {
        return Worst::Unbounded {
            states,
            trace,
            cycle,
        };
    }
    Worst::Ratio {
        messages: best.messages as u64,
        entries: best.entries as u64,
        states,
        trace,
        cycle,
    }
}

/// The steps within a sorted component. `place` is scratch space, one number per state.
fn arcs(graph: &Graph, weighted: &Weighted, component: &[u32], place: &mut [u32]) -> Vec<Arc> {
    for (new, &state) in (0..).zip(component) {
        place[state as usize] = new;
    }
    let mut arcs = Vec::new();
    for &state in component {
        for index in weighted.edges(state) {
            let target = weighted.target(index);
            if component.binary_search(&target).is_ok() {
                arcs.push(Arc {
                    source: place[state as usize],
                    target: place[target as usize],
                    edge: Edge {
                        source: state,
                        index,
                    },
                    messages: i64::from(weighted.gain(index)),
                    entries: i64::from(graph.entered(state, target).is_some()),
                });
            }
        }
    }
    arcs
}

/// A cycle with a larger ratio, if there is one.
fn better(nodes: usize, arcs: &[Arc], than: &Cycle) -> Option<Cycle> {
    let gain = |arc: &Arc| than.entries * arc.messages - than.messages * arc.entries;
    let mut gained = vec![0_i64; nodes];
    let mut came_by: Vec<Option<u32>> = vec![None; nodes];
    loop {
        let mut changed = false;
        for (number, arc) in (0..).zip(arcs) {
            let through = gained[arc.source as usize] + gain(arc);
            if through > gained[arc.target as usize] {
                gained[arc.target as usize] = through;
                came_by[arc.target as usize] = Some(number);
                changed = true;
            }
        }
        if !changed {
            return None;
        }
        if let Some(cycle) = closed(arcs, &came_by) {
            return Some(cycle);
        }
    }
}

/// A cycle among the arcs by which nodes were reached. Its gain is positive.
fn closed(arcs: &[Arc], came_by: &[Option<u32>]) -> Option<Cycle> {
    let mut seen_from = vec![u32::MAX; came_by.len()];
    for start in 0..came_by.len() as u32 {
        let mut node = start;
        while seen_from[node as usize] == u32::MAX {
            seen_from[node as usize] = start;
            match came_by[node as usize] {
                Some(arc) => node = arcs[arc as usize].source,
                None => break,
            }
        }
        if seen_from[node as usize] != start || came_by[node as usize].is_none() {
            continue;
        }
        let mut cycle = Cycle::default();
        let mut at = node;
        loop {
            let arc = &arcs[came_by[at as usize].expect("it is on a cycle") as usize];
            cycle.messages += arc.messages;
            cycle.entries += arc.entries;
            cycle.edges.push(arc.edge);
            at = arc.source;
            if at == node {
                cycle.edges.reverse();
                return Some(cycle);
            }
        }
    }
    None
}
