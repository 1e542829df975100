//! Asks nodes whether their cluster is alive, before `soloist cluster recover` gives up its
//! keepers.

use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::timeout;

use super::wire::{FromKeeper, read};
use crate::config::Config;
use crate::keepers::KeeperNode;
use soloist_api::compiled_here;
use soloist_core::cluster_identity::ClusterIdentity;
use soloist_transport::identity::IdentityError;
use soloist_transport::{ConnectionError, Endpoint, Purpose, Security};

/// How long a node may take to answer.
const TIMEOUT: Duration = Duration::from_secs(2);

/// What a node showed when it was asked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Shown {
    /// It leads, or follows this leader: the keepers have a majority, or had one a moment ago.
    Leader(KeeperNode),
    /// It runs, and knows of no leader.
    NoLeader,
    /// It belongs to a later generation, or to a different one with the same number: the cluster
    /// was recovered already.
    Newer(ClusterIdentity),
    /// It runs, but refused to answer, for this reason.
    Refused(String),
    /// It cannot be reached, for this reason.
    Silent(String),
}

/// Asks all of these nodes at once, on behalf of the node of this configuration, which belongs to
/// the cluster `mine`. Skips the node itself.
pub fn probe(
    config: &Config,
    mine: Option<ClusterIdentity>,
    nodes: Vec<KeeperNode>,
) -> impl Future<Output = Result<Vec<(KeeperNode, Shown)>, IdentityError>> + Send {
    compiled_here(ask_all(config, mine, nodes))
}

async fn ask_all(
    config: &Config,
    mine: Option<ClusterIdentity>,
    nodes: Vec<KeeperNode>,
) -> Result<Vec<(KeeperNode, Shown)>, IdentityError> {
    let security = match &config.identity()? {
        Some(identity) => Security::tls(identity),
        None => Security::Plain,
    };
    // The hello names no cluster, so a node of any generation answers.
    let endpoint = Endpoint::new(config.name.clone(), security);
    let mut asking = JoinSet::new();
    for node in nodes {
        if node.name == config.name {
            continue;
        }
        let (endpoint, fingerprint) = (endpoint.clone(), config.fingerprint());
        asking.spawn(async move {
            let purpose = Purpose::Member { fingerprint };
            let asking = shown_by(&endpoint, purpose, &node, mine);
            let shown = timeout(TIMEOUT, asking).await;
            let late = |_| Shown::Silent(format!("no answer within {TIMEOUT:?}"));
            (node, shown.unwrap_or_else(late))
        });
    }
    let mut shown = asking.join_all().await;
    shown.sort_by(|(one, _), (other, _)| one.name.cmp(&other.name));
    Ok(shown)
}

/// Asks one node.
async fn shown_by(
    endpoint: &Endpoint,
    purpose: Purpose,
    node: &KeeperNode,
    mine: Option<ClusterIdentity>,
) -> Shown {
    let address = node.address.to_string();
    let dialling = endpoint.dial(&node.name, &address, purpose, TIMEOUT);
    let (theirs, refused) = match dialling.await {
        Ok(mut dialled) => match read(&mut dialled.stream).await {
            Ok(Some(FromKeeper::Welcome { .. })) => return Shown::Leader(node.clone()),
            Ok(Some(FromKeeper::Elsewhere { leader, .. })) => match leader {
                Some(leader) => return Shown::Leader(leader),
                None => (dialled.cluster, None),
            },
            Ok(Some(FromKeeper::Refused(reason))) => (dialled.cluster, Some(reason)),
            Ok(_) => (dialled.cluster, Some("unexpected answer".to_owned())),
            Err(error) => return Shown::Silent(error.to_string()),
        },
        Err(ConnectionError::Refused(refusal)) => (refusal.cluster, Some(refusal.reason)),
        Err(error) => return Shown::Silent(error.to_string()),
    };
    match (mine, theirs, refused) {
        (Some(mine), Some(theirs), _) if is_newer(&theirs, &mine) => Shown::Newer(theirs),
        (.., Some(reason)) => Shown::Refused(reason),
        (.., None) => Shown::NoLeader,
    }
}

fn is_newer(theirs: &ClusterIdentity, mine: &ClusterIdentity) -> bool {
    let (theirs_now, mine_now) = (theirs.generation, mine.generation);
    theirs.id == mine.id && theirs_now != mine_now && theirs_now.number >= mine_now.number
}
