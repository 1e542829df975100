//! Charts of simulated runs.

use std::fmt;
use std::str::FromStr;

use super::{Axis, Chart, Look, Panel, Point, Series, distinct};
use crate::replicate::{Estimate, Figures};
use crate::simulate::{DISTRIBUTION_STEPS, Measures, Report};

/// What a chart of several runs shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Metric {
    /// Messages per entry.
    #[default]
    Messages,
    /// Encoded bytes per entry.
    Bytes,
    /// Mean response time.
    Response,
    /// Mean synchronisation delay.
    SyncDelay,
    /// 99th percentile of the response time.
    Waiting,
    /// The most times that a waiter was overtaken.
    Overtaking,
}

impl Metric {
    /// All metrics.
    pub const ALL: [Metric; 6] = [
        Metric::Messages,
        Metric::Bytes,
        Metric::Response,
        Metric::SyncDelay,
        Metric::Waiting,
        Metric::Overtaking,
    ];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Metric::Messages => "messages",
            Metric::Bytes => "bytes",
            Metric::Response => "response",
            Metric::SyncDelay => "sync-delay",
            Metric::Waiting => "waiting",
            Metric::Overtaking => "overtaking",
        }
    }

    /// Name of the axis.
    fn axis(self) -> &'static str {
        match self {
            Metric::Messages => "messages per entry",
            Metric::Bytes => "encoded bytes per entry",
            Metric::Response => "mean response time (message delays)",
            Metric::SyncDelay => "mean synchronisation delay (message delays)",
            Metric::Waiting => "response time, 99th percentile (message delays)",
            Metric::Overtaking => "most times that a waiter was overtaken",
        }
    }
}

/// Measurements that can be drawn: of one run, or of several with intervals.
pub trait Drawable {
    /// The value of a metric, and the ends of its interval if it has one. `None` if there is no
    /// value: without a hand-over, there is no synchronisation delay.
    fn metric(&self, metric: Metric) -> Option<(f64, Option<(f64, f64)>)>;

    /// Number of entries that were measured.
    fn entries(&self) -> u64;
}

impl Drawable for Measures {
    fn metric(&self, metric: Metric) -> Option<(f64, Option<(f64, f64)>)> {
        let value = match metric {
            Metric::Messages => self.messages_per_entry,
            Metric::Bytes => self.bytes_per_entry,
            Metric::Response => self.response_time.mean,
            Metric::SyncDelay => self.sync_delay.mean_if_any()?,
            Metric::Waiting => self.response_time.p99,
            Metric::Overtaking => self.fairness.max_overtaken as f64,
        };
        Some((value, None))
    }

    fn entries(&self) -> u64 {
        self.entries
    }
}

impl Drawable for Figures {
    fn metric(&self, metric: Metric) -> Option<(f64, Option<(f64, f64)>)> {
        let of = |estimate: &Estimate| (estimate.mean, Some((estimate.low(), estimate.high())));
        Some(match metric {
            Metric::Messages => of(&self.messages_per_entry),
            Metric::Bytes => of(&self.bytes_per_entry),
            Metric::Response => of(&self.response_time.mean),
            Metric::SyncDelay => of(&self.sync_delay.as_ref()?.mean),
            Metric::Waiting => of(&self.response_time.p99),
            Metric::Overtaking => (self.fairness.max_overtaken.value, None),
        })
    }

    fn entries(&self) -> u64 {
        self.entries
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A metric that does not exist.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("use one of {}", Metric::ALL.map(Metric::name).join(", "))]
pub struct UnknownMetric;

impl FromStr for Metric {
    type Err = UnknownMetric;

