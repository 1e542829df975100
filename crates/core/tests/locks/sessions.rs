//! Sessions of one node: bounds, and rules that need no second node. `lab/tests/sessions` searches
//! all interleavings.

use std::time::Duration;

use soloist_algorithms::{Choice, NodeId};
use soloist_api::session::{
    Acquire, Cancel, ClientMessage, Code, NUMBER_MAX, NodeMessage, Numbered, Release, UNSEEN_MAX,
    Welcome,
};
use soloist_api::{EndReason, Moment};
use soloist_core::epochs::lease::Lease;
use soloist_core::limits::Limits;
use soloist_core::locks::{
    Client, Effects, Epoch, Inside, LockRequest, NoSuchSession, Remaining, Table,
};
use soloist_core::sessions::{ConnectionId, SessionId, Teller};

use crate::cluster::{Cluster, FORGET_AFTER, TURNS_AWAY_AFTER, members};
use crate::{name, seconds};

const TTL: Duration = Duration::from_secs(10);

/// A node with one client.
struct Desk {
    table: Table,
    now: Moment,
    session: SessionId,
    connection: ConnectionId,
    welcome: Welcome,
}

fn me() -> Client {
    Client::new("me")
}

impl Desk {
    fn new() -> Self {
        let choice = Choice::parse("raymond", "").unwrap();
        let mut cluster = Cluster::with_limits(choice, 1, 1, Limits::default(), 20_000);
        let mut table = cluster.tables.remove(0);
        let mut out = Effects::new();
        let (now, connection) = (Moment::default(), ConnectionId(0));
        let opened = table.open_session(now, me(), "me".into(), TTL, connection, &mut out);
        let session = opened.unwrap();
        let Some(NodeMessage::Welcome(welcome)) = told(&table, &mut out).pop() else {
            panic!("no welcome");
        };
        Desk {
            table,
            now,
            session,
            connection,
            welcome,
        }
    }

    fn act<T>(
        &mut self,
        act: impl FnOnce(&mut Table, Moment, &mut Effects) -> T,
    ) -> (T, Vec<NodeMessage>) {
        let mut out = Effects::new();
        let result = act(&mut self.table, self.now, &mut out);
        (result, told(&self.table, &mut out))
    }

    fn send(&mut self, message: ClientMessage) -> Vec<NodeMessage> {
        let (session, connection) = (self.session, self.connection);
        let (remaining, told) = self.act(|table, now, out| {
            table.receive_from_session(now, session, connection, message, out)
        });
        assert!(!matches!(remaining, Remaining::Answer(_)));
        told
    }

    fn resume(&mut self, seen: u64) -> Vec<NodeMessage> {
        self.connection = ConnectionId(self.connection.0 + 1);
        let (session, connection) = (self.session, self.connection);
        let secret = self.welcome.secret.0.parse().unwrap();
        let (resumed, told) = self.act(|table, now, out| {
            table.resume_session(now, session, secret, &me(), seen, connection, out)
        });
        assert_eq!(resumed, Ok(()));
        told
    }

    fn pass(&mut self, time: Duration) -> Vec<NodeMessage> {
        self.now = self.now + time;
        self.act(|table, now, out| table.tick(now, out)).1
    }

    /// The node loses its lease.
    fn lose(&mut self) -> Vec<NodeMessage> {
        self.act(|table, now, out| table.lose(now, out)).1
    }

    /// The node is a member again.
    fn come_back(&mut self) -> Vec<NodeMessage> {
        let epoch = Epoch {
            number: 2,
            me: NodeId::from_index(0),
            members: members(1),
            inside: Inside::default(),
        };
        self.act(|table, now, out| table.install(now, epoch, out)).1
    }
}

/// The messages of the effects.
fn told(table: &Table, out: &mut Effects) -> Vec<NodeMessage> {
    let teller = Teller {
        node: "n1",
        epoch: 1,
        valid_until: None,
        lease: Lease::default(),
    };
    let pushes = std::mem::take(&mut out.pushes).into_iter();
    pushes
        .filter_map(|push| table.session_message(&teller, push))
        .collect()
}

