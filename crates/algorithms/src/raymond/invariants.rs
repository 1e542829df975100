//! What holds of all nodes together.

use super::Raymond;
use crate::{Message, NodeId, Snapshot};

/// Raymond 1989, §3.1 and §4.2: who goes from HOLDER to HOLDER comes to the privilege: to the node that has it,
/// or over the edge that it is crossing. Nothing is said while a node does not know its HOLDER
/// (before INITIALIZE came, in recovery), nor of what a crash has made of the others' pointers until
/// the recovery is over.
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
        // A way without end goes round, so it is longer than there are nodes.
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
