//! Stores of the previous format. `stores/format-3.redb` was written by the last release whose
//! stores had no identity. It belongs to a, one of three keepers. It contains a snapshot, log
//! entries after it, and epochs 1 to 12, with epoch 11 installed.

use std::path::{Path, PathBuf};

use soloist_api::Fence;
use soloist_core::cluster_identity::{ClusterId, ClusterIdentity};
use soloist_core::epochs::roster::{Applied, Command, Roster};
use soloist_node::keepers::store::FILE_NAME;
use soloist_node::keepers::{
    KeeperNode, Recovery, Settings, Store, StoreError, StoreIdentity, id_of,
};

use crate::net::{Cluster, Site, name, until};

const OLD: &[u8] = include_bytes!("stores/format-3.redb");
const KEPT: &str = "keeper.redb.format-3-1";

fn lay(folder: &Path) -> PathBuf {
    let path = folder.join(FILE_NAME);
    std::fs::write(&path, OLD).unwrap();
    path
}

/// Changes a value in a store that is not open.
fn put(path: &Path, key: &str, value: &[u8]) {
    let database = redb::Database::open(path).unwrap();
    let mut transaction = database.begin_write().unwrap();
    transaction.set_two_phase_commit(true);
    let table = redb::TableDefinition::<&str, &[u8]>::new("soloist keeper");
    let inserted = transaction
        .open_table(table)
        .unwrap()
        .insert(key, value)
        .map(drop);
    inserted.unwrap();
    transaction.commit().unwrap();
}

#[tokio::test]
async fn a_store_of_the_last_format_is_migrated_and_kept() {
    let folder = tempfile::tempdir().unwrap();
    lay(folder.path());
    let store = Store::open_in(folder.path(), &name("a")).await.unwrap();
    let identity = StoreIdentity {
        cluster: None,
        id: id_of(&name("a")),
    };
    assert_eq!(store.identity(), identity);
    let roster = store.rosters().borrow().clone();
    assert!(roster.is_founded() && roster.cluster().is_none());
    let (.., closer) = store.split();
    closer.close().await;
    assert!(std::fs::read(folder.path().join(KEPT)).unwrap() == OLD);
    // The second time there is nothing to migrate.
    let store = Store::open_in(folder.path(), &name("a")).await.unwrap();
    assert_eq!(store.identity(), identity);
    let (.., closer) = store.split();
    closer.close().await;
    let files = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(files, 2);
}

#[tokio::test]
async fn a_crash_before_the_migration_leaves_one_copy() {
    let folder = tempfile::tempdir().unwrap();
    lay(folder.path());
    std::fs::write(folder.path().join(KEPT), OLD).unwrap();
    // An unrelated file with such a name is not overwritten.
    std::fs::write(folder.path().join("keeper.redb.format-3-2"), "mine").unwrap();
    let (.., closer) = Store::open_in(folder.path(), &name("a"))
        .await
        .unwrap()
        .split();
    closer.close().await;
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 3);
}