fn acquire(n: u64, lock: &str) -> ClientMessage {
    ClientMessage::Acquire(Acquire {
        n,
        lock: lock.to_owned(),
        wait_ms: None,
        owner: None,
        seen: None,
    })
}

fn release(n: u64, hold: u64) -> ClientMessage {
    ClientMessage::Release(Release {
        n,
        hold,
        later: false,
        seen: None,
    })
}

fn ping(n: u64, seen: Option<u64>) -> ClientMessage {
    ClientMessage::Ping(Numbered { n, seen })
}

/// The only message, as the code of its error.
fn code(told: &[NodeMessage]) -> Option<Code> {
    match told {
        [NodeMessage::Error(failure)] => Some(failure.code),
        [NodeMessage::Closed(closed)] => Some(closed.code),
        _ => None,
    }
}

#[test]
fn one_ping_keeps_ten_thousand_holds_and_they_expire_together() {
    let mut desk = Desk::new();
    let many = 10_000;
    for n in 1..=many {
        let acquire = Acquire {
            n,
            lock: format!("lock {n}"),
            wait_ms: None,
            owner: None,
            // One outcome per request.
            seen: Some(n - 1),
        };
        let told = desk.send(ClientMessage::Acquire(acquire));
        assert!(matches!(told[..], [NodeMessage::Granted(_)]), "{told:?}");
    }
    assert_eq!(desk.pass(seconds(9)), []);
    let told = desk.send(ping(many + 1, Some(many)));
    let [NodeMessage::Pong(pong)] = &told[..] else {
        panic!("{told:?}");
    };
    let promise = pong.promise;
    assert_eq!(promise.after, many + 1);
    assert!(
        (9_000..10_000).contains(&promise.valid_for_ms),
        "{promise:?}"
    );
    assert_eq!(desk.pass(seconds(9)), []);
    assert_eq!(desk.table.holds(), many as usize);
    let told = desk.pass(seconds(1));
    assert_eq!(code(&told), Some(Code::Expired), "{told:?}");
    assert_eq!((desk.table.holds(), desk.table.sessions()), (0, 0));
}

#[test]
fn requests_are_refused_while_too_many_outcomes_are_unseen() {
    let mut desk = Desk::new();
    let unseen = UNSEEN_MAX as u64;
    for n in 1..=unseen {
        desk.send(acquire(n, &format!("lock {n}")));
    }
    assert_eq!(desk.table.holds(), UNSEEN_MAX);
    assert_eq!(
        code(&desk.send(acquire(unseen + 1, "one more"))),
        Some(Code::Busy)
    );
    assert_eq!(code(&desk.send(release(unseen + 2, 1))), Some(Code::Busy));
    assert_eq!(
        desk.table.holds(),
        UNSEEN_MAX,
        "a refused request has no effect"
    );
    let told = desk.send(ping(unseen + 3, Some(1)));
    assert!(matches!(told[..], [NodeMessage::Pong(_)]), "{told:?}");
    let told = desk.send(release(unseen + 4, 1));
    assert!(matches!(told[..], [NodeMessage::Done(_)]), "{told:?}");
}

#[test]
fn a_number_is_used_once() {
    let mut desk = Desk::new();
    let first = desk.send(acquire(1, "a"));
    // The same again: the same outcome, and no second request.
    assert_eq!(desk.send(acquire(1, "a")), first);
    assert_eq!((desk.table.holds(), desk.table.waiters()), (1, 0));
    desk.send(ping(2, Some(1)));
    // Its outcome was seen: nothing more to tell.
    assert_eq!(desk.send(acquire(1, "a")), []);
    let done = desk.send(release(3, 1));
    assert_eq!(desk.send(release(3, 1)), done);
    desk.send(ping(4, Some(2)));
    assert_eq!(code(&desk.send(release(3, 1))), Some(Code::NumberUsed));
    desk.send(acquire(5, "b"));
    let told = desk.send(acquire(5, "c"));
    assert!(matches!(told[..], [NodeMessage::Closed(_)]), "{told:?}");
    assert_eq!(code(&told), Some(Code::NumberUsed));
    // The connection is over, and the session is not.
    assert_eq!(desk.send(ping(6, None)), []);
    let told = desk.resume(2);
    let [NodeMessage::Welcome(welcome), NodeMessage::Granted(granted)] = &told[..] else {
        panic!("{told:?}");
    };
    assert_eq!((welcome.handled, welcome.last_seq, granted.n), (5, 3, 5));
    assert_eq!(welcome.holds[0].lock, "b");
}

