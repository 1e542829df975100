//! Replications: the same run with consecutive seeds, and what their means say.
//!
//! The method, for steady loads:
//!
//! - A replication measures a fixed number of entries, so that every mean per entry has the same
//!   denominator. The load continues until the last of them, so neither the start nor the end of a
//!   run is in the figures.
//! - The first entries are not measured: [`warm_up`] of them, unless the caller says otherwise.
//!   That number is checked by doubling it: see [`WarmUp`].
//! - Each replication gives one value per measure, also for percentiles and for Jain's index. The
//!   interval is Student's t interval of these values, which are independent.
//! - A maximum has no interval and is given with the size of its sample.
//!
//! A burst and a run with crashes have no steady state. Each of their replications is measured from
//! its first request to its last entry.

mod estimate;
mod figures;
mod student;

use serde::Serialize;

use crate::seeds::run_each;
use crate::simulate::{Load, Measures, Report, Setup, SimulateError, simulate};

pub use estimate::{Estimate, Largest};
pub use figures::{FairnessFigures, Figures, NodeLoadFigures, SpanFigures};

/// How many replications to run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Plan {
    /// Number of replications, at least [`Plan::SEEDS_MIN`]. If a precision is asked for, the
    /// maximum.
    pub seeds: u64,
    /// Run until the intervals of messages per entry and of the mean response time reach at most
    /// this share of their means to either side. Intervals of a run that stops when they happen to
    /// be narrow contain the true mean somewhat less often than their level says.
    pub precision: Option<f64>,
    /// Confidence level of the intervals.
    pub level: f64,
    /// Entries before the measurement starts, or `None` for [`warm_up`].
    pub warm_up: Option<u64>,
}

impl Plan {
    /// Minimum number of replications.
    pub const SEEDS_MIN: u64 = 10;
    /// Default maximum number of replications if a precision is asked for.
    pub const SEEDS_MAX: u64 = 1000;
    /// Default confidence level.
    pub const LEVEL: f64 = 0.95;
    /// Confidence level of verdicts. The pages have about 400 intervals: at this level, the chance
    /// that at least one of them misses its mean is about a third, and at 95 % it is a certainty.
    pub const VERDICT_LEVEL: f64 = 0.999;
}

impl Default for Plan {
    fn default() -> Self {
        Plan {
            seeds: Self::SEEDS_MIN,
            precision: None,
            level: Self::LEVEL,
            warm_up: None,
        }
    }
}

/// Default number of entries before the measurement starts: ten per node, at least 500.
///
/// By then each node had about ten turns, so the first requests and the first position of a token
/// should not matter any longer. [`WarmUp`] says whether that is so.
pub fn warm_up(nodes: usize) -> u64 {
    (10 * nodes as u64).max(500)
}

/// The runs of several seeds and their means.
#[derive(Clone, Debug, Serialize)]
pub struct Replicated {
    /// The parameters, with the first seed, and the figures. Violations, unserved requests,
    /// crashes, times and events are totals over all replications.
    #[serde(flatten)]
    pub report: Report<Figures>,
    /// Number of replications. Their seeds are consecutive.
    pub replications: u64,
    /// Confidence level of the intervals.
    pub level: f64,
    /// The warm-up, unless the whole run was measured.
    pub warm_up: Option<WarmUp>,
    /// The precision that was asked for, and whether it was reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub precision: Option<Precision>,
    /// The first seed whose run failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed_seed: Option<u64>,
    /// What each replication measured, in the order of the seeds.
    #[serde(skip)]
    pub singles: Vec<Measures>,
}

/// The warm-up of a steady load, and the result of doubling it.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct WarmUp {
    /// Number of entries before the measured ones.
    pub entries: u64,
    /// The result of doubling it, or `None` for a warm-up of 0: twice that is the same window, so
    /// nothing says whether the load is steady.
    #[serde(flatten)]
    pub doubled: Option<Doubling>,
}

/// The result of doubling a warm-up.
///
/// The measured window is moved on by the length of the warm-up. The warm-up was too short if that
/// shifts a mean noticeably: by more than half the width of its interval, by more than 0.5 %, and
/// with the interval of the shift, at 99.9 %, not containing 0.
///
/// The rule is lenient: smaller shifts pass, and a window that is longer than the warm-up overlaps
/// with the one that it is compared with.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Doubling {
    /// Shift of messages per entry when the warm-up is doubled.
    pub messages_shift: Estimate,
    /// Shift of the mean response time when the warm-up is doubled.
    pub response_shift: Estimate,
    /// Whether doubling the warm-up changed nothing noticeable.
    pub settled: bool,
}

