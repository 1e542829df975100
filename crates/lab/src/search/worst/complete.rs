//! The most messages per entry in runs that end: the largest ratio over all complete runs.
//!
//! A run is complete if it has an entry and ends at rest: no node waits or is inside, and no
//! message is in flight, except a token that circulates by itself. So every request of the run was
//! served, and every message that it caused is counted. Prefixes in which a request still waits do
//! not count: the messages of that request would be charged to the entries of others. A node may
//! request less often than the bounds allow.
//!
//! Dinkelbach's method, as in [`ratio`](super::ratio): given the ratio p/q of some run, each
//! message gains q and each entry loses p. If the longest path to a state at rest has a positive
//! gain, its ratio is larger, and the search goes on with that. Otherwise p/q is the largest ratio.
//! All numbers are integers, so the result is exact. Of paths with the same gain, one with few
//! steps is taken, so that the run is easy to follow.
//!
//! No cycle has an entry, because requests are finite. If no cycle has a message either, the
//! strongly connected components form an acyclic graph, and one pass over it finds the longest
//! paths. A cycle with a message that a complete run can repeat makes the ratio unbounded.

use std::cmp::Reverse;

use soloist_algorithms::{NodeId, Phase};

use super::weighted::{Edge, Weighted};
use super::{Worst, unbounded};
use crate::search::components::Components;
use crate::search::graph::Graph;

pub(super) fn most(graph: &mut Graph) -> Worst {
    let weighted = Weighted::of_messages(graph);
    let runs = Runs::of(graph, &weighted);
    let sent_at_start = graph.envelopes(0) as i64;
    let states = graph.len();
    match runs.most(sent_at_start) {
        Largest::None => Worst::Most {
            most: 0,
            entries: 0,
            states,
            trace: Vec::new(),
        },
        Largest::Ratio { ratio, path } => {
            let run = weighted.actions(graph, &path);
            Worst::Most {
                most: ratio.messages as u64,
                entries: ratio.entries as u64,
                states,
                trace: graph.describe(run),
            }
        }
        Largest::Unbounded { cycle } => {
            let first = cycle.first().expect("a cycle has an edge").source;
            let way = graph.way_to(first);
            unbounded(graph, &weighted, way, &cycle)
        }
    }
}

/// Messages and entries of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Ratio {
    messages: i64,
    entries: i64,
}

/// The largest ratio over all complete runs.
#[derive(PartialEq, Eq, Debug)]
enum Largest {
    /// No run is complete.
    None,
    /// The largest ratio, and a run that has it.
    Ratio { ratio: Ratio, path: Vec<Edge> },
    /// A complete run can repeat this cycle, which has a message.
    Unbounded { cycle: Vec<Edge> },
}

/// The runs from node 0 of a graph whose gains are messages.
struct Runs<'w> {
    weighted: &'w Weighted,
    /// Whether a node enters on each edge.
    enters: Vec<bool>,
    /// Whether each node is at rest.
    at_rest: Vec<bool>,
    /// The component of each node. Those that a component leads to have smaller numbers.
    component_of: Vec<u32>,
    /// The nodes of all components, concatenated, and where each component begins.
    members: Vec<u32>,
    begins: Vec<usize>,
}

/// The best way from a component to a state at rest.
#[derive(Clone, Copy)]
struct Way {
    gain: i64,
    /// Number of edges between components.
    steps: u32,
    /// The edge that leaves the component, or `None` if the way ends in it.
    edge: Option<usize>,
}

impl Way {
    const END: Way = Way {
        gain: 0,
        steps: 0,
        edge: None,
    };

    fn is_better_than(&self, other: &Way) -> bool {
        (self.gain, Reverse(self.steps)) > (other.gain, Reverse(other.steps))
    }
}

impl<'w> Runs<'w> {
    fn of(graph: &Graph, weighted: &'w Weighted) -> Self {
        let states = 0..graph.len() as u32;
        let mut enters = Vec::new();
        for state in states.clone() {
            let targets = weighted.edges(state).map(|index| weighted.target(index));
            enters.extend(targets.map(|target| graph.entered(state, target).is_some()));
        }
        let at_rest = states.map(|state| is_at_rest(graph, state));
        Self::new(weighted, enters, at_rest.collect())
    }

    fn new(weighted: &'w Weighted, enters: Vec<bool>, at_rest: Vec<bool>) -> Self {
        let mut component_of = vec![0; at_rest.len()];
        let (mut members, mut begins) = (Vec::with_capacity(at_rest.len()), vec![0]);
        Components::new(weighted, |_| true).for_each(|component| {
            for &node in component.iter() {
                component_of[node as usize] = begins.len() as u32 - 1;
            }
            members.extend_from_slice(component);
            begins.push(members.len());
        });
        let runs = Runs {
            weighted,
            enters,
            at_rest,
            component_of,
            members,
            begins,
        };
        assert!(
            !runs.edges_on_cycles().any(|edge| runs.enters[edge.index]),
            "each entry uses up a request, so no cycle has one"
        );
        runs
    }

