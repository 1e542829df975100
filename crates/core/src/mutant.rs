//! Planted faults: each is the smallest change of one rule of the epochs, and proves that the
//! checks can fail.
//!
//! With the cargo feature `mutants`, a test plants one of them for the whole process. The code of
//! each rule checks whether its fault is planted. Without the feature, that check is the constant
//! `false`.

#[cfg(feature = "mutants")]
use std::sync::atomic::{AtomicUsize, Ordering};

/// A fault that can be planted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mutant {
    /// A member that has reported continues in the epoch before.
    NoFreeze,
    /// Messages of every epoch are handled.
    AnyEpoch,
    /// A lease is granted before a majority has confirmed the leader.
    GrantUnconfirmed,
    /// A new leader acts immediately, without waiting for leases that it does not know of.
    NewLeaderDoesNotWait,
    /// A lock that was released between report and installation is not passed on.
    ReleaseForgotten,
    /// A member counts its lease from the answer.
    LeaseFromAnswer,
    /// A member does not notice that its lease has expired.
    LapseUnnoticed,
    /// Holds are not reported.
    HoldsNotReported,
    /// An epoch is installed before all members have reported.
    InstallTooEarly,
    /// Messages that arrive before their epoch is installed are dropped.
    EarlyDropped,
    /// Fences do not rise with the epoch.
    FenceWithoutEpoch,
    /// An unreachable member is evicted immediately instead of when its lease expires.
    EvictAtOnce,
    /// An epoch begins for a node that was not probed.
    JoinUnprobed,
    /// Nodes that disturb the members may rejoin immediately.
    NoBackOff,
    /// A request that is sent again shortens the promise of its hold. A fault of the locks, not of
    /// the epochs.
    PromiseShortened,
    /// A node that is draining leaves while its clients still rely on its promises.
    LeaveWhilePromised,
    /// A lock is forgotten although not all nodes with a machine for it have offered it, or
    /// messages are in flight. This and the next three are faults of the locks, too.
    ForgetUnbalanced,
    /// A lock that was held when the epoch began is forgotten before all nodes have offered it.
    ForgetNotByAll,
    /// A node uses a lock again that it has offered, without withdrawing the offer.
    OfferNotWithdrawn,
    /// A lock is forgotten together with its fence.
    FenceForgotten,
    /// A report or an epoch counts as complete although its last piece is missing.
    PieceForgotten,
    /// If two members report the same lock, the first of them is believed.
    FirstIsBelieved,
    /// A new leader does not notice that a member has not installed the epoch, and that no leader
    /// knows what it starts with.
    StuckUnnoticed,
}

#[cfg(feature = "mutants")]
static PLANTED: AtomicUsize = AtomicUsize::new(0);

#[cfg(feature = "mutants")]
impl Mutant {
    /// All faults of the epochs.
    pub const ALL: [Mutant; 18] = [
        Mutant::NoFreeze,
        Mutant::AnyEpoch,
        Mutant::GrantUnconfirmed,
        Mutant::NewLeaderDoesNotWait,
        Mutant::ReleaseForgotten,
        Mutant::LeaseFromAnswer,
        Mutant::LapseUnnoticed,
        Mutant::HoldsNotReported,
        Mutant::InstallTooEarly,
        Mutant::EarlyDropped,
        Mutant::FenceWithoutEpoch,
        Mutant::EvictAtOnce,
        Mutant::JoinUnprobed,
        Mutant::NoBackOff,
        Mutant::LeaveWhilePromised,
        Mutant::PieceForgotten,
        Mutant::FirstIsBelieved,
        Mutant::StuckUnnoticed,
    ];

    /// Plants this fault for the whole process, replacing the one before. `None` removes it.
    pub fn plant(mutant: Option<Mutant>) {
        let number = mutant.map_or(0, |mutant| mutant as usize + 1);
        PLANTED.store(number, Ordering::SeqCst);
    }

    /// Whether this fault is planted.
    pub fn planted(self) -> bool {
        PLANTED.load(Ordering::Relaxed) == self as usize + 1
    }
}

#[cfg(not(feature = "mutants"))]
impl Mutant {
    /// Always false without the feature `mutants`.
    pub const fn planted(self) -> bool {
        false
    }
}
