//! The client's part of a session, without a socket or a clock. `soloist_api::session` describes
//! the protocol.
//!
//! Every call is one transition: it changes the state, and appends to [`Out`] the messages to send
//! and the requests that changed. The caller sends the messages in this order, over the connection
//! whose `welcome` it passed last.
//!
//! # Rules
//!
//! - A promise counts from when the message that it names was sent over this connection. A message
//!   counts as sent when it is appended to [`Out`], which is earlier.
//! - A promise that arrives after the one before has passed revives no hold: the hold is lost.
//! - A message without an answer is sent again after a resume, with its number if the node has not
//!   handled it, and otherwise with a new one if the node refused it.
//! - The client releases every grant that nobody waits for any more.

mod answers;
mod busy;
mod leaving;
mod sending;
#[cfg(test)]
mod tests;
mod welcome;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use soloist_api::session::{ClientMessage, Failure, Hello, Left, Numbered, Resume, Secret};
use soloist_api::{EndReason, Fence, LockName, Loss, Moment, ttl};

use self::busy::Refused;
use self::welcome::Resumption;
use super::Settings;

/// Timeout for the answer to `end`.
const GOODBYE_WITHIN: Duration = Duration::from_secs(5);

/// A request of this client, from its first message until its hold has ended. Its number in the
/// session may change.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct RequestId(u64);

/// What a transition asks of its caller.
#[derive(Default, Debug)]
pub(crate) struct Out {
    /// Messages to send, in this order.
    pub send: Vec<ClientMessage>,
    /// Requests whose answer, validity or loss may have changed.
    pub changed: Vec<RequestId>,
    /// Whether [`Machine::tick`] may be due earlier than it said.
    pub is_sooner: bool,
}

/// The node broke the protocol.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Violation(pub String);

/// What a client wants.
#[derive(Clone, Debug)]
pub(crate) struct Wish {
    pub lock: LockName,
    pub owner: Option<Arc<str>>,
    pub wait: Wait,
}

/// How long a request waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wait {
    Forever,
    /// It does not queue behind others.
    Try,
    Until(Moment),
}

/// Why a request was not granted, or its release not confirmed.
#[derive(Clone, Debug)]
pub(crate) enum Denial<E> {
    /// The node refused it.
    Refused(Failure),
    /// It was granted, and lost before the grant arrived.
    Lost(Loss),
    /// The caller of the machine gave it up.
    GivenUp(E),
}

/// A hold, as far as this client knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Hold {
    pub fence: Fence,
    /// Until when it is certainly held.
    pub until: Moment,
    /// The length of the promise that said so.
    pub length: Duration,
    pub loss: Option<Loss>,
}

impl Hold {
    /// Whether it is over. A hold that was lost with notice is not over until then.
    fn is_over(&self, now: Moment) -> bool {
        self.until <= now || self.loss.is_some_and(|loss| loss.since <= now)
    }
}

#[derive(Debug)]
struct Request<E> {
    wish: Wish,
    /// The number of its `acquire`.
    n: u64,
    state: State<E>,
}

#[derive(Debug)]
enum State<E> {
    Waits,
    Held(Hold),
    /// Its release was not answered yet.
    Releasing(Hold),
    Denied(Denial<E>),
    Released(Result<(), Denial<E>>),
}

/// A message that must be answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Unanswered {
    Acquire(RequestId),
    /// Of the request with this number.
    Cancel(u64),
    /// Of the hold with this number. The request is `None` if nobody wants to know the answer.
    Release(u64, Option<RequestId>),
}

/// A message that was sent over this connection.
#[derive(Clone, Copy, Debug)]
struct Sent {
    n: u64,
    at: Moment,
    /// The last outcome that it reported as seen.
    seen: u64,
}

/// What resuming a session takes.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub session: String,
    pub secret: Secret,
    /// The name of its node.
    pub node: String,
}

