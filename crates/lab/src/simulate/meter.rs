//! What is measured of a run, while it goes on.

use std::collections::BTreeMap;

use serde::Serialize;
use soloist_algorithms::{Message, NodeId};

use super::Time;
use super::overtaking::Overtaking;
use super::samples::{Samples, Summary};

/// The most kinds of message that an algorithm may have.
const KINDS_MAX: usize = 16;

/// Everything that is counted while a run goes on.
#[derive(Debug)]
pub struct Meter {
    nodes: Vec<NodeMeter>,
    messages_by_kind: [u64; KINDS_MAX],
    messages: u64,
    idle_messages: f64,
    /// The latest idle move: when it was sent, and when it arrives.
    idle_move: (Time, Time),
    bytes: u64,
    entries: u64,
    entries_max: u64,
    waiting: u32,
    inside: u32,
    /// Since when nobody waits or is inside, if so; and for how long in all before that. What comes
    /// after the last entry is the end of the run and no idle time.
    quiet_since: Option<Time>,
    quiet: Time,
    /// When somebody left while others waited, until the next one enters.
    left_at: Option<Time>,
    response: Samples,
    sync_delay: Samples,
    overtaking: Overtaking,
}

#[derive(Clone, Debug, Default)]
struct NodeMeter {
    wanted_since: Time,
    entries: u64,
    received: u64,
    /// Messages sent on asking that have not arrived.
    asking_under_way: u32,
}

/// Whether the cost of a message is an entry's, or nobody's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Charge {
    /// The message serves requests.
    Entry,
    /// A restless token moves although nobody wants it.
    Idle,
}

/// What was measured of a run.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Measures {
    /// How often a node entered.
    pub entries: u64,
    /// Messages sent, without a restless token's idle moves.
    pub messages: u64,
    /// Messages for each entry.
    pub messages_per_entry: f64,
    /// The same messages by the paper's names for them.
    pub messages_by_kind: BTreeMap<&'static str, u64>,
    /// A restless token's moves while nobody waits or is inside, for each message delay of such time.
    pub idle_messages_per_time: f64,
    /// Encoded bytes of those messages for each entry.
    pub bytes_per_entry: f64,
    /// From asking to entering; under an open load, from the moment somebody wanted in.
    pub response_time: Summary,
    /// From one node's leaving, while others wait, to the next entry.
    pub sync_delay: Summary,
    /// How evenly the nodes were served.
    pub fairness: Fairness,
    /// Messages received by a node, without idle moves.
    pub node_load: NodeLoad,
}

/// How evenly the nodes were served.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Fairness {
    /// Jain's index of the nodes' entries: 1 if all have the same, 1/N if one has them all.
    pub jain: f64,
    /// The largest number of entries, made on requests after a waiter's request had arrived, that went
    /// before this waiter's.
    pub max_overtaken: u64,
}

/// Messages received by a node.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct NodeLoad {
    /// On average.
    pub mean: f64,
    /// By the one with the most.
    pub max: u64,
}

impl Meter {
    /// For a cluster of `nodes`, of which so many begin inside, and so many entries to be.
    pub fn new(nodes: usize, inside: u32, entries: u64) -> Self {
        Meter {
            nodes: vec![NodeMeter::default(); nodes],
            messages_by_kind: [0; KINDS_MAX],
            messages: 0,
            idle_messages: 0.0,
            idle_move: (Time::ZERO, Time::ZERO),
            bytes: 0,
            entries: 0,
            entries_max: entries,
            waiting: 0,
            inside,
            quiet_since: (inside == 0).then_some(Time::ZERO),
            quiet: Time::ZERO,
            left_at: None,
            response: Samples::new(entries),
            sync_delay: Samples::new(entries),
            overtaking: Overtaking::new(nodes),
        }
    }

    /// How many nodes wait.
    pub fn waiting(&self) -> u32 {
        self.waiting
    }

