//! The session of a client that is dropped ends at the node at once.

use std::process::{Command, Stdio};
use std::time::Duration;

use soloist_client::{Client, Guard, Target, blocking};
use soloist_testing::http_get::{get, metric};
use tokio::runtime::{Builder, Runtime};

use crate::{Nodes, held, until};

/// Sessions that are not ended outlive the test.
const TTL: Duration = Duration::from_secs(3600);

fn start() -> (Runtime, Nodes) {
    let runtime = Runtime::new().unwrap();
    let nodes = runtime.block_on(Nodes::start(1));
    (runtime, nodes)
}

/// Waits until the node has no session.
#[track_caller]
fn all_have_ended(runtime: &Runtime, nodes: &Nodes) {
    let socket = nodes.socket(0);
    let has_none = async || metric(socket, "soloist_sessions") == 0.0;
    runtime.block_on(until("the session has ended", has_none));
    let (_, metrics) = get(socket, "/metrics");
    let bad = "soloist_session_connections_closed_total{code=\"bad-message\"}";
    let bad = metrics.lines().find(|line| line.starts_with(bad));
    assert!(bad.is_none_or(|line| line.ends_with(" 0")), "{bad:?}");
}

/// A program that uses a lock and exits, in a runtime of its own. Many times, because the node may
/// read its last messages together or one by one.
#[test]
fn a_client_that_ends_with_its_runtime_ends_its_session() {
    let (runtime, nodes) = start();
    for round in 0..50 {
        let program = Builder::new_current_thread().enable_all().build().unwrap();
        program.block_on(async {
            let client = nodes.client_with_ttl(0, TTL).await;
            let guard = held(&client, "a").await;
            match round % 2 {
                0 => guard.release().await.unwrap(),
                _ => drop(guard),
            }
        });
        drop(program);
        all_have_ended(&runtime, &nodes);
    }
}

/// Such a program may exit next: nothing of the client runs after it was dropped.
#[test]
fn a_client_that_is_dropped_after_its_guard_ends_its_session_at_once() {
    let (runtime, nodes) = start();
    let program = Builder::new_current_thread().enable_all().build().unwrap();
    for _ in 0..20 {
        program.block_on(async {
            let client = nodes.client_with_ttl(0, TTL).await;
            drop(held(&client, "a").await);
        });
        // The program's runtime is there, but no task of it runs.
        all_have_ended(&runtime, &nodes);
    }
}

#[test]
fn a_blocking_client_that_is_dropped_ends_its_session() {
    let (runtime, nodes) = start();
    for round in 0..20 {
        let settings = Client::builder().ttl(TTL);
        let client = blocking::Client::connect_with(settings, nodes.target(0)).unwrap();
        let guard = client.lock("a").unwrap().acquire().unwrap();
        match round % 2 {
            0 => guard.release().unwrap(),
            _ => drop(guard),
        }
        drop(client);
        all_have_ended(&runtime, &nodes);
    }
}

#[test]
fn a_hold_outlives_the_runtime_of_its_client() {
    let (runtime, nodes) = start();
    let program = Builder::new_current_thread().enable_all().build().unwrap();
    let guard = program.block_on(async {
        let client = nodes.client_with_ttl(0, TTL).await;
        held(&client, "a").await
    });
    drop(program);
    assert!(!guard.valid_for().is_zero());
    let other = runtime.block_on(nodes.client(0));
    let info = runtime.block_on(other.lock_info("a")).unwrap();
    assert_eq!(info.holder.map(|holder| holder.fence), Some(guard.fence()));
    assert_eq!(metric(nodes.socket(0), "soloist_sessions"), 1.0);
}

/// The socket of the node, for the process that holds a lock.
const HOLDER: &str = "SOLOIST_TEST_HOLDER";

/// Holds a lock until it is killed, in the process that the next test starts.
#[tokio::test]
async fn holder() {
    let Some(socket) = std::env::var_os(HOLDER) else {
        return;
    };
    let client = Client::builder().ttl(TTL).ends_with_process(true);
    let client = client.connect(Target::socket(socket)).await.unwrap();
    let _guard = held(&client, "a").await;
    std::future::pending().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_ends_with_its_process_if_its_client_asks_for_it() {
    let nodes = Nodes::start(1).await;
    let observer = nodes.client(0).await;
    let mut holder = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "ending::holder"])
        .env(HOLDER, nodes.socket(0))
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    until("it is held", async || {
        observer.lock_info("a").await.unwrap().holder.is_some()
    })
    .await;
    holder.kill().unwrap();
    holder.wait().unwrap();
    // Long before its time to live is over.
    held(&observer, "a").await.release().await.unwrap();
}
