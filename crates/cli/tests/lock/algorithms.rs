//! Every algorithm between real processes, checked by a referee.

use std::time::Duration;

use soloist_algorithms::Choice;
use soloist_client::{Client, ClientGuard, Guard, Locks};
use soloist_testing::referee::Referee;
use tokio::runtime::Runtime;
use tokio::time::timeout;

use crate::TIMEOUT;
use crate::processes::{Cluster, NodeProcess};

const NODES: usize = 5;
const CLIENTS: usize = 8;
const ENTRIES: usize = 3;

async fn granted(client: &Client) -> ClientGuard {
    let lock = client.lock("all/want").unwrap();
    let acquired = lock.acquire_within(TIMEOUT).await;
    acquired.expect("every request is served")
}

async fn enter(client: Client, referee: Referee) {
    for _ in 0..ENTRIES {
        let guard = granted(&client).await;
        referee.enter(guard.fence());
        // Long enough for another client to enter, if that were possible.
        tokio::time::sleep(Duration::from_millis(1)).await;
        referee.leave(guard.fence());
        guard.release().await.unwrap();
    }
}

async fn contend(nodes: &[NodeProcess]) {
    let referee = Referee::default();
    let mut clients = Vec::new();
    for client in 0..CLIENTS {
        let client = nodes[client % NODES].client().await;
        clients.push(tokio::spawn(enter(client, referee.clone())));
    }
    for client in clients {
        let ended = timeout(TIMEOUT, client).await;
        ended.expect("all commands end").unwrap();
    }
    assert_eq!(referee.entries(), CLIENTS * ENTRIES);
}

#[test]
fn every_waiter_is_served_one_at_a_time_with_every_algorithm() {
    let runtime = Runtime::new().unwrap();
    for choice in Choice::all() {
        println!("{}", choice.name);
        let cluster = Cluster::init(NODES, choice.name);
        let mut nodes = cluster.start_all();
        runtime.block_on(contend(&nodes));
        nodes.iter().for_each(NodeProcess::end);
        nodes.iter_mut().for_each(NodeProcess::ended_well);
    }
}
