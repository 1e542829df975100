//! Planted faults: each is the smallest change of one rule of the epochs, and proves that the
//! checks can fail.
//!
//! With the cargo feature `mutants`, a test plants one of them with a [`Tuning`](crate::Tuning).
//! The code of each rule checks whether its fault is planted. Without the feature, that check is
//! the constant `false`.

/// A fault that can be planted.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
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
    /// A grant that was made while the client had no connection is not repeated. This and the next
    /// six are faults of sessions.
    GrantUntold,
    /// A hold ends as soon as a message says that it will.
    EndWhenWritten,
    /// A client counts a promise from when it arrives.
    PromiseFromArrival,
    /// A request that is sent twice is done twice.
    RequestTwice,
    /// A session is resumed with any secret.
    AnySecret,
    /// A grant stays at the node that its client has left.
    GrantLeft,
    /// A draining node promises more time to a session than its holds have.
    DrainBeyondHolds,
}

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
}
