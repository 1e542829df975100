//! Requests with ids: a request that is sent twice counts once, and a grant that its client never
//! reads soon ends.
//!
//! A client that chooses an id for its request may send the request again when the connection
//! breaks. Within one client, the same id is the same request: it attaches to the existing waiter,
//! or returns the same hold. It never queues behind itself.
//!
//! # When an unread grant may end
//!
//! A node cannot know whether a response that it wrote was read. If it released a hold because a
//! connection broke, the client might have read the grant just before, and rely on it. So nothing
//! is ever released because of what happens to a connection. Instead, the first promise is short:
//! the grant of a request with an id is valid for [`FIRST_PROMISE`] (or its time to live, if that
//! is shorter), and `valid_for_ms` in the response says so. The first renewal extends it to the
//! full time to live. Only a client that has read the grant can send that renewal, so it confirms
//! the grant.
//!
//! Why this is safe: a hold ends when its client releases it, with its node's lease, or at its
//! deadline. The deadline is never earlier than the end of the last promise: a promise is computed
//! from the deadline after the deadline is set, and a resend only moves the deadline further away.
//! So this is the same expiry that every hold has, and clients measure each promise from before
//! they sent the request for it. This holds whether the response was read, lost, or read after the
//! resend.
//!
//! A waiter whose connection broke was promised nothing. It keeps its place for [`RESEND_WITHIN`].
//! If its turn comes in that time, the lock is kept for it until then, and no longer.
//!
//! An unread grant therefore delays others by at most `FIRST_PROMISE`, not by the full time to
//! live.
//!
//! # Why they are not sessions
//!
//! Queues, holds, quotas, ends and the rules of time ([`Lifetime`](super::Lifetime)) are those of
//! [`sessions`](crate::sessions). A request is not a session with one hold, for three reasons:
//!
//! - A request that waits sends nothing which could renew a session, so it lives as long as its
//!   connection. A session never relies on a connection.
//! - Any client that knows a hold's id may use it, over many connections at a time. A
//!   session has one connection, and belongs to one client with a secret.
//! - A session keeps outcomes until the client has seen them, which takes numbers in both
//!   directions. A request has the short first promise instead.
//!
//! # Memory
//!
//! There is one entry per waiter and hold with an id, bounded by their quotas, and one for each of
//! the last [`ENDED_MAX`] holds that ended. From the latter, a resend that arrives late learns how
//! its hold ended, and does not start a new request.

use std::collections::VecDeque;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::deadlines::Due;
use super::lock::Waiter;
use super::table::Context;
use super::{Client, HoldId, LockRequest, RequestError, Table, Ticket};
use crate::lookup_map::LookupMap;
use crate::mutant::Mutant;
use soloist_api::LockName;
use soloist_api::Moment;

/// How long a grant is valid before the client confirms it with its first renewal.
pub const FIRST_PROMISE: Duration = Duration::from_secs(3);

/// How long a waiter keeps its place after its connection broke.
pub const RESEND_WITHIN: Duration = Duration::from_secs(2);

/// Number of ended holds that are remembered by the ids of their requests.
const ENDED_MAX: usize = 1 << 14;

/// The id of a request: a UUID that its client chose at random.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(u128);

/// A text that is not a request id.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "invalid request id {0:?}: use a random UUID, with or without hyphens, and a new one for each \
     request"
)]
pub struct NotARequestId(String);

impl RequestId {
    /// The id with these bits.
    pub const fn new(bits: u128) -> Self {
        RequestId(bits)
    }
}

impl FromStr for RequestId {
    type Err = NotARequestId;

    fn from_str(text: &str) -> Result<Self, NotARequestId> {
        let wrong = || NotARequestId(text.chars().take(80).collect());
        let is_hyphen = |at: usize| matches!(at, 8 | 13 | 18 | 23) && text.len() == 36;
        let fits = text.len() == 32 || text.len() == 36;
        let is_uuid = fits
            && text.bytes().enumerate().all(|(at, byte)| {
                if is_hyphen(at) {
                    byte == b'-'
                } else {
                    byte.is_ascii_hexdigit()
                }
            });
        if !is_uuid {
            return Err(wrong());
        }
        let digits = text.replace('-', "");
        let bits = u128::from_str_radix(&digits, 16).map_err(|_| wrong())?;
        Ok(RequestId(bits))
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RequestId({:08x}..)", (self.0 >> 96) as u32)
    }
}

/// State of a request that was sent before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Resumed {
    /// It is waiting.
    Waits(Ticket),
    /// It was granted.
    Holds(HoldId),
    /// It was granted, and its hold has ended.
    Ended(HoldId),
}

type Key = (Client, RequestId);

/// The known requests with ids.
#[derive(Clone, Default)]
pub(super) struct Requests {
    known: LookupMap<Key, (LockName, Resumed)>,
    /// Requests whose holds have ended, the oldest first.
    ended: VecDeque<Key>,
}

impl Requests {
    /// The lock and the state of a request, or `None` if it is unknown.
    pub(super) fn get(&self, client: &Client, id: RequestId) -> Option<&(LockName, Resumed)> {
        self.known.get(&(client.clone(), id))
    }

    pub(super) fn wait(
        &mut self,
        client: &Client,
        id: Option<RequestId>,
        name: &LockName,
        at: Ticket,
    ) {
        if let Some(id) = id {
            let waits = (name.clone(), Resumed::Waits(at));
            self.known.insert((client.clone(), id), waits);
        }
    }

