//! Nodes that are killed with SIGKILL.

use std::time::Instant;

use soloist_client::api::{Event, EventKind, LockState};
use soloist_client::{EndReason, Events, Guard, Moment};

use crate::cluster::{Cluster, Plan};
use crate::workers::Workers;
use crate::{ALL, GRACE, LEASE, LOCKS, all_but, keepers_but, until};

#[tokio::test(flavor = "multi_thread")]
async fn next_waiter_enters_after_a_killed_holders_lease_expires() {
    let mut cluster = Cluster::start(Plan::default()).await;
    let mut workers = Workers::new();
    let mut holders = Vec::new();
    for lock in LOCKS {
        holders.push(workers.enter(&cluster, 4, lock).await);
    }
    let waiting = workers.start(&cluster, &[1, 2, 3], &LOCKS);
    let client = cluster.client(1).await;
    for lock in LOCKS {
        until("three wait", async || {
            client.lock_info(lock).await.unwrap().waiting == 3
        })
        .await;
    }

    cluster.kill(4);
    let killed = Instant::now();
    workers.referee.serves(&waiting, LEASE + GRACE).await;
    for (lock, holder) in LOCKS.iter().zip(&holders) {
        let next = workers.referee.follows(lock, holder.fence()).await;
        let takeover = next.at - killed;
        println!("takeover of {lock} after kill -9: {takeover:?} (lease {LEASE:?})");
        assert!(takeover < LEASE + GRACE, "{takeover:?}");
        let validity = holder.guard().valid_until();
        assert!(validity < Moment::now(), "the lease is not over yet");
        assert!(holder.write().is_err(), "a late write was accepted");
    }
    drop(holders);
    cluster.restart(4).await;
    let back = workers.start(&cluster, &[4], &LOCKS);
    workers.referee.serves(&back, GRACE).await;
    workers.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_waits_long_for_a_killed_waiter() {
    let mut cluster = Cluster::start(Plan::default()).await;
    let mut workers = Workers::new();
    let mut holders = Vec::new();
    for lock in LOCKS {
        holders.push(workers.enter(&cluster, 1, lock).await);
    }
    workers.start(&cluster, &[4], &LOCKS);
    let alive = workers.start(&cluster, &[0, 2, 3], &LOCKS);
    let client = cluster.client(1).await;
    for lock in LOCKS {
        until("four wait", async || {
            client.lock_info(lock).await.unwrap().waiting == 4
        })
        .await;
    }

    cluster.kill(4);
    for holder in holders {
        holder.leave().await.expect("it was not lost");
    }
    let served = workers.referee.serves(&alive, LEASE + GRACE).await;
    println!("all others were served {served:?} after kill -9 of a waiter (lease {LEASE:?})");
    let lost = workers.referee.losses();
    assert!(lost.is_empty(), "{lost:?}");
    workers.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn locks_work_without_a_killed_keeper_and_it_returns_from_its_disk() {
    let mut cluster = Cluster::start(Plan::default()).await;
    let leader = cluster.led_by(4, &[0, 1, 2]).await;
    let [victim, other] = keepers_but(leader);
    let mut workers = Workers::new();
    workers.start(&cluster, &[victim], &LOCKS);
    let alive = workers.start(&cluster, &[leader, other, 3, 4], &LOCKS);
    workers.referee.serves(&alive, GRACE).await;

    let killed = Instant::now();
    cluster.kill(victim);
    cluster.together(&all_but(victim)).await;
    workers.referee.serves(&alive, GRACE).await;
    for lock in LOCKS {
        let pause = workers.referee.longest_pause(lock, killed);
        println!("longest pause of {lock} after kill -9 of a keeper: {pause:?}");
        assert!(pause < LEASE + GRACE, "{pause:?}");
    }
    let lost = workers.referee.losses();
    let of_others = lost.iter().filter(|lost| alive.contains(&lost.worker));
    assert_eq!(of_others.count(), 0, "{lost:?}");

    cluster.restart(victim).await;
    // Its vote counts again: without another keeper, there is a majority only with this one.
    cluster.kill(other);
    cluster.together(&all_but(other)).await;
    let rest: Vec<usize> = all_but(other);
    let names = rest
        .iter()
        .flat_map(|node| LOCKS.map(|lock| format!("n{node} {lock}")));
    let names: Vec<String> = names.collect();
    workers.referee.serves(&names, LEASE + GRACE).await;
    workers.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn holds_outlive_the_keepers_leader() {
    let lease = 2 * LEASE;
    let mut cluster = Cluster::start(Plan {
        lease,
        ..Plan::default()
    })
    .await;
    let mut workers = Workers::new();
    let leader = cluster.led_by(4, &[0, 1, 2]).await;
    let rest = all_but(leader);
    let mut holders = Vec::new();
    for (&node, lock) in rest.iter().zip(LOCKS) {
        let lock = lock.replace("/a", "/held");
        holders.push(workers.enter(&cluster, node, &lock).await);
    }
    let alive = workers.start(&cluster, &rest, &LOCKS);
    workers.referee.serves(&alive, GRACE).await;

    let killed = Instant::now();
    cluster.kill(leader);
    cluster.led_by(4, &keepers_but(leader)).await;
    println!("another leader {:?} after kill -9", killed.elapsed());
    cluster.together(&rest).await;
    println!(
        "an epoch without the killed one {:?} after",
        killed.elapsed()
    );
    workers.referee.serves(&alive, lease + GRACE).await;
    let back = Instant::now();
    cluster.restart(leader).await;
    println!("started again, it took part after {:?}", back.elapsed());
    // By then, leases that were not renewed would have expired twice.
    tokio::time::sleep((2 * lease).saturating_sub(killed.elapsed())).await;
    for holder in holders {
        assert_eq!(holder.write(), Ok(()));
        holder.leave().await.expect("it was not lost");
    }
    let lost = workers.referee.losses();
    assert!(lost.is_empty(), "{lost:?}");
    workers.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_majority_of_keepers_nobody_is_inside() {
    let plan = Plan {
        nodes: 6,
        keepers: 5,
        ..Plan::default()
    };
    let mut cluster = Cluster::start(plan).await;
    let mut workers = Workers::new();
    let leader = cluster.led_by(5, &[0, 1, 2, 3, 4]).await;
    let others: Vec<usize> = (0..5).filter(|keeper| *keeper != leader).collect();
    let holder = workers.enter(&cluster, 5, "raymond/held").await;
    let alive = workers.start(&cluster, &[5, leader, others[3]], &LOCKS);
    cluster.kill(others[0]);
    cluster.kill(others[1]);
    cluster
        .together(&sorted([leader, others[2], others[3], 5]))
        .await;
    workers.referee.serves(&alive, LEASE + GRACE).await;
    assert_eq!(holder.write(), Ok(()), "a minority of the keepers is gone");

    let mut events = cluster.client(5).await.events().await.unwrap();
    let killed = Instant::now();
    cluster.kill(others[2]);
    let told = tokio::time::timeout(LEASE + GRACE, holder.guard().lost());
    let loss = told.await.expect("the holder is told of its loss");
    let after = killed.elapsed();
    println!("told of the loss ({}) after {after:?}", loss.reason);
    assert!(after < LEASE + LEASE / 2, "{after:?}");
    let end = end_event(&mut events, "raymond/held").await;
    match end.event {
        EventKind::Lost => assert_eq!(end.reason, Some(EndReason::EpochLost)),
        // The client's promise ends a little before the node's lease. If the client notices that
        // first, it gives the hold up by a release, which may arrive before the lease ends.
        _ => assert_eq!(loss.reason, EndReason::Expired),
    }

    let client = cluster.client(5).await;
    for node in [5, leader, others[3]] {
        until("the node takes no part", async || {
            !cluster.is_member(node).await
        })
        .await;
    }
    let info = client.lock_info("raymond/held").await.unwrap();
    assert_eq!(info.state, LockState::Unknown, "{info:?}");
    let entries = workers.referee.entries().len();
    tokio::time::sleep(2 * LEASE).await;
    assert_eq!(workers.referee.entries().len(), entries, "a worker entered");

    cluster.spawn(others[0]);
    cluster.spawn(others[1]);
    cluster
        .together(&sorted([leader, others[0], others[1], others[3], 5]))
        .await;
    workers.referee.serves(&alive, LEASE + GRACE).await;
    assert!(holder.guard().valid_for().is_zero());
    workers.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_continues_after_a_power_failure() {
    let mut cluster = Cluster::start(Plan::default()).await;
    let mut workers = Workers::new();
    let names = workers.start(&cluster, &ALL, &LOCKS);
    workers.referee.serves(&names, GRACE).await;
    let holder = workers.enter(&cluster, 4, "maekawa/held").await;
    ALL.into_iter().for_each(|node| cluster.kill(node));
    let began = Instant::now();
    ALL.into_iter().for_each(|node| cluster.spawn(node));
    cluster.together(&ALL).await;
    println!(
        "together {:?} after all were started again",
        began.elapsed()
    );
    workers.referee.serves(&names, LEASE + GRACE).await;
    let next = workers.enter(&cluster, 3, "maekawa/held").await;
    assert!(next.fence() > holder.fence());
    assert!(holder.write().is_err(), "a late write was accepted");
    next.leave().await.unwrap();
    workers.end().await;
}

/// The event that ends the hold of this lock.
async fn end_event(events: &mut Events, lock: &str) -> Event {
    let found = async {
        loop {
            let event = events.next().await.unwrap().expect("the stream continues");
            let is_end = matches!(event.event, EventKind::Lost | EventKind::Released);
            if is_end && event.lock == lock {
                return event;
            }
        }
    };
    tokio::time::timeout(GRACE, found)
        .await
        .expect("an event in time")
}

fn sorted<const N: usize>(mut nodes: [usize; N]) -> [usize; N] {
    nodes.sort_unstable();
    nodes
}
