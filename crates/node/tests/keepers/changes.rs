//! Promoting and demoting keepers.

use std::time::Duration;

use soloist_core::epochs::roster::{Command, Roster};
use soloist_node::keepers::KeeperError;

use crate::net::{Cluster, TIMEOUT, name, until};

/// Retries a change until it succeeds: the previous one may not be complete yet on this keeper.
async fn changed<F>(mut attempt: impl FnMut() -> F) -> Result<(), KeeperError>
where
    F: Future<Output = Result<(), KeeperError>>,
{
    let began = std::time::Instant::now();
    loop {
        match attempt().await {
            Err(
                KeeperError::Changing | KeeperError::NotLeader { .. } | KeeperError::Open { .. },
            ) if began.elapsed() < TIMEOUT => {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            done => return done,
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn from_one_to_three_and_back() {
    let mut cluster = Cluster::start(&["a"]).await;
    for epoch in 1..=20 {
        cluster.begin(epoch).await;
    }
    for called in ["b", "c"] {
        let mut site = cluster.site(called).await;
        site.start().await;
        let (id, node) = (site.id(), site.node.clone());
        cluster.sites.push(site);
        let chief = cluster.sites[0].keeper();
        changed(|| chief.promote(id, node.clone())).await.unwrap();
        // Promoting again has no effect.
        changed(|| chief.promote(id, node.clone())).await.unwrap();
    }
    cluster.all_have(20).await;
    let nodes: Vec<_> = cluster.sites.iter().map(|site| site.node.clone()).collect();
    for site in &cluster.sites {
        until("all know all keepers", || {
            site.keeper().view().keepers == nodes
        })
        .await;
    }
    // The new keepers count: two of the three, one of them new, are a majority.
    cluster.sites[1].stop().await;
    cluster.begin(21).await;
    cluster.sites[1].start().await;
    cluster.all_have(21).await;

    // Demote the leader until one keeper is left. Each time another keeper takes over and demotes
    // it.
    for left in [2, 1] {
        let leader = cluster.leader().await;
        let called = cluster.sites[leader].node.name.clone();
        cluster.demote(called.as_str()).await;
        cluster.sites[leader].stop().await;
        let next = cluster.leader().await;
        let keeper = cluster.sites[next].keeper();
        until("all know who is left", || {
            keeper.view().keepers.len() == left
        })
        .await;
        assert_ne!(next, leader);
    }
    cluster.begin(22).await;
    let leader = cluster.leader().await;
    let last = &cluster.sites[leader];
    let error = last.keeper().demote(&last.node.name).await.unwrap_err();
    assert_eq!(error, KeeperError::Last(last.node.name.clone()));
    let error = last.keeper().demote(&name("zoe")).await.unwrap_err();
    assert_eq!(error, KeeperError::NotAKeeper(name("zoe")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_does_not_answer_is_not_made_a_keeper() {
    let mut cluster = Cluster::start(&["a"]).await;
    cluster.begin(1).await;
    cluster.sites[0].stop().await;
    let mut settings = cluster.sites[0].settings();
    settings.majority_timeout = Duration::from_secs(1);
    cluster.sites[0].start_with(settings).await;
    let silent = cluster.site("b").await;
    cluster.begin(2).await;
    let keeper = cluster.sites[0].keeper();
    let (id, node) = (silent.store.id, silent.node.clone());
    let error = keeper.promote(id, node.clone()).await.unwrap_err();
    assert!(matches!(error, KeeperError::Behind { .. }), "{error}");
    assert!(error.to_string().contains("b at 127.0.0.1"), "{error}");
    assert_eq!(keeper.view().keepers, [cluster.sites[0].node.clone()]);
    // The id that was meant for it is never used.
    assert!(keeper.is_former(id));
    let error = keeper.promote(id, node).await.unwrap_err();
    assert_eq!(error, KeeperError::Former { id });
    cluster.begin(3).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_node_is_one_keeper() {
    let mut cluster = Cluster::start(&["a"]).await;
    let mut b = cluster.site("b").await;
    b.start().await;
    let (id, node) = (b.id(), b.node.clone());
    cluster.promote(b).await;
    let chief = cluster.sites[cluster.leader().await].keeper();
    let error = chief.promote(id ^ 1, node.clone()).await.unwrap_err();
    let name = node.name.clone();
    assert_eq!(error, KeeperError::OtherId { name, id });
    let other = cluster.site("c").await.node;
    let error = chief.promote(id, other).await.unwrap_err();
    assert!(error.to_string().contains("is the id of b at"), "{error}");
    assert_eq!(chief.view().keepers.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_abandoned_membership_change_is_completed() {
    let mut cluster = Cluster::start(&["a", "b", "c"]).await;
    cluster.begin(1).await;
    cluster.all_have(1).await;
    let leader = cluster.leader().await;
    let stays = (leader + 1) % 3;
    cluster.sites[stays].stop().await;
    // After the change, two keepers would be left, and one of them is down. The change times out
    // half-way.
    let goes = loop {
        let leader = cluster.leader().await;
        let goes = 3 - stays - leader;
        let called = cluster.sites[goes].node.name.clone();
        let chief = cluster.sites[leader].keeper();
        match chief.demote(&called).await {
            Err(KeeperError::NotLeader { .. }) => {}
            Err(KeeperError::Open { .. }) => {
                assert!(chief.is_half_changed());
                break goes;
            }
            other => panic!("{other:?}"),
        }
    };
    cluster.sites[stays].start().await;
    cluster
        .change(async |chief| chief.finish_change().await)
        .await;
    let leader = cluster.leader().await;
    let chief = cluster.sites[leader].keeper();
    until("two are left", || {
        chief.view().keepers.len() == 2 && !chief.is_half_changed()
    })
    .await;
    // The demoted keeper is no longer needed.
    cluster.sites[goes].stop().await;
    cluster.begin(2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_learner_that_was_not_promoted_is_removed() {
    let mut cluster = Cluster::start(&["a", "b"]).await;
    cluster.begin(1).await;
    cluster.all_have(1).await;
    // Complete the bootstrap. Before that, learners are not removed, because none becomes a voter
    // until all first keepers are there.
    let lease = Duration::from_secs(1);
    let is_founded = |roster: &Roster| roster.is_founded();
    cluster.decide(Command::Lead { lease }, is_founded).await;
    let mut site = cluster.site("c").await;
    site.start().await;
    loop {
        let leader = cluster.leader().await;
        cluster.sites[1 - leader].stop().await;
        let chief = cluster.sites[leader].keeper();
        let promoted = chief.promote(site.id(), site.node.clone());
        let promoted = promoted.await;
        cluster.sites[1 - leader].start().await;
        match promoted {
            // The other keeper was elected before it stopped.
            Err(KeeperError::NotLeader { .. }) => {}
            Err(KeeperError::Open { .. }) => break,
            other => panic!("{other:?}"),
        }
    }
    cluster
        .change(async |chief| chief.finish_change().await)
        .await;
    let leader = cluster.leader().await;
    let chief = cluster.sites[leader].keeper();
    until("the entry is removed", || !chief.is_half_changed()).await;
    assert_eq!(chief.view().keepers.len(), 2);
}
