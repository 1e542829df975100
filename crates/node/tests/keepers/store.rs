//! The store: Raft's requirements, restarts, and unusable files.

use std::path::{Path, PathBuf};

use openraft::storage::{RaftLogStorage, RaftStateMachine};
use openraft::testing::{StoreBuilder, Suite};
use openraft::{RaftSnapshotBuilder, StorageError, Vote};
use soloist_api::NodeName;
use soloist_core::cluster_identity::{ClusterId, ClusterIdentity, Generation};
use soloist_node::cluster_memory::fresh_identity;
use soloist_node::keepers::store::{LogStore, Machine};
use soloist_node::keepers::{Store, StoreError, StoreIdentity, Types};
use tempfile::TempDir;

fn name(name: &str) -> NodeName {
    name.parse().unwrap()
}

fn identity() -> StoreIdentity {
    let generation = Generation {
        number: 0,
        nonce: 7,
    };
    let id = ClusterId::from_bytes([7; 16]);
    StoreIdentity::fresh(ClusterIdentity { id, generation })
}

/// Creates a store of node a, and closes it.
async fn made(folder: &Path) {
    let store = Store::create(folder, &name("a"), identity()).await;
    let (.., closer) = store.unwrap().split();
    closer.close().await;
}

struct Builder;

impl StoreBuilder<Types, LogStore, Machine, TempDir> for Builder {
    async fn build(&self) -> Result<(TempDir, LogStore, Machine), StorageError<u64>> {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::create(folder.path(), &name("a"), identity()).await;
        let (log, machine, _) = store.unwrap().split();
        Ok((folder, log, machine))
    }
}

#[test]
fn it_is_what_raft_asks_for() {
    Suite::test_all(Builder).unwrap();
}

fn path(folder: &TempDir) -> PathBuf {
    folder.path().join("keeper.redb")
}

/// Creates a store with a vote in it, and closes it.
async fn used(path: &Path) {
    made(path.parent().unwrap()).await;
    let (mut log, _, closer) = Store::open(path, &name("a")).await.unwrap().split();
    log.save_vote(&Vote::new(3, 7)).await.unwrap();
    closer.close().await;
}

async fn error(path: &Path, node: &str) -> StoreError {
    let before = std::fs::read(path).unwrap();
    let error = Store::open(path, &name(node)).await.unwrap_err();
    assert!(std::fs::read(path).unwrap() == before, "{error}");
    let text = error.to_string();
    assert!(text.contains(&path.display().to_string()), "{text}");
    error
}

#[tokio::test]
async fn a_vote_outlives_the_process() {
    let folder = tempfile::tempdir().unwrap();
    used(&path(&folder)).await;
    let (mut log, ..) = Store::open(&path(&folder), &name("a"))
        .await
        .unwrap()
        .split();
    assert_eq!(log.read_vote().await.unwrap(), Some(Vote::new(3, 7)));
}

/// The file as a power failure leaves it: the process did not close it.
#[tokio::test]
async fn a_vote_outlives_a_crash() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::create(folder.path(), &name("a"), identity()).await;
    let store = store.unwrap();
    let (mut log, _, closer) = store.split();
    log.save_vote(&Vote::new(3, 7)).await.unwrap();
    let left = folder.path().join("left.redb");
    std::fs::copy(path(&folder), &left).unwrap();
    log.save_vote(&Vote::new(4, 7)).await.unwrap();
    closer.close().await;
    let (mut log, ..) = Store::open(&left, &name("a")).await.unwrap().split();
    assert_eq!(log.read_vote().await.unwrap(), Some(Vote::new(3, 7)));
}

#[tokio::test]
async fn a_store_cannot_be_opened_twice() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::create(folder.path(), &name("a"), identity()).await;
    let (.., closer) = store.unwrap().split();
    let error = error(&path(&folder), "a").await;
    assert!(matches!(error, StoreError::Locked { .. }), "{error}");
    assert!(error.to_string().contains("another process"), "{error}");
    closer.close().await;
    Store::open(&path(&folder), &name("a")).await.unwrap();
}

