//! Random runs observed from outside: the order of entries, the cost of each request, and the
//! requests concurrent with it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use soloist_algorithms::lodha_kshemkalyani::{LodhaKshemkalyani, LodhaKshemkalyaniMessage};
use soloist_algorithms::shape::Complete;
use soloist_algorithms::{Channels, NodeId, RequestId, Shape, VariantSet};

use crate::chance::{Cluster, Step};

/// Observations of one run.
pub(super) struct Watched {
    pub(super) nodes: u32,
    /// Cost of each request.
    pub(super) costs: BTreeMap<RequestId, Cost>,
    /// Requests in the order in which their nodes entered.
    pub(super) entered: Vec<RequestId>,
    /// Whether no rule was violated and every request was served.
    pub(super) well: bool,
    /// (r, s) if s was in the LRQ of r's node while r was that node's request.
    pub(super) queued: BTreeSet<(RequestId, RequestId)>,
    /// (r, s) if s's node received the REQUEST of r after s was made.
    received_after: BTreeSet<(RequestId, RequestId)>,
}

/// Messages per request.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Cost {
    pub(super) requests: u32,
    pub(super) replies: u32,
    pub(super) flushes: u32,
}

impl Cost {
    pub(super) fn sum(self) -> u32 {
        self.requests + self.replies + self.flushes
    }
}

impl Watched {
    /// Many runs of two to nine nodes with four requests each.
    pub(super) fn runs(variants: VariantSet) -> Vec<Watched> {
        let run = |seed| Watched::run(2 + seed as usize % 8, variants, seed);
        (0..300).map(run).collect()
    }

    pub(super) fn run(nodes: usize, variants: VariantSet, seed: u64) -> Self {
        let shape = Arc::new(Complete::default_for(nodes));
        let mut cluster = Cluster::new(&shape, variants, Channels::Fifo, 4, seed);
        let mut watched = Watched {
            nodes: nodes as u32,
            costs: BTreeMap::new(),
            entered: Vec::new(),
            well: false,
            queued: BTreeSet::new(),
            received_after: BTreeSet::new(),
        };
        while let Some(step) = cluster.step() {
            match step {
                Ok(step) => watched.note(&cluster, &step),
                Err(_) => return watched,
            }
        }
        watched.well = cluster.all_served();
        watched
    }

    fn note(
        &mut self,
        cluster: &Cluster<LodhaKshemkalyani>,
        step: &Step<LodhaKshemkalyaniMessage>,
    ) {
        use LodhaKshemkalyaniMessage::{Flush, Reply, Request};
        let node = cluster.world.node(step.node);
        let own = node.my_request();
        match &step.arrived {
            Some((_, Request { request, .. })) => self.note_arrival(*request, step.node),
            Some((_, Reply { .. })) => self.costs.entry(own).or_default().replies += 1,
            Some((_, Flush { .. })) | None => {}
        }
        for message in &step.sent {
            match message {
                Request { .. } => self.costs.entry(own).or_default().requests += 1,
                Flush { .. } => self.costs.entry(own).or_default().flushes += 1,
                // Part of the cost of the request that it answers. It is counted on arrival.
                Reply { .. } => {}
            }
        }
        if step.entered {
            self.entered.push(own);
        }
        let others = node.lrq().iter().filter(|&&other| other != own);
        self.queued.extend(others.map(|&other| (own, other)));
    }

    fn note_arrival(&mut self, request: RequestId, at: NodeId) {
        let made = self.costs.keys().filter(|made| made.node == at);
        let pairs: Vec<_> = made.map(|&made| (request, made)).collect();
        self.received_after.extend(pairs);
    }

    /// Definition 1.
    pub(super) fn are_concurrent(&self, one: RequestId, other: RequestId) -> bool {
        let after = |r, s| self.received_after.contains(&(r, s));
        one != other && after(one, other) && after(other, one)
    }

    /// The requests concurrent with this one.
    pub(super) fn concurrent(&self, one: RequestId) -> impl Iterator<Item = RequestId> {
        let others = self.costs.keys().copied();
        others.filter(move |&other| self.are_concurrent(one, other))
    }

    /// Returns whether entries were in the order of the requests' identities, each of them unique.
    pub(super) fn in_order(&self) -> bool {
        self.entered.is_sorted_by(|one, other| one < other)
    }
}
