//! Texts of `soloist init`: the configuration files, and the next steps that it prints.

use std::fmt::Write as _;
use std::time::Duration;

use soloist_api::{Address, NodeName};
use soloist_core::epochs::lease::Lease;
use soloist_core::limits::Limits;
use soloist_node::config::{Nodes, Ttl};

use super::Made;
use crate::duration;

/// What the nodes of a cluster have in common.
pub(super) struct Common<'a> {
    pub keepers: &'a Nodes,
    pub lease: Duration,
    pub algorithm: &'a str,
    /// The API's socket.
    pub socket: &'a str,
}

/// The configuration of one node, keeper or not.
pub(super) fn config((name, address): (&NodeName, &Address), common: &Common<'_>) -> String {
    let mut text = format!("name = \"{name}\"\n");
    // The address of a keeper is in [keepers].
    if common.keepers.id(name.as_str()).is_none() {
        let _ = writeln!(text, "address = \"{address}\"");
    }
    let (lease, drift) = (duration::text(common.lease), Lease::default().drift);
    let _ = write!(
        text,
        "
# docs/configuration.md describes every setting. What is commented out here is the default or an
# example.

# Where this node listens, if that is not the address that others dial (NAT, containers).
# listen = \"0.0.0.0:PORT\"

# Folder of what the node must remember: its cluster and, on a keeper, the store.
# data = \"data\"

# Locks of a node that fails are free after about this time. The same on every node.
lease = \"{lease}\"

# How much the rates of two clocks may differ, in percent. The same on every node.
# drift = {drift}

# The first keepers, which agree on the list of members. The same on every node.
# `soloist cluster` shows the current ones.
[keepers]
"
    );
    for (_, name, address) in common.keepers.iter() {
        let _ = writeln!(text, "{name} = \"{address}\"");
    }
    text + &rest(common)
}

fn rest(common: &Common<'_>) -> String {
    let Common {
        algorithm, socket, ..
    } = common;
    let (ttl, client) = (Ttl::default(), Limits::default().client);
    let (ttl_default, ttl_max) = (duration::text(ttl.default), duration::text(ttl.max));
    let (holds, waiters) = (client.holds, client.waiters);
    format!(
        "
# Paths are relative to this file.
[tls]
ca = \"ca.pem\"
certificate = \"node.pem\"
key = \"node.key\"

# The same on every node, except for the times to live.
[locks]
algorithm = \"{algorithm}\"
# max_local_turns = 1
ttl_default = \"{ttl_default}\"
ttl_max = \"{ttl_max}\"

# Other algorithms for some locks; the first pattern that matches counts.
# [[lock]]
# pattern = \"billing/*\"
# algorithm = \"fair\"

[api]
socket = \"{socket}\"
# Let the users of a group connect; otherwise only this node's user and root can.
# socket_group = \"soloist\"
# For clients on other machines: TCP with TLS, and a token or client certificates.
# listen = \"0.0.0.0:7400\"
# token_file = \"token\"
# [api.tls]
# certificate = \"node.pem\"
# key = \"node.key\"
# client_ca = \"ca.pem\"

# Quotas of each client, and of the whole node.
# [limits]
# client_holds = {holds}
# client_waiters = {waiters}

# [metrics]
# lock_names = false
"
    )
}

/// Next steps after creating a cluster.
pub(super) fn next_steps(made: &Made) -> String {
    let (folder, nodes) = (made.folder.display(), counted(made, "node"));
    let mut text = format!(
        "Made {folder}: the CA of the cluster {}, and a folder for each of {nodes} ({}).\n",
        made.cluster.as_deref().unwrap_or_default(),
        made.algorithm
    );
    let keepers = made.keepers.join(", ");
    text.push_str(&match made.keepers.len() {
        1 => format!(
            "{keepers} is the only keeper: if it fails, everything stops. Three keepers tolerate \
             the loss of one.\n"
        ),
        count => format!(
            "{keepers} are the keepers: {} of them must run.\n",
            count / 2 + 1
        ),
    });
    text.push_str("\nNext:\n");
    copy(&mut text, made);
    text.push_str("2. Start the nodes, each on its machine:\n");
    text.push_str("     soloist node --config soloist/soloist.toml\n");
    keep_key(&mut text, made);
    let _ = writeln!(
        text,
        "4. For further nodes, later; no other node needs to be told:\n     \
         soloist init --add NAME=HOST:PORT --out {folder}"
    );
    text
}

fn counted(made: &Made, what: &str) -> String {
    match made.nodes.len() {
        1 => format!("1 {what}"),
        count => format!("{count} {what}s"),
    }
}

/// Next steps after adding nodes.
pub(super) fn joining(made: &Made) -> String {
    let (folder, nodes) = (made.folder.display(), counted(made, "further node"));
    let mut text = format!("Made in {folder}: a folder for each of {nodes}.\n\nNext:\n");
    copy(&mut text, made);
    text.push_str(
        "2. Start them, each on its machine; they join, and no other node needs to be told:\n",
    );
    text.push_str("     soloist node --config soloist/soloist.toml\n");
    keep_key(&mut text, made);
    text
}

fn copy(text: &mut String, made: &Made) {
    const SHOWN: usize = 5;
    text.push_str("1. Copy each node's folder to its machine, with the key's permissions:\n");
    for node in made.nodes.iter().take(SHOWN) {
        let host = node.address.rsplit_once(':').map_or("", |(host, _)| host);
        let folder = node.folder.display();
        let _ = writeln!(text, "     scp -rp {folder} {host}:soloist");
    }
    if made.nodes.len() > SHOWN {
        let _ = writeln!(text, "     ... ({} more)", made.nodes.len() - SHOWN);
    }
}

fn keep_key(text: &mut String, made: &Made) {
    let key = made.ca_key.display();
    let _ = writeln!(
        text,
        "3. Keep {key} safe and off those machines: it can create nodes."
    );
}
