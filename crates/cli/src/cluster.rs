//! `soloist cluster`: the members, the keepers, and changes of the keepers.

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::{Result, bail};
use serde::Serialize;
use soloist_client::api::{Cluster, NodeInfo, NodeState};
use soloist_node::Shown;
use soloist_node::config::{Config, Kept};
use soloist_node::keepers::{KeeperNode, Known, Store};

use crate::connect::{Connect, FINDING, block_on};
use crate::{Verdict, output};

/// Show the members and the keepers, or change the keepers
///
/// Members serve the locks. Each of them needs a lease, which the keepers' leader renews. A few of
/// the members are keepers: they agree on the list of members. Without a majority of the keepers no
/// node can join or leave, and all leases expire.
///
/// Exit codes: 0 success; 1 a keeper is down, or no leader can be reached; 2 invalid input; 69 no
/// node can be reached; 74 unknown: the node that was asked is not a member.
#[derive(clap::Args)]
#[command(after_long_help = FINDING, args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,

    #[command(flatten)]
    list: List,
}

#[derive(clap::Args)]
struct List {
    #[command(flatten)]
    connect: Connect,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Make a member a keeper
    ///
    /// The member first receives all data of the keepers. Use an odd number of keepers: 3 tolerate
    /// the loss of one, 5 of two. A keeper that lost its disk must be demoted before it is promoted
    /// again.
    Promote(Change),
    /// Make a keeper an ordinary member
    ///
    /// The keeper's machine may be down. When it returns, its store is set aside, never deleted.
    /// The last keeper cannot be demoted.
    Demote(Change),
    Recover(Recover),
}

#[derive(clap::Args)]
struct Change {
    /// Name of the node
    node: String,

    #[command(flatten)]
    connect: Connect,
}

const RECOVERY: &str = "\
When a majority of the keepers is lost for good, nobody can be let in any more and all leases run out. Then, and only then:
  1. Stop all nodes that still run, on all machines, and wait for a lease. Whoever runs on could still be inside.
  2. On the machine of the keeper with the newest data:  soloist cluster recover --config soloist.toml --the-others-are-lost
  3. Start that node, then the others.
  4. soloist cluster promote NODE, until there are three again.
It asks all nodes that it knows first, and refuses if one of them still has a leader or is in a newer generation.
Locks that were held are free then. The cluster goes on in its next generation: fences are higher than all that were given
before, and nodes refuse keepers of the generation before. Recover on one machine only: two that recover on both sides of a
partition make two clusters.";

/// Recover from the permanent loss of a majority of the keepers
///
/// Makes the keeper on this machine the only one, with the data that it has. Its node must be
/// stopped.
#[derive(clap::Args)]
#[command(after_long_help = RECOVERY)]
struct Recover {
    /// Configuration file of the keeper
    #[arg(long, value_name = "FILE", default_value = "soloist.toml")]
    config: PathBuf,

