//! Invariants of the whole cluster.

use super::ChaudhuriKaraata;
use super::head::Token;
use crate::{NodeId, Snapshot};

/// Chaudhuri and Karaata 1998, section 2.1: at most one head has a token that is not red (I1), so
/// there are never a green and a yellow token (I2).
pub(super) fn one_privileged_plane(
    cluster: &dyn Snapshot<ChaudhuriKaraata>,
) -> Result<(), &'static str> {
    let (mut green, mut yellow) = (0, 0);
    for node in NodeId::all(cluster.len()) {
        match cluster.node(node).head.as_deref().map(|head| head.token) {
            Some(Token::Green) => green += 1,
            Some(Token::Yellow { .. }) => yellow += 1,
            Some(Token::Red { .. }) | None => {}
        }
    }
    match (green, yellow) {
        (0, 0) | (1, 0) | (0, 1) => Ok(()),
        (1.., 1..) => Err("I2: there are green and yellow tokens"),
        _ => Err("I1: two planes are privileged"),
    }
}