    fn from_str(given: &str) -> Result<Self, UnknownMetric> {
        let metric = Metric::ALL
            .into_iter()
            .find(|metric| metric.name() == given);
        metric.ok_or(UnknownMetric)
    }
}

/// A chart of many runs: one line per algorithm, and one panel per load with the number of nodes as
/// horizontal axis. If all runs have the same number of nodes, the loads are the horizontal axis.
/// `seeds` is for the caption: "seed 1", or "10 replications with 95 % intervals".
pub fn plot<M: Drawable>(reports: &[&Report<M>], metric: Metric, seeds: &str) -> Chart {
    let loads = distinct(reports.iter().map(|report| report.load.as_str()));
    let sizes = distinct(reports.iter().map(|report| report.nodes));
    let names = series_names(reports);
    let runs = names
        .iter()
        .map(String::as_str)
        .zip(reports.iter().copied());
    let runs: Vec<_> = runs.collect();
    let load_of = |report: &Report<M>| loads.iter().position(|load| *load == report.load);
    let against_load = sizes.len() == 1 && loads.len() > 1;
    let (x, panels) = if against_load {
        let names = loads.iter().map(|load| (*load).to_owned()).collect();
        let at_load = |report: &Report<M>| load_of(report).expect("a load of a report") as f64;
        let series = series(&runs, &at_load, metric);
        let title = String::new();
        (Axis::names("load", names), vec![Panel { title, series }])
    } else {
        let panels = loads.iter().map(|load| {
            let of_load = runs.iter().filter(|(_, report)| report.load == *load);
            let of_load: Vec<_> = of_load.copied().collect();
            Panel {
                title: match loads.len() {
                    1 => String::new(),
                    _ => format!("{load} load"),
                },
                series: series(&of_load, &|report| report.nodes as f64, metric),
            }
        });
        (Axis::new("nodes"), panels.collect())
    };
    let by = if against_load {
        "load"
    } else {
        "number of nodes"
    };
    Chart {
        title: format!("{}, by {by}", capitalised(metric.axis())),
        x,
        y: Axis::new(metric.axis()),
        panels,
        caption: format!("{} {}", caption(reports, seeds), shapes(reports)),
    }
}

/// One line per name.
fn series<M: Drawable>(
    runs: &[(&str, &Report<M>)],
    x: &dyn Fn(&Report<M>) -> f64,
    metric: Metric,
) -> Vec<Series> {
    let names = distinct(runs.iter().map(|(name, _)| *name));
    let series = names.into_iter().map(|name| {
        let own = runs.iter().filter(|run| run.0 == name);
        let points = own.filter_map(|(_, report)| {
            let (y, interval) = report.measures.metric(metric)?;
            Some(Point {
                x: x(report),
                y,
                interval,
            })
        });
        let mut points: Vec<_> = points.collect();
        points.sort_by(|one, other| one.x.total_cmp(&other.x));
        Series::new(name, Look::Measured, points)
    });
    series.collect()
}

/// The shapes of each algorithm: "Shapes: raymond star:3; maekawa singer."
fn shapes<M>(reports: &[&Report<M>]) -> String {
    let names = distinct(reports.iter().map(|report| report.label()));
    let listed = names.iter().map(|name| {
        let own = reports.iter().filter(|report| report.label() == *name);
        let shapes = distinct(own.map(|report| report.shape.as_str()));
        format!("{name} {}", shapes.join(", "))
    });
    let listed: Vec<_> = listed.collect();
    format!("Shapes: {}.", listed.join("; "))
}

/// Names of the lines: the algorithm and its variants, and the shape if the same algorithm runs on
/// several shapes of the same size.
fn series_names<M>(reports: &[&Report<M>]) -> Vec<String> {
    let is_ambiguous = |report: &Report<M>| {
        reports.iter().any(|other| {
            other.label() == report.label()
                && other.nodes == report.nodes
                && other.shape != report.shape
        })
    };
    let several: Vec<_> = reports
        .iter()
        .filter(|report| is_ambiguous(report))
        .map(|report| report.label())
        .collect();
    let name = |report: &Report<M>| match several.contains(&report.label()) {
        true => format!("{}, {}", report.label(), report.shape),
        false => report.label(),
    };
    reports.iter().map(|report| name(report)).collect()
}

/// The settings that all runs share, and ranges of the others.
fn caption<M: Drawable>(reports: &[&Report<M>], seeds: &str) -> String {
    let loads = distinct(reports.iter().map(|report| &report.load));
    let sizes = distinct(reports.iter().map(|report| report.nodes));
    let mut parts = Vec::new();
    if let [load] = loads[..] {
        parts.push(format!("{load} load"));
    }
    if let [nodes] = sizes[..] {
        parts.push(format!("{nodes} nodes"));
    }
    let mut shared = |name: &str, of: &dyn Fn(&Report<M>) -> String| {
        let values = distinct(reports.iter().map(|report| of(report)));
        parts.push(format!("{name} {}", values.join(" or ")));
    };
    shared("delay", &|report| report.delay.clone());
    shared("hold", &|report| report.hold.to_string());
    shared("channels", &|report| report.channels.clone());
    parts.push(seeds.to_owned());
    let entries = reports.iter().map(|report| report.measures.entries());
    let range = (
        entries.clone().min().unwrap_or(0),
        entries.max().unwrap_or(0),
    );
    parts.push(match range {
        (least, most) if least == most => format!("{most} entries per run"),
        (least, most) => format!("{least} to {most} entries per run"),
    });
    let failed = reports.iter().filter(|report| !report.is_well()).count();
    if failed > 0 {
        parts.push(format!("{failed} of {} runs FAILED", reports.len()));
    }
    format!("{}.", capitalised(&parts.join(", ")))
}

/// The distributions of the response time and of the synchronisation delay of a run, as cumulative
/// shares. Distributions that were not kept are left out.
pub fn plot_distributions(report: &Report) -> Chart {
    let measures = &report.measures;
    let kept = measures.distributions.as_ref();
    let step = 100.0 / DISTRIBUTION_STEPS as f64;
    let curve = |name: &str, values: &[f64]| {
        // Up at each value: the share below it, then the share at or below it.
        let steps = values.iter().enumerate().flat_map(|(index, &value)| {
            let below = index as f64 * step;
            [Point::new(value, below), Point::new(value, below + step)]
        });
        Series::new(name, Look::Curve, steps)
    };
    let named = kept.into_iter().flat_map(|kept| {
        [
            ("response time", &kept.response_time),
            ("synchronisation delay", &kept.sync_delay),
        ]
    });
    let drawn = named.filter(|(_, values)| !values.is_empty());
    let summaries = [
        ("Response time", measures.response_time),
        ("synchronisation delay", measures.sync_delay),
    ];
    let summaries = summaries.map(|(name, summary)| {
        if summary.count == 0 {
            return format!("{name}: none");
        }
        format!(
            "{name}: mean {:.3}, median {:.3}, 99 % at or below {:.3}, maximum {:.3}",
            summary.mean, summary.p50, summary.p99, summary.max
        )
    });
    Chart {
        title: format!(
            "{}: response time and synchronisation delay",
            report.label()
        ),
        x: Axis::new("message delays"),
        y: Axis::from_zero("share of the entries at or below (%)"),
        panels: vec![Panel {
            title: String::new(),
            series: drawn.map(|(name, values)| curve(name, values)).collect(),
        }],
        caption: format!(
            "{} Shape {}. {}.",
            caption(&[report], &format!("seed {}", report.seed)),
            report.shape,
            summaries.join("; ")
        ),
    }
}

/// The text with a capital first letter.
fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    match letters.next() {
        None => String::new(),
        Some(first) => first.to_uppercase().chain(letters).collect(),
    }
}

