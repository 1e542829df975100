//! A search whose algorithm is behind a trait object, and the order of its passes.

use std::rc::Rc;

use soloist_algorithms::{Algorithm, Start};

use super::graph::Graph;
use super::interner::Interner;
use super::stepper::{Stepper, StepperOf};
use super::{
    Bounds, ENDLESS, Limits, Outcome, Pass, Progress, Watch, quiescence, safety, starvation,
};

/// The cluster to search, without the algorithm's type: [`Bounds`] and a source of steppers.
#[derive(Clone)]
pub(crate) struct Plan {
    pub start: Start,
    pub requests: Vec<u8>,
    pub limits: Limits,
    /// Each pass has a stepper of its own.
    stepper: Rc<dyn Fn() -> Box<dyn Stepper>>,
}

impl Plan {
    /// # Panics
    /// If there are more than [`Limits::NODES_MAX`] nodes, or crashes although the algorithm does
    /// not support recovery.
    pub(super) fn of<A: Algorithm>(bounds: &Bounds<A::Shape>) -> Self {
        let config = bounds.config();
        let limits = bounds.limits;
        assert!(
            bounds.requests.len() <= Limits::NODES_MAX,
            "node numbers fit 6 bits"
        );
        assert!(
            limits.crashes.most == 0 || A::recovering(&config, 1).is_some(),
            "the algorithm does not support crashes"
        );
        Plan {
            start: bounds.start,
            requests: bounds.requests.clone(),
            limits,
            stepper: Rc::new(move || Box::new(StepperOf::<A>::new(config.clone(), limits.forgets))),
        }
    }

    /// An interner that knows no node state yet.
    pub(super) fn interner(&self) -> Interner {
        Interner::new((self.stepper)())
    }

    /// See [`search`](super::search()).
    pub(super) fn search(&self, watch: &mut Watch) -> Outcome {
        let mut graph = match Graph::explore(self, watch) {
            Ok(graph) => graph,
            Err(outcome) => return outcome,
        };
        watch(Progress {
            pass: Pass::EndlessRuns,
            states: graph.len(),
            depth: 0,
        });
        let minor = graph.take_minor();
        let is_deadlock = minor.as_ref().is_some_and(|(fault, _)| fault.is_deadlock());
        let looks_on = graph.is_complete && !is_deadlock;
        if let Some((node, run)) = looks_on.then(|| starvation::find(&mut graph)).flatten() {
            let (trace, cycle) = graph.describe_endless(run);
            return Outcome::Starved { node, trace, cycle };
        }
        if let Some((fault, trace)) = minor {
            return Outcome::Broken { fault, trace };
        }
        match quiescence::find(&mut graph) {
            Some(run) => {
                let (trace, cycle) = graph.describe_endless(run);
                Outcome::Restless { trace, cycle }
            }
            None => Outcome::Holds {
                states: graph.len(),
                transitions: graph.transitions(),
                cut: graph.cut(),
            },
        }
    }

    /// Like [`check`](Plan::check), with one request per node, then two, four and so on up to the
    /// bounds, so that a fault is found with few requests. After a minor fault, starvation or
    /// unrest, the search continues with more requests to see whether they lead to two nodes
    /// inside, in at most `worse_max` states per round.
    pub(super) fn deepen(&self, worse_max: usize, watch: &mut Watch) -> Outcome {
        let most = self.requests.iter().copied().max().unwrap_or(0).max(1);
        // Doubling skips most rounds: a caller that allows many requests wants the last one.
        let doubled = std::iter::successors(Some(1_u8), |round| round.checked_mul(2));
        let few = doubled.take_while(|&round| round < most && most != ENDLESS);
        let rounds = few.chain([most]);
        let mut found = None;
        for round in rounds {
            let mut within = Plan {
                requests: self.requests.iter().map(|&r| r.min(round)).collect(),
                ..self.clone()
            };
            if found.is_some() {
                within.limits.states_max = within.limits.states_max.min(worse_max);
                if !matches!(
                    safety::search(&within, false, watch),
                    Some(Outcome::Broken { .. })
                ) {
                    continue;
                }
            }
            let outcome = within.check(watch);
            match &outcome {
                Outcome::Holds { .. } if round < most => {}
                Outcome::Broken { fault, .. } if found.is_none() && !fault.is_minor() => {
                    return outcome;
                }
                Outcome::Broken { fault, .. } if fault.is_two_inside() => return outcome,
                Outcome::Broken { .. } | Outcome::Starved { .. } | Outcome::Restless { .. } => {
                    found = found.or(Some(outcome));
                }
                Outcome::Holds { .. } | Outcome::NotExhausted { .. } => {
                    return found.unwrap_or(outcome);
                }
            }
        }
        found.expect("the last round has an outcome")
    }

    /// See [`check`](super::check()).
    pub(super) fn check(&self, watch: &mut Watch) -> Outcome {
        match safety::search(self, false, watch) {
            Some(Outcome::Holds { states, .. }) if self.limits.endless_runs => {
                let outcome = self.search(watch);
                if let Outcome::Holds { states: again, .. } = outcome {
                    assert_eq!(states, again, "both searches visit the same states");
                }
                outcome
            }
            // The breadth-first search finds a shortest trace, if it gets that far.
            Some(broken @ Outcome::Broken { .. }) => match self.search(watch) {
                Outcome::Broken { fault, trace } if !fault.is_minor() => {
                    Outcome::Broken { fault, trace }
                }
                _ => broken,
            },
            Some(outcome) => outcome,
            None => match self.search(watch) {
                outcome @ Outcome::NotExhausted { .. } => match safety::search(self, true, watch) {
                    Some(broken @ Outcome::Broken { .. }) => broken,
                    _ => outcome,
                },
                outcome => outcome,
            },
        }
    }
}