/// A client's session. `E` is the error with which the caller gives requests up.
// Methods: messages out in `machine/sending.rs`, answers in `machine/answers.rs`, refusals because
// of too many outcomes in `machine/busy.rs`, resuming in `machine/welcome.rs`, moving to another
// node in `machine/leaving.rs`.
#[derive(Debug)]
pub(crate) struct Machine<E> {
    settings: Settings,
    /// The session, or `None` before its first `welcome` and after its end.
    known: Option<Known>,
    is_connected: bool,
    /// Why the client has left the session for another node, if it has. New requests are denied.
    left: Option<E>,
    /// The last message whose effects the other node takes care of.
    passed_on: u64,
    /// Whether a hold was lost with the node's lease, or not renewed in time.
    may_be_outside: bool,
    /// The last number that was used.
    last_n: u64,
    last_id: u64,
    /// The last outcome that was read.
    seen: u64,
    requests: BTreeMap<RequestId, Request<E>>,
    /// Requests that wait or hold, by the number of their `acquire`.
    by_number: BTreeMap<u64, RequestId>,
    unanswered: BTreeMap<u64, Unanswered>,
    refused: Refused,
    /// Messages that were sent over this connection, from the last one that a promise named.
    sent: VecDeque<Sent>,
    /// From when the last promise counts, and its length.
    promised: (Moment, Duration),
    ping_every: Duration,
    /// How long the session lives without a message.
    expires_in: Duration,
    /// When the answer to the last ping or to `end` is late, or `None` if it was answered.
    pong_by: Option<Moment>,
    /// Whether `end` was sent over this connection.
    is_ending: bool,
    resumption: Option<Resumption>,
}

/// When to call [`Machine::tick`] again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Next {
    /// At this moment.
    At(Moment),
    /// When something was requested, or something arrived.
    Idle,
    /// The node does not answer: cut the connection and resume the session.
    Silent,
}

impl<E: Clone> Machine<E> {
    pub(crate) fn new(settings: Settings) -> Self {
        Machine {
            settings,
            known: None,
            is_connected: false,
            left: None,
            passed_on: 0,
            may_be_outside: false,
            last_n: 0,
            last_id: 0,
            seen: 0,
            requests: BTreeMap::new(),
            by_number: BTreeMap::new(),
            unanswered: BTreeMap::new(),
            refused: Refused::default(),
            sent: VecDeque::new(),
            promised: (Moment::default(), Duration::ZERO),
            ping_every: Duration::ZERO,
            expires_in: Duration::ZERO,
            pong_by: None,
            is_ending: false,
            resumption: None,
        }
    }

    /// The first message of a connection: starts the session, or resumes it.
    /// A new session names the one that the client has left.
    pub(crate) fn hello(&self, left: Option<Left>) -> Hello {
        let ends_with_process = self.settings.ends_with_process;
        match &self.known {
            Some(known) => Hello {
                ends_with_process,
                resume: Some(Resume {
                    session: known.session.clone(),
                    secret: known.secret.clone(),
                    seen: self.seen,
                }),
                ..Hello::default()
            },
            None => Hello {
                name: Some(self.settings.name.clone()),
                ttl_ms: self.settings.ttl.map(milliseconds),
                left,
                ends_with_process,
                ..Hello::default()
            },
        }
    }

    /// Requests a lock.
    pub(crate) fn acquire(&mut self, now: Moment, wish: Wish, out: &mut Out) -> RequestId {
        self.last_id += 1;
        let id = RequestId(self.last_id);
        let state = match &self.left {
            Some(error) => State::Denied(Denial::GivenUp(error.clone())),
            None => State::Waits,
        };
        self.requests.insert(id, Request { wish, n: 0, state });
        if self.left.is_none() {
            self.send_new(now, Unanswered::Acquire(id), out);
        }
        id
    }

    /// Releases a hold. [`released`](Machine::released) returns the answer.
    pub(crate) fn release(&mut self, now: Moment, id: RequestId, out: &mut Out) {
        let Some(request) = self.requests.get_mut(&id) else {
            return;
        };
        let State::Held(hold) = &request.state else {
            return;
        };
        let (hold, n) = (*hold, request.n);
        self.by_number.remove(&n);
        if !hold.is_over(now) {
            request.state = State::Releasing(hold);
            self.send_new(now, Unanswered::Release(n, Some(id)), out);
            return;
        }
        let loss = hold.loss.unwrap_or(expired(&hold));
        request.state = State::Released(Err(Denial::Lost(loss)));
        if hold.loss.is_none() {
            // A renewal whose answer was lost may keep it at the node.
            self.send_new(now, Unanswered::Release(n, None), out);
        }
    }

