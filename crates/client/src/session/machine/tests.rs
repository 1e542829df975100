//! Each test plays the node, message by message.

use soloist_api::session::{
    Code, Done, Granted, Held, Lost, NodeMessage, Pong, Promise, Stopping, UNSEEN_MAX, Welcome,
};

use super::*;

mod busy;
mod leaving;
mod random;
mod resuming;

type Client = Machine<&'static str>;

fn at(ms: u64) -> Moment {
    Moment::new(Duration::from_millis(ms))
}

fn wish(lock: &str) -> Wish {
    Wish {
        lock: LockName::new(lock).unwrap(),
        owner: None,
        wait: Wait::Forever,
    }
}

fn promise(after: u64, valid_for_ms: u64) -> Promise {
    Promise {
        after,
        valid_for_ms,
    }
}

/// The answer to a hello, without anything to resume.
fn welcome() -> Welcome {
    Welcome {
        session: "s".to_owned(),
        secret: Secret("x".to_owned()),
        node: "n1".to_owned(),
        epoch: 1,
        ping_every_ms: 1000,
        expires_in_ms: 3000,
        promise: promise(0, 3000),
        handled: 0,
        last_seq: 0,
        holds: Vec::new(),
        waiting: Vec::new(),
    }
}

fn granted(n: u64, seq: u64, promise: Promise) -> NodeMessage {
    NodeMessage::Granted(Granted {
        n,
        seq,
        fence: Fence::from_number(seq),
        promise,
    })
}

fn done(n: u64, seq: u64) -> NodeMessage {
    let seq = Some(seq);
    NodeMessage::Done(Done { n, seq })
}

fn error(n: u64, code: Code) -> NodeMessage {
    NodeMessage::Error(Failure {
        n,
        seq: None,
        code,
        detail: String::new(),
        reason: None,
    })
}

/// The answer to a hello that resumes: what the node has handled and told, its holds, and the
/// requests that wait there.
fn resumed(handled: u64, last_seq: u64, holds: &[u64], waiting: &[u64]) -> Welcome {
    let held = |hold: &u64| Held {
        hold: *hold,
        lock: "a".to_owned(),
        fence: Fence::from_number(1),
    };
    Welcome {
        handled,
        last_seq,
        holds: holds.iter().map(held).collect(),
        waiting: waiting.to_vec(),
        ..welcome()
    }
}

/// A machine, and what the test has not looked at yet.
struct Played {
    machine: Client,
    out: Out,
}

impl Played {
    /// Connects at 0 ms.
    fn connected() -> Self {
        let mut played = Played {
            machine: Machine::new(Settings::default()),
            out: Out::default(),
        };
        played
            .machine
            .welcome(at(0), at(0), welcome(), &mut played.out);
        played
    }

    fn acquire(&mut self, now: u64) -> RequestId {
        let id = self.machine.acquire(at(now), wish("a"), &mut self.out);
        self.sent();
        id
    }

    /// Acquires a lock, which is granted at once: request 1, outcome 1.
    fn held() -> (Self, RequestId) {
        let mut played = Self::connected();
        let id = played.acquire(0);
        played.receive(0, granted(1, 1, promise(1, 3000)));
        (played, id)
    }

    #[track_caller]
    fn receive(&mut self, now: u64, message: NodeMessage) {
        let received = self.machine.receive(at(now), message, &mut self.out);
        received.unwrap();
    }

    fn resume(&mut self, now: u64, welcome: Welcome) {
        self.machine.cut();
        self.machine
            .welcome(at(now), at(now), welcome, &mut self.out);
    }

    /// The messages since the last call, as kind and numbers.
    fn sent(&mut self) -> Vec<String> {
        let name = |message: ClientMessage| match message {
            ClientMessage::Acquire(acquire) => format!("acquire {}", acquire.n),
            ClientMessage::Cancel(cancel) => format!("cancel {} of {}", cancel.n, cancel.request),
            ClientMessage::Release(release) => format!("release {} of {}", release.n, release.hold),
            ClientMessage::Ping(ping) => format!("ping {}", ping.n),
            other => format!("{other:?}"),
        };
        self.out.send.drain(..).map(name).collect()
    }

    fn until(&self, id: RequestId) -> Moment {
        self.machine.hold(id).unwrap().until
    }

    fn loss(&self, id: RequestId) -> Option<Loss> {
        self.machine.hold(id).unwrap().loss
    }
}

