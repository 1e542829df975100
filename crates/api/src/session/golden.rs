//! Pins the JSON of every message of a session, like `golden.rs` of the HTTP API.

use super::*;
use crate::dashboard::{
    Advice, Change, ChangeKind, Changes, History, KeeperInfo, KeeperState, Level, LinkDown,
    MemberInfo, OutsideInfo, OutsideState, Overview, Point, Problem, ProblemCode,
};
use crate::golden::{Lines, cluster, event, lock};
use crate::{EndReason, EventKind, Fence, LockList, LockState, NodeState};

fn secret() -> Secret {
    Secret("8899aabbccddeeff0011223344556677".to_owned())
}

const AT_MS: u64 = 1_700_000_000_000;

const SESSION: &str = "00112233445566778899aabbccddeeff";

fn fence() -> Fence {
    Fence::from_number(u64::MAX)
}

const PROMISE: Promise = Promise {
    after: 7,
    valid_for_ms: 9_900,
};

fn hellos(lines: &mut Lines) {
    lines.add(&ClientMessage::Hello(Hello::default()));
    lines.add(&ClientMessage::Hello(Hello {
        name: Some("cron@web1".to_owned()),
        ttl_ms: Some(10_000),
        resume: None,
        left: Some(Left {
            node: "n2".to_owned(),
            session: SESSION.to_owned(),
            secret: secret(),
            seen: 4,
            release: vec![3],
        }),
        ends_with_process: true,
    }));
    lines.add(&ClientMessage::Hello(Hello {
        resume: Some(Resume {
            session: SESSION.to_owned(),
            secret: secret(),
            seen: 4,
        }),
        ..Hello::default()
    }));
}

/// One of each kind, with all fields.
fn requests() -> Vec<ClientMessage> {
    let (n, seen) = (7, Some(4));
    let numbered = Numbered { n, seen };
    vec![
        ClientMessage::Acquire(Acquire {
            n,
            lock: "db/backup".to_owned(),
            wait_ms: Some(0),
            owner: Some("cron@web1".to_owned()),
            seen,
        }),
        ClientMessage::Cancel(Cancel {
            n,
            request: 5,
            seen,
        }),
        ClientMessage::Release(Release {
            n,
            hold: 5,
            later: true,
            seen,
        }),
        ClientMessage::Ping(numbered.clone()),
        ClientMessage::Lock(LockQuery {
            n,
            lock: "db/backup".to_owned(),
            seen,
        }),
        ClientMessage::Locks(LocksQuery {
            n,
            after: Some("db/backup".to_owned()),
            prefix: Some("db/".to_owned()),
            sort: Some(LockOrder::Wait),
            seen,
        }),
        ClientMessage::List(ListQuery {
            n,
            prefix: Some("db/".to_owned()),
            first: 10,
            rows: 20,
            seen,
        }),
        ClientMessage::Cluster(numbered.clone()),
        ClientMessage::Watch(WatchQuery {
            n,
            all: true,
            prefix: Some("db/".to_owned()),
            after: Some("n1:12c,n2:0".to_owned()),
            seen,
        }),
        ClientMessage::Unwatch(numbered.clone()),
        ClientMessage::Follow(numbered.clone()),
        ClientMessage::Unfollow(numbered.clone()),
        ClientMessage::End(numbered),
    ]
}

fn outcomes(lines: &mut Lines) {
    let granted = Granted {
        n: 7,
        seq: 5,
        fence: fence(),
        promise: PROMISE,
    };
    lines.add(&NodeMessage::Granted(granted));
    lines.add(&NodeMessage::Lost(Lost {
        hold: 7,
        seq: 6,
        reason: EndReason::NodeStopped,
        promise: PROMISE,
    }));
    lines.add(&NodeMessage::Done(Done { n: 9, seq: Some(7) }));
    lines.add(&NodeMessage::Done(Done { n: 9, seq: None }));
    for code in Code::ALL {
        let failure = Failure {
            n: 9,
            seq: None,
            code,
            detail: "a sentence for people".to_owned(),
            reason: None,
        };
        lines.add(&NodeMessage::Error(failure));
    }
    lines.add(&NodeMessage::Error(Failure {
        n: 9,
        seq: Some(7),
        code: Code::Ended,
        detail: "a sentence for people".to_owned(),
        reason: Some(EndReason::EpochLost),
    }));
}

