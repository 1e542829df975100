//! `soloist cluster`: the members, the keepers, and changes of the keepers.

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::{Result, bail};
use serde::Serialize;
use soloist_client::api::{Cluster, Departed, NodeInfo, NodeState};
use soloist_node::Shown;
use soloist_node::config::{Config, Members};
use soloist_node::keepers::{KeeperNode, Known, Store};

use crate::connect::{Connect, Query};
use crate::exit::FAILED;
use crate::runtime::block_on;
use crate::show::{count, printable, time_of_day};
use crate::table::Table;
use crate::{Verdict, help, output};

/// Show the nodes of the cluster and their state, or change the keepers
///
/// Also shows who left or was evicted in the last day and has not come back.
///
/// Members serve the locks. Each of them needs a lease, which the keepers' leader renews. A few of
/// the members are keepers: they agree on the list of members. Without a majority of the keepers no
/// node can join or leave, and all leases expire.
#[derive(clap::Args)]
#[command(
    after_long_help = help::asking(
        &format!(
            "0 all nodes answer; {FAILED} a node does not answer, or no leader can be reached"
        ),
        "the node that was asked is not a member",
    ),
    args_conflicts_with_subcommands = true
)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,

    #[command(flatten)]
    query: Query,
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
When a majority of the keepers is lost for good, no node can join and all leases expire. Then, and \
only then:

  1. Stop all nodes on all machines, and wait for a lease.
     A node that still runs could still hold a lock.
  2. On the machine of the keeper with the newest data:
     soloist cluster recover --config soloist.toml --the-others-are-lost
  3. Start that node, then the others.
  4. soloist cluster promote NODE, until there are three keepers again.

The command first asks all nodes that it knows, and refuses if one of them still has a leader or \
is in a newer generation. Locks that were held are free afterwards. The cluster continues in its \
next generation: fences are higher than all earlier ones, and nodes refuse keepers of the previous \
generation. Recover on one machine only: two recoveries, on both sides of a partition, make two \
clusters.";

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
    pub(crate) fn run(self) -> Result<Verdict> {
        match self.command {
            None => show(&self.query),
            Some(Command::Promote(change)) => change.run(true),
            Some(Command::Demote(change)) => change.run(false),
            Some(Command::Recover(recover)) => recover.run(),
        }
    }
}

fn show(query: &Query) -> Result<Verdict> {
    let cluster = query.ask(async |client| client.cluster().await, page)?;
    let answers = |node: &NodeInfo| node.health.is_some();
    let is_well = cluster.leader.is_some() && cluster.nodes.iter().all(answers);
    let verdict = Verdict::of(is_well);
    Ok(output::verdict(cluster.reason.as_deref(), verdict))
}

fn page(cluster: &Cluster) -> String {
    let nodes = count(cluster.nodes.len(), "node");
    let (me, epoch) = (&cluster.node, cluster.epoch);
    let mut page = match cluster.state {
        NodeState::Member => format!("{nodes}, epoch {epoch}; as {me} sees it\n"),
        NodeState::Changing => {
            format!("{nodes}, epoch {epoch} is about to begin; as {me} sees it\n")
        }
        NodeState::Outside => format!("{me} is not a member now; it knows {nodes}\n"),
        _ => {
            format!("{nodes}, epoch {epoch}; {me} is in a state that this version does not know\n")
        }
    };
    let leader = match &cluster.leader {
        Some(leader) => format!("the keepers are led by {leader}"),
        None => "the keepers' leader cannot be reached".to_owned(),
    };
    let _ = writeln!(
        page,
        "{leader}; the default algorithm is {}\n",
        cluster.algorithm
    );
    let head = [
        "node", "address", "keeper", "lease", "locks", "holds", "waiters", "links", "version",
    ];
    let mut table = Table::new(head).optional(&["version", "links", "locks", "address"]);
    cluster.nodes.iter().for_each(|node| table.row(row(node)));
    page += &table.fit(output::width());
    let silent = cluster.nodes.iter().filter(|node| node.health.is_none());
    for node in silent {
        let _ = writeln!(page, "{}", silence(cluster, node));
    }
    for node in &cluster.departed {
        let _ = writeln!(page, "{}", departure(node));
    }
    page
}

fn departure(node: &Departed) -> String {
    let (name, at) = (printable(&node.name), time_of_day(node.at_unix_ms));
    match node.evicted {
        true => format!("{name} was evicted at {at}. {}", printable(&node.reason)),
        false => format!("{name} left at {at}"),
    }
}

