//! The variant `late-reply`: the next REQUEST of a node answers the requests that it deferred.

use super::LodhaKshemkalyani;
use crate::RequestId;
use crate::mutant::Mutant;

/// What a node keeps from its exit to its next request.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Late {
    /// The deferred requests, in the order of their arrival.
    pub(super) kept: Vec<RequestId>,
    /// Whether the node was told that it will not request again.
    pub(super) stops: bool,
}

impl LodhaKshemkalyani {
    /// FinCS 2: returns whether the deferred requests are kept. Otherwise they are answered now.
    pub(super) fn keeps_deferred(&mut self) -> bool {
        let Some(late) = &mut self.late else {
            return false;
        };
        let keeps = !std::mem::take(&mut late.stops);
        if !keeps {
            late.kept.clear();
        }
        keeps
    }

    /// InvMutEx: the kept requests count as concurrent with this node's new one. Their numbers were
    /// seen, so they precede it. Each of them answers it, as it answers them.
    pub(super) fn count_kept(&mut self) {
        let Some(late) = &mut self.late else { return };
        for request in late.kept.drain(..) {
            self.rv.insert(request.node);
            if !Mutant::LodhaKshemkalyaniKeptNotQueued.planted() {
                let place = self.lrq.partition_point(|queued| *queued < request);
                self.lrq.insert(place, request);
            }
        }
    }
}
