//! A directed graph with a gain on each edge, and its longest paths.

use std::collections::{HashMap, HashSet, VecDeque};

use crate::search::components::{Components, Digraph};
use crate::search::graph::Graph;

/// Each node stands for a state of the search; several may stand for the same one.
#[derive(Default)]
pub(super) struct Weighted {
    /// The state that each node stands for.
    pub states: Vec<u32>,
    /// Where the edges of each node begin.
    begins: Vec<usize>,
    targets: Vec<u32>,
    gains: Vec<u32>,
    /// The position of each edge's step among the steps of its state.
    pub labels: Vec<u16>,
}

/// An edge, by its source and its position among all edges.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Edge {
    pub source: u32,
    pub index: usize,
}

/// The result of a search for a longest path.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum Longest {
    Path {
        gain: u64,
        root: u32,
        path: Vec<Edge>,
    },
    /// A cycle has a gain.
    Unbounded { way: Vec<Edge>, cycle: Vec<Edge> },
}

impl Digraph for Weighted {
    fn len(&self) -> usize {
        self.states.len()
    }

    fn targets(&self, node: u32) -> &[u32] {
        &self.targets[self.edges(node)]
    }
}

impl Weighted {
    /// The graph of the search. The gain of a step is the number of messages that it sends.
    pub(super) fn of_messages(graph: &Graph) -> Self {
        let mut weighted = Weighted::default();
        for state in 0..graph.len() as u32 {
            weighted.add_node(state);
            for (label, step) in graph.steps(state).iter().enumerate() {
                weighted.add_edge(step.target, graph.sent(state, step) as u32, label);
            }
        }
        weighted.seal();
        weighted
    }

    /// Adds a node; its edges follow.
    pub(super) fn add_node(&mut self, state: u32) {
        self.states.push(state);
        self.begins.push(self.targets.len());
    }

    /// Adds an edge of the node that was added last.
    pub(super) fn add_edge(&mut self, target: u32, gain: u32, label: usize) {
        self.targets.push(target);
        self.gains.push(gain);
        let label = u16::try_from(label).expect("a state has few steps");
        self.labels.push(label);
    }

    /// Call it when the last edge was added.
    pub(super) fn seal(&mut self) {
        self.begins.push(self.targets.len());
    }

    pub(super) fn edges(&self, node: u32) -> std::ops::Range<usize> {
        self.begins[node as usize]..self.begins[node as usize + 1]
    }

    pub(super) fn target(&self, edge: usize) -> u32 {
        self.targets[edge]
    }

    pub(super) fn gain(&self, edge: usize) -> u32 {
        self.gains[edge]
    }

    /// The longest path from one of the roots. All nodes must be reachable from them.
    pub(super) fn longest(&self, roots: &[u32]) -> Longest {
        let unknown = u32::MAX;
        // The component of each node. Of each component: the largest gain from there on, and the
        // edge out of it that has it. Successors of a component are visited before it.
        let mut component_of = vec![unknown; self.len()];
        let mut best: Vec<(u64, Option<Edge>)> = Vec::new();
        let mut gainful: Option<Edge> = None;
        Components::new(self, |_| true).for_each(|component| {
            let number = best.len() as u32;
            for &node in component.iter() {
                component_of[node as usize] = number;
            }
            let mut own = (0, None);
            for &source in component.iter() {
                for index in self.edges(source) {
                    let there = component_of[self.targets[index] as usize];
                    let gain = u64::from(self.gains[index]);
                    let edge = Edge { source, index };
                    if there == number {
                        let nearer = gainful.is_none_or(|known| source < known.source);
                        if gain > 0 && nearer {
                            gainful = Some(edge);
                        }
                        continue;
                    }
                    let gain = gain + best[there as usize].0;
                    if gain > own.0 {
                        own = (gain, Some(edge));
                    }
                }
            }
            best.push(own);
        });
        if let Some(edge) = gainful {
            let home = component_of[edge.source as usize];
            let within = |node: u32| component_of[node as usize] == home;
            let mut cycle = vec![edge];
            cycle.extend(self.walk(&[self.targets[edge.index]], edge.source, within));
            return Longest::Unbounded {
                way: self.walk(roots, edge.source, |_| true),
                cycle,
            };
        }
        let gain_from = |root: u32| best[component_of[root as usize] as usize].0;
        let root = roots.iter().copied().max_by_key(|&root| gain_from(root));
        let root = root.expect("there is a root");
        let mut path = Vec::new();
        let mut here = root;
        loop {
            let home = component_of[here as usize];
            let Some(edge) = best[home as usize].1 else {
                break;
            };
            let within = |node: u32| component_of[node as usize] == home;
            path.extend(self.walk(&[here], edge.source, within));
            path.push(edge);
            here = self.targets[edge.index];
        }
        self.finish(here, &component_of, &mut path);
        Longest::Path {
            gain: gain_from(root),
            root,
            path,
        }
    }

