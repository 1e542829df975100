//! Two nodes with the same name.

use std::fs;
use std::process::{Command, Stdio};

use soloist_client::api::NodeState;
use soloist_client::{Client, Guard, Target};
use soloist_testing::free;

use crate::cluster::{Cluster, Plan, stderr};
use crate::workers::Workers;
use crate::{ALL, GRACE, LEASE, LOCKS, until};

/// A process that is killed on drop.
struct Running(std::process::Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_of_a_node_joins_only_after_the_original_is_gone() {
    let mut cluster = Cluster::start(Plan::default()).await;
    let mut workers = Workers::new();
    let names = workers.start(&cluster, &ALL, &LOCKS);
    let holder = workers.enter(&cluster, 4, "maekawa/held").await;
    let copy = tempfile::tempdir().unwrap();
    for file in ["ca.pem", "node.pem", "node.key", "soloist.toml"] {
        fs::copy(cluster.file(4, file), copy.path().join(file)).unwrap();
    }
    let config = copy.path().join("soloist.toml");
    let text = fs::read_to_string(&config).unwrap();
    let text = text.replace(cluster.address(4), &free::address());
    fs::write(&config, text).unwrap();
    let log = copy.path().join("log");
    let _second = Running(
        Command::new(env!("CARGO_BIN_EXE_soloist"))
            .args(["node", "--config"])
            .arg(&config)
            .env_remove("RUST_LOG")
            .stderr(fs::File::create(&log).unwrap())
            .stdout(Stdio::null())
            .spawn()
            .unwrap(),
    );
    let said = || fs::read_to_string(&log).unwrap();
    until("the second one is told why", async || {
        said().contains("another running member has this node's name")
    })
    .await;
    let socket = Target::socket(copy.path().join("soloist.sock"));
    let client = Client::connect(socket).await.unwrap();
    // While both run, the second stays outside and the first keeps its hold.
    let began = std::time::Instant::now();
    while began.elapsed() < 3 * LEASE {
        let view = client.cluster().await.unwrap();
        assert_eq!(view.state, NodeState::Outside, "{}", said());
        assert!(
            !holder.guard().valid_for().is_zero(),
            "the first one lost its hold"
        );
        tokio::time::sleep(LEASE / 10).await;
    }
    workers.referee.serves(&names, GRACE).await;
    let told = said().matches("another running member has").count();
    assert_eq!(told, 1, "{}", said());
    let lost = workers.referee.losses();
    assert!(lost.is_empty(), "{lost:?}");
    holder.leave().await.expect("it was not lost");

    cluster.kill(4);
    until("the second one joins", async || {
        client.cluster().await.unwrap().state == NodeState::Member
    })
    .await;
    workers.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_keeper_at_another_address_is_refused() {
    let cluster = Cluster::init(&Plan::default());
    let config = cluster.file(0, "soloist.toml");
    let text = fs::read_to_string(&config).unwrap();
    let text = format!("address = \"{}\"\n{text}", free::address());
    fs::write(&config, text).unwrap();
    let output = cluster.node_command(0).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("soloist.toml") && stderr(&output).contains("address"),
        "{}",
        stderr(&output)
    );
}
