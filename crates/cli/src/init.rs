//! `soloist init`.

use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::Serialize;
use soloist_node::config::{Address, Config, Host, NodeName, Nodes, RuleSettings, Rules};
use soloist_node::identity::Authority;

use crate::{Verdict, output};

const EXPLANATION: &str = "\
Makes, in the folder DIR:
  ca.pem, ca.key            the cluster's CA; the key can make further nodes
  NAME/soloist.toml         for each node: its configuration,
  NAME/ca.pem               the CA's certificate,
  NAME/node.pem, node.key   its certificate and key

Nothing that is there is overwritten, and if anything fails, nothing is left behind.

Example:
  soloist init --nodes a=10.0.0.1:7401,b=10.0.0.2:7401,c=10.0.0.3:7401";

/// Make configurations, certificates and keys for a cluster
///
/// A node's name has 1 to 63 characters of a-z, 0-9 and '-', beginning with a letter. Its address is what the other
/// nodes dial: an IP address (IPv6 in brackets) or a host name, and a port.
#[derive(clap::Args)]
#[command(after_long_help = EXPLANATION)]
pub struct Args {
    /// All nodes with their addresses, separated by commas
    #[arg(
        long,
        value_name = "NAME=HOST:PORT,...",
        value_delimiter = ',',
        required = true,
        value_parser = node
    )]
    nodes: Vec<(NodeName, Address)>,

    /// The folder to make, or to make them in
    #[arg(long, value_name = "DIR", default_value = "soloist-cluster")]
    out: PathBuf,

    /// The cluster's name, for its CA; written as a node's name is
    #[arg(long, value_name = "NAME", default_value = "soloist")]
    cluster: NodeName,

    /// The algorithm for all locks; `soloist lab list` shows them all
    #[arg(long, value_name = "A", default_value = RuleSettings::ALGORITHM)]
    algorithm: String,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn node(text: &str) -> Result<(NodeName, Address), String> {
    let (name, address) = text
        .split_once('=')
        .ok_or("write it as NAME=HOST:PORT, such as a=10.0.0.1:7401")?;
    let name = name.parse().map_err(|error| format!("{error}"))?;
    let address = address.parse().map_err(|error| format!("{error}"))?;
    Ok((name, address))
}

#[derive(Serialize)]
struct Made {
    folder: PathBuf,
    cluster: String,
    algorithm: &'static str,
    ca: PathBuf,
    ca_key: PathBuf,
    nodes: Vec<MadeNode>,
}

#[derive(Serialize)]
struct MadeNode {
    name: String,
    address: String,
    folder: PathBuf,
    config: PathBuf,
}

impl Args {
    pub fn run(self) -> Result<Verdict> {
        let nodes = Nodes::new(self.nodes.clone()).context("--nodes")?;
        let settings = RuleSettings {
            algorithm: self.algorithm.clone(),
            ..RuleSettings::default()
        };
        let rules = Rules::new(&nodes, &settings, &[]).context("--algorithm")?;
        let algorithm = rules.rule("any").choice().name;
        self.refuse_to_overwrite(&nodes)?;
        self.make(&nodes, algorithm)?;
        let made = self.made(&nodes, algorithm);
        if self.json {
            output::json(&made)?;
        } else {
            output::text(&next_steps(&made))?;
        }
        Ok(Verdict::Well)
    }

    /// What stands in the folder in the end.
    fn entries(nodes: &Nodes) -> Vec<String> {
        let folders = nodes.iter().map(|(_, name, _)| name.to_string());
        let ca = ["ca.pem", "ca.key"].map(str::to_owned);
        ca.into_iter().chain(folders).collect()
    }

    fn refuse_to_overwrite(&self, nodes: &Nodes) -> Result<()> {
        let out = self.out.display();
        match fs::symlink_metadata(&self.out) {
            Err(_) => return Ok(()),
            Ok(found) if found.is_file() => {
                bail!("{out} is a file: give another folder with --out")
            }
            Ok(_) => {}
        }
        let entries = Self::entries(nodes);
        let there = entries.into_iter().map(|entry| self.out.join(entry));
        // A link that leads nowhere is something, too.
        if let Some(found) = there
            .into_iter()
            .find(|path| path.symlink_metadata().is_ok())
        {
            let found = found.display();
            bail!(
                "{found} is there already and is not overwritten: give another folder with --out"
            );
        }
        Ok(())
    }

