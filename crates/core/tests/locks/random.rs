//! Random runs of whole clusters of tables: clients request, with sessions and without, time out,
//! release, move or die; nodes stop; and epochs change, in which locks begin late. Then all locks
//! are drained, and all remaining waiters must be served.

use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use soloist_algorithms::Choice;
use soloist_api::LockName;
use soloist_core::locks::{Inside, Ticket};

use crate::cluster::Cluster;
use crate::random_sessions::{SessionStep, Sessions, session_step};

/// The next action of a client or the network. Numbers are taken modulo what exists.
#[derive(Clone, Debug)]
enum Step {
    Acquire {
        node: usize,
        lock: usize,
        wait: u8,
        ttl: u8,
    },
    Cancel(usize),
    Release(usize),
    Deliver(usize),
    Wait(u8),
    Session(SessionStep),
    /// All nodes freeze, or the next epoch is installed on all of them.
    Change,
    Stop(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        30 => (any::<usize>(), any::<usize>(), any::<u8>(), any::<u8>()).prop_map(
            |(node, lock, wait, ttl)| Step::Acquire { node, lock, wait, ttl }
        ),
        10 => any::<usize>().prop_map(Step::Cancel),
        30 => any::<usize>().prop_map(Step::Release),
        120 => any::<usize>().prop_map(Step::Deliver),
        10 => (0_u8..5).prop_map(Step::Wait),
        60 => session_step().prop_map(Step::Session),
        8 => Just(Step::Change),
        1 => any::<usize>().prop_map(Step::Stop),
    ]
}

struct Run {
    cluster: Cluster,
    locks: Vec<LockName>,
    tickets: Vec<(usize, Ticket)>,
    cancelled: usize,
    sessions: Sessions,
    epoch: u64,
    /// What the nodes held when they froze, while they are frozen.
    frozen: Option<Inside>,
    stopped: Vec<usize>,
}

impl Run {
    fn new(choice: Choice, nodes: usize, turns: u32) -> Self {
        Run {
            cluster: Cluster::new(choice, nodes, turns),
            locks: ["a", "b/c"].map(|name| LockName::new(name).unwrap()).into(),
            tickets: Vec::new(),
            cancelled: 0,
            sessions: Sessions::default(),
            epoch: 1,
            frozen: None,
            stopped: Vec::new(),
        }
    }

    fn step(&mut self, step: &Step) {
        let nodes = self.cluster.tables.len();
        match *step {
            Step::Acquire {
                node,
                lock,
                wait,
                ttl,
            } => {
                let node = node % nodes;
                let some = |seconds: u8| {
                    (seconds.is_multiple_of(3)).then(|| Duration::from_secs(u64::from(seconds) + 1))
                };
                let until = some(wait).map(|wait| self.cluster.now + wait);
                let lock = &self.locks[lock % self.locks.len()];
                let ask = Cluster::ask(some(ttl), until);
                match self.cluster.acquire(node, lock, ask) {
                    Ok(ticket) => self.tickets.push((node, ticket)),
                    Err(error) => assert!(self.stopped.contains(&node), "{error}"),
                }
            }
            Step::Cancel(which) if !self.tickets.is_empty() => {
                let (node, ticket) = self.tickets[which % self.tickets.len()];
                self.cancelled += usize::from(self.cluster.cancel(node, ticket));
            }
            Step::Release(which) => {
                let mut holds: Vec<_> = self.cluster.holders.values().copied().collect();
                holds.sort_unstable();
                if let Some(&(node, hold)) = holds.get(which % holds.len().max(1)) {
                    self.cluster.release(node, hold).unwrap();
                }
            }
            Step::Deliver(which) => {
                let busy = self.cluster.under_way();
                if let Some(&channel) = busy.get(which % busy.len().max(1)) {
                    self.cluster.deliver(channel);
                }
            }
            Step::Wait(seconds) => {
                self.cluster.now = self.cluster.now + Duration::from_secs(u64::from(seconds) * 4);
                (0..nodes).for_each(|node| self.cluster.tick(node));
            }
            Step::Session(ref step) => self.sessions.step(&mut self.cluster, step, &self.locks),
            Step::Change => self.change_epoch(),
            Step::Stop(node) => {
                let node = node % nodes;
                self.cluster.stop(node);
                self.stopped.push(node);
            }
            Step::Cancel(_) => {}
        }
    }

    /// Freezes all nodes, or installs the next epoch if they are frozen. No lock begins it before
    /// the next tick, or before an event concerns it.
    fn change_epoch(&mut self) {
        let Some(inside) = self.frozen.take() else {
            self.frozen = Some(self.cluster.freeze());
            return;
        };
        self.epoch += 1;
        self.cluster.begin_at_once(0);
        self.cluster.install(self.epoch, &inside);
        self.cluster.begin_at_once(1);
    }

    /// Serves all waiters, and checks the counts.
    fn drain(mut self, algorithm: &str) {
        if self.frozen.is_some() {
            self.change_epoch();
        }
        loop {
            self.cluster.rest();
            let Some(&(node, hold)) = self.cluster.holders.values().next() else {
                break;
            };
            self.cluster.release(node, hold).unwrap();
        }
        assert!(self.cluster.queued.is_empty(), "{:?}", self.cluster.queued);
        let cancelled = self.cluster.cancelled.iter();
        let cancelled = cancelled.filter(|cancelled| self.tickets.contains(cancelled));
        assert_eq!(cancelled.count(), self.cancelled);
        assert_eq!(self.cluster.ended.len(), self.cluster.granted.len());
        for table in &self.cluster.tables {
            assert_eq!((table.holds(), table.waiters()), (0, 0));
        }
        let used = self.cluster.tables.iter().map(|table| table.locks());
        assert_eq!(used.max(), Some(0), "{algorithm}: idle locks are forgotten");
        // They work as before.
        let lock = self.locks[0].clone();
        for node in 0..self.cluster.tables.len() {
            if !self.stopped.contains(&node) {
                self.cluster.use_once(node, &lock);
            }
        }
    }
}

#[test]
fn clusters_keep_their_promises_in_random_runs() {
    // Tokens that circulate in the lab rest on the network.
    for choice in Choice::all() {
        let mut runner = TestRunner::new(Config {
            cases: 60,
            failure_persistence: None,
            ..Config::default()
        });
        let runs = (1_usize..8, 1_u32..4, prop::collection::vec(step(), 0..300));
        let held = runner.run(&runs, |(nodes, turns, steps)| {
            let mut run = Run::new(choice, nodes, turns);
            steps.iter().for_each(|step| run.step(step));
            run.drain(choice.name);
            Ok(())
        });
        held.unwrap_or_else(|failure| panic!("{}: {failure}", choice.name));
    }
}
