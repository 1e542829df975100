//! A leader that is to be demoted hands over leadership first. It never removes itself.

use std::sync::Arc;
use std::time::{Duration, Instant};

use soloist_api::Address;
use soloist_node::keepers::{Keeper, KeeperError};

use crate::net::{Cluster, TIMEOUT, until};
use crate::relay::{Held, Relay};

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_hands_over_and_the_next_one_demotes_it() {
    let cluster = Cluster::start(&["a", "b", "c"]).await;
    cluster.begin(1).await;
    cluster.all_have(1).await;
    let (leader, term) = cluster.leader_and_term().await;
    let (chief, called) = (cluster.sites[leader].keeper(), &cluster.sites[leader].node);
    let refused = chief.demote(&called.name).await.unwrap_err();
    assert_eq!(refused, KeeperError::Leads(called.name.clone()));
    assert!(!chief.is_half_changed(), "nothing has changed");
    let began = Instant::now();
    chief.hand_over();
    until("it does not lead", || !chief.view().leads).await;
    let error = chief.confirm_leadership(term).await.unwrap_err();
    assert!(matches!(error, KeeperError::NotLeader { .. }), "{error}");
    let (next, next_term) = cluster.leader_and_term().await;
    println!("another keeper leads after {:?}", began.elapsed());
    // On a busy machine it may lead again, in a later term or because no other keeper took over.
    assert!(next != leader || next_term >= term);
    cluster.demote(called.name.as_str()).await;
    let next = cluster.leader().await;
    assert_ne!(next, leader);
    let keeper = cluster.sites[next].keeper();
    until("two are left", || keeper.view().keepers.len() == 2).await;
    cluster.begin(2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_without_followers_is_elected_again() {
    let mut cluster = Cluster::start(&["a", "b"]).await;
    cluster.begin(1).await;
    cluster.all_have(1).await;
    let leader = loop {
        let (leader, term) = cluster.leader_and_term().await;
        cluster.sites[1 - leader].stop().await;
        let keeper = cluster.sites[leader].keeper();
        // The other keeper may have been elected before it stopped.
        if keeper.view().leads && keeper.view().term == term {
            break leader;
        }
        cluster.sites[1 - leader].start().await;
    };
    let keeper = cluster.sites[leader].keeper();
    let called = &cluster.sites[leader].node.name;
    // The change is refused before it begins.
    let error = keeper.demote(called).await.unwrap_err();
    assert!(matches!(error, KeeperError::NoMajority { .. }), "{error}");
    keeper.hand_over();
    until("it does not lead", || !keeper.view().leads).await;
    until("it leads again", || keeper.view().leads).await;
    assert!(!keeper.is_half_changed());
    cluster.sites[1 - leader].start().await;
    cluster.begin(2).await;
    cluster.all_have(2).await;
}

/// Four keepers, one of them down, so the other three are needed. The leader is told to demote
/// itself. If it does not refuse, it crashes once its removal is in its own log and in no other.
#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_crashes_during_its_demotion_is_succeeded() {
    let mut cluster = Cluster::stopped(&["a", "b", "c", "d"]).await;
    let mut relays = Vec::new();
    for site in &mut cluster.sites {
        let relay = Relay::to(socket(&site.node.address)).await;
        site.node.address = relay.address.into();
        relays.push(relay);
    }
    cluster.found().await;
    cluster.begin(1).await;
    cluster.all_have(1).await;
    let (leader, down) = loop {
        let leader = cluster.leader().await;
        let down = (leader + 1) % 4;
        cluster.sites[down].stop().await;
        if cluster.leader().await == leader {
            break (leader, down);
        }
        cluster.sites[down].start().await;
    };
    let rest: Vec<usize> = (0..4).filter(|it| ![leader, down].contains(it)).collect();
    let called = cluster.sites[leader].node.name.clone();
    let chief = Arc::clone(cluster.sites[leader].keeper());
    // One of the others receives what the leader sends, but its responses are delayed, so nothing
    // is committed.
    relays[rest[1]].hold(Held {
        from_it: true,
        ..Held::default()
    });
    let demoting = {
        let (chief, called) = (Arc::clone(&chief), called.clone());
        tokio::spawn(async move { chief.demote(&called).await })
    };
    let late = Arc::clone(cluster.sites[rest[1]].keeper());
    until("it was refused, or all have its first step", || {
        demoting.is_finished() || late.is_half_changed()
    })
    .await;
    // Now the responses arrive, but nothing that the leader sends from here on.
    for place in &rest {
        relays[*place].hold(Held {
            to_it: true,
            ..Held::default()
        });
    }
    let me = &cluster.sites[leader].node;
    until("it was refused, or its log removes it", || {
        demoting.is_finished() || !chief.view().keepers.contains(me)
    })
    .await;
    demoting.abort();
    cluster.sites[leader].stop().await;
    for relay in &relays {
        relay.cut().await;
    }
    cluster.sites[leader].start().await;
    cluster.begin(2).await;
    cluster.demote(called.as_str()).await;
    let next = cluster.sites[cluster.leader().await].keeper();
    until("three are left", || next.view().keepers.len() == 3).await;
}

fn socket(address: &Address) -> std::net::SocketAddr {
    address.to_string().parse().unwrap()
}

/// Another keeper has begun to demote a when a becomes the leader. Completing the change would
/// remove a.
#[tokio::test(flavor = "multi_thread")]
async fn a_leader_removed_by_an_unfinished_change_leaves_it_to_the_next_leader() {
    let mut cluster = Cluster::start(&["a", "b", "c"]).await;
    cluster.begin(1).await;
    cluster.all_have(1).await;
    // After the change, two keepers would be left, and one of them is down.
    let goes = cluster.sites[0].node.clone();
    let chief = loop {
        let leader = cluster.leader().await;
        if leader == 0 {
            cluster.sites[0].keeper().hand_over();
            continue;
        }
        let missing = 3 - leader;
        cluster.sites[missing].stop().await;
        let first = Arc::clone(cluster.sites[0].keeper());
        let chief = cluster.sites[leader].keeper();
        tokio::select! {
            demoted = chief.demote(&goes.name) => match demoted {
                Err(KeeperError::NotLeader { .. }) => cluster.sites[missing].start().await,
                other => panic!("{other:?}"),
            },
            () = until("a has the first step", || first.is_half_changed()) => break leader,
        }
    };
    for place in [0, chief] {
        cluster.sites[place].stop().await;
    }
    for site in &mut cluster.sites {
        let mut settings = site.settings();
        settings.elections.timeout = Duration::from_millis(100);
        site.start_with(settings).await;
    }
    let began = Instant::now();
    loop {
        let leader = cluster.leader().await;
        if leader == 0 {
            break;
        }
        assert!(began.elapsed() < TIMEOUT, "a never leads");
        cluster.sites[leader].keeper().hand_over();
    }
    let first = cluster.sites[0].keeper();
    assert!(first.should_finish_change());
    let refused = first.finish_change().await.unwrap_err();
    assert_eq!(refused, KeeperError::Leads(goes.name.clone()));
    assert!(first.view().keepers.contains(&goes), "it still votes");
    cluster
        .change(async |keeper: Arc<Keeper>| keeper.finish_change().await)
        .await;
    let next = cluster.leader().await;
    assert_ne!(next, 0);
    let next = cluster.sites[next].keeper();
    until("two are left", || {
        next.view().keepers.len() == 2 && !next.is_half_changed()
    })
    .await;
    cluster.begin(2).await;
}
