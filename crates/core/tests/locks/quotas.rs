//! Quotas: one client cannot use up everything.

use soloist_algorithms::{Choice, NodeId};
use soloist_core::limits::{Limits, Quota};
use soloist_core::locks::{
    Client, Effects, Epoch, Inside, LockRequest, Quantity, QuotaError, RequestError,
};

use crate::cluster::{Cluster, members};
use crate::name;

const MANY: Quota = Quota {
    holds: 1000,
    waiters: 1000,
    name_bytes: 100_000,
};

fn limited(node: Quota, client: Quota) -> Cluster {
    let raymond = Choice::parse("raymond", "").unwrap();
    Cluster::with_limits(raymond, 1, 1, Limits { node, client }, 1000)
}

fn of(client: &str) -> LockRequest {
    LockRequest {
        client: Client::new(client),
        ..Cluster::ask(None, None)
    }
}

fn full(client: Option<&str>, what: Quantity, max: usize) -> RequestError {
    let client = client.map(Client::new);
    QuotaError { client, what, max }.into()
}

#[test]
fn a_client_with_too_many_holds_is_refused_and_others_are_not() {
    let mut cluster = limited(MANY, Quota { holds: 10, ..MANY });
    for number in 0..10 {
        let lock = name(&format!("greedy/{number}"));
        cluster.acquire(0, &lock, of("greedy")).unwrap();
    }
    let refused = cluster.acquire(0, &name("one more"), of("greedy"));
    let error = full(Some("greedy"), Quantity::Holds, 10);
    assert_eq!(refused, Err(error.clone()));
    for part in ["greedy", "10 holds", "limits.client_holds", "release"] {
        assert!(error.to_string().contains(part), "{error}");
    }
    assert_eq!(cluster.tables[0].counts().refused["limits.client_holds"], 1);
    cluster.acquire(0, &name("one more"), of("modest")).unwrap();
    // What is released can be used again.
    let hold = cluster.hold_of(0, &name("greedy/3"));
    cluster.release(0, hold).unwrap();
    cluster.acquire(0, &name("another"), of("greedy")).unwrap();
    let refused = cluster.acquire(0, &name("and another"), of("greedy"));
    assert_eq!(refused, Err(error));
}

#[test]
fn waiters_count_towards_the_quota_of_holds() {
    let mut cluster = limited(MANY, Quota { holds: 3, ..MANY });
    for lock in ["a", "b", "c"] {
        cluster.acquire(0, &name(lock), of("modest")).unwrap();
        cluster.acquire(0, &name(lock), of("greedy")).unwrap();
    }
    let refused = cluster.acquire(0, &name("d"), of("greedy"));
    assert_eq!(refused, Err(full(Some("greedy"), Quantity::Holds, 3)));
    for lock in ["a", "b", "c"] {
        let hold = cluster.hold_of(0, &name(lock));
        cluster.release(0, hold).unwrap();
    }
    let refused = cluster.acquire(0, &name("d"), of("greedy"));
    assert_eq!(refused, Err(full(Some("greedy"), Quantity::Holds, 3)));
}

#[test]
fn a_client_with_too_many_waiters_is_refused_and_others_are_not() {
    let mut cluster = limited(MANY, Quota { waiters: 5, ..MANY });
    let lock = name("a");
    cluster.acquire(0, &lock, of("modest")).unwrap();
    let tickets: Vec<_> = (0..5)
        .map(|_| cluster.acquire(0, &lock, of("greedy")).unwrap())
        .collect();
    let error = full(Some("greedy"), Quantity::Waiters, 5);
    assert_eq!(cluster.acquire(0, &lock, of("greedy")), Err(error.clone()));
    assert!(
        error.to_string().contains("limits.client_waiters"),
        "{error}"
    );
    cluster.acquire(0, &lock, of("modest")).unwrap();
    cluster.acquire(0, &name("b"), of("modest")).unwrap();
    // A waiter that is cancelled, and one that is served, make room.
    assert!(cluster.cancel(0, tickets[4]));
    cluster.acquire(0, &lock, of("greedy")).unwrap();
    assert_eq!(cluster.acquire(0, &lock, of("greedy")), Err(error));
    let hold = cluster.hold_of(0, &lock);
    cluster.release(0, hold).unwrap();
    cluster.acquire(0, &lock, of("greedy")).unwrap();
}

#[test]
fn a_client_with_too_long_names_is_refused_and_others_are_not() {
    let mut cluster = limited(
        MANY,
        Quota {
            name_bytes: 1000,
            ..MANY
        },
    );
    for letter in ["a", "b", "c"] {
        cluster
            .acquire(0, &name(&letter.repeat(256)), of("greedy"))
            .unwrap();
    }
    let refused = cluster.acquire(0, &name(&"d".repeat(256)), of("greedy"));
    let error = full(Some("greedy"), Quantity::NameBytes, 1000);
    assert_eq!(refused, Err(error.clone()));
    assert!(
        error.to_string().contains("limits.client_name_bytes"),
        "{error}"
    );
    cluster
        .acquire(0, &name(&"d".repeat(256)), of("modest"))
        .unwrap();
    cluster.acquire(0, &name("short"), of("greedy")).unwrap();
}

/// Whatever the quotas are, so that all holds fit into one change of epoch.
#[test]
fn members_share_the_holds_of_the_cluster() {
    let raymond = Choice::parse("raymond", "").unwrap();
    let many = Quota {
        holds: Limits::MOST,
        waiters: Limits::MOST,
        name_bytes: Limits::MOST,
    };
    let limits = Limits {
        node: many,
        client: many,
    };
    let mut cluster = Cluster::with_limits(raymond, 1, 1, limits, 1000);
    // As if it were one of very many members.
    let share = 3;
    let nodes = Limits::HOLDS_SHARED / share;
    cluster.tables[0].freeze();
    let epoch = Epoch {
        number: 2,
        me: NodeId::new(0),
        members: members(nodes),
        inside: Inside::default(),
    };
    cluster.tables[0].install(cluster.now, epoch, &mut Effects::new());
    let error = full(None, Quantity::Share, share);
    for (lock, fits) in [("a", true), ("b", true), ("a", true), ("c", false)] {
        let asked = cluster.acquire(0, &name(lock), of("greedy")).map(drop);
        assert_eq!(asked, if fits { Ok(()) } else { Err(error.clone()) });
    }
    for part in [
        "3 holds and waiters",
        "share of the cluster's 6400000",
        "release",
    ] {
        assert!(error.to_string().contains(part), "{error}");
    }
    assert_eq!(cluster.tables[0].counts().refused["share"], 1);
}

#[test]
fn the_node_has_quotas_of_its_own() {
    let node = Quota { holds: 4, ..MANY };
    let mut cluster = limited(node, Quota { holds: 3, ..MANY });
    for (lock, client) in [("a", "one"), ("b", "one"), ("c", "two"), ("d", "two")] {
        cluster.acquire(0, &name(lock), of(client)).unwrap();
    }
    let refused = cluster.acquire(0, &name("e"), of("three"));
    let error = full(None, Quantity::Holds, 4);
    assert_eq!(refused, Err(error.clone()));
    assert!(error.to_string().contains("limits.holds"), "{error}");
    // When all holds end, for whatever reason, their share of the quota is free again.
    cluster.tables[0].lose(cluster.now, &mut Default::default());
    assert_eq!(cluster.tables[0].holds(), 0);
    for lock in ["v", "w", "x"] {
        cluster.acquire(0, &name(lock), of("three")).unwrap();
    }
}