#[tokio::test]
async fn a_store_is_created_once_and_keeps_its_identity() {
    let folder = tempfile::tempdir().unwrap();
    let error = Store::open_in(folder.path(), &name("a")).await.unwrap_err();
    assert!(matches!(error, StoreError::Missing { .. }), "{error}");
    assert!(!Store::exists(folder.path()));
    let (first, second) = (identity(), identity());
    let store = Store::create(folder.path(), &name("a"), first).await;
    let store = store.unwrap();
    assert_eq!(store.identity(), first);
    let (.., closer) = store.split();
    closer.close().await;
    let before = std::fs::read(path(&folder)).unwrap();
    let again = Store::create(folder.path(), &name("a"), second).await;
    let error = again.unwrap_err();
    assert!(matches!(error, StoreError::Exists { .. }), "{error}");
    assert!(std::fs::read(path(&folder)).unwrap() == before);
    let store = Store::open_in(folder.path(), &name("a")).await.unwrap();
    assert_eq!(store.identity(), first);
}

#[tokio::test]
async fn a_store_that_is_set_aside_is_not_lost() {
    let folder = tempfile::tempdir().unwrap();
    let mut before = Vec::new();
    for number in 1..=3 {
        made(folder.path()).await;
        before.push(std::fs::read(path(&folder)).unwrap());
        let aside = Store::set_aside(folder.path(), "a test").unwrap();
        let called = aside.file_name().unwrap().to_str().unwrap();
        assert_eq!(called, format!("keeper.redb.set-aside-{number}"));
        assert!(!Store::exists(folder.path()));
        for (place, bytes) in before.iter().enumerate() {
            let kept = format!("keeper.redb.set-aside-{}", place + 1);
            assert!(std::fs::read(folder.path().join(kept)).unwrap() == *bytes);
        }
    }
    let error = Store::set_aside(folder.path(), "a test").unwrap_err();
    assert!(matches!(error, StoreError::Missing { .. }), "{error}");
    let store = Store::create(folder.path(), &name("a"), identity()).await;
    let (.., closer) = store.unwrap().split();
    // A store that is in use is not set aside.
    let error = Store::set_aside(folder.path(), "a test").unwrap_err();
    assert!(matches!(error, StoreError::Locked { .. }), "{error}");
    closer.close().await;
}

#[tokio::test]
async fn another_clusters_snapshot_is_refused() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let other = StoreIdentity::fresh(fresh_identity());
    let theirs = Store::create(folders[0].path(), &name("a"), other).await;
    let (_, mut theirs, _closer) = theirs.unwrap().split();
    let mut builder = theirs.get_snapshot_builder().await;
    let snapshot = builder.build_snapshot().await.unwrap();
    let mine = Store::create(folders[1].path(), &name("a"), identity()).await;
    let (_, mut mine, _closer) = mine.unwrap().split();
    let installed = mine.install_snapshot(&snapshot.meta, snapshot.snapshot);
    let error = installed.await.unwrap_err().to_string();
    assert!(error.contains("is of cluster"), "{error}");
    assert!(mine.get_current_snapshot().await.unwrap().is_none());
}

#[tokio::test]
async fn a_closed_store_returns_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::create(folder.path(), &name("a"), identity()).await;
    let store = store.unwrap();
    let (mut log, _, closer) = store.split();
    closer.close().await;
    let error = log.save_vote(&Vote::new(3, 7)).await.unwrap_err();
    assert!(error.to_string().contains("is closed"), "{error}");
}

#[tokio::test]
async fn an_incomplete_file_left_by_a_crash_is_recreated() {
    let folder = tempfile::tempdir().unwrap();
    let half = folder.path().join("keeper.redb.new");
    std::fs::write(&half, b"half of a file").unwrap();
    used(&path(&folder)).await;
    assert!(!half.exists());
}

