//! Nodes that join and leave in an orderly way.

use std::time::{Duration, Instant};

use soloist_client::{EndReason, Guard};

use crate::cluster::{Cluster, Plan};
use crate::workers::Workers;
use crate::{ALL, GRACE, LEASE, LOCKS};

/// Longer than the whole test, so that no step can have waited for it to expire.
const LONG_LEASE: Duration = Duration::from_secs(8);

/// Maximum time without an entry into a lock.
const PAUSE_MAX: Duration = Duration::from_secs(4);

async fn start() -> Cluster {
    let lease = LONG_LEASE;
    Cluster::start(Plan {
        lease,
        ..Plan::default()
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rolling_restart_loses_nothing_of_others() {
    let mut cluster = start().await;
    let mut workers = Workers::new();
    let names = workers.start(&cluster, &ALL, &LOCKS);
    workers.referee.serves(&names, GRACE).await;
    for node in 0..5 {
        let keeps = (node + 1) % 5;
        let holder = workers.enter(&cluster, keeps, "raymond/held").await;
        let before = workers.referee.losses().len();
        let began = Instant::now();
        let ended = cluster.end(node).await;
        let away = Instant::now();
        cluster.restart(node).await;
        println!(
            "n{node} ended within {ended:?}, and took part again after {:?}",
            away.elapsed()
        );
        assert!(ended < PAUSE_MAX, "{ended:?}");
        workers.referee.serves(&names, PAUSE_MAX + GRACE).await;
        for lock in LOCKS {
            let pause = workers.referee.longest_pause(lock, began);
            assert!(pause < PAUSE_MAX, "{lock} stood still for {pause:?}");
        }
        let own = format!("n{node} ");
        for lost in &workers.referee.losses()[before..] {
            assert!(lost.worker.starts_with(&own), "{lost:?}");
        }
        assert_eq!(holder.write(), Ok(()));
        holder.leave().await.expect("it was not lost");
    }
    workers.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_waits_for_the_lease_of_a_member_that_leaves() {
    let mut cluster = start().await;
    let mut workers = Workers::new();
    let waiting = workers.start(&cluster, &[0, 2], &LOCKS);
    // First a member, then the keepers' leader.
    let leader = cluster.led_by(4, &[0, 1, 2]).await;
    for node in [4, leader] {
        let mut holders = Vec::new();
        for lock in LOCKS {
            let holder = workers.enter(&cluster, node, lock).await;
            let fence = holder.fence();
            // When told that its node stops, the holder releases the lock.
            let leaves = tokio::spawn(async move {
                holder.guard().lost().await;
                holder.leave().await
            });
            holders.push((fence, leaves));
        }
        let began = Instant::now();
        let ended = cluster.end(node).await;
        for (lock, (fence, leaves)) in LOCKS.iter().zip(holders) {
            let next = workers.referee.follows(lock, fence).await;
            let takeover = next.at.saturating_duration_since(began);
            println!("n{node} left within {ended:?}; takeover of {lock}: {takeover:?}");
            assert!(takeover < PAUSE_MAX, "{takeover:?}");
            leaves.await.unwrap().expect("its node waited for it");
        }
        cluster.restart(node).await;
        workers.referee.serves(&waiting, PAUSE_MAX + GRACE).await;
    }
    workers.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_join_later_and_leave_again() {
    let mut cluster = start().await;
    let mut workers = Workers::new();
    let names = workers.start(&cluster, &ALL, &LOCKS);
    let holder = workers.enter(&cluster, 1, "maekawa/held").await;
    let began = Instant::now();
    cluster.add(2);
    cluster.spawn(5);
    cluster.spawn(6);
    cluster.together(&[0, 1, 2, 3, 4, 5, 6]).await;
    println!("two more took part after {:?}", began.elapsed());
    let more = workers.start(&cluster, &[5, 6], &LOCKS);
    workers.referee.serves(&more, GRACE).await;
    for node in [5, 6] {
        let ended = cluster.end(node).await;
        println!("n{node} left within {ended:?}");
    }
    cluster.together(&ALL).await;
    workers.referee.serves(&names, GRACE).await;
    for lock in LOCKS {
        let pause = workers.referee.longest_pause(lock, began);
        assert!(pause < PAUSE_MAX, "{lock} stood still for {pause:?}");
    }
    for lost in workers.referee.losses() {
        assert!(more.contains(&lost.worker), "{lost:?}");
        assert_eq!(lost.reason, EndReason::NodeStopped, "{lost:?}");
    }
    assert_eq!(holder.write(), Ok(()));
    holder.leave().await.expect("it was not lost");
    workers.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn keepers_with_a_shorter_lease_wait_for_the_longer_one_before() {
    let mut cluster = start().await;
    let workers = Workers::new();
    // Its node is not restarted, and relies on its lease until it expires.
    let holder = workers.enter(&cluster, 4, "raymond/held").await;
    for node in 0..4 {
        cluster.kill(node);
        cluster.set_lease(node, LEASE);
    }
    let relies = holder.guard().valid_for();
    assert!(relies > 2 * LEASE, "{relies:?}");
    let began = Instant::now();
    (0..4).for_each(|node| cluster.spawn(node));
    cluster.takes_part(0).await;
    println!("they continued after {:?}", began.elapsed());
    let next = workers.enter(&cluster, 0, "raymond/held").await;
    assert!(holder.guard().valid_for().is_zero(), "two rely on it");
    assert!(holder.write().is_err(), "a late write was accepted");
    next.leave().await.unwrap();
    workers.end().await;
}
