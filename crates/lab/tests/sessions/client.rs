//! A client that follows the protocol of `soloist_api::session`, for one lock.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};

use soloist_api::session::{
    Acquire, Cancel, ClientMessage, Code, Hello, Left, NodeMessage, Numbered, Promise, Release,
    Resume, Secret,
};
use soloist_api::{Fence, Moment};
use soloist_core::Mutant;

pub(crate) const LOCK: &str = "a";

/// How far the client is with its lock.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Phase {
    Idle,
    Asked(u64),
    Held(u64, Fence),
    /// The release of a hold is not answered yet.
    Releasing(u64),
    /// The request was given up for one on another node, and its cancellation is not answered yet.
    Cancelling(u64),
}

/// A session as the client knows it.
#[derive(Clone)]
pub(crate) struct Credentials {
    pub node: usize,
    pub session: String,
    pub secret: Secret,
}

#[derive(Clone)]
pub(crate) struct Client {
    pub phase: Phase,
    pub credentials: Option<Credentials>,
    /// The session on another node that it has left, until the session here has begun.
    left: Option<Left>,
    /// Whether it has told the other node of an unanswered release when it left.
    pub has_named_release: bool,
    /// The node that it uses.
    pub node: usize,
    /// The number of its last message.
    n: u64,
    /// The number of the last outcome that it has read.
    seen: u64,
    /// Its requests without an answer, by number.
    unanswered: BTreeMap<u64, ClientMessage>,
    /// When it sent each message over this connection; 0 is the hello.
    sent: BTreeMap<u64, Moment>,
    /// Until when it relies on its hold.
    relies_until: Moment,
    /// After a resume: the last outcome to be repeated, and the highest number that was handled.
    catches_up: Option<(u64, u64, Vec<u64>)>,
    /// Whether this connection's hello was answered. The client sends nothing before.
    pub is_welcome: bool,
    /// A planted fault: it counts promises from when they arrive.
    counts_from_arrival: bool,
    /// A planted fault: it uses a grant that it reads after it has left the session.
    uses_late_grants: bool,
    /// Sends everything again after a resume, also what was handled.
    pub resends_all: bool,
}

impl Hash for Client {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        (self.phase, self.node, self.n, self.seen).hash(hasher);
        (&self.sent, self.relies_until, &self.catches_up).hash(hasher);
        let known = self.credentials.as_ref().map(|known| known.node);
        (known, self.resends_all, self.is_welcome).hash(hasher);
        self.has_named_release.hash(hasher);
        for n in self.unanswered.keys() {
            n.hash(hasher);
        }
        let left = self.left.as_ref();
        left.map(|left| (left.seen, &left.release)).hash(hasher);
    }
}

impl Client {
    pub(crate) fn new(resends_all: bool, planted: Option<Mutant>) -> Self {
        Client {
            phase: Phase::Idle,
            credentials: None,
            left: None,
            has_named_release: false,
            node: 0,
            n: 0,
            seen: 0,
            unanswered: BTreeMap::new(),
            sent: BTreeMap::new(),
            relies_until: Moment::default(),
            catches_up: None,
            is_welcome: false,
            counts_from_arrival: planted == Some(Mutant::PromiseFromArrival),
            uses_late_grants: planted == Some(Mutant::LeftGrantUsed),
            resends_all,
        }
    }

    /// Whether the client works on what the lock protects.
    pub(crate) fn relies(&self, now: Moment) -> bool {
        matches!(self.phase, Phase::Held(..)) && now < self.relies_until
    }

    /// The first message of a new connection.
    pub(crate) fn hello(&mut self, now: Moment) -> ClientMessage {
        self.sent = BTreeMap::from([(0, now)]);
        self.is_welcome = false;
        let mut hello = Hello::default();
        match self.credentials.clone() {
            Some(known) => {
                hello.resume = Some(Resume {
                    session: known.session,
                    secret: known.secret,
                    seen: self.seen,
                });
            }
            None => {
                self.forget();
                hello.left = self.left.clone();
            }
        }
        ClientMessage::Hello(hello)
    }

    /// Leaves the session for one on another node. Returns the client of that one. This one keeps
    /// its hold, sends unanswered releases again, and gives up a request that waits.
    pub(crate) fn leave(&mut self) -> Client {
        let mut next = self.clone();
        next.forget();
        next.phase = Phase::Idle;
        let releases = self.unanswered.values();
        let releases = releases.filter_map(|message| match message {
            ClientMessage::Release(release) => Some(release.hold),
            _ => None,
        });
        next.left = self.credentials.clone().map(|known| Left {
            node: known.node.to_string(),
            session: known.session,
            secret: known.secret,
            seen: self.seen,
            release: releases.collect(),
        });
        self.has_named_release = matches!(self.phase, Phase::Releasing(_));
        if let Phase::Asked(request) = self.phase {
            self.unanswered.remove(&request);
            self.n += 1;
            let (n, seen) = (self.n, Some(self.seen));
            let cancel = ClientMessage::Cancel(Cancel { n, request, seen });
            self.unanswered.insert(n, cancel);
            self.phase = Phase::Cancelling(n);
        }
        next
    }

    /// Starts from the beginning, with another session.
    fn forget(&mut self) {
        self.credentials = None;
        (self.n, self.seen, self.catches_up) = (0, 0, None);
        self.unanswered.clear();
        self.relies_until = Moment::default();
    }

    fn send(
        &mut self,
        now: Moment,
        message: impl FnOnce(u64, Option<u64>) -> ClientMessage,
    ) -> ClientMessage {
        self.n += 1;
        self.sent.insert(self.n, now);
        message(self.n, Some(self.seen))
    }