    /// Makes everything in a temporary folder beside its place, then moves it there.
    fn make(&self, nodes: &Nodes, algorithm: &str) -> Result<()> {
        let exists = self.out.exists();
        let parent = match self.out.parent() {
            _ if exists => self.out.as_path(),
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        };
        let temporary = tempfile::Builder::new()
            .prefix(".soloist-init-")
            .tempdir_in(parent)
            .with_context(|| format!("cannot make anything in {}", parent.display()))?;
        let whole = temporary.path().join("cluster");
        fs::create_dir(&whole).with_context(|| whole.display().to_string())?;
        self.fill(&whole, nodes, algorithm)?;
        if !exists {
            return move_to(&whole, &self.out);
        }
        let mut moved: Vec<PathBuf> = Vec::new();
        for entry in Self::entries(nodes) {
            let to = self.out.join(&entry);
            if let Err(error) = move_to(&whole.join(&entry), &to) {
                for path in moved {
                    // Back into the folder that vanishes.
                    let _ = fs::rename(&path, whole.join(path.file_name().unwrap_or_default()));
                }
                return Err(error);
            }
            moved.push(to);
        }
        Ok(())
    }

    fn fill(&self, folder: &Path, nodes: &Nodes, algorithm: &str) -> Result<()> {
        let authority = Authority::new(self.cluster.as_str())?;
        write(&folder.join("ca.pem"), authority.certificate(), 0o644)?;
        write(&folder.join("ca.key"), &authority.key(), 0o600)?;
        for (_, name, address) in nodes.iter() {
            let folder = folder.join(name.as_str());
            fs::create_dir(&folder).with_context(|| folder.display().to_string())?;
            // The API may be served with it, too.
            let issued = match address.host {
                Host::Ip(ip) => authority.issue(name, &[&ip.to_string()])?,
                Host::Name(_) => authority.issue(name, &[])?,
            };
            let text = configuration(name, nodes, algorithm);
            let file = folder.join("soloist.toml");
            write(&file, &text, 0o644)?;
            write(&folder.join("ca.pem"), authority.certificate(), 0o644)?;
            write(&folder.join("node.pem"), &issued.certificate, 0o644)?;
            write(&folder.join("node.key"), &issued.key, 0o600)?;
            // What a node would refuse is not handed out.
            Config::load(&file)?.identity()?;
        }
        Ok(())
    }

    fn made(&self, nodes: &Nodes, algorithm: &'static str) -> Made {
        let listed = nodes.iter().map(|(_, name, address)| {
            let folder = self.out.join(name.as_str());
            MadeNode {
                name: name.to_string(),
                address: address.to_string(),
                config: folder.join("soloist.toml"),
                folder,
            }
        });
        Made {
            folder: self.out.clone(),
            cluster: self.cluster.to_string(),
            algorithm,
            ca: self.out.join("ca.pem"),
            ca_key: self.out.join("ca.key"),
            nodes: listed.collect(),
        }
    }
}

fn write(path: &Path, text: &str, mode: u32) -> Result<()> {
    let mut options = OpenOptions::new();
    let file = options.write(true).create_new(true).mode(mode).open(path);
    file.and_then(|mut file| file.write_all(text.as_bytes()))
        .with_context(|| format!("cannot write {}", path.display()))
}

fn move_to(from: &Path, to: &Path) -> Result<()> {
    if to.symlink_metadata().is_ok() {
        bail!(
            "{} has come into being meanwhile and is not overwritten",
            to.display()
        );
    }
    fs::rename(from, to).with_context(|| format!("cannot make {}", to.display()))
}

fn configuration(name: &NodeName, nodes: &Nodes, algorithm: &str) -> String {
    let mut text = format!(
        "name = \"{name}\"\n\n\
         # Where this node listens, if the address below, which others dial, is not its own (behind NAT).\n\
         # listen = \"0.0.0.0:7401\"\n\n\
         # All nodes, the same list on every node.\n[nodes]\n"
    );
    for (_, name, address) in nodes.iter() {
        let _ = writeln!(text, "{name} = \"{address}\"");
    }
    let _ = write!(
        text,
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
    );
    text
}

fn next_steps(made: &Made) -> String {
    const SHOWN: usize = 5;
    let folder = made.folder.display();
    let mut text = format!(
        "Made {folder}: the CA of the cluster {}, and a folder for each of {} nodes ({}).\n\nNext:\n",
        made.cluster,
        made.nodes.len(),
        made.algorithm
    );
    text.push_str("1. Copy each node's folder to its machine, with the key's permissions:\n");
    for node in made.nodes.iter().take(SHOWN) {
        let host = node.address.rsplit_once(':').map_or("", |(host, _)| host);
        let _ = writeln!(
            text,
            "     scp -rp {} {host}:soloist",
            node.folder.display()
        );
    }
    if made.nodes.len() > SHOWN {
        let _ = writeln!(text, "     ... ({} more)", made.nodes.len() - SHOWN);
    }
    text.push_str("2. Start the nodes, each on its machine:\n");
    text.push_str("     soloist node --config soloist/soloist.toml\n");
    let _ = writeln!(
        text,
        "3. Keep {} safe and off those machines: whoever has it can make nodes.",
        made.ca_key.display()
    );
    text
}
