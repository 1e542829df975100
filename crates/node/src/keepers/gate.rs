//! Which requests a keeper passes to Raft. Which keepers it answers at all is decided by
//! [`soloist_core::keepers::former`].

use tokio::sync::watch;

use super::rpc::Request;
use super::store::AppliedMembership;
use super::types::Metrics;
use soloist_api::NodeName;
use soloist_core::keepers::{NoAnswer, may_answer};

/// What a keeper knows of the others and of itself.
#[derive(Clone, Debug)]
pub(super) struct Gate {
    pub(super) id: u64,
    pub(super) members: watch::Receiver<AppliedMembership>,
    pub(super) metrics: watch::Receiver<Metrics>,
}

impl Gate {
    /// Checks whether the keeper `from` may send requests to the keeper `to`.
    pub(super) fn may_answer(&self, from: u64, to: u64) -> Result<(), NoAnswer> {
        may_answer(self.id, &self.members.borrow().former, from, to)
    }

    pub(super) fn is_former(&self, id: u64) -> bool {
        self.members.borrow().former.contains(id)
    }

    /// Checks whether this request of the keeper `from`, which runs on the node `name`, may be
    /// passed to Raft.
    pub(super) fn check(
        &self,
        from: u64,
        name: &NodeName,
        request: &Request,
    ) -> Result<(), String> {
        self.may_answer(from, self.id)
            .map_err(|reason| reason.to_string())?;
        self.check_name(from, name)?;
        let term = self.metrics.borrow().current_term;
        request.check(from, term)
    }

    /// Checks that a node speaks only for its own keeper, if it is known which one that is.
    fn check_name(&self, from: u64, name: &NodeName) -> Result<(), String> {
        let members = self.members.borrow();
        match members.membership.membership().get_node(&from) {
            Some(node) if node.name != *name => Err(format!(
                "it claims to be keeper {from:016x}, which runs on node {}",
                node.name
            )),
            _ => Ok(()),
        }
    }
}
