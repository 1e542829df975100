//! Pins the JSON of every type of the HTTP API, so that each release understands the others.
//! A line of `tests/golden/json.txt` is a type and one of its values as JSON.
//!
//! Set `UPDATE_GOLDEN=1` to rewrite the file, and read the diff before you commit it: a changed
//! line means that old clients and new nodes do not understand each other. A new line is safe.

use std::fmt::{Debug, Write as _};
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{
    AcquireRequest, Cluster, Departed, EndReason, Error, ErrorKind, Event, EventKind, Fence, Hold,
    Holder, LockInfo, LockList, LockState, NodeHealth, NodeInfo, NodeState, RenewRequest, Waiter,
};

/// Collects the lines of the golden file.
#[derive(Default)]
pub(crate) struct Lines(String);

impl Lines {
    /// Adds a value, and checks that its JSON is read back as the same value.
    pub(crate) fn add<T: Serialize + DeserializeOwned + PartialEq + Debug>(&mut self, value: &T) {
        let json = serde_json::to_string(value).unwrap();
        let read: T = serde_json::from_str(&json).unwrap();
        assert_eq!(read, *value);
        let path = std::any::type_name::<T>();
        let name = path.rsplit("::").next().unwrap();
        writeln!(self.0, "{name} {json}").unwrap();
    }

    /// Compares the lines with a file in `tests/golden`, or writes it.
    pub(crate) fn compare(self, file: &str) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
        let path = folder.join(file);
        if std::env::var("UPDATE_GOLDEN").is_ok_and(|value| value == "1") {
            std::fs::write(&path, self.0).unwrap();
        } else {
            let golden = std::fs::read_to_string(&path)
                .unwrap_or_else(|error| panic!("{}: {error}; see UPDATE_GOLDEN", path.display()));
            assert_eq!(golden, self.0, "{}", path.display());
        }
    }
}

fn error(error: ErrorKind) -> Error {
    // Each kind has to be in the golden file: a new one goes into `Lines::errors` too.
    match error {
        ErrorKind::BadRequest
        | ErrorKind::Unauthorized
        | ErrorKind::NoSuchHold
        | ErrorKind::NotGranted
        | ErrorKind::Ended
        | ErrorKind::TooMany
        | ErrorKind::Conflict
        | ErrorKind::Stopping
        | ErrorKind::Unavailable
        | ErrorKind::Other => {}
    }
    Error {
        error,
        detail: "a sentence for people".to_owned(),
        reason: None,
        ended_ago_ms: None,
    }
}

pub(crate) fn lock(state: LockState) -> LockInfo {
    match state {
        LockState::Free
        | LockState::Held
        | LockState::Changing
        | LockState::Unknown
        | LockState::Other => {}
    }
    LockInfo {
        name: "db/backup".to_owned(),
        state,
        algorithm: "raymond".to_owned(),
        holder: None,
        waiters: Vec::new(),
        waiting: 0,
        silent: Vec::new(),
        reason: None,
    }
}

pub(crate) fn event(event: EventKind) -> Event {
    match event {
        EventKind::Waiting
        | EventKind::GaveUp
        | EventKind::Acquired
        | EventKind::Released
        | EventKind::Lost
        | EventKind::Missed
        | EventKind::Other => {}
    }
    Event {
        event,
        at_unix_ms: 1_700_000_000_000,
        node: "n1".to_owned(),
        lock: "db/backup".to_owned(),
        owner: "cron@web1".to_owned(),
        fence: None,
        after_us: None,
        reason: None,
        missed: None,
        cursor: None,
    }
}

pub(crate) fn cluster(state: NodeState) -> Cluster {
    match state {
        NodeState::Member | NodeState::Changing | NodeState::Outside | NodeState::Other => {}
    }
    Cluster {
        node: "n1".to_owned(),
        state,
        reason: None,
        epoch: 7,
        leader: None,
        algorithm: "raymond".to_owned(),
        nodes: Vec::new(),
        departed: Vec::new(),
    }
}

impl Lines {
    fn requests(&mut self) {
        self.add(&AcquireRequest::default());
        self.add(&AcquireRequest {
            wait_ms: Some(0),
            ttl_ms: Some(30_000),
            owner: Some("cron@web1".to_owned()),
            request_id: Some("00112233445566778899aabbccddeeff".to_owned()),
        });
        self.add(&RenewRequest::default());
        self.add(&RenewRequest {
            ttl_ms: Some(30_000),
        });
    }

    fn holds(&mut self) {
        let hold = Hold {
            hold: "00112233445566778899aabbccddeeff".to_owned(),
            fence: Fence::from_number(u64::MAX),
            lock: "db/backup".to_owned(),
            valid_for_ms: 2_900,
            expires_in_ms: 30_000,
            ending: None,
        };
        self.add(&hold);
        self.add(&Hold {
            ending: Some(EndReason::NodeStopped),
            ..hold
        });
    }

