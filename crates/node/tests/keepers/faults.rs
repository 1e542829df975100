//! A failing disk loses nothing that was acknowledged.

use openraft::storage::{RaftLogStorage, RaftLogStorageExt};
use openraft::{CommittedLeaderId, Entry, EntryPayload, LogId, RaftLogReader, Vote};
use soloist_core::Term;
use soloist_core::epochs::roster::Applied;
use soloist_node::cluster_memory::fresh_identity;
use soloist_node::keepers::store::LogStore;
use soloist_node::keepers::{Keeper, KeeperNode, Proposal, Settings, Store, StoreIdentity, Types};
use soloist_transport::{Endpoint, Security};

use crate::disk::Disk;
use crate::net::{begin, name, until};

fn id(index: u64) -> LogId<u64> {
    LogId::new(CommittedLeaderId::new(1, 7), index)
}

fn entry(index: u64) -> Entry<Types> {
    Entry {
        log_id: id(index),
        payload: EntryPayload::Normal(Proposal {
            term: Term(1),
            command: begin(index),
        }),
    }
}

/// What was acknowledged: the term of the vote, and the first and the next index of the log.
#[derive(Clone, Copy, Default, Debug)]
struct Acknowledged {
    term: u64,
    first: u64,
    next: u64,
}

/// Votes, appends and purges, until the disk fails or all steps are done.
async fn work(log: &mut LogStore) -> Acknowledged {
    let mut done = Acknowledged::default();
    for step in 0..8 {
        let worked = match step % 4 {
            0 => log.save_vote(&Vote::new(step, 7)).await,
            3 => log.purge(id(done.next - 2)).await,
            _ => {
                let entries = [entry(done.next), entry(done.next + 1)];
                log.blocking_append(entries).await
            }
        };
        if let Err(error) = worked {
            let text = error.to_string();
            assert!(text.contains("free disk space"), "{text}");
            // The store stays failed.
            let again = log.save_vote(&Vote::new(99, 7)).await.unwrap_err();
            assert!(again.to_string().contains("free disk space"), "{again}");
            break;
        }
        match step % 4 {
            0 => done.term = step,
            3 => done.first = done.next - 1,
            _ => done.next += 2,
        }
    }
    done
}

async fn open(disk: &Disk) -> Store {
    let opened = Store::open_backend("a disk", disk.clone(), &name("a")).await;
    opened.unwrap()
}

/// A disk with an empty store.
async fn new_disk() -> Disk {
    let disk = Disk::default();
    let identity = StoreIdentity::fresh(fresh_identity());
    let made = Store::create_backend("a disk", disk.clone(), &name("a"), identity).await;
    let (.., closer) = made.unwrap().split();
    closer.close().await;
    disk
}

/// Asserts that everything acknowledged is on the disk. An operation that was in progress must be
/// there entirely or not at all.
async fn examine(disk: &Disk, done: Acknowledged, case: &str) {
    let (mut log, _, closer) = open(disk).await.split();
    let vote = log.read_vote().await.unwrap();
    let term = vote.map_or(0, |vote| vote.leader_id.term);
    assert!(term >= done.term, "{case}: {term} {done:?}");
    let entries = log.try_get_log_entries(..).await.unwrap();
    let state = log.get_log_state().await.unwrap();
    let last = state.last_log_id.map_or(0, |last| last.index + 1);
    assert!(
        last == done.next || last == done.next + 2,
        "{case}: {last} {done:?}"
    );
    let first = state
        .last_purged_log_id
        .map_or(0, |purged| purged.index + 1);
    assert!(first >= done.first, "{case}: {first} {done:?}");
    let found: Vec<_> = entries.iter().map(|entry| entry.log_id.index).collect();
    assert_eq!(found, (first..last).collect::<Vec<_>>(), "{case}");
    closer.close().await;
}

/// Lets the disk fail at each of its operations in turn. After each failure, the machine crashes
/// with none, half or all of the unsynced changes written.
#[tokio::test(flavor = "multi_thread")]
async fn acknowledged_writes_survive_a_disk_failure_at_any_point() {
    let fresh = new_disk().await;
    let operations = {
        let disk = fresh.after_crash(0);
        let (mut log, ..) = open(&disk).await.split();
        let before = disk.used();
        let done = work(&mut log).await;
        assert_eq!(done.next, 8);
        disk.used() - before
    };
    assert!(operations > 40, "{operations}");
    for fails_after in 0..operations {
        let disk = fresh.after_crash(0);
        let (mut log, ..) = open(&disk).await.split();
        disk.fail_after(fails_after);
        let done = work(&mut log).await;
        for arrived in [0, disk.unsynced() / 2, disk.unsynced()] {
            let case = format!("failed after {fails_after}, {arrived} arrived");
            examine(&disk.after_crash(arrived), done, &case).await;
        }
    }
}

async fn start(disk: &Disk) -> Keeper {
    let node = KeeperNode {
        name: name("a"),
        address: "127.0.0.1:1".parse().unwrap(),
    };
    let settings = Settings::new(node, Endpoint::new(name("a"), Security::Plain));
    Keeper::start(settings, open(disk).await).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_keeper_with_a_full_disk_stops_and_says_so() {
    let disk = new_disk().await;
    let keeper = start(&disk).await;
    keeper.initialize().await.unwrap();
    until("it leads", || keeper.view().leads).await;
    let term = keeper.view().term;
    disk.fail_after(100);
    let mut epoch = 0;
    let error = loop {
        match keeper.propose(term, begin(epoch + 1)).await {
            Ok(applied) => assert_eq!(applied, Applied::Done),
            Err(error) => break error,
        }
        epoch += 1;
        assert!(epoch < 1000);
    };
    assert!(epoch > 0);
    assert!(error.to_string().contains("free disk space"), "{error}");
    until("it has stopped", || keeper.view().stopped.is_some()).await;
    let view = keeper.view();
    assert!(!view.leads);
    let reason = view.stopped.unwrap();
    assert!(reason.contains("free disk space"), "{reason}");
    assert!(keeper.confirm_leadership(term).await.is_err());
    keeper.shutdown().await;

    let keeper = start(&disk.after_crash(0)).await;
    until("it leads again", || keeper.view().leads).await;
    let term = keeper.view().term;
    keeper.confirm_leadership(term).await.unwrap();
    assert!(keeper.roster().next_epoch() > epoch);
}
