//! A node that listens on another address than the one its peers dial.

use std::time::Duration;

use soloist_node::config::{Config, Security};
use soloist_node::{FIRST_START, Guard, Locks, Node, StartError};
use soloist_testing::free;
use soloist_testing::proxy::plain;

use tempfile::TempDir;

/// Two nodes, each behind a proxy that stands for address translation.
async fn behind_nat() -> ([Config; 2], TempDir) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("a")).unwrap();
    std::fs::write(folder.path().join("a").join(FIRST_START), "").unwrap();
    let own = [free::address(), free::address()];
    let (a, b) = (plain(&own[0]).await, plain(&own[1]).await);
    let configs = [("a", &a, &own[0]), ("b", &b, &own[1])].map(|(me, dialled, listen)| {
        let text = format!(
            "name = \"{me}\"\naddress = \"{}\"\nlisten = \"{listen}\"\ndata = \"{me}\"\n\
             insecure = true\n[keepers]\na = \"{}\"\n",
            dialled.address, a.address
        );
        Config::parse(&text, &folder.path().join("soloist.toml")).unwrap()
    });
    (configs, folder)
}

#[tokio::test]
async fn others_reach_a_node_that_listens_elsewhere() {
    let ([a, b], _folder) = behind_nat().await;
    assert_eq!(a.security, Security::Insecure);
    let nodes = [Node::start(a).await.unwrap(), Node::start(b).await.unwrap()];
    let mut last = None;
    for round in 0..4 {
        let lock = nodes[round % 2].lock("a").unwrap();
        let guard = lock.acquire_within(Duration::from_secs(60)).await.unwrap();
        assert!(Some(guard.fence()) > last);
        last = Some(guard.fence());
        guard.release().await.unwrap();
    }
    // Stop the keeper last: the other node needs it in order to leave.
    for node in nodes.iter().rev() {
        node.stop(Duration::ZERO).await;
    }
}

#[tokio::test]
async fn an_address_in_use_is_named() {
    let ([_, b], _folder) = behind_nat().await;
    let listens = b.listens_on().to_string();
    let taken = tokio::net::TcpListener::bind(&listens).await.unwrap();
    let error = Node::start(b).await.expect_err("it is taken");
    assert!(matches!(error, StartError::Listen { .. }), "{error}");
    assert!(error.to_string().contains(&listens), "{error}");
    drop(taken);
}