    /// Forgets a request that nobody waits for or holds any more: cancels or releases it.
    pub(crate) fn drop_request(&mut self, now: Moment, id: RequestId, out: &mut Out) {
        let Some(request) = self.requests.remove(&id) else {
            return;
        };
        let n = request.n;
        self.by_number.remove(&n);
        match request.state {
            State::Waits => {
                self.unanswered.remove(&n);
                self.send_new(now, Unanswered::Cancel(n), out);
            }
            State::Held(hold) if hold.loss.is_none_or(|loss| loss.since > now) => {
                self.send_new(now, Unanswered::Release(n, None), out);
            }
            // The node tells the rest, and nobody wants to know.
            State::Held(_) | State::Releasing(_) | State::Denied(_) | State::Released(_) => {}
        }
    }

    /// The answer to [`acquire`](Machine::acquire), once it is known. A request that was denied is
    /// forgotten.
    pub(crate) fn acquired(&mut self, id: RequestId) -> Option<Result<Fence, Denial<E>>> {
        match &self.requests.get(&id)?.state {
            State::Held(hold) => return Some(Ok(hold.fence)),
            State::Denied(_) => {}
            State::Waits | State::Releasing(_) | State::Released(_) => return None,
        }
        match self.requests.remove(&id)?.state {
            State::Denied(denial) => Some(Err(denial)),
            _ => None,
        }
    }

    /// The answer to [`release`](Machine::release), once it is known. The request is forgotten.
    pub(crate) fn released(&mut self, id: RequestId) -> Option<Result<(), Denial<E>>> {
        if !matches!(self.requests.get(&id)?.state, State::Released(_)) {
            return None;
        }
        match self.requests.remove(&id)?.state {
            State::Released(result) => Some(result),
            _ => None,
        }
    }

    /// A hold that is not released.
    pub(crate) fn hold(&self, id: RequestId) -> Option<&Hold> {
        match &self.requests.get(&id)?.state {
            State::Held(hold) | State::Releasing(hold) => Some(hold),
            _ => None,
        }
    }

    /// Marks a hold as lost if its promise has passed.
    pub(crate) fn expire(&mut self, now: Moment, id: RequestId, out: &mut Out) {
        let Some(request) = self.requests.get_mut(&id) else {
            return;
        };
        let n = request.n;
        match &mut request.state {
            State::Held(hold) if hold.until <= now && hold.loss.is_none() => {
                hold.loss = Some(expired(hold));
                self.may_be_outside = true;
                self.by_number.remove(&n);
                out.changed.push(id);
                self.send_new(now, Unanswered::Release(n, None), out);
            }
            _ => {}
        }
    }

    /// Records that the connection broke.
    pub(crate) fn cut(&mut self) {
        self.is_connected = false;
        self.is_ending = false;
        self.pong_by = None;
        self.sent.clear();
        self.forget_refused();
        self.resumption = None;
    }

    /// Records that the session has ended, and all its holds with it. Requests that wait are sent
    /// again in the next session.
    pub(crate) fn end(&mut self, now: Moment, out: &mut Out) {
        self.cut();
        self.known = None;
        self.seen = 0;
        for (id, request) in &mut self.requests {
            match &mut request.state {
                State::Held(hold) if hold.loss.is_none() => {
                    // Before its promise has passed, it can only have ended with the node.
                    let reason = match hold.until <= now {
                        true => EndReason::Expired,
                        false => EndReason::Forgotten,
                    };
                    let since = hold.until.min(now);
                    hold.loss = Some(Loss { reason, since });
                    out.changed.push(*id);
                }
                State::Releasing(_) => {
                    // The work ended before the promise had passed.
                    request.state = State::Released(Ok(()));
                    out.changed.push(*id);
                }
                _ => {}
            }
        }
        self.unanswered
            .retain(|_, unanswered| matches!(unanswered, Unanswered::Acquire(_)));
        let waits = |id: &RequestId| matches!(self.requests[id].state, State::Waits);
        self.by_number.retain(|_, id| waits(id));
    }

    /// Sends what is due: refused messages again, and a ping.
    pub(crate) fn tick(&mut self, now: Moment, out: &mut Out) -> Next {
        if !self.is_connected {
            return Next::Idle;
        }
        let again = self.retry_refused(now, out);
        match (self.ping_if_due(now, out), again) {
            (Next::Idle, Some(again)) => Next::At(again),
            (Next::At(next), Some(again)) => Next::At(next.min(again)),
            (next, _) => next,
        }
    }

