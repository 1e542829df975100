//! Texts of `soloist init`: the configuration files, and the next steps that it prints.

use std::fmt::Write as _;
use std::time::Duration;

use soloist_api::{Address, NodeName};
use soloist_node::config::Nodes;

use super::Made;

/// The configuration of one node, keeper or not.
pub fn config(
    (name, address): (&NodeName, &Address),
    keepers: &Nodes,
    lease: Duration,
    algorithm: &str,
) -> String {
    let mut text = format!("name = \"{name}\"\n");
    // The address of a keeper is in [keepers].
    if keepers.id(name.as_str()).is_none() {
        let _ = writeln!(text, "address = \"{address}\"");
    }
    let lease = match lease.subsec_millis() {
        0 => format!("{}s", lease.as_secs()),
        _ => format!("{}ms", lease.as_millis()),
    };
    let _ = write!(
        text,
        "
# Where this node listens, if the address that others dial is not its own (behind NAT).
# listen = \"0.0.0.0:7401\"

# A node that fails is left out after about so long. The same on every node.
lease = \"{lease}\"

# They agree on who takes part. The same list on every node; `soloist cluster` shows who they are by now.
[keepers]
"
    );
    list(&mut text, keepers);
    text + &rest(algorithm)
}

fn list(text: &mut String, nodes: &Nodes) {
    for (_, name, address) in nodes.iter() {
        let _ = writeln!(text, "{name} = \"{address}\"");
    }
}

fn rest(algorithm: &str) -> String {
    format!(
        "
# Paths are relative to this file.
[tls]
ca = \"ca.pem\"
certificate = \"node.pem\"
key = \"node.key\"

# The same on every node, but for the times.
[locks]
algorithm = \"{algorithm}\"
ttl_default = \"10s\"
ttl_max = \"1h\"

# Locks that have another algorithm; the first pattern that matches counts.
# [[lock]]
# pattern = \"billing/*\"
# algorithm = \"fair\"

[api]
socket = \"soloist.sock\"
"
    )
}

/// Next steps after creating a cluster.
pub fn next_steps(made: &Made) -> String {
    let (folder, nodes) = (made.folder.display(), counted(made, "node"));
    let mut text = format!(
        "Made {folder}: the CA of the cluster {}, and a folder for each of {nodes} ({}).\n",
        made.cluster.as_deref().unwrap_or_default(),
        made.algorithm
    );
    let keepers = made.keepers.join(", ");
    text.push_str(&match made.keepers.len() {
        1 => format!(
            "{keepers} is the only keeper: if it fails, everything stops. Three keepers stand the loss of one.\n"
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
pub fn joining(made: &Made) -> String {
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
        "3. Keep {key} safe and off those machines: whoever has it can make nodes."
    );
}
