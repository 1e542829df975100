//! The result of a workload.

use serde::{Deserialize, Serialize};

use crate::run::Run;
use crate::{Samples, Times, Usage};

/// Result of one workload.
#[derive(Serialize, Deserialize, Clone, Debug)]
pub struct Measured {
    /// Name of the workload.
    pub workload: String,
    /// What one operation is.
    pub what: String,
    /// Number of operations.
    pub operations: usize,
    /// Rate of operations.
    pub operations_per_second: f64,
    /// Time per operation, in microseconds.
    #[serde(flatten)]
    pub times: Option<Times>,
    /// The median relative to that of a floor in the same run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio: Option<Ratio>,
    /// Messages sent per operation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages: Option<f64>,
    /// Share of entries that followed an entry of another node, in a run in which some nodes hardly
    /// took part. Such a run does not measure contention.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub starved: Option<f64>,
    /// The largest number of later requests that were granted before a request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overtaken: Option<usize>,
    /// CPU time and context switches per operation.
    #[serde(flatten)]
    pub cost: Option<Cost>,
    /// Rates of all repetitions.
    #[serde(flatten)]
    pub repeats: Option<Repeats>,
    /// Memory per operation, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_each: Option<f64>,
    /// Expected maximum of the longest operation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound: Option<Bound>,
}

/// Expected maximum of a time.
#[derive(Serialize, Deserialize, Clone, Debug)]
pub struct Bound {
    /// The maximum in words.
    pub what: String,
    /// The maximum in microseconds.
    pub us: f64,
}

/// A median relative to that of a floor.
#[derive(Serialize, Deserialize, Clone, Debug)]
pub struct Ratio {
    /// Name of the floor.
    pub floor: String,
    /// The median divided by that of the floor.
    pub times: f64,
}

/// Cost of an operation to clients and to nodes.
#[derive(Serialize, Deserialize, Clone, Copy, Debug)]
pub struct Cost {
    /// CPU time of the clients, in microseconds.
    pub client_cpu_us: f64,
    /// CPU time of the nodes, in microseconds.
    pub node_cpu_us: f64,
    /// Context switches of the clients.
    pub client_switches: f64,
    /// Context switches of the nodes.
    pub node_switches: f64,
}

impl Cost {
    pub(crate) fn of(run: &Run) -> Self {
        let each = |total: f64| total / run.cycles.len() as f64;
        let cpu = |usage: Usage| each(usage.cpu.as_secs_f64() * 1e6);
        let switches = |usage: Usage| each(usage.switches as f64);
        Cost {
            client_cpu_us: cpu(run.clients),
            node_cpu_us: cpu(run.nodes),
            client_switches: switches(run.clients),
            node_switches: switches(run.nodes),
        }
    }

    fn text(&self) -> String {
        format!(
            "clients + nodes: {:.0} + {:.0} us of CPU, {:.1} + {:.1} context switches",
            self.client_cpu_us, self.node_cpu_us, self.client_switches, self.node_switches
        )
    }
}

/// Rates of the repetitions of a workload. The result is that of the median.
#[derive(Serialize, Deserialize, Clone, Copy, Debug)]
pub struct Repeats {
    /// Number of repetitions.
    pub runs: usize,
    /// Rate of the slowest.
    pub lowest_per_second: f64,
    /// Rate of the fastest.
    pub highest_per_second: f64,
}

impl Measured {
    /// The result of operations that took this long.
    pub fn new(
        workload: impl Into<String>,
        what: impl Into<String>,
        seconds: f64,
        samples: &Samples,
    ) -> Self {
        Measured {
            workload: workload.into(),
            what: what.into(),
            operations: samples.len(),
            operations_per_second: samples.len() as f64 / seconds,
            times: samples.times(),
            ratio: None,
            messages: None,
            starved: None,
            overtaken: None,
            cost: None,
            repeats: None,
            bytes_each: None,
            bound: None,
        }
    }

    /// What is measured besides times.
    pub(crate) fn notes(&self) -> String {
        let ratio = self.ratio.as_ref();
        let ratio = ratio.map(|ratio| format!("{:.2} x {}", ratio.times, ratio.floor));
        let messages = self.messages.map(|m| format!("{m:.2} messages each"));
        let starved = self.starved.map(|share| {
            format!(
                "starved: only {:.1} % of the entries changed nodes, so this is not contention",
                share * 100.0
            )
        });
        let bytes = self.bytes_each.map(|b| format!("{b:.0} bytes each"));
        let bound = self.bound.as_ref().zip(self.times.as_ref());
        let bound = bound.map(|(bound, times)| {
            let longest = microseconds(times.max_us);
            format!("longest {longest}, expected at most {}", bound.what)
        });
        let overtaken = self
            .overtaken
            .map(|most| format!("overtaken up to {most} times"));
        let repeats = self.repeats.map(|repeats| {
            let (lowest, highest) = (repeats.lowest_per_second, repeats.highest_per_second);
            format!("{} runs: {lowest:.0} to {highest:.0}", repeats.runs)
        });
        let cost = self.cost.map(|cost| cost.text());
        let notes = [
            ratio, messages, overtaken, starved, repeats, cost, bytes, bound,
        ];
        let notes: Vec<_> = notes.into_iter().flatten().collect();
        notes.join(", ")
    }

    /// Adds the ratio to a floor, if it is among those that were measured.
    pub fn beside(mut self, floor: &str, floors: &[Measured]) -> Self {
        let floor_time = floors.iter().find(|measured| measured.workload == floor);
        let floor_time = floor_time.and_then(|measured| measured.times.as_ref());
        if let (Some(own), Some(other)) = (&self.times, floor_time) {
            let times = own.p50_us / other.p50_us;
            let floor = floor.to_owned();
            self.ratio = Some(Ratio { floor, times });
        }
        self
    }
}

/// A time in microseconds, in a unit that suits it.
pub fn microseconds(us: f64) -> String {
    match us {
        _ if us < 1_000.0 => format!("{us:.1} us"),
        _ if us < 1_000_000.0 => format!("{:.1} ms", us / 1e3),
        _ => format!("{:.2} s", us / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_a_unit_that_suits_them() {
        assert_eq!(microseconds(0.94), "0.9 us");
        assert_eq!(microseconds(17_300.0), "17.3 ms");
        assert_eq!(microseconds(3_074_470.9), "3.07 s");
    }

    #[test]
    fn results_are_read_back_from_their_json() {
        let samples = [10, 30].map(std::time::Duration::from_micros);
        let samples: Samples = samples.into_iter().collect();
        let mut measured = Measured::new("a", "cycle", 1.0, &samples);
        measured.overtaken = Some(4);
        measured.repeats = Some(Repeats {
            runs: 5,
            lowest_per_second: 1.0,
            highest_per_second: 3.0,
        });
        let text = serde_json::to_string(&measured).unwrap();
        let read: Measured = serde_json::from_str(&text).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), text);
        assert!(read.cost.is_none() && read.repeats.is_some());
    }
}
