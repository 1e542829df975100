//! Requests that are made one at a time.
//!
//! Many bounds are reached by a single request from the right node, or by nodes far from each other
//! that take turns. A random schedule rarely makes requests one at a time, so these are tried
//! first: one request of each node, and then the worst of them, extended by one request after the
//! other as long as that makes the run worse.

use std::sync::Arc;

use soloist_algorithms::{Algorithm, NodeId};

use super::run::Run;
use super::schedule::Schedule;
use super::{Hunt, Tried};
use crate::search::{Aim, Case};
use crate::simulate::Random;

/// Number of priorities of messages with which each node's request is tried.
const PRIORITIES: usize = 4;

/// The worst run of requests one at a time, and the number of runs tried. `None` if no node
/// requests, or if a waiter is to be overtaken: in such a run, no two nodes wait.
pub(super) fn worst<A: Algorithm>(
    hunt: &Hunt,
    shape: &Arc<A::Shape>,
    progress: &(dyn Fn() + Sync),
) -> (Option<Tried>, u64) {
    let mut turns = Turns::<A> {
        hunt,
        shape,
        progress,
        runs: 0,
        worst: None,
    };
    if hunt.aim == Aim::Messages {
        turns.alone();
        while turns.extend() {}
    }
    (turns.worst, turns.runs)
}

struct Turns<'a, A: Algorithm> {
    hunt: &'a Hunt,
    shape: &'a Arc<A::Shape>,
    progress: &'a (dyn Fn() + Sync),
    runs: u64,
    worst: Option<Tried>,
}

impl<A: Algorithm> Turns<'_, A> {
    /// Tries one request of each node. All nodes have a try, whatever the hunt allows beyond that.
    fn alone(&mut self) {
        let mut random = Random::new(self.hunt.seed, Hunt::CLIMBS);
        for _ in 0..PRIORITIES {
            let order = Schedule::random(&mut random);
            for node in NodeId::all(self.hunt.case.nodes) {
                if self.hunt.case.requests[node.index()] > 0 {
                    self.attempt(order.with_turns(vec![node]));
                }
            }
            if self.runs >= self.hunt.tries {
                return;
            }
        }
    }

    /// Tries one more request of each node after those of the worst run. Returns whether one of
    /// them makes it worse.
    fn extend(&mut self) -> bool {
        let Some(worst) = &self.worst else {
            return false;
        };
        let (known, requests) = (worst.schedule.clone(), worst.requests.clone());
        for node in NodeId::all(self.hunt.case.nodes) {
            if self.runs >= self.hunt.tries {
                break;
            }
            if requests[node.index()] < self.hunt.case.requests[node.index()] {
                let turns = [&known.turns[..], &[node]].concat();
                self.attempt(known.with_turns(turns));
            }
        }
        let worst = self.worst.as_ref();
        worst.is_some_and(|worst| worst.schedule.turns.len() > known.turns.len())
    }

    /// Tries a run of these turns and no other request. Keeps it if it is the worst so far.
    fn attempt(&mut self, schedule: Schedule) {
        let mut requests = vec![0; self.hunt.case.nodes];
        for node in &schedule.turns {
            requests[node.index()] += 1;
        }
        let case = Case {
            requests,
            ..self.hunt.case.clone()
        };
        let (score, _) = Run::<A>::new(&case, self.shape, &schedule).score(self.hunt.aim);
        self.runs += 1;
        (self.progress)();
        let tried = Tried {
            requests: case.requests,
            schedule,
            score,
        };
        self.worst = Some(match self.worst.take() {
            Some(worst) => worst.or_worse(tried, self.hunt.aim),
            None => tried,
        });
    }
}
