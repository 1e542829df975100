//! Metrics of a node, in Prometheus format.
//!
//! A metric is a line in [`HELP`] and a statement with its value in one of the functions that
//! [`Metrics::render`] calls. Values that the node has anyway are [`Observed`] when the metrics are
//! asked for; only what would be lost is recorded here.

mod page;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use soloist_api::session::Code;
use soloist_api::{EndReason, LockName};
use soloist_core::cluster_identity::Generation;
use soloist_core::locks::{Counts, LockEvent};
use soloist_transport::links::Counters;

use page::{Histogram, Page};

/// The name and the help of each metric.
const HELP: &str = "\
soloist_build_info Always 1; the label is the version of this node.
soloist_epoch Epoch that this node is a member of; 0 if none.
soloist_epochs_used_ratio Share of the generation's epochs that is used up, from 0 to 1.
soloist_fences_used_ratio Share of the epoch's fences that is used up, from 0 to 1.
soloist_members Number of members in the epoch.
soloist_lease_seconds Time left of this node's lease; 0 if it is not a member.
soloist_keeper_leads 1 if this node is the keepers' leader.
soloist_keeper_store_ok 1 while this node's keeper works, 0 after its store failed. Absent if this node is not a keeper.
soloist_certificate_expiry_timestamp_seconds When this node's certificate expires, in seconds since 1970. Absent without TLS between nodes.
soloist_epochs_total Epochs that this node was a member of.
soloist_lapses_total Number of times that this node's lease expired.
soloist_locks Locks in use on this node.
soloist_holds Holds on this node.
soloist_waiters Waiters on this node.
soloist_oldest_waiter_seconds How long the client that has waited longest on this node has waited; 0 if none waits.
soloist_sessions Sessions of this node, with or without a connection.
soloist_sessions_resumed_total Sessions resumed over another connection.
soloist_session_connections_closed_total Connections of sessions that this node closed, by code.
soloist_entries_total Locks granted.
soloist_losses_total Holds lost, by reason.
soloist_requests_refused_total Requests for locks refused because of a quota, by the limit's key in the configuration.
soloist_messages_total Messages of locks sent, by algorithm and kind.
soloist_messages_of_other_epochs_total Messages dropped because they belong to another epoch.
soloist_forget_messages_total Messages sent to forget idle locks.
soloist_grants_unclaimed_total Grants that arrived when no client was waiting any longer.
soloist_wait_seconds Time from a request for a lock to its grant.
soloist_hold_seconds Time from a grant to the end of the hold.
soloist_hand_over_seconds Time from the end of a hold to the next grant on the same node, if the lock stayed there.
soloist_epoch_standstill_seconds Time for which locks on this node were paused by a change of epoch.
soloist_links_up Open links to peers.
soloist_link_up 1 if the link to this peer is open, otherwise 0.
soloist_frames_sent_total Frames sent, each counted once.
soloist_frames_resent_total Frames sent again after a connection broke.
soloist_connections_refused_total Connections that this node refused.
soloist_connections_refused_elsewhere_total Connections of this node that other nodes refused.
soloist_connections_hostile_total Connections closed because of invalid bytes from the peer.
";

/// What a node knows when its metrics are asked for.
pub(crate) struct Observed {
    /// The current epoch, or 0 while this node is not a member.
    pub epoch: u64,
    pub members: usize,
    /// What is left of the lease.
    pub lease: Duration,
    /// Whether this node is the keepers' leader.
    pub leads: bool,
    /// Whether this node's keeper works, or `None` if it has none.
    pub store_ok: Option<bool>,
    /// When this node's certificate expires, in seconds since 1970.
    pub certificate_ends_s: Option<u64>,
    /// Used share of the epoch's fences.
    pub fences_used: f64,
    pub locks: usize,
    pub holds: usize,
    pub waiters: usize,
    /// How long the client has waited that has waited longest.
    pub longest_wait: Duration,
    pub sessions: usize,
    pub counts: Counts,
    pub links: Counters,
    /// The peers, and whether the link to each is open.
    pub peers: Vec<(String, bool)>,
    /// Connections other than links that this node refused.
    pub refused: u64,
    /// Connections other than links that other nodes refused.
    pub refused_elsewhere: u64,
}

/// What a node records for its metrics.
pub(crate) struct Metrics {
    wait: ByLock,
    hold: ByLock,
    hand_over: ByLock,
    standstill: Histogram,
    entries: AtomicU64,
    epochs: AtomicU64,
    lapses: AtomicU64,
    losses: Mutex<BTreeMap<&'static str, u64>>,
    sessions_resumed: AtomicU64,
    sessions_closed: Mutex<BTreeMap<&'static str, u64>>,
}