#[test]
fn a_number_that_is_sent_again_gets_its_own_outcome_among_many() {
    let mut desk = Desk::new();
    let told: Vec<_> = (1..=100)
        .map(|n| desk.send(acquire(n, &format!("lock {n}"))))
        .collect();
    desk.send(ping(101, Some(40)));
    for n in 41..=100 {
        let again = desk.send(acquire(n, &format!("lock {n}")));
        let ([NodeMessage::Granted(first)], [NodeMessage::Granted(again)]) =
            (&told[n as usize - 1][..], &again[..])
        else {
            panic!("{again:?}");
        };
        assert_eq!((again.n, again.seq, again.fence), (n, n, first.fence));
    }
    assert_eq!(desk.send(acquire(40, "lock 40")), []);
}

#[test]
fn invalid_numbers_end_the_connection() {
    for bad in [
        ping(0, None),
        ping(NUMBER_MAX + 1, None),
        ping(1, Some(1)),
        ClientMessage::Hello(Default::default()),
    ] {
        let mut desk = Desk::new();
        let told = desk.send(bad.clone());
        assert!(
            matches!(told[..], [NodeMessage::Closed(_)]),
            "{bad:?}: {told:?}"
        );
        assert_eq!(desk.table.sessions(), 1);
    }
}

#[test]
fn names_and_times_are_checked() {
    let mut desk = Desk::new();
    let long = Acquire {
        n: 2,
        lock: "a".to_owned(),
        wait_ms: Some(u64::MAX),
        owner: None,
        seen: None,
    };
    let owner = Acquire {
        n: 3,
        wait_ms: None,
        owner: Some("\u{7}".to_owned()),
        ..long.clone()
    };
    for bad in [
        acquire(1, ""),
        ClientMessage::Acquire(long),
        ClientMessage::Acquire(owner),
    ] {
        assert_eq!(code(&desk.send(bad)), Some(Code::BadRequest));
    }
    assert_eq!(code(&desk.send(release(4, 1))), Some(Code::NoSuchRequest));
}

#[test]
fn a_cancelled_request_is_over_whether_it_was_granted_or_not() {
    let mut desk = Desk::new();
    desk.send(acquire(1, "a"));
    desk.send(acquire(2, "a"));
    for (n, request) in [(3, 2), (4, 1), (5, 1)] {
        let told = desk.send(ClientMessage::Cancel(Cancel {
            n,
            request,
            seen: None,
        }));
        assert!(
            matches!(&told[..], [NodeMessage::Done(done)] if done.n == n),
            "{told:?}"
        );
    }
    assert_eq!((desk.table.holds(), desk.table.waiters()), (0, 0));
}

#[test]
fn a_request_that_may_not_wait_is_refused_if_the_lock_is_used_here() {
    let mut desk = Desk::new();
    desk.send(acquire(1, "a"));
    let attempt = |n, lock: &str| {
        ClientMessage::Acquire(Acquire {
            n,
            lock: lock.to_owned(),
            wait_ms: Some(0),
            owner: None,
            seen: None,
        })
    };
    assert_eq!(code(&desk.send(attempt(2, "a"))), Some(Code::NotGranted));
    let told = desk.send(attempt(3, "b"));
    assert!(matches!(told[..], [NodeMessage::Granted(_)]), "{told:?}");
}

