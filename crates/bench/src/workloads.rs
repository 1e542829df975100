//! The workloads, and how they are repeated and reported.

use std::time::Duration;

use crate::course::{Course, Outcome};
use crate::floors;
use crate::measured::{Cost, Repeats};
use crate::run::{Run, run};
use crate::{Cores, Error, Measured, Placement, Report, Samples, System};

/// Clients that acquire and release locks as fast as they can.
#[derive(Clone, Copy, Debug)]
pub struct Workload {
    /// Shown in the table.
    pub name: &'static str,
    /// Number of clients.
    pub clients: usize,
    /// Number of locks. If there are more than clients, a client takes another one each time.
    pub locks: usize,
    /// Whether a client waits until its server has confirmed the release.
    pub awaits_release: bool,
}

/// All workloads.
pub const WORKLOADS: [Workload; 6] = [
    workload("1 client", 1, 1),
    Workload {
        awaits_release: true,
        ..workload("1 client, release awaited", 1, 1)
    },
    workload("8 clients, 8 locks", 8, 8),
    workload("5 clients, 1 lock", 5, 1),
    workload("27 clients, 1 lock", 27, 1),
    workload("8 clients, 1000 locks", 8, 1000),
];

const fn workload(name: &'static str, clients: usize, locks: usize) -> Workload {
    Workload {
        name,
        clients,
        locks,
        awaits_release: false,
    }
}

/// The name of a workload in the table.
pub fn name(placement: Placement, workload: &str) -> String {
    format!("{}: {workload}", placement.name())
}

/// Names of all workloads and floors in the table.
pub fn names() -> Vec<String> {
    let workloads = WORKLOADS.map(|workload| workload.name);
    let names = || floors::ALL.into_iter().chain(workloads);
    let all = Placement::ALL.into_iter();
    all.flat_map(|placement| names().map(move |workload| name(placement, workload)))
        .collect()
}

/// Returns whether a row of the table is a floor: what the machine can do if there are no locks.
pub fn is_floor(row: &str) -> bool {
    let workload = row.split_once(": ").map(|(_, workload)| workload);
    workload.is_some_and(|workload| floors::ALL.contains(&workload))
}

/// Placements that this machine allows, and of which a workload is wanted.
pub fn placements(report: &Report, cores: &Cores) -> Vec<Placement> {
    let is_wanted = |placement: &Placement| {
        let mut workloads = WORKLOADS.iter();
        workloads.any(|workload| report.wants(&name(*placement, workload.name)))
    };
    let all = Placement::ALL.into_iter();
    all.filter(|placement| cores.allow(*placement) && is_wanted(placement))
        .collect()
}

/// Measures what the machine can do with this placement.
pub fn measure_floors(
    report: &mut Report,
    cores: &Cores,
    placement: Placement,
) -> Result<(), Error> {
    let rounds = if report.is_quick { 2_000 } else { 20_000 };
    let floors = floors::measure(cores, placement, rounds);
    for floor in floors.map_err(Error::io("cannot measure the floors"))? {
        report.add(floor)?;
    }
    Ok(())
}

/// Measures a system whose servers were started with this placement. The calling thread must be
/// pinned like a client.
pub fn measure<S: System>(
    report: &mut Report,
    system: &S,
    placement: Placement,
) -> Result<(), Error> {
    for workload in WORKLOADS {
        if report.wants(&name(placement, workload.name)) {
            repeat(report, system, placement, workload)?;
        }
    }
    Ok(())
}

/// Runs a workload several times and reports the median.
fn repeat<S: System>(
    report: &mut Report,
    system: &S,
    placement: Placement,
    workload: Workload,
) -> Result<(), Error> {
    let (runs, time) = match report.is_quick {
        true => (3, Duration::from_millis(300)),
        false => (5, Duration::from_secs(1)),
    };
    let mut measured = Vec::new();
    for _ in 0..runs {
        let course = Course::default();
        let run = run(system, workload, time, &course)?;
        measured.push((run, course.outcome()));
    }
    let rate = |run: &Run| run.cycles.len() as f64 / run.seconds;
    measured.sort_by(|(one, _), (other, _)| rate(one).total_cmp(&rate(other)));
    let repeats = Repeats {
        runs,
        lowest_per_second: rate(&measured[0].0),
        highest_per_second: rate(&measured[runs - 1].0),
    };
    let (run, outcome) = measured.swap_remove(runs / 2);
    let row = name(placement, workload.name);
    let mut cycle = Measured::new(row, "acquire and release", run.seconds, &run.cycles);
    cycle.cost = Some(Cost::of(&run));
    cycle.repeats = Some(repeats);
    let is_contended = workload.locks == 1 && workload.clients > 1;
    if !is_contended {
        return report.add(cycle.beside(&name(placement, floors::UNIX), &report.measured));
    }
    let hand_overs = note_course(&mut cycle, system, outcome);
    report.add(cycle)?;
    if hand_overs.is_empty() {
        return Ok(());
    }
    let row = name(placement, &format!("hand-over of {}", workload.name));
    let what = match system.servers() {
        1 => "release to next entry of another client",
        _ => "release to next entry on another node",
    };
    let hand_over = Measured::new(row, what, run.seconds, &hand_overs);
    report.add(hand_over.beside(&name(placement, floors::HOPS), &report.measured))
}

/// Notes the course of a contended run. Returns the times of its hand-overs. There are none if one
/// client or node kept the lock all the time.
fn note_course<S: System>(cycle: &mut Measured, system: &S, outcome: Outcome) -> Samples {
    let Outcome {
        entries,
        overtaken_max,
        hand_overs,
    } = outcome;
    cycle.overtaken = Some(overtaken_max);
    cycle.starved = system.starved(entries, hand_overs.len());
    hand_overs
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;
    use crate::run::Failure;
    use crate::{Client, Usage};

    /// Servers without locks.
    struct Idle;

    impl System for Idle {
        type Client = Idle;

        fn servers(&self) -> usize {
            2
        }

        async fn connect(&self, _: usize) -> Result<Idle, Failure> {
            Ok(Idle)
        }

        fn usage(&self) -> io::Result<Usage> {
            Ok(Usage::default())
        }

        fn starved(&self, entries: usize, hand_overs: usize) -> Option<f64> {
            (hand_overs * 10 < entries).then(|| hand_overs as f64 / entries as f64)
        }
    }

    impl Client for Idle {
        async fn acquire(&mut self, _: &str) -> Result<(), Failure> {
            Ok(())
        }

        async fn release(&mut self, _: bool) -> Result<(), Failure> {
            Ok(())
        }

        async fn settle(&mut self) -> Result<(), Failure> {
            Ok(())
        }
    }

    fn starved(hand_overs: usize) -> Option<f64> {
        let time = Duration::from_micros(10);
        let outcome = Outcome {
            entries: 1000,
            overtaken_max: 3,
            hand_overs: (0..hand_overs).map(|_| time).collect(),
        };
        let mut cycle = Measured::new("a", "cycle", 1.0, &Samples::default());
        let noted = note_course(&mut cycle, &Idle, outcome);
        assert_eq!((noted.len(), cycle.overtaken), (hand_overs, Some(3)));
        cycle.starved
    }

    #[test]
    fn a_run_in_which_one_node_kept_the_lock_all_the_time_is_starved() {
        assert_eq!(starved(500), None);
        assert_eq!(starved(10), Some(0.01));
        assert_eq!(starved(0), Some(0.0));
    }
}
