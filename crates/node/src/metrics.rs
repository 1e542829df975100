//! Metrics of a node, in Prometheus format.

use metrics::{Counter, Histogram, Key, KeyName, Label, Level, Metadata, Recorder, Unit};
use metrics_exporter_prometheus::{
    Matcher, PrometheusBuilder, PrometheusHandle, PrometheusRecorder,
};

use std::time::Duration;

use soloist_api::{EndReason, LockName};
use soloist_core::cluster_identity::Generation;
use soloist_core::locks::{LockEvent, Table};
use soloist_transport::links::Counters;

const METADATA: Metadata<'static> = Metadata::new("soloist", Level::INFO, None);

/// Histogram buckets, from a microsecond to an hour.
const SECONDS: [f64; 20] = [
    0.000_001, 0.000_01, 0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025,
    0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0, 300.0, 3600.0,
];

const WAIT: &str = "soloist_wait_seconds";
const HOLD: &str = "soloist_hold_seconds";
const HAND_OVER: &str = "soloist_hand_over_seconds";
const ENTRIES: &str = "soloist_entries_total";
const LOSSES: &str = "soloist_losses_total";
const MESSAGES: &str = "soloist_messages_total";
const STANDSTILL: &str = "soloist_epoch_standstill_seconds";
const EPOCHS: &str = "soloist_epochs_total";
const REFUSALS: &str = "soloist_requests_refused_total";
const LAPSES: &str = "soloist_lapses_total";

const REFUSED_ELSEWHERE: &str = "soloist_connections_refused_elsewhere_total";

/// Refusals of connections other than links: by this node, and by others of this node's
/// connections.
pub(crate) struct Refused {
    pub here: u64,
    pub elsewhere: u64,
}

/// The metrics of one node.
pub(crate) struct Metrics {
    recorder: PrometheusRecorder,
    handle: PrometheusHandle,
    wait: Histogram,
    hold: Histogram,
    hand_over: Histogram,
    standstill: Histogram,
    entries: Counter,
    epochs: Counter,
    lapses: Counter,
    /// Whether lock names are labels.
    lock_names: bool,
}

