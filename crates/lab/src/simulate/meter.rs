//! Measurements of a run.

use std::collections::BTreeMap;

use serde::Serialize;
use soloist_algorithms::{Message, NodeId};

use super::Time;
use super::overtaking::Overtaking;
use super::samples::{Samples, Summary};
use super::window::{Doubled, Sums, Window};

/// Maximum number of message kinds of an algorithm.
const KINDS_MAX: usize = 16;

/// Counters of a run in progress.
#[derive(Debug)]
pub(super) struct Meter {
    nodes: Vec<NodeMeter>,
    messages_by_kind: [u64; KINDS_MAX],
    messages: u64,
    idle_messages: f64,
    /// When the latest idle move was sent, and when it arrives.
    idle_move: (Time, Time),
    bytes: u64,
    entries: u64,
    window: Window,
    /// Number of entries at which something starts or ends next.
    next_mark: u64,
    /// The totals at the start of the measurement and at the end of twice the warm-up.
    measured_from: Sums,
    doubled_from: Sums,
    /// The measurements, once the window has ended, and those after twice the warm-up.
    measured: Option<Measures>,
    doubled: Option<Doubled>,
    waiting: u32,
    inside: u32,
    /// Since when no node waits or is inside, if so, and the total time of that kind before. The
    /// time after the last entry does not count as idle.
    quiet_since: Option<Time>,
    quiet: Time,
    /// When a node left while others waited. Cleared by the next entry.
    left_at: Option<Time>,
    response: Samples,
    sync_delay: Samples,
    overtaking: Overtaking,
    keep_distributions: bool,
}

#[derive(Clone, Debug, Default)]
struct NodeMeter {
    wanted_since: Time,
    entries: u64,
    received: u64,
    /// Messages sent on requesting that have not arrived.
    asking_under_way: u32,
}

/// Whether a message is charged to an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Charge {
    /// The message serves requests.
    Entry,
    /// A restless token moves although no node wants it.
    Idle,
}

/// The measurements of a run.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Measures {
    /// Number of entries.
    pub entries: u64,
    /// Messages sent, without a restless token's idle moves.
    pub messages: u64,
    /// Messages per entry.
    pub messages_per_entry: f64,
    /// The same messages by the paper's names for them.
    pub messages_by_kind: BTreeMap<&'static str, u64>,
    /// A restless token's moves while no node waits or is inside, per message delay of such time.
    pub idle_messages_per_time: f64,
    /// Encoded bytes of those messages per entry.
    pub bytes_per_entry: f64,
    /// From request to entry. Under an open load, from the arrival of the demand.
    pub response_time: Summary,
    /// From a release while others wait to the next entry.
    pub sync_delay: Summary,
    /// How evenly the nodes were served.
    pub fairness: Fairness,
    /// Messages received per node, without idle moves.
    pub node_load: NodeLoad,
    /// How the durations are distributed, if that was asked for.
    #[serde(skip)]
    pub distributions: Option<Distributions>,
}

/// How durations are distributed: the values that 1, 2, ... of
/// [`DISTRIBUTION_STEPS`](super::DISTRIBUTION_STEPS) equal parts of them do not exceed.
#[derive(Clone, PartialEq, Debug)]
pub struct Distributions {
    /// From request to entry.
    pub response_time: Vec<f64>,
    /// From a release while others wait to the next entry. Empty if there was none.
    pub sync_delay: Vec<f64>,
}

/// How evenly the nodes were served.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Fairness {
    /// Jain's index of the nodes' entries: 1 if all have the same number, 1/N if one has them all.
    pub jain: f64,
    /// Over all waiters, the maximum number of times that one was overtaken: entries before the
    /// waiter's own on requests made after the waiter's request had arrived.
    pub max_overtaken: u64,
}

/// Messages received per node.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct NodeLoad {
    /// The average.
    pub mean: f64,
    /// The maximum.
    pub max: u64,
}