#[test]
fn a_promise_counts_from_when_its_message_was_sent() {
    let mut played = Played::connected();
    let id = played.acquire(100);
    // The grant waited for 2 s in a buffer.
    played.receive(2_100, granted(1, 1, promise(1, 3000)));
    assert_eq!(played.until(id), at(3_100));
    assert!(matches!(
        played.machine.tick(at(2_100), &mut played.out),
        Next::At(_)
    ));
    assert_eq!(played.sent(), ["ping 2"]);
    played.receive(
        2_900,
        NodeMessage::Pong(Pong {
            n: 2,
            promise: promise(2, 3000),
        }),
    );
    assert_eq!(played.until(id), at(5_100));
}

#[test]
fn a_grant_whose_promise_has_passed_is_released_and_not_used() {
    let mut played = Played::connected();
    let id = played.acquire(100);
    played.receive(10_000, granted(1, 1, promise(1, 3000)));
    let answer = played.machine.acquired(id);
    let Some(Err(Denial::Lost(loss))) = answer else {
        panic!("it is used: {answer:?}");
    };
    assert_eq!((loss.reason, loss.since), (EndReason::Expired, at(3_100)));
    assert_eq!(played.sent(), ["release 2 of 1"]);
}

#[test]
fn a_late_promise_does_not_revive_a_hold() {
    let (mut played, id) = Played::held();
    played.machine.tick(at(1_000), &mut played.out);
    assert_eq!(played.sent(), ["ping 2"]);
    played.receive(
        3_000,
        NodeMessage::Pong(Pong {
            n: 2,
            promise: promise(2, 3000),
        }),
    );
    let loss = played.loss(id).expect("its promise ended at 3 s");
    assert_eq!((loss.reason, loss.since), (EndReason::Expired, at(3_000)));
    assert_eq!(played.until(id), at(3_000));
    // The node still has it, for nobody.
    assert_eq!(played.sent(), ["release 3 of 1"]);
}

#[test]
fn one_ping_extends_all_holds_that_were_granted_before() {
    let mut played = Played::connected();
    let ids: Vec<RequestId> = (0..100).map(|_| played.acquire(0)).collect();
    for n in 1..=100 {
        played.receive(0, granted(n, n, promise(100, 3000)));
    }
    played.machine.tick(at(1_000), &mut played.out);
    assert_eq!(played.sent(), ["ping 101"]);
    let late = played.acquire(1_000);
    played.receive(
        1_001,
        NodeMessage::Pong(Pong {
            n: 101,
            promise: promise(101, 3000),
        }),
    );
    played.receive(1_001, granted(102, 101, promise(101, 2500)));
    assert!(ids.iter().all(|id| played.until(*id) == at(4_000)));
    assert_eq!(played.until(late), at(3_500));
}

#[test]
fn pings_pause_between_promises_even_if_these_extend_nothing() {
    let (mut played, id) = Played::held();
    // The node stops: its promises all end at the same moment.
    let stopping = Stopping {
        promise: promise(1, 3000),
    };
    played.receive(0, NodeMessage::Stopping(stopping));
    let mut pings = 0;
    for ms in (0..2_500).step_by(10) {
        played.machine.tick(at(ms), &mut played.out);
        for _ in played.sent() {
            pings += 1;
            let n = played.machine.last_n;
            let pong = Pong {
                n,
                promise: promise(n, 3000 - ms),
            };
            played.receive(ms, NodeMessage::Pong(pong));
        }
    }
    // At 1,000, 1,670, 2,120 and 2,420 ms: after a third of each promise.
    assert_eq!(pings, 4);
    assert_eq!(played.until(id), at(3_000));
}

/// The node lost touch with the leader for two thirds of its lease, and renewed the lease a moment
/// after the last ping.
#[test]
fn a_short_promise_is_renewed_before_it_has_passed() {
    let (mut played, id) = Played::held();
    played.machine.tick(at(2_000), &mut played.out);
    assert_eq!(played.sent(), ["ping 2"]);
    let pong = |n, valid_for_ms| {
        NodeMessage::Pong(Pong {
            n,
            promise: promise(n, valid_for_ms),
        })
    };
    played.receive(2_000, pong(2, 900));
    let next = played.machine.tick(at(2_000), &mut played.out);
    assert_eq!(next, Next::At(at(2_300)));
    played.machine.tick(at(2_300), &mut played.out);
    assert_eq!(played.sent(), ["ping 3"]);
    played.receive(2_310, pong(3, 3_000));
    assert_eq!(played.until(id), at(5_300));
    assert_eq!(played.loss(id), None);
}

