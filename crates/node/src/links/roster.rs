//! With whom this node has links now, and how that changes.

use std::collections::HashMap;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::accept::LinkHello;
use super::peer::PeerState;
use super::settings::{Limits, Peer};

/// A list of peers. It is never changed: another one takes its place.
#[derive(Default)]
pub(super) struct Roster {
    pub peers: Vec<Arc<PeerState>>,
    /// This node's own place, if it is in the list.
    pub me: Option<usize>,
    places: HashMap<String, usize>,
    ids: HashMap<u64, usize>,
}

impl Roster {
    /// The next list. Whoever is in both in the same life, while this node's own is the same, stays what it was.
    pub fn next(
        &self,
        incarnation: u64,
        peers: Vec<Peer>,
        me: &str,
        limits: &Limits,
        stop: &CancellationToken,
    ) -> Roster {
        let mut next = Roster::default();
        for (place, peer) in peers.into_iter().enumerate() {
            next.places.insert(peer.name.clone(), place);
            next.ids.insert(peer.id, place);
            if peer.name == me {
                next.me = Some(place);
            }
            let same = self.named(&peer.name);
            let state = match same {
                Some(same) if same.mine == incarnation && same.life == peer.incarnation => {
                    same.renew(peer);
                    Arc::clone(same)
                }
                _ => Arc::new(PeerState::new(peer, incarnation, limits, stop)),
            };
            next.peers.push(state);
        }
        next
    }

    pub fn named(&self, name: &str) -> Option<&Arc<PeerState>> {
        let &place = self.places.get(name)?;
        Some(&self.peers[place])
    }

    /// The place of the peer with this id, unless it is this node itself.
    pub fn place_of(&self, id: u64) -> Option<usize> {
        let place = self.ids.get(&id).copied();
        place.filter(|place| Some(*place) != self.me)
    }

    /// Those of this list that are not in that one.
    pub fn gone_from<'a>(&'a self, next: &'a Roster) -> impl Iterator<Item = &'a Arc<PeerState>> {
        let stays = |peer: &Arc<PeerState>| {
            let same = next.named(&peer.name);
            same.is_some_and(|same| Arc::ptr_eq(same, peer))
        };
        self.peers.iter().filter(move |peer| !stays(peer))
    }

    /// Who sent this Hello. It may be somebody of an earlier list or of the next one, or mean this node as it was or will
    /// be: members hear of changes at slightly different moments.
    pub fn admit(&self, hello: &LinkHello) -> Result<&Arc<PeerState>, String> {
        let (from, life) = (&hello.from, hello.incarnation);
        let peer = self.named(from.as_str());
        let peer = peer.ok_or_else(|| format!("node {from} is none of this node's peers now"))?;
        if peer.life.is_some_and(|known| known != life) {
            return Err(format!(
                "life {life} of node {from} is none of this node's peers now"
            ));
        }
        match hello.to_incarnation {
            Some(meant) if meant != peer.mine => Err(format!(
                "node {from} looks for life {meant} of this node, which is in life {}",
                peer.mine
            )),
            _ => Ok(peer),
        }
    }
}
