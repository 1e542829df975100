//! The results as tables in a Markdown file.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use soloist_bench::workloads::{WORKLOADS, name};
use soloist_bench::{Measured, Placement, floors, microseconds, rate};

use crate::Results;

const BEGIN: &str = "<!-- written by soloist-compare: begin -->\n";
const END: &str = "<!-- written by soloist-compare: end -->\n";

/// The contended workload whose hand-over and cost are shown.
const CONTENDED: &str = "5 clients, 1 lock";

/// Replaces what is between the markers of a file.
pub(crate) fn write(file: &Path, all: &[Results]) -> Result<()> {
    let cannot = || format!("cannot write {}", file.display());
    let text = fs::read_to_string(file).with_context(cannot)?;
    let text = replaced(&text, &tables(all));
    let text = text.with_context(|| format!("{} has no markers: {BEGIN}", file.display()))?;
    fs::write(file, text).with_context(cannot)
}

fn replaced(text: &str, tables: &str) -> Option<String> {
    let (before, rest) = text.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}{tables}{END}{after}"))
}

/// One table per placement, below its floors. A dash is what was not measured.
fn tables(all: &[Results]) -> String {
    let mut text = format!("\nMeasured on {}.\n", machine());
    for placement in [Placement::TwoCores, Placement::OneCore, Placement::Free] {
        text += &format!("\n### {}\n\n", heading(placement));
        text += &floors(all, placement);
        text += &table(all, placement);
    }
    text + note(all) + "\n"
}

/// What the machine can do with this placement, which is measured with the first system.
fn floors(all: &[Results], placement: Placement) -> String {
    let p50 = |floor| {
        let row = name(placement, floor);
        let found = all.iter().find_map(|results| results.find(&row));
        cell(found.and_then(median))
    };
    format!(
        "Floors, p50: a round trip of one byte takes {} through a Unix socket and {} through TCP, and \
         its way through two processes and back takes {}.\n\n",
        p50(floors::UNIX),
        p50(floors::TCP),
        p50(floors::HOPS)
    )
}

fn heading(placement: Placement) -> &'static str {
    match placement {
        Placement::TwoCores => "Clients on one core, servers on another",
        Placement::OneCore => "Clients and servers on one core",
        Placement::Free => "Where the scheduler puts them",
    }
}

fn table(all: &[Results], placement: Placement) -> String {
    let mut text = "| acquisitions per second |".to_owned();
    for workload in WORKLOADS {
        text += &format!(" {} |", workload.name);
    }
    text += " hand-over, p50 | overtaken | CPU per acquisition, clients + servers |\n|---|";
    text += &"--:|".repeat(WORKLOADS.len() + 3);
    text += "\n";
    for results in all {
        let find = |workload: &str| results.find(&name(placement, workload));
        let mut cells = vec![results.title.clone()];
        cells.extend(WORKLOADS.map(|workload| cell(find(workload.name).map(per_second))));
        let hand_over = find(&format!("hand-over of {CONTENDED}"));
        cells.push(cell(hand_over.and_then(median)));
        let contended = find(CONTENDED);
        let overtaken = contended.and_then(|found| found.overtaken);
        cells.push(cell(overtaken.map(|times| times.to_string())));
        let cost = contended.and_then(|found| found.cost);
        cells.push(cell(cost.map(|cost| {
            format!("{:.0} + {:.0} us", cost.client_cpu_us, cost.node_cpu_us)
        })));
        text += &format!("| {} |\n", cells.join(" | "));
    }
    text
}

/// A rate, and whether the run shows no contention although it should.
fn per_second(measured: &Measured) -> String {
    let starved = match measured.starved {
        Some(_) => " (starved)",
        None => "",
    };
    rate(measured.operations_per_second) + starved
}

/// What `(starved)` means, if the tables have it.
fn note(all: &[Results]) -> &'static str {
    let mut measured = all.iter().flat_map(|results| &results.measured);
    match measured.any(|measured| measured.starved.is_some()) {
        true => {
            "\n(starved): hardly an entry changed nodes, so the rate is not one of contention.\n"
        }
        false => "",
    }
}

fn median(measured: &Measured) -> Option<String> {
    let times = measured.times.as_ref();
    times.map(|times| microseconds(times.p50_us))
}

fn cell(value: Option<String>) -> String {
    value.unwrap_or_else(|| "–".to_owned())
}

/// Processor, number of cores, and kernel.
fn machine() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find(|line| line.starts_with("model name"));
    let model = model.and_then(|line| line.split_once(": "));
    let model = model.map_or("an unknown processor", |(_, model)| model);
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    let system = rustix::system::uname();
    let kernel = system.release().to_string_lossy();
    let kernel = kernel.split('-').next().unwrap_or_default();
    format!("{cores} cores of {model}, with Linux {kernel}")
}

#[cfg(test)]
mod tests {
    use soloist_bench::Samples;

    use super::*;

    #[test]
    fn only_what_is_between_the_markers_is_replaced() {
        let text = format!("before\n{BEGIN}old\n{END}after\n");
        let new = replaced(&text, "new\n").unwrap();
        assert_eq!(new, format!("before\n{BEGIN}new\n{END}after\n"));
        assert_eq!(replaced("no markers", "new"), None);
    }

    #[test]
    fn a_row_has_a_cell_per_workload_and_dashes_for_the_rest() {
        let row = name(Placement::Free, "1 client");
        let samples: Samples = [std::time::Duration::from_micros(50)].into_iter().collect();
        let results = Results {
            title: "one".to_owned(),
            measured: vec![Measured::new(row, "cycle", 0.001, &samples)],
        };
        let table = table(&[results], Placement::Free);
        let last = table.lines().last().unwrap();
        assert_eq!(last, format!("| one | 1000 |{}", " – |".repeat(8)));
    }

    #[test]
    fn a_starved_run_is_marked_and_explained() {
        let row = name(Placement::Free, CONTENDED);
        let samples: Samples = [std::time::Duration::from_micros(50)].into_iter().collect();
        let mut starved = Measured::new(row, "cycle", 0.001, &samples);
        let results = |measured: &Measured| Results {
            title: "one".to_owned(),
            measured: vec![measured.clone()],
        };
        assert!(!tables(&[results(&starved)]).contains("starved"));
        starved.starved = Some(0.0);
        let text = tables(&[results(&starved)]);
        assert!(text.contains("| 1000 (starved) |"), "{text}");
        assert!(text.contains("\n(starved): "), "{text}");
    }

    #[test]
    fn floors_stand_above_the_table() {
        let row = |floor| name(Placement::OneCore, floor);
        let samples: Samples = [std::time::Duration::from_micros(9)].into_iter().collect();
        let results = Results {
            title: "one".to_owned(),
            measured: vec![Measured::new(row(floors::UNIX), "trip", 1.0, &samples)],
        };
        let text = floors(&[results], Placement::OneCore);
        assert!(text.contains("takes 9.0 us through a Unix socket and – through TCP"));
    }
}
