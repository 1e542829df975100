//! A decision made in one term of a leader is not applied in another.

use std::time::Duration;

use openraft::Vote;
use openraft::storage::RaftLogStorage;
use soloist_core::Term;
use soloist_core::epochs::lease::Lease;
use soloist_core::epochs::roster::Applied;
use soloist_node::cluster_memory::fresh_identity;
use soloist_node::identity::Authority;
use soloist_node::keepers::{KeeperError, Settings, Store};

use crate::net::{Cluster, Site, begin, until};

/// A cluster with one keeper, so no other can be elected.
async fn alone() -> (Cluster, Term) {
    let cluster = Cluster::start(&["a"]).await;
    let term = cluster.sites[0].leads().await;
    (cluster, term)
}

/// Ends the term of a keeper that is alone, as if it had stood for election and crashed before the
/// result.
async fn elected_again(site: &mut Site, term: Term) -> Term {
    let id = site.id();
    site.stop().await;
    let store = Store::open_in(site.folder(), &site.node.name).await;
    let (mut log, _, closer) = store.unwrap().split();
    let candidate = Vote::new(term.next().0, id);
    log.save_vote(&candidate).await.unwrap();
    closer.close().await;
    site.start().await;
    site.leads().await
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_leaders_own_term_is_confirmed() {
    let (mut cluster, term) = alone().await;
    let site = &mut cluster.sites[0];
    assert_eq!(site.keeper().view().term, term);
    for asked in [0, term.0 - 1, term.0 + 1, u64::MAX].map(Term) {
        let error = site.keeper().confirm_leadership(asked).await.unwrap_err();
        assert_eq!(error, KeeperError::OtherTerm { asked, found: term });
    }
    let later = elected_again(site, term).await;
    assert!(later > term);
    let error = site.keeper().confirm_leadership(term).await.unwrap_err();
    let (asked, found) = (term, later);
    assert_eq!(error, KeeperError::OtherTerm { asked, found });
    site.keeper().confirm_leadership(later).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proposal_of_another_term_is_refused() {
    let (mut cluster, term) = alone().await;
    let site = &mut cluster.sites[0];
    for other in [0, term.0 - 1, term.0 + 1, u64::MAX].map(Term) {
        let applied = site.keeper().propose(other, begin(1)).await.unwrap();
        assert_eq!(applied, Applied::Refused);
        assert_eq!(site.keeper().roster().next_epoch(), 1);
    }
    let applied = site.keeper().propose(term, begin(1)).await.unwrap();
    assert_eq!(applied, Applied::Done);

    // The same keeper leads again, and its decision from the earlier term is too late.
    let later = elected_again(site, term).await;
    let applied = site.keeper().propose(term, begin(2)).await.unwrap();
    assert_eq!(applied, Applied::Refused);
    assert_eq!(site.keeper().roster().next_epoch(), 2);
    let applied = site.keeper().propose(later, begin(2)).await.unwrap();
    assert_eq!(applied, Applied::Done);

    // Replaying from disk gives the same roster.
    let before = site.keeper().roster();
    site.stop().await;
    site.start().await;
    site.leads().await;
    assert_eq!(site.keeper().roster(), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn all_keepers_apply_the_same_commands() {
    let mut cluster = Cluster::start(&["a", "b", "c"]).await;
    cluster.begin(1).await;
    let (first, term) = cluster.leader_and_term().await;
    cluster.sites[first].stop().await;
    let (second, later) = cluster.leader_and_term().await;
    assert_ne!((first, term), (second, later));
    // A decision of the first leader is proposed at the second one.
    if later != term {
        let chief = cluster.sites[second].keeper();
        match chief.propose(term, begin(2)).await {
            Ok(applied) => assert_eq!(applied, Applied::Refused),
            Err(KeeperError::NotLeader { .. } | KeeperError::Open { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!(cluster.epoch(second), 1);
    cluster.sites[first].start().await;
    cluster.begin(2).await;
    cluster.all_have(2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_keeper_knows_whether_anything_was_committed() {
    let authority = Authority::new("orchestra").unwrap();
    let cluster = fresh_identity();
    let mut a = Site::new(&authority, cluster, "a").await;
    let mut b = Site::new(&authority, cluster, "b").await;
    a.start().await;
    b.start().await;
    assert!(a.keeper().is_new() && b.keeper().is_new());
    a.stop().await;
    a.start().await;
    assert!(a.keeper().is_new(), "a restart is nothing");
    a.keeper().initialize().await.unwrap();
    assert!(!a.keeper().is_new());
    // A promoted keeper has received entries or a snapshot, so it is not new either.
    let term = a.leads().await;
    for epoch in 1..=20 {
        a.keeper().propose(term, begin(epoch)).await.unwrap();
    }
    assert!(b.keeper().is_new());
    let promoted = a.keeper().promote(b.id(), b.node.clone());
    promoted.await.unwrap();
    assert!(!b.keeper().is_new());
    a.stop().await;
    b.stop().await;
    for site in [&mut a, &mut b] {
        site.start().await;
        assert!(!site.keeper().is_new());
    }
    until("they continue", || a.keeper().view().leader.is_some()).await;
}

#[tokio::test]
async fn a_short_lease_makes_keepers_fast() {
    let authority = Authority::new("orchestra").unwrap();
    let site = Site::new(&authority, fresh_identity(), "a").await;
    let ms = Duration::from_millis;
    for (length, election, majority) in [
        (500, 50, 1000),
        (1200, 100, 1200),
        (3000, 250, 3000),
        (60_000, 2000, 5000),
    ] {
        let lease = Lease {
            length: ms(length),
            ..Lease::default()
        };
        let settings = Settings::for_lease(site.node.clone(), site.endpoint(), &lease);
        assert_eq!(settings.elections.timeout, ms(election), "{length}");
        assert_eq!(settings.majority_timeout, ms(majority), "{length}");
        assert!(
            settings.elections.takeover_max() <= lease.length,
            "{length}"
        );
    }
}
