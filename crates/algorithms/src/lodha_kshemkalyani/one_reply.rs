//! The variant `one-reply`: a node that leaves answers one request, and others carry the remaining
//! answers on.

use super::{Errand, LodhaKshemkalyani, LodhaKshemkalyaniMessage};
use crate::mutant::Mutant;
use crate::{Outbox, RequestId};

impl LodhaKshemkalyani {
    /// Counts the answers for this node and keeps the others to carry on.
    pub(super) fn take_errands(&mut self, errands: Vec<Errand>) {
        for errand in errands {
            if errand.request == self.my_request() {
                self.rv.insert(errand.answers);
            } else {
                self.errands.push(errand);
            }
        }
        self.errands.sort_unstable();
    }

    /// FinCS with only one answer: to the first of all requests that this node has an answer for.
    pub(super) fn hand_on(
        &mut self,
        next: Option<RequestId>,
        out: &mut Outbox<LodhaKshemkalyaniMessage>,
    ) {
        let me = self.place.me;
        let mut errands = std::mem::take(&mut self.errands);
        if Mutant::LodhaKshemkalyaniErrandLost.planted() {
            errands.pop();
        }
        let first = errands.first().map(|errand| errand.request);
        if let Some(next) = next.filter(|next| Some(*next) != first) {
            out.send(next.node, self.flush(Vec::new()));
        }
        let Some(first) = first else { return };
        let later = errands
            .iter()
            .filter(|e| e.answers == me && e.request != first);
        self.entrusted.extend(later.map(|errand| errand.request));
        self.entrusted.sort_unstable_by_key(|request| request.node);
        if self.deferred.contains(first.node) {
            // The REPLY itself is this node's answer.
            errands.retain(|e| e.answers != me || e.request != first);
            out.send(first.node, self.reply(errands));
        } else {
            out.send(first.node, self.flush(errands));
        }
    }
}
