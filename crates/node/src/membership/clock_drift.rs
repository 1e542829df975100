//! Detects nodes whose clocks do not run at the same rate as the leader's. Leases rely on equal
//! rates.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use crate::Moment;
use soloist_api::NodeName;
use soloist_core::Incarnation;
use soloist_core::epochs::lease::Lease;
use soloist_core::epochs::roster::Member;

/// Nodes' clocks, as their messages show them.
pub(super) struct Clocks {
    /// Tolerated drift in percent.
    margin: u32,
    jitter: Duration,
    window: Duration,
    seen: HashMap<NodeName, NodeClock>,
}

struct NodeClock {
    /// The node's incarnation. Another one may run on another machine.
    incarnation: Incarnation,
    /// The last messages.
    last: Ahead,
    /// The start of the previous window and of the current one.
    before: Option<Mark>,
    this: Option<Mark>,
    /// By how many percent it runs too fast, if that was reported.
    told: Option<i64>,
}

/// By how many milliseconds a node's clock was ahead of the leader's, and when.
#[derive(Clone, Copy)]
struct Mark {
    at: Moment,
    ahead: i128,
}

/// By how much the last messages were ahead. A delayed message shows too little, so the maximum
/// counts.
#[derive(Default)]
struct Ahead(VecDeque<i128>);

/// Number of messages that are compared.
const WORDS: usize = 8;

impl Ahead {
    /// Adds a message and returns the maximum, or `None` until there are enough messages.
    fn note(&mut self, ahead: i128) -> Option<i128> {
        if self.0.len() == WORDS {
            self.0.pop_front();
        }
        self.0.push_back(ahead);
        let most = self.0.iter().copied().max();
        most.filter(|_| self.0.len() == WORDS)
    }
}

impl Clocks {
    pub(super) fn new(lease: &Lease) -> Self {
        Clocks {
            margin: lease.drift,
            jitter: lease.clock_jitter(),
            window: lease.clock_window(),
            seen: HashMap::new(),
        }
    }

    /// Returns by how many percent a node's clock runs too fast (negative: too slow), if that
    /// exceeds the tolerance and was not reported for this incarnation yet.
    pub(super) fn compare(&mut self, node: &Member, now: Moment, clock: u64) -> Option<i64> {
        let own = milliseconds(now.since(Moment::default()));
        let begin = || NodeClock {
            incarnation: node.incarnation,
            last: Ahead::default(),
            before: None,
            this: None,
            told: None,
        };
        let seen = self.seen.entry(node.name.clone()).or_insert_with(begin);
        if seen.incarnation != node.incarnation {
            *seen = begin();
        }
        let ahead = seen.last.note(i128::from(clock) - own)?;
        let mark = Mark { at: now, ahead };
        let this = *seen.this.get_or_insert(mark);
        let begun = *seen.before.get_or_insert(this);
        if now.since(this.at) >= self.window {
            (seen.before, seen.this) = (Some(this), Some(mark));
        }
        let here = milliseconds(now.since(begun.at));
        let apart = ahead.saturating_sub(begun.ahead);
        let margin = here.saturating_mul(i128::from(self.margin)) / 100;
        let is_apart = apart.saturating_abs() > margin + milliseconds(self.jitter);
        if seen.told.is_some() || !is_apart {
            return None;
        }
        let percent = apart.saturating_mul(100) / here.max(1);
        seen.told = Some(percent.clamp(-1000, 1000) as i64);
        seen.told
    }

    /// The nodes whose current incarnation was reported, by name, with the percentage.
    pub(super) fn apart(&self) -> Vec<(NodeName, i64)> {
        let apart = self.seen.iter();
        let apart = apart.filter_map(|(name, seen)| Some((name.clone(), seen.told?)));
        let mut apart: Vec<_> = apart.collect();
        apart.sort_unstable();
        apart
    }
}

fn milliseconds(duration: Duration) -> i128 {
    i128::try_from(duration.as_millis()).unwrap_or(i128::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(name: &str, incarnation: u64) -> Member {
        Member {
            name: name.parse().unwrap(),
            incarnation: Incarnation(incarnation),
            address: "127.0.0.1:1".parse().unwrap(),
        }
    }

    #[test]
    fn a_clock_beyond_the_margin_is_reported_once() {
        let mut clocks = Clocks::new(&Lease::default());
        let at = |ms: u64| Moment::new(Duration::from_millis(ms));
        for (name, percent, told) in [("a", 100, 0), ("b", 104, 0), ("c", 90, -10), ("d", 150, 50)]
        {
            let node = member(name, 1);
            let seen = (0..600u64).filter_map(|second| {
                let clock = 7_000 + second * 10 * percent;
                clocks.compare(&node, at(500 + second * 1000), clock)
            });
            let seen: Vec<_> = seen.collect();
            assert_eq!(seen.len(), usize::from(told != 0), "{name} {seen:?}");
            assert!(
                seen.iter().all(|seen| (seen - told).abs() <= 40),
                "{seen:?}"
            );
        }
    }

    #[test]
    fn a_clock_that_starts_to_drift_after_a_day_is_reported_within_a_few_leases() {
        for length_ms in [500, 3000, 30_000] {
            let length = Duration::from_millis(length_ms);
            let lease = Lease { length, drift: 5 };
            for (percent, leases) in [(50, 6), (200, 4), (90, 16)] {
                let mut clocks = Clocks::new(&lease);
                let node = member("a", 1);
                let (mut own, mut clock) = (0, 7_000_000);
                let mut say = |percent: u64| {
                    own += length_ms / 3;
                    clock += length_ms / 3 * percent / 100;
                    clocks.compare(&node, Moment::new(Duration::from_millis(own)), clock)
                };
                let day = 24 * 3_600_000 / (length_ms / 3);
                assert!(
                    (0..day).all(|_| say(100).is_none()),
                    "a clock that runs well"
                );
                let told = (1..=3 * leases).find(|_| say(percent).is_some());
                let told = told.unwrap_or_else(|| panic!("{percent} %, {length_ms} ms"));
                println!("{percent} %, lease {length_ms} ms: told after {told} thirds of a lease");
            }
        }
    }

    #[test]
    fn late_messages_and_unknown_numbers_do_no_harm() {
        let mut clocks = Clocks::new(&Lease::default());
        let node = member("a", 1);
        let at = |ms: u64| Moment::new(Duration::from_millis(ms));
        for second in 0..100 {
            // Every third message is delayed by five seconds.
            let late = if second % 3 == 0 { 5000 } else { 10 };
            let told = clocks.compare(&node, at(second * 1000 + late), second * 1000);
            assert_eq!(told, None, "after {second} s");
        }
        for number in [0, u64::MAX, 1, u64::MAX] {
            clocks.compare(&node, at(200_000), number);
        }
    }

    #[test]
    fn incarnations_of_a_node_are_not_compared() {
        let mut clocks = Clocks::new(&Lease::default());
        for start in 1..40 {
            let node = member("a", start % 2);
            let clock = start * 1_000_000;
            assert_eq!(clocks.compare(&node, Moment::default(), clock), None);
        }
    }
}