#[tokio::test]
async fn another_nodes_or_a_newer_store_is_not_touched() {
    let folder = tempfile::tempdir().unwrap();
    let path = lay(folder.path());
    let error = Store::open(&path, &name("b")).await.unwrap_err();
    assert!(matches!(error, StoreError::Owner { .. }), "{error}");
    put(&path, "format", &postcard::to_allocvec(&5_u32).unwrap());
    let newer = std::fs::read(&path).unwrap();
    for error in [
        Store::open(&path, &name("a")).await.unwrap_err(),
        Store::recover(folder.path(), node("a")).await.unwrap_err(),
    ] {
        let text = error.to_string();
        assert!(
            text.contains("format 5") && text.contains("3 to 4"),
            "{text}"
        );
    }
    assert!(std::fs::read(&path).unwrap() == newer);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

fn node(called: &str) -> KeeperNode {
    KeeperNode {
        name: name(called),
        address: "127.0.0.1:1".parse().unwrap(),
    }
}

#[tokio::test]
async fn an_old_store_is_recovered_into_a_new_generation() {
    let folder = tempfile::tempdir().unwrap();
    lay(folder.path());
    let recovered = Store::recover(folder.path(), node("a")).await.unwrap();
    let Recovery {
        cluster,
        epoch_before,
        epoch_after,
        cut_off,
        kept,
        ..
    } = recovered;
    assert_eq!(cluster.generation.number, 1);
    assert_eq!((epoch_before, epoch_after), (12, 1 << 24));
    assert_eq!(cut_off.len(), 2);
    assert!(std::fs::read(kept).unwrap() == OLD);
    let store = Store::open_in(folder.path(), &name("a")).await.unwrap();
    assert_eq!(store.identity().cluster, Some(cluster));
    assert_ne!(store.identity().id, id_of(&name("a")));
}

async fn start(site: &mut Site, nodes: &[KeeperNode]) {
    // The old store contains the addresses of that time.
    let addresses = nodes.iter().map(|node| {
        let address = node.address.to_string();
        (node.name.clone(), address)
    });
    let settings = Settings {
        endpoint: site.endpoint().reaching(addresses.collect()),
        ..site.settings()
    };
    site.start_with(settings).await;
}

/// Three keepers with stores of the previous format form a cluster again, and it gets an identity.
#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_from_before_gets_an_identity_and_its_fences_rise() {
    let mut cluster = Cluster::stopped(&["a", "b", "c"]).await;
    let nodes: Vec<_> = cluster.sites.iter().map(|site| site.node.clone()).collect();
    for site in &mut cluster.sites {
        let path = lay(site.folder());
        let owner = postcard::to_allocvec(&site.node.name).unwrap();
        put(&path, "owner", &owner);
        start(site, &nodes).await;
        assert_eq!(site.id(), id_of(&site.node.name));
        assert_eq!(site.keeper().identity().cluster, None);
    }
    let leader = cluster.leader().await;
    let roster = cluster.sites[leader].keeper().roster();
    assert_eq!(roster.next_epoch(), 13);
    let identity = ClusterIdentity {
        id: ClusterId::from_bytes(rand::random()),
        generation: roster.first_generation(0).unwrap(),
    };
    assert_eq!(identity.generation.number, 0);
    let is_done = |roster: &Roster| roster.cluster() == Some(identity);
    let identify = Command::Identify { cluster: identity };
    cluster.decide(identify.clone(), is_done).await;
    for site in &cluster.sites {
        let keeper = site.keeper();
        until("all know it", || {
            keeper.identity().cluster == Some(identity)
        })
        .await;
        assert_eq!(keeper.roster().begun().unwrap().epoch, 13 << 8);
    }
    // Above the highest fence that epoch 12 can have issued when epochs had 24 bits.
    let next = Fence::first_of((13 << 8) + 1).number();
    assert!(next > (12 << 40) + ((1 << 40) - 1));
    // A second identity is refused.
    let (leader, term) = cluster.reign().await;
    let again = cluster.sites[leader].keeper().propose(term, identify).await;
    assert!(!matches!(again, Ok(Applied::Done)), "{again:?}");
    cluster.begin((13 << 8) + 1).await;
    cluster.all_have((13 << 8) + 1).await;
    // The identity is on disk, and replaying the log gives the same roster, also after a snapshot.
    for round in 0..2 {
        for site in &mut cluster.sites {
            let before = site.keeper().roster();
            site.stop().await;
            start(site, &nodes).await;
            assert_eq!(site.keeper().identity().cluster, Some(identity));
            until("it has what it had", || site.keeper().roster() == before).await;
        }
        for epoch in 0..10 {
            cluster.begin((13 << 8) + 2 + 10 * round + epoch).await;
        }
        cluster.all_have((13 << 8) + 11 + 10 * round).await;
    }
}