impl Metrics {
    /// Every lock gets histograms of its own if `lock_names` are labels.
    pub(crate) fn new(lock_names: bool) -> Self {
        // Every reason is there at the start, because a rate needs a first value.
        let reasons = [
            EndReason::Expired,
            EndReason::EpochLost,
            EndReason::NodeStopped,
        ];
        Metrics {
            wait: ByLock::new(lock_names),
            hold: ByLock::new(lock_names),
            hand_over: ByLock::new(lock_names),
            standstill: Histogram::default(),
            entries: AtomicU64::new(0),
            epochs: AtomicU64::new(0),
            lapses: AtomicU64::new(0),
            losses: Mutex::new(reasons.map(|end| (end.name(), 0)).into()),
            sessions_resumed: AtomicU64::new(0),
            sessions_closed: Mutex::new(Code::ALL.map(|code| (code.name(), 0)).into()),
        }
    }

    /// Records a lock event.
    pub(crate) fn note(&self, event: &LockEvent) {
        match event {
            LockEvent::Granted {
                grant,
                waited,
                handed_over,
                ..
            } => {
                self.wait.record(&grant.lock, *waited);
                self.entries.fetch_add(1, Relaxed);
                if let Some(time) = handed_over {
                    self.hand_over.record(&grant.lock, *time);
                }
            }
            LockEvent::Ended {
                lock, end, held, ..
            } => {
                self.hold.record(lock, *held);
                if end.is_loss() {
                    let mut losses = self
                        .losses
                        .lock()
                        .expect("no thread panics while it has the mutex");
                    *losses.entry(end.name()).or_default() += 1;
                }
            }
            LockEvent::Waiting { .. } | LockEvent::Denied { .. } | LockEvent::Cancelled { .. } => {}
        }
    }

    /// Counts an epoch that this node became a member of, and records how long locks stood still
    /// before it.
    pub(crate) fn count_epoch(&self, stood_still: Option<Duration>) {
        self.epochs.fetch_add(1, Relaxed);
        if let Some(time) = stood_still {
            self.standstill.record(time);
        }
    }

    /// Counts an expired lease.
    pub(crate) fn count_lapse(&self) {
        self.lapses.fetch_add(1, Relaxed);
    }

    /// Counts a session that was resumed.
    pub(crate) fn count_session_resumed(&self) {
        self.sessions_resumed.fetch_add(1, Relaxed);
    }

    /// Counts a session's connection that this node closed.
    pub(crate) fn count_session_closed(&self, code: Code) {
        let closed = self.sessions_closed.lock();
        let mut closed = closed.expect("no thread panics while it has the mutex");
        *closed.entry(code.name()).or_default() += 1;
    }

    /// Renders all metrics as text. This may take long: do not call it while the table is locked.
    pub(crate) fn render(&self, now: &Observed) -> String {
        let mut page = Page::new(HELP);
        self.standing(now, &mut page);
        self.locks(now, &mut page);
        self.sessions(now, &mut page);
        connections(now, &mut page);
        self.durations(&mut page);
        page.into_text()
    }

    fn standing(&self, now: &Observed, page: &mut Page) {
        let epochs = 1_u64 << Generation::EPOCH_BITS;
        let epochs_used = (now.epoch % epochs) as f64 / epochs as f64;
        let version = env!("CARGO_PKG_VERSION");
        page.gauges("soloist_build_info", [(("version", version), 1)]);
        page.gauge("soloist_epoch", now.epoch);
        page.gauge("soloist_epochs_used_ratio", epochs_used);
        page.gauge("soloist_fences_used_ratio", now.fences_used);
        page.gauge("soloist_members", now.members);
        page.gauge("soloist_lease_seconds", now.lease.as_secs_f64());
        page.gauge("soloist_keeper_leads", u8::from(now.leads));
        if let Some(ok) = now.store_ok {
            page.gauge("soloist_keeper_store_ok", u8::from(ok));
        }
        if let Some(ends) = now.certificate_ends_s {
            page.gauge("soloist_certificate_expiry_timestamp_seconds", ends);
        }
        page.counter("soloist_epochs_total", self.epochs.load(Relaxed));
        page.counter("soloist_lapses_total", self.lapses.load(Relaxed));
    }

    fn locks(&self, now: &Observed, page: &mut Page) {
        let counts = &now.counts;
        page.gauge("soloist_locks", now.locks);
        page.gauge("soloist_holds", now.holds);
        page.gauge("soloist_waiters", now.waiters);
        let longest = now.longest_wait.as_secs_f64();
        page.gauge("soloist_oldest_waiter_seconds", longest);
        page.counter("soloist_entries_total", self.entries.load(Relaxed));
        let losses = self
            .losses
            .lock()
            .expect("no thread panics while it has the mutex");
        let losses = losses.iter().map(|(end, lost)| ([("reason", *end)], *lost));
        page.counters("soloist_losses_total", losses);
        let refused = counts.refused.iter();
        let refused = refused.map(|(limit, refused)| ([("limit", *limit)], *refused));
        page.counters("soloist_requests_refused_total", refused);
        let sent = counts.sent.iter();
        let sent = sent
            .map(|((algorithm, kind), sent)| ([("algorithm", *algorithm), ("kind", *kind)], *sent));
        page.counters("soloist_messages_total", sent);
        page.counter("soloist_messages_of_other_epochs_total", counts.other_epoch);
        page.counter("soloist_forget_messages_total", counts.forgetting);
        page.counter("soloist_grants_unclaimed_total", counts.unclaimed);
    }