    /// Extends a path that gains nothing more by the way to the end of the run.
    fn finish(&self, mut here: u32, component_of: &[u32], path: &mut Vec<Edge>) {
        loop {
            let home = component_of[here as usize];
            let within = |node: u32| component_of[node as usize] == home;
            let leaves = |source: u32| {
                let mut edges = self.edges(source);
                edges.find(|&index| !within(self.targets[index]))
            };
            let mut queue = VecDeque::from([here]);
            let mut seen = HashSet::from([here]);
            let exit = loop {
                let Some(source) = queue.pop_front() else {
                    return;
                };
                if let Some(index) = leaves(source) {
                    break Edge { source, index };
                }
                let targets = self.targets(source).iter().copied();
                queue.extend(targets.filter(|&target| seen.insert(target)));
            };
            path.extend(self.walk(&[here], exit.source, within));
            path.push(exit);
            here = self.targets[exit.index];
        }
    }

    /// A shortest walk from one of these nodes to another, through nodes that `within` accepts.
    pub(super) fn walk(&self, from: &[u32], to: u32, within: impl Fn(u32) -> bool) -> Vec<Edge> {
        let mut came_by: HashMap<u32, Option<Edge>> = HashMap::new();
        let mut queue = VecDeque::new();
        for &node in from {
            came_by.insert(node, None);
            queue.push_back(node);
        }
        while let Some(source) = queue.pop_front() {
            if source == to {
                break;
            }
            for index in self.edges(source) {
                let target = self.targets[index];
                if within(target) && !came_by.contains_key(&target) {
                    came_by.insert(target, Some(Edge { source, index }));
                    queue.push_back(target);
                }
            }
        }
        let mut walk = Vec::new();
        let mut at = to;
        while let Some(edge) = came_by[&at] {
            walk.push(edge);
            at = edge.source;
        }
        walk.reverse();
        walk
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(nodes: &[&[(u32, u32)]]) -> Weighted {
        let mut weighted = Weighted::default();
        for (node, edges) in nodes.iter().enumerate() {
            weighted.add_node(node as u32);
            for (label, &(target, gain)) in edges.iter().enumerate() {
                weighted.add_edge(target, gain, label);
            }
        }
        weighted.seal();
        weighted
    }

    #[test]
    fn the_longest_path_crosses_cycles_without_gain() {
        let weighted = graph(&[&[(1, 2), (3, 4)], &[(2, 0)], &[(1, 0), (3, 3)], &[]]);
        let Longest::Path { gain, root, path } = weighted.longest(&[0]) else {
            panic!("no cycle has a gain");
        };
        assert_eq!((gain, root), (5, 0));
        let targets: Vec<u32> = path
            .iter()
            .map(|edge| weighted.target(edge.index))
            .collect();
        assert_eq!(targets, [1, 2, 3]);
    }

    #[test]
    fn a_cycle_with_a_gain_is_unbounded() {
        let weighted = graph(&[&[(1, 0)], &[(2, 0)], &[(1, 1)]]);
        let Longest::Unbounded { way, cycle } = weighted.longest(&[0]) else {
            panic!("a cycle has a gain");
        };
        assert_eq!((way.len(), cycle.len()), (2, 2));
    }
}