#[test]
fn a_session_is_resumed_only_by_its_principal_and_before_it_expires() {
    let mut desk = Desk::new();
    desk.send(acquire(1, "a"));
    let secret = desk.welcome.secret.0.parse().unwrap();
    let (session, connection) = (desk.session, ConnectionId(7));
    let other = Client::new("another");
    let (resumed, told) = desk.act(|table, now, out| {
        table.resume_session(now, session, secret, &other, 0, connection, out)
    });
    assert_eq!((resumed, told.len()), (Err(NoSuchSession), 0));
    // The connection of the client is cut by its own resume.
    let told = desk.resume(0);
    assert!(
        matches!(&told[..], [NodeMessage::Closed(closed), NodeMessage::Welcome(_), NodeMessage::Granted(_)] if closed.code == Code::Resumed),
        "{told:?}"
    );
    desk.now = desk.now + TTL;
    let (resumed, _) = desk.act(|table, now, out| {
        table.resume_session(now, session, secret, &me(), 1, connection, out)
    });
    assert_eq!((resumed, desk.table.holds()), (Err(NoSuchSession), 0));
}

#[test]
fn a_draining_node_extends_nothing_and_ends_no_hold_before_its_promise() {
    let mut desk = Desk::new();
    desk.send(acquire(1, "a"));
    desk.send(acquire(2, "a"));
    desk.pass(seconds(4));
    let until = desk.now + seconds(60);
    let (_, told) = desk.act(|table, now, out| {
        table.stop(now, out);
        table.drain(now, until, out);
    });
    let [
        NodeMessage::Error(denied),
        NodeMessage::Stopping(stopping),
        NodeMessage::Lost(lost),
    ] = &told[..]
    else {
        panic!("{told:?}");
    };
    assert_eq!((denied.n, denied.code), (2, Code::Stopping));
    assert_eq!((lost.hold, lost.reason), (1, EndReason::NodeStopped));
    assert_eq!(lost.promise, stopping.promise);
    assert_eq!(code(&desk.send(acquire(3, "b"))), Some(Code::Stopping));
    desk.pass(seconds(5));
    let told = desk.send(ping(4, None));
    let [NodeMessage::Pong(pong)] = &told[..] else {
        panic!("{told:?}");
    };
    assert!(pong.promise.valid_for_ms <= 1_000, "{pong:?}");
    assert_eq!(desk.table.holds(), 1);
    desk.pass(seconds(1));
    assert_eq!(desk.table.holds(), 0);
}

/// The machine slept for longer than the time to live. The first event after that takes the holds
/// and ends the session.
#[test]
fn a_session_that_ends_in_the_event_of_a_loss_is_told_of_its_end_alone() {
    let mut desk = Desk::new();
    desk.send(acquire(1, "a"));
    desk.send(acquire(2, "a"));
    let (session, connection) = (desk.session, desk.connection);
    desk.now = desk.now + TTL;
    let (_, told) = desk.act(|table, now, out| {
        table.lose(now, out);
        table.receive_from_session(now, session, connection, ping(3, None), out)
    });
    assert_eq!(code(&told), Some(Code::Expired), "{told:?}");
}

/// The client of the first connection has not sent what the promises of the second one name.
#[test]
fn a_connection_that_is_cut_by_a_resume_is_promised_nothing_more() {
    let mut desk = Desk::new();
    desk.send(acquire(1, "a"));
    let (session, secret) = (desk.session, desk.welcome.secret.0.parse().unwrap());
    let (_, told) = desk.act(|table, now, out| {
        table.lose(now, out);
        table.resume_session(now, session, secret, &me(), 1, ConnectionId(1), out)
    });
    let [
        NodeMessage::Closed(closed),
        NodeMessage::Welcome(welcome),
        NodeMessage::Lost(lost),
    ] = &told[..]
    else {
        panic!("{told:?}");
    };
    assert_eq!((closed.code, welcome.last_seq), (Code::Resumed, 2));
    assert_eq!((lost.hold, lost.promise.after), (1, 0));
}

