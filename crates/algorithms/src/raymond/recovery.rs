//! Recovery of a node that lost its state: Raymond 1989, §8.
//!
//! When every message that it sent before the crash has arrived (which the caller ensures), the
//! node sends RESTART to its neighbours and rebuilds HOLDER, ASKED and REQUEST_Q from their
//! ADVISEs. Until then it records incoming REQUEST and PRIVILEGE messages and its own request, but
//! does not act on them.
//!
//! **Channels**: fifo. If an ADVISE overtakes a PRIVILEGE, all neighbours point to this node, so it
//! concludes that it has the privilege, and there are two when the second one arrives. With the
//! variant `second-wait` the node stays in recovery after all ADVISEs have arrived, until the
//! caller reports that everything sent before them has arrived too. Recovery then works over
//! channels of any order.
//!
//! **What the paper leaves open**: a node that crashed in its critical section restarts with USING
//! set to false. Its hold is lost, and the caller must have stopped the work in the critical
//! section before it restarts the node. The rebuilt REQUEST_Q starts with the neighbours that had
//! sent a request before they advised. Their order is lost. It starts at a different neighbour for
//! each incarnation, so that the same one is not always last. Nodes that sent a request later
//! follow in order of arrival, this node itself among them. A request that arrived both as a
//! REQUEST and in an ADVISE is enqueued once (§8.6).
//!
//! **Counters** (§8.4). With the variant `counters` each node counts the PRIVILEGEs that it has
//! received from each neighbour. ADVISE carries the count, and the neighbours that had sent a
//! request are queued by ascending counts, equal ones in the order above. The paper does not say
//! where the node itself goes. Here it follows the neighbours that advised. Placed before them, as
//! with `greedy`, a node that crashes inside and requests again during recovery enters each time,
//! and its neighbours wait forever. The rotation alone does not prevent starvation either: with
//! some incarnations the same neighbour is first each time. The counters prevent it unless a
//! neighbour that counts crashes, since its counters start at 0 again.
//!
//! **Extent** (§8.8): any set of nodes in which no two are neighbours. A node that does not know
//! HOLDER itself answers `Unknown`. The node that asked then stays in recovery until it learns from
//! another neighbour where the privilege is, and passes that on with INITIALIZE. So a node that
//! crashes before INITIALIZE has reached it recovers too. If neighbours are down together, the
//! cluster may end up without a privilege, but not with two (searched for N up to 3).

use std::sync::Arc;

use super::{COUNTERS, GREEDY, Raymond, RaymondMessage, Relation, Rules};
use crate::mutant::Mutant;
use crate::shape::Tree;
use crate::{Algorithm, Config, NodeId, Outbox};

/// What a recovering node has learned.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Recovery {
    pub(super) incarnation: u64,
    /// Each neighbour's answer, in the order of the tree's list of neighbours: its relation to this
    /// node, and the number of PRIVILEGEs that it has received from it (0 without counters).
    advice: Box<[Option<(Relation, u64)>]>,
    /// Number of neighbours that have not answered.
    pub(super) missing: usize,
    /// The neighbour whose HOLDER is not this node, and whether this node has sent it a request
    /// (§8.2, §8.3).
    dissent: Option<(NodeId, bool)>,
    /// Whether everything sent before the ADVISEs has arrived too.
    settled: bool,
}

impl Recovery {
    pub(super) fn new(incarnation: u64, neighbours: usize) -> Self {
        Recovery {
            incarnation,
            advice: vec![None; neighbours].into(),
            missing: neighbours,
            dissent: None,
            settled: false,
        }
    }
}

/// The counters of a new node, with the variant `counters`.
pub(super) fn new_counters(config: &Config<Tree>) -> Option<Box<[u64]>> {
    let neighbours = || config.place.shape.neighbours(config.place.me).len();
    let counts = config.variants.has(COUNTERS);
    counts.then(|| vec![0; neighbours()].into())
}

impl Raymond {
    /// Raymond 1989, §8: after the delay, sends RESTART to each neighbour.
    pub(super) fn restart(&mut self, out: &mut Outbox<RaymondMessage>) {
        let Some(recovery) = &self.recovery else {
            return;
        };
        for &neighbour in self.place.shape.neighbours(self.place.me) {
            out.send(neighbour, RaymondMessage::Restart(recovery.incarnation));
        }
        self.finish_if_known(out);
    }

    /// The incarnation as which this node recovers, if it does.
    pub fn incarnation(&self) -> Option<u64> {
        self.recovery.as_ref().map(|recovery| recovery.incarnation)
    }

    /// Raymond 1989, §8.1: this node's relation to a neighbour.
    pub(super) fn relation_to(&self, neighbour: NodeId) -> Relation {
        match self.holder {
            _ if self.recovery.is_some() => Relation::Unknown,
            None => Relation::Unknown,
            Some(holder) if holder == neighbour => {
                match self.asked && !Mutant::RaymondAdviseNotAsked.planted() {
                    false => Relation::Holder,
                    true => Relation::HolderAsked,
                }
            }
            Some(_) => match self.request_q.contains(&neighbour)
                && !Mutant::RaymondAdviseNotQueued.planted()
            {
                true => Relation::Queued,
                false => Relation::NotQueued,
            },
        }
    }

