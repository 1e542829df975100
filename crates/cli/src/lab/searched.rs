//! Searches with progress and timing.

use std::time::{Duration, Instant};

use anyhow::Result;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use soloist_lab::breadth_first;
use soloist_lab::search::{Aim, Case, Pass, Progress, Report, Verdict as Found, WorstReport};

use crate::{Verdict, memory};

/// A report with timings. `seconds` and `graph_seconds` are those of the last pass of their kind,
/// which is the one with all requests.
#[derive(Serialize)]
pub(super) struct Timed {
    #[serde(flatten)]
    pub report: Report,
    /// Seconds of the safety pass.
    pub seconds: f64,
    pub states_per_second: Option<f64>,
    /// Seconds of the pass that keeps all states and steps.
    pub graph_seconds: f64,
    pub graph_states_per_second: Option<f64>,
    pub total_seconds: f64,
}

pub(super) fn search(case: &Case) -> Result<Timed> {
    let mut watcher = Watcher::new();
    let report = case.run(&mut |progress| watcher.note(progress))?;
    watcher.bar.finish_and_clear();
    let (seconds, graph_seconds) = (watcher.seconds(Pass::Safety), watcher.seconds(Pass::Graph));
    let states = report.states.filter(|_| report.verdict == Found::Holds);
    let rate = |seconds: f64| states.map(|states| states as f64 / seconds.max(1e-9));
    Ok(Timed {
        states_per_second: rate(seconds),
        graph_states_per_second: rate(graph_seconds),
        report,
        seconds,
        graph_seconds,
        total_seconds: watcher.begin.elapsed().as_secs_f64(),
    })
}

/// Runs a breadth-first search: shows progress on a terminal, and stops before memory runs out.
/// Returns what the search returned, and its seconds.
pub(super) fn watched<R>(
    search: impl FnOnce(&mut dyn FnMut(breadth_first::Progress) -> bool) -> R,
) -> (R, f64) {
    let bar = spinner();
    let begin = Instant::now();
    let mut looked_at = begin;
    let found = search(&mut |progress| {
        if looked_at.elapsed() < LOOK_EVERY {
            return true;
        }
        looked_at = Instant::now();
        let rate = progress.states as f64 / begin.elapsed().as_secs_f64().max(1e-3) / 1e3;
        bar.set_message(format!(
            "{} states, depth {}, {rate:.0} thousand states/s",
            progress.states, progress.depth
        ));
        bar.tick();
        !memory::is_short()
    });
    bar.finish_and_clear();
    (found, begin.elapsed().as_secs_f64())
}

/// The outcome of a command that searched.
pub(super) fn outcome(found: Found) -> Verdict {
    match found {
        Found::Holds => Verdict::Well,
        Found::NotExhausted => Verdict::Unknown,
        Found::Broken | Found::Deadlock | Found::Starvation | Found::Unrest => Verdict::Failed,
    }
}

/// The word that stands before a violation.
pub(super) fn word(found: Found) -> &'static str {
    match found {
        Found::Deadlock => "DEADLOCK",
        Found::Starvation => "STARVATION",
        Found::Unrest => "UNREST",
        _ => "BROKEN",
    }
}

/// Time between two looks at the progress and at the memory.
const LOOK_EVERY: Duration = Duration::from_millis(100);

fn spinner() -> ProgressBar {
    let style = ProgressStyle::with_template("{spinner} {msg}").expect("the template is right");
    ProgressBar::new_spinner().with_style(style)
}

pub(super) fn worst(case: &Case, aim: Aim) -> Result<WorstReport> {
    let mut watcher = Watcher::new();
    let report = case.worst(aim, &mut |progress| watcher.note(progress))?;
    watcher.bar.finish_and_clear();
    Ok(report)
}

/// Shows progress on a terminal, times the passes, and stops the search before memory runs out.
struct Watcher {
    bar: ProgressBar,
    begin: Instant,
    pass: Pass,
    pass_begin: Instant,
    /// The passes that have ended, with their durations.
    ended: Vec<(Pass, Duration)>,
    looked_at: Instant,
}

impl Watcher {
    fn new() -> Self {
        let now = Instant::now();
        Watcher {
            bar: spinner(),
            begin: now,
            pass: Pass::Safety,
            pass_begin: now,
            ended: Vec::new(),
            looked_at: now,
        }
    }

    /// Duration of the last pass of this kind.
    fn seconds(&self, pass: Pass) -> f64 {
        let mut last = self.ended.iter().rev();
        let last = last.find(|(ended, _)| *ended == pass);
        let running = || (self.pass == pass).then(|| self.pass_begin.elapsed());
        let took = running().or(last.map(|(_, took)| *took));
        took.unwrap_or_default().as_secs_f64()
    }

    fn note(&mut self, progress: Progress) -> bool {
        if progress.pass != self.pass {
            self.ended.push((self.pass, self.pass_begin.elapsed()));
            self.pass = progress.pass;
            self.pass_begin = Instant::now();
        }
        if self.looked_at.elapsed() < LOOK_EVERY {
            return true;
        }
        self.looked_at = Instant::now();
        let seconds = self.pass_begin.elapsed().as_secs_f64();
        let rate = progress.states as f64 / seconds.max(1e-3) / 1e6;
        let pass = match progress.pass {
            Pass::Safety => "safety",
            Pass::Graph => "all steps",
            Pass::EndlessRuns => "endless runs",
        };
        self.bar.set_message(format!(
            "{pass}: {} states, depth {}, {rate:.2} million states/s",
            progress.states, progress.depth,
        ));
        self.bar.tick();
        !memory::is_short()
    }
}
