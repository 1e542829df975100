//! `soloist status`, `locks`, `who` and `watch`.

use std::process::Output;

use serde_json::Value;

use crate::{Nodes, Running, stdout, until};

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).expect("stdout is JSON and nothing else")
}

#[test]
fn holders_and_waiters_are_known_on_all_nodes() {
    let nodes = Nodes::start(3);
    let who = |node: usize, more: &[&str]| {
        let mut command = nodes.soloist(node);
        command.args(["who", "billing/eu"]).args(more);
        command.output().unwrap()
    };
    let free = who(2, &["--json"]);
    assert_eq!(free.status.code(), Some(1));
    assert_eq!(json(&free)["state"], "free");

    let mut holder = Running::start(&mut nodes.lock(
        0,
        "--owner ann billing/eu",
        "echo $SOLOIST_FENCE; exec sleep 1000",
    ));
    let fence = holder.line();
    let _waiter = Running::start(&mut nodes.lock(1, "--owner bob billing/eu", "exit 0"));
    until("bob waits", || nodes.waiting("billing/eu") == 1);

    let held = who(2, &["--json"]);
    assert_eq!(held.status.code(), Some(0));
    let info = json(&held);
    assert_eq!(info["state"], "held");
    assert_eq!(info["holder"]["owner"], "ann");
    assert_eq!(info["holder"]["fence"], fence);
    assert_eq!(info["waiters"][0]["owner"], "bob");
    let text = stdout(&who(2, &[]));
    for word in ["billing/eu is held by ann", "1. bob", "has waited"] {
        assert!(text.contains(word), "no {word:?} in {text}");
    }
}

#[test]
fn all_locks_are_listed() {
    let nodes = Nodes::start(2);
    let locks = || nodes.soloist(1).args(["locks", "--json"]).output().unwrap();
    assert_eq!(json(&locks())["locks"].as_array().unwrap().len(), 0);
    let script = "echo in; exec sleep 1000";
    let mut one = Running::start(&mut nodes.lock(0, "--owner ann one", script));
    let mut two = Running::start(&mut nodes.lock(1, "two", script));
    one.line();
    two.line();
    let listed = json(&locks());
    let names: Vec<&Value> = listed["locks"].as_array().unwrap().iter().collect();
    assert_eq!(names.len(), 2, "{listed}");
    assert_eq!(
        (&names[0]["name"], &names[1]["name"]),
        (&"one".into(), &"two".into())
    );
    let output = nodes.soloist(1).arg("locks").output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let text = stdout(&output);
    assert_eq!(text.lines().count(), 3, "{text}");
    assert!(text.contains("ann on n1"), "{text}");
}

#[test]
fn status_says_which_nodes_answer() {
    let nodes = Nodes::start(3);
    let status = |more: &[&str]| nodes.soloist(0).arg("status").args(more).output().unwrap();
    until("all answer", || status(&[]).status.code() == Some(0));
    let all = json(&status(&["--json"]));
    assert_eq!(all["nodes"].as_array().unwrap().len(), 3);
    assert_eq!(all["node"], "n1");
    nodes
        .runtime
        .block_on(nodes.served.cluster.nodes[2].stop(std::time::Duration::ZERO));
    until("one is down", || status(&[]).status.code() == Some(1));
    until("it is evicted", || {
        let text = stdout(&status(&[]));
        text.lines()
            .any(|line| line == "n3 is not a member: it is down or cut off")
    });
}

#[test]
fn events_arrive_as_they_happen() {
    let nodes = Nodes::start(1);
    let mut command = nodes.soloist(0);
    command.args(["watch", "--json", "--lock", "billing/*"]);
    let mut watch = Running::start(&mut command);
    // The watch has not necessarily started yet, so the events are repeated until it shows one.
    let seen = std::sync::atomic::AtomicBool::new(false);
    let events = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !seen.load(std::sync::atomic::Ordering::Relaxed) {
                for name in ["other", "--owner=ann billing/eu"] {
                    assert!(nodes.lock(0, name, "exit 0").status().unwrap().success());
                }
            }
        });
        let mut events = Vec::new();
        while events
            .last()
            .is_none_or(|event: &Value| event["event"] != "released")
        {
            events.push(serde_json::from_str::<Value>(&watch.line()).unwrap());
        }
        seen.store(true, std::sync::atomic::Ordering::Relaxed);
        events
    });
    let released = events.last().unwrap();
    assert!(events.iter().all(|event| event["lock"] == "billing/eu"));
    assert_eq!(released["owner"], "ann");
    let acquired = events.iter().find(|event| event["event"] == "acquired");
    if let Some(acquired) = acquired {
        assert_eq!(acquired["fence"], released["fence"]);
    }
}
