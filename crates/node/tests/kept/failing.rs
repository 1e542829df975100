//! A panic ends the whole node: no part of it still appears alive.

use std::time::Duration;

use soloist_node::{AcquireError, EndReason, Guard, Locks, Mutant, http};
use tokio::net::UnixStream;
use tokio::time::timeout;

use crate::{TIMEOUT, cluster, until};

#[tokio::test(flavor = "multi_thread")]
async fn a_node_whose_core_panics_is_gone_and_others_go_on() {
    let (cluster, _folder) = cluster(3, "raymond").await;
    let nodes = &cluster.nodes;
    let server = http::serve(&nodes[2]).await.unwrap();
    let guard = nodes[2].lock("x").unwrap().acquire().await.unwrap();
    let fence = guard.fence();
    nodes[2].plant(Mutant::PanicInState);
    let lock = nodes[2].lock("y").unwrap();
    let panicked = tokio::spawn(async move { lock.acquire().await.map(drop) }).await;
    assert!(panicked.unwrap_err().is_panic());

    let failed = timeout(TIMEOUT, nodes[2].failed()).await;
    assert!(failed.expect("it is told").contains("state machine"));
    let lost = timeout(TIMEOUT, guard.lost()).await.expect("it is told");
    assert_eq!(lost.reason, EndReason::EpochLost);
    assert_eq!(guard.valid_for(), Duration::ZERO);
    assert!(guard.release().await.is_err());
    let again = nodes[2].lock("y").unwrap().acquire().await.map(drop);
    assert!(
        matches!(again, Err(AcquireError::Unavailable(_))),
        "{again:?}"
    );
    assert_eq!((nodes[2].epoch(), nodes[2].members()), (None, 0));
    let socket = server.socket().to_owned();
    let connects = || std::os::unix::net::UnixStream::connect(&socket).is_ok();
    until("its API ends", || !connects()).await;
    assert!(UnixStream::connect(&socket).await.is_err());
    // The next waiter enters once the failed node's lease has expired.
    let next = nodes[0].lock("x").unwrap();
    let next = timeout(TIMEOUT, next.acquire()).await.expect("served");
    assert!(next.unwrap().fence() > fence);
    timeout(TIMEOUT, cluster.stop()).await.expect("all stop");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_whose_task_panics_is_replaced() {
    let (cluster, _folder) = cluster(3, "raymond").await;
    let nodes = &cluster.nodes;
    // The first keeper leads after bootstrap.
    nodes[0].plant(Mutant::PanicInLeader);
    let failed = timeout(TIMEOUT, nodes[0].failed()).await;
    let failed = failed.expect("it is told");
    assert!(
        failed.contains("the leader's task panicked: a planted fault"),
        "{failed}"
    );
    crate::settle(&nodes[1..]).await;
    let lock = nodes[1].lock("x").unwrap();
    let guard = timeout(TIMEOUT, lock.acquire()).await.expect("served");
    guard.unwrap().release().await.unwrap();
    timeout(TIMEOUT, cluster.stop()).await.expect("all stop");
}
