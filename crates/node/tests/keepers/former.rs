//! Former keepers get no answer; unknown ones do.

use std::time::Duration;

use openraft::Vote;
use openraft::raft::VoteRequest;
use soloist_node::keepers::{KeeperError, ServeEnd, Store, StoreIdentity};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::hostile::{B, connect, frame, greeting};
use crate::net::{Cluster, until};

#[tokio::test(flavor = "multi_thread")]
async fn a_demoted_keeper_is_remembered_in_the_log_and_in_snapshots() {
    let mut cluster = Cluster::start(&["a", "b", "c"]).await;
    cluster.begin(1).await;
    let gone = cluster.sites[2].id();
    cluster.demote("c").await;
    let mut c = cluster.sites.pop().unwrap();
    for site in &cluster.sites {
        let keeper = site.keeper();
        until("it is former", || keeper.is_former(gone)).await;
        let applied = keeper.applied_membership();
        assert!(applied.membership.log_id().is_some());
        assert!(applied.membership.nodes().all(|(id, _)| *id != gone));
        let error = keeper.may_answer(gone, site.id()).unwrap_err().to_string();
        assert!(error.contains("was demoted"), "{error}");
        // Unknown ids are answered: those keepers may have been promoted in the meantime.
        keeper.may_answer(B, site.id()).unwrap();
        let error = keeper.may_answer(B, site.id() ^ 1).unwrap_err().to_string();
        assert!(error.contains("promoted again"), "{error}");
    }
    // Enough entries for snapshots, so that the log is purged. A keeper that joins later learns of
    // the former one from a snapshot.
    for epoch in 2..=30 {
        cluster.begin(epoch).await;
    }
    let mut d = cluster.site("d").await;
    d.start().await;
    cluster.promote(d).await;
    for site in &mut cluster.sites {
        until("all know it", || site.keeper().is_former(gone)).await;
        site.stop().await;
        site.start().await;
        assert!(site.keeper().is_former(gone), "after a restart");
    }
    // Its node returns as a keeper with another id. The old id is never used again.
    let node = c.node.clone();
    let leader = cluster.leader().await;
    let error = cluster.sites[leader].keeper().promote(gone, node).await;
    assert_eq!(error, Err(KeeperError::Former { id: gone }));
    c.stop().await;
    Store::set_aside(c.folder(), "it was demoted").unwrap();
    c.store = StoreIdentity::fresh(cluster.identity);
    c.start().await;
    assert_ne!(c.id(), gone);
    cluster.promote(c).await;
    cluster.begin(31).await;
    cluster.all_have(31).await;
}

/// A keeper that was demoted while it was down restarts and tries to be elected.
#[tokio::test(flavor = "multi_thread")]
async fn a_demoted_keeper_that_returns_gets_no_vote() {
    let mut cluster = Cluster::start(&["a", "b", "c"]).await;
    cluster.begin(1).await;
    cluster.all_have(1).await;
    let gone = cluster.sites[2].id();
    cluster.sites[2].stop().await;
    cluster.demote("c").await;
    let mut c = cluster.sites.pop().unwrap();
    for site in &cluster.sites {
        until("it is former", || site.keeper().is_former(gone)).await;
    }
    let (_, term) = cluster.leader_and_term().await;
    c.start().await;
    // It asks the others before it stands for election. None of them answers, so its term stays.
    tokio::time::sleep(Duration::from_secs(2)).await;
    cluster.begin(2).await;
    assert!(!c.keeper().view().leads);
    assert!(c.keeper().view().term <= term);
    // A hello with the demoted id, followed by a vote request, is refused, too.
    let site = &cluster.sites[0];
    let (mut stream, serving) = connect(site.keeper(), site.node.name.as_str());
    let mut bytes = greeting("b", "a", gone, site.id());
    let vote = VoteRequest::new(Vote::new(term.next().0, gone), None);
    bytes.extend(frame(1, &(1_u8, &vote)));
    let _ = stream.write_all(&bytes).await;
    let mut told = Vec::new();
    stream.read_to_end(&mut told).await.unwrap();
    let end = serving.await.unwrap();
    assert!(matches!(&end, ServeEnd::Refused(reason) if reason.contains("was demoted")));
}

/// Node b, whose certificate is valid, claims to be the keeper that runs on node x.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_cannot_impersonate_another_nodes_keeper() {
    let cluster = Cluster::start(&["a", "x"]).await;
    let site = &cluster.sites[0];
    let x = cluster.sites[1].id();
    until("x is a keeper here", || {
        let members = site.keeper().applied_membership();
        members.membership.membership().get_node(&x).is_some()
    })
    .await;
    let (mut stream, serving) = connect(site.keeper(), site.node.name.as_str());
    let mut bytes = greeting("b", "a", x, site.id());
    let vote = VoteRequest::new(Vote::new(site.keeper().view().term.next().0, x), None);
    bytes.extend(frame(1, &(1_u8, &vote)));
    let _ = stream.write_all(&bytes).await;
    let mut told = Vec::new();
    stream.read_to_end(&mut told).await.unwrap();
    let end = serving.await.unwrap();
    assert!(
        matches!(&end, ServeEnd::Refused(reason) if reason.contains("which runs on node x")),
        "{end:?}"
    );
}

/// The keepers are 1, 2 and 3, and 3 is down. 4 is promoted and 1 is demoted. 3 returns, and knows
/// only of 1, 2 and 3; then 2 goes down. 3 and 4 are a majority of 2, 3 and 4, and 4 leads.
#[tokio::test(flavor = "multi_thread")]
async fn a_keeper_that_does_not_know_the_new_one_answers_it() {
    let mut cluster = Cluster::start(&["k1", "k2", "k3"]).await;
    cluster.begin(1).await;
    cluster.all_have(1).await;
    cluster.sites[2].stop().await;
    let mut fourth = cluster.site("k4").await;
    fourth.start().await;
    cluster.promote(fourth).await;
    cluster.demote("k1").await;
    cluster.sites[0].stop().await;
    cluster.begin(2).await;
    // Of the keepers that are up, only the fourth knows that it is one.
    cluster.sites[1].stop().await;
    cluster.sites[2].start().await;
    cluster.begin(3).await;
    cluster.all_have(3).await;
    assert_eq!(cluster.leader().await, 3, "the other one lacks entries");
}