    fn ping_if_due(&mut self, now: Moment, out: &mut Out) -> Next {
        if let Some(late) = self.pong_by {
            return match late <= now {
                true => Next::Silent,
                false => Next::At(late),
            };
        }
        if self.is_idle() {
            return Next::Idle;
        }
        let (since, length) = self.promised;
        // A node that lost touch with its leader for a while gives short promises.
        let earliest = self.ping_every / 4;
        let due = since + ttl::renew_after(length).clamp(earliest, self.ping_every);
        if due > now {
            return Next::At(due);
        }
        Next::At(self.ping(now, out))
    }

    /// Ends the session. Call this when it has no requests. The node's answer is `closed`; if the
    /// connection breaks before, the session and its unanswered releases are still there.
    pub(crate) fn say_goodbye(&mut self, now: Moment, out: &mut Out) {
        if !self.is_connected || self.is_ending {
            return;
        }
        self.is_ending = true;
        self.pong_by = Some(now + GOODBYE_WITHIN);
        let n = self.next_number();
        let seen = self.seen();
        self.emit(now, n, ClientMessage::End(Numbered { n, seen }), out);
    }

    /// Whether `end` was sent over this connection.
    pub(crate) fn is_ending(&self) -> bool {
        self.is_ending
    }

    /// Whether there are requests that wait, or holds.
    pub(crate) fn has_requests(&self) -> bool {
        !self.requests.is_empty()
    }

    /// Whether there are no requests, no holds, and no messages without an answer.
    pub(crate) fn is_idle(&self) -> bool {
        !self.has_requests() && self.is_settled()
    }

    /// Whether every release and cancellation was answered.
    pub(crate) fn is_settled(&self) -> bool {
        let mut unanswered = self.unanswered.values();
        unanswered.all(|unanswered| matches!(unanswered, Unanswered::Acquire(_)))
    }

    /// Like [`is_settled`](Machine::is_settled), without what another node takes care of.
    pub(crate) fn is_settled_here(&self) -> bool {
        let mut unanswered = self.unanswered.range(self.passed_on + 1..);
        unanswered.all(|(_, unanswered)| matches!(unanswered, Unanswered::Acquire(_)))
    }

    /// Whether the session has expired by all that is known: nothing was promised for its time to
    /// live. Then it is of no use to resume it.
    pub(crate) fn has_expired(&self, now: Moment) -> bool {
        !self.is_connected && self.promised.0 + self.expires_in <= now
    }

    /// The session, if the node has accepted it.
    pub(crate) fn known(&self) -> Option<&Known> {
        self.known.as_ref()
    }

    /// Whether a hold was lost with the node's lease, or not renewed in time.
    pub(crate) fn may_be_outside(&self) -> bool {
        self.may_be_outside
    }

    /// Whether requests wait.
    pub(crate) fn has_waiting(&self) -> bool {
        let mut requests = self.requests.values();
        requests.any(|request| matches!(request.state, State::Waits))
    }

    /// When the first of the requests that wait is over.
    pub(crate) fn first_deadline(&self) -> Option<Moment> {
        let waits = self.requests.values().filter_map(|request| {
            let Wait::Until(moment) = request.wish.wait else {
                return None;
            };
            matches!(request.state, State::Waits).then_some(moment)
        });
        waits.min()
    }

    /// How long the holds are still certain: the shortest, or `None` without holds.
    pub(crate) fn certain_for(&self, now: Moment) -> Option<Duration> {
        let holds = self
            .requests
            .values()
            .filter_map(|request| match &request.state {
                State::Held(hold) | State::Releasing(hold) if !hold.is_over(now) => {
                    Some(hold.until.since(now))
                }
                _ => None,
            });
        holds.min()
    }
}

/// The loss of a hold whose promise has passed.
fn expired(hold: &Hold) -> Loss {
    Loss {
        reason: EndReason::Expired,
        since: hold.until,
    }
}

/// Converts to milliseconds, rounding up.
fn milliseconds(duration: Duration) -> u64 {
    let ms = duration.as_nanos().div_ceil(1_000_000);
    u64::try_from(ms).unwrap_or(u64::MAX)
}
