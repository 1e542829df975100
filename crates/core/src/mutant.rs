//! Planted faults: each is the smallest change of one rule of the epochs, the lock table or the
//! sessions, and proves that the checks can fail.
//!
//! With the cargo feature `mutants`, a test plants one of them with a [`Tuning`](crate::Tuning).
//! The code of each rule checks whether its fault is planted. Without the feature, that check is
//! the constant `false`.

soloist_algorithms::mutants! {
    "epochs" {
        NoFreeze: "a member that has reported continues in the epoch before",
        AnyEpoch: "messages of every epoch are handled",
        GrantUnconfirmed: "a lease is granted before a majority has confirmed the leader",
        NewLeaderDoesNotWait:
            "a new leader acts immediately, without waiting for leases that it does not know of",
        ReleaseForgotten:
            "a lock that was released between report and installation is not passed on",
        LeaseFromAnswer: "a member counts its lease from the answer",
        LapseUnnoticed: "a member does not notice that its lease has expired",
        HoldsNotReported: "holds are not reported",
        InstallTooEarly: "an epoch is installed before all members have reported",
        EarlyDropped: "messages that arrive before their epoch is installed are dropped",
        FenceWithoutEpoch: "fences do not rise with the epoch",
        EvictAtOnce:
            "an unreachable member is evicted immediately instead of when its lease expires",
        JoinUnprobed: "an epoch begins for a node that was not probed",
        NoBackOff: "nodes that disturb the members may rejoin immediately",
        LeaveWhilePromised:
            "a node that is draining leaves while its clients still rely on its promises",
        PieceForgotten:
            "a report or an epoch counts as complete although its last piece is missing",
        FirstIsBelieved: "if two members report the same lock, the first of them is believed",
        StuckUnnoticed:
            "a new leader does not notice that a member lacks an epoch that no leader knows",
    }
    "locks" {
        PromiseShortened: "a request that is sent again shortens the promise of its hold",
        ForgetUnbalanced:
            "a lock is forgotten while a node has not offered it, or messages are in flight",
        ForgetNotByAll:
            "a lock that was held when the epoch began is forgotten before all offer it",
        OfferNotWithdrawn:
            "a node uses a lock again that it has offered, without withdrawing the offer",
        FenceForgotten: "a lock is forgotten together with its fence",
    }
    "sessions" {
        GrantUntold: "a grant that was made while the client had no connection is not repeated",
        EndWhenWritten: "a hold ends as soon as a message says that it will",
        PromiseFromArrival: "a client counts a promise from when it arrives",
        RequestTwice: "a request that is sent twice is done twice",
        AnySecret: "a session is resumed with any secret",
        GrantLeft: "a grant stays at the node that its client has left",
        ReleaseLeft:
            "a release that was not acknowledged is not done on the node that its client has left",
        KeptHoldEnded: "a hold whose grant was read ends on the node that its client has left",
        LeftGrantUsed: "a client uses a grant that it reads after it has left the session",
        DrainBeyondHolds: "a draining node promises more time to a session than its holds have",
    }
}
