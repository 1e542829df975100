//! `soloist status`.

use std::fmt::Write as _;

use anyhow::Result;
use soloist_client::api::{Cluster, NodeInfo, NodeState};

use crate::connect::{Connect, FINDING, block_on};
use crate::{Verdict, output};

/// Show the nodes of the cluster and their state
///
/// Exit codes: 0 all nodes answer; 1 some do not; 2 invalid input; 69 no node can be reached; 74
/// unknown: the node that was asked is not a member.
#[derive(clap::Args)]
#[command(after_long_help = FINDING)]
pub struct Args {
    #[command(flatten)]
    connect: Connect,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Args {
    pub fn run(self) -> Result<Verdict> {
        let cluster = block_on(async { Ok(self.connect.client().await?.cluster().await?) })?;
        if self.json {
            output::json(&cluster)?;
        } else {
            output::text(&table(&cluster))?;
        }
        let all_answer = cluster.nodes.iter().all(|node| node.health.is_some());
        Ok(output::verdict(
            cluster.reason.as_deref(),
            Verdict::of(all_answer),
        ))
    }
}

fn table(cluster: &Cluster) -> String {
    let mut page = format!(
        "{} nodes, epoch {}, algorithm {}; as {} sees it\n\n",
        cluster.nodes.len(),
        cluster.epoch,
        cluster.algorithm,
        cluster.node
    );
    let names = cluster.nodes.iter().map(|node| node.name.chars().count());
    let addresses = cluster.nodes.iter().map(|node| node.address.len());
    let name = names.max().unwrap_or(0).max(4);
    let address = addresses.max().unwrap_or(0).max(7);
    let _ = writeln!(
        page,
        "{:<name$}  {:<address$}  {:>7}  {:>7}  {:>7}  {:>5}  version",
        "node", "address", "locks", "holds", "waiters", "links"
    );
    for node in &cluster.nodes {
        let _ = write!(page, "{:<name$}  {:<address$}  ", node.name, node.address);
        let _ = match &node.health {
            None => writeln!(page, "{}", silence(cluster, node)),
            Some(health) => writeln!(
                page,
                "{:>7}  {:>7}  {:>7}  {:>5}  {}",
                health.locks, health.holds, health.waiters, health.links_up, health.version
            ),
        };
    }
    page
}

/// Why a node has no health. Only members are asked, and only members ask.
fn silence(cluster: &Cluster, node: &NodeInfo) -> String {
    match &node.problem {
        Some(problem) => format!("not a member ({problem})"),
        None if cluster.state == NodeState::Outside => "not known".to_owned(),
        None => "does not answer".to_owned(),
    }
}
