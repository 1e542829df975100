//! Stores of earlier formats.
//!
//! - `stores/format-3.redb` was written by the last release whose stores had no identity. It
//!   belongs to a, one of three keepers. It contains a snapshot, log entries after it, and epochs 1
//!   to 12, with epoch 11 installed.
//! - `stores/format-4.redb` was written by the last release that stored what is held when an epoch
//!   begins. It belongs to a, the only keeper. It contains a snapshot, log entries after it, and
//!   epochs 1 to 15, each with two members. All but the last are installed: the even ones with
//!   names in one command, the odd ones with names that were staged. The last one has staged names.

use std::path::{Path, PathBuf};
use std::time::Duration;

use redb::{ReadableDatabase, ReadableTable};
use soloist_api::Fence;
use soloist_core::cluster_identity::{ClusterId, ClusterIdentity};
use soloist_core::epochs::roster::{Applied, Command, Roster};
use soloist_node::keepers::store::FILE_NAME;
use soloist_node::keepers::{
    Keeper, KeeperNode, Recovery, Settings, Store, StoreError, StoreIdentity, id_of,
};
use soloist_transport::{Endpoint, Security};

use crate::net::{Cluster, Site, begin, name, until};

const OLD: &[u8] = include_bytes!("stores/format-3.redb");
const KEPT: &str = "keeper.redb.format-3-1";
const OLD_4: &[u8] = include_bytes!("stores/format-4.redb");
const KEPT_4: &str = "keeper.redb.format-4-1";

fn lay(folder: &Path) -> PathBuf {
    lay_bytes(folder, OLD)
}

fn lay_bytes(folder: &Path, bytes: &[u8]) -> PathBuf {
    let path = folder.join(FILE_NAME);
    std::fs::write(&path, bytes).unwrap();
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
async fn a_store_of_format_3_is_migrated_and_kept() {
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
    put(&path, "format", &postcard::to_allocvec(&6_u32).unwrap());
    let newer = std::fs::read(&path).unwrap();
    for error in [
        Store::open(&path, &name("a")).await.unwrap_err(),
        Store::recover(folder.path(), node("a")).await.unwrap_err(),
    ] {
        let text = error.to_string();
        assert!(
            text.contains("format 6") && text.contains("3 to 5"),
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
        (node.name.clone(), vec![address.parse().unwrap()])
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
    let (leader, term) = cluster.leader_and_term().await;
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

/// Whether these bytes occur in a file.
fn contains(bytes: &[u8], part: &str) -> bool {
    let mut windows = bytes.windows(part.len());
    windows.any(|window| window == part.as_bytes())
}

/// The only keeper of a store continues where the earlier release stopped.
async fn resume(folder: &Path) -> Keeper {
    let store = Store::open_in(folder, &name("a")).await.unwrap();
    let endpoint = Endpoint::new(name("a"), Security::Plain);
    let settings = Settings::new(node("a"), endpoint);
    let keeper = Keeper::start(settings, store).await.unwrap();
    until("it leads", || keeper.view().leads).await;
    keeper
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_of_format_4_is_migrated_without_the_names_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = lay_bytes(folder.path(), OLD_4);
    let names = ["billing/nightly", "deploy/14", "13/000000"];
    assert!(names.iter().all(|name| contains(OLD_4, name)));
    let cluster = ClusterIdentity::new(ClusterId::from_bytes(*b"0123456789abcdef"), 7);
    // The second time there is nothing to migrate.
    for next in [16, 17] {
        let keeper = resume(folder.path()).await;
        let identity = StoreIdentity {
            cluster: Some(cluster),
            id: 0xabcd,
        };
        assert_eq!(keeper.identity(), identity);
        let roster = keeper.roster();
        assert_eq!(roster.cluster(), Some(cluster));
        assert_eq!(roster.longest_lease(), Duration::from_millis(3158));
        assert_eq!(roster.held_off()[0].name, name("m3"));
        assert_eq!(roster.next_epoch(), next);
        assert_eq!((roster.installed(), roster.is_changing()), (Some(14), true));
        if next == 16 {
            let members = &roster.begun().unwrap().members;
            let members: Vec<_> = members
                .iter()
                .map(|one| (one.name.as_str(), one.incarnation.0))
                .collect();
            assert_eq!(members, [("m1", 30), ("m2", 31)]);
        }
        let term = keeper.view().term;
        let applied = keeper.propose(term, begin(next)).await.unwrap();
        assert_eq!(applied, Applied::Done);
        keeper.shutdown().await;
    }
    assert!(std::fs::read(folder.path().join(KEPT_4)).unwrap() == OLD_4);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
    // Pages that are no longer used may still contain the names, but no entry and no snapshot does.
    let database = redb::Database::open(&path).unwrap();
    let transaction = database.begin_read().unwrap();
    let log = redb::TableDefinition::<u64, &[u8]>::new("log");
    let log = transaction.open_table(log).unwrap();
    let state = redb::TableDefinition::<&str, &[u8]>::new("soloist keeper");
    let state = transaction.open_table(state).unwrap();
    let entries = log
        .iter()
        .unwrap()
        .map(|item| item.unwrap().1.value().to_vec());
    let values = state
        .iter()
        .unwrap()
        .map(|item| item.unwrap().1.value().to_vec());
    let all: Vec<_> = entries.chain(values).collect();
    assert!(all.len() > 20, "there is a log");
    for value in all {
        assert!(!names.iter().any(|name| contains(&value, name)));
    }
}

#[tokio::test]
async fn a_store_of_format_4_that_is_damaged_is_not_touched() {
    let folder = tempfile::tempdir().unwrap();
    let path = lay_bytes(folder.path(), OLD_4);
    put(&path, "snapshot", &[0]);
    let damaged = std::fs::read(&path).unwrap();
    let error = Store::open(&path, &name("a")).await.unwrap_err();
    assert!(matches!(error, StoreError::Corrupt { .. }), "{error}");
    assert!(std::fs::read(&path).unwrap() == damaged);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[tokio::test]
async fn a_store_of_format_4_is_recovered_into_a_new_generation() {
    let folder = tempfile::tempdir().unwrap();
    lay_bytes(folder.path(), OLD_4);
    let recovered = Store::recover(folder.path(), node("a")).await.unwrap();
    assert_eq!(recovered.cluster.generation.number, 1);
    let Recovery {
        epoch_before,
        epoch_after,
        members,
        kept,
        ..
    } = recovered;
    assert_eq!((epoch_before, epoch_after), (15, 1 << 24));
    assert_eq!(members.len(), 2);
    assert!(std::fs::read(kept).unwrap() == OLD_4);
}
