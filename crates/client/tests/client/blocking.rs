//! Tests of the client for programs without tokio.

use std::time::Duration;

use soloist_client::{AcquireError, Client, EndReason, Target, WithLockError, blocking};
use tokio::runtime::Runtime;

use crate::Nodes;

/// Nodes in a runtime, and a blocking client of the first one, outside of it.
fn start(nodes: usize) -> (Runtime, Nodes, blocking::Client) {
    let runtime = Runtime::new().unwrap();
    let nodes = runtime.block_on(Nodes::start(nodes));
    let client = blocking::Client::connect(nodes.target(0)).unwrap();
    (runtime, nodes, client)
}

#[test]
fn a_guard_holds_the_lock_until_it_is_released_or_dropped() {
    let (_runtime, nodes, client) = start(2);
    let other = blocking::Client::connect(nodes.target(1)).unwrap();
    let (lock, other) = (client.lock("a").unwrap(), other.lock("a").unwrap());
    let guard = lock.acquire().unwrap();
    assert_eq!(guard.name().as_str(), "a");
    assert!(!guard.valid_for().is_zero());
    let denied = other.acquire_within(Duration::from_millis(50));
    assert!(
        matches!(denied, Err(AcquireError::NotGranted { .. })),
        "{denied:?}"
    );
    let first = guard.fence();
    guard.release().unwrap();
    let guard = other.acquire().unwrap();
    assert!(guard.fence() > first);
    drop(guard);
    let fence = lock.with(|fence| fence).unwrap();
    assert!(fence > first);
}

#[test]
fn threads_share_a_client_and_exclude_each_other() {
    let (_runtime, _nodes, client) = start(1);
    let count = std::sync::Mutex::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let lock = client.lock("a").unwrap();
            let count = &count;
            scope.spawn(move || {
                for _ in 0..25 {
                    let entered = lock.with(|_| *count.try_lock().expect("one at a time") += 1);
                    entered.unwrap();
                }
            });
        }
    });
    assert_eq!(*count.lock().unwrap(), 100);
}

#[test]
fn a_hold_is_renewed_while_the_thread_works_and_its_loss_is_told() {
    let (runtime, nodes, _client) = start(1);
    let ttl = Duration::from_millis(400);
    let settings = Client::builder().ttl(ttl);
    let client = blocking::Client::connect_with(settings, nodes.target(0)).unwrap();
    let lock = client.lock("a").unwrap();
    // The work blocks its thread for longer than the time to live.
    let worked = lock.with(|_| runtime.block_on(async { tokio::time::sleep(ttl * 3).await }));
    worked.unwrap();
    let guard = lock.acquire().unwrap();
    let lost = lock_lost(&runtime, &nodes, &guard);
    assert_eq!(lost, EndReason::NodeStopped);
    let refused = lock.with(|_| ());
    assert!(
        matches!(refused, Err(WithLockError::NotAcquired(_))),
        "{refused:?}"
    );
}

/// Stops the node, and returns the reason that the guard is told.
fn lock_lost(runtime: &Runtime, nodes: &Nodes, guard: &blocking::Guard) -> EndReason {
    let node = nodes.cluster.nodes[0].clone();
    runtime.spawn(async move { node.stop(Duration::ZERO).await });
    guard.lost().reason
}

#[test]
fn an_unreachable_node_is_an_error() {
    let error = blocking::Client::connect(Target::socket("/no/such.sock")).unwrap_err();
    assert!(error.to_string().contains("/no/such.sock"), "{error}");
}