    fn sessions(&self, now: &Observed, page: &mut Page) {
        page.gauge("soloist_sessions", now.sessions);
        let resumed = self.sessions_resumed.load(Relaxed);
        page.counter("soloist_sessions_resumed_total", resumed);
        let closed = self.sessions_closed.lock();
        let closed = closed.expect("no thread panics while it has the mutex");
        let closed = closed
            .iter()
            .map(|(code, count)| ([("code", *code)], *count));
        page.counters("soloist_session_connections_closed_total", closed);
    }

    fn durations(&self, page: &mut Page) {
        self.wait.show("soloist_wait_seconds", page);
        self.hold.show("soloist_hold_seconds", page);
        self.hand_over.show("soloist_hand_over_seconds", page);
        page.histograms("soloist_epoch_standstill_seconds", &self.standstill, []);
    }
}

fn connections(now: &Observed, page: &mut Page) {
    let links = &now.links;
    page.gauge("soloist_links_up", links.links_up);
    let peers = now.peers.iter();
    let peers = peers.map(|(peer, is_up)| (("peer", peer.as_str()), u64::from(*is_up)));
    page.gauges("soloist_link_up", peers);
    page.counter("soloist_frames_sent_total", links.frames_sent);
    page.counter("soloist_frames_resent_total", links.frames_resent);
    page.counter(
        "soloist_connections_refused_total",
        links.refused + now.refused,
    );
    page.counter(
        "soloist_connections_refused_elsewhere_total",
        links.refused_by_peers + now.refused_elsewhere,
    );
    page.counter("soloist_connections_hostile_total", links.hostile);
}

/// The durations of all locks: in one histogram, or in one for each lock.
struct ByLock {
    all: Histogram,
    /// `None` unless lock names are labels.
    named: Option<Mutex<BTreeMap<LockName, Arc<Histogram>>>>,
}

impl ByLock {
    fn new(lock_names: bool) -> Self {
        ByLock {
            all: Histogram::default(),
            named: lock_names.then(Mutex::default),
        }
    }

    fn record(&self, lock: &LockName, time: Duration) {
        match &self.named {
            None => self.all.record(time),
            Some(named) => {
                let mut named = named
                    .lock()
                    .expect("no thread panics while it has the mutex");
                named.entry(lock.clone()).or_default().record(time);
            }
        }
    }

    fn show(&self, name: &str, page: &mut Page) {
        // A copy, so that no event waits while a million lines are written.
        let named = self.named.as_ref();
        let named = named.map(|named| {
            named
                .lock()
                .expect("no thread panics while it has the mutex")
                .clone()
        });
        let named = named.unwrap_or_default();
        let locks = named.iter().map(|(lock, one)| (lock.as_str(), &**one));
        page.histograms(name, &self.all, locks);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    /// The golden file has all metrics of running nodes: a test in `tests/api/golden.rs` sees to
    /// that.
    const GOLDEN: &str = include_str!("../../tests/golden/metrics.txt");

    fn exported() -> BTreeSet<&'static str> {
        let families = GOLDEN.lines().filter(|line| !line.starts_with(' '));
        let exported: BTreeSet<_> = families.filter_map(|line| line.split(' ').next()).collect();
        assert!(exported.len() > 20, "{exported:?}");
        exported
    }

    /// All names of metrics in a text.
    fn mentioned(text: &str) -> BTreeSet<&str> {
        let words = text.split(|byte: char| !byte.is_ascii_lowercase() && byte != '_');
        words.filter(|word| word.starts_with("soloist_")).collect()
    }

    #[test]
    fn the_manual_lists_exactly_the_metrics_that_are_exported() {
        let manual = include_str!("../../../../docs/operations.md");
        assert_eq!(exported(), mentioned(manual));
    }

    #[test]
    fn dashboards_and_alerts_use_metrics_that_are_exported() {
        let files = [
            include_str!("../../../../contrib/grafana/soloist.json"),
            include_str!("../../../../contrib/prometheus/alerts.yml"),
        ];
        let exported = exported();
        for file in files {
            let used = mentioned(file);
            assert!(used.len() > 8, "{used:?}");
            for name in used {
                // A histogram has three kinds of series.
                let family = name.strip_suffix("_bucket").unwrap_or(name);
                assert!(exported.contains(family), "no node exports {name}");
            }
        }
        let json = serde_json::from_str::<serde_json::Value>(files[0]);
        let panels = json.expect("the dashboard is JSON")["panels"].clone();
        assert!(panels.as_array().is_some_and(|panels| panels.len() > 10));
    }
}
