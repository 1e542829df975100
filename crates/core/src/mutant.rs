//! Planted faults: each is the smallest change of one rule of the epochs, and proves that the checks can fail.
//!
//! With the cargo feature `mutants` a test plants one of them for the whole process; each rule asks at its place
//! whether its fault is planted. Without the feature the question is constant and false.

#[cfg(feature = "mutants")]
use std::sync::atomic::{AtomicUsize, Ordering};

/// A fault that can be planted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mutant {
    /// A member that has reported goes on in the epoch before.
    NoFreeze,
    /// Messages of every epoch are handled.
    AnyEpoch,
    /// A lease is granted before a majority has confirmed the leader.
    GrantUnconfirmed,
    /// A new leader acts at once on what it has not heard.
    NewLeaderDoesNotWait,
    /// A lock that was given back between report and installation is not passed on.
    ReleaseForgotten,
    /// A member counts its lease from the answer.
    LeaseFromAnswer,
    /// A member whose lease ran out does not look at the clock.
    LapseUnnoticed,
    /// Holds are not reported.
    HoldsNotReported,
    /// An epoch begins before all have reported.
    InstallTooEarly,
    /// Messages that come before their epoch are dropped.
    EarlyDropped,
    /// Fences do not rise with the epoch.
    FenceWithoutEpoch,
    /// Who is done without because others do not reach it is done without at once, not when its lease has run out.
    EvictAtOnce,
    /// An epoch begins for a node that was not probed.
    JoinUnprobed,
    /// Nodes that disturb the members may join again at once.
    NoBackOff,
    /// A request that is sent again shortens what its hold was promised. Of the locks, not of the epochs.
    PromiseShortened,
    /// A node that drains leaves while its clients still rely on what they were promised.
    LeaveWhilePromised,
    /// A node panics while somebody asks for a lock. Not a fault of a rule: it shows what becomes of a panic.
    PanicInCore,
    /// The keepers' leader panics when it hears something. The same.
    PanicInLeader,
    /// A lock is forgotten although not all that have to do with it have offered it, or messages are under way. This and the
    /// next ones are of the locks, too.
    ForgetUnbalanced,
    /// A lock that was held when the epoch began is forgotten before all have offered it.
    ForgetNotByAll,
    /// A node uses a lock again that it has offered, without a word to its home.
    OfferNotWithdrawn,
    /// A lock is forgotten with its fence.
    FenceForgotten,
    /// A report or an epoch counts as whole though its last piece is missing.
    PieceForgotten,
}

#[cfg(feature = "mutants")]
static PLANTED: AtomicUsize = AtomicUsize::new(0);

#[cfg(feature = "mutants")]
impl Mutant {
    /// All of those that are faults of the epochs.
    pub const ALL: [Mutant; 16] = [
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
    ];

    /// Plants this fault, in place of the one before, in the whole process; `None` takes it out.
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
    /// Never, without the feature `mutants`.
    pub const fn planted(self) -> bool {
        false
    }
}
