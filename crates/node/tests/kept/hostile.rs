//! Bytes that no node sends to a keeper. The cluster has no TLS, so any process on this machine may
//! connect.

use std::time::Duration;

use soloist_api::Address;
use soloist_node::local::LocalCluster;
use soloist_node::{Guard, Locks};
use soloist_transport::hello::{PREFACE, VERSIONS};
use soloist_transport::{Hello, Purpose};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::{LEASE, TIMEOUT, settle, start};

/// Sends bytes to a node, and returns what it sends until it closes the connection.
async fn say(to: &Address, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(to.to_string()).await.unwrap();
    // The node may close the connection before it has read everything.
    let _ = stream.write_all(bytes).await;
    let _ = stream.shutdown().await;
    let mut heard = Vec::new();
    let hearing = stream.read_to_end(&mut heard);
    let _ = timeout(TIMEOUT, hearing).await.expect("it is closed");
    heard
}

fn hello(from: &str, to: &str, purpose: Purpose) -> Vec<u8> {
    let hello = Hello {
        versions: VERSIONS,
        from: from.parse().unwrap(),
        to: to.parse().unwrap(),
        cluster: None,
        purpose,
    };
    hello.encode()
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_are_refused_with_a_reason_and_do_no_harm() {
    let (cluster, _folder) = start(3, "raymond", false, LEASE).await;
    let with = |rest: &[u8]| [&PREFACE, rest].concat();
    let fingerprint = [7; 32];
    let member = |from, to| hello(from, to, Purpose::Member { fingerprint });
    for (bytes, word) in [
        (with(&[0, 0]), "cannot be decoded"),
        (
            with(&[&[0x84, 0x03][..], &[255; 900]].concat()),
            "cannot be decoded",
        ),
        (with(&[0xff, 0xff]), "a hello of 65535 bytes"),
        (with(&[2, 0, 9, 9]), "it supports version 9"),
        (member("n2", "n9"), "looks for node n9"),
        (
            member("n2", "n1"),
            "the configurations of nodes n2 and n1 differ",
        ),
    ] {
        let heard = say(&cluster.addresses[0], &bytes).await;
        let heard = String::from_utf8_lossy(&heard);
        assert!(heard.contains(word), "no {word:?} in {heard:?}");
    }
    let (from_id, to_id) = (1, 2);
    let keeper = hello("n3", "n2", Purpose::Keeper { from_id, to_id });
    for silent in [
        &PREFACE[..],
        &PREFACE[..7],
        &PREFACE[..4],
        b"SOLOXXXX",
        b"SOLOKEEP",
        &keeper,
        &keeper[..keeper.len() - 1],
    ] {
        say(&cluster.addresses[1], silent).await;
    }
    forwards_to_the_leader_only(&cluster).await;
    // The cluster is unaffected: same epoch, and the lock works.
    settle(&cluster.nodes).await;
    assert_eq!(cluster.nodes[0].epoch(), Some(1));
    let lock = cluster.nodes[2].lock("x").unwrap();
    let guard = lock.acquire_within(TIMEOUT).await.unwrap();
    assert!(guard.valid_for() > Duration::ZERO);
    guard.release().await.unwrap();
    cluster.stop().await;
}

/// Asserts that followers relay connections to the leader only, and that the leader relays none.
async fn forwards_to_the_leader_only(cluster: &LocalCluster) {
    let names = ["n1", "n2", "n3"];
    let forward = |to: &str| hello("n9", to, Purpose::Forward);
    let mut leaders = Vec::new();
    for (name, address) in names.iter().zip(&cluster.addresses) {
        let heard = say(address, &forward(name)).await;
        if String::from_utf8_lossy(&heard).contains("knows of no other leader") {
            leaders.push(*name);
        }
    }
    let [leader] = leaders[..] else {
        panic!("all but one are followers: {leaders:?}");
    };
    let fingerprint = [7; 32];
    let followers = names.iter().zip(&cluster.addresses);
    for (follower, address) in followers.filter(|(name, _)| **name != leader) {
        for to in names {
            let inner = hello("n9", to, Purpose::Member { fingerprint });
            let heard = say(address, &[forward(follower), inner].concat()).await;
            let heard = String::from_utf8_lossy(&heard);
            let word = if to == leader {
                format!("the configurations of nodes n9 and {leader} differ")
            } else {
                format!("looks for node {to} at the address of node {leader}")
            };
            assert!(heard.contains(&word), "no {word:?} in {heard:?}");
        }
    }
}
