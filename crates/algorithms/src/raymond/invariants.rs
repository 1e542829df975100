//! Invariants of the whole cluster.

use super::Raymond;
use crate::{Message, NodeId, Snapshot};

/// Raymond 1989, §3.1 and §4.2: following HOLDER from any node leads to the privilege, that is to
/// the node that has it or over the edge that it is crossing. Not checked while any node does not
/// know its HOLDER (before INITIALIZE has arrived) or is in recovery, because other nodes' pointers
/// may be wrong from a crash until the recovery is over.
pub(super) fn holders_lead_to_the_privilege(
    cluster: &dyn Snapshot<Raymond>,
) -> Result<(), &'static str> {
    let nodes = || NodeId::all(cluster.len()).map(|node| cluster.node(node));
    if nodes().any(|node| node.holder.is_none() || node.recovery.is_some()) {
        return Ok(());
    }
    let mut crossing = None;
    cluster.for_each_envelope(&mut |from, to, message| {
        if message.is_token() {
            crossing = Some((from, to));
        }
    });
    for node in NodeId::all(cluster.len()) {
        let mut here = node;
        // A path that does not end is a cycle, so it is longer than the number of nodes.
        let arrives = (0..=cluster.len()).any(|_| {
            let next = cluster.node(here).holder.unwrap_or(here);
            let there = next == here || crossing == Some((here, next));
            here = next;
            there
        });
        if !arrives {
            return Err("the HOLDERs do not lead to the privilege");
        }
    }
    Ok(())
}