    /// Confirm that a majority of the keepers is lost forever and that no node is running
    #[arg(long, required = true)]
    the_others_are_lost: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Args {
    pub fn run(self) -> Result<Verdict> {
        match self.command {
            None => self.list.run(),
            Some(Command::Promote(change)) => change.run(true),
            Some(Command::Demote(change)) => change.run(false),
            Some(Command::Recover(recover)) => recover.run(),
        }
    }
}

impl List {
    fn run(self) -> Result<Verdict> {
        let cluster = block_on(async { Ok(self.connect.client().await?.cluster().await?) })?;
        if self.json {
            output::json(&cluster)?;
        } else {
            output::text(&table(&cluster))?;
        }
        let mut keepers = cluster.nodes.iter().filter(|node| node.keeper);
        let all_keep = keepers.all(|node| node.lease_ms.is_some());
        let is_led = cluster.leader.is_some();
        let verdict = Verdict::of(all_keep && is_led);
        Ok(output::verdict(cluster.reason.as_deref(), verdict))
    }
}

fn table(cluster: &Cluster) -> String {
    let state = match cluster.state {
        NodeState::Member => "",
        NodeState::Changing => ", which is about to begin",
        _ => "; this node takes no part",
    };
    let mut page = format!(
        "{} nodes, epoch {}{state}; as {} sees it\n",
        cluster.nodes.len(),
        cluster.epoch,
        cluster.node
    );
    match &cluster.leader {
        Some(leader) => page += &format!("the keepers are led by {leader}\n\n"),
        None => page += "the keepers' leader cannot be reached\n\n",
    }
    let names = cluster.nodes.iter().map(|node| node.name.chars().count());
    let name = names.max().unwrap_or(0).max(4);
    let addresses = cluster.nodes.iter().map(|node| node.address.len());
    let address = addresses.max().unwrap_or(0).max(7);
    let _ = writeln!(
        page,
        "{:<name$}  {:<address$}  {:<6}  {:>9}",
        "node", "address", "keeper", "lease"
    );
    for node in &cluster.nodes {
        let keeper = if node.keeper { "keeper" } else { "" };
        let lease = lease(cluster, node);
        let _ = writeln!(
            page,
            "{:<name$}  {:<address$}  {keeper:<6}  {lease:>9}",
            node.name, node.address
        );
    }
    page
}

fn lease(cluster: &Cluster, node: &NodeInfo) -> String {
    match node.lease_ms {
        Some(ms) => format!("{ms} ms"),
        None if cluster.leader.is_some() => "no member".to_owned(),
        None => "-".to_owned(),
    }
}

impl Change {
    fn run(self, is_up: bool) -> Result<Verdict> {
        block_on(async {
            let client = self.connect.client().await?;
            match is_up {
                true => client.promote(&self.node).await?,
                false => client.demote(&self.node).await?,
            }
            Ok(())
        })?;
        let node = &self.node;
        output::text(&match is_up {
            true => format!("{node} is a keeper\n"),
            false => format!("{node} is no keeper\n"),
        })?;
        Ok(Verdict::Well)
    }
}

#[derive(Serialize)]
struct Recovered {
    keeper: String,
    cluster: String,
    generation: u8,
    epoch_before: u64,
    epoch_after: u64,
    members: Vec<String>,
    lost_keepers: Vec<String>,
    backup: PathBuf,
}

/// Probes all known nodes and fails if one of them has a leader or belongs to a newer generation. A
/// cluster that has a leader needs no recovery, and recovery would split it.
async fn see_that_it_is_lost(config: &Config, kept: &Kept, known: Known) -> Result<()> {
    let Known { cluster, mut nodes } = known;
    let first = kept.keepers.iter();
    nodes.extend(first.map(|(_, name, address)| KeeperNode {
        name: name.clone(),
        address: address.clone(),
    }));
    nodes.sort_by_key(|node| node.to_string());
    nodes.dedup();
    for (node, shown) in soloist_node::probe(config, cluster, nodes).await? {
        match shown {
            Shown::Leader(leader) => bail!(
                "{node} says that {} leads: the keepers have a majority, and recovering would make a second cluster. \
                 Nothing was changed. If that keeper is lost for good, try again when {} has noticed",
                leader.name,
                node.name
            ),
            Shown::Newer(theirs) => bail!(
                "{node} belongs to cluster {theirs}: the cluster was recovered already, elsewhere. Nothing was changed. \
                 Start this node again: it joins that generation"
            ),
            Shown::NoLeader => eprintln!("warning: {node} runs; stop all nodes first"),
            Shown::Refused(reason) => {
                eprintln!(
                    "warning: {node} runs, and does not say whether it has a leader: {reason}"
                );
            }
            Shown::Silent(_) => {}
        }
    }
    Ok(())
}

impl Recover {
    fn run(self) -> Result<Verdict> {
        let config = Config::load(&self.config)?;
        let kept = &config.members;
        let me = KeeperNode {
            name: config.name.clone(),
            address: kept.address.clone(),
        };
        let recovery = block_on(async {
            let known = Store::known(&kept.data, &me.name).await?;
            see_that_it_is_lost(&config, kept, known).await?;
            Ok(Store::recover(&kept.data, me).await?)
        })?;
        let recovered = Recovered {
            keeper: config.name.to_string(),
            cluster: recovery.cluster.id.to_string(),
            generation: recovery.cluster.generation.number,
            epoch_before: recovery.epoch_before,
            epoch_after: recovery.epoch_after,
            members: recovery
                .members
                .iter()
                .map(|member| member.name.to_string())
                .collect(),
            lost_keepers: recovery.cut_off.iter().map(ToString::to_string).collect(),
            backup: recovery.kept,
        };
        if self.json {
            output::json(&recovered)?;
            return Ok(Verdict::Well);
        }
        output::text(&format!(
            "{} is now the only keeper of cluster {}, which is in generation {}. Epoch {} is followed by {}.\n\
             Cut off for ever: {}.\n\
             What it knew before is kept in {}.\n\
             Start it, then the others, and promote two of them.\n",
            recovered.keeper,
            recovered.cluster,
            recovered.generation,
            recovered.epoch_before,
            recovered.epoch_after,
            match recovered.lost_keepers.is_empty() {
                true => "nobody".to_owned(),
                false => recovered.lost_keepers.join(", "),
            },
            recovered.backup.display()
        ))?;
        Ok(Verdict::Well)
    }
}