/// A precision that was asked for.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Precision {
    /// Half the width of the interval as a share of the mean, as asked for.
    pub asked: f64,
    /// The larger of the shares of messages per entry and of the mean response time.
    pub got: f64,
    /// Whether it is at most what was asked for.
    pub reached: bool,
}

impl Replicated {
    /// Returns whether no replication had a violation or an unserved request.
    pub fn is_well(&self) -> bool {
        self.report.is_well()
    }

    /// Estimates a measure from its values in the replications.
    pub fn estimate(&self, measure: impl Fn(&Measures) -> f64) -> Estimate {
        Estimate::of(&values(&self.singles, measure), self.level)
    }

    /// Estimates by how much a measure is larger than in the other runs. Runs with the same seed
    /// are paired: they had the same demand.
    pub fn difference(&self, other: &Replicated, measure: impl Fn(&Measures) -> f64) -> Estimate {
        let difference = self.difference_if_any(other, |measures| Some(measure(measures)));
        difference.expect("there are at least two replications")
    }

    /// Like [`difference`](Replicated::difference), of a measure that some runs do not have. Pairs
    /// without it are left out. `None` if fewer than two pairs have it.
    pub fn difference_if_any(
        &self,
        other: &Replicated,
        measure: impl Fn(&Measures) -> Option<f64>,
    ) -> Option<Estimate> {
        let pairs = self.singles.iter().zip(&other.singles);
        let differences = pairs.map(|(own, other)| Some(measure(own)? - measure(other)?));
        let differences: Vec<_> = differences.flatten().collect();
        (differences.len() >= 2).then(|| Estimate::of(&differences, self.level))
    }

    /// What the reader must know to trust the figures, if anything.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if let Some(Precision { asked, got, .. }) = self.precision.filter(|p| !p.reached) {
            warnings.push(format!(
                "precision not reached after {} replications: ±{:.2} %, not ±{} %; use more \
                 --seeds or more --entries",
                self.replications,
                got * 100.0,
                asked * 100.0
            ));
        }
        match self.warm_up {
            Some(WarmUp { doubled: None, .. }) => warnings.push(
                "not checked whether the load is steady: without a warm-up, the start of the run \
                 is in the figures"
                    .to_owned(),
            ),
            Some(WarmUp {
                entries,
                doubled: Some(doubled),
            }) if !doubled.settled => warnings.push(format!(
                "not steady after a warm-up of {entries} entries: doubling it shifts messages per \
                 entry by {} and the mean response time by {}; use a longer --warm-up, or a load \
                 below saturation",
                doubled.messages_shift, doubled.response_shift
            )),
            Some(_) | None => {}
        }
        warnings
    }
}

/// The run of the setup's seed as [`replicate`] simulates it: with a warm-up if it has a steady
/// state.
pub fn steady(setup: &Setup, plan: &Plan) -> Setup {
    let is_steady = setup.load != Load::Burst && setup.crashes.is_none();
    let entries = plan.warm_up.unwrap_or_else(|| warm_up(setup.nodes));
    Setup {
        warm_up: is_steady.then_some(entries),
        ..setup.clone()
    }
}

/// Simulates the run with consecutive seeds, from the seed of the setup on, on all cores. Calls
/// `done` after each replication.
pub fn replicate(
    setup: &Setup,
    plan: &Plan,
    done: &(dyn Fn() + Sync),
) -> Result<Replicated, SimulateError> {
    assert!(
        plan.seeds >= Plan::SEEDS_MIN,
        "at least {} replications",
        Plan::SEEDS_MIN
    );
    let setup = steady(setup, plan);
    let run = |seed| {
        let setup = Setup {
            seed,
            ..setup.clone()
        };
        simulate(&setup, &mut |_| ())
    };
    let run_some = |numbers| {
        let reports = run_each(setup.seed, numbers, done, run);
        reports.into_iter().collect::<Result<Vec<_>, _>>()
    };
    let Some(asked) = plan.precision else {
        return Ok(summarise(&run_some(0..plan.seeds)?, plan, None));
    };
    let mut reports = run_some(0..Plan::SEEDS_MIN)?;
    loop {
        let count = reports.len() as u64;
        let got = precision_of(&reports, plan.level);
        let reached = got <= asked;
        if reached || count == plan.seeds || !reports.iter().all(Report::is_well) {
            let precision = Precision {
                asked,
                got,
                reached,
            };
            return Ok(summarise(&reports, plan, Some(precision)));
        }
        // The width falls with the root of the number. At most twice as many, since this width is
        // itself an estimate.
        let needed = (count as f64 * (got / asked) * (got / asked)).ceil() as u64;
        let next = needed.clamp(count + 1, 2 * count).min(plan.seeds);
        reports.extend(run_some(count..next)?);
    }
}