fn row(node: &NodeInfo) -> [String; 9] {
    let keeper = if node.keeper { "keeper" } else { "" };
    let lease = node.lease_ms.map(|ms| format!("{ms} ms"));
    let health = node.health.as_ref();
    let cell = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    [
        node.name.clone(),
        node.address.clone(),
        keeper.to_owned(),
        cell(lease),
        cell(health.map(|health| health.locks.to_string())),
        cell(health.map(|health| health.holds.to_string())),
        cell(health.map(|health| health.waiters.to_string())),
        cell(health.map(|health| health.links_up.to_string())),
        cell(health.map(|health| health.version.clone())),
    ]
}

/// Why a node has no health. Only members are asked, and only members ask.
fn silence(cluster: &Cluster, node: &NodeInfo) -> String {
    let name = &node.name;
    match &node.problem {
        Some(problem) => format!("{name} is not a member: {problem}"),
        None if cluster.state == NodeState::Outside => format!("{name} is unknown"),
        None if node.lease_ms.is_none() && cluster.leader.is_some() => {
            format!("{name} is not a member: it is down or cut off")
        }
        None => format!("{name} does not answer"),
    }
}

impl Change {
    fn run(self, is_up: bool) -> Result<Verdict> {
        let cluster = block_on(async {
            let client = self.connect.client().await?;
            match is_up {
                true => client.promote(&self.node).await?,
                false => client.demote(&self.node).await?,
            }
            // The change is made, even if the cluster cannot be shown now.
            Ok(client.cluster().await.ok())
        })?;
        let node = &self.node;
        output::text(&match is_up {
            true => format!("{node} is a keeper\n"),
            false => format!("{node} is not a keeper\n"),
        })?;
        let keepers = cluster.iter().flat_map(|cluster| &cluster.nodes);
        let keepers = keepers.filter(|node| node.keeper).count();
        if keepers > 0 && keepers % 2 == 0 {
            output::complain(&format!(
                "warning: there are {keepers} keepers now, which tolerate no more losses than {}; \
                 promote or demote one",
                keepers - 1
            ));
        }
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
async fn see_that_it_is_lost(config: &Config, members: &Members, known: Known) -> Result<()> {
    let Known { cluster, mut nodes } = known;
    let first = members.keepers.iter();
    nodes.extend(first.map(|(_, name, address)| KeeperNode {
        name: name.clone(),
        address: address.clone(),
    }));
    nodes.sort_by_key(|node| node.to_string());
    nodes.dedup();
    for (node, shown) in soloist_node::probe(config, cluster, nodes).await? {
        match shown {
            Shown::Leader(leader) => bail!(
                "{node} reports {} as the leader: the keepers have a majority, and recovering \
                 would create a second cluster. Nothing was changed. If that keeper is lost for \
                 good, try again when {} has noticed",
                leader.name,
                node.name
            ),
            Shown::Newer(theirs) => bail!(
                "{node} belongs to cluster {theirs}: the cluster was already recovered elsewhere. \
                 Nothing was changed. Restart this node: it joins that generation"
            ),
            Shown::NoLeader => eprintln!("warning: {node} is running; stop all nodes first"),
            Shown::Refused(reason) => {
                eprintln!(
                    "warning: {node} is running, but whether it has a leader is unknown: {reason}"
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
        let members = &config.members;
        let me = KeeperNode {
            name: config.name.clone(),
            address: members.address.clone(),
        };
        let recovery = block_on(async {
            let known = Store::known(&members.data, &me.name).await?;
            see_that_it_is_lost(&config, members, known).await?;
            Ok(Store::recover(&members.data, me).await?)
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
            "{} is now the only keeper of cluster {}, which is in generation {}. Epoch {} is \
             followed by {}.\nRemoved keepers: {}.\nThe previous store is kept in {}.\nStart this \
             node, then the others, and promote two of them.\n",
            recovered.keeper,
            recovered.cluster,
            recovered.generation,
            recovered.epoch_before,
            recovered.epoch_after,
            match recovered.lost_keepers.is_empty() {
                true => "none".to_owned(),
                false => recovered.lost_keepers.join(", "),
            },
            recovered.backup.display()
        ))?;
        Ok(Verdict::Well)
    }
}
