//! A node whose store was written before clusters had an identity.

use std::time::Duration;

use soloist_api::NodeName;
use soloist_core::epochs::roster::{Applied, Change, Command};
use soloist_core::name_hash::HashKey;
use soloist_node::keepers::{Keeper, KeeperNode, Settings, Store, StoreIdentity, id_of};
use soloist_node::{Guard, Locks};
use soloist_transport::{Endpoint, Security};

use crate::{LEASE, start_in, until};

/// Creates the store of the only keeper of such a cluster, after three epochs.
async fn lay(data: &std::path::Path) {
    let me: NodeName = "n1".parse().unwrap();
    let identity = StoreIdentity {
        cluster: None,
        id: id_of(&me),
    };
    let store = Store::create(data, &me, identity).await.unwrap();
    let address = "127.0.0.1:1".parse().unwrap();
    let endpoint = Endpoint::new(me.clone(), Security::Plain);
    let settings = Settings::new(KeeperNode { name: me, address }, endpoint);
    let keeper = Keeper::start(settings, store).await.unwrap();
    keeper.initialize().await.unwrap();
    until("it leads", || keeper.view().leads).await;
    let lease = LEASE.guarded();
    let mut commands = vec![Command::Lead { lease }];
    for epoch in 1..=3 {
        commands.push(Command::Begin(Change {
            epoch,
            members: Vec::new(),
            key: HashKey::default(),
        }));
        commands.push(Command::Install { epoch });
    }
    for command in commands {
        let term = keeper.view().term;
        let applied = keeper.propose(term, command).await.unwrap();
        assert_eq!(applied, Applied::Done);
    }
    keeper.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_from_before_goes_on_with_higher_fences() {
    let folder = tempfile::tempdir().unwrap();
    lay(&folder.path().join("data/n1")).await;
    let cluster = start_in(folder.path(), 1, "raymond", true, LEASE).await;
    let node = &cluster.nodes[0];
    let guard = node.lock("x").unwrap().acquire().await.unwrap();
    // The highest fence that epoch 3 can have issued when epochs had 24 bits.
    let last_before: u64 = (3 << 40) | ((1 << 40) - 1);
    assert!(guard.fence().number() > last_before, "{}", guard.fence());
    assert!(node.epoch().unwrap() > 4 << 8);
    guard.release().await.unwrap();
    node.stop(Duration::ZERO).await;
}