    pub(super) fn check_advise(
        &self,
        from: NodeId,
        incarnation: u64,
        relation: Relation,
    ) -> Result<(), &'static str> {
        let Some(recovery) = self.recovery_of(incarnation) else {
            return Ok(());
        };
        let place = self.place.shape.position(self.place.me, from);
        if place.is_none_or(|place| recovery.advice[place].is_some()) {
            return Err("it advised before");
        }
        let dissents = matches!(relation, Relation::Queued | Relation::NotQueued);
        match recovery.dissent {
            // Raymond 1989, §8.2: at most one neighbour can dissent.
            Some((other, _)) if dissents && other != from => {
                Err("the privilege is on another neighbour's side")
            }
            _ => Ok(()),
        }
    }

    pub(super) fn on_advise(
        &mut self,
        from: NodeId,
        incarnation: u64,
        (relation, count): (Relation, u64),
        out: &mut Outbox<RaymondMessage>,
    ) {
        // Raymond 1989, §8.7: an answer to an earlier recovery is outdated.
        if self.recovery_of(incarnation).is_none() {
            return;
        }
        let place = self.place.shape.position(self.place.me, from);
        let (Some(recovery), Some(place)) = (&mut self.recovery, place) else {
            return;
        };
        recovery.advice[place] = Some((relation, count));
        recovery.missing -= 1;
        // The printed (3) and (4) are interchanged: see the errata.
        let by_the_letter = Rules::of(self.variants).interchanged;
        match relation {
            Relation::Queued => recovery.dissent = Some((from, !by_the_letter)),
            Relation::NotQueued => recovery.dissent = Some((from, by_the_letter)),
            Relation::Holder | Relation::HolderAsked | Relation::Unknown => {}
        }
        self.finish_if_known(out);
    }

    pub(super) fn on_initialize_in_recovery(
        &mut self,
        from: NodeId,
        out: &mut Outbox<RaymondMessage>,
    ) {
        if let Some(recovery) = &mut self.recovery {
            recovery.dissent.get_or_insert((from, false));
            self.finish_if_known(out);
        }
    }

    pub(super) fn on_settled(&mut self, out: &mut Outbox<RaymondMessage>) {
        if let Some(recovery) = &mut self.recovery {
            // Has no meaning before the last ADVISE.
            recovery.settled = recovery.missing == 0;
            self.finish_if_known(out);
        }
    }

    /// The recovery in progress, if it belongs to this incarnation.
    fn recovery_of(&self, incarnation: u64) -> Option<&Recovery> {
        let recovery = self.recovery.as_deref()?;
        let is_current = recovery.incarnation == incarnation;
        (is_current || Mutant::RaymondAdviseOutdated.planted()).then_some(recovery)
    }

    /// Ends the recovery if HOLDER can be determined.
    fn finish_if_known(&mut self, out: &mut Outbox<RaymondMessage>) {
        let Some(recovery) = self.recovery.as_deref() else {
            return;
        };
        let second_wait = Rules::of(self.variants).second_wait;
        let waits_twice = second_wait && !Mutant::RaymondSecondWaitSkipped.planted();
        if recovery.missing > 0 || waits_twice && !recovery.settled {
            return;
        }
        let me = self.place.me;
        let unknown = |advice: &Option<(Relation, u64)>| {
            advice.is_some_and(|(relation, _)| relation == Relation::Unknown)
        };
        let (holder, asked) = match recovery.dissent {
            // Raymond 1989, §8.6: having the privilege is proof enough; contradictory advice is
            // outdated.
            _ if self.has_token() => (me, false),
            // Raymond 1989, §8.2 and §8.3.
            Some(dissent) => dissent,
            None if recovery.advice.iter().any(unknown) => return,
            None => (me, false),
        };
        self.holder = Some(holder);
        self.asked = asked;
        if let Some(recovery) = self.recovery.take() {
            self.rebuild_queue(&recovery);
            let neighbours = self.place.shape.neighbours(me).iter();
            for (&neighbour, advice) in neighbours.zip(&recovery.advice) {
                if unknown(advice) && neighbour != holder {
                    out.send(neighbour, RaymondMessage::Initialize);
                }
            }
        }
        // Raymond 1989, §8: from here on the node participates again.
        self.assign_and_ask(out);
    }

    /// Raymond 1989, §8.4: first the neighbours that advised that they have asked, then those that
    /// asked in the meantime.
    fn rebuild_queue(&mut self, recovery: &Recovery) {
        let me = self.place.me;
        let shape = Arc::clone(&self.place.shape);
        let neighbours = shape.neighbours(me);
        let arrived = std::mem::take(&mut self.request_q);
        let mut queued = vec![false; neighbours.len()];

        let places = neighbours.len();
        let first = recovery.incarnation.checked_rem(places as u64).unwrap_or(0) as usize;
        let asked = |place: usize| match recovery.advice[place] {
            Some((Relation::HolderAsked, count)) => Some((count, place)),
            _ => None,
        };
        let mut advised: Vec<_> = (first..places).chain(0..first).filter_map(asked).collect();
        if !Mutant::RaymondCountersIgnored.planted() {
            // Stable: equal counts keep the order. Without counters all are 0.
            advised.sort_by_key(|&(count, _)| count);
        }
        for (_, place) in advised {
            self.request_q.push_back(neighbours[place]);
            queued[place] = true;
        }
        for asker in arrived {
            let Some(place) = shape.position(me, asker) else {
                match self.variants.has(GREEDY) {
                    true => self.request_q.push_front(me),
                    false => self.request_q.push_back(me),
                }
                continue;
            };
            // Raymond 1989, §8.6: duplicates are removed when recovery ends.
            let twice = std::mem::replace(&mut queued[place], true);
            let duplicates =
                Rules::of(self.variants).duplicates || Mutant::RaymondDuplicates.planted();
            if !twice || duplicates {
                self.request_q.push_back(asker);
            }
        }
    }
}