fn others(lines: &mut Lines) {
    let held = Held {
        hold: 5,
        lock: "db/backup".to_owned(),
        fence: fence(),
    };
    lines.add(&NodeMessage::Welcome(Welcome {
        session: SESSION.to_owned(),
        secret: secret(),
        node: "n1".to_owned(),
        epoch: 7,
        ping_every_ms: 3_300,
        expires_in_ms: 10_000,
        promise: PROMISE,
        handled: 6,
        last_seq: 4,
        holds: vec![held],
        waiting: vec![6],
    }));
    let promise = PROMISE;
    lines.add(&NodeMessage::Pong(Pong { n: 7, promise }));
    lines.add(&NodeMessage::Stopping(Stopping { promise }));
    lines.add(&NodeMessage::Lock(LockAnswer {
        n: 7,
        lock: lock(LockState::Free),
        recent: vec![event(EventKind::Waiting)],
    }));
    let page = LockList {
        locks: Vec::new(),
        next: None,
        silent: Vec::new(),
        reason: None,
    };
    for total in [None, Some(2)] {
        let page = page.clone();
        lines.add(&NodeMessage::Locks(LocksAnswer { n: 7, page, total }));
    }
    lines.add(&NodeMessage::Listed(Listed {
        prefix: "db/".to_owned(),
        first: 0,
        locks: vec![lock(LockState::Held)],
        rows: 1,
        is_cut: true,
        total: 2,
        silent: Vec::new(),
        reason: None,
    }));
    lines.add(&NodeMessage::Cluster(ClusterAnswer {
        n: 7,
        cluster: cluster(NodeState::Member),
    }));
    lines.add(&NodeMessage::Event(event(EventKind::Waiting)));
    lines.add(&NodeMessage::Closed(Closed {
        code: Code::Resumed,
        detail: "a sentence for people".to_owned(),
    }));
}

fn problem() -> Problem {
    let advice = Advice {
        label: "See why".to_owned(),
        command: "ssh n4 systemctl status soloist".to_owned(),
    };
    Problem {
        code: ProblemCode::KeeperDown,
        level: Level::Critical,
        title: "Keeper n4 is down".to_owned(),
        since_ms: AT_MS,
        last_seen_ms: AT_MS,
        is_over: false,
        text: "a sentence for people".to_owned(),
        link: ProblemCode::KeeperDown.name().to_owned(),
        lock: None,
        node: Some("n4".to_owned()),
        from: None,
        commands: vec![advice],
    }
}

fn overview() -> Overview {
    let name = || "n2".to_owned();
    Overview {
        from: name(),
        version: "0.1.0".to_owned(),
        at_ms: AT_MS,
        epoch: 41,
        lease_ms: 3_000,
        lease_left_ms: Some(2_655),
        without_lease_for_ms: None,
        leader: Some("n3".to_owned()),
        level: Level::Critical,
        verdict: "a sentence for people".to_owned(),
        detail: "a sentence for people".to_owned(),
        problems: vec![problem()],
        well: vec!["a few words for people".to_owned()],
        keepers: vec![KeeperInfo {
            name: name(),
            state: KeeperState::Follows,
            since_ms: None,
        }],
        members: vec![MemberInfo {
            name: name(),
            is_keeper: true,
            lease_left_ms: Some(2_655),
            holds: Some(2),
            waiters: Some(1),
            answered_in_ms: Some(0.4),
            version: Some("0.1.0".to_owned()),
        }],
        outside: vec![OutsideInfo {
            name: name(),
            is_keeper: false,
            state: OutsideState::Evicted,
            reason: "a sentence for people".to_owned(),
            since_ms: Some(AT_MS),
        }],
        links_down: vec![LinkDown {
            from: name(),
            to: "n3".to_owned(),
            since_ms: AT_MS,
        }],
        silent: vec![name()],
    }
}

