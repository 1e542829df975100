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

use super::weighted::{Edge, Weighted};
use super::{Worst, unbounded};
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
        improve(component.len(), &arcs, &mut best);
    });
    let states = graph.len();
    let first = best.edges.first().map_or(0, |edge| edge.source);
    let way = graph.way_to(first);
    if best.entries == 0 {
        return unbounded(graph, &weighted, way, &best.edges);
    }
    let cycle = weighted.actions(graph, &best.edges);
    let (trace, cycle) = graph.describe_endless(Endless { way, cycle });
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

/// Replaces a cycle by one with the largest ratio, unless its own is as large.
fn improve(nodes: usize, arcs: &[Arc], best: &mut Cycle) {
    while best.entries > 0
        && let Some(cycle) = better(nodes, arcs, best)
    {
        *best = cycle;
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::Random;

    fn arc(source: u32, target: u32, messages: i64, entries: i64) -> Arc {
        let edge = Edge { source, index: 0 };
        Arc {
            source,
            target,
            edge,
            messages,
            entries,
        }
    }

    /// Messages and entries of the cycle with the largest ratio.
    fn largest(nodes: usize, arcs: &[Arc]) -> (i64, i64) {
        let mut best = Cycle {
            entries: 1,
            ..Cycle::default()
        };
        improve(nodes, arcs, &mut best);
        (best.messages, best.entries)
    }

    /// Messages and entries of all cycles that visit each node at most once, by enumeration.
    fn simple_cycles(nodes: u32, arcs: &[Arc]) -> Vec<(i64, i64)> {
        let mut cycles = Vec::new();
        for first in 0..nodes {
            let mut open = vec![(first, vec![first], 0, 0)];
            while let Some((node, visited, messages, entries)) = open.pop() {
                for arc in arcs.iter().filter(|arc| arc.source == node) {
                    let cost = (messages + arc.messages, entries + arc.entries);
                    if arc.target == first {
                        cycles.push(cost);
                    } else if arc.target > first && !visited.contains(&arc.target) {
                        let visited = [&visited[..], &[arc.target]].concat();
                        open.push((arc.target, visited, cost.0, cost.1));
                    }
                }
            }
        }
        cycles
    }

    /// A larger cycle with more messages may have fewer per entry.
    #[test]
    fn the_ratio_counts_not_the_total() {
        let arcs = [arc(0, 1, 4, 1), arc(1, 0, 4, 1), arc(1, 1, 5, 1)];
        assert_eq!(largest(2, &arcs), (5, 1));
        assert_eq!(largest(2, &arcs[..2]), (8, 2));
    }

    #[test]
    fn a_cycle_of_messages_without_an_entry_has_no_ratio() {
        let arcs = [arc(0, 1, 4, 1), arc(1, 0, 0, 0), arc(1, 1, 1, 0)];
        assert_eq!(largest(2, &arcs).1, 0);
    }

    #[test]
    fn the_largest_ratio_is_that_of_an_enumeration_of_cycles() {
        let mut random = Random::new(1, 0);
        let (mut bounded, mut unbounded, mut not_at_once) = (0, 0, 0);
        for _ in 0..400 {
            let nodes = 2 + random.below(5) as u32;
            let mut node = || random.below(u64::from(nodes)) as u32;
            let ends: Vec<_> = (0..2 * nodes).map(|_| (node(), node())).collect();
            let arcs = ends.into_iter().map(|(source, target)| {
                let messages = random.below(7) as i64;
                arc(source, target, messages, i64::from(random.below(5) > 0))
            });
            let arcs: Vec<_> = arcs.collect();
            let cycles = simple_cycles(nodes, &arcs);
            let (messages, entries) = largest(nodes as usize, &arcs);
            if cycles
                .iter()
                .any(|&(messages, entries)| messages > 0 && entries == 0)
            {
                assert_eq!(entries, 0, "{cycles:?}");
                unbounded += 1;
                continue;
            }
            assert!(
                cycles
                    .iter()
                    .all(|cycle| cycle.0 * entries <= messages * cycle.1),
                "{messages}/{entries}: {cycles:?}"
            );
            assert!(messages == 0 || cycles.contains(&(messages, entries)));
            bounded += 1;
            let start = Cycle {
                entries: 1,
                ..Cycle::default()
            };
            let first = better(nodes as usize, &arcs, &start);
            let is_less = |first: Cycle| first.messages * entries < messages * first.entries;
            not_at_once += usize::from(first.is_some_and(is_less));
        }
        assert!(bounded > 50 && unbounded > 50, "{bounded} {unbounded}");
        // On these, a search that stops at the first positive cycle is wrong.
        assert!(not_at_once > 20, "{not_at_once}");
    }
}