impl Meter {
    /// Counters for a cluster of `nodes`, `inside` of them inside at the start.
    pub(super) fn new(nodes: usize, inside: u32, window: Window, keep_distributions: bool) -> Self {
        let entries = window.entries();
        Meter {
            nodes: vec![NodeMeter::default(); nodes],
            messages_by_kind: [0; KINDS_MAX],
            messages: 0,
            idle_messages: 0.0,
            idle_move: (Time::ZERO, Time::ZERO),
            bytes: 0,
            entries: 0,
            window,
            next_mark: window.next_mark(0),
            measured_from: Sums::default(),
            doubled_from: Sums::default(),
            measured: None,
            doubled: None,
            waiting: 0,
            inside,
            quiet_since: (inside == 0).then_some(Time::ZERO),
            quiet: Time::ZERO,
            left_at: None,
            response: Samples::new(entries),
            sync_delay: Samples::new(entries),
            overtaking: Overtaking::new(nodes),
            keep_distributions,
        }
    }

    /// Number of waiting nodes.
    pub(super) fn waiting(&self) -> u32 {
        self.waiting
    }

    /// Returns whether a node waits although no node is inside.
    pub(super) fn is_stalled(&self) -> bool {
        self.waiting > 0 && self.inside == 0
    }

    /// Returns whether no node waits or is inside.
    pub(super) fn is_quiet(&self) -> bool {
        self.waiting == 0 && self.inside == 0
    }

    /// Returns whether at least half of the expected entries were made.
    pub(super) fn is_half_done(&self) -> bool {
        self.entries >= self.window.last_entry().div_ceil(2)
    }

    /// Number of entries.
    pub(super) fn entries(&self) -> u64 {
        self.entries
    }

    /// A node requests and sends `sends` messages. The demand for the entry arose at
    /// `wanted_since`.
    pub(super) fn requested(&mut self, node: NodeId, now: Time, wanted_since: Time, sends: usize) {
        if let Some(since) = self.quiet_since.take() {
            self.quiet = self.quiet + (now - since);
            // Of an idle move that is still in flight, only the part in idle time counts.
            let (sent, arrives) = self.idle_move;
            if arrives > now {
                self.idle_messages -= (arrives - now).delays() / (arrives - sent).delays();
            }
        }
        self.waiting += 1;
        self.overtaking.requested(node);
        let meter = &mut self.nodes[node.index()];
        meter.wanted_since = wanted_since;
        meter.asking_under_way += sends as u32;
        if meter.asking_under_way == 0 {
            self.overtaking.arrived(node);
        }
    }

    /// A node enters.
    pub(super) fn entered<M: Message>(&mut self, node: NodeId, now: Time) {
        self.waiting = self.waiting.saturating_sub(1); // a faulty node may enter without a request
        self.inside += 1;
        self.entries += 1;
        self.overtaking.entered(node);
        let meter = &mut self.nodes[node.index()];
        meter.entries += 1;
        self.response.add(now - meter.wanted_since);
        if let Some(left_at) = self.left_at.take() {
            self.sync_delay.add(now - left_at);
        }
        if self.entries == self.next_mark {
            self.mark::<M>(now);
        }
    }

    /// Starts or ends the measurement, or the one that checks the warm-up. Several of these may
    /// fall on the same entry.
    fn mark<M: Message>(&mut self, now: Time) {
        let window = self.window;
        if Some(self.entries) == window.ends() {
            self.measured = Some(self.measure::<M>(now));
        }
        if Some(self.entries) == window.doubled_ends() {
            let sums = self.sums() - self.doubled_from;
            self.doubled = window.doubled(sums);
        }
        if Some(self.entries) == window.begins() {
            self.start_over();
        }
        if Some(self.entries) == window.doubled_begins() {
            self.doubled_from = self.sums();
        }
        self.next_mark = window.next_mark(self.entries);
    }

    fn sums(&self) -> Sums {
        Sums {
            messages: self.measured_from.messages + self.messages,
            response: self.response.sum_of_all(),
        }
    }

    /// Forgets what was counted so far, but not the state of the nodes.
    fn start_over(&mut self) {
        self.measured_from = self.sums();
        self.messages = 0;
        self.messages_by_kind = [0; KINDS_MAX];
        self.bytes = 0;
        self.idle_messages = 0.0;
        self.quiet = Time::ZERO;
        self.response.clear();
        self.sync_delay.clear();
        self.overtaking.forget_most();
        for node in &mut self.nodes {
            node.entries = 0;
            node.received = 0;
        }
    }

