//! `soloist init`.

mod add;
mod client;
mod folder;
mod text;

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use serde::Serialize;
use soloist_api::{Address, Host, NodeName};
use soloist_core::epochs::lease::Lease;
use soloist_core::rules::{RuleSettings, Rules};
use soloist_node::FIRST_START;
use soloist_node::config::{Api, Config, Members, Nodes};
use soloist_node::identity::Authority;

use crate::duration::{self, Given};
use crate::{Verdict, output};
use folder::write;

const EXPLANATION: &str = "\
Creates in the folder DIR:
  ca.pem, ca.key           the cluster's CA; its key can make further nodes
  NAME/soloist.toml        for each node: its configuration,
  NAME/ca.pem              the CA's certificate,
  NAME/node.pem, node.key  its certificate and key
  NAME/data/first-start    for the first keeper: permission to begin the cluster

The keepers agree on the list of members. A majority of them must run: of three, one may fail. \
Nodes join when they start and leave when they stop; a node that fails is evicted after about a \
lease. One keeper is enough for a single node or a small cluster, but if that node fails, \
everything stops until it is back.

Existing files are never overwritten, and if anything fails, nothing is left behind.

--client creates client certificates, which an API with `client_ca` in [api.tls] accepts. They \
cannot be used to run a node.

Examples:
  soloist init --nodes a=10.0.0.1:7401,b=10.0.0.2:7401,c=10.0.0.3:7401
  soloist init --nodes a=127.0.0.1:7401   one node, which is its own keeper
  soloist init --add d=10.0.0.4:7401      a further node; no other file changes
  soloist init --client backup,ci         makes DIR/client-backup, DIR/client-ci

With the systemd unit in contrib/, use --socket /run/soloist/soloist.sock.";

const ABOUT: &str = "Create configurations, certificates and keys for a cluster";

fn long_about() -> String {
    format!(
        "{ABOUT}\n\nThe name of a node has 1 to {} characters of a-z, 0-9 and '-', starts with a letter \
         and does not end with '-'. Its address is the one that other nodes dial: an IP address (IPv6 \
         in brackets) or a host name, and a port.",
        NodeName::LONGEST
    )
}

/// Arguments of `soloist init`.
#[derive(clap::Args)]
#[command(about = ABOUT, long_about = long_about(), after_long_help = EXPLANATION)]
pub(crate) struct Args {
    /// All nodes with their addresses, separated by commas
    #[arg(
        long,
        value_name = "NAME=HOST:PORT,...",
        value_delimiter = ',',
        required_unless_present_any = ["add", "client"],
        value_parser = node
    )]
    nodes: Vec<(NodeName, Address)>,

    /// Nodes that are keepers, separated by commas [default: the first three; with fewer nodes, the
    /// first]
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    keepers: Vec<NodeName>,

    #[arg(
        long,
        value_name = "D",
        default_value_t = Given(Lease::default().length),
        value_parser = lease,
        help = format!(
            "Time until the locks of a failed node are freed, from {}",
            duration::range(Lease::LEAST, Lease::MOST)
        )
    )]
    lease: Given,

    /// Add nodes to the cluster in DIR, with its CA and settings
    #[arg(
        long,
        value_name = "NAME=HOST:PORT,...",
        value_delimiter = ',',
        value_parser = node,
        conflicts_with_all = ["nodes", "keepers", "lease", "cluster", "algorithm", "socket"]
    )]
    add: Vec<(NodeName, Address)>,

    /// Create certificates for API clients of the cluster in DIR, for [api.tls] client_ca
    #[arg(
        long,
        value_name = "NAME,...",
        value_delimiter = ',',
        conflicts_with_all = ["nodes", "add", "keepers", "lease", "cluster", "algorithm", "socket"]
    )]
    client: Vec<NodeName>,

    /// Folder to create, or to create the files in
    #[arg(long, value_name = "DIR", default_value = "soloist-cluster")]
    out: PathBuf,

    /// Name of the cluster, for its CA; same rules as for the name of a node
    #[arg(long, value_name = "NAME", default_value = "soloist")]
    cluster: NodeName,

    /// Algorithm of all locks; `soloist lab list` lists them
    #[arg(long, value_name = "A", default_value = RuleSettings::ALGORITHM)]
    algorithm: String,

    /// Unix socket of each node's API, absolute or relative to the node's folder
    #[arg(long, value_name = "PATH", default_value = Api::SOCKET, value_parser = socket)]
    socket: String,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn node(text: &str) -> Result<(NodeName, Address), String> {
    let (name, address) = text
        .split_once('=')
        .ok_or("use NAME=HOST:PORT, such as a=10.0.0.1:7401")?;
    let name = name.parse().map_err(|error| format!("{error}"))?;
    let address = address.parse().map_err(|error| format!("{error}"))?;
    Ok((name, address))
}

/// Accepts a path that can be written into a configuration as it is.
fn socket(text: &str) -> Result<String, String> {
    match text.chars().any(|c| c.is_control() || "\"\\".contains(c)) {
        true => Err("use a path without quotes, backslashes and control characters".to_owned()),
        false => Ok(text.to_owned()),
    }
}

fn lease(text: &str) -> Result<Given, String> {
    duration::parse_within(text, Lease::LEAST, Lease::MOST)
}

#[derive(Serialize)]
struct Made {
    folder: PathBuf,
    /// `None` when nodes are added to an existing cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster: Option<String>,
    algorithm: &'static str,
    keepers: Vec<String>,
    lease_ms: u64,
    ca: PathBuf,
    ca_key: PathBuf,
    nodes: Vec<MadeNode>,
}

#[derive(Serialize)]
struct MadeNode {
    name: String,
    address: String,
    keeper: bool,
    folder: PathBuf,
    config: PathBuf,
}