    pub(crate) fn acquire(&mut self, now: Moment) -> ClientMessage {
        let message = self.send(now, |n, seen| {
            ClientMessage::Acquire(Acquire {
                n,
                lock: LOCK.to_owned(),
                wait_ms: None,
                owner: None,
                seen,
            })
        });
        self.phase = Phase::Asked(self.n);
        self.unanswered.insert(self.n, message.clone());
        message
    }

    pub(crate) fn release(&mut self, now: Moment, hold: u64) -> ClientMessage {
        let message = self.send(now, |n, seen| {
            ClientMessage::Release(Release {
                n,
                hold,
                later: false,
                seen,
            })
        });
        self.phase = Phase::Releasing(self.n);
        self.unanswered.insert(self.n, message.clone());
        message
    }

    pub(crate) fn ping(&mut self, now: Moment) -> ClientMessage {
        self.send(now, |n, seen| ClientMessage::Ping(Numbered { n, seen }))
    }

    /// Handles a message, and returns what to send.
    pub(crate) fn receive(
        &mut self,
        now: Moment,
        message: NodeMessage,
    ) -> Result<Vec<ClientMessage>, String> {
        let seq = match &message {
            NodeMessage::Granted(granted) => Some(granted.seq),
            NodeMessage::Lost(lost) => Some(lost.seq),
            NodeMessage::Done(done) => done.seq,
            NodeMessage::Error(failure) => failure.seq,
            _ => None,
        };
        // An outcome that was read before is not read again.
        if seq.is_some_and(|seq| seq <= self.seen) {
            return Ok(Vec::new());
        }
        self.seen = seq.unwrap_or(self.seen);
        let mut resends = Vec::new();
        match message {
            NodeMessage::Welcome(welcome) => {
                self.is_welcome = true;
                self.left = None;
                self.credentials = Some(Credentials {
                    node: self.node,
                    session: welcome.session,
                    secret: welcome.secret,
                });
                let mut listed = welcome.waiting;
                listed.extend(welcome.holds.iter().map(|held| held.hold));
                match self.phase {
                    // It has ended, and `lost` follows.
                    Phase::Held(n, _) if !listed.contains(&n) => {
                        self.relies_until = Moment::default();
                    }
                    _ => self.trust(now, welcome.promise)?,
                }
                self.catches_up = Some((welcome.last_seq, welcome.handled, listed));
                for (&n, message) in &self.unanswered {
                    if n > welcome.handled || self.resends_all {
                        resends.push(message.clone());
                        self.sent.insert(n, now);
                    }
                }
            }
            NodeMessage::Granted(granted) => {
                self.unanswered.remove(&granted.n);
                let is_given_up = matches!(self.phase, Phase::Cancelling(_));
                if self.phase != Phase::Asked(granted.n) && !is_given_up {
                    return Err(format!(
                        "request {} is granted in {:?}",
                        granted.n, self.phase
                    ));
                }
                // The cancellation releases a grant that comes too late.
                if !is_given_up || self.uses_late_grants {
                    self.phase = Phase::Held(granted.n, granted.fence);
                    self.relies_until = Moment::default();
                    self.trust(now, granted.promise)?;
                }
            }
            NodeMessage::Lost(lost) => {
                let until = lost.promise.until(self.sent_at(lost.promise)?);
                self.relies_until = self.relies_until.min(until);
                let is_over = lost.promise.valid_for_ms == 0;
                if matches!(self.phase, Phase::Held(n, _) if n == lost.hold) && is_over {
                    self.phase = Phase::Idle;
                }
            }
            NodeMessage::Done(done) => self.answered(done.n),
            NodeMessage::Error(failure) => self.answered(failure.n),
            NodeMessage::Pong(pong) => self.trust(now, pong.promise)?,
            NodeMessage::Stopping(_) => {}
            NodeMessage::Closed(closed) => match closed.code {
                Code::NoSuchSession | Code::Expired | Code::Ended => {
                    self.phase = Phase::Idle;
                    self.forget();
                }
                Code::Resumed | Code::Stopping => {}
                code => return Err(format!("closed: {code}")),
            },
            other => return Err(format!("unexpected {other:?}")),
        }
        self.conclude_refused();
        Ok(resends)
    }

    /// A request was answered, with an outcome or a refusal.
    fn answered(&mut self, n: u64) {
        self.unanswered.remove(&n);
        let is_it = [Phase::Asked(n), Phase::Releasing(n), Phase::Cancelling(n)];
        if is_it.contains(&self.phase) {
            self.phase = Phase::Idle;
        }
    }

    /// When all outcomes are repeated: what was handled, is not listed and has no outcome was
    /// refused.
    fn conclude_refused(&mut self) {
        if let Some((seq, handled, listed)) = self.catches_up.take_if(|(seq, ..)| *seq <= self.seen)
        {
            debug_assert!(seq <= self.seen);
            let refused: Vec<u64> = self.unanswered.keys().copied().collect();
            for n in refused {
                if n <= handled && !listed.contains(&n) {
                    self.answered(n);
                }
            }
        }
    }

    fn sent_at(&self, promise: Promise) -> Result<Moment, String> {
        let sent = self.sent.get(&promise.after).copied();
        sent.ok_or(format!("message {} was not sent", promise.after))
    }

    fn trust(&mut self, now: Moment, promise: Promise) -> Result<(), String> {
        let sent = self.sent_at(promise)?;
        let from = if self.counts_from_arrival { now } else { sent };
        self.relies_until = self.relies_until.max(promise.until(from));
        Ok(())
    }
}