impl Metrics {
    pub fn new(lock_names: bool) -> Self {
        let recorder = PrometheusBuilder::new()
            .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &SECONDS)
            .expect("the list of buckets is not empty")
            .build_recorder();
        let seconds = |name, what: &'static str| {
            recorder.describe_histogram(KeyName::from(name), Some(Unit::Seconds), what.into());
            recorder.register_histogram(&Key::from_static_name(name), &METADATA)
        };
        let wait = seconds(WAIT, "Time from a request for a lock to its grant.");
        let hold = seconds(HOLD, "Time from a grant to the end of the hold.");
        let hand_over = seconds(
            HAND_OVER,
            "Time from the end of a hold to the next grant on the same node, if the lock stayed \
             there.",
        );
        let standstill = seconds(
            STANDSTILL,
            "Time for which locks on this node were paused by a change of epoch.",
        );
        let counts: [(&'static str, &'static str); 14] = [
            (
                REFUSED_ELSEWHERE,
                "Connections of this node that other nodes refused.",
            ),
            (ENTRIES, "Locks granted."),
            (EPOCHS, "Epochs that this node was a member of."),
            (LAPSES, "Number of times that this node's lease expired."),
            (LOSSES, "Holds lost, by reason."),
            (
                REFUSALS,
                "Requests for locks refused because of a quota, by the limit's key in the configuration.",
            ),
            (MESSAGES, "Messages of locks sent, by algorithm and kind."),
            (
                "soloist_grants_unclaimed_total",
                "Grants that arrived when no client was waiting any longer.",
            ),
            (
                "soloist_forget_messages_total",
                "Messages sent to forget idle locks.",
            ),
            (
                "soloist_messages_of_other_epochs_total",
                "Messages dropped because they belong to another epoch.",
            ),
            (
                "soloist_frames_resent_total",
                "Frames sent again after a connection broke.",
            ),
            (
                "soloist_frames_sent_total",
                "Frames sent, each counted once.",
            ),
            (
                "soloist_connections_refused_total",
                "Connections that this node refused.",
            ),
            (
                "soloist_connections_hostile_total",
                "Connections closed because of invalid bytes from the peer.",
            ),
        ];
        for (name, what) in counts {
            recorder.describe_counter(KeyName::from(name), None, what.into());
        }
        let gauges: [(&'static str, &'static str); 10] = [
            (
                "soloist_epoch",
                "Epoch that this node is a member of; 0 if none.",
            ),
            ("soloist_members", "Number of members in the epoch."),
            (
                "soloist_epochs_used_ratio",
                "Share of the generation's epochs that is used up, from 0 to 1.",
            ),
            (
                "soloist_fences_used_ratio",
                "Share of the epoch's fences that is used up, from 0 to 1.",
            ),
            (
                "soloist_lease_seconds",
                "Time left of this node's lease; 0 if it is not a member.",
            ),
            (
                "soloist_keeper_leads",
                "1 if this node is the keepers' leader.",
            ),
            ("soloist_locks", "Locks in use on this node."),
            ("soloist_holds", "Holds on this node."),
            ("soloist_waiters", "Waiters on this node."),
            ("soloist_links_up", "Open links to peers."),
        ];
        for (name, what) in gauges {
            recorder.describe_gauge(KeyName::from(name), None, what.into());
        }
        // Register every reason at the start, because a rate needs a first value.
        for end in [
            EndReason::Expired,
            EndReason::EpochLost,
            EndReason::NodeStopped,
        ] {
            let _zero = recorder.register_counter(&loss_key(end), &METADATA);
        }
        let counter =
            |name: &'static str| recorder.register_counter(&Key::from_static_name(name), &METADATA);
        Metrics {
            wait,
            hold,
            hand_over,
            standstill,
            entries: counter(ENTRIES),
            epochs: counter(EPOCHS),
            lapses: counter(LAPSES),
            handle: recorder.handle(),
            recorder,
            lock_names,
        }
    }

    /// Records a lock event.
    pub fn note(&self, event: &LockEvent) {
        match event {
            LockEvent::Granted {
                grant,
                waited,
                handed_over,
                ..
            } => {
                self.histogram(WAIT, &self.wait, &grant.lock)
                    .record(*waited);
                self.entries.increment(1);
                if let Some(time) = handed_over {
                    let histogram = self.histogram(HAND_OVER, &self.hand_over, &grant.lock);
                    histogram.record(*time);
                }
            }
            LockEvent::Ended {
                lock, end, held, ..
            } => {
                self.histogram(HOLD, &self.hold, lock).record(*held);
                if end.is_loss() {
                    self.loss(*end);
                }
            }
            LockEvent::Waiting { .. } | LockEvent::Denied { .. } | LockEvent::Cancelled { .. } => {}
        }
    }

    /// Counts an epoch that this node became a member of, and records how long locks stood still
    /// before it.
    pub fn count_epoch(&self, stood_still: Option<Duration>) {
        self.epochs.increment(1);
        if let Some(time) = stood_still {
            self.standstill.record(time);
        }
    }

    /// Counts an expired lease.
    pub fn count_lapse(&self) {
        self.lapses.increment(1);
    }

    /// Updates the gauges of the node's membership.
    pub fn observe_standing(&self, epoch: u64, members: usize, lease: Duration, leads: bool) {
        self.gauge("soloist_epoch", epoch as f64);
        let epochs = 1_u64 << Generation::EPOCH_BITS;
        let used = (epoch % epochs) as f64 / epochs as f64;
        self.gauge("soloist_epochs_used_ratio", used);
        self.gauge("soloist_members", members as f64);
        self.gauge("soloist_lease_seconds", lease.as_secs_f64());
        self.gauge("soloist_keeper_leads", f64::from(u8::from(leads)));
    }

    fn gauge(&self, name: &'static str, value: f64) {
        let key = Key::from_static_name(name);
        self.recorder.register_gauge(&key, &METADATA).set(value);
    }

    /// Copies the counts that are kept elsewhere.
    pub fn observe(&self, table: &Table, links: &Counters, refusals: Refused) {
        let counts = table.counts();
        for ((algorithm, kind), sent) in &counts.sent {
            let labels = vec![
                Label::from_static_parts("algorithm", algorithm),
                Label::from_static_parts("kind", kind),
            ];
            let key = Key::from_parts(MESSAGES, labels);
            self.recorder
                .register_counter(&key, &METADATA)
                .absolute(*sent);
        }
        for (limit, refused) in &counts.refused {
            let labels = vec![Label::from_static_parts("limit", limit)];
            let key = Key::from_parts(REFUSALS, labels);
            self.recorder
                .register_counter(&key, &METADATA)
                .absolute(*refused);
        }
        let counters = [
            ("soloist_grants_unclaimed_total", counts.unclaimed),
            ("soloist_forget_messages_total", counts.forgetting),
            ("soloist_messages_of_other_epochs_total", counts.other_epoch),
            ("soloist_frames_resent_total", links.frames_resent),
            ("soloist_frames_sent_total", links.frames_sent),
            (
                "soloist_connections_refused_total",
                links.refused + refusals.here,
            ),
            (
                REFUSED_ELSEWHERE,
                links.refused_by_peers + refusals.elsewhere,
            ),
            ("soloist_connections_hostile_total", links.hostile),
        ];
        for (name, count) in counters {
            let key = Key::from_static_name(name);
            self.recorder
                .register_counter(&key, &METADATA)
                .absolute(count);
        }
        let is_current = table.epoch() == Some(counts.fence.epoch());
        let used = if is_current { counts.fence.used() } else { 0.0 };
        self.gauge("soloist_fences_used_ratio", used);
        let gauges = [
            ("soloist_locks", table.locks()),
            ("soloist_holds", table.holds()),
            ("soloist_waiters", table.waiters()),
            ("soloist_links_up", links.links_up as usize),
        ];
        for (name, value) in gauges {
            self.gauge(name, value as f64);
        }
    }

    /// Renders all metrics as text. This may take long: do not call it while the table is locked.
    pub fn render(&self) -> String {
        self.handle.render()
    }

    /// Moves recorded durations into their buckets; the recorder keeps each one until then.
    pub fn tidy_up(&self) {
        self.handle.run_upkeep();
    }

    fn loss(&self, end: EndReason) {
        let counter = self.recorder.register_counter(&loss_key(end), &METADATA);
        counter.increment(1);
    }

    /// Returns the histogram of this lock if lock names are labels, or the one for all locks.
    fn histogram(&self, name: &'static str, all: &Histogram, lock: &LockName) -> Histogram {
        if !self.lock_names {
            return all.clone();
        }
        let labels = vec![Label::new("lock", lock.as_str().to_owned())];
        let key = Key::from_parts(name, labels);
        self.recorder.register_histogram(&key, &METADATA)
    }
}

fn loss_key(end: EndReason) -> Key {
    let labels = vec![Label::from_static_parts("reason", end.name())];
    Key::from_parts(LOSSES, labels)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    /// The golden file has all metrics of running nodes: a test in `tests/api/golden.rs` sees to
    /// that.
    #[test]
    fn the_manual_lists_exactly_the_metrics_that_are_exported() {
        let golden = include_str!("../tests/golden/metrics.txt");
        let families = golden.lines().filter(|line| !line.starts_with(' '));
        let exported: BTreeSet<&str> = families.filter_map(|line| line.split(' ').next()).collect();
        let manual = include_str!("../../../docs/operations.md");
        let words = manual.split(|byte: char| !byte.is_ascii_lowercase() && byte != '_');
        let documented: BTreeSet<&str> =
            words.filter(|word| word.starts_with("soloist_")).collect();
        assert_eq!(exported, documented);
        assert!(exported.len() > 20, "{exported:?}");
    }
}