    /// Whether somebody waits although nobody is inside.
    pub fn is_stalled(&self) -> bool {
        self.waiting > 0 && self.inside == 0
    }

    /// Whether nobody waits or is inside.
    pub fn is_quiet(&self) -> bool {
        self.waiting == 0 && self.inside == 0
    }

    /// Whether at least half of the entries that are to be were made.
    pub fn is_half_done(&self) -> bool {
        self.entries >= self.entries_max.div_ceil(2)
    }

    /// How many entries there were.
    pub fn entries(&self) -> u64 {
        self.entries
    }

    /// A node asks, on behalf of somebody who has wanted in since then, and sends so many messages
    /// on doing so.
    pub fn requested(&mut self, node: NodeId, now: Time, wanted_since: Time, sends: usize) {
        if let Some(since) = self.quiet_since.take() {
            self.quiet = self.quiet + (now - since);
            // Of an idle move that is still under way, only the part in idle time counts.
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
    pub fn entered(&mut self, node: NodeId, now: Time) {
        self.waiting = self.waiting.saturating_sub(1); // a faulty node may enter unasked
        self.inside += 1;
        self.entries += 1;
        self.overtaking.entered(node);
        let meter = &mut self.nodes[node.index()];
        meter.entries += 1;
        self.response.add(now - meter.wanted_since);
        if let Some(left_at) = self.left_at.take() {
            self.sync_delay.add(now - left_at);
        }
    }

    /// A node leaves.
    pub fn left(&mut self, now: Time) {
        self.inside -= 1;
        if self.waiting > 0 {
            self.left_at = Some(now);
        } else if self.inside == 0 && self.entries < self.entries_max {
            self.quiet_since = Some(now);
        }
    }

    /// A message is sent; says who bears its cost.
    pub fn sent<M: Message>(&mut self, message: &M) -> Charge {
        const { assert!(M::KINDS.len() <= KINDS_MAX) };
        if message.is_roaming() && self.is_quiet() {
            return Charge::Idle;
        }
        self.messages += 1;
        self.messages_by_kind[message.kind()] += 1;
        self.bytes += soloist_algorithms::machine::encoded_len(message) as u64;
        Charge::Entry
    }

    /// An idle move is under way from one moment to another.
    pub fn moves_idly(&mut self, sent: Time, arrives: Time) {
        if self.quiet_since.is_some() {
            self.idle_messages += 1.0;
            self.idle_move = (sent, arrives);
        }
    }

    /// A message arrives; `asking` if it was sent on asking.
    pub fn received(&mut self, from: NodeId, to: NodeId, charge: Charge, asking: bool) {
        self.nodes[to.index()].received += u64::from(charge == Charge::Entry);
        if asking {
            let sender = &mut self.nodes[from.index()];
            sender.asking_under_way -= 1;
            if sender.asking_under_way == 0 {
                self.overtaking.arrived(from);
            }
        }
    }

    /// What it all comes to, at the end of the run.
    pub fn measures<M: Message>(self, now: Time) -> Measures {
        let quiet = match self.quiet_since {
            Some(since) => self.quiet + (now - since),
            None => self.quiet,
        };
        let kinds = M::KINDS.iter().zip(self.messages_by_kind);
        let received = self.nodes.iter().map(|node| node.received);
        Measures {
            entries: self.entries,
            messages: self.messages,
            messages_per_entry: ratio(self.messages as f64, self.entries as f64),
            messages_by_kind: kinds.map(|(name, count)| (*name, count)).collect(),
            idle_messages_per_time: ratio(self.idle_messages, quiet.delays()),
            bytes_per_entry: ratio(self.bytes as f64, self.entries as f64),
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
        }
    }
}

fn ratio(part: f64, whole: f64) -> f64 {
    if whole == 0.0 { 0.0 } else { part / whole }
}

/// (Σx)² / (n Σx²); 1 if there is nothing to share.
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
