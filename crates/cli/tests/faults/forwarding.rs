//! Nodes that reach a keeper but not the leader: the keeper forwards their messages.

use std::time::Duration;

use crate::cluster::{Cluster, Plan};
use crate::workers::Workers;
use crate::{ALL, GRACE, LOCKS, all_but, isolation, keepers_but};

/// Members that cannot reach each other are not evicted before 10 s. These tests take less.
const LEASE: Duration = Duration::from_secs(3);
/// How long a cut lasts: longer than a lease with its margin.
const CUT: Duration = Duration::from_secs(5);

async fn start(nodes: usize) -> Cluster {
    Cluster::start(Plan {
        nodes,
        lease: LEASE,
        network: true,
        ..Plan::default()
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_cannot_reach_the_leader_goes_through_a_follower() {
    if isolation::is_missing() {
        return;
    }
    let mut cluster = start(5).await;
    let mut workers = Workers::new();
    let leader = cluster.led_by(4, &[0, 1, 2]).await;
    let holder = workers.enter(&cluster, 4, "raymond/held").await;
    let network = cluster.network.as_ref().expect("it has one");
    network.cut(&[4], &[leader]);
    tokio::time::sleep(CUT).await;
    assert!(cluster.is_member(4).await, "it was left outside");
    assert_eq!(holder.write(), Ok(()), "its lease ran out");
    holder.leave().await.expect("its lease ran out");

    // It can also join that way.
    cluster.kill(4);
    let followers = keepers_but(leader);
    cluster.together(&all_but(4)).await;
    cluster.restart(4).await;
    // On a busy machine, the leader may have changed by now.
    println!("cut off from n{leader}; led by {:?}", cluster.leader(4));
    // One follower dies; the other can forward too.
    cluster.kill(followers[0]);
    cluster.together(&all_but(followers[0])).await;
    cluster.restart(followers[0]).await;

    cluster.network.as_ref().expect("it has one").heal();
    cluster.together(&ALL).await;
    let names = workers.start(&cluster, &ALL, &LOCKS);
    workers.referee.serves(&names, 2 * LEASE + GRACE).await;
    workers.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn leadership_stays_where_it_is_when_each_keeper_reaches_half_of_the_members() {
    if isolation::is_missing() {
        return;
    }
    let cluster = start(7).await;
    let mut workers = Workers::new();
    let all: Vec<usize> = (0..7).collect();
    cluster.led_by(3, &[0, 1, 2]).await;
    let elections = || -> usize { (0..3).map(|keeper| cluster.elections_won(keeper)).sum() };
    let before = elections();
    let network = cluster.network.as_ref().expect("it has one");
    for (keeper, unreached) in [(0, [3, 4]), (1, [5, 6]), (2, [4, 5])] {
        network.cut(&[keeper], &unreached);
    }
    tokio::time::sleep(CUT).await;
    for node in [3, 4, 5, 6] {
        assert!(cluster.is_member(node).await, "n{node} was left outside");
    }
    // A busy machine may cause one election.
    assert!(elections() <= before + 1, "leadership moved to and fro");
    network.heal();
    cluster.together(&all).await;
    let names = workers.start(&cluster, &all, &LOCKS);
    workers.referee.serves(&names, 2 * LEASE + GRACE).await;
    workers.end().await;
}
