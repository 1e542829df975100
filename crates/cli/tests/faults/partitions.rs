//! Network partitions, in one direction or both.

use std::time::{Duration, Instant};

use soloist_client::Guard;

use crate::cluster::{Cluster, Plan};
use crate::leadership::elections;
use crate::network::Network;
use crate::referee::Inside;
use crate::workers::Workers;
use crate::{ALL, GRACE, LEASE, LOCKS, TIMEOUT, all_but, isolation, keepers_but, until};

/// A member that has not answered for this long counts as unreachable.
const APART: Duration = Duration::from_secs(10);

async fn networked(lease: Duration) -> Cluster {
    let network = true;
    Cluster::start(Plan {
        network,
        lease,
        ..Plan::default()
    })
    .await
}

fn network(cluster: &Cluster) -> &Network {
    cluster.network.as_ref().expect("it has one")
}

/// Expects that each holder is told of its loss, and that the resource rejects its writes.
async fn are_lost(holders: Vec<Inside>) {
    for holder in holders {
        let told = tokio::time::timeout(TIMEOUT, holder.guard().lost());
        told.await.expect("it is told");
        assert!(holder.write().is_err(), "a late write was accepted");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_minority_that_is_cut_off_loses_its_holds() {
    if isolation::is_missing() {
        return;
    }
    let cluster = networked(LEASE).await;
    let mut workers = Workers::new();
    let mut holders = Vec::new();
    for (lock, node) in LOCKS.into_iter().zip([0, 4, 0, 4]) {
        holders.push(workers.enter(&cluster, node, lock).await);
    }
    workers.start(&cluster, &[0, 4], &LOCKS);
    let majority = workers.start(&cluster, &[1, 2, 3], &LOCKS);
    let began = Instant::now();
    network(&cluster).cut(&[0, 4], &[1, 2, 3]);
    workers.referee.serves(&majority, 2 * LEASE + GRACE).await;
    for (lock, holder) in LOCKS.iter().zip(&holders) {
        let next = workers.referee.follows(lock, holder.fence()).await;
        println!("takeover of {lock} after the cut: {:?}", next.at - began);
    }
    are_lost(holders).await;
    cluster.together(&[1, 2, 3]).await;
    for node in [0, 4] {
        until("the minority takes no part", async || {
            !cluster.is_member(node).await
        })
        .await;
    }
    network(&cluster).heal();
    heals(&cluster, workers, majority).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_cut_off_in_one_or_both_directions_is_evicted() {
    if isolation::is_missing() {
        return;
    }
    let cluster = networked(LEASE).await;
    for (case, ways) in [
        ("both", [true, true]),
        ("in", [true, false]),
        ("out", [false, true]),
    ] {
        let mut workers = Workers::new();
        let mut holders = Vec::new();
        for lock in LOCKS {
            holders.push(workers.enter(&cluster, 4, lock).await);
        }
        let others = workers.start(&cluster, &[0, 1, 2, 3], &LOCKS);
        let began = Instant::now();
        let [to_it, from_it] = ways;
        if to_it {
            network(&cluster).cut_one_way(&[0, 1, 2, 3], &[4]);
        }
        if from_it {
            network(&cluster).cut_one_way(&[4], &[0, 1, 2, 3]);
        }
        workers.referee.serves(&others, 2 * LEASE + GRACE).await;
        println!(
            "cut off ({case}): all others were served after {:?}",
            began.elapsed()
        );
        are_lost(holders).await;
        cluster.together(&[0, 1, 2, 3]).await;
        network(&cluster).heal();
        heals(&cluster, workers, others).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_without_its_keepers_is_replaced() {
    if isolation::is_missing() {
        return;
    }
    let cluster = networked(2 * LEASE).await;
    let leader = cluster.led_by(4, &[0, 1, 2]).await;
    let keepers = keepers_but(leader);
    let mut workers = Workers::new();
    let rest = all_but(leader);
    let holder = workers.enter(&cluster, 4, "raymond/held").await;
    let lost = workers.enter(&cluster, leader, "maekawa/held").await;
    workers.start(&cluster, &[leader], &LOCKS);
    let others = workers.start(&cluster, &rest, &LOCKS);
    workers.referee.serves(&others, GRACE).await;
    let began = Instant::now();
    let before = elections(&cluster);
    network(&cluster).cut(&[leader], &keepers);
    cluster.led_by(3, &keepers).await;
    println!("another leader {:?} after the cut", began.elapsed());
    cluster.together(&rest).await;
    workers.referee.serves(&others, 4 * LEASE + GRACE).await;
    println!("all others were served {:?} after the cut", began.elapsed());
    // Two candidates at the same time may need a second election, but they do not depose each other
    // again and again because a voter does not answer.
    let held = elections(&cluster) - before;
    assert!(held <= 3, "{held} elections");
    let told = tokio::time::timeout(TIMEOUT, lost.guard().lost());
    told.await.expect("it is told");
    assert_eq!(holder.write(), Ok(()), "its node was not cut off");
    holder.leave().await.expect("its node was not cut off");
    network(&cluster).heal();
    heals(&cluster, workers, others).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn members_that_cannot_reach_each_other_do_no_harm() {
    if isolation::is_missing() {
        return;
    }
    let cluster = networked(LEASE).await;
    let mut workers = Workers::new();
    let names = workers.start(&cluster, &ALL, &LOCKS);
    workers.referee.serves(&names, GRACE).await;
    // Both still reach the keepers.
    network(&cluster).cut(&[3], &[4]);
    let cut = Instant::now();
    tokio::time::sleep(3 * LEASE).await;
    for lock in LOCKS {
        let entries = workers.referee.entries();
        let entries = entries.iter().filter(|entry| entry.lock == lock);
        let during = entries.filter(|entry| entry.at > cut).count();
        println!("{during} entries of {lock} while two members could not reach each other");
    }
    network(&cluster).heal();
    heals(&cluster, workers, names).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn others_continue_while_two_members_cannot_reach_each_other() {
    if isolation::is_missing() {
        return;
    }
    let cluster = networked(LEASE).await;
    let mut workers = Workers::new();
    workers.start(&cluster, &[3, 4], &LOCKS);
    let others = workers.start(&cluster, &[0, 1, 2], &LOCKS);
    workers.referee.serves(&others, GRACE).await;
    network(&cluster).cut(&[3], &[4]);
    // Several rounds: entries in the first one may have been granted before the cut, and the
    // evicted member rejoins now and then.
    for _ in 0..3 {
        let served = workers.referee.serves(&others, APART + LEASE + GRACE).await;
        println!("all others were served within {served:?}");
    }
    let parted = !cluster.is_member(3).await || !cluster.is_member(4).await;
    assert!(parted, "one of the two is evicted");
    network(&cluster).heal();
    heals(&cluster, workers, others).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn flapping_does_no_harm() {
    if isolation::is_missing() {
        return;
    }
    let cluster = networked(LEASE).await;
    let mut workers = Workers::new();
    let names = workers.start(&cluster, &ALL, &LOCKS);
    workers.referee.serves(&names, GRACE).await;
    let before = workers.referee.entries().len();
    let flap = Duration::from_millis(300);
    for round in 0..10 {
        let one = round % 5;
        network(&cluster).cut(&[one], &all_but(one));
        tokio::time::sleep(flap).await;
        network(&cluster).heal();
        tokio::time::sleep(flap).await;
    }
    let during = workers.referee.entries().len() - before;
    println!(
        "{during} entries while the network flapped, {} losses",
        workers.referee.losses().len()
    );
    heals(&cluster, workers, names).await;
}

/// Expects that all nodes become members again and that every worker is served.
async fn heals(cluster: &Cluster, workers: Workers, names: Vec<String>) {
    let healed = Instant::now();
    cluster.together(&ALL).await;
    println!("together again {:?} after", healed.elapsed());
    workers.referee.serves(&names, 2 * LEASE + GRACE).await;
    workers.end().await;
}
