//! The course of a run in which all clients want one lock: hand-overs and overtaking.

use std::sync::{Mutex, MutexGuard};
use std::time::Instant;

use crate::Samples;

/// Shared by all clients of a run.
#[derive(Default)]
pub(crate) struct Course(Mutex<Events>);

#[derive(Default)]
struct Events {
    asked: usize,
    /// The number of the request of each entry, in the order of entries.
    entries: Vec<usize>,
    overtaken_max: usize,
    /// Node and time of the last release.
    released: Option<(usize, Instant)>,
    hand_overs: Samples,
}

/// A request that was not granted yet.
pub(crate) struct Asked {
    number: usize,
    /// Number of entries before it.
    entries: usize,
}

/// What a run showed.
pub(crate) struct Outcome {
    pub entries: usize,
    /// The largest number of later requests that were granted before a request.
    pub overtaken_max: usize,
    /// Times from a release to the next entry, if that is on another node.
    pub hand_overs: Samples,
}

impl Course {
    fn events(&self) -> MutexGuard<'_, Events> {
        self.0
            .lock()
            .expect("no thread panics while it has the mutex")
    }

    pub(crate) fn ask(&self) -> Asked {
        let mut events = self.events();
        events.asked += 1;
        Asked {
            number: events.asked,
            entries: events.entries.len(),
        }
    }

    /// Called by a client of this node once it holds the lock.
    pub(crate) fn enter(&self, node: usize, asked: &Asked) {
        let now = Instant::now();
        let mut events = self.events();
        let since = &events.entries[asked.entries..];
        let overtaken = since.iter().filter(|&&other| other > asked.number).count();
        events.overtaken_max = events.overtaken_max.max(overtaken);
        events.entries.push(asked.number);
        if let Some((other, released)) = events.released.take()
            && other != node
        {
            events.hand_overs.add(now - released);
        }
    }

    /// Called by the same client directly before it releases the lock.
    pub(crate) fn leave(&self, node: usize) {
        self.events().released = Some((node, Instant::now()));
    }

    pub(crate) fn outcome(&self) -> Outcome {
        let mut events = self.events();
        Outcome {
            entries: events.entries.len(),
            overtaken_max: events.overtaken_max,
            hand_overs: std::mem::take(&mut events.hand_overs),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_requests_that_enter_first_are_counted() {
        let course = Course::default();
        let [first, second] = [course.ask(), course.ask()];
        course.enter(1, &second);
        course.leave(1);
        course.enter(1, &course.ask());
        course.leave(1);
        course.enter(2, &first);
        let outcome = course.outcome();
        assert_eq!((outcome.entries, outcome.overtaken_max), (3, 2));
        assert_eq!(outcome.hand_overs.len(), 1);
    }

    #[test]
    fn requests_in_order_are_not_overtaken() {
        let course = Course::default();
        let asked = [course.ask(), course.ask(), course.ask()];
        for one in &asked {
            course.enter(1, one);
        }
        assert_eq!(course.outcome().overtaken_max, 0);
    }
}
