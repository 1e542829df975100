//! Connections that have not shown yet whose they are.
//!
//! They cost a socket each, and anybody can open them. There is a limit, and beyond it the oldest
//! that is silent is closed, or the oldest, if none is: a newcomer that speaks at once gets its turn,
//! however many others are silent. If newcomers were turned away instead, a few hundred silent
//! connections would keep everybody out.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

/// The strangers of one listener.
#[derive(Debug)]
pub(crate) struct Strangers {
    limit: usize,
    waiting: Mutex<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    next: u64,
    /// Those that have sent nothing, in the order in which they came.
    silent: BTreeMap<u64, CancellationToken>,
    /// The others, in that order.
    speaking: BTreeMap<u64, CancellationToken>,
}

impl Waiting {
    fn close_oldest(&mut self) -> bool {
        let silent = self.silent.pop_first();
        let oldest = silent.or_else(|| self.speaking.pop_first());
        oldest.is_some_and(|(_, closed)| {
            closed.cancel();
            true
        })
    }
}

impl Strangers {
    pub(crate) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Strangers {
            limit,
            waiting: Mutex::default(),
        })
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in one more, and returns whether the oldest was closed for it.
    pub(crate) fn admit(self: &Arc<Self>) -> (Stranger, bool) {
        let mut waiting = self.waiting();
        let is_full = waiting.silent.len() + waiting.speaking.len() >= self.limit;
        let closes = is_full && waiting.close_oldest();
        let number = waiting.next;
        waiting.next += 1;
        let closed = CancellationToken::new();
        waiting.silent.insert(number, closed.clone());
        drop(waiting);
        let strangers = Arc::clone(self);
        let stranger = Stranger {
            strangers,
            number,
            closed,
        };
        (stranger, closes)
    }

    /// Closes the oldest, a silent one first. Returns whether there was any.
    pub(crate) fn close_oldest(&self) -> bool {
        self.waiting().close_oldest()
    }
}

/// A connection that has not shown yet whose it is, until this is dropped or
/// [recognized](Self::recognize).
#[derive(Debug)]
pub(crate) struct Stranger {
    strangers: Arc<Strangers>,
    number: u64,
    closed: CancellationToken,
}

impl Stranger {
    /// Returns when this connection must make room for another one: never, once it is recognized.
    pub(crate) async fn closed(&self) {
        self.closed.cancelled().await;
    }

    /// It has sent something.
    pub(crate) fn speaks(&self) {
        let mut waiting = self.strangers.waiting();
        if let Some(closed) = waiting.silent.remove(&self.number) {
            waiting.speaking.insert(self.number, closed);
        }
    }

    /// It has shown whose it is.
    pub(crate) fn recognize(&self) {
        let mut waiting = self.strangers.waiting();
        waiting.silent.remove(&self.number);
        waiting.speaking.remove(&self.number);
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        self.recognize();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_makes_room() {
        let strangers = Strangers::new(2);
        let (first, closes) = strangers.admit();
        assert!(!closes);
        let (second, _) = strangers.admit();
        let (third, closes) = strangers.admit();
        assert!(closes && first.closed.is_cancelled());
        assert!(!second.closed.is_cancelled() && !third.closed.is_cancelled());
        // One that is recognized, or gone, takes no place.
        second.recognize();
        let (fourth, closes) = strangers.admit();
        assert!(!closes);
        drop(third);
        let (fifth, closes) = strangers.admit();
        assert!(!closes);
        assert!(strangers.close_oldest() && fourth.closed.is_cancelled());
        assert!(strangers.close_oldest() && fifth.closed.is_cancelled());
        assert!(!strangers.close_oldest());
        assert!(!second.closed.is_cancelled());
    }

    #[test]
    fn silent_ones_go_first() {
        let strangers = Strangers::new(2);
        let (speaking, _) = strangers.admit();
        speaking.speaks();
        let (silent, _) = strangers.admit();
        let (later, closes) = strangers.admit();
        assert!(closes && silent.closed.is_cancelled());
        silent.speaks();
        later.speaks();
        let (_last, closes) = strangers.admit();
        assert!(closes && speaking.closed.is_cancelled() && !later.closed.is_cancelled());
    }
}
