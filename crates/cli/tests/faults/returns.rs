//! Machines that return after they were replaced, with their old disks or re-imaged. There must
//! never be a second cluster, and every machine that returns must end up as an ordinary member.

use std::time::Duration;

use crate::cluster::{Cluster, Plan, stderr};
use crate::workers::Workers;
use crate::{ALL, GRACE, LEASE, LOCKS, TIMEOUT, until};

const SIX: [usize; 6] = [0, 1, 2, 3, 4, 5];

async fn six(lease: Duration) -> Cluster {
    Cluster::start(Plan {
        nodes: 6,
        lease,
        ..Plan::default()
    })
    .await
}

/// Expects that all nodes become members under one leader, with these keepers, and that every
/// worker is served.
async fn all_is_well(cluster: &Cluster, workers: &Workers, names: &[String], keepers: &[usize]) {
    let all: Vec<usize> = (0..cluster.size()).collect();
    cluster.settles(&workers.referee, &all, keepers).await;
    workers.referee.serves(names, TIMEOUT).await;
    cluster.settles(&workers.referee, &all, keepers).await;
    assert_eq!(cluster.leaders(&all).await.len(), 1, "leaders");
}

#[tokio::test(flavor = "multi_thread")]
async fn replaced_keepers_that_return_make_no_second_cluster() {
    let mut cluster = six(2 * LEASE).await;
    let mut workers = Workers::new();
    let names = workers.start(&cluster, &SIX, &LOCKS);
    workers.referee.serves(&names, GRACE).await;
    cluster.kill(2);
    for (new, old) in [(3, 2), (4, 1), (5, 0)] {
        cluster.promote(3, new).await;
        cluster.demote(3, old).await;
    }
    // n1 is re-imaged, and n2 still has the disk with which it was killed.
    cluster.kill(1);
    cluster.reimage(1);
    cluster.list_keepers(1, &[3, 4, 5]);
    cluster.restart(1).await;
    let elections = cluster.elections_won(2);
    cluster.restart(2).await;
    cluster.sets_store_aside(&workers.referee, 2).await;
    all_is_well(&cluster, &workers, &names, &[3, 4, 5]).await;
    assert_eq!(cluster.elections_won(2), elections, "a second leader");
    assert!(!cluster.has_store(1), "n1 was not made a keeper again");
    workers.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_remaining_keeper_does_not_follow_a_replaced_one_that_returns() {
    let mut cluster = six(2 * LEASE).await;
    let mut workers = Workers::new();
    let names = workers.start(&cluster, &SIX, &LOCKS);
    workers.referee.serves(&names, GRACE).await;
    cluster.kill(2);
    for (new, old) in [(3, 2), (4, 1)] {
        cluster.promote(3, new).await;
        cluster.demote(3, old).await;
    }
    cluster.kill(1);
    cluster.reimage(1);
    cluster.restart(1).await;
    let elections = cluster.elections_won(2);
    cluster.restart(2).await;
    cluster.sets_store_aside(&workers.referee, 2).await;
    all_is_well(&cluster, &workers, &names, &[0, 3, 4]).await;
    assert_eq!(cluster.elections_won(2), elections, "a second leader");
    // The vote of n0, which stayed, still counts.
    cluster.kill(4);
    let rest = [0, 1, 2, 3, 5];
    cluster.settles(&workers.referee, &rest, &[0, 3, 4]).await;
    cluster.restart(4).await;
    all_is_well(&cluster, &workers, &names, &[0, 3, 4]).await;
    workers.end().await;
}

/// How a lost machine returns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Back {
    Not,
    OldDisk,
    Reimaged,
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_keepers_that_return_after_a_recovery_are_ordinary_members() {
    use Back::{OldDisk, Reimaged};
    returns_after_recovery(&[[OldDisk, OldDisk], [OldDisk, Reimaged]]).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes a minute: the most dangerous of these cases are in the test above"]
async fn every_subset_of_lost_keepers_may_return_after_a_recovery() {
    use Back::{Not, OldDisk, Reimaged};
    let kinds = [Not, OldDisk, Reimaged];
    let cases = kinds.map(|first| kinds.map(|second| [first, second]));
    returns_after_recovery(&cases.concat()[1..]).await;
}

async fn returns_after_recovery(cases: &[[Back; 2]]) {
    let mut cluster = Cluster::start(Plan::default()).await;
    let mut workers = Workers::new();
    let names = workers.start(&cluster, &ALL, &LOCKS);
    workers.referee.serves(&names, GRACE).await;
    for lost in [0, 1] {
        cluster.kill(lost);
        cluster.copy_disk(lost, "old-disk");
    }
    for node in [2, 3, 4] {
        cluster.end(node).await;
    }
    let output = cluster.recover(2);
    assert!(output.status.success(), "{}", stderr(&output));
    for node in [2, 3, 4] {
        cluster.spawn(node);
    }
    cluster.settles(&workers.referee, &[2, 3, 4], &[2]).await;
    for node in [3, 4] {
        cluster.promote(2, node).await;
    }
    for case in cases {
        println!("n0 and n1 come back: {case:?}");
        let mut running = vec![2, 3, 4];
        for (node, back) in case.iter().enumerate() {
            match back {
                Back::Not => continue,
                Back::OldDisk => cluster.restore_disk(node, "old-disk"),
                Back::Reimaged => cluster.reimage(node),
            }
            cluster.spawn(node);
            running.push(node);
        }
        running.sort_unstable();
        let old = (0..2).filter(|&node| case[node] == Back::OldDisk);
        for node in old {
            cluster.sets_store_aside(&workers.referee, node).await;
        }
        let keepers = [2, 3, 4];
        cluster.settles(&workers.referee, &running, &keepers).await;
        let served = running
            .iter()
            .flat_map(|node| LOCKS.map(|lock| format!("n{node} {lock}")));
        let served: Vec<String> = served.collect();
        workers.referee.serves(&served, TIMEOUT).await;
        let back = running.iter().filter(|node| !keepers.contains(node));
        back.for_each(|&node| cluster.kill(node));
        cluster.settles(&workers.referee, &keepers, &keepers).await;
    }
    workers.end().await;
}

/// The keeper that returns knows neither the new keeper nor the leader, yet its vote is needed.
#[tokio::test(flavor = "multi_thread")]
async fn a_keeper_that_missed_changes_provides_the_missing_vote() {
    let mut cluster = Cluster::start(Plan::default()).await;
    let mut workers = Workers::new();
    workers.start(&cluster, &[0, 2, 3, 4], &LOCKS);
    cluster.kill(2);
    cluster.promote(4, 3).await;
    cluster.demote(4, 0).await;
    // n1, the other keeper that knows n3, dies. n2 returns and knows only n0, n1 and itself.
    cluster.kill(1);
    cluster.spawn(2);
    let rest = [0, 2, 3, 4];
    cluster.settles(&workers.referee, &rest, &[1, 2, 3]).await;
    let names = rest.map(|node| LOCKS.map(|lock| format!("n{node} {lock}")));
    let names = names.concat();
    workers.referee.serves(&names, TIMEOUT).await;
    workers.end().await;
}

/// The files of n0 allow it to bootstrap a cluster, and those of the other nodes list it as keeper.
#[tokio::test(flavor = "multi_thread")]
async fn members_do_not_follow_a_replaced_sole_keeper_that_begins_again() {
    let mut cluster = Cluster::start(Plan {
        nodes: 3,
        keepers: 1,
        ..Plan::default()
    })
    .await;
    let mut workers = Workers::new();
    let names = workers.start(&cluster, &[1, 2], &LOCKS);
    workers.referee.serves(&names, GRACE).await;
    let before = cluster.view(2).await.expect("it runs").epoch;
    cluster.promote(1, 1).await;
    cluster.demote(1, 0).await;
    cluster.kill(0);
    cluster.settles(&workers.referee, &[1, 2], &[1]).await;
    cluster.redeploy(0);
    cluster.spawn(0);
    // By now n0 has had the time to bootstrap a cluster, whether it did or not.
    cluster.says(0, "ready").await;
    let has_begun = async || cluster.is_member(0).await;
    let _ = tokio::time::timeout(2 * LEASE, until("it begins", has_begun)).await;
    cluster.kill(2);
    cluster.spawn(2);
    tokio::time::sleep(3 * LEASE).await;
    let view = cluster.view(2).await.expect("it runs");
    let follows = view.leader.as_deref() == Some("n0");
    assert!(
        !follows && (view.epoch == 0 || view.epoch > before),
        "after epoch {before}: {view:?}"
    );
    let others = &workers.referee.violations();
    assert!(others.is_empty(), "{others:#?}");

    // With up-to-date configurations, both become members again.
    for node in [0, 2] {
        cluster.end(node).await;
        cluster.list_keepers(node, &[1]);
    }
    cluster.reimage(0);
    cluster.spawn(0);
    cluster.spawn(2);
    all_is_well(&cluster, &workers, &names, &[1]).await;
    workers.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_first_keeper_that_is_reimaged_during_bootstrap_can_be_replaced() {
    for pause in [0, 10, 40] {
        let mut cluster = Cluster::init(&Plan::default());
        let mut workers = Workers::new();
        ALL.into_iter().for_each(|node| cluster.spawn(node));
        until("n1 has a store", async || cluster.has_store(1)).await;
        tokio::time::sleep(Duration::from_millis(pause)).await;
        cluster.kill(1);
        cluster.reimage(1);
        cluster.spawn(1);
        // n1 is either one of the first keepers as before, or has lost its store as the manual
        // describes.
        until("n1 is a member", async || cluster.is_member(1).await).await;
        if cluster.log(1).contains("has lost its store") {
            cluster.demote(4, 1).await;
            cluster.promote(4, 1).await;
        }
        let names = workers.start(&cluster, &ALL, &LOCKS[..1]);
        all_is_well(&cluster, &workers, &names, &[0, 1, 2]).await;
        assert!(cluster.has_store(1));
        // The vote of n1 counts.
        cluster.kill(2);
        let rest = [0, 1, 3, 4];
        cluster.settles(&workers.referee, &rest, &[0, 1, 2]).await;
        workers.end().await;
    }
}

/// The old disk has the name of a current keeper, but belongs to its time before the demotion.
#[tokio::test(flavor = "multi_thread")]
async fn a_keeper_that_was_demoted_and_promoted_does_not_vote_with_its_old_disk() {
    let mut cluster = Cluster::start(Plan::default()).await;
    let mut workers = Workers::new();
    let names = workers.start(&cluster, &[3, 4], &LOCKS);
    let leader = cluster.led_by(4, &[0, 1, 2]).await;
    let [again, other] = crate::keepers_but(leader);
    cluster.kill(again);
    cluster.copy_disk(again, "old-disk");
    cluster.demote(4, again).await;
    cluster.reimage(again);
    cluster.restart(again).await;
    cluster.promote(4, again).await;

    cluster.kill(again);
    cluster.restore_disk(again, "old-disk");
    cluster.restart(again).await;
    workers.referee.serves(&names, TIMEOUT).await;
    // If it voted, there would be a majority.
    cluster.kill(other);
    for node in [3, 4] {
        until("no node is a member", async || {
            !cluster.is_member(node).await
        })
        .await;
    }
    tokio::time::sleep(2 * LEASE).await;
    assert!(!cluster.is_member(4).await, "the old disk voted");
    cluster.restart(other).await;
    cluster.demote(4, again).await;
    cluster.promote(4, again).await;
    all_is_well(&cluster, &workers, &names, &[0, 1, 2]).await;
    workers.end().await;
}
