//! Many holds with long names: the members' reports, and the state that an epoch starts from, are
//! far larger than one message.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures_util::{StreamExt, stream};
use soloist_api::LockName;
use soloist_core::epochs::lease::Lease;
use soloist_node::{Guard, Locks, Node, NodeGuard};
use tokio::time::{sleep, timeout};

use crate::start;

/// Longer than any of these tests takes.
const TIMEOUT: Duration = Duration::from_secs(240);

/// Unoptimised builds are slow.
const LONG: Lease = Lease {
    length: Duration::from_secs(20),
    drift: 5,
};

/// The default lease.
const SHORT: Lease = Lease {
    length: Duration::from_secs(3),
    drift: 5,
};

/// A distinct name of this length.
fn name(number: usize, length: usize) -> String {
    format!("{number:0>length$}")
}

/// Cost of one change of epoch.
#[derive(Debug)]
#[expect(dead_code, reason = "printed")]
struct Cost {
    /// Time from the request to stop the leaving node until all others are in the next epoch.
    change: Duration,
    /// Longest time that locks were suspended on a node, as measured by the node.
    standstill: Duration,
    /// Longest time between two grants, on one node, of a lock that no other node uses.
    between_grants: Duration,
    /// Longest time that a node's lease was not renewed.
    unrenewed: Duration,
    /// Memory of this process, which contains all nodes: before the change, and its maximum.
    memory_mib: (u64, u64),
}

/// Reads a line of /proc/self/status, in MiB.
fn memory(key: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(key));
    let kib = line.and_then(|line| line.split_whitespace().next());
    kib.unwrap().parse::<u64>().unwrap() / 1024
}

/// Acquires and releases a lock of its own repeatedly. Returns the longest time between two grants,
/// and the longest time without a renewal of the node's lease.
async fn watch(node: Node, lease: Lease, is_over: &AtomicBool) -> (Duration, Duration) {
    let lock = node.lock(&format!("watch/{}", node.name())).unwrap();
    let (mut between_grants, mut unrenewed) = (Duration::ZERO, Duration::ZERO);
    let mut last = None;
    while !is_over.load(Ordering::Relaxed) {
        let guard = timeout(TIMEOUT, lock.acquire()).await.expect("served");
        let guard = guard.unwrap();
        let now = Instant::now();
        let gap = now - *last.get_or_insert(now);
        between_grants = between_grants.max(gap);
        last = Some(now);
        let left = guard.valid_for();
        unrenewed = unrenewed.max(lease.length.saturating_sub(left));
        guard.release().await.unwrap();
        sleep(Duration::from_millis(1)).await;
    }
    (between_grants, unrenewed)
}

async fn acquire(node: &Node, numbers: std::ops::Range<usize>, length: usize) -> Vec<NodeGuard> {
    let acquired = stream::iter(numbers).map(|number| {
        let lock = node.lock(&name(number, length)).unwrap();
        async move { lock.acquire().await.unwrap() }
    });
    acquired.buffer_unordered(512).collect().await
}

/// Lets three nodes hold this many locks each, with names of this length. Then the fourth node
/// leaves, and the epoch changes.
async fn change(holds: [usize; 3], length: usize, lease: Lease) -> Cost {
    let (cluster, _folder) = start(4, "naimi-trehel", true, lease).await;
    let nodes = &cluster.nodes;
    let mut guards: Vec<NodeGuard> = Vec::new();
    let begin = Instant::now();
    for (node, holds) in nodes.iter().zip(holds) {
        let first = guards.len();
        guards.extend(acquire(node, first..first + holds, length).await);
    }
    println!("{holds:?} holds after {:?}", begin.elapsed());
    let lost = || {
        let lost = guards.iter().filter(|guard| guard.valid_for().is_zero());
        lost.count()
    };
    assert_eq!(lost(), 0, "before the change");
    let before = memory("VmRSS:");
    let is_over: &'static AtomicBool = Box::leak(Box::default());
    let watches = nodes[..3].iter().cloned();
    let watches = watches.map(|node| tokio::spawn(watch(node, lease, is_over)));
    let watches: Vec<_> = watches.collect();
    let begin = Instant::now();
    nodes[3].stop(Duration::ZERO).await;
    let changed = async {
        let is_in = |node: &Node| node.epoch().is_some() && node.members() == 3;
        while !nodes[..3].iter().all(is_in) {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(TIMEOUT, changed).await.expect("the epoch changes");
    let change = begin.elapsed();
    let free = nodes[1].lock("free").unwrap();
    let served = timeout(TIMEOUT, free.acquire()).await.expect("served");
    served.unwrap().release().await.unwrap();
    sleep(lease.length / 2).await;
    is_over.store(true, Ordering::Relaxed);
    let (mut between_grants, mut unrenewed) = (Duration::ZERO, Duration::ZERO);
    for watch in watches {
        let (gap, age) = watch.await.unwrap();
        between_grants = between_grants.max(gap);
        unrenewed = unrenewed.max(age);
    }
    assert_eq!(lost(), 0, "no lease expired");
    let standstills = nodes[..3].iter().filter_map(Node::standstill);
    let cost = Cost {
        change,
        standstill: standstills.max().unwrap(),
        between_grants,
        unrenewed,
        memory_mib: (before, memory("VmHWM:")),
    };
    // Held locks are still held, and are granted to the next waiter when released.
    let last = guards.pop().expect("some are held");
    let next = nodes[0].lock(last.name().as_str()).unwrap();
    assert!(next.try_acquire().await.unwrap().is_none());
    last.release().await.unwrap();
    let next = timeout(TIMEOUT, next.acquire()).await.expect("served");
    drop(next.unwrap());
    // A stopping node waits for its remaining holds.
    drop(guards);
    cluster.stop().await;
    cost
}

#[tokio::test(flavor = "multi_thread")]
async fn many_long_names_on_all_nodes_change_epoch() {
    let cost = change([24_000, 23_000, 23_000], LockName::LEN_MAX, LONG).await;
    println!("70,000 holds: {cost:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn many_long_names_on_one_node_change_epoch() {
    let cost = change([0, 0, 80_000], LockName::LEN_MAX, LONG).await;
    println!("80,000 holds on one node: {cost:?}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes, and only an optimised build is fast enough"]
async fn three_hundred_thousand_long_names_change_epoch() {
    for (length, lease) in [(16, SHORT), (LockName::LEN_MAX, SHORT)] {
        let cost = change([100_000; 3], length, lease).await;
        println!("300,000 holds with names of {length} bytes: {cost:?}");
        // The same bound as in `soloist bench --faults`, which allows 500 ms for 10,000 locks.
        let bound = Duration::from_millis(500) * 30;
        assert!(cost.standstill < bound, "{cost:?}");
        assert!(cost.unrenewed < lease.length * 2 / 3, "{cost:?}");
    }
}
