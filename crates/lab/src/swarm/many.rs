//! Many seeded runs, and what came of them.

use rayon::prelude::*;
use serde::Serialize;

use super::{Among, command, setup_among};
use crate::simulate::{Report, SimulateError, simulate};

/// So many runs go on beside each other before it is asked whether to go on.
const BATCH: u64 = 64;

/// What came of many runs.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Swarm {
    /// The first run's seed; the others follow it one by one.
    pub seed: u64,
    /// How many runs there were.
    pub runs: u64,
    /// By algorithm, in the order in which they came up.
    pub algorithms: Vec<Tally>,
    /// The runs that went wrong, in the order of seeds.
    pub failures: Vec<Failure>,
}

/// What came of one algorithm's runs, all in all.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Tally {
    /// The algorithm.
    pub algorithm: &'static str,
    /// How many runs.
    pub runs: u64,
    /// How often a node entered.
    pub entries: u64,
    /// Messages sent, without a restless token's idle moves.
    pub messages: u64,
    /// How often a node crashed.
    pub crashes: u64,
    /// How often something happened that must never happen.
    pub violations: u64,
    /// Who was left waiting.
    pub unserved: u64,
    /// How many of the runs went wrong.
    pub failed: u64,
}

/// A run that went wrong.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Failure {
    /// Its seed.
    pub seed: u64,
    /// What went wrong.
    pub reason: String,
    /// The command that repeats it.
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

    /// Whether every run went well.
    pub fn is_well(&self) -> bool {
        self.failures.is_empty()
    }

    /// All algorithms together.
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

/// Runs the seeds from `seed` on, on all cores: `runs` of them, or fewer if `go_on` says no before. What
/// comes of it depends on the seeds alone. `done` hears of each run that is finished.
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
        let reports: Result<Vec<_>, SimulateError> = batch
            .into_par_iter()
            .map(|number| {
                let setup = setup_among(among, seed.wrapping_add(number));
                let report = simulate(&setup, &mut |_| ())?;
                done();
                Ok((report, command(&setup)))
            })
            .collect();
        for (report, command) in reports? {
            swarm.add(&report, command);
        }
    }
    Ok(swarm)
}
