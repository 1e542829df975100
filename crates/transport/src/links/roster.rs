//! The peers that this node currently has links with, and how the list changes.

use std::collections::HashMap;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::accept::LinkHello;
use super::peer::PeerState;
use super::settings::{Limits, Peer};
use soloist_core::Incarnation;

/// An immutable list of peers. A change replaces it as a whole.
#[derive(Default)]
pub(super) struct Roster {
    pub peers: Vec<Arc<PeerState>>,
    /// Index of this node, if it is in the list.
    pub me: Option<usize>,
    places: HashMap<String, usize>,
    /// Indexes of all peers, sorted by incarnation. Each frame that is sent is looked up here.
    by_incarnation: Vec<(Incarnation, usize)>,
}

impl Roster {
    /// Returns the next list. A peer keeps its state if its incarnation and this node's are the
    /// same in both lists.
    pub(super) fn next(
        &self,
        incarnation: Incarnation,
        peers: Vec<Peer>,
        me: &str,
        limits: &Limits,
        stop: &CancellationToken,
    ) -> Roster {
        let mut next = Roster::default();
        for (place, peer) in peers.into_iter().enumerate() {
            next.places.insert(peer.name.clone(), place);
            next.by_incarnation.push((peer.incarnation, place));
            if peer.name == me {
                next.me = Some(place);
            }
            let same = self.named(&peer.name);
            let state = match same {
                Some(same) if same.mine == incarnation && same.incarnation == peer.incarnation => {
                    same.set_address(peer.address);
                    Arc::clone(same)
                }
                _ => Arc::new(PeerState::new(peer, incarnation, limits, stop)),
            };
            next.peers.push(state);
        }
        next.by_incarnation.sort_unstable();
        next
    }

    pub(super) fn named(&self, name: &str) -> Option<&Arc<PeerState>> {
        let &place = self.places.get(name)?;
        Some(&self.peers[place])
    }

    /// Returns the peer with this incarnation, unless it is this node itself.
    pub(super) fn peer(&self, incarnation: Incarnation) -> Option<&Arc<PeerState>> {
        let sorted = &self.by_incarnation;
        let found = sorted.binary_search_by_key(&incarnation, |&(incarnation, _)| incarnation);
        let (_, place) = sorted[found.ok()?];
        (Some(place) != self.me).then(|| &self.peers[place])
    }

    /// Returns the peers of this list that are not in `next`.
    pub(super) fn gone_from<'a>(
        &'a self,
        next: &'a Roster,
    ) -> impl Iterator<Item = &'a Arc<PeerState>> {
        let stays = |peer: &Arc<PeerState>| {
            let same = next.named(&peer.name);
            same.is_some_and(|same| Arc::ptr_eq(same, peer))
        };
        self.peers.iter().filter(move |peer| !stays(peer))
    }

    /// Returns the peer that sent this hello, or why it is not accepted now. The sender, or the
    /// incarnation of this node that it asks for, may belong to an earlier list or to the next one:
    /// members learn of changes at slightly different moments.
    pub(super) fn admit(&self, hello: &LinkHello) -> Result<&Arc<PeerState>, String> {
        let (from, incarnation) = (&hello.from, hello.incarnation);
        let peer = self.named(from.as_str());
        let peer = peer.ok_or_else(|| format!("node {from} is not a peer now"))?;
        if peer.incarnation != incarnation {
            return Err(format!(
                "incarnation {incarnation} of node {from} is not a peer now"
            ));
        }
        match hello.to_incarnation {
            Some(meant) if meant != peer.mine => Err(format!(
                "node {from} asked for incarnation {meant} of this node, which is incarnation {}",
                peer.mine
            )),
            _ => Ok(peer),
        }
    }
}
