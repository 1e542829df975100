//! Former keepers, and which keepers' Raft requests a keeper answers.
//!
//! A keeper that this one does not know is answered: it may have been promoted, and may even lead,
//! while this one was away. A former keeper is not answered: with the vote of another keeper that
//! has forgotten its promises, it could lead a second cluster.

use std::sync::Arc;

/// Ids that the applied membership once had and no longer has.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FormerKeepers(Arc<Vec<u64>>);

impl FormerKeepers {
    /// The number of former keepers that are remembered.
    ///
    /// Each promotion adds one id, of up to ten bytes in a snapshot: 4096 of them take 40 KiB. An
    /// older id is treated like one that is not known yet. That is harmless. The log of such a
    /// keeper lacks the entry that demoted it and at least 4096 later changes, which a majority
    /// has. No voter that has them votes for it, and no voter forgets them: a node without a store
    /// does not vote. When its node reaches the leader, its store is still set aside, since the
    /// leader checks the current keepers.
    pub const MAX: usize = 4096;

    /// Called when a membership is applied. `before` are the ids of the one before, and `counts`
    /// returns whether an id is in the new one.
    pub fn change(&mut self, before: impl IntoIterator<Item = u64>, counts: impl Fn(u64) -> bool) {
        let gone: Vec<u64> = before.into_iter().filter(|id| !counts(*id)).collect();
        let is_back = |id: &u64| counts(*id);
        if gone.is_empty() && !self.0.iter().any(is_back) {
            return;
        }
        let former = Arc::make_mut(&mut self.0);
        former.retain(|id| !is_back(id));
        former.extend(gone);
        let forgotten = former.len().saturating_sub(Self::MAX);
        former.drain(..forgotten);
    }

    /// Returns whether this id is a former keeper's.
    pub fn contains(&self, id: u64) -> bool {
        self.0.contains(&id)
    }

    /// The ids, the oldest first.
    pub fn ids(&self) -> &[u64] {
        &self.0
    }
}

impl From<Vec<u64>> for FormerKeepers {
    fn from(ids: Vec<u64>) -> Self {
        FormerKeepers(Arc::new(ids))
    }
}

/// Why a node does not answer a keeper's Raft requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NoAnswer {
    /// The request is for another keeper.
    #[error(
        "it looks for keeper {wanted:016x}, but this is keeper {me:016x}: \
         a node that is promoted again is another keeper"
    )]
    OtherKeeper {
        /// The keeper of this node.
        me: u64,
        /// The keeper that the request is for.
        wanted: u64,
    },
    /// The request is from a former keeper.
    #[error("keeper {id:016x} was demoted; promote its node again to make it a new keeper")]
    Former {
        /// The former keeper.
        id: u64,
    },
}

/// Checks whether the keeper `me`, which knows these former keepers, answers Raft requests of the
/// keeper `from` to the keeper `to`.
pub fn may_answer(me: u64, former: &FormerKeepers, from: u64, to: u64) -> Result<(), NoAnswer> {
    if to != me {
        return Err(NoAnswer::OtherKeeper { me, wanted: to });
    }
    if former.contains(from) {
        return Err(NoAnswer::Former { id: from });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_former_keepers_are_forgotten() {
        let mut former = FormerKeepers::default();
        let promotions = FormerKeepers::MAX as u64 + 10;
        // Real ids are random, so their order must not matter. Here a later one is smaller.
        let id = |number: u64| u64::MAX - number;
        for number in 1..=promotions {
            former.change([id(number - 1)], |other| other == id(number));
        }
        assert_eq!(former.ids().len(), FormerKeepers::MAX);
        assert!(former.contains(id(promotions - 1)));
        assert!(!former.contains(id(promotions)), "it is a keeper");
        assert!(former.contains(id(10)));
        assert!(!former.contains(id(9)), "the oldest go first");
    }

    #[test]
    fn an_id_of_the_membership_is_not_former() {
        let mut former = FormerKeepers::default();
        former.change([1, 2], |id| id == 1);
        assert_eq!(former.ids(), [2]);
        former.change([1], |id| id == 2);
        assert_eq!(former.ids(), [1]);
    }

    #[test]
    fn only_requests_for_this_keeper_by_keepers_that_were_not_removed_are_answered() {
        let former = FormerKeepers::from(vec![3]);
        assert_eq!(may_answer(1, &former, 2, 1), Ok(()));
        let other = NoAnswer::OtherKeeper { me: 1, wanted: 4 };
        assert_eq!(may_answer(1, &former, 2, 4), Err(other));
        assert_eq!(
            may_answer(1, &former, 3, 1),
            Err(NoAnswer::Former { id: 3 })
        );
    }
}
