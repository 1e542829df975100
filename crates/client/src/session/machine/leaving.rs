//! Requests that are given up because their node cannot be reached or stops.

use soloist_api::Moment;
use soloist_api::session::Left;

use super::{Denial, Machine, Out, State, Unanswered, Wait};

/// Maximum number of releases that a hello lists. With the longest numbers they take half of the
/// largest message.
const RELEASES_MAX: usize = 1900;

impl<E: Clone> Machine<E> {
    /// Refuses new requests, because the client continues on another node.
    pub(crate) fn retire(&mut self, error: E) {
        self.left = Some(error);
    }

    /// Leaves the session for one on another node: gives up all requests that wait, and refuses new
    /// ones. Returns what the other node must know, if the session ever began.
    ///
    /// The other node ends all grants of this session that were not read until now. So none that is
    /// read later may be used. It also ends the holds whose releases were not answered: the first
    /// ones, as a hello must not become too large. This session sends the rest again, or expires.
    pub(crate) fn leave(&mut self, now: Moment, error: &E, out: &mut Out) -> Option<Left> {
        self.retire(error.clone());
        let releases = self.unanswered.values();
        let releases = releases.filter_map(|unanswered| match unanswered {
            Unanswered::Release(hold, _) => Some(*hold),
            Unanswered::Acquire(_) | Unanswered::Cancel(_) => None,
        });
        let release: Vec<u64> = releases.collect();
        let are_all_named = release.len() <= RELEASES_MAX;
        let left = self.known.as_ref().map(|known| Left {
            node: known.node.clone(),
            session: known.session.clone(),
            secret: known.secret.clone(),
            seen: self.seen,
            release: release.into_iter().take(RELEASES_MAX).collect(),
        });
        self.give_up(now, error, |_| true, out);
        if are_all_named {
            self.passed_on = self.last_n;
        }
        left
    }

    /// Ends every release that somebody waits for as not confirmed. They are still sent again.
    pub(crate) fn give_up_releases(&mut self, error: &E, out: &mut Out) {
        for (id, request) in &mut self.requests {
            if let State::Releasing(_) = request.state {
                request.state = State::Released(Err(Denial::GivenUp(error.clone())));
                out.changed.push(*id);
            }
        }
    }

    /// Gives up the requests that wait, if their time `is_over`.
    pub(crate) fn give_up(
        &mut self,
        now: Moment,
        error: &E,
        is_over: impl Fn(Wait) -> bool,
        out: &mut Out,
    ) {
        let mut cancelled = Vec::new();
        for (id, request) in &mut self.requests {
            if matches!(request.state, State::Waits) && is_over(request.wish.wait) {
                request.state = State::Denied(Denial::GivenUp(error.clone()));
                cancelled.push(request.n);
                out.changed.push(*id);
            }
        }
        for n in cancelled {
            self.by_number.remove(&n);
            self.unanswered.remove(&n);
            if self.known.is_some() {
                self.send_new(now, Unanswered::Cancel(n), out);
            }
        }
    }
}
