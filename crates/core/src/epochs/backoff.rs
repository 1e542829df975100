//! Back-off for nodes that disturbed the members lately. They are known by name, and wait before
//! they may join again, longer each time.
//!
//! A node that failed to report, while most others did, waits 1, 2, 4 ... 120 s. So does a node
//! that is repeatedly a member for only a short time. The first such time is free, since any node
//! may be restarted.

use std::time::Duration;

use super::roster::HeldOff;
use soloist_api::Moment;
use soloist_api::NodeName;

/// The first and the longest pause.
const PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(120));

/// A node whose last pause ended this long ago starts over.
const FORGIVEN_AFTER: Duration = Duration::from_secs(120);

/// Maximum number of names to keep. Beyond it, the name that may join the soonest is dropped.
const NAMES_MAX: usize = 256;

#[derive(Clone, PartialEq, Eq, Hash, Default, Debug)]
pub(super) struct BackOff(Vec<Known>);

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Known {
    name: NodeName,
    pause: Duration,
    until: Moment,
}

impl BackOff {
    /// Resumes from the list that earlier leaders replicated. The start of each pause is unknown,
    /// so each starts over.
    pub(super) fn resume(now: Moment, held_off: &[HeldOff]) -> Self {
        let known = held_off.iter().take(NAMES_MAX).map(|held_off| {
            let pause = held_off.pause.min(PAUSE.1);
            Known {
                name: held_off.name.clone(),
                pause,
                until: now + pause,
            }
        });
        BackOff(known.collect())
    }

    /// Records that a node did not report, while most others did.
    pub(super) fn failed(&mut self, now: Moment, name: &NodeName) {
        let pause = self.pause(now, name).unwrap_or_default();
        self.hold_off(now, name, (pause * 2).clamp(PAUSE.0, PAUSE.1));
    }

    /// Records that a node was a member for only a short time.
    pub(super) fn flapped(&mut self, now: Moment, name: &NodeName) {
        match self.pause(now, name) {
            Some(_) => self.failed(now, name),
            None => self.hold_off(now, name, Duration::ZERO),
        }
    }

    fn pause(&mut self, now: Moment, name: &NodeName) -> Option<Duration> {
        self.forget(now);
        let known = self.0.iter().find(|known| known.name == *name);
        known.map(|known| known.pause)
    }

    fn hold_off(&mut self, now: Moment, name: &NodeName, pause: Duration) {
        self.0.retain(|known| known.name != *name);
        if self.0.len() >= NAMES_MAX {
            let soonest = (0..self.0.len()).min_by_key(|&place| self.0[place].until);
            self.0.remove(soonest.expect("the list is full"));
        }
        let (name, until) = (name.clone(), now + pause);
        self.0.push(Known { name, pause, until });
    }

    /// Forgets nodes whose last pause ended long enough ago.
    pub(super) fn forget(&mut self, now: Moment) {
        self.0
            .retain(|known| now.since(known.until) <= FORGIVEN_AFTER);
    }

    /// How long a node must still wait, or `None` if it may join.
    pub(super) fn left(&self, now: Moment, name: &NodeName) -> Option<Duration> {
        let known = self.0.iter().find(|known| known.name == *name)?;
        let left = known.until.since(now);
        (!left.is_zero()).then_some(left)
    }

    /// The nodes that the next leader must know about, ordered by name.
    pub(super) fn held_off(&self) -> Vec<HeldOff> {
        let paused = self.0.iter().filter(|known| !known.pause.is_zero());
        let held_off = paused.map(|known| HeldOff {
            name: known.name.clone(),
            pause: known.pause,
        });
        let mut held_off: Vec<_> = held_off.collect();
        held_off.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        held_off
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(name: &str) -> NodeName {
        name.parse().unwrap()
    }

    fn left(back_off: &BackOff, now: Moment) -> Duration {
        back_off.left(now, &name("a")).unwrap_or_default()
    }

    #[test]
    fn pauses_double_up_to_two_minutes_and_are_reset() {
        let mut back_off = BackOff::default();
        let mut now = Moment::default();
        for seconds in [1, 2, 4, 8, 16, 32, 64, 120, 120] {
            back_off.failed(now, &name("a"));
            assert_eq!(left(&back_off, now), Duration::from_secs(seconds));
            assert_eq!(back_off.left(now, &name("b")), None);
            now = now + Duration::from_secs(seconds);
            assert_eq!(left(&back_off, now), Duration::ZERO);
        }
        now = now + FORGIVEN_AFTER + Duration::from_secs(1);
        back_off.failed(now, &name("a"));
        assert_eq!(left(&back_off, now), PAUSE.0);
    }

    #[test]
    fn one_restart_does_not_count_and_repeated_ones_do() {
        let mut back_off = BackOff::default();
        let now = Moment::default();
        for seconds in [0, 1, 2, 4] {
            back_off.flapped(now, &name("a"));
            assert_eq!(left(&back_off, now), Duration::from_secs(seconds));
        }
        back_off.failed(now, &name("a"));
        assert_eq!(left(&back_off, now), Duration::from_secs(8));
    }

    #[test]
    fn the_next_leader_goes_on_with_the_pauses() {
        let mut back_off = BackOff::default();
        let now = Moment::default();
        for flapping in ["c", "a", "a", "b", "b", "b"] {
            back_off.flapped(now, &name(flapping));
        }
        let held_off = back_off.held_off();
        let pauses = held_off.iter().map(|held_off| held_off.pause.as_secs());
        assert_eq!(pauses.collect::<Vec<_>>(), [1, 2]);
        let mut next = BackOff::resume(now, &held_off);
        assert_eq!(next.held_off(), held_off);
        next.failed(now, &name("a"));
        assert_eq!(left(&next, now), Duration::from_secs(2));
    }

    #[test]
    fn no_more_names_are_kept_than_fit() {
        let mut back_off = BackOff::default();
        for number in 0..2 * NAMES_MAX {
            back_off.failed(Moment::default(), &name(&format!("n{number}")));
        }
        assert_eq!(back_off.0.len(), NAMES_MAX);
    }
}