    pub(super) fn grant(&mut self, client: &Client, id: Option<RequestId>, hold: HoldId) {
        if let Some(known) = id.and_then(|id| self.known.get_mut(&(client.clone(), id))) {
            known.1 = Resumed::Holds(hold);
        }
    }

    pub(super) fn cancel(&mut self, client: &Client, id: Option<RequestId>) {
        if let Some(id) = id {
            self.known.remove(&(client.clone(), id));
        }
    }

    pub(super) fn end(&mut self, client: &Client, id: Option<RequestId>, hold: HoldId) {
        let Some(id) = id else { return };
        let key = (client.clone(), id);
        if let Some(known) = self.known.get_mut(&key) {
            known.1 = Resumed::Ended(hold);
            self.ended.push_back(key);
        }
        if self.ended.len() > ENDED_MAX
            && let Some(oldest) = self.ended.pop_front()
        {
            self.known.remove(&oldest);
        }
    }
}

impl Table {
    /// Handles a request that may have been sent before. Returns its state if it was, and `None` if
    /// it is new. A waiter keeps its place and is no longer abandoned. An unconfirmed hold gets a
    /// new promise, unless the node is stopping.
    pub fn resume(
        &mut self,
        now: Moment,
        name: &LockName,
        ask: &LockRequest,
    ) -> Result<Option<Resumed>, RequestError> {
        let known = ask.request.map(|id| (id, self.request(&ask.client, id)));
        let Some((id, Some(resumed))) = known else {
            return Ok(None);
        };
        let lock = self.context.requests.get(&ask.client, id);
        if let Some((lock, _)) = lock.filter(|(lock, _)| lock != name) {
            let lock = lock.clone();
            return Err(RequestError::OtherLock { id, lock });
        }
        match resumed {
            Resumed::Waits(ticket) => {
                let (waiter, context) = self.waiter(ticket);
                context.deadlines.remove(waiter.abandoned.take());
            }
            Resumed::Holds(hold) => self.promise_again(now, name, hold),
            Resumed::Ended(_) => {}
        }
        Ok(Some(resumed))
    }

    /// The state of a request, or `None` if it is unknown.
    pub fn request(&self, client: &Client, id: RequestId) -> Option<Resumed> {
        self.context.requests.get(client, id).map(|known| known.1)
    }

    /// Records that a waiter's connection broke. The waiter stays for [`RESEND_WITHIN`], so that
    /// its request can be sent again.
    pub fn abandon(&mut self, now: Moment, ticket: Ticket) {
        if !self.context.tickets.contains_key(&ticket) {
            return;
        }
        let (waiter, context) = self.waiter(ticket);
        context.deadlines.remove(waiter.abandoned.take());
        let until = now + RESEND_WITHIN;
        waiter.abandoned = Some(context.deadlines.add(until, Due::Abandoned(ticket)));
    }

    /// The waiter of a ticket, which must exist.
    fn waiter(&mut self, ticket: Ticket) -> (&mut Waiter, &mut Context) {
        let name = self.context.tickets.get(&ticket).expect("it is queued");
        let lock = self.locks.get_mut(name).expect("its lock exists");
        let mut waiters = lock.waiters.iter_mut();
        let waiter = waiters.find(|waiter| waiter.ticket == ticket);
        (waiter.expect("tickets have waiters"), &mut self.context)
    }

    fn promise_again(&mut self, now: Moment, name: &LockName, id: HoldId) {
        let lock = self.locks.get_mut(name).expect("held locks exist");
        let hold = lock.hold.as_mut().expect("it is held");
        let shortened = self.context.tuning.has(Mutant::PromiseShortened);
        if (hold.is_confirmed || self.context.stopping) && !shortened {
            return;
        }
        let Some(life) = &mut hold.life else {
            return;
        };
        let until = now + life.ttl().min(FIRST_PROMISE);
        life.extend(until);
        if shortened {
            life.end_by(until);
            life.arm(&mut self.context.deadlines, Due::Hold(id));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_a_uuid() {
        let plain: RequestId = "0123456789abcdef0123456789ABCDEF".parse().unwrap();
        let hyphens = "01234567-89ab-cdef-0123-456789abcdef".parse();
        assert_eq!(Ok(plain), hyphens);
        for wrong in [
            "",
            "1",
            "+123456789abcdef0123456789abcdef",
            "0123456789abcdef0123456789abcdefg",
            "01234567-89ab-cdef-0123-456789abcdeg",
            "0123456789ab-cdef-0123-456789abcdef-",
            "------------------------------------",
        ] {
            let error = wrong.parse::<RequestId>().unwrap_err();
            assert!(error.to_string().contains("UUID"), "{wrong}: {error}");
        }
    }

    #[test]
    fn ids_of_holds_that_ended_are_forgotten_in_time() {
        let mut requests = Requests::default();
        let client = Client::new("somebody");
        let name = LockName::new("a").unwrap();
        let more = ENDED_MAX + 100;
        for number in 0..more {
            let id = Some(RequestId::new(number as u128));
            let hold = HoldId(number as u128);
            requests.wait(&client, id, &name, Ticket(number as u64));
            requests.grant(&client, id, hold);
            requests.end(&client, id, hold);
        }
        assert_eq!(requests.known.len(), ENDED_MAX);
        assert_eq!(requests.ended.len(), ENDED_MAX);
        assert!(requests.get(&client, RequestId::new(99)).is_none());
        assert!(requests.get(&client, RequestId::new(100)).is_some());
    }
}
