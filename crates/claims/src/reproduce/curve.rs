//! What charts have in common: replications of runs as points, and lines of formulas.

use soloist_algorithms::Kind;
use soloist_lab::replicate::{Estimate, Plan};
use soloist_lab::report::{Axis, Chart, Look, Panel, Point, Series};
use soloist_lab::simulate::Measures;

use super::{Content, Item, Make, Part, Reproduced};
use crate::tools::Run;
use crate::{Finding, Verdict};

/// Entries that each replication measures.
pub(super) const ENTRIES: u64 = 1000;

/// Rising demand: one request at a time, then all nodes with shorter and shorter pauses.
pub(super) const DEMAND: [&str; 7] = [
    "light",
    "think:3000",
    "think:1000",
    "think:300",
    "think:100",
    "think:30",
    "heavy",
];

/// How values were measured, for captions.
pub(super) fn method() -> String {
    format!(
        "Points are means of {} replications of at least {ENTRIES} entries after a warm-up, seeds 1 to {}, with {} % intervals.",
        Plan::SEEDS_MIN,
        Plan::SEEDS_MIN,
        100.0 * Plan::VERDICT_LEVEL
    )
}

/// The seeds of all replications.
pub(super) fn seeds() -> Option<String> {
    Some(format!("1 to {}", Plan::SEEDS_MIN))
}

/// A measured item.
pub(super) const fn measured(
    paper: Kind,
    part: Part,
    labels: &'static [&'static str],
    title: &'static str,
    measure: fn() -> Reproduced,
) -> Item {
    Item {
        paper,
        part,
        labels,
        title,
        make: Make::Measure(measure),
    }
}

/// A measured value at a place.
pub(super) struct Measured {
    pub(super) x: f64,
    pub(super) estimate: Estimate,
}

/// Replicates each run, and estimates a measure of it.
pub(super) fn estimates(
    runs: impl IntoIterator<Item = (f64, Run)>,
    measure: impl Fn(&Measures) -> f64,
) -> Vec<Measured> {
    let estimate = |(x, run): (f64, Run)| Measured {
        x,
        estimate: run.replicated().estimate(&measure),
    };
    runs.into_iter().map(estimate).collect()
}

/// Messages per entry of each run.
pub(super) fn messages(runs: impl IntoIterator<Item = (f64, Run)>) -> Vec<Measured> {
    estimates(runs, |measures| measures.messages_per_entry)
}

/// One run per load of [`DEMAND`].
pub(super) fn by_demand(run: impl Fn() -> Run) -> Vec<(f64, Run)> {
    let loads = DEMAND.iter().enumerate();
    loads
        .map(|(place, load)| (place as f64, run().load(load)))
        .collect()
}

/// The axis of [`DEMAND`].
pub(super) fn demand_axis() -> Axis {
    let names = DEMAND
        .iter()
        .map(|load| load.trim_start_matches("think:").to_owned());
    let name = "demand: light, then mean pauses in message delays, then heavy";
    Axis::names(name, names.collect())
}

/// The points of measured values, with their intervals.
pub(super) fn points(name: &str, measured: &[Measured]) -> Series {
    let points = measured.iter().map(|Measured { x, estimate }| Point {
        x: *x,
        y: estimate.mean,
        interval: Some((estimate.low(), estimate.high())),
    });
    Series::new(name, Look::Points, points)
}

/// The same points, joined by a line.
pub(super) fn joined(name: &str, measured: &[Measured]) -> Series {
    Series {
        look: Look::Measured,
        ..points(name, measured)
    }
}

/// A formula, drawn through these places.
pub(super) fn formula(name: &str, xs: &[f64], of: impl Fn(f64) -> f64) -> Series {
    Series::claimed(name, xs.iter().map(|&x| (x, of(x))))
}

/// A constant, drawn across all of [`DEMAND`].
pub(super) fn level(name: &str, value: f64) -> Series {
    formula(name, &[0.0, (DEMAND.len() - 1) as f64], |_| value)
}

/// A chart of one panel.
pub(super) fn chart(title: &str, x: Axis, y: Axis, series: Vec<Series>, caption: String) -> Chart {
    let panel = Panel {
        title: String::new(),
        series,
    };
    Chart {
        title: title.to_owned(),
        x,
        y,
        panels: vec![panel],
        caption,
    }
}

/// A chart that was measured from seeds.
pub(super) fn by_chance(chart: Chart, verdict: Verdict, found: String, run: &Run) -> Reproduced {
    Reproduced {
        finding: Finding::new(verdict, found, run.steady_command()),
        seeds: seeds(),
        content: Content::Chart(chart),
    }
}

/// A chart that was counted: there is no chance in it.
pub(super) fn counted(
    chart: Chart,
    verdict: Verdict,
    found: String,
    command: String,
) -> Reproduced {
    Reproduced {
        finding: Finding::new(verdict, found, command),
        seeds: None,
        content: Content::Chart(chart),
    }
}

/// Whether no value is above the one before it by more than their intervals.
pub(super) fn never_rises(measured: &[Measured]) -> bool {
    measured
        .windows(2)
        .all(|pair| pair[1].estimate.low() <= pair[0].estimate.high())
}

/// The values as text: "3.28 ± 0.01 at 7".
pub(super) fn listed(measured: &[Measured]) -> String {
    let texts = measured
        .iter()
        .map(|Measured { x, estimate }| format!("{estimate} at {x}"));
    texts.collect::<Vec<_>>().join(", ")
}
