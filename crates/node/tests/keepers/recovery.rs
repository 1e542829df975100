//! Recovery: a majority of the keepers is lost permanently, and one continues alone.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use soloist_core::epochs::roster::{Applied, Command, Roster};
use soloist_core::{Incarnation, Term};
use soloist_node::cluster_memory::fresh_identity;
use soloist_node::keepers::store::FILE_NAME;
use soloist_node::keepers::{
    Keeper, KeeperError, KeeperNode, Recovery, Store, StoreError, StoreIdentity,
};

use crate::net::{Cluster, begin, name, until};

/// All files of a folder with their content.
fn all(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let paths = std::fs::read_dir(folder).unwrap();
    let mut paths: Vec<_> = paths.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let read = |path: PathBuf| (path.clone(), std::fs::read(path).unwrap());
    paths.into_iter().map(read).collect()
}

/// Begins epochs up to this one, and installs the last one.
async fn used(cluster: &Cluster, epochs: u64) {
    for epoch in 1..=epochs {
        cluster.begin(epoch).await;
    }
    let install = Command::Install { epoch: epochs };
    let is_done = |roster: &Roster| !roster.is_changing();
    cluster.decide(install, is_done).await;
    cluster.all_have(epochs).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_three_continues_and_gets_new_peers() {
    // With fewer epochs than a snapshot takes, and with more.
    for epochs in [3, 30] {
        let mut cluster = Cluster::start(&["a", "b", "c"]).await;
        used(&cluster, epochs).await;
        for site in &mut cluster.sites {
            site.stop().await;
        }
        let lost: Vec<KeeperNode> = cluster.sites.drain(1..).map(|site| site.node).collect();
        let site = &mut cluster.sites[0];
        let before = std::fs::read(site.file()).unwrap();
        let recovered = Store::recover(site.folder(), site.node.clone()).await;
        let Recovery {
            cluster: identity,
            epoch_before,
            epoch_after,
            members,
            cut_off,
            kept,
        } = recovered.unwrap();
        assert!(identity.succeeds(&cluster.identity));
        let first = identity.generation.first_epoch();
        assert_eq!((epoch_before, epoch_after), (epochs, first));
        assert!(first > cluster.identity.generation.last_epoch());
        assert_eq!(members.len(), 1);
        assert_eq!(members[0].incarnation, Incarnation(epochs));
        assert_eq!(cut_off, lost);
        let name = kept.file_name().unwrap().to_str().unwrap();
        assert_eq!(name, format!("{FILE_NAME}.before-recovery-1"));
        assert!(std::fs::read(&kept).unwrap() == before);

        let id_before = site.store.id;
        site.start().await;
        let term = site.leads().await;
        assert!(term < Term(10), "it inherits no term");
        assert_eq!(site.keeper().identity().cluster, Some(identity));
        assert_ne!(site.id(), id_before);
        let only = std::slice::from_ref(&site.node);
        assert_eq!(site.keeper().view().keepers, only);
        let roster = site.keeper().roster();
        let begun = roster.begun().unwrap();
        assert_eq!((begun.epoch, &begun.members), (first, &members));
        assert!(roster.is_changing() && roster.installed().is_none());
        // An epoch that the lost keepers might have begun is refused; the next epoch of the new
        // generation is not.
        let late = site.keeper().propose(term, begin(epochs + 1)).await;
        assert_eq!(late.unwrap(), Applied::Refused);
        cluster.begin(first + 1).await;

        cluster.identity = identity;
        for called in ["b", "d"] {
            let mut fresh = cluster.site(called).await;
            fresh.start().await;
            cluster.promote(fresh).await;
        }
        cluster.all_have(first + 1).await;
        // The new keepers count: the cluster continues without the recovered one.
        cluster.sites[0].stop().await;
        cluster.begin(first + 2).await;
        cluster.sites[0].start().await;
        cluster.all_have(first + 2).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn recovery_keeps_entries_that_were_not_committed() {
    let mut cluster = Cluster::start(&["a", "b", "c"]).await;
    cluster.begin(1).await;
    let leader = loop {
        let (leader, term) = cluster.leader_and_term().await;
        for place in (0..3).filter(|place| *place != leader) {
            cluster.sites[place].stop().await;
        }
        // No other keeper is up to acknowledge the entry. It is in the log, unless there was an
        // election just before.
        let proposed = cluster.sites[leader].keeper().propose(term, begin(2));
        match proposed.await {
            Err(KeeperError::Open { .. }) => break leader,
            other => assert!(other.is_err(), "no entry is committed"),
        }
        for place in (0..3).filter(|place| *place != leader) {
            cluster.sites[place].start().await;
        }
    };
    let site = &mut cluster.sites[leader];
    site.stop().await;
    let recovered = Store::recover(site.folder(), site.node.clone()).await;
    let recovered = recovered.unwrap();
    assert_eq!(recovered.epoch_before, 2);
    assert_eq!(recovered.cut_off.len(), 2);
    // Recovering again keeps a copy of the first recovered store, too.
    let again = Store::recover(site.folder(), site.node.clone()).await;
    let again = again.unwrap();
    assert_eq!(again.epoch_before, recovered.epoch_after);
    assert!(again.cluster.succeeds(&recovered.cluster));
    assert!(again.cut_off.is_empty());
    assert_ne!(again.kept, recovered.kept);
    site.start().await;
    site.leads().await;
    until("it has the epochs", || {
        site.keeper().roster().next_epoch() == again.epoch_after + 1
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unrecoverable_stores_are_left_alone() {
    let mut cluster = Cluster::start(&["a", "b", "c"]).await;
    used(&cluster, 3).await;
    let site = &mut cluster.sites[0];
    let (folder, me) = (site.folder().to_owned(), site.node.clone());
    let refused = async |me: &KeeperNode| {
        let before = all(&folder);
        let recovered = Store::recover(&folder, me.clone()).await;
        let error = recovered.unwrap_err();
        assert!(all(&folder) == before, "{error}");
        let text = error.to_string();
        assert!(text.contains(&folder.display().to_string()), "{text}");
        error
    };
    let error = Store::recover(&folder, me.clone()).await.unwrap_err();
    assert!(matches!(error, StoreError::Locked { .. }), "{error}");
    site.stop().await;
    let other = KeeperNode {
        name: name("b"),
        ..me.clone()
    };
    let error = refused(&other).await;
    assert!(matches!(error, StoreError::Owner { .. }), "{error}");
    let file = site.file();
    let whole = std::fs::read(&file).unwrap();
    std::fs::write(&file, &whole[..whole.len() / 2]).unwrap();
    let error = refused(&me).await;
    assert!(matches!(error, StoreError::Corrupt { .. }), "{error}");
    std::fs::remove_file(&file).unwrap();
    let error = refused(&me).await;
    assert!(matches!(error, StoreError::Missing { .. }), "{error}");
    let fresh = Store::create(&folder, &me.name, site.store).await;
    let (.., closer) = fresh.unwrap().split();
    closer.close().await;
    let error = refused(&me).await.to_string();
    assert!(error.contains("it contains no committed entry"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_keeper_that_was_demoted_is_not_recovered() {
    let mut cluster = Cluster::start(&["a"]).await;
    cluster.begin(1).await;
    let mut site = cluster.site("b").await;
    site.start().await;
    let node = site.node.clone();
    cluster.promote(site).await;
    cluster.begin(2).await;
    // Demoting needs the agreement of both keepers, so b has the entry that removes it.
    let demoted = async |keeper: Arc<Keeper>| keeper.demote(&node.name).await;
    cluster.change(demoted).await;
    let mut site = cluster.sites.pop().unwrap();
    site.stop().await;
    let error = Store::recover(site.folder(), node).await.unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("b was not a keeper") && text.contains("the keepers are a:"),
        "{text}"
    );
    cluster.sites[0].stop().await;
}

#[tokio::test]
async fn a_data_folder_is_made_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("node/data");
    assert!(!Store::exists(&data));
    let identity = StoreIdentity::fresh(fresh_identity());
    let made = Store::create(&data, &name("a"), identity).await;
    let (.., closer) = made.unwrap().split();
    closer.close().await;
    assert!(Store::exists(&data));
    assert!(data.join(FILE_NAME).is_file());
    let mode = data.metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    // An existing store is opened.
    let (.., closer) = Store::open_in(&data, &name("a")).await.unwrap().split();
    closer.close().await;
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let error = Store::open_in(&file, &name("a")).await.unwrap_err();
    assert!(matches!(error, StoreError::Io { .. }), "{error}");
    // A path that cannot be examined may contain a store.
    assert!(Store::exists(&file));
}