#[test]
fn a_node_that_does_not_answer_a_ping_is_silent() {
    let (mut played, _) = Played::held();
    let next = played.machine.tick(at(1_000), &mut played.out);
    // Half of the 2 s that are left.
    assert_eq!(next, Next::At(at(2_000)));
    assert_eq!(
        played.machine.tick(at(2_000), &mut played.out),
        Next::Silent
    );
}

#[test]
fn an_idle_session_is_not_renewed() {
    let (mut played, id) = Played::held();
    played.machine.drop_request(at(10), id, &mut played.out);
    assert_eq!(played.sent(), ["release 2 of 1"]);
    assert!(!played.machine.is_settled());
    played.receive(10, done(2, 2));
    assert!(played.machine.is_settled());
    assert_eq!(played.machine.tick(at(9_000), &mut played.out), Next::Idle);
    assert!(played.sent().is_empty());
}

/// Whether the answer to a release may wait, if one is sent next.
fn is_later(played: &mut Played) -> Option<bool> {
    let message = played.out.send.pop()?;
    match message {
        ClientMessage::Release(release) => Some(release.later),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_answer_to_a_release_may_wait_unless_a_caller_waits_for_it() {
    let (mut played, id) = Played::held();
    played.machine.release(at(10), id, &mut played.out);
    assert_eq!(is_later(&mut played), Some(false));
    let (mut played, id) = Played::held();
    played.machine.drop_request(at(10), id, &mut played.out);
    assert_eq!(is_later(&mut played), Some(true));
    // Sent again after a resume, it may be the last message of a program that exits.
    played.resume(20, resumed(1, 1, &[1], &[]));
    assert_eq!(is_later(&mut played), Some(false));
}

#[test]
fn answers_that_may_wait_are_asked_for_once_at_a_time() {
    let (mut played, id) = Played::held();
    played.machine.hurry(at(10), &mut played.out);
    assert!(played.sent().is_empty());
    played.machine.drop_request(at(10), id, &mut played.out);
    played.sent();
    played.machine.hurry(at(10), &mut played.out);
    played.machine.hurry(at(11), &mut played.out);
    assert_eq!(played.sent(), ["ping 3"]);
    played.receive(12, done(2, 2));
    let pong = Pong {
        n: 3,
        promise: promise(3, 3000),
    };
    played.receive(12, NodeMessage::Pong(pong));
    played.machine.hurry(at(13), &mut played.out);
    assert!(played.sent().is_empty());
    assert!(played.machine.is_settled());
}

/// If nothing else brings the answer, a ping does, as for a hold.
#[test]
fn a_release_without_an_answer_keeps_the_session_awake() {
    let (mut played, id) = Played::held();
    played.machine.drop_request(at(10), id, &mut played.out);
    played.sent();
    played.machine.tick(at(1_000), &mut played.out);
    assert_eq!(played.sent(), ["ping 3"]);
}

#[test]
fn a_dropped_request_is_cancelled_and_a_grant_on_its_way_is_not_used() {
    let mut played = Played::connected();
    let id = played.acquire(0);
    played.machine.drop_request(at(1), id, &mut played.out);
    assert_eq!(played.sent(), ["cancel 2 of 1"]);
    // The grant crossed the cancellation, which releases it.
    played.receive(2, granted(1, 1, promise(1, 3000)));
    assert!(played.sent().is_empty());
    played.receive(2, done(2, 2));
    assert!(played.machine.is_idle());
}

#[test]
fn a_hold_that_is_lost_or_not_renewed_says_that_the_node_may_be_outside() {
    let lost = |hold, reason| {
        NodeMessage::Lost(Lost {
            hold,
            seq: 2,
            reason,
            promise: promise(1, 0),
        })
    };
    let (mut played, _) = Played::held();
    played.receive(10, lost(1, EndReason::Expired));
    assert!(!played.machine.may_be_outside());
    let (mut played, _) = Played::held();
    played.receive(10, lost(1, EndReason::EpochLost));
    assert!(played.machine.may_be_outside());
    // The client notices first that the node does not renew its promise.
    let (mut played, id) = Played::held();
    played.machine.expire(at(3_000), id, &mut played.out);
    assert!(played.machine.may_be_outside());
}

#[test]
fn every_hello_says_whether_the_session_ends_with_the_process() {
    for ends_with_process in [false, true] {
        let settings = Settings {
            ends_with_process,
            ..Settings::default()
        };
        let mut machine = Client::new(settings);
        assert_eq!(machine.hello(None).ends_with_process, ends_with_process);
        machine.welcome(at(0), at(0), welcome(), &mut Out::default());
        let hello = machine.hello(None);
        assert!(hello.resume.is_some());
        assert_eq!(hello.ends_with_process, ends_with_process);
    }
}
