//! Commands under `soloist lock` whose node is cut off.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

use soloist_client::{Guard, Locks};
use soloist_testing::scripts::{QUICK, STUBBORN, TIDY, look_for};

use crate::cluster::{Cluster, Plan};
use crate::{LEASE, TIMEOUT, isolation, until};

const LOCK: &str = "raymond/a";

/// A running `soloist lock`, which is killed on drop.
struct Locked {
    child: Child,
    lines: Receiver<String>,
}

impl Locked {
    /// Runs a shell script under the lock on a node.
    fn start(cluster: &Cluster, node: usize, script: &str) -> Self {
        Self::start_with(cluster, &[node], &[], script)
    }

    /// Runs a shell script under the lock, with these options, on the first of the nodes that
    /// serves it.
    fn start_with(cluster: &Cluster, nodes: &[usize], options: &[&str], script: &str) -> Self {
        let mut command = cluster.soloist();
        let sockets = nodes.iter().map(|node| cluster.file(*node, "soloist.sock"));
        let sockets: Vec<_> = sockets.map(|path| path.display().to_string()).collect();
        command.env("SOLOIST_API", sockets.join(","));
        command.arg("lock").args(options);
        command.args([LOCK, "--", "sh", "-c", script]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Locked { child, lines }
    }

    /// The next line of the command's output.
    fn line(&self) -> String {
        self.lines.recv_timeout(TIMEOUT).expect("it prints a line")
    }

    async fn code(&mut self) -> Option<i32> {
        let mut status = None;
        until("it ends", async || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        })
        .await;
        status.and_then(|status| status.code())
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_command_runs_beside_the_next_one_when_its_node_is_cut_off() {
    if isolation::is_missing() {
        return;
    }
    let plan = Plan {
        nodes: 3,
        network: true,
        ..Plan::default()
    };
    let cluster = Cluster::start(plan).await;
    let network = cluster.network.as_ref().expect("it has one");
    let client = cluster.client(0).await;
    for (what, script) in [
        ("ends at once", QUICK),
        ("cleans up", TIDY),
        ("ignores SIGTERM", STUBBORN),
    ] {
        let mut holder = Locked::start(&cluster, 2, script);
        let command = holder.line().parse().unwrap();
        let mut next = Locked::start(&cluster, 0, &look_for(command));
        until("the next one waits", async || {
            client
                .lock_info(LOCK)
                .await
                .is_ok_and(|lock| lock.waiting == 1)
        })
        .await;
        let began = Instant::now();
        network.cut(&[2], &[0, 1]);
        assert_eq!(next.line(), "alone", "beside a command that {what}");
        println!("takeover from a command that {what}: {:?}", began.elapsed());
        assert_eq!(next.code().await, Some(0));
        assert_eq!(holder.code().await, Some(76), "it has lost its lock");
        network.heal();
        cluster.together(&[0, 1, 2]).await;
    }
}

/// The node still answers its clients, over its Unix socket.
#[tokio::test(flavor = "multi_thread")]
async fn a_waiter_moves_when_its_node_loses_the_cluster_and_still_answers() {
    if isolation::is_missing() {
        return;
    }
    let plan = Plan {
        nodes: 3,
        network: true,
        // The others are to keep theirs, however busy the machine is.
        lease: 3 * LEASE,
        ..Plan::default()
    };
    let cluster = Cluster::start(plan).await;
    let network = cluster.network.as_ref().expect("it has one");
    let client = cluster.client(0).await;
    let waits_on = async |node: &str| {
        let lock = client.lock_info(LOCK).await;
        lock.is_ok_and(|lock| lock.waiting == 1 && lock.waiters[0].node == node)
    };
    let guard = client.lock(LOCK).unwrap().acquire().await.unwrap();
    let mut waiter = Locked::start_with(&cluster, &[2, 0], &["-w", "60"], "echo inside");
    until("it waits on n2", async || waits_on("n2").await).await;
    // Another one knows only n2, and waits until n2 is back.
    let mut stays = Locked::start_with(&cluster, &[2], &["-w", "60"], "echo inside");
    until("both wait", async || {
        client
            .lock_info(LOCK)
            .await
            .is_ok_and(|lock| lock.waiting == 2)
    })
    .await;
    let began = Instant::now();
    network.cut(&[2], &[0, 1]);
    until("it has moved", async || waits_on("n0").await).await;
    println!("moved {:?} after the cut", began.elapsed());
    guard.release().await.unwrap();
    assert_eq!(waiter.line(), "inside");
    assert_eq!(waiter.code().await, Some(0));
    // One that begins there has to wait for nothing.
    for options in [["-w", "60"], ["-w", "0"]] {
        let mut next = Locked::start_with(&cluster, &[2, 0], &options, "echo inside");
        assert_eq!(next.line(), "inside", "{options:?}");
        assert_eq!(next.code().await, Some(0));
    }
    let mut late = Locked::start_with(&cluster, &[2], &["-w", "1"], "echo inside");
    assert_eq!(late.code().await, Some(74), "no node knows who holds it");
    network.heal();
    assert_eq!(stays.line(), "inside");
    assert_eq!(stays.code().await, Some(0));
    cluster.together(&[0, 1, 2]).await;
}

/// A waiter keeps its place on a node that is outside for a moment.
#[tokio::test(flavor = "multi_thread")]
async fn a_waiter_stays_when_its_node_is_outside_for_a_moment() {
    if isolation::is_missing() {
        return;
    }
    let plan = Plan {
        nodes: 3,
        network: true,
        // The node joins again in much less time than its waiters keep their places.
        lease: 5 * LEASE,
        ..Plan::default()
    };
    let cluster = Cluster::start(plan).await;
    let network = cluster.network.as_ref().expect("it has one");
    let client = cluster.client(0).await;
    let guard = client.lock(LOCK).unwrap().acquire().await.unwrap();
    let mut first = Locked::start_with(&cluster, &[2, 0], &["-w", "60"], "echo inside");
    until("it waits", async || {
        client
            .lock_info(LOCK)
            .await
            .is_ok_and(|lock| lock.waiting == 1)
    })
    .await;
    network.cut(&[2], &[0, 1]);
    until("it is outside", async || !cluster.is_member(2).await).await;
    network.heal();
    cluster.together(&[0, 1, 2]).await;
    let lock = client.lock_info(LOCK).await.unwrap();
    assert_eq!((lock.waiting, lock.waiters[0].node.as_str()), (1, "n2"));
    guard.release().await.unwrap();
    assert_eq!(first.line(), "inside");
    assert_eq!(first.code().await, Some(0));
}
