//! Many seeded runs and their results.

use serde::Serialize;

use super::{Among, command, setup_among};
use crate::seeds::run_each;
use crate::simulate::{Report, SimulateError, simulate};

/// Number of runs between two calls of `go_on`.
const BATCH: u64 = 64;

/// The results of many runs.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Swarm {
    /// The first run's seed. The others follow consecutively.
    pub seed: u64,
    /// Number of runs.
    pub runs: u64,
    /// Results per algorithm, in the order of first appearance.
    pub algorithms: Vec<Tally>,
    /// The failed runs, in the order of seeds.
    pub failures: Vec<Failure>,
}

/// The totals of one algorithm's runs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Tally {
    /// The algorithm.
    pub algorithm: &'static str,
    /// Number of runs.
    pub runs: u64,
    /// Number of entries.
    pub entries: u64,
    /// Messages sent, without a restless token's idle moves.
    pub messages: u64,
    /// Number of crashes.
    pub crashes: u64,
    /// Number of safety violations.
    pub violations: u64,
    /// Number of requests left waiting.
    pub unserved: u64,
    /// Number of failed runs.
    pub failed: u64,
}

/// A failed run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Failure {
    /// Its seed.
    pub seed: u64,
    /// The first violation, or how many requests were left waiting.
    pub reason: String,
    /// The command that repeats the run.
    pub command: String,
}

impl Swarm {
    fn new(seed: u64) -> Self {
        Swarm {
            seed,
            runs: 0,
            algorithms: Vec::new(),
            failures: Vec::new(),
        }
    }

    /// Returns whether every run succeeded.
    pub fn is_well(&self) -> bool {
        self.failures.is_empty()
    }

    /// The totals of all algorithms.
    pub fn total(&self) -> Tally {
        let mut total = Tally::new("all");
        for tally in &self.algorithms {
            total.runs += tally.runs;
            total.entries += tally.entries;
            total.messages += tally.messages;
            total.crashes += tally.crashes;
            total.violations += tally.violations;
            total.unserved += tally.unserved;
            total.failed += tally.failed;
        }
        total
    }

    fn add(&mut self, report: &Report, command: String) {
        self.runs += 1;
        let known = self
            .algorithms
            .iter()
            .position(|tally| tally.algorithm == report.algorithm);
        let index = known.unwrap_or_else(|| {
            self.algorithms.push(Tally::new(report.algorithm));
            self.algorithms.len() - 1
        });
        self.algorithms[index].add(report);
        if !report.is_well() {
            self.failures.push(Failure {
                seed: report.seed,
                reason: reason(report),
                command,
            });
        }
    }
}

impl Tally {
    fn new(algorithm: &'static str) -> Self {
        Tally {
            algorithm,
            runs: 0,
            entries: 0,
            messages: 0,
            crashes: 0,
            violations: 0,
            unserved: 0,
            failed: 0,
        }
    }

    fn add(&mut self, report: &Report) {
        self.runs += 1;
        self.entries += report.measures.entries;
        self.messages += report.measures.messages;
        self.crashes += report.crashes;
        self.violations += report.violations;
        self.unserved += report.unserved;
        self.failed += u64::from(!report.is_well());
    }
}

fn reason(report: &Report) -> String {
    match &report.first_violation {
        Some(first) => first.clone(),
        None => format!("{} left waiting", report.unserved),
    }
}

/// Runs the seeds from `seed` on, on all cores: `runs` of them, or fewer if `go_on` returns false
/// before. The result depends only on the seeds. Calls `done` after each run.
pub fn run(
    among: Among,
    seed: u64,
    runs: u64,
    go_on: &dyn Fn() -> bool,
    done: &(dyn Fn() + Sync),
) -> Result<Swarm, SimulateError> {
    let mut swarm = Swarm::new(seed);
    while swarm.runs < runs && go_on() {
        let batch = swarm.runs..runs.min(swarm.runs + BATCH);
        let reports = run_each(seed, batch, done, |seed| -> Result<_, SimulateError> {
            let setup = setup_among(among, seed);
            let report = simulate(&setup, &mut |_| ())?;
            Ok((report, command(&setup)))
        });
        for outcome in reports {
            let (report, command) = outcome?;
            swarm.add(&report, command);
        }
    }
    Ok(swarm)
}
