//! A node whose own address is not the one that others dial.

use std::time::Duration;

use soloist_node::config::{Config, Security};
use soloist_node::{Node, StartError};

use crate::free;
use crate::proxy::plain;

/// Two nodes, each behind something that translates addresses.
async fn behind_nat() -> [Config; 2] {
    let own = [free::address(), free::address()];
    let (a, b) = (plain(&own[0]).await, plain(&own[1]).await);
    ["a", "b"].map(|me| {
        let listen = &own[usize::from(me == "b")];
        let text = format!(
            "name = \"{me}\"\nlisten = \"{listen}\"\ninsecure = true\n\
             [nodes]\na = \"{}\"\nb = \"{}\"\n",
            a.address, b.address
        );
        Config::parse(&text, "soloist.toml".as_ref()).unwrap()
    })
}

#[tokio::test]
async fn others_reach_a_node_that_listens_elsewhere() {
    let [a, b] = behind_nat().await;
    assert_eq!(a.security, Security::Insecure);
    let nodes = [Node::start(a).await.unwrap(), Node::start(b).await.unwrap()];
    let mut last = None;
    for round in 0..4 {
        let lock = nodes[round % 2].lock("a").unwrap();
        let guard = lock.try_acquire(Duration::from_secs(60)).await.unwrap();
        assert!(Some(guard.fence()) > last);
        last = Some(guard.fence());
        guard.release().await.unwrap();
    }
    for node in nodes {
        node.stop(Duration::ZERO).await;
    }
}

#[tokio::test]
async fn an_address_that_is_taken_is_named() {
    let [_, b] = behind_nat().await;
    let listens = b.listens_on().to_string();
    let taken = tokio::net::TcpListener::bind(&listens).await.unwrap();
    let error = Node::start(b).await.err().expect("it is taken");
    assert!(matches!(error, StartError::Listen { .. }), "{error}");
    assert!(error.to_string().contains(&listens), "{error}");
    drop(taken);
}