    /// Number of components.
    fn components(&self) -> u32 {
        self.begins.len() as u32 - 1
    }

    fn component(&self, node: u32) -> u32 {
        self.component_of[node as usize]
    }

    /// The component that an edge leads to.
    fn target(&self, edge: Edge) -> u32 {
        self.component(self.weighted.target(edge.index))
    }

    /// The nodes of a component.
    fn nodes(&self, component: u32) -> &[u32] {
        let component = component as usize;
        &self.members[self.begins[component]..self.begins[component + 1]]
    }

    /// The edges from the nodes of a component.
    fn edges(&self, component: u32) -> impl Iterator<Item = Edge> + '_ {
        self.nodes(component).iter().flat_map(move |&source| {
            let edges = self.weighted.edges(source);
            edges.map(move |index| Edge { source, index })
        })
    }

    /// The edges within components.
    fn edges_on_cycles(&self) -> impl Iterator<Item = Edge> + '_ {
        let edges = (0..self.components()).flat_map(|component| self.edges(component));
        edges.filter(|edge| self.component(edge.source) == self.target(*edge))
    }

    fn most(&self, sent_at_start: i64) -> Largest {
        if let Some(cycle) = self.repeatable() {
            return Largest::Unbounded { cycle };
        }
        let mut best = Ratio {
            messages: 0,
            entries: 1,
        };
        loop {
            let Some((gain, path)) = self.longest(best) else {
                return Largest::None;
            };
            let ratio = self.ratio(sent_at_start, &path);
            if gain + best.entries * sent_at_start == 0 {
                return Largest::Ratio { ratio, path };
            }
            best = ratio;
        }
    }

    fn ratio(&self, sent_at_start: i64, path: &[Edge]) -> Ratio {
        let messages = path.iter().map(|edge| self.messages(edge.index));
        let entries = path.iter().filter(|edge| self.enters[edge.index]);
        Ratio {
            messages: sent_at_start + messages.sum::<i64>(),
            entries: entries.count() as i64,
        }
    }

    fn messages(&self, edge: usize) -> i64 {
        i64::from(self.weighted.gain(edge))
    }

    /// The longest path from node 0 to a state at rest with at least one entry, if each message
    /// gains `than.entries` and each entry loses `than.messages`.
    fn longest(&self, than: Ratio) -> Option<(i64, Vec<Edge>)> {
        // Of each component, the best ways with at least no entry, and with at least one.
        let mut best: Vec<[Option<Way>; 2]> = Vec::with_capacity(self.components() as usize);
        for component in 0..self.components() {
            let rests = self.rest_in(component).is_some();
            let mut ways = [rests.then_some(Way::END), None];
            for edge in self.edges(component) {
                let target = self.target(edge);
                if target == component {
                    continue;
                }
                let entries = i64::from(self.enters[edge.index]);
                let gain = than.entries * self.messages(edge.index) - than.messages * entries;
                for (entries_min, known) in ways.iter_mut().enumerate() {
                    let left = entries_min.saturating_sub(entries as usize);
                    let Some(onward) = best[target as usize][left] else {
                        continue;
                    };
                    let way = Way {
                        gain: gain + onward.gain,
                        steps: 1 + onward.steps,
                        edge: Some(edge.index),
                    };
                    if known.is_none_or(|known| way.is_better_than(&known)) {
                        *known = Some(way);
                    }
                }
            }
            best.push(ways);
        }
        let gain = best[self.component(0) as usize][1]?.gain;
        Some((gain, self.follow(&best)))
    }

    /// The path from node 0 along the best ways, with at least one entry.
    fn follow(&self, best: &[[Option<Way>; 2]]) -> Vec<Edge> {
        let (mut here, mut entries_min) = (0, 1_usize);
        let mut path = Vec::new();
        loop {
            let component = self.component(here);
            let way = best[component as usize][entries_min];
            let way = way.expect("the way continues as it was found");
            let Some(index) = way.edge else {
                let rest = self.rest_in(component).expect("the way ends at rest");
                path.extend(self.walk(here, rest));
                return path;
            };
            let mut edges = self.edges(component);
            let edge = edges.find(|edge| edge.index == index);
            let edge = edge.expect("the edge leaves the component");
            path.extend(self.walk(here, edge.source));
            path.push(edge);
            here = self.weighted.target(index);
            entries_min = entries_min.saturating_sub(usize::from(self.enters[index]));
        }
    }

    /// A state at rest in a component, if there is one.
    fn rest_in(&self, component: u32) -> Option<u32> {
        let mut nodes = self.nodes(component).iter().copied();
        nodes.find(|&node| self.at_rest[node as usize])
    }

    /// A shortest walk within a component.
    fn walk(&self, from: u32, to: u32) -> Vec<Edge> {
        let component = self.component(from);
        let within = |node| self.component(node) == component;
        self.weighted.walk(&[from], to, within)
    }

    /// A cycle with a message that a complete run can repeat, the one nearest to node 0.
    fn repeatable(&self) -> Option<Vec<Edge>> {
        let count = self.components() as usize;
        // Whether a run from the component can come to rest: with no entry, and with an entry.
        let mut ends = vec![[false; 2]; count];
        for component in 0..self.components() {
            let mut own = [self.rest_in(component).is_some(), false];
            for edge in self.edges(component) {
                let onward = ends[self.target(edge) as usize];
                own[0] |= onward[0];
                own[1] |= onward[usize::from(!self.enters[edge.index])];
            }
            ends[component as usize] = own;
        }
        // Whether a run to the component can have an entry.
        let mut entered = vec![false; count];
        for component in (0..self.components()).rev() {
            for edge in self.edges(component) {
                let before = entered[component as usize];
                entered[self.target(edge) as usize] |= before || self.enters[edge.index];
            }
        }
        let can_repeat = |component: u32| {
            let [ends, ends_after_entry] = ends[component as usize];
            ends_after_entry || (ends && entered[component as usize])
        };
        let gainful = self
            .edges_on_cycles()
            .filter(|edge| self.messages(edge.index) > 0)
            .filter(|edge| can_repeat(self.component(edge.source)));
        let edge = gainful.min_by_key(|edge| edge.source)?;
        let mut cycle = vec![edge];
        cycle.extend(self.walk(self.weighted.target(edge.index), edge.source));
        Some(cycle)
    }
}

