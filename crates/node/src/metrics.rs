//! What a node counts and measures, as Prometheus reads it.

use metrics::{Counter, Histogram, Key, KeyName, Label, Level, Metadata, Recorder, Unit};
use metrics_exporter_prometheus::{
    Matcher, PrometheusBuilder, PrometheusHandle, PrometheusRecorder,
};

use crate::links::Counters;
use crate::locks::{End, Happening, LockName, Table};

const METADATA: Metadata<'static> = Metadata::new("soloist", Level::INFO, None);

/// From a microsecond to an hour.
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

/// One node's metrics.
pub(crate) struct Metrics {
    recorder: PrometheusRecorder,
    handle: PrometheusHandle,
    wait: Histogram,
    hold: Histogram,
    hand_over: Histogram,
    entries: Counter,
    /// Whether locks' names are labels.
    lock_names: bool,
}

impl Metrics {
    pub fn new(lock_names: bool) -> Self {
        let recorder = PrometheusBuilder::new()
            .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &SECONDS)
            .expect("there are buckets")
            .build_recorder();
        let seconds = |name, what: &'static str| {
            recorder.describe_histogram(KeyName::from(name), Some(Unit::Seconds), what.into());
            recorder.register_histogram(&Key::from_static_name(name), &METADATA)
        };
        let wait = seconds(WAIT, "From asking for a lock to having it.");
        let hold = seconds(HOLD, "From having a lock to its end.");
        let hand_over = seconds(
            HAND_OVER,
            "From the end of a hold to the next one on the same node, if the lock stayed there.",
        );
        let counts: [(&'static str, &'static str); 9] = [
            (ENTRIES, "Locks granted."),
            (LOSSES, "Holds that were lost, by reason."),
            (MESSAGES, "Messages of locks sent, by algorithm and kind."),
            (
                "soloist_grants_unclaimed_total",
                "Grants that came when nobody waited any more.",
            ),
            (
                "soloist_messages_of_other_epochs_total",
                "Messages of other epochs, dropped.",
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
                "Connections closed because of what came over them.",
            ),
        ];
        for (name, what) in counts {
            recorder.describe_counter(KeyName::from(name), None, what.into());
        }
        let gauges: [(&'static str, &'static str); 4] = [
            ("soloist_locks", "Locks that this node has to do with."),
            ("soloist_holds", "Holds on this node."),
            ("soloist_waiters", "Who waits on this node."),
            ("soloist_links_up", "Links to peers that are open."),
        ];
        for (name, what) in gauges {
            recorder.describe_gauge(KeyName::from(name), None, what.into());
        }
        // Each reason is there from the beginning: a rate needs a first value.
        for end in [End::Expired, End::EpochLost, End::NodeStopped] {
            let _zero = recorder.register_counter(&loss_key(end), &METADATA);
        }
        Metrics {
            wait,
            hold,
            hand_over,
            entries: recorder.register_counter(&Key::from_static_name(ENTRIES), &METADATA),
            handle: recorder.handle(),
            recorder,
            lock_names,
        }
    }

    /// Something happened to a lock.
    pub fn note(&self, happening: &Happening) {
        match happening {
            Happening::Granted {
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
            Happening::Ended {
                lock, end, held, ..
            } => {
                self.histogram(HOLD, &self.hold, lock).record(*held);
                if end.is_loss() {
                    self.loss(*end);
                }
            }
            Happening::Waiting { .. } | Happening::Denied { .. } => {}
        }
    }

    /// Takes over what is only counted elsewhere.
    pub fn observe(&self, table: &Table, links: &Counters) {
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
        let counters = [
            ("soloist_grants_unclaimed_total", counts.unclaimed),
            ("soloist_messages_of_other_epochs_total", counts.other_epoch),
            ("soloist_frames_resent_total", links.frames_resent),
            ("soloist_frames_sent_total", links.frames_sent),
            ("soloist_connections_refused_total", links.refused),
            ("soloist_connections_hostile_total", links.hostile),
        ];
        for (name, count) in counters {
            let key = Key::from_static_name(name);
            self.recorder
                .register_counter(&key, &METADATA)
                .absolute(count);
        }
        let gauges = [
            ("soloist_locks", table.locks()),
            ("soloist_holds", table.holds()),
            ("soloist_waiters", table.waiters()),
            ("soloist_links_up", links.links_up as usize),
        ];
        for (name, value) in gauges {
            let key = Key::from_static_name(name);
            self.recorder
                .register_gauge(&key, &METADATA)
                .set(value as f64);
        }
    }

    /// All of it as text. May take long: not to be done while others wait for the table.
    pub fn render(&self) -> String {
        self.handle.render()
    }

    /// Puts measured times into their buckets: the recorder keeps each until then.
    pub fn tidy_up(&self) {
        self.handle.run_upkeep();
    }

    fn loss(&self, end: End) {
        let counter = self.recorder.register_counter(&loss_key(end), &METADATA);
        counter.increment(1);
    }

    /// The histogram of a lock, if each has its own, else of all.
    fn histogram(&self, name: &'static str, all: &Histogram, lock: &LockName) -> Histogram {
        if !self.lock_names {
            return all.clone();
        }
        let labels = vec![Label::new("lock", lock.as_str().to_owned())];
        let key = Key::from_parts(name, labels);
        self.recorder.register_histogram(&key, &METADATA)
    }
}

fn loss_key(end: End) -> Key {
    let labels = vec![Label::from_static_parts("reason", end.name())];
    Key::from_parts(LOSSES, labels)
}
