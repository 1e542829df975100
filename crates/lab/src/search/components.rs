//! Strongly connected components: Tarjan 1972, *Depth-first search and linear graph algorithms*,
//! with an explicit stack instead of recursion.

use super::graph::CUT;

const NEW: u32 = u32::MAX;
const DONE: u32 = u32::MAX - 1;

/// A directed graph whose nodes are numbered from 0.
pub(super) trait Digraph {
    /// Number of nodes.
    fn len(&self) -> usize;

    /// The targets of a node's edges. [`CUT`] is none.
    fn targets(&self, node: u32) -> &[u32];
}

/// The strongly connected components of a subgraph.
pub(super) struct Components<'g, G, P> {
    graph: &'g G,
    /// Whether a state belongs to the subgraph.
    belongs: P,
    /// When each state was first visited, and the earliest visited state that it is known to reach.
    order: Vec<u32>,
    low: Vec<u32>,
    /// States whose component is not known yet.
    open: Vec<u32>,
    /// The call stack: states, and the next step of each.
    calls: Vec<(u32, u32)>,
    clock: u32,
}

impl<'g, G: Digraph, P: Fn(u32) -> bool> Components<'g, G, P> {
    pub(super) fn new(graph: &'g G, belongs: P) -> Self {
        Components {
            graph,
            belongs,
            order: vec![NEW; graph.len()],
            low: vec![NEW; graph.len()],
            open: Vec::new(),
            calls: Vec::new(),
            clock: 0,
        }
    }

    /// Calls `visit` with the states of each component, and with those that it leads to before it.
    pub(super) fn for_each(mut self, mut visit: impl FnMut(&mut [u32])) {
        for root in 0..self.graph.len() as u32 {
            if self.order[root as usize] == NEW && (self.belongs)(root) {
                self.enter(root);
                while !self.calls.is_empty() {
                    self.go_on(&mut visit);
                }
            }
        }
    }

    /// The component nearest to the first state among those that `accept` returns true for. The
    /// states of a component are sorted, also for `accept`.
    pub(super) fn nearest(self, accept: impl Fn(&[u32]) -> bool) -> Option<Vec<u32>> {
        let mut nearest: Option<Vec<u32>> = None;
        self.for_each(|component| {
            component.sort_unstable();
            let nearer = nearest.as_ref().is_none_or(|known| component[0] < known[0]);
            if nearer && accept(component) {
                nearest = Some(component.to_vec());
            }
        });
        nearest
    }

    fn enter(&mut self, state: u32) {
        self.order[state as usize] = self.clock;
        self.low[state as usize] = self.clock;
        self.clock += 1;
        self.open.push(state);
        self.calls.push((state, 0));
    }

    /// Follows the next step of the state on top of the stack, or leaves the state if it has no
    /// more.
    fn go_on(&mut self, visit: &mut impl FnMut(&mut [u32])) {
        let (state, next) = self.calls.last_mut().expect("the stack is not empty");
        let here = *state as usize;
        if let Some(&there) = self.graph.targets(*state).get(*next as usize) {
            *next += 1;
            if there == CUT {
                return;
            }
            match self.order[there as usize] {
                NEW if (self.belongs)(there) => self.enter(there),
                NEW | DONE => {}
                seen => self.low[here] = self.low[here].min(seen),
            }
            return;
        }
        self.calls.pop();
        if let Some((caller, _)) = self.calls.last() {
            let caller = *caller as usize;
            self.low[caller] = self.low[caller].min(self.low[here]);
        }
        if self.low[here] == self.order[here] {
            let begin = self.open.iter().rposition(|&s| s as usize == here);
            let begin = begin.expect("the state is still open");
            for &state in &self.open[begin..] {
                self.order[state as usize] = DONE;
            }
            visit(&mut self.open[begin..]);
            self.open.truncate(begin);
        }
    }
}