#[tokio::test]
async fn a_file_of_something_else_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = path(&folder);
    for (bytes, says) in [(&b""[..], "it is empty"), (b"my diary", "not a database")] {
        std::fs::write(&path, bytes).unwrap();
        let error = error(&path, "a").await;
        assert!(matches!(error, StoreError::NotAStore { .. }), "{error}");
        assert!(error.to_string().contains(says), "{error}");
    }
    std::fs::remove_file(&path).unwrap();
    drop(redb::Database::create(&path).unwrap());
    let error = error(&path, "a").await;
    assert!(matches!(error, StoreError::NotAStore { .. }), "{error}");
    assert!(error.to_string().contains("another program"), "{error}");
}

#[tokio::test]
async fn a_missing_folder_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("not here").join("keeper.redb");
    let error = Store::open(&path, &name("a")).await.unwrap_err();
    assert!(matches!(error, StoreError::Missing { .. }), "{error}");
    assert!(error.to_string().contains("not here"), "{error}");
}

#[tokio::test]
async fn another_nodes_store_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    used(&path(&folder)).await;
    let error = error(&path(&folder), "b").await;
    assert!(matches!(error, StoreError::Owner { .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains("node a") && text.contains("is b"), "{text}");
}

#[tokio::test]
async fn another_versions_store_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = path(&folder);
    used(&path).await;
    // Formats older than the oldest one that is migrated, and a future one.
    for found in [1, 2, 6] {
        let database = redb::Database::open(&path).unwrap();
        let mut transaction = database.begin_write().unwrap();
        transaction.set_two_phase_commit(true);
        let table = redb::TableDefinition::<&str, &[u8]>::new("soloist keeper");
        let format = postcard::to_allocvec::<u32>(&found).unwrap();
        let inserted = transaction
            .open_table(table)
            .unwrap()
            .insert("format", format.as_slice())
            .map(drop);
        inserted.unwrap();
        transaction.commit().unwrap();
        drop(database);
        let error = error(&path, "a").await;
        let versions = StoreError::Version {
            file: path.display().to_string(),
            found,
            oldest: 3,
            newest: 5,
        };
        assert_eq!(error.to_string(), versions.to_string());
    }
}

/// One byte is changed, or the end is missing. Either the byte was unused, or opening fails.
#[tokio::test]
async fn damage_is_noticed_and_nothing_is_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    used(&path(&folder)).await;
    let whole = std::fs::read(path(&folder)).unwrap();
    let damaged = folder.path().join("damaged.redb");
    let mut noticed = 0;
    // Most of the bytes in use are near the beginning.
    let header = (9..320).step_by(7);
    let pages = (320..1 << 16).step_by(1021);
    let rest = (1 << 16..whole.len()).step_by(65_537);
    for place in header.chain(pages).chain(rest) {
        let mut bytes = whole.clone();
        bytes[place] ^= 0x41;
        std::fs::write(&damaged, &bytes).unwrap();
        match Store::open(&damaged, &name("a")).await {
            Ok(store) => {
                let (mut log, _, closer) = store.split();
                let vote = log.read_vote().await.unwrap();
                assert_eq!(vote, Some(Vote::new(3, 7)), "byte {place}");
                closer.close().await;
            }
            Err(error) => {
                assert!(std::fs::read(&damaged).unwrap() == bytes, "byte {place}");
                noticed += 1;
                let text = error.to_string();
                assert!(text.contains("damaged.redb"), "byte {place}: {text}");
            }
        }
    }
    assert!(noticed > 10, "{noticed}");
    for length in [10, 4096, whole.len() / 2, whole.len() - 4096] {
        std::fs::write(&damaged, &whole[..length]).unwrap();
        let error = error(&damaged, "a").await;
        assert!(matches!(error, StoreError::Corrupt { .. }), "{error}");
        assert!(error.to_string().contains("promote"), "{error}");
    }
}
