//! Three keepers over TLS: elections, stops, restarts and snapshots.

use std::sync::Arc;

use openraft::storage::{RaftLogStorage, RaftStateMachine};
use soloist_core::epochs::roster::{Applied, Change, Command, Member, Roster};
use soloist_core::name_hash::HashKey;
use soloist_core::{Incarnation, Term};
use soloist_node::keepers::{KeeperError, Store};

use crate::net::{Cluster, Site, begin, name, until};

#[tokio::test(flavor = "multi_thread")]
async fn one_keeper_leads_and_all_have_its_decisions() {
    let cluster = Cluster::start(&["a", "b", "c"]).await;
    let nodes: Vec<_> = cluster.sites.iter().map(|site| site.node.clone()).collect();
    cluster.begin(1).await;
    cluster.all_have(1).await;
    let (leader, term) = cluster.leader_and_term().await;
    let chief = cluster.sites[leader].keeper();
    assert_eq!(
        chief.propose(term, begin(1)).await.unwrap(),
        Applied::Refused
    );
    for (place, site) in cluster.sites.iter().enumerate() {
        let keeper = site.keeper();
        until("all know the leader", || {
            keeper.view().leader.as_ref() == Some(&nodes[leader])
        })
        .await;
        let view = keeper.view();
        assert_eq!(view.leads, place == leader);
        assert_eq!(view.keepers, nodes);
        assert_eq!((view.stopped, view.term > Term(0)), (None, true));
        // Initializing again has no effect.
        assert!(!keeper.initialize().await.unwrap());
        if place != leader {
            let known = Some(nodes[leader].clone());
            let not_leader = KeeperError::NotLeader { leader: known };
            let text = not_leader.to_string();
            assert!(text.contains(&nodes[leader].to_string()), "{text}");
            let proposed = keeper.propose(term, begin(2)).await;
            assert_eq!(proposed.unwrap_err(), not_leader);
            let confirmed = keeper.confirm_leadership(term).await;
            assert_eq!(confirmed.unwrap_err(), not_leader);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn when_the_leader_dies_another_knows_the_roster() {
    let mut cluster = Cluster::start(&["a", "b", "c"]).await;
    let mut views = cluster.sites[0].keeper().views();
    cluster.begin(1).await;
    views
        .wait_for(|view| view.roster.next_epoch() == 2)
        .await
        .unwrap();
    let dead = cluster.leader().await;
    cluster.sites[dead].stop().await;
    let next = cluster.leader().await;
    assert_ne!(next, dead);
    assert_eq!(cluster.epoch(next), 1);
    cluster.begin(2).await;
    cluster.sites[dead].start().await;
    cluster.all_have(2).await;
    // Two of three keepers are needed, and two are up again.
    cluster.sites[next].stop().await;
    cluster.begin(3).await;
    cluster.all_have(3).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_knows_which_keepers_follow_it() {
    let mut cluster = Cluster::start(&["a", "b", "c"]).await;
    let all_others_follow = |cluster: &Cluster| {
        let up = || cluster.sites.iter().filter(|site| site.is_up());
        let Some(leader) = up().find(|site| site.keeper().view().leads) else {
            return false;
        };
        let mut followers = leader.keeper().followers();
        followers.sort_unstable();
        let others = up().filter(|site| site.node != leader.node);
        others.map(|site| &site.node.name).eq(&followers)
    };
    until("both follow", || all_others_follow(&cluster)).await;
    // Heartbeats show it, though nothing is decided.
    let leader = cluster.leader().await;
    let elections = cluster.sites[leader].settings().elections;
    tokio::time::sleep(elections.follower_silence_max()).await;
    until("both follow", || all_others_follow(&cluster)).await;
    let other = (leader + 1) % 3;
    cluster.sites[other].stop().await;
    until("one follows", || all_others_follow(&cluster)).await;
    cluster.sites[other].start().await;
    until("both follow", || all_others_follow(&cluster)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_majority_nothing_is_decided_or_confirmed() {
    let mut cluster = Cluster::start(&["a", "b", "c"]).await;
    cluster.begin(1).await;
    loop {
        let (leader, term) = cluster.leader_and_term().await;
        let others = (0..3).filter(|&place| place != leader);
        for place in others.clone() {
            cluster.sites[place].stop().await;
        }
        let keeper = cluster.sites[leader].keeper();
        let error = keeper.confirm_leadership(term).await.unwrap_err();
        if matches!(error, KeeperError::NotLeader { .. }) {
            // One of the others was elected before it stopped.
            for place in others {
                cluster.sites[place].start().await;
            }
            continue;
        }
        let KeeperError::NoMajority { waited } = error else {
            panic!("another error: {error}");
        };
        let limit = cluster.sites[leader].settings().majority_timeout;
        assert_eq!(waited, limit, "the error names the limit");
        let error = keeper.propose(term, begin(2)).await.unwrap_err();
        assert!(matches!(error, KeeperError::Open { .. }), "{error}");
        assert_eq!(cluster.epoch(leader), 1);
        return;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn all_start_again_from_disk() {
    let mut cluster = Cluster::start(&["a", "b", "c"]).await;
    // More entries than a snapshot needs, so some follow it in the log.
    for epoch in 1..=11 {
        cluster.begin(epoch).await;
    }
    cluster.all_have(11).await;
    let before: Vec<Arc<Roster>> = cluster
        .sites
        .iter()
        .map(|site| site.keeper().roster())
        .collect();
    for site in &mut cluster.sites {
        site.stop().await;
    }
    for (site, before) in cluster.sites.iter_mut().zip(before) {
        site.start().await;
        assert_eq!(
            site.keeper().roster(),
            before,
            "at once, without the others"
        );
    }
    cluster.begin(12).await;
    cluster.all_have(12).await;
}

/// Index of the first and of the last entry of the log, and of the last entry in a snapshot.
async fn ends(site: &Site) -> (u64, u64, u64) {
    let store = Store::open(&site.file(), &site.node.name).await.unwrap();
    let (mut log, mut machine, closer) = store.split();
    let state = log.get_log_state().await.unwrap();
    let snapshot = machine.get_current_snapshot().await.unwrap();
    closer.close().await;
    let index = |id: Option<openraft::LogId<u64>>| id.map_or(0, |id| id.index);
    (
        index(state.last_purged_log_id) + 1,
        index(state.last_log_id),
        index(snapshot.and_then(|snapshot| snapshot.meta.last_log_id)),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_keeper_far_behind_catches_up_by_a_snapshot() {
    let mut cluster = Cluster::start(&["a", "b", "c"]).await;
    cluster.begin(1).await;
    cluster.all_have(1).await;
    let behind = (cluster.leader().await + 1) % 3;
    cluster.sites[behind].stop().await;
    let (_, last, _) = ends(&cluster.sites[behind]).await;
    for epoch in 2..=60 {
        cluster.begin(epoch).await;
    }
    // No possible leader still has the log entries that the third keeper lacks.
    for place in (0..3).filter(|&place| place != behind) {
        cluster.sites[place].stop().await;
        let (first, _, _) = ends(&cluster.sites[place]).await;
        assert!(first > last + 1, "log from {first}, needed from {last}");
    }
    for site in &mut cluster.sites {
        site.start().await;
    }
    cluster.all_have(60).await;
    cluster.begin(61).await;
    cluster.all_have(61).await;
    cluster.sites[behind].stop().await;
    let (first, _, snapshot) = ends(&cluster.sites[behind]).await;
    assert!(snapshot > last && first > last + 1, "{snapshot} {first}");
    cluster.sites[behind].start().await;
    cluster.all_have(61).await;
}

/// A command that begins the first epoch with this many members.
fn begin_with(members: usize) -> Command {
    let member = |number: usize| Member {
        name: name(&format!("n{number}")),
        incarnation: Incarnation(number as u64),
        address: format!("{}:7401", vec!["long"; 49].join("."))
            .parse()
            .unwrap(),
    };
    Command::Begin(Change {
        epoch: 1,
        members: (0..members).map(member).collect(),
        key: HashKey::default(),
    })
}

/// The long command takes longer to send than the interval between the leader's heartbeats.
#[tokio::test(flavor = "multi_thread")]
async fn a_long_command_is_committed_and_one_beyond_the_limit_is_refused() {
    let cluster = Cluster::start(&["a", "b", "c"]).await;
    let (leader, term) = cluster.leader_and_term().await;
    let chief = cluster.sites[leader].keeper();
    let error = chief.propose(term, begin_with(70_000)).await.unwrap_err();
    assert!(matches!(error, KeeperError::TooLong { .. }), "{error}");
    assert!(error.to_string().contains("16777216"), "{error}");
    let is_done = |roster: &Roster| roster.next_epoch() == 2;
    cluster.decide(begin_with(20_000), is_done).await;
    for site in &cluster.sites {
        until("all have it", || {
            let roster = site.keeper().roster();
            let begun = roster.begun();
            begun.is_some_and(|change| change.members.len() == 20_000)
        })
        .await;
    }
}
