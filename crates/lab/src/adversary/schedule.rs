//! Priorities of events.

use std::collections::BTreeMap;

use soloist_algorithms::NodeId;

use crate::simulate::Random;

/// An event as a schedule sees it. Events with equal keys have the same priority.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Key {
    pub kind: u8,
    /// How many requests the two nodes had made, modulo 256.
    pub round: u8,
    pub from: u32,
    pub to: u32,
}

impl Key {
    /// Kinds that are not messages. Those of messages follow.
    pub(super) const REQUEST: u8 = 0;
    pub(super) const RELEASE: u8 = 1;
    pub(super) const MESSAGES: u8 = 2;
}

/// Number of kinds that have settings of their own; further ones share them.
const KINDS: usize = 16;

/// A general setting per kind of event, and exceptions.
#[derive(Clone, Debug)]
pub(super) struct Schedule {
    /// The nodes that request first, one after the other: each when the request before it was
    /// served and no message is in flight. All other requests come after these.
    pub turns: Vec<NodeId>,
    kinds: [Preference; KINDS],
    exceptions: BTreeMap<Key, i64>,
}

/// The priority of a kind of event, and how it depends on the two nodes.
#[derive(Clone, Copy, Debug)]
struct Preference {
    base: i64,
    by_sender: i64,
    by_receiver: i64,
}

/// Priorities are up to about this.
const RANGE: u64 = 1 << 20;

/// How much the number of a node changes a priority at most.
const SLOPE: i64 = 1 << 8;

impl Preference {
    fn random(random: &mut Random) -> Self {
        let base = random.below(RANGE) as i64;
        let mut slope = || (random.below(3) as i64 - 1) * SLOPE;
        Preference {
            base,
            by_sender: slope(),
            by_receiver: slope(),
        }
    }
}

impl Schedule {
    pub(super) fn random(random: &mut Random) -> Self {
        Schedule {
            turns: Vec::new(),
            kinds: std::array::from_fn(|_| Preference::random(random)),
            exceptions: BTreeMap::new(),
        }
    }

    pub(super) fn priority(&self, key: Key) -> i64 {
        if let Some(&priority) = self.exceptions.get(&key) {
            return priority;
        }
        let Preference {
            base,
            by_sender,
            by_receiver,
        } = self.kinds[key.kind as usize % KINDS];
        base + by_sender * i64::from(key.from) + by_receiver * i64::from(key.to)
    }

    /// This schedule with these requests at the start, one at a time.
    pub(super) fn with_turns(&self, turns: Vec<NodeId>) -> Self {
        Schedule {
            turns,
            ..self.clone()
        }
    }

    /// This schedule with a few changes. `keys` are those of the run that it gave.
    pub(super) fn changed(&self, keys: &[Key], random: &mut Random) -> Self {
        let mut next = self.clone();
        for _ in 0..1 + random.below(3) {
            match random.below(8) {
                0 => {
                    let kind = random.below(KINDS as u64) as usize;
                    next.kinds[kind] = Preference::random(random);
                }
                1 if !next.exceptions.is_empty() => {
                    let place = random.below(next.exceptions.len() as u64) as usize;
                    let key = next.exceptions.keys().nth(place).copied();
                    next.exceptions.remove(&key.expect("it is one of them"));
                }
                2 if !next.turns.is_empty() => {
                    let left = random.below(next.turns.len() as u64);
                    next.turns.truncate(left as usize);
                }
                _ if keys.is_empty() => {}
                _ => {
                    let key = keys[random.below(keys.len() as u64) as usize];
                    next.exceptions.insert(key, random.below(RANGE) as i64);
                }
            }
        }
        next
    }
}
