//! An adversarial scheduler: climbs by local search to a run with many messages per entry, or in
//! which a waiter is often overtaken.
//!
//! It is for clusters that are too large to be searched. What it finds is a run that exists, so it
//! can refute a bound. What it does not find proves nothing.
//!
//! A `Schedule` (`schedule.rs`) gives a priority to each request, each exit and each message.
//! In each state, the possible event with the highest priority happens. The search changes a few
//! priorities at a time and keeps the change unless the run gets better for the cluster. One search
//! starts from requests that are made one at a time (`turns.rs`), the others from random schedules,
//! and the worst run of all is the result. A seed gives the same result on any machine.
//!
//! Messages are counted per entry, over the part of a run in which this is largest. The part begins
//! with the run and is complete: every request in it is served, and no message is left in flight,
//! except a circulating token.

mod run;
mod schedule;
mod turns;

use std::sync::Arc;

use rayon::prelude::*;
use serde::Serialize;
use soloist_algorithms::Algorithm;
use soloist_algorithms::kind::Visitor;

use crate::search::{Aim, Case, CaseError, Setting};
use crate::simulate::Random;
use run::{Run, Score};
use schedule::Schedule;

/// What to look for, and how long.
#[derive(Clone, Debug)]
pub struct Hunt {
    /// The cluster, and how often each node requests. Of the limits, only the channels count.
    pub case: Case,
    /// What is to be as large as possible.
    pub aim: Aim,
    /// Seed of the random generator.
    pub seed: u64,
    /// Number of runs to try, at least [`Hunt::CLIMBS`], beside those with requests one at a time.
    pub tries: u64,
}

/// The worst run found.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Found {
    /// The cluster.
    #[serde(flatten)]
    pub setting: Setting,
    /// What was to be as large as possible: messages or overtaking.
    pub aim: &'static str,
    /// Seed of the random generator.
    pub seed: u64,
    /// Number of runs that were tried, with requests one at a time and otherwise.
    pub tries: u64,
    /// Messages of the worst run. A circulating token that nobody asked for does not count. If
    /// messages are to be many, the run ends where they are most per entry.
    pub messages: u64,
    /// Entries of the worst run.
    pub entries: u64,
    /// The most often that one waiter was overtaken in it.
    pub overtaken: u64,
    /// The run as a scenario.
    pub transcript: String,
}

impl Found {
    /// Messages per entry.
    pub fn messages_per_entry(&self) -> f64 {
        self.messages as f64 / self.entries.max(1) as f64
    }
}

impl Hunt {
    /// Number of independent searches that share the tries.
    pub const CLIMBS: u64 = 8;

    /// A search gives up and starts from another schedule after this many tries without success.
    const FAILURES_MAX: u64 = 600;

    /// Searches on all cores. Calls `progress` once per try.
    pub fn run(&self, progress: &(dyn Fn() + Sync)) -> Result<Found, CaseError> {
        self.case.check_lists()?;
        let hunter = Hunter {
            hunt: self,
            progress,
        };
        self.case.choice.kind.visit(hunter)
    }
}

struct Hunter<'a> {
    hunt: &'a Hunt,
    progress: &'a (dyn Fn() + Sync),
}

/// A schedule that was tried.
struct Tried {
    /// How often each node requests.
    requests: Vec<u8>,
    schedule: Schedule,
    score: Score,
}

impl Tried {
    /// The worse of two, or the first if they are alike.
    fn or_worse(self, other: Tried, aim: Aim) -> Tried {
        match other.score.is_worse_than(&self.score, aim) {
            true => other,
            false => self,
        }
    }
}

impl Visitor for Hunter<'_> {
    type Output = Result<Found, CaseError>;

    fn visit<A: Algorithm>(self) -> Self::Output {
        let Hunter { hunt, progress } = self;
        let shape = Arc::new(hunt.case.shape.build::<A::Shape>(hunt.case.nodes)?);
        let tries = hunt.tries.max(Hunt::CLIMBS) / Hunt::CLIMBS;
        let (in_turn, runs) = turns::worst::<A>(hunt, &shape, progress);
        let climbs: Vec<_> = (0..Hunt::CLIMBS)
            .into_par_iter()
            .map(|stream| {
                let start = in_turn.as_ref().filter(|_| stream == 0);
                let start = start.map(|tried| tried.schedule.clone());
                climb::<A>(hunt, &shape, stream, start, tries, progress)
            })
            .collect();
        let all = in_turn.into_iter().chain(climbs);
        let worst = all.reduce(|one, other| one.or_worse(other, hunt.aim));
        let worst = worst.expect("there is at least one search");
        let case = Case {
            requests: worst.requests,
            ..hunt.case.clone()
        };
        let steps = Run::<A>::new(&case, &shape, &worst.schedule).recorded(hunt.aim);
        Ok(Found {
            aim: hunt.aim.name(),
            seed: hunt.seed,
            tries: runs + tries * Hunt::CLIMBS,
            messages: worst.score.messages,
            entries: worst.score.entries,
            overtaken: worst.score.overtaken,
            transcript: case.transcript(&worst.score.text(hunt.aim), &steps),
            setting: hunt.case.setting(shape.to_string()),
        })
    }
}

/// One search: the worst schedule that it found. Without a start, it starts from a random one.
fn climb<A: Algorithm>(
    hunt: &Hunt,
    shape: &Arc<A::Shape>,
    stream: u64,
    start: Option<Schedule>,
    tries: u64,
    progress: &(dyn Fn() + Sync),
) -> Tried {
    let mut random = Random::new(hunt.seed, stream);
    let attempt = |schedule: Schedule| {
        let (score, keys) = Run::<A>::new(&hunt.case, shape, &schedule).score(hunt.aim);
        progress();
        (schedule, score, keys)
    };
    let start = start.unwrap_or_else(|| Schedule::random(&mut random));
    let mut here = attempt(start);
    let mut worst = (here.0.clone(), here.1);
    let mut failures = 0;
    for _ in 1..tries {
        let next = match failures < Hunt::FAILURES_MAX {
            true => attempt(here.0.changed(&here.2, &mut random)),
            false => attempt(Schedule::random(&mut random)),
        };
        let starts_over = failures >= Hunt::FAILURES_MAX;
        failures = match next.1.is_worse_than(&here.1, hunt.aim) || starts_over {
            true => 0,
            false => failures + 1,
        };
        if starts_over || !here.1.is_worse_than(&next.1, hunt.aim) {
            here = next;
        }
        if here.1.is_worse_than(&worst.1, hunt.aim) {
            worst = (here.0.clone(), here.1);
        }
    }
    let (schedule, score) = worst;
    Tried {
        requests: hunt.case.requests.clone(),
        schedule,
        score,
    }
}