impl Args {
    pub(crate) fn run(self) -> Result<Verdict> {
        if !self.client.is_empty() {
            let made = client::issue(&self.client, &self.out)?;
            match self.json {
                true => output::json(&made)?,
                false => output::text(&client::text(&made))?,
            }
            return Ok(Verdict::Well);
        }
        let is_new = self.add.is_empty();
        let made = match is_new {
            true => self.begin()?,
            false => add::add(&self.add, &self.out)?,
        };
        match (self.json, is_new) {
            (true, _) => output::json(&made)?,
            (false, true) => output::text(&text::next_steps(&made))?,
            (false, false) => output::text(&text::joining(&made))?,
        }
        Ok(Verdict::Well)
    }

    /// Creates a new cluster.
    fn begin(&self) -> Result<Made> {
        let nodes = Nodes::new(self.nodes.clone()).context("--nodes")?;
        let keepers = self.chosen(&nodes)?;
        let algorithm = self.algorithm()?;
        let names = nodes.iter().map(|(_, name, _)| name.to_string());
        let ca = ["ca.pem", "ca.key"].map(str::to_owned);
        let entries: Vec<_> = ca.into_iter().chain(names).collect();
        folder::refuse_to_overwrite(&self.out, &entries)?;
        let common = text::Common {
            keepers: &keepers,
            lease: self.lease.0,
            algorithm,
            socket: &self.socket,
        };
        folder::make(&self.out, &entries, |whole| {
            let authority = Authority::new(self.cluster.as_str())?;
            write(&whole.join("ca.pem"), authority.certificate(), 0o644)?;
            write(&whole.join("ca.key"), &authority.key(), 0o600)?;
            for (_, name, address) in nodes.iter() {
                let text = text::config((name, address), &common);
                let file = fill(whole, &authority, (name, address), &text)?;
                // Do not hand out a configuration that the node would reject.
                let config = Config::load(&file)?;
                config.identity()?;
                allow_first_start(&config)?;
            }
            Ok(())
        })?;
        Ok(Made {
            cluster: Some(self.cluster.to_string()),
            ..made(&self.out, &nodes, (&keepers, self.lease.0), algorithm)
        })
    }

    /// The keepers: those of --keepers, or the first three nodes, or the first if there are fewer.
    fn chosen(&self, nodes: &Nodes) -> Result<Nodes> {
        let usual = if nodes.len() < 3 { 1 } else { 3 };
        let first = self.nodes.iter().take(usual).map(|(name, _)| name);
        let names: Vec<&NodeName> = match self.keepers.is_empty() {
            true => first.collect(),
            false => self.keepers.iter().collect(),
        };
        let address = |name: &NodeName| {
            let found = nodes.id(name.as_str()).and_then(|id| nodes.address(id));
            let found = found.cloned();
            found.ok_or_else(|| anyhow!("--keepers: {name:?} is not one of --nodes; add it there"))
        };
        let keepers = names.iter().map(|&name| Ok((name.clone(), address(name)?)));
        let keepers = Nodes::new(keepers.collect::<Result<Vec<_>>>()?).context("--keepers")?;
        Members::check_keepers(keepers.len()).context("--keepers")?;
        Ok(keepers)
    }

    fn algorithm(&self) -> Result<&'static str> {
        let settings = RuleSettings {
            algorithm: self.algorithm.clone(),
            ..RuleSettings::default()
        };
        let rules = Rules::for_any(&settings, &[]);
        Ok(rules.context("--algorithm")?.rule("any").choice().name)
    }
}

/// Creates the folder of one node and returns the path of its configuration.
fn fill(
    whole: &Path,
    authority: &Authority,
    (name, address): (&NodeName, &Address),
    text: &str,
) -> Result<PathBuf> {
    let folder = whole.join(name.as_str());
    fs::create_dir(&folder).with_context(|| folder.display().to_string())?;
    // The certificate names the IP address, since it may also serve the API.
    let issued = match address.host {
        Host::Ip(ip) => authority.issue(name, &[&ip.to_string()])?,
        Host::Name(_) => authority.issue(name, &[])?,
    };
    let file = folder.join("soloist.toml");
    write(&file, text, 0o644)?;
    write(&folder.join("ca.pem"), authority.certificate(), 0o644)?;
    write(&folder.join("node.pem"), &issued.certificate, 0o644)?;
    write(&folder.join("node.key"), &issued.key, 0o600)?;
    Ok(file)
}

/// Lets the first keeper bootstrap the cluster, once.
fn allow_first_start(config: &Config) -> Result<()> {
    let members = &config.members;
    let first = members.keepers.iter().next().map(|(_, name, _)| name);
    if first == Some(&config.name) {
        let mut folder = DirBuilder::new();
        let made = folder.mode(0o700).create(&members.data);
        made.with_context(|| members.data.display().to_string())?;
        write(&members.data.join(FIRST_START), "", 0o600)?;
    }
    Ok(())
}

fn made(
    out: &Path,
    nodes: &Nodes,
    (keepers, lease): (&Nodes, Duration),
    algorithm: &'static str,
) -> Made {
    let listed = nodes.iter().map(|(_, name, address)| {
        let folder = out.join(name.as_str());
        MadeNode {
            name: name.to_string(),
            address: address.to_string(),
            keeper: keepers.id(name.as_str()).is_some(),
            config: folder.join("soloist.toml"),
            folder,
        }
    });
    let names = keepers.iter().map(|(_, name, _)| name.to_string());
    Made {
        folder: out.to_owned(),
        cluster: None,
        algorithm,
        keepers: names.collect(),
        lease_ms: lease.as_millis() as u64,
        ca: out.join("ca.pem"),
        ca_key: out.join("ca.key"),
        nodes: listed.collect(),
    }
}
