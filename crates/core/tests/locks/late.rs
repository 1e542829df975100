//! Locks that have waiters when an epoch begins, and begin it late. A waiter that leaves begins the
//! lock, so that the next one may enter.

use soloist_api::session::{Acquire, ClientMessage, Numbered};
use soloist_core::locks::{Client, Denial, Table};
use soloist_core::sessions::{ConnectionId, SessionId};

use crate::cluster::Cluster;
use crate::{name, raymond, seconds};

/// A node on which each of these clients requests the lock once while no epoch is installed. In the
/// next epoch, the lock has not begun.
fn unbegun(request: impl FnOnce(&mut Cluster)) -> Cluster {
    let mut cluster = raymond(1);
    cluster.begin_at_once(0);
    cluster.change_epoch(2, request);
    assert_eq!(cluster.queued.len(), 2);
    cluster
}

fn open(cluster: &mut Cluster) -> SessionId {
    let (client, connection) = (Client::new("me"), ConnectionId(0));
    let (opened, _) = cluster.change(0, |table, now, out| {
        table.open_session(now, client, "me".into(), seconds(10), connection, out)
    });
    opened.unwrap()
}

fn send(cluster: &mut Cluster, session: SessionId, message: ClientMessage) {
    cluster.change(0, |table, now, out| {
        table.receive_from_session(now, session, ConnectionId(0), message, out)
    });
}

/// A cluster whose node has a session with two requests for a lock that has not begun.
fn session_that_waits_twice() -> (Cluster, SessionId) {
    let mut session = None;
    let cluster = unbegun(|cluster| {
        let id = open(cluster);
        for n in [1, 2] {
            let acquire = Acquire {
                n,
                lock: "a".to_owned(),
                wait_ms: None,
                owner: None,
                seen: None,
            };
            send(cluster, id, ClientMessage::Acquire(acquire));
        }
        session = Some(id);
    });
    (cluster, session.unwrap())
}

/// What is left: holds, waiters and sessions.
fn left(table: &Table) -> [usize; 3] {
    [table.holds(), table.waiters(), table.sessions()]
}

#[test]
fn a_session_that_ends_holds_nothing_although_its_requests_enter_in_turn() {
    let (mut cluster, session) = session_that_waits_twice();
    let end = ClientMessage::End(Numbered { n: 3, seen: None });
    send(&mut cluster, session, end);
    assert_eq!(left(&cluster.tables[0]), [0, 0, 0]);
}

#[test]
fn a_session_that_expires_holds_nothing_although_its_requests_enter_in_turn() {
    let (mut cluster, _) = session_that_waits_twice();
    cluster.now = cluster.now + seconds(10);
    cluster.tick(0);
    assert_eq!(left(&cluster.tables[0]), [0, 0, 0]);
}

#[test]
fn a_node_that_stops_denies_the_waiters_that_have_not_entered_meanwhile() {
    let lock = name("a");
    let mut cluster = unbegun(|cluster| {
        for _ in 0..2 {
            cluster.acquire(0, &lock, Cluster::ask(None, None)).unwrap();
        }
    });
    cluster.stop(0);
    assert_eq!(left(&cluster.tables[0]), [1, 0, 0]);
    let denied = cluster.denied.iter().map(|(_, _, denial)| *denial);
    assert_eq!(denied.collect::<Vec<_>>(), [Denial::NodeStopped]);
}