    fn errors(&mut self) {
        for kind in [
            ErrorKind::BadRequest,
            ErrorKind::Unauthorized,
            ErrorKind::NoSuchHold,
            ErrorKind::NotGranted,
            ErrorKind::Ended,
            ErrorKind::TooMany,
            ErrorKind::Conflict,
            ErrorKind::Stopping,
            ErrorKind::Unavailable,
            ErrorKind::Other,
        ] {
            self.add(&error(kind));
        }
        self.add(&Error {
            reason: Some(EndReason::Expired),
            ended_ago_ms: Some(1_500),
            ..error(ErrorKind::Ended)
        });
    }

    fn locks(&mut self) {
        for state in [LockState::Free, LockState::Changing, LockState::Unknown] {
            self.add(&lock(state));
        }
        let holder = Holder {
            owner: "cron@web1".to_owned(),
            node: "n1".to_owned(),
            fence: Fence::from_number(4_294_967_297),
            held_for_ms: 1_500,
            since_unix_ms: 1_700_000_000_000,
            expires_in_ms: None,
        };
        self.add(&holder);
        let waiter = Waiter {
            position: 1,
            owner: "cron@web2".to_owned(),
            node: "n2".to_owned(),
            waited_for_ms: 900,
        };
        self.add(&waiter);
        let held = LockInfo {
            holder: Some(Holder {
                expires_in_ms: Some(28_500),
                ..holder
            }),
            waiters: vec![waiter],
            waiting: 1,
            silent: vec!["n3".to_owned()],
            reason: Some("a sentence for people".to_owned()),
            ..lock(LockState::Held)
        };
        self.add(&held);
        self.add(&LockList {
            locks: Vec::new(),
            next: None,
            silent: Vec::new(),
            reason: None,
        });
        self.add(&LockList {
            locks: vec![lock(LockState::Free), held],
            next: Some("db/backup".to_owned()),
            silent: vec!["n3".to_owned()],
            reason: Some("a sentence for people".to_owned()),
        });
    }

    fn clusters(&mut self) {
        for state in [NodeState::Member, NodeState::Changing, NodeState::Outside] {
            self.add(&cluster(state));
        }
        let health = NodeHealth {
            version: "0.1.0".to_owned(),
            locks: 3,
            holds: 2,
            waiters: 1,
            links_up: 4,
        };
        self.add(&health);
        let node = NodeInfo {
            name: "n1".to_owned(),
            address: "127.0.0.1:7401".to_owned(),
            keeper: false,
            lease_ms: None,
            health: None,
            problem: None,
        };
        self.add(&node);
        let whole = NodeInfo {
            keeper: true,
            lease_ms: Some(9_000),
            health: Some(health),
            problem: Some("a sentence for people".to_owned()),
            ..node.clone()
        };
        self.add(&Cluster {
            reason: Some("a sentence for people".to_owned()),
            leader: Some("n1".to_owned()),
            nodes: vec![whole, node],
            departed: vec![Departed {
                name: "n4".to_owned(),
                at_unix_ms: 1_700_000_000_000,
                evicted: true,
                reason: "a sentence for people".to_owned(),
            }],
            ..cluster(NodeState::Member)
        });
    }

    fn events(&mut self) {
        self.add(&event(EventKind::Waiting));
        self.add(&Event {
            after_us: Some(250),
            ..event(EventKind::GaveUp)
        });
        self.add(&Event {
            fence: Some(Fence::from_number(4_294_967_297)),
            after_us: Some(250),
            ..event(EventKind::Acquired)
        });
        self.add(&Event {
            fence: Some(Fence::from_number(4_294_967_297)),
            after_us: Some(250),
            ..event(EventKind::Released)
        });
        self.add(&Event {
            fence: Some(Fence::from_number(4_294_967_297)),
            after_us: Some(250),
            reason: Some(EndReason::Expired),
            ..event(EventKind::Lost)
        });
        self.add(&Event {
            lock: String::new(),
            owner: String::new(),
            missed: Some(12),
            cursor: Some("n1:12c,n2:0".to_owned()),
            ..event(EventKind::Missed)
        });
    }
}

#[test]
fn every_type_has_its_golden_json() {
    let mut lines = Lines::default();
    lines.requests();
    lines.holds();
    lines.errors();
    lines.locks();
    lines.clusters();
    lines.events();
    lines.compare("json.txt");
}

/// What the server-sent event is called and what its JSON calls it are the same.
#[test]
fn events_are_named_as_in_their_json() {
    for kind in [
        EventKind::Waiting,
        EventKind::Acquired,
        EventKind::Released,
        EventKind::Lost,
        EventKind::Missed,
    ] {
        let json = serde_json::to_string(&kind).unwrap();
        assert_eq!(json, format!("\"{}\"", kind.name()));
    }
}
