//! Texts of `soloist init`: the configuration files, and the next steps that it prints.

use std::fmt::Write as _;
use std::time::Duration;

use soloist_api::{Address, NodeName};
use soloist_core::epochs::lease::Lease;
use soloist_core::limits::{Limits, Quota};
use soloist_core::rules::RuleSettings;
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

# Threads for connections and locks. One is fastest unless it is busy all the time.
# io_threads = 1

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
    let (ttl, limits) = (Ttl::default(), Limits::default());
    let (ttl_default, ttl_max) = (duration::text(ttl.default), duration::text(ttl.max));
    let quotas = quotas("", &limits.node) + &quotas("client_", &limits.client);
    let turns = RuleSettings::LOCAL_TURNS;
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
# variant = \"\"
# shape = \"\"
# max_local_turns = {turns}
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
# socket_mode = \"660\"
# For clients on other machines: TCP with TLS, and a token or client certificates.
# listen = \"0.0.0.0:7400\"
# token_file = \"token\"
# Serve the dashboard at /ui of that address.
# ui = true
# [api.tls]
# certificate = \"node.pem\"
# key = \"node.key\"
# client_ca = \"ca.pem\"

# Quotas of the whole node, and of each client.
# [limits]
{quotas}
# [metrics]
# lock_names = false
"
    )
}

/// The quotas of one scope, as comments.
fn quotas(scope: &str, quota: &Quota) -> String {
    let Quota {
        holds,
        waiters,
        name_bytes,
    } = quota;
    format!(
        "# {scope}holds = {holds}\n# {scope}waiters = {waiters}\n# {scope}name_bytes = {name_bytes}\n"
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
    let mut steps = start(made, "Start the nodes");
    steps.push(keep_key(made));
    steps.push(format!(
        "For further nodes, later; no other node needs to be told:\n     \
         soloist init --add NAME=HOST:PORT --out {folder}"
    ));
    text + &numbered(&steps)
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
    let mut steps = start(
        made,
        "Start them; they join, and no other node needs to be told",
    );
    steps.push(keep_key(made));
    format!("Made in {folder}: a folder for each of {nodes}.\n") + &numbered(&steps)
}

fn numbered(steps: &[String]) -> String {
    let mut text = "\nNext:\n".to_owned();
    for (number, step) in (1..).zip(steps) {
        let _ = writeln!(text, "{number}. {step}");
    }
    text
}

/// The steps until the nodes run. Folders of nodes on this machine stay where they are.
fn start(made: &Made, starting: &str) -> Vec<String> {
    let mut addresses = made.nodes.iter().map(|node| node.address.parse());
    if addresses.all(|address| address.is_ok_and(|address: Address| address.is_loopback())) {
        let configs = made.nodes.iter().map(|node| node.config.display());
        let commands = configs.map(|config| format!("soloist node --config {config}"));
        let starting = format!("{starting}, each in a terminal of its own");
        return vec![listed(&starting, commands.collect())];
    }
    let copies = made.nodes.iter().map(|node| {
        let host = node.address.rsplit_once(':').map_or("", |(host, _)| host);
        format!("scp -rp {} {host}:soloist", node.folder.display())
    });
    vec![
        listed(
            "Copy each node's folder to its machine, with the key's permissions",
            copies.collect(),
        ),
        listed(
            &format!("{starting}, each on its machine"),
            vec!["soloist node --config soloist/soloist.toml".to_owned()],
        ),
    ]
}

/// A step with its commands, of which only the first few are shown.
fn listed(step: &str, commands: Vec<String>) -> String {
    const SHOWN: usize = 5;
    let mut lines = vec![format!("{step}:")];
    let hidden = commands.len().saturating_sub(SHOWN);
    lines.extend(commands.into_iter().take(SHOWN));
    if hidden > 0 {
        lines.push(format!("... ({hidden} more)"));
    }
    lines.join("\n     ")
}

fn keep_key(made: &Made) -> String {
    let key = made.ca_key.display();
    format!("Keep {key} safe, and off the machines of nodes: it can create nodes.")
}
