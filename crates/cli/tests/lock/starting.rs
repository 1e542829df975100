//! `soloist node` that cannot start, or whose peers are misconfigured.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;

use rustix::process::Signal;
use soloist_testing::free;

use crate::processes::Cluster;
use crate::{TIMEOUT, stderr};

#[test]
fn a_port_in_use_is_reported() {
    let cluster = Cluster::init(1, "raymond");
    let taken = TcpListener::bind(cluster.address(0)).unwrap();
    cluster.refused(0, &[cluster.address(0), "in use", "another node"]);
    assert!(!cluster.file(0, "soloist.sock").exists());
    drop(taken);
    let mut node = cluster.start(0, "");
    node.ready();
    node.end();
    node.ended_well();
}

#[test]
fn without_a_token_the_error_names_the_variable() {
    let cluster = Cluster::init(1, "raymond");
    let api = free::address();
    let tcp = format!("[api]\nlisten = \"{api}\"\ntoken_file = \"token\"\n");
    cluster.change(0, "[api]\n", &tcp);
    let token = cluster.file(0, "token");
    fs::write(&token, "correct-horse-battery-staple-0001").unwrap();
    fs::set_permissions(&token, fs::Permissions::from_mode(0o600)).unwrap();
    let mut node = cluster.start(0, "");
    node.ready();
    for arguments in [&["lock", "a", "true"][..], &["who", "a"]] {
        let mut command = node.soloist();
        command.env("SOLOIST_API", format!("http://{api}"));
        let output = command.args(arguments).output().unwrap();
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("set SOLOIST_TOKEN"), "{said}");
    }
    node.end();
    node.ended_well();
}

#[test]
fn a_second_node_on_the_same_socket_is_refused() {
    let cluster = Cluster::init(2, "raymond");
    let mut first = cluster.start(0, "");
    first.ready();
    cluster.change(1, "\"soloist.sock\"", "\"../n0/soloist.sock\"");
    cluster.refused(1, &["another process", "n0/soloist.sock"]);
    // The first node still has the socket.
    let status = first.soloist().args(["status", "--json"]).output().unwrap();
    let status: serde_json::Value = serde_json::from_slice(&status.stdout).unwrap();
    assert_eq!(status["node"], "n0");
    first.end();
    first.ended_well();
}

#[test]
fn a_service_manager_is_notified_and_a_closed_terminal_stops_the_node_in_order() {
    let cluster = Cluster::init(1, "raymond");
    let manager = UnixDatagram::bind(cluster.file(0, "notify")).unwrap();
    manager.set_read_timeout(Some(TIMEOUT)).unwrap();
    let told = || {
        let mut bytes = [0; 64];
        let length = manager.recv(&mut bytes).unwrap();
        String::from_utf8(bytes[..length].to_vec()).unwrap()
    };
    let mut node = cluster.start_with(0, "--drain 0s", |command| {
        command.env("NOTIFY_SOCKET", cluster.file(0, "notify"));
    });
    assert_eq!(told(), "READY=1");
    node.running.signal(Signal::HUP);
    assert_eq!(told(), "STOPPING=1");
    node.ended_well();
}

#[test]
fn files_that_are_missing_or_not_right_are_named() {
    let cluster = Cluster::init(2, "raymond");
    for name in ["node.key", "node.pem", "ca.pem", "soloist.toml"] {
        let file = cluster.file(0, name);
        let aside = cluster.file(0, "aside");
        fs::rename(&file, &aside).unwrap();
        cluster.refused(0, &[file.to_str().unwrap()]);
        fs::rename(&aside, &file).unwrap();
    }
    let key = cluster.file(0, "node.key");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    cluster.refused(0, &["node.key", "600"]);
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    // Certificate and key of another node.
    for name in ["node.pem", "node.key"] {
        fs::copy(cluster.file(1, name), cluster.file(0, name)).unwrap();
    }
    cluster.refused(0, &["node.pem", "\"n1\"", "\"n0\""]);
}

#[test]
fn an_api_that_others_could_use_unprotected_is_refused() {
    let cluster = Cluster::init(1, "raymond");
    cluster.change(0, "[api]\n", "[api]\nlisten = \"0.0.0.0:7400\"\n");
    cluster.refused(0, &["api.listen", "0.0.0.0:7400", "[api.tls]"]);
}

#[test]
fn an_invalid_listen_address_is_refused() {
    let cluster = Cluster::init(1, "raymond");
    cluster.change(0, "# listen = \"0.0.0.0:PORT\"", "listen = \"0.0.0.0\"");
    cluster.refused(0, &["listen", "0.0.0.0", "HOST:PORT"]);
}

#[test]
fn nodes_whose_configurations_differ_do_not_talk_and_say_why() {
    let cluster = Cluster::init(2, "raymond");
    cluster.change(1, "\"raymond\"", "\"maekawa\"");
    let mut nodes = cluster.start_all();
    for node in &nodes {
        node.says("the configurations of nodes n1 and n0 differ");
        let log = node.log();
        assert!(log.contains("algorithms"), "{log}");
    }
    nodes[1].says("cannot find the keepers' leader");
    // The node does not grant a lock without knowing the cluster.
    let late = nodes[1].lock("-n a", "exit 0").output().unwrap();
    assert_eq!(late.status.code(), Some(74), "{}", stderr(&late));
    assert!(stderr(&late).contains("differ"), "{}", stderr(&late));
    for node in &mut nodes {
        assert!(!node.log().contains("link up"), "{}", node.log());
        // The refusal is logged once per minute, not on every attempt.
        let refusals = node
            .log()
            .lines()
            .filter(|line| line.contains("refused"))
            .count();
        assert!((1..=2).contains(&refusals), "{}", node.log());
        node.end();
        node.ended_well();
    }
}
