//! Clusters with keepers: what the commands show of them, and the demonstrations of faults.

use std::process::{Command, Output};

use serde_json::Value;
use soloist_api::Fence;
use soloist_testing::http_get::get;

use crate::processes::{Cluster, NodeProcess};
use crate::{stderr, stdout, until};

fn soloist(arguments: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_soloist"));
    command.args(arguments.split_whitespace()).output().unwrap()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        panic!("{error}: {} {}", stdout(output), stderr(output));
    })
}

#[test]
fn the_demo_kills_a_holder_and_the_next_one_enters() {
    let output = soloist("demo --kill --lease 500ms --seconds 4 --nodes 4 --json");
    let shown = json(&output);
    assert_eq!(output.status.code(), Some(0), "{shown}");
    assert_eq!(shown["overlaps"], 0);
    assert_eq!(shown["fences_rise"], true);
    assert_eq!(shown["counter"], shown["entries"]);
    let killed = &shown["kill"];
    assert_eq!(killed["node"], "n4");
    let fence = |key: &str| killed[key].as_str().unwrap().parse::<Fence>().unwrap();
    assert!(fence("next_fence") > fence("fence"), "{killed}");
    assert!(killed["takeover_ms"].as_u64().unwrap() > 0, "{killed}");
    assert!(killed["back_after_ms"].as_u64().unwrap() > 0, "{killed}");
}

#[test]
fn impossible_demos_and_benchmarks_are_refused() {
    for (arguments, word) in [
        ("demo --kill --nodes 1", "at least 2 nodes"),
        ("demo --lease 100ms", "100ms"),
        ("bench --faults --only typo", "typo"),
        ("bench --api --only typo", "typo"),
        ("bench --nodes 3", "--api"),
    ] {
        let output = soloist(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments}");
        assert!(stderr(&output).contains(word), "{}", stderr(&output));
    }
}

#[test]
fn the_cost_of_renewals_is_measured() {
    let bench = |only: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_soloist"));
        command.args(["bench", "--faults", "--quick", "--json", "--only", only]);
        json(&command.output().unwrap())
    };
    let words = |name: &str| {
        let measured = bench(name);
        let mut all = measured.as_array().unwrap().iter();
        let found = all.find(|measured| measured["workload"] == name);
        let found = found.unwrap_or_else(|| panic!("no {name:?} in {measured}"));
        found["operations_per_second"].as_f64().unwrap()
    };
    // Each node sends and receives one message three times per lease of three seconds.
    let simulated = words("renewals, 1000 nodes, simulated");
    assert!((simulated - 2000.0).abs() < 100.0, "{simulated}");
    let real = words("renewals, 5 nodes");
    assert!((5.0..20.0).contains(&real), "{real}");
}

/// A cluster of three nodes, as `soloist init` configures it.
fn three() -> (Cluster, Vec<NodeProcess>) {
    let cluster = Cluster::init(3, "raymond");
    let nodes = cluster.start_all();
    for node in &nodes {
        node.says("joined the epoch");
    }
    until("all are members", || {
        let shown = nodes[0].soloist().args(["cluster", "--json"]).output();
        json(&shown.unwrap())["nodes"].as_array().unwrap().len() == 3
    });
    (cluster, nodes)
}

#[test]
fn members_keepers_and_leases_are_shown_and_keepers_changed() {
    let (_cluster, nodes) = three();
    let cluster = |arguments: &str| {
        let mut command = nodes[1].soloist();
        command.arg("cluster").args(arguments.split_whitespace());
        command.output().unwrap()
    };
    let shown = cluster("");
    assert_eq!(shown.status.code(), Some(0), "{}", stderr(&shown));
    for word in [
        "3 nodes, epoch",
        "the keepers are led by n0",
        "keeper",
        " ms",
    ] {
        assert!(stdout(&shown).contains(word), "{}", stdout(&shown));
    }
    let nodes_shown = json(&cluster("--json"))["nodes"].clone();
    for node in nodes_shown.as_array().unwrap() {
        assert_eq!(node["keeper"], true, "{node}");
        assert!(node["lease_ms"].as_u64().unwrap() <= 3158, "{node}");
    }
    let demoted = cluster("demote n2");
    assert_eq!(
        stdout(&demoted),
        "n2 is not a keeper\n",
        "{}",
        stderr(&demoted)
    );
    let warning = "there are 2 keepers now";
    assert!(stderr(&demoted).contains(warning), "{}", stderr(&demoted));
    until("it is shown", || {
        json(&cluster("--json"))["nodes"][2]["keeper"] == false
    });
    let twice = cluster("demote n2");
    assert_eq!(twice.status.code(), Some(2));
    assert!(
        stderr(&twice).contains("n2 is not a keeper"),
        "{}",
        stderr(&twice)
    );
    let nobody = cluster("promote n9");
    assert!(
        stderr(&nobody).contains("n9 is not a member"),
        "{}",
        stderr(&nobody)
    );
    let promoted = cluster("promote n2");
    assert_eq!(
        stdout(&promoted),
        "n2 is a keeper\n",
        "{}",
        stderr(&promoted)
    );
}

