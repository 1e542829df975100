//! Nodes that are paused for longer than their lease, and resume.

use std::time::Instant;

use rustix::process::Signal;

use soloist_client::Guard;

use crate::cluster::{Cluster, Plan};
use crate::workers::Workers;
use crate::{ALL, GRACE, LEASE, LOCKS, TIMEOUT, all_but, raw, until};

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_holder_is_succeeded_and_told_when_it_resumes() {
    let cluster = Cluster::start(Plan::default()).await;
    pause_the_holder(&cluster, 4).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_leader_no_longer_leads_when_it_resumes() {
    let cluster = Cluster::start(Plan::default()).await;
    let leader = cluster.led_by(4, &[0, 1, 2]).await;
    let asked = if leader == 1 { 2 } else { 1 };
    pause_the_holder(&cluster, leader).await;
    // The paused leader may have been elected again since. There is one leader in any case.
    let now = cluster.led_by(asked, &[0, 1, 2]).await;
    for node in 0..5 {
        until("all follow one leader", async || {
            cluster.leader(node) == Some(now)
        })
        .await;
    }
}

async fn pause_the_holder(cluster: &Cluster, victim: usize) {
    let mut workers = Workers::new();
    let socket = cluster.file(victim, "soloist.sock");
    let mut holders = Vec::new();
    for lock in LOCKS {
        holders.push(workers.enter(cluster, victim, lock).await);
    }
    let asked = raw::ask(
        &socket,
        "POST",
        "/v1/locks/other/acquire",
        r#"{"ttl_ms": 3600000}"#,
    );
    let hold = asked.1["hold"].as_str().expect("a hold").to_owned();
    let rest = all_but(victim);
    let alive = workers.start(cluster, &rest, &LOCKS);

    let paused = Instant::now();
    cluster.signal(victim, Signal::STOP);
    workers.referee.serves(&alive, LEASE + LEASE + GRACE).await;
    for (lock, holder) in LOCKS.iter().zip(&holders) {
        let next = workers.referee.follows(lock, holder.fence()).await;
        println!(
            "takeover of {lock} after SIGSTOP: {:?} (lease {LEASE:?})",
            next.at - paused
        );
    }
    cluster.together(&rest).await;

    cluster.signal(victim, Signal::CONT);
    let woken = Instant::now();
    let path = format!("/v1/holds/{hold}");
    for method in ["GET", "DELETE"] {
        let (status, answer) = raw::ask(&socket, method, &path, "");
        assert_eq!(status, 410, "{answer}");
        assert_eq!(answer["reason"], "epoch-lost", "{answer}");
    }
    for holder in holders {
        let told = tokio::time::timeout(TIMEOUT, holder.guard().lost()).await;
        println!("its client was told: {}", told.expect("it is told").reason);
        assert!(holder.write().is_err(), "a late write was accepted");
    }
    cluster.takes_part(victim).await;
    println!("it took part again {:?} after SIGCONT", woken.elapsed());
    cluster.together(&ALL).await;
    let back = workers.start(cluster, &[victim], &LOCKS);
    workers.referee.serves(&back, GRACE).await;
    workers.referee.serves(&alive, GRACE).await;
    workers.end().await;
}