fn messages(measures: &Measures) -> f64 {
    measures.messages_per_entry
}

fn response(measures: &Measures) -> f64 {
    measures.response_time.mean
}

/// The larger relative half-width of the two measures that a precision is about.
fn precision_of(reports: &[Report], level: f64) -> f64 {
    let share = |measure: fn(&Measures) -> f64| {
        let values: Vec<_> = reports.iter().map(|r| measure(&r.measures)).collect();
        Estimate::of(&values, level).relative_half_width()
    };
    share(messages).max(share(response))
}

fn values(singles: &[Measures], measure: impl Fn(&Measures) -> f64) -> Vec<f64> {
    singles.iter().map(measure).collect()
}

fn summarise(reports: &[Report], plan: &Plan, precision: Option<Precision>) -> Replicated {
    let failed = reports.iter().find(|report| !report.is_well());
    let first = &reports[0];
    let total = |count: fn(&Report) -> u64| reports.iter().map(count).sum();
    let singles: Vec<_> = reports.iter().map(|r| r.measures.clone()).collect();
    Replicated {
        report: Report {
            algorithm: first.algorithm,
            variant: first.variant.clone(),
            shape: first.shape.clone(),
            nodes: first.nodes,
            load: first.load.clone(),
            requesters: first.requesters.clone(),
            delay: first.delay.clone(),
            channels: first.channels.clone(),
            hold: first.hold.clone(),
            seed: first.seed,
            measures: Figures::of(&singles, first.nodes, plan.level),
            doubled: None,
            violations: total(|report| report.violations),
            first_violation: reports.iter().find_map(|r| r.first_violation.clone()),
            unserved: total(|report| report.unserved),
            crashes: total(|report| report.crashes),
            time: reports.iter().map(|report| report.time).sum(),
            events: total(|report| report.events),
        },
        replications: reports.len() as u64,
        level: plan.level,
        warm_up: judge_warm_up(reports, plan.level),
        precision,
        failed_seed: failed.map(|report| report.seed),
        singles,
    }
}

/// Compares the measured window with the one after twice the warm-up.
fn judge_warm_up(reports: &[Report], level: f64) -> Option<WarmUp> {
    let entries = reports[0].doubled?.warm_up;
    if entries == 0 {
        let doubled = None;
        return Some(WarmUp { entries, doubled });
    }
    let pairs = || {
        let pairs = reports.iter().map(|r| Some((&r.measures, r.doubled?)));
        pairs.flatten()
    };
    let judge = |measured: Vec<f64>, doubled: Vec<f64>| {
        let shifts: Vec<_> = doubled.iter().zip(&measured).map(|(d, m)| d - m).collect();
        // A failed run ends before its second window.
        if shifts.len() < 2 {
            return None;
        }
        let shift = Estimate::of(&shifts, Plan::VERDICT_LEVEL);
        let mean = Estimate::of(&measured, level);
        let is_noticeable = !shift.contains(0.0)
            && shift.mean.abs() > mean.half_width
            && shift.mean.abs() > 0.005 * mean.mean.abs();
        Some((shift, !is_noticeable))
    };
    let (messages_shift, messages_settled) = judge(
        pairs().map(|(measured, _)| messages(measured)).collect(),
        pairs()
            .map(|(_, doubled)| doubled.messages_per_entry)
            .collect(),
    )?;
    let (response_shift, response_settled) = judge(
        pairs().map(|(measured, _)| response(measured)).collect(),
        pairs()
            .map(|(_, doubled)| doubled.response_time_mean)
            .collect(),
    )?;
    let doubled = Doubling {
        messages_shift,
        response_shift,
        settled: messages_settled && response_settled,
    };
    Some(WarmUp {
        entries,
        doubled: Some(doubled),
    })
}
