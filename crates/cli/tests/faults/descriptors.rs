//! Nodes with a low limit of open files.

use std::os::unix::net::UnixStream;
use std::time::Instant;

use rustix::process::{Resource, getrlimit, setrlimit};
use soloist_testing::wait::within;

use crate::cluster::{Cluster, Plan};
use crate::workers::Workers;
use crate::{ALL, GRACE, LEASE, LOCKS};

/// The soft limit on most systems. The test also makes it the hard limit, so that nodes cannot
/// raise it.
const FILES: usize = 1024;
const IDLE: usize = 2000;

#[tokio::test(flavor = "multi_thread")]
async fn idle_clients_of_the_leader_do_not_keep_other_nodes_out() {
    raise_own_limit();
    let mut cluster = Cluster::init(&Plan::default());
    ALL.into_iter()
        .for_each(|node| cluster.limit_files(node, FILES));
    ALL.into_iter().for_each(|node| cluster.spawn(node));
    cluster.together(&ALL).await;
    let mut workers = Workers::new();
    let leader = cluster.led_by(4, &[0, 1, 2]).await;
    let socket = cluster.file(leader, "soloist.sock");
    let mut idle = Vec::new();
    while idle.len() < IDLE {
        let socket = socket.clone();
        // Connecting blocks while the accept queue is full.
        let connected = tokio::task::spawn_blocking(move || UnixStream::connect(socket)).await;
        idle.push(connected.unwrap().unwrap());
    }
    let others = crate::all_but(leader);
    let began = Instant::now();
    for &node in &others {
        cluster.kill(node);
        cluster.spawn(node);
    }
    for &node in &others {
        let what = format!("n{node} is a member");
        let joined = within(5 * LEASE + GRACE, &what, async || {
            cluster.is_member(node).await
        });
        joined.await;
    }
    println!(
        "all others were back {:?} after they were killed",
        began.elapsed()
    );
    let names = workers.start(&cluster, &others, &LOCKS);
    workers.referee.serves(&names, 2 * LEASE + GRACE).await;
    drop(idle);
    cluster.together(&ALL).await;
    workers.end().await;
}

/// Raises the limit of the test itself, for its sockets.
fn raise_own_limit() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).unwrap();
    let enough = limit.current.is_none_or(|files| files > 2 * IDLE as u64);
    assert!(enough, "this test needs {} files: {limit:?}", 2 * IDLE);
}