/// Whether no node waits or is inside, and no message is in flight, except a circulating token.
fn is_at_rest(graph: &Graph, state: u32) -> bool {
    let mut nodes = NodeId::all(graph.system.nodes);
    nodes.all(|node| graph.phase(state, node) == Phase::Idle && !graph.waits(state, node))
        && graph.only_roaming_in_flight(state)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::simulate::Random;

    /// An edge: its source and target, its messages, and whether a node enters on it.
    type Line = (u32, u32, u32, bool);

    fn weighted(nodes: u32, lines: &[Line]) -> (Weighted, Vec<bool>) {
        let (mut weighted, mut enters) = (Weighted::default(), Vec::new());
        for node in 0..nodes {
            weighted.add_node(node);
            let own = lines.iter().filter(|line| line.0 == node);
            for (label, &(_, target, messages, entry)) in own.enumerate() {
                weighted.add_edge(target, messages, label);
                enters.push(entry);
            }
        }
        weighted.seal();
        (weighted, enters)
    }

    fn largest(nodes: u32, lines: &[Line], at_rest: &[u32]) -> Largest {
        let (weighted, enters) = weighted(nodes, lines);
        let at_rest = (0..nodes).map(|node| at_rest.contains(&node)).collect();
        Runs::new(&weighted, enters, at_rest).most(0)
    }

    /// The ratio of a graph whose runs have one.
    fn ratio(nodes: u32, lines: &[Line], at_rest: &[u32]) -> (i64, i64) {
        match largest(nodes, lines, at_rest) {
            Largest::Ratio { ratio, .. } => (ratio.messages, ratio.entries),
            other => panic!("{other:?}"),
        }
    }

    /// What all complete runs cost, with messages and entries, by enumeration.
    fn costs(nodes: u32, lines: &[Line], at_rest: &[u32]) -> BTreeSet<(u32, u32)> {
        let mut seen = BTreeSet::from([(0, 0, 0)]);
        let mut open = vec![(0, 0, 0)];
        while let Some((node, messages, entries)) = open.pop() {
            assert!(node < nodes);
            for &(_, target, more, entry) in lines.iter().filter(|line| line.0 == node) {
                let next = (target, messages + more, entries + u32::from(entry));
                if seen.insert(next) {
                    open.push(next);
                }
            }
        }
        let complete = seen.into_iter().filter(|(node, ..)| at_rest.contains(node));
        let costs = complete.map(|(_, messages, entries)| (messages, entries));
        costs.filter(|&(_, entries)| entries > 0).collect()
    }

    /// A second entry with fewer messages lowers the ratio, although it raises the total.
    #[test]
    fn the_ratio_counts_not_the_total() {
        let lines = [(0, 1, 3, true), (1, 2, 2, true)];
        assert_eq!(ratio(3, &lines, &[0, 1, 2]), (3, 1));
        assert_eq!(ratio(3, &lines, &[0, 2]), (5, 2));
    }

    #[test]
    fn messages_of_a_request_that_still_waits_do_not_count() {
        // The second request costs 9 messages before its entry and the run's rest.
        let lines = [(0, 1, 2, true), (1, 2, 9, false), (2, 3, 0, false)];
        assert_eq!(ratio(4, &lines, &[0, 1]), (2, 1));
        assert_eq!(ratio(4, &lines, &[0, 1, 3]), (11, 1));
    }

    #[test]
    fn a_run_without_an_entry_has_no_ratio() {
        assert_eq!(largest(2, &[(0, 1, 4, false)], &[0, 1]), Largest::None);
        assert_eq!(largest(2, &[(0, 1, 4, true)], &[0]), Largest::None);
        assert_eq!(ratio(2, &[(0, 1, 0, true)], &[0, 1]), (0, 1));
    }

    #[test]
    fn only_a_cycle_that_a_complete_run_repeats_is_unbounded() {
        let lines = [(0, 1, 1, true), (1, 1, 1, false), (0, 2, 1, true)];
        let unbounded = |at_rest: &[u32]| {
            let largest = largest(3, &lines, at_rest);
            matches!(largest, Largest::Unbounded { cycle } if cycle.len() == 1)
        };
        assert!(unbounded(&[1, 2]));
        assert!(!unbounded(&[2]));
        // Messages before the first entry count as well, those of runs without any do not.
        let early = [(0, 0, 1, false), (0, 1, 1, true)];
        assert!(matches!(
            largest(2, &early, &[1]),
            Largest::Unbounded { .. }
        ));
        let lines = [(0, 1, 0, false), (1, 1, 1, false), (0, 2, 1, true)];
        assert_eq!(ratio(3, &lines, &[1, 2]), (1, 1));
    }

    /// Layers of nodes. Edges between layers have messages and entries; those within a layer have
    /// neither, and make cycles.
    fn random_lines(random: &mut Random, nodes: u32) -> Vec<Line> {
        let layers: Vec<u64> = (0..nodes).map(|_| random.below(5)).collect();
        let mut lines = Vec::new();
        for _ in 0..3 * nodes {
            let [source, target] = [(); 2].map(|()| random.below(u64::from(nodes)) as u32);
            let [one, other] = [source, target].map(|node| layers[node as usize]);
            let (messages, entry) = (random.below(7) as u32, random.below(2) == 0);
            if source == 0 || one < other {
                if target != 0 {
                    lines.push((source, target, messages, entry));
                }
            } else if one == other && target != 0 {
                lines.push((source, target, 0, false));
            }
        }
        lines
    }

    #[test]
    fn the_largest_ratio_is_that_of_an_enumeration() {
        let mut random = Random::new(1, 0);
        let (mut with_ratio, mut above_total) = (0, 0);
        for _ in 0..1200 {
            let nodes = 3 + random.below(8) as u32;
            let lines = random_lines(&mut random, nodes);
            let at_rest: Vec<u32> = (0..nodes).filter(|_| random.below(2) == 0).collect();
            let costs = costs(nodes, &lines, &at_rest);
            let ratio = |cost: &&(u32, u32)| f64::from(cost.0) / f64::from(cost.1);
            let most = costs.iter().max_by(|a, b| ratio(a).total_cmp(&ratio(b)));
            match (largest(nodes, &lines, &at_rest), most) {
                (Largest::None, None) => {}
                (Largest::Ratio { ratio, path }, Some(&(messages, entries))) => {
                    let (messages, entries) = (i64::from(messages), i64::from(entries));
                    assert_eq!(ratio.messages * entries, messages * ratio.entries);
                    let last = path.last().expect("an entry is a step");
                    let (weighted, _) = weighted(nodes, &lines);
                    assert!(at_rest.contains(&weighted.target(last.index)));
                    with_ratio += 1;
                    let total = costs.iter().max().expect("there is one");
                    let total = (i64::from(total.0), i64::from(total.1));
                    above_total += u32::from(messages * total.1 > total.0 * entries);
                }
                (found, most) => panic!("{found:?} instead of {most:?}: {lines:?} {at_rest:?}"),
            }
        }
        // Enough graphs on which the run with the most messages is not the one with the most per
        // entry.
        assert!(
            with_ratio > 100 && above_total > 50,
            "{with_ratio} {above_total}"
        );
    }
}
