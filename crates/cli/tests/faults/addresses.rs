//! Keepers that have several addresses.

use std::fs;
use std::process::Command;
use std::time::Duration;

use crate::cluster::{Cluster, Plan};
use crate::network::Namespace;
use crate::{ALL, GRACE, isolation};

/// An address of the nodes' network that no node has. The resolver returns it before the keepers'
/// own addresses, because it has the longest prefix in common with the address of node 4.
const NOBODY: &str = "10.77.0.6";

/// The addresses of a host, as a node in these namespaces sees them.
fn addresses(host: &str, namespaces: [&Namespace; 2]) -> String {
    let mut command = Command::new("nsenter");
    for namespace in namespaces {
        command.args(namespace.enter());
    }
    let output = command.args(["getent", "ahostsv4", host]).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_swallows_packets_does_not_keep_a_node_from_its_keepers() {
    if isolation::is_missing() {
        return;
    }
    let lease = Duration::from_secs(6);
    let mut cluster = Cluster::init(&Plan {
        lease,
        network: true,
        ..Plan::default()
    });
    let network = cluster.network.as_ref().unwrap();
    // Node 4 knows the keepers by names, each with two addresses.
    let config = cluster.file(4, "soloist.toml");
    let mut text = fs::read_to_string(&config).unwrap();
    let mut hosts = String::new();
    for keeper in 0..3 {
        let host = network.host(keeper);
        text = text.replace(&format!("{host}:"), &format!("keeper{keeper}:"));
        hosts += &format!("{NOBODY} keeper{keeper}\n{host} keeper{keeper}\n");
    }
    assert!(text.contains("keeper2:"), "{text}");
    fs::write(&config, text).unwrap();
    let file = cluster.folder().join("hosts");
    fs::write(&file, hosts).unwrap();
    let home = Namespace::new("mnt");
    home.run(&format!("mount --bind {} /etc/hosts", file.display()));
    // Packets to that address leave, and nobody answers.
    network.of(4).run(&format!(
        "ip neighbour add {NOBODY} lladdr 02:00:00:00:00:06 dev cable nud permanent"
    ));
    for keeper in 0..3 {
        let found = addresses(&format!("keeper{keeper}"), [network.of(4), &home]);
        assert!(found.starts_with(NOBODY), "{found}");
        assert!(found.contains(&network.host(keeper)), "{found}");
    }
    cluster.give_home(4, home);
    for node in 0..4 {
        cluster.spawn(node);
    }
    cluster.together(&ALL[..4]).await;
    cluster.spawn(4);
    let joining = tokio::time::timeout(4 * lease + GRACE, cluster.takes_part(4));
    let joined = joining.await;
    assert!(joined.is_ok(), "it does not join: {}", cluster.log(4));
}
