//! Which keepers' Raft requests a keeper answers.
//!
//! A keeper that this one does not know is answered: it may have been promoted, and may even lead,
//! while this one was away. A former keeper is not answered: with the vote of another keeper that
//! has forgotten its promises, it could lead a second cluster.

use tokio::sync::watch;

use super::rpc::Request;
use super::store::AppliedMembership;
use super::types::Metrics;
use soloist_api::NodeName;

/// What a keeper knows of the others and of itself.
#[derive(Clone, Debug)]
pub(super) struct Gate {
    pub(super) id: u64,
    pub(super) members: watch::Receiver<AppliedMembership>,
    pub(super) metrics: watch::Receiver<Metrics>,
}

impl Gate {
    /// Checks whether the keeper `from` may send requests to the keeper `to`. The error is the
    /// reason.
    pub(super) fn may_answer(&self, from: u64, to: u64) -> Result<(), String> {
        if to != self.id {
            let me = self.id;
            return Err(format!(
                "it looks for keeper {to:016x}, but this is keeper {me:016x}: a node that is \
                 promoted again is another keeper"
            ));
        }
        if self.is_former(from) {
            return Err(format!(
                "keeper {from:016x} was demoted; promote its node again to make it a new keeper"
            ));
        }
        Ok(())
    }

    pub(super) fn is_former(&self, id: u64) -> bool {
        self.members.borrow().former.contains(&id)
    }

    /// Checks whether this request of the keeper `from`, which runs on the node `name`, may be
    /// passed to Raft.
    pub(super) fn check(
        &self,
        from: u64,
        name: &NodeName,
        request: &Request,
    ) -> Result<(), String> {
        self.may_answer(from, self.id)?;
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
