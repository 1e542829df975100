//! The outcomes that clients have not seen are bounded, whether their sessions have connections or
//! not.

use std::time::Duration;

use soloist_algorithms::Choice;
use soloist_api::session::{Acquire, Cancel, ClientMessage, Code, Release, UNSEEN_MAX};
use soloist_core::limits::Limits;
use soloist_core::locks::{Client, Effects};
use soloist_core::sessions::{
    ConnectionId, Outcome, Push, SessionId, UNSEEN_CLIENT_MAX, UNSEEN_NODE_MAX,
};

use crate::cluster::Cluster;
use crate::{name, seconds};

/// A node on which lock "a" is held, and its clients.
struct Node {
    cluster: Cluster,
    sessions: u64,
}

impl Node {
    fn new() -> Self {
        let choice = Choice::parse("raymond", "").unwrap();
        let mut cluster = Cluster::with_limits(choice, 1, 1, Limits::default(), 1000);
        let ask = Cluster::ask(None, None);
        cluster.acquire(0, &name("a"), ask).unwrap();
        let sessions = 0;
        Node { cluster, sessions }
    }

    fn open(&mut self, client: &str) -> (SessionId, ConnectionId) {
        self.sessions += 1;
        let (client, connection) = (Client::new(client), ConnectionId(self.sessions));
        let (opened, _) = self.cluster.change(0, |table, now, out| {
            table.open_session(now, client, "me".into(), seconds(600), connection, out)
        });
        (opened.unwrap(), connection)
    }

    /// Sends a message. Returns the code with which it was refused, if it was.
    fn send(
        &mut self,
        (session, connection): (SessionId, ConnectionId),
        message: ClientMessage,
    ) -> Option<Code> {
        let (_, pushes) = self.cluster.change(0, |table, now, out| {
            table.receive_from_session(now, session, connection, message, out)
        });
        pushes.into_iter().find_map(|push| match push.push {
            Push::Refused(failure) => Some(failure.code),
            _ => None,
        })
    }

    /// Requests the lock for a short time with new sessions of this client, until one is refused.
    /// None of them reports an outcome as seen. Returns the number of outcomes.
    fn fill(&mut self, client: &str) -> usize {
        let mut outcomes = 0;
        loop {
            let at = self.open(client);
            for n in 1..=UNSEEN_MAX as u64 {
                // The session's own limit comes later.
                if let Some(code) = self.send(at, acquire(n, "a", None)) {
                    assert_eq!(code, Code::Busy);
                    return outcomes + self.deny();
                }
            }
            outcomes += self.deny();
            assert!(outcomes < 2 * UNSEEN_CLIENT_MAX, "no request is refused");
            let (session, connection) = at;
            self.cluster
                .change(0, |table, _, _| table.cut_session(session, connection));
        }
    }

    /// Lets all requests time out. Returns how many did.
    fn deny(&mut self) -> usize {
        self.cluster.now = self.cluster.now + Duration::from_millis(2);
        let (_, pushes) = self
            .cluster
            .change(0, |table, now, out| table.tick(now, out));
        let is_failure = |push: &Push| matches!(push, Push::Outcome(_, Outcome::Failed(_)));
        pushes.iter().filter(|push| is_failure(&push.push)).count()
    }
}

fn acquire(n: u64, lock: &str, seen: Option<u64>) -> ClientMessage {
    ClientMessage::Acquire(Acquire {
        n,
        lock: lock.to_owned(),
        wait_ms: Some(1),
        owner: None,
        seen,
    })
}

#[test]
fn the_unseen_outcomes_of_all_sessions_of_a_client_are_bounded() {
    let mut node = Node::new();
    let outcomes = node.fill("greedy");
    let most = UNSEEN_CLIENT_MAX + UNSEEN_MAX;
    assert!((UNSEEN_CLIENT_MAX..most).contains(&outcomes), "{outcomes}");
    // Who reports what it has seen goes on, and so does another client.
    for client in ["greedy", "another"] {
        let at = node.open(client);
        assert_eq!(node.send(at, acquire(1, client, None)), None);
        let (hold, seen) = (1, Some(1));
        let release = Release {
            n: 2,
            hold,
            later: false,
            seen,
        };
        assert_eq!(node.send(at, ClientMessage::Release(release)), None);
        assert_eq!(node.send(at, acquire(3, client, Some(2))), None);
    }
}

#[test]
fn the_unseen_outcomes_of_all_clients_are_bounded() {
    let mut node = Node::new();
    let clients = (1..).map(|number| format!("client {number}"));
    let mut outcomes = 0;
    for client in clients.take(2 * UNSEEN_NODE_MAX / UNSEEN_CLIENT_MAX) {
        outcomes += node.fill(&client);
    }
    let most = UNSEEN_NODE_MAX + 10 * UNSEEN_MAX;
    assert!((UNSEEN_NODE_MAX..most).contains(&outcomes), "{outcomes}");
}

#[test]
fn the_outcomes_of_a_session_that_ends_no_longer_count() {
    let mut node = Node::new();
    node.fill("greedy");
    node.cluster.now = node.cluster.now + seconds(600);
    node.cluster.tick(0);
    assert_eq!(node.cluster.tables[0].sessions(), 0);
    let at = node.open("greedy");
    for n in 1..=100 {
        assert_eq!(node.send(at, acquire(n, "a", None)), None);
    }
}

/// Such a `done` has no `seq`: the client need not have seen it.
#[test]
fn a_cancel_without_effect_is_not_kept() {
    let mut node = Node::new();
    let (session, connection) = node.open("me");
    let mut out = Effects::new();
    for n in 1..=3 {
        let (request, seen) = (100, None);
        let cancel = ClientMessage::Cancel(Cancel { n, request, seen });
        let (table, now) = (&mut node.cluster.tables[0], node.cluster.now);
        table.receive_from_session(now, session, connection, cancel, &mut out);
    }
    let pushes: Vec<Push> = out.pushes.into_iter().map(|push| push.push).collect();
    assert_eq!(pushes, [Push::Done(1), Push::Done(2), Push::Done(3)]);
}