#[test]
fn an_outage_does_not_look_like_a_lock_that_is_held() {
    let (_cluster, mut nodes) = three();
    assert_eq!(get(&nodes[0].socket, "/readyz"), (200, "ok".to_owned()));
    drop(nodes.pop());
    // Until the node is evicted, it may still hold its locks.
    let who = nodes[0].soloist().args(["who", "x", "--json"]).output();
    let (who, evicted) = (who.unwrap(), "a member is evicted");
    if !nodes.iter().any(|node| node.log().contains(evicted)) {
        assert_eq!(json(&who)["state"], "unknown");
        assert_eq!(who.status.code(), Some(74), "{}", stderr(&who));
    }
    until("a leader logs the evicted member and the reason", || {
        let mut logs = nodes.iter().map(NodeProcess::log);
        logs.any(|log| {
            let mut lines = log
                .lines()
                .filter(|line| line.contains("a member is evicted"));
            lines.any(|line| line.contains("n2") && line.contains("its lease expired"))
        })
    });
    drop(nodes.pop());
    // Before its lease expires, the epoch may still be changing because of the first loss.
    until("it is not ready, as it is not a member", || {
        let (status, reason) = get(&nodes[0].socket, "/readyz");
        status == 503 && reason.contains("n0 is not a member")
    });
    let (_, reason) = get(&nodes[0].socket, "/readyz");
    let reason: Value = serde_json::from_str(&reason).unwrap();
    assert_eq!(reason["error"], "unavailable");
    let detail = reason["detail"].as_str().unwrap();
    assert!(detail.contains("n0 is not a member"), "{detail}");
    assert_eq!(get(&nodes[0].socket, "/healthz"), (200, "ok".to_owned()));
    // The log repeats which nodes it tried and why each failed.
    nodes[0].says("cannot find the keepers' leader");
    let log = nodes[0].log();
    let line = log
        .lines()
        .find(|line| line.contains("cannot find the keepers' leader"));
    assert!(
        line.is_some_and(|line| line.contains("n1:") && line.contains("n2:")),
        "{log}"
    );

    for command in [
        "lock -n x true",
        "lock -w 0.2 x true",
        "locks",
        "who x",
        "status",
        "cluster",
    ] {
        let mut asked = nodes[0].soloist();
        let asked = asked.args(command.split_whitespace()).output().unwrap();
        assert_eq!(
            asked.status.code(),
            Some(74),
            "{command}: {}",
            stderr(&asked)
        );
        let said = stderr(&asked);
        for word in ["n0 is not a member", "n1: "] {
            assert!(said.contains(word), "{command}: no {word:?} in {said}");
        }
        assert!(
            !stdout(&asked).contains("does not answer"),
            "{}",
            stdout(&asked)
        );
    }
    let locks = nodes[0].soloist().arg("locks").output().unwrap();
    assert!(
        stdout(&locks).contains("no lock is known"),
        "{}",
        stdout(&locks)
    );
}

#[test]
fn a_node_that_is_cut_off_reports_unknown() {
    let (_cluster, mut nodes) = three();
    let rest = nodes.split_off(1);
    drop(rest);
    until("it takes no part", || {
        let shown = nodes[0].soloist().args(["cluster", "--json"]).output();
        json(&shown.unwrap())["state"] == "outside"
    });
    let who = nodes[0]
        .soloist()
        .args(["who", "x", "--json"])
        .output()
        .unwrap();
    assert_eq!(json(&who)["state"], "unknown");
    assert_eq!(who.status.code(), Some(74));
    let shown = nodes[0].soloist().arg("cluster").output().unwrap();
    assert_eq!(shown.status.code(), Some(74));
    assert!(
        stdout(&shown).contains("n0 is not a member now"),
        "{}",
        stdout(&shown)
    );
    nodes[0].says("the lease expired, because this node was cut off");
}
