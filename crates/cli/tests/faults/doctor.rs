//! `soloist doctor` on clusters that are well and on clusters that are not; departed nodes in
//! `soloist cluster`; `soloist watch --all`.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};
use soloist_client::Locks;
use soloist_client::api::session::NodeMessage;
use soloist_node::identity::{Authority, Validity};
use soloist_testing::wait::within;

use crate::cluster::{Cluster, Plan, stderr};
use crate::{LEASE, isolation, until};

/// Exit codes of `soloist doctor`.
const WELL: i32 = 0;
const WARNINGS: i32 = 1;
const CRITICAL: i32 = 3;
const CANNOT_TELL: i32 = 74;

/// If the first acquisitions take long on a busy machine, a wait is unusual only after a minute.
const FOUND_WITHIN: Duration = Duration::from_secs(90);

async fn three() -> Cluster {
    let nodes = 3;
    Cluster::start(Plan {
        nodes,
        ..Plan::default()
    })
    .await
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// Waits until `soloist doctor` on this node ends with this code and names all of these.
async fn finds(cluster: &Cluster, node: usize, code: i32, named: &[&str]) -> String {
    let mut last = String::new();
    let what = format!("doctor on n{node} ends with {code} and names {named:?}");
    within(FOUND_WITHIN, &what, async || {
        let output = cluster.soloist_at(node, "doctor");
        last = stdout(&output);
        let is_it = output.status.code() == Some(code) && named.iter().all(|n| last.contains(n));
        if !is_it {
            eprintln!("{:?}: {last}{}", output.status, stderr(&output));
        }
        is_it
    })
    .await;
    last
}

#[tokio::test(flavor = "multi_thread")]
async fn a_healthy_cluster_is_well() {
    let cluster = three().await;
    let page = finds(&cluster, 0, WELL, &["All is well.", "Keepers: all 3 work"]).await;
    assert!(
        page.contains("Certificates: the first expires in"),
        "{page}"
    );
    let output = cluster.soloist_at(1, "doctor --json");
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["from"], "n1");
    assert_eq!(json["problems"].as_array().map(Vec::len), Some(0), "{json}");
    assert_eq!(json["members"].as_array().map(Vec::len), Some(3), "{json}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_surviving_keeper_reports_a_lost_majority() {
    let mut cluster = three().await;
    cluster.kill(1);
    // One keeper fewer is critical, and the cluster still works.
    finds(&cluster, 0, CRITICAL, &["Keeper n1 is down", "keeper-down"]).await;
    cluster.kill(2);
    let named = [
        "2 of 3 keepers cannot be reached",
        "majority-lost",
        "no-lease",
    ];
    finds(&cluster, 0, CANNOT_TELL, &named).await;
    cluster.kill(0);
    let output = cluster.soloist_at(0, "doctor");
    assert_eq!(output.status.code(), Some(69), "{}", stderr(&output));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_cut_off_is_outside_until_it_is_back() {
    if isolation::is_missing() {
        return;
    }
    let network = true;
    let cluster = Cluster::start(Plan {
        network,
        ..Plan::default()
    })
    .await;
    let network = cluster.network.as_ref().expect("it has one");
    finds(&cluster, 0, WELL, &[]).await;
    network.cut(&[4], &[0, 1, 2, 3]);
    let named = ["n4 is not a member", "node-outside", "its lease expired"];
    finds(&cluster, 0, WARNINGS, &named).await;
    finds(
        &cluster,
        4,
        CANNOT_TELL,
        &["From n4, the state of the cluster is unknown.", "no-lease"],
    )
    .await;
    let shown = stdout(&cluster.soloist_at(1, "cluster"));
    assert!(shown.contains("n4 was evicted at"), "{shown}");
    network.heal();
    finds(&cluster, 0, WELL, &["Nodes: all 5 members answer"]).await;
    let shown = stdout(&cluster.soloist_at(1, "cluster"));
    assert!(!shown.contains("was evicted at"), "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_that_ends_tomorrow_is_critical() {
    let nodes = 3;
    let mut cluster = Cluster::init(&Plan {
        nodes,
        ..Plan::default()
    });
    let file = |name| cluster.folder().join(name);
    let authority = Authority::load(&file("ca.pem"), &file("ca.key")).unwrap();
    let name = "n2".parse().unwrap();
    let issued = authority
        .issue_valid(&name, &[], Validity::days(1))
        .unwrap();
    fs::write(cluster.file(2, "node.pem"), &issued.certificate).unwrap();
    fs::write(cluster.file(2, "node.key"), &issued.key).unwrap();
    (0..nodes).for_each(|node| cluster.spawn(node));
    cluster.together(&[0, 1, 2]).await;
    let named = [
        "The certificate of n2 expires in 23 h",
        "certificate-expires",
    ];
    finds(&cluster, 0, CRITICAL, &named).await;
    // Nobody can tell whether it was replaced.
    cluster.signal(2, Signal::STOP);
    let named = ["certificate-expires; not examined, last seen"];
    finds(&cluster, 0, CRITICAL, &named).await;
    cluster.signal(2, Signal::CONT);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stuck_holder_is_named_with_the_client_that_waits() {
    let cluster = three().await;
    let holder = cluster.client(0).await;
    let held = holder
        .lock("billing/close")
        .unwrap()
        .owner("deploy")
        .acquire()
        .await;
    let held = held.unwrap();
    let waiter = cluster.client(1).await;
    let waiting = tokio::spawn(async move {
        waiter
            .lock("billing/close")
            .unwrap()
            .owner("ledger")
            .acquire()
            .await
    });
    let named = [
        "billing/close is waited for",
        "ledger on n1 has waited",
        "deploy on n0 has held it",
        "soloist who billing/close",
    ];
    finds(&cluster, 2, WARNINGS, &named).await;
    drop(held);
    drop(waiting.await.unwrap().unwrap());
    finds(&cluster, 2, WELL, &[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_holds_of_a_killed_node_are_lost() {
    let mut cluster = three().await;
    let leader = cluster.led_by(0, &[0, 1, 2]).await;
    // Of the two others, one dies and one looks.
    let [dies, looks] = [(leader + 1) % 3, (leader + 2) % 3];
    let holder = cluster.client(dies).await;
    let mut held = Vec::new();
    for name in ["a", "b"] {
        held.push(holder.lock(name).unwrap().acquire().await.unwrap());
    }
    // A dashboard gets the second of the eviction, with what the leader knew of the holds.
    let client = cluster.client(looks).await;
    let member = async || {
        let found = client.overview().await.unwrap();
        let mut members = found.members.into_iter();
        let member = members.find(|member| member.name == format!("n{dies}"));
        member.map_or((None, None), |it| (it.holds, it.lease_left_ms))
    };
    until("the node has told of its holds", async || {
        member().await.0 == Some(2)
    })
    .await;
    // A renewal tells the leader. The first one that is seen may have been sent before that.
    let (mut renewals, mut before) = (0, None);
    until("it has renewed its lease twice", async || {
        let (_, left) = member().await;
        renewals += u32::from(before.is_some() && left > before);
        before = left;
        renewals == 2
    })
    .await;
    cluster.kill(dies);
    let mut session = client.raw_session().await.unwrap();
    session.send(r#"{"hello":{}}"#.to_owned()).await.unwrap();
    session
        .send(r#"{"follow":{"n":1}}"#.to_owned())
        .await
        .unwrap();
    let (mut lost, mut n) = (BTreeMap::new(), 1);
    let all_lost = until("the holds count as lost", async || {
        let text = session.next().await.unwrap().expect("the node runs");
        if let Ok(NodeMessage::History(history)) = serde_json::from_str(&text) {
            let points = (history.from_s..).zip(history.points);
            lost.extend(points.map(|(second, point)| (second, point.map_or(0, |it| it.lost))));
        }
        n += 1;
        session
            .send(json!({ "ping": { "n": n } }).to_string())
            .await
            .unwrap();
        lost.values().sum::<u64>() >= 2
    });
    all_lost.await;
    assert_eq!(lost.values().sum::<u64>(), 2);
    drop(held);
}

/// A process that is killed on drop.
struct Watcher(Child);

impl Drop for Watcher {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn watcher(cluster: &Cluster, node: usize, arguments: &[&str], to: &str) -> Watcher {
    let mut command: Command = cluster.soloist();
    command.env("SOLOIST_API", cluster.file(node, "soloist.sock"));
    let file = fs::File::create(cluster.folder().join(to)).unwrap();
    let watch = command.args(["watch", "--all", "--json"]).args(arguments);
    Watcher(watch.stdin(Stdio::null()).stdout(file).spawn().unwrap())
}

/// The whole events in a watcher's file.
fn events(cluster: &Cluster, file: &str) -> Vec<Value> {
    let text = fs::read_to_string(cluster.folder().join(file)).unwrap_or_default();
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    let lines = whole
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    lines.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn watch_all_shows_every_node_and_continues_after_a_cursor() {
    let cluster = three().await;
    let watching = watcher(&cluster, 0, &["--prefix", "a/"], "first");
    let enter = async |node: usize, lock: &str| {
        let client = cluster.client(node).await;
        drop(client.lock(lock).unwrap().acquire().await.unwrap());
        client.settle(Duration::from_secs(10)).await;
    };
    // The watcher may start late: enter until it sees one of each node.
    until("both nodes are shown", async || {
        enter(1, "a/1").await;
        enter(2, "b/1").await;
        enter(2, "a/2").await;
        let shown = events(&cluster, "first");
        let has = |node: &str| shown.iter().any(|event| event["node"] == node);
        has("n1") && has("n2")
    })
    .await;
    drop(watching);
    let shown = events(&cluster, "first");
    assert!(
        shown.iter().all(|event| event["lock"] != "b/1"),
        "{shown:?}"
    );
    let cursor = shown.last().unwrap()["cursor"].as_str().unwrap().to_owned();

    // Another node shows what happened in the meantime.
    let holder = cluster.client(1).await;
    let held = holder.lock("a/3").unwrap().acquire().await.unwrap();
    let waiter = cluster.client(2).await;
    let waited = waiter.lock("a/3").unwrap().owner("late");
    waited.acquire_within(LEASE / 10).await.unwrap_err();
    // Otherwise the lock could be released before the node hears that the waiter gave up.
    waiter.settle(Duration::from_secs(10)).await;
    drop(held);
    holder.settle(Duration::from_secs(10)).await;
    let _watching = watcher(
        &cluster,
        1,
        &["--prefix", "a/3", "--after", &cursor],
        "second",
    );
    let mut shown = Vec::new();
    until("both nodes' last events are shown", async || {
        shown = events(&cluster, "second");
        let has = |kind: &str| shown.iter().any(|event| event["event"] == kind);
        has("released") && has("gave-up")
    })
    .await;
    // Events of one node are in order, and those of different nodes nearly so. The holder waits
    // first if the token of this lock began at another node.
    let kinds_of = |node: &str| -> Vec<&str> {
        let of_node = shown.iter().filter(|event| event["node"] == node);
        of_node
            .filter_map(|event| event["event"].as_str())
            .collect()
    };
    let of_holder = kinds_of("n1");
    let of_holder = of_holder.strip_prefix(&["waiting"]).unwrap_or(&of_holder);
    assert_eq!(of_holder, ["acquired", "released"], "{shown:?}");
    assert_eq!(kinds_of("n2"), ["waiting", "gave-up"], "{shown:?}");
}
