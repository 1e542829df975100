//! Log throttling: the same line about the same peer at most once per minute.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Minimum interval between equal lines about the same peer.
const EVERY: Duration = Duration::from_secs(60);

/// Number of lines remembered. Strangers cannot exceed it: beyond it, new lines are withheld until
/// others are a minute old.
const LINES_MAX: usize = 256;

/// Decides which lines are logged: equal lines about the same peer at most once per minute.
#[derive(Debug, Default)]
pub struct Throttle {
    lines: Mutex<HashMap<(String, String), Line>>,
}

#[derive(Debug)]
struct Line {
    written: Instant,
    withheld: u64,
}

impl Throttle {
    /// Returns the number of equal lines withheld since the last one, or `None` if this one must be
    /// withheld too.
    pub fn admit(&self, peer: &str, reason: &str, now: Instant) -> Option<u64> {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (peer.to_owned(), reason.to_owned());
        let is_fresh = |line: &Line| now.duration_since(line.written) < EVERY;
        if let Some(line) = lines.get_mut(&key) {
            if is_fresh(line) {
                line.withheld += 1;
                return None;
            }
            line.written = now;
            return Some(std::mem::take(&mut line.withheld));
        }
        if lines.len() >= LINES_MAX {
            lines.retain(|_, line| is_fresh(line));
        }
        if lines.len() >= LINES_MAX {
            return None;
        }
        let (written, withheld) = (now, 0);
        lines.insert(key, Line { written, withheld });
        Some(0)
    }
}

/// Refusals of one kind: all are counted, and logged once per peer and reason per minute.
#[derive(Debug, Default)]
pub struct Refusals {
    count: AtomicU64,
    throttle: Throttle,
}

impl Refusals {
    /// Counts a refusal. Returns the number of equal lines withheld since the last one, or `None`
    /// if this one must be withheld too.
    pub fn note(&self, peer: &str, reason: &str) -> Option<u64> {
        self.count.fetch_add(1, Ordering::Relaxed);
        self.throttle.admit(peer, reason, Instant::now())
    }

    /// Returns the number of refusals.
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_refusal_is_logged_once_per_minute_and_counted() {
        let (throttle, began) = (Throttle::default(), Instant::now());
        let at = |seconds| began + Duration::from_secs(seconds);
        assert_eq!(throttle.admit("a", "x", at(0)), Some(0));
        for _ in 0..299 {
            assert_eq!(throttle.admit("a", "x", at(59)), None);
        }
        assert_eq!(throttle.admit("b", "x", at(59)), Some(0), "another peer");
        assert_eq!(throttle.admit("a", "y", at(59)), Some(0), "another reason");
        assert_eq!(throttle.admit("a", "x", at(60)), Some(299));
        assert_eq!(throttle.admit("a", "x", at(61)), None);
    }

    #[test]
    fn strangers_cannot_fill_the_memory_for_long() {
        let (throttle, began) = (Throttle::default(), Instant::now());
        let lines = (0..1000).filter(|i| throttle.admit(&i.to_string(), "x", began).is_some());
        assert_eq!(lines.count(), LINES_MAX);
        assert_eq!(throttle.lines.lock().unwrap().len(), LINES_MAX);
        assert_eq!(throttle.admit("late", "x", began + EVERY), Some(0));
    }
}