fn dashboard(lines: &mut Lines) {
    lines.add(&NodeMessage::Overview(Box::new(overview())));
    lines.add(&NodeMessage::Overview(Box::new(Overview {
        lease_left_ms: None,
        without_lease_for_ms: Some(12_000),
        leader: None,
        level: Level::Unknown,
        ..overview()
    })));
    let point = Point {
        entries: 397,
        wait_p50_ms: Some(3.0),
        wait_p99_ms: Some(184.5),
        hand_over_p50_ms: None,
        hand_over_p99_ms: None,
        lost: 0,
    };
    lines.add(&NodeMessage::History(History {
        from_s: AT_MS / 1000,
        points: vec![None, Some(point)],
    }));
    let kinds = [
        ChangeKind::Joined,
        ChangeKind::Left,
        ChangeKind::Evicted,
        ChangeKind::Elected,
        ChangeKind::Epoch,
        ChangeKind::Lost,
        ChangeKind::LinkDown,
        ChangeKind::LinkUp,
    ];
    let changes = kinds.map(|kind| Change {
        id: "n3:17".to_owned(),
        at_ms: AT_MS,
        kind,
        node: Some("n7".to_owned()),
        epoch: Some(41),
        what: "a few words for people".to_owned(),
        why: "a sentence for people".to_owned(),
        holds: Some(2),
        is_bad: true,
    });
    let changes = changes.into();
    lines.add(&NodeMessage::Changes(Changes { changes }));
}

#[test]
fn problems_are_named_as_in_their_json() {
    for code in ProblemCode::ALL {
        let json = serde_json::to_string(&code).unwrap();
        assert_eq!(json, format!("{:?}", code.name()));
    }
    let later: Level = serde_json::from_str(r#""of-a-later-version""#).unwrap();
    assert_eq!(later, Level::Unknown);
}

#[test]
fn every_message_of_a_session_has_its_golden_json() {
    let mut lines = Lines::default();
    hellos(&mut lines);
    for request in requests() {
        lines.add(&request);
    }
    outcomes(&mut lines);
    others(&mut lines);
    dashboard(&mut lines);
    lines.compare("session.txt");
}

#[test]
fn every_request_has_a_number_and_may_report_what_was_seen() {
    for request in requests() {
        assert_eq!((request.n(), request.seen()), (Some(7), Some(4)));
    }
}

#[test]
fn optional_fields_may_be_left_out_and_unknown_ones_are_refused() {
    let acquire: ClientMessage =
        serde_json::from_str(r#"{"acquire": {"n": 1, "lock": "a"}}"#).unwrap();
    assert_eq!((acquire.n(), acquire.seen()), (Some(1), None));
    for bad in [
        r#"{"acquire": {"n": 1, "lock": "a", "wait": 5}}"#,
        r#"{"acquire": {"n": "1", "lock": "a"}}"#,
        r#"{"acquire": {"lock": "a"}}"#,
        r#"{"ping": {"n": -1}}"#,
        r#"{"ping": {"n": 1}, "pong": {"n": 1}}"#,
        r#"{"hallo": {}}"#,
        r#""ping""#,
        "{}",
    ] {
        let read = serde_json::from_str::<ClientMessage>(bad);
        assert!(read.is_err(), "{bad}: {read:?}");
    }
}

#[test]
fn fences_are_text_and_secrets_are_not_shown() {
    let text = serde_json::to_string(&Held {
        hold: 5,
        lock: "a".to_owned(),
        fence: fence(),
    });
    let text = text.unwrap();
    assert!(text.contains(r#""fence":"18446744073709551615""#), "{text}");
    assert!(!format!("{:?}", secret()).contains("8899"));
}

#[test]
fn codes_are_named_as_in_their_json() {
    for code in Code::ALL {
        let json = serde_json::to_string(&code).unwrap();
        assert_eq!(json, format!("{:?}", code.name()));
    }
    let later: Code = serde_json::from_str(r#""of-a-later-version""#).unwrap();
    assert_eq!(later, Code::Other);
}