#[cfg(test)]
mod tests {
    use soloist_algorithms::Choice;

    use super::*;
    use crate::ShapeSpec;
    use crate::replicate::{Plan, replicate};
    use crate::simulate::{Setup, simulate};

    fn report(algorithm: &str, nodes: usize, shape: &str, load: &str) -> Report {
        let choice = Choice::parse(algorithm, "").unwrap();
        let form = || ShapeSpec::Form(shape.to_owned());
        let setup = Setup {
            shape: if shape.is_empty() {
                ShapeSpec::Default
            } else {
                form()
            },
            load: load.parse().unwrap(),
            entries: 50,
            distributions: true,
            ..Setup::new(choice, nodes)
        };
        simulate(&setup, &mut |_| ()).unwrap()
    }

    fn names(panel: &Panel) -> Vec<&str> {
        panel
            .series
            .iter()
            .map(|series| series.name.as_str())
            .collect()
    }

    #[test]
    fn loads_are_panels_and_algorithms_are_lines() {
        let runs = [(3, "light"), (9, "light"), (3, "heavy"), (9, "heavy")];
        let reports: Vec<_> = runs
            .iter()
            .flat_map(|(nodes, load)| {
                ["raymond", "mesh"].map(|name| report(name, *nodes, "", load))
            })
            .collect();
        let reports: Vec<_> = reports.iter().collect();
        let chart = plot(&reports, Metric::Messages, "seed 1");
        let titles: Vec<_> = chart.panels.iter().map(|panel| &panel.title).collect();
        assert_eq!(titles, ["light load", "heavy load"]);
        // The mesh has another shape at each size, and one line all the same.
        assert_eq!(names(&chart.panels[0]), ["raymond", "chaudhuri-karaata"]);
        let line = &chart.panels[1].series[0].points;
        let xs: Vec<_> = line.iter().map(|point| point.x).collect();
        assert_eq!(xs, [3.0, 9.0]);
        assert_eq!(line[1].y, reports[6].measures.messages_per_entry);
    }