#[test]
fn the_end_of_a_session_releases_everything() {
    let mut desk = Desk::new();
    desk.send(acquire(1, "a"));
    desk.send(acquire(2, "a"));
    let told = desk.send(ClientMessage::End(Numbered { n: 3, seen: None }));
    let is_over = matches!(&told[..], [NodeMessage::Done(_), NodeMessage::Closed(closed)] if closed.code == Code::Ended);
    assert!(is_over, "{told:?}");
    let table = &desk.table;
    assert_eq!(
        (table.holds(), table.waiters(), table.sessions()),
        (0, 0, 0)
    );
    // No timer is left but that of the idle lock.
    assert_eq!(table.next_deadline(), Some(desk.now + FORGET_AFTER));
}

/// A view shows when the holder's session expires.
#[test]
fn a_view_has_the_sessions_deadline() {
    let mut desk = Desk::new();
    desk.send(acquire(1, "a"));
    let view = desk.table.view(desk.now, &name("a")).unwrap();
    assert_eq!(view.holder.unwrap().expires_in, Some(TTL));
}

const INSTANT: Duration = Duration::from_millis(1);

#[test]
fn waiters_are_turned_away_once_their_node_has_been_outside_for_too_long() {
    let mut desk = Desk::new();
    desk.send(acquire(1, "a"));
    assert_eq!(desk.send(acquire(2, "a")), []);
    let request = LockRequest::new("a program with its own node");
    let enqueued = desk.act(|table, now, out| table.acquire(now, &name("a"), request, out));
    enqueued.0.unwrap();
    let told = desk.lose();
    assert!(matches!(told[..], [NodeMessage::Lost(_)]), "{told:?}");
    // It may be about to come back.
    assert_eq!(desk.send(acquire(3, "b")), []);
    assert_eq!(desk.pass(TURNS_AWAY_AFTER - INSTANT), []);
    let told = desk.pass(INSTANT);
    let [NodeMessage::Error(first), NodeMessage::Error(second)] = &told[..] else {
        panic!("{told:?}");
    };
    assert_eq!((first.n, first.code), (2, Code::Unavailable));
    assert_eq!((second.n, second.code), (3, Code::Unavailable));
    assert_eq!((first.seq, second.seq), (Some(3), Some(4)));
    assert_eq!(desk.table.waiters(), 1, "the program has no other node");
    assert_eq!(desk.send(acquire(4, "b")).len(), 1);
    assert_eq!(code(&desk.send(acquire(5, "b"))), Some(Code::Unavailable));
    // It is told again after a resume, and the request is not made again.
    assert_eq!(desk.resume(2)[2..], told);
    assert_eq!(desk.send(acquire(2, "a")), told[..1]);
    desk.come_back();
    let told = desk.send(acquire(6, "b"));
    assert!(matches!(told[..], [NodeMessage::Granted(_)]), "{told:?}");
}

#[test]
fn waiters_keep_their_places_if_their_node_comes_back_in_time() {
    let mut desk = Desk::new();
    desk.send(acquire(1, "a"));
    assert_eq!(desk.send(acquire(2, "a")), []);
    desk.lose();
    assert_eq!(desk.pass(TURNS_AWAY_AFTER / 2), []);
    // A second loss, before the node was a member again, does not prolong the time.
    assert_eq!(desk.lose(), []);
    assert_eq!(desk.pass(TURNS_AWAY_AFTER / 2 - INSTANT), []);
    let told = desk.come_back();
    let [NodeMessage::Granted(granted)] = &told[..] else {
        panic!("{told:?}");
    };
    assert_eq!(granted.n, 2);
    assert_eq!(desk.send(acquire(3, "a")), []);
    assert_eq!(desk.pass(TURNS_AWAY_AFTER), []);
    assert_eq!(desk.table.waiters(), 1);
}

/// Locks stand still during a change of epoch, and the node is a member all the time.
#[test]
fn a_change_of_epoch_turns_nobody_away() {
    let mut desk = Desk::new();
    desk.send(acquire(1, "a"));
    desk.send(acquire(2, "a"));
    desk.act(|table, _, _| table.freeze());
    assert_eq!(desk.pass(TURNS_AWAY_AFTER + INSTANT), []);
    assert_eq!(desk.table.waiters(), 1);
}