    /// A node leaves.
    pub(super) fn left(&mut self, now: Time) {
        self.inside -= 1;
        if self.waiting > 0 {
            self.left_at = Some(now);
        } else if self.inside == 0 && self.entries < self.window.last_entry() {
            self.quiet_since = Some(now);
        }
    }

    /// Counts a message that is sent, and returns how it is charged.
    pub(super) fn sent<M: Message>(&mut self, message: &M) -> Charge {
        const { assert!(M::KINDS.len() <= KINDS_MAX) };
        if message.is_roaming() && self.is_quiet() {
            return Charge::Idle;
        }
        self.messages += 1;
        self.messages_by_kind[message.kind()] += 1;
        self.bytes += soloist_algorithms::machine::encoded_len(message) as u64;
        Charge::Entry
    }

    /// An idle move is in flight from `sent` to `arrives`.
    pub(super) fn moves_idly(&mut self, sent: Time, arrives: Time) {
        if self.quiet_since.is_some() {
            self.idle_messages += 1.0;
            self.idle_move = (sent, arrives);
        }
    }

    /// A message arrives. `asking` is set if it was sent on requesting.
    pub(super) fn received(&mut self, from: NodeId, to: NodeId, charge: Charge, asking: bool) {
        self.nodes[to.index()].received += u64::from(charge == Charge::Entry);
        if asking {
            let sender = &mut self.nodes[from.index()];
            sender.asking_under_way -= 1;
            if sender.asking_under_way == 0 {
                self.overtaking.arrived(from);
            }
        }
    }

    /// The measurements at the end of the run, and those after twice the warm-up.
    pub(super) fn finish<M: Message>(mut self, now: Time) -> (Measures, Option<Doubled>) {
        let measures = self.measured.take();
        let measures = measures.unwrap_or_else(|| self.measure::<M>(now));
        (measures, self.doubled)
    }

    /// Computes the measurements of what was counted so far.
    fn measure<M: Message>(&mut self, now: Time) -> Measures {
        let distributions = self.keep_distributions.then(|| Distributions {
            response_time: self.response.distribution(),
            sync_delay: self.sync_delay.distribution(),
        });
        let quiet = match self.quiet_since {
            Some(since) => self.quiet + (now - since),
            None => self.quiet,
        };
        let kinds = M::KINDS.iter().zip(self.messages_by_kind);
        let received = self.nodes.iter().map(|node| node.received);
        let entries = self.nodes.iter().map(|node| node.entries).sum::<u64>();
        Measures {
            entries,
            messages: self.messages,
            messages_per_entry: ratio(self.messages as f64, entries as f64),
            messages_by_kind: kinds.map(|(name, count)| (*name, count)).collect(),
            idle_messages_per_time: ratio(self.idle_messages, quiet.delays()),
            bytes_per_entry: ratio(self.bytes as f64, entries as f64),
            response_time: self.response.summary(),
            sync_delay: self.sync_delay.summary(),
            fairness: Fairness {
                jain: jain(self.nodes.iter().map(|node| node.entries as f64)),
                max_overtaken: self.overtaking.most(),
            },
            node_load: NodeLoad {
                mean: ratio(
                    received.clone().sum::<u64>() as f64,
                    self.nodes.len() as f64,
                ),
                max: received.max().unwrap_or(0),
            },
            distributions,
        }
    }
}

fn ratio(part: f64, whole: f64) -> f64 {
    if whole == 0.0 { 0.0 } else { part / whole }
}

/// Jain's fairness index: (Σx)² / (n Σx²), or 1 if all shares are zero.
fn jain(shares: impl Iterator<Item = f64>) -> f64 {
    let (mut count, mut sum, mut squares) = (0.0, 0.0, 0.0);
    for share in shares {
        count += 1.0;
        sum += share;
        squares += share * share;
    }
    if squares == 0.0 {
        1.0
    } else {
        sum * sum / (count * squares)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jain_is_one_for_equals_and_one_nth_for_a_tyrant() {
        assert_eq!(jain([3.0, 3.0, 3.0].into_iter()), 1.0);
        assert_eq!(jain([0.0, 5.0, 0.0, 0.0].into_iter()), 0.25);
        assert_eq!(jain([0.0, 0.0].into_iter()), 1.0);
    }
}
