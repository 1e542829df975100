//! Whether nodes' clocks run as fast as the leader's. Leases count on it.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use crate::Moment;
use crate::config::NodeName;
use crate::epochs::lease::Lease;
use crate::epochs::roster::Member;

/// Words are on their way for a while, not always the same: only what has gone apart by more than this is the clock's.
const JITTER: Duration = Duration::from_secs(1);

/// Nodes' clocks, as their words show them.
pub(super) struct Clocks {
    /// In percent.
    margin: u32,
    seen: HashMap<NodeName, Seen>,
}

struct Seen {
    /// In which life of the node: another one may be on another machine.
    incarnation: u64,
    /// By how much the node's clock is ahead of the leader's, in milliseconds, as the first words show it.
    first: Ahead,
    /// As the last ones do.
    last: Ahead,
    since: Moment,
    is_told: bool,
}

/// What some words in a row show. One that was late on its way shows too little: the most counts.
#[derive(Default)]
struct Ahead(VecDeque<i128>);

/// So many words in a row.
const WORDS: usize = 8;

impl Ahead {
    fn is_full(&self) -> bool {
        self.0.len() == WORDS
    }

    fn note(&mut self, ahead: i128) {
        if self.is_full() {
            self.0.pop_front();
        }
        self.0.push_back(ahead);
    }

    fn most(&self) -> i128 {
        self.0.iter().copied().max().unwrap_or(0)
    }
}

impl Clocks {
    pub fn new(lease: &Lease) -> Self {
        Clocks {
            margin: lease.drift,
            seen: HashMap::new(),
        }
    }

    /// By how many percent a node's clock runs too fast, or, below zero, too slow, if that is beyond the margin and not
    /// told yet.
    pub fn compare(&mut self, node: &Member, now: Moment, clock: u64) -> Option<i64> {
        let own = i128::try_from(now.since(Moment::default()).as_millis()).unwrap_or(i128::MAX);
        let ahead = i128::from(clock) - own;
        let begin = || Seen {
            incarnation: node.incarnation,
            first: Ahead::default(),
            last: Ahead::default(),
            since: now,
            is_told: false,
        };
        let seen = self.seen.entry(node.name.clone()).or_insert_with(begin);
        if seen.incarnation != node.incarnation {
            *seen = begin();
        }
        if !seen.first.is_full() {
            seen.first.note(ahead);
            return None;
        }
        seen.last.note(ahead);
        let here = i128::try_from(now.since(seen.since).as_millis()).unwrap_or(i128::MAX);
        let apart = seen.last.most().saturating_sub(seen.first.most());
        let margin = here.saturating_mul(i128::from(self.margin)) / 100;
        let is_apart = apart.saturating_abs() > margin + JITTER.as_millis() as i128;
        if seen.is_told || !seen.last.is_full() || !is_apart {
            return None;
        }
        seen.is_told = true;
        let percent = apart.saturating_mul(100) / here.max(1);
        Some(percent.clamp(-1000, 1000) as i64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(name: &str, incarnation: u64) -> Member {
        Member {
            name: name.parse().unwrap(),
            incarnation,
            address: "127.0.0.1:1".parse().unwrap(),
        }
    }

    #[test]
    fn a_clock_that_runs_beside_the_margin_is_told_once() {
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
    fn words_that_come_late_and_numbers_of_strangers_do_no_harm() {
        let mut clocks = Clocks::new(&Lease::default());
        let node = member("a", 1);
        let at = |ms: u64| Moment::new(Duration::from_millis(ms));
        for second in 0..100 {
            // Every third word is on its way for five seconds.
            let late = if second % 3 == 0 { 5000 } else { 10 };
            let told = clocks.compare(&node, at(second * 1000 + late), second * 1000);
            assert_eq!(told, None, "after {second} s");
        }
        for number in [0, u64::MAX, 1, u64::MAX] {
            clocks.compare(&node, at(200_000), number);
        }
    }

    #[test]
    fn lives_of_a_node_are_not_compared_with_each_other() {
        let mut clocks = Clocks::new(&Lease::default());
        for life in 1..40 {
            let node = member("a", life % 2);
            let clock = life * 1_000_000;
            assert_eq!(clocks.compare(&node, Moment::default(), clock), None);
        }
    }
}
