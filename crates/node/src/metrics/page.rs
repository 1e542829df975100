//! The text format of Prometheus, version 0.0.4, and the histograms in it.

use std::fmt::{self, Display, Write as _};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Upper bounds of the buckets in seconds, from a microsecond to an hour.
const BOUNDS: [f64; 20] = [
    0.000_001, 0.000_01, 0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025,
    0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0, 300.0, 3600.0,
];

/// A page of metrics.
///
/// Metrics without a series are left out, as is usual for those whose labels appear over time.
pub(super) struct Page {
    /// A line for each metric, with its name and its help.
    help: &'static str,
    text: String,
}

impl Page {
    pub(super) fn new(help: &'static str) -> Self {
        Page {
            help,
            text: String::new(),
        }
    }

    pub(super) fn gauge(&mut self, name: &str, value: impl Display) {
        self.metric(name, "gauge");
        self.line(name, Labels(&[]), value);
    }

    /// A gauge with a label.
    pub(super) fn gauges<'a>(
        &mut self,
        name: &str,
        series: impl IntoIterator<Item = ((&'static str, &'a str), u64)>,
    ) {
        for (index, (label, value)) in series.into_iter().enumerate() {
            if index == 0 {
                self.metric(name, "gauge");
            }
            self.line(name, Labels(&[label]), value);
        }
    }

    pub(super) fn counter(&mut self, name: &str, value: u64) {
        self.counters(name, [([], value)]);
    }

    /// A counter with labels.
    pub(super) fn counters<const N: usize>(
        &mut self,
        name: &str,
        series: impl IntoIterator<Item = ([(&'static str, &'static str); N], u64)>,
    ) {
        for (index, (labels, value)) in series.into_iter().enumerate() {
            if index == 0 {
                self.metric(name, "counter");
            }
            self.line(name, Labels(&labels), value);
        }
    }

    /// The histogram of all locks, and those of single locks.
    pub(super) fn histograms<'a>(
        &mut self,
        name: &str,
        all: &Histogram,
        locks: impl IntoIterator<Item = (&'a str, &'a Histogram)>,
    ) {
        self.metric(name, "histogram");
        self.histogram(name, &[], all);
        for (lock, histogram) in locks {
            self.histogram(name, &[("lock", lock)], histogram);
        }
    }

    fn histogram(&mut self, name: &str, labels: &[(&str, &str)], histogram: &Histogram) {
        let bucket = format!("{name}_bucket");
        let bounds = BOUNDS.iter().map(ToString::to_string);
        let bounds = bounds.chain(["+Inf".to_owned()]);
        let mut count = 0;
        for (bound, recorded) in bounds.zip(&histogram.buckets) {
            count += recorded.load(Relaxed);
            let labels = [labels, &[("le", &bound)]].concat();
            self.line(&bucket, Labels(&labels), count);
        }
        self.line(&format!("{name}_sum"), Labels(labels), histogram.sum());
        self.line(&format!("{name}_count"), Labels(labels), count);
    }

    fn metric(&mut self, name: &str, kind: &str) {
        let help = self.help.lines();
        let mut help = help.filter_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        let help = help.next().expect("every metric has a help");
        let gap = if self.text.is_empty() { "" } else { "\n" };
        let _ = write!(
            self.text,
            "{gap}# HELP {name} {help}\n# TYPE {name} {kind}\n"
        );
    }

    fn line(&mut self, name: &str, labels: Labels<'_>, value: impl Display) {
        let _ = writeln!(self.text, "{name}{labels} {value}");
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }
}

/// Labels in braces, or nothing if there are none.
struct Labels<'a>(&'a [(&'a str, &'a str)]);

impl Display for Labels<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (name, value)) in self.0.iter().enumerate() {
            let start = if index == 0 { '{' } else { ',' };
            let value = value.replace('\\', "\\\\").replace('"', "\\\"");
            write!(f, "{start}{name}=\"{}\"", value.replace('\n', "\\n"))?;
        }
        f.write_str(if self.0.is_empty() { "" } else { "}" })
    }
}

/// Durations, by bucket.
#[derive(Default)]
pub(super) struct Histogram {
    /// How many are in each bucket; the last one has no bound.
    buckets: [AtomicU64; BOUNDS.len() + 1],
    /// The bits of the sum in seconds, an `f64`. Nanoseconds would overflow: a thousand waiters
    /// wait for 584 years within seven months.
    sum: AtomicU64,
}

impl Histogram {
    pub(super) fn record(&self, time: Duration) {
        let seconds = time.as_secs_f64();
        let bucket = BOUNDS.partition_point(|bound| *bound < seconds);
        self.buckets[bucket].fetch_add(1, Relaxed);
        let add = |sum| Some((f64::from_bits(sum) + seconds).to_bits());
        let _always_some = self.sum.fetch_update(Relaxed, Relaxed, add);
    }

    fn sum(&self) -> f64 {
        f64::from_bits(self.sum.load(Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_the_format_of_prometheus() {
        let mut page = Page::new("entries_total Entries.\nsent_total Sent.\nratio Used.");
        page.counter("entries_total", 3);
        page.counters("sent_total", [([("a", "x"), ("b", "y")], 4)]);
        page.counters::<1>("none_total", []);
        page.gauge("ratio", 0.25);
        let expected = "\
# HELP entries_total Entries.
# TYPE entries_total counter
entries_total 3

# HELP sent_total Sent.
# TYPE sent_total counter
sent_total{a=\"x\",b=\"y\"} 4

# HELP ratio Used.
# TYPE ratio gauge
ratio 0.25
";
        assert_eq!(page.into_text(), expected);
    }

    #[test]
    fn buckets_are_cumulative_and_include_their_bound() {
        let (all, one) = (Histogram::default(), Histogram::default());
        for micros in [1_000, 1_001, 2_000_000, 7_200_000_000] {
            one.record(Duration::from_micros(micros));
        }
        let mut page = Page::new("wait_seconds Wait.");
        page.histograms("wait_seconds", &all, [("a", &one)]);
        let text = page.into_text();
        for line in [
            "wait_seconds_bucket{le=\"+Inf\"} 0",
            "wait_seconds_sum 0",
            "wait_seconds_count 0",
            "wait_seconds_bucket{lock=\"a\",le=\"0.0005\"} 0",
            "wait_seconds_bucket{lock=\"a\",le=\"0.001\"} 1",
            "wait_seconds_bucket{lock=\"a\",le=\"0.0025\"} 2",
            "wait_seconds_bucket{lock=\"a\",le=\"1\"} 2",
            "wait_seconds_bucket{lock=\"a\",le=\"5\"} 3",
            "wait_seconds_bucket{lock=\"a\",le=\"3600\"} 3",
            "wait_seconds_bucket{lock=\"a\",le=\"+Inf\"} 4",
            "wait_seconds_sum{lock=\"a\"} 7202.002001",
            "wait_seconds_count{lock=\"a\"} 4",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }

    #[test]
    fn values_of_labels_are_escaped() {
        let text = Labels(&[("lock", "a\"b\\c\nd")]).to_string();
        assert_eq!(text, r#"{lock="a\"b\\c\nd"}"#);
    }
}