    #[test]
    fn loads_are_the_axis_if_there_is_one_size() {
        let reports: Vec<_> = ["line", "star:3"]
            .iter()
            .flat_map(|shape| ["light", "heavy"].map(|load| report("raymond", 7, shape, load)))
            .collect();
        let reports: Vec<_> = reports.iter().collect();
        let chart = plot(&reports, Metric::Response, "seed 1");
        assert_eq!(
            names(&chart.panels[0]),
            ["raymond, line", "raymond, star:3"]
        );
        let loads = vec!["light".to_owned(), "heavy".to_owned()];
        assert_eq!(chart.x.scale, crate::report::Scale::Names(loads));
        assert!(chart.caption.contains("7 nodes"), "{}", chart.caption);
        assert!(
            chart.caption.contains("raymond line, star:3"),
            "{}",
            chart.caption
        );
    }

    #[test]
    fn replications_are_drawn_with_their_intervals() {
        let choice = Choice::parse("raymond", "").unwrap();
        let setup = Setup {
            entries: 50,
            ..Setup::new(choice, 5)
        };
        let replicated = replicate(&setup, &Plan::default(), &|| ()).unwrap();
        let interval = |metric| {
            let chart = plot(&[&replicated.report], metric, "10 replications");
            chart.panels[0].series[0].points[0].interval
        };
        let messages = replicated.report.measures.messages_per_entry;
        assert_eq!(
            interval(Metric::Messages),
            Some((messages.low(), messages.high()))
        );
        assert_eq!(interval(Metric::Overtaking), None, "a maximum has none");
    }

    /// One at a time, no node waits when another leaves.
    #[test]
    fn a_run_without_a_hand_over_has_no_point() {
        let reports = ["light", "heavy"].map(|load| report("raymond", 7, "", load));
        let reports: Vec<_> = reports.iter().collect();
        let points = |metric| {
            let chart = plot(&reports, metric, "seed 1");
            chart.panels[0].series[0].points.len()
        };
        assert_eq!(
            (points(Metric::SyncDelay), points(Metric::Response)),
            (1, 2)
        );
    }

    #[test]
    fn every_metric_has_a_name_that_is_parsed() {
        for metric in Metric::ALL {
            assert_eq!(metric.name().parse(), Ok(metric));
        }
        assert_eq!("speed".parse::<Metric>(), Err(UnknownMetric));
    }

    #[test]
    fn distributions_rise_to_all_entries() {
        let chart = plot_distributions(&report("raymond", 7, "", "heavy"));
        assert_eq!(
            names(&chart.panels[0]),
            ["response time", "synchronisation delay"]
        );
        for series in &chart.panels[0].series {
            let last = series.points.last().unwrap();
            assert!((last.y - 100.0).abs() < 1e-9, "{last:?}");
            assert!(series.points.is_sorted_by(|one, other| one.x <= other.x));
        }
        // One at a time, no node waits when another leaves.
        let chart = plot_distributions(&report("raymond", 7, "", "light"));
        assert_eq!(names(&chart.panels[0]), ["response time"]);
        assert!(
            chart.caption.ends_with("; synchronisation delay: none."),
            "{}",
            chart.caption
        );
    }
}
