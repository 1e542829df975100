//! Keepers' disks that are full, lost, damaged or mixed up.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Instant;

use crate::cluster::{Cluster, Plan, stderr};
use crate::network::Namespace;
use crate::raw;
use crate::workers::Workers;
use crate::{ALL, GRACE, LEASE, LOCKS, TIMEOUT, all_but, isolation, keepers_but, until};

const STORE: &str = "data/keeper.redb";

/// Expects that the vote of a keeper counts: without another keeper, there is a majority only with
/// this one.
async fn counts(cluster: &mut Cluster, keeper: usize, workers: &Workers, names: &[String]) {
    let [other, _] = keepers_but(keeper);
    cluster.kill(other);
    cluster.together(&all_but(other)).await;
    cluster.restart(other).await;
    cluster.together(&ALL).await;
    workers.referee.serves(names, 2 * LEASE + GRACE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_founder_on_a_full_disk_stops_keeping_until_there_is_room() {
    if isolation::is_missing() {
        return;
    }
    fill_the_disk_of(0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_keeper_on_a_full_disk_stops_until_there_is_space() {
    if isolation::is_missing() {
        return;
    }
    fill_the_disk_of(2).await;
}

async fn fill_the_disk_of(victim: usize) {
    let lease = 2 * LEASE;
    let mut cluster = Cluster::init(&Plan {
        lease,
        ..Plan::default()
    });
    let data = cluster.file(victim, "data");
    let before = data.with_file_name("data-before");
    // Move the files that `soloist init` created onto the small disk.
    if !data.exists() {
        fs::create_dir(&data).unwrap();
    }
    fs::rename(&data, &before).unwrap();
    fs::create_dir(&data).unwrap();
    let (data, before) = (data.display(), before.display());
    let home = Namespace::new("mnt");
    home.run(&format!(
        "mount -t tmpfs -o size=8m,mode=700 tmpfs {data}\ncp -r {before}/. {data}"
    ));
    cluster.give_home(victim, home);
    ALL.into_iter().for_each(|node| cluster.spawn(node));
    cluster.together(&ALL).await;
    let mut workers = Workers::new();
    let names = workers.start(&cluster, &[1, 3], &LOCKS);

    let fill = format!("dd if=/dev/zero of={data}/fill bs=4k 2> /dev/null || true");
    cluster.home(victim).run(&fill);
    let began = Instant::now();
    while !cluster.log(victim).contains("this keeper has stopped") {
        assert!(began.elapsed() < TIMEOUT, "it did not notice");
        // Every keeper persists these changes. A node that joined and left instead would soon have
        // to wait.
        cluster.promote(3, 4).await;
        cluster.demote(3, 4).await;
    }
    println!("noticed after {:?}", began.elapsed());
    let store_ok = |node| {
        raw::metric(
            &cluster.file(node, "soloist.sock"),
            "soloist_keeper_store_ok",
        )
    };
    assert_eq!((store_ok(victim), store_ok(1)), (Some(0.0), Some(1.0)));
    // It is still a member.
    cluster.together(&ALL).await;
    workers.referee.serves(&names, lease + GRACE).await;

    cluster.home(victim).run(&format!("rm {data}/fill"));
    cluster.end(victim).await;
    cluster.restart(victim).await;
    counts(&mut cluster, victim, &workers, &names).await;
    let lost = workers.referee.losses();
    let of_others = lost.iter().filter(|lost| lost.worker.starts_with("n3 "));
    assert_eq!(of_others.count(), 0, "{lost:?}");
    workers.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_keeper_that_lost_its_data_does_not_vote() {
    let mut cluster = Cluster::start(Plan::default()).await;
    let mut workers = Workers::new();
    let names = workers.start(&cluster, &[3, 4], &LOCKS);
    let leader = cluster.led_by(4, &[0, 1, 2]).await;
    let [victim, other] = keepers_but(leader);
    cluster.kill(victim);
    fs::remove_dir_all(cluster.file(victim, "data")).unwrap();
    cluster.restart(victim).await;
    cluster.says(victim, "has lost its store").await;
    let log = cluster.log(victim);
    assert!(log.contains("demote") && log.contains("promote"), "{log}");
    workers.referee.serves(&names, LEASE + GRACE).await;

    // Without the other keeper there is no majority, although two of three are running.
    cluster.kill(other);
    for node in [leader, victim, 3, 4] {
        until("no node is a member", async || {
            !cluster.is_member(node).await
        })
        .await;
    }
    assert!(!cluster.file(victim, STORE).exists());
    cluster.restart(other).await;
    cluster.together(&ALL).await;
    workers.referee.serves(&names, LEASE + GRACE).await;

    for change in ["demote", "promote"] {
        let output = cluster.soloist_at(4, &format!("cluster {change} n{victim}"));
        assert!(output.status.success(), "{}", stderr(&output));
    }
    assert!(cluster.file(victim, STORE).exists());
    counts(&mut cluster, victim, &workers, &names).await;
    workers.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_cannot_be_trusted_is_left_alone() {
    let mut cluster = Cluster::start(Plan::default()).await;
    ALL.into_iter().for_each(|node| cluster.kill(node));
    let store = cluster.file(1, STORE);
    let whole = fs::read(&store).unwrap();
    let foreign = fs::read(cluster.file(2, STORE)).unwrap();
    let mut damaged = whole.clone();
    damaged[4096..]
        .iter_mut()
        .step_by(64)
        .for_each(|byte| *byte ^= 0x55);
    let cases: [(&[u8], &str); 4] = [
        (&damaged, "damaged"),
        (&whole[..whole.len() / 2], "damaged"),
        (b"hello", "not the store of a keeper"),
        (&foreign, "belongs to the node n2"),
    ];
    for (content, word) in cases {
        fs::write(&store, content).unwrap();
        refuses(&cluster, &store, word);
    }
    fs::write(&store, &whole).unwrap();
    age(&store);
    refuses(&cluster, &store, "has format 99");

    fs::write(&store, &whole).unwrap();
    ALL.into_iter().for_each(|node| cluster.spawn(node));
    cluster.together(&ALL).await;
}

/// Changes the format version of a store.
fn age(store: &Path) {
    let database = redb::Database::open(store).unwrap();
    let mut transaction = database.begin_write().unwrap();
    transaction.set_two_phase_commit(true);
    let table = redb::TableDefinition::<&str, &[u8]>::new("soloist keeper");
    let mut opened = transaction.open_table(table).unwrap();
    opened.insert("format", [99].as_slice()).unwrap();
    drop(opened);
    transaction.commit().unwrap();
}

/// Expects that the keeper does not start, reports the reason on one line, and changes nothing.
fn refuses(cluster: &Cluster, store: &Path, word: &str) {
    let before = fs::read(store).unwrap();
    let mut command = cluster.node_command(1);
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut running = command.spawn().unwrap();
    let began = Instant::now();
    while running.try_wait().unwrap().is_none() {
        if began.elapsed() > TIMEOUT {
            let _ = running.kill();
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let output = running.wait_with_output().unwrap();
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{word}: {said}");
    assert_eq!(said.trim_end().lines().count(), 1, "{said}");
    assert!(said.contains(&store.display().to_string()), "{said}");
    assert!(said.contains(word), "no {word:?} in {said}");
    assert!(fs::read(store).unwrap() == before, "{word}: it was changed");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_keeper_continues_when_the_others_are_lost() {
    let mut cluster = Cluster::start(Plan::default()).await;
    let mut workers = Workers::new();
    let mut fences = Vec::new();
    for lock in LOCKS {
        let holder = workers.enter(&cluster, 4, lock).await;
        fences.push(holder.fence());
        holder.leave().await.unwrap();
    }
    let command = "cluster recover --config n2/soloist.toml";
    cluster.end(2).await;
    let output = cluster.soloist_at(2, command);
    assert_eq!(output.status.code(), Some(2), "it must be said aloud");
    // The other keepers are still running.
    cluster.led_by(4, &[0, 1]).await;
    let before = fs::read(cluster.file(2, STORE)).unwrap();
    let output = cluster.soloist_at(2, &format!("{command} --the-others-are-lost"));
    assert!(!output.status.success(), "a second cluster");
    let said = stderr(&output);
    assert!(
        said.contains("as the leader: the keepers have a majority"),
        "{said}"
    );
    assert!(fs::read(cluster.file(2, STORE)).unwrap() == before);

    cluster.kill(0);
    cluster.kill(1);
    for node in [0, 1] {
        fs::remove_dir_all(cluster.file(node, "data")).unwrap();
    }
    for node in [3, 4] {
        cluster.end(node).await;
    }
    let output = cluster.soloist_at(2, &format!("{command} --the-others-are-lost --json"));
    assert!(output.status.success(), "{}", stderr(&output));
    let recovered: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        recovered["lost_keepers"].as_array().map(Vec::len),
        Some(2),
        "{recovered}"
    );
    let backup = recovered["backup"].as_str().expect("a file");
    assert!(cluster.folder().join(backup).exists(), "{backup}");

    ALL.into_iter()
        .rev()
        .skip(2)
        .for_each(|node| cluster.spawn(node));
    ALL.into_iter().skip(3).for_each(|node| cluster.spawn(node));
    cluster.together(&ALL).await;
    for keeper in [0, 1] {
        let output = cluster.soloist_at(4, &format!("cluster promote n{keeper}"));
        assert!(output.status.success(), "{}", stderr(&output));
    }
    for (lock, before) in LOCKS.iter().zip(fences) {
        let holder = workers.enter(&cluster, 3, lock).await;
        assert!(holder.fence() > before, "{} after {before}", holder.fence());
        holder.leave().await.unwrap();
    }
    let names = workers.start(&cluster, &ALL, &LOCKS);
    counts(&mut cluster, 0, &workers, &names).await;
    workers.end().await;
}
