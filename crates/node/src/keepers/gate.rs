//! Whose Raft requests a keeper answers.
//!
//! A keeper that this one does not know is answered: it may have been promoted, and even lead, while
//! this one was away. A keeper that is none any more is not: with a vote of another one that forgot
//! its promises, it could lead a second cluster.

use tokio::sync::watch;

use super::rpc::Request;
use super::store::AppliedMembership;
use super::types::Metrics;
use soloist_api::NodeName;

/// What a keeper knows of others and of itself.
#[derive(Clone, Debug)]
pub(super) struct Gate {
    pub(super) id: u64,
    pub(super) members: watch::Receiver<AppliedMembership>,
    pub(super) metrics: watch::Receiver<Metrics>,
}

impl Gate {
    /// Whether the keeper `from` may ask the keeper `to`; else why not.
    pub(super) fn may_answer(&self, from: u64, to: u64) -> Result<(), String> {
        if to != self.id {
            let me = self.id;
            return Err(format!(
                "it looks for keeper {to:016x}, and this is keeper {me:016x}: \
                 a node that is promoted again is another keeper"
            ));
        }
        if self.is_former(from) {
            return Err(format!(
                "keeper {from:016x} was demoted and is no keeper any more; \
                 promote its node again to make it a new one"
            ));
        }
        Ok(())
    }

    pub(super) fn is_former(&self, id: u64) -> bool {
        self.members.borrow().former.contains(&id)
    }

    /// Whether Raft may be asked this by the keeper `from`, which runs on the node `name`.
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

    /// A node speaks for its own keeper only, as far as it is known which one that is.
    fn check_name(&self, from: u64, name: &NodeName) -> Result<(), String> {
        let members = self.members.borrow();
        match members.membership.membership().get_node(&from) {
            Some(node) if node.name != *name => Err(format!(
                "it says that it is keeper {from:016x}, which runs on node {}",
                node.name
            )),
            _ => Ok(()),
        }
    }
}
