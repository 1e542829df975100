//! Mutants: planted faults that prove that the checks can fail. Each is the smallest change to one
//! rule.
//!
//! With the cargo feature `mutants`, a test plants one of them for the whole process with
//! `Mutant::plant`. Each rule checks whether its mutant is planted. Without the feature that check
//! is the constant `false`, so the faults are not compiled in, and this enum is private. A test
//! that plants one must be the only test of its binary, because `cargo test` runs the tests of a
//! binary in one process.
//!
//! To add a mutant: add a line to the list below, and break the rule where it is implemented. The
//! lab's test `mutants` does not compile until it states which check catches the mutant.

#[cfg(feature = "mutants")]
use std::sync::atomic::{AtomicUsize, Ordering};

/// Generates a crate's enum `Mutant` and its descriptions from one line per mutant. The crate has a
/// cargo feature `mutants`.
#[doc(hidden)]
#[macro_export]
macro_rules! mutants {
    ($($part:literal { $($Name:ident: $about:literal,)* })*) => {
        /// A fault that can be planted.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[allow(unreachable_pub, reason = "some crates export it only with the feature `mutants`")]
        pub enum Mutant {
            $($(#[doc = $about] $Name,)*)*
        }

        #[cfg(feature = "mutants")]
        impl Mutant {
            /// All mutants, grouped by the part of the code that contains them.
            pub const ALL: &'static [Mutant] = &[$($(Mutant::$Name,)*)*];

            /// The part of the code that contains the fault, such as the name of an algorithm.
            pub fn part(self) -> &'static str {
                match self { $($(Mutant::$Name)|* => $part,)* }
            }

            /// One-line description of the fault.
            pub fn about(self) -> &'static str {
                match self { $($(Mutant::$Name => $about,)*)* }
            }

            /// The name in kebab case: `RaymondLifo` is `raymond-lifo`.
            pub fn name(self) -> String {
                let mut name = String::new();
                for letter in format!("{self:?}").chars() {
                    if letter.is_uppercase() && !name.is_empty() {
                        name.push('-');
                    }
                    name.push(letter.to_ascii_lowercase());
                }
                name
            }
        }
    };
}

mutants! {
    "chaudhuri-karaata" {
        ChaudhuriKaraataLifo: "a head grants the latest request first",
        ChaudhuriKaraataAsksEachTime: "a red head requests the token again for each request",
        ChaudhuriKaraataDoesNotAskBack: "a head that gives the token away does not request it back for those still queued",
        ChaudhuriKaraataTokenKept: "a head that gives the token to another plane stays green",
        ChaudhuriKaraataGrantsWhileYellow: "a head grants although a node of its plane is inside",
        ChaudhuriKaraataReleaseStops: "RELEASE ends at the first node on its way to the head",
    }
    "maekawa" {
        MaekawaLifo: "a member keeps the latest request first, not the most preceding one",
        MaekawaDisplacedNotFailed: "a request that is displaced from the first place gets no FAILED (repair R1)",
        MaekawaLaterNotFailed: "a request later than the locking one gets no FAILED",
        MaekawaInquireWithoutLock: "an INQUIRE is answered although the lock is not held (repair R2)",
        MaekawaStaleInquire: "an INQUIRE about an earlier request is answered for the present one (repair R2)",
        MaekawaReleaseNotToOne: "the last member of the set is sent no RELEASE",
        MaekawaFailedForgotten: "a node that relinquishes a member forgets that it received FAILED",
        MaekawaLockNotMoved: "a member that gets RELINQUISH stays locked for the old request",
        MaekawaFailedTwice: "a request that has to wait gets FAILED twice, which costs only messages",
        MaekawaClockForgotten: "a node that is forgotten starts again with the number 1",
    }
    "raymond" {
        RaymondLifo: "the privilege goes to the latest requester",
        RaymondAskedNotReset: "ASKED stays true when the privilege comes and goes",
        RaymondTokenKept: "HOLDER stays self when the privilege is passed on",
        RaymondTokenTwice: "the privilege is sent twice",
        RaymondDoesNotAskBack: "a node that passes the privilege on does not request it back for those still queued",
        RaymondInitializeStops: "INITIALIZE is not passed on",
        RaymondPiggybackAsksTwice: "a REQUEST that travelled with the privilege is sent once more",
        RaymondAdviseNotQueued: "ADVISE contains NotQueued instead of Queued",
        RaymondAdviseNotAsked: "ADVISE contains ASKED=false instead of true",
        RaymondAdviseOutdated: "an ADVISE for an earlier incarnation counts",
        RaymondSecondWaitSkipped: "recovery ends with the last ADVISE, without the second wait",
        RaymondDuplicates: "a request learned of twice in recovery is queued twice",
        RaymondCountersIgnored: "counters: a rebuilt queue does not follow the counters",
    }
    "neamatollahi" {
        NeamatollahiRowRoundShort: "a round of a row ends one node too early, and the token goes down there (lines 11 and 50)",
        NeamatollahiColumnRoundShort: "a round of the column ends one row too early (line 28)",
        NeamatollahiRequestStops: "a Request is stored but not forwarded",
        NeamatollahiBlockedNotNoted: "resting: a node that stops an alert does not note it",
        NeamatollahiCallLost: "resting: a CALL while the token is away from home is forgotten",
    }
    "lodha-kshemkalyani" {
        LodhaKshemkalyaniNoTieBreak: "of two requests with one number, the one that arrives later goes later",
        LodhaKshemkalyaniHighestNotSeen: "the number of a REQUEST received does not count as seen",
        LodhaKshemkalyaniOwnNotSeen: "own numbers do not count as seen (repair 4)",
        LodhaKshemkalyaniFlushToLast: "FLUSH goes to the last concurrent request, not to the next",
        LodhaKshemkalyaniFlushAnswers: "a FLUSH counts as an answer (repair 1)",
        LodhaKshemkalyaniDoneForgotten: "satisfied requests are not remembered (repair 2)",
        LodhaKshemkalyaniSatisfiedNotTold: "REQUEST does not name the satisfied requests (repair 3)",
        LodhaKshemkalyaniReplyForgotten: "the first of the deferred requests is never answered",
        LodhaKshemkalyaniKeptNotQueued: "late-reply: a request that was kept does not go before the next own one",
        LodhaKshemkalyaniErrandLost: "one-reply: of the errands to carry on, the last is lost",
    }
    "central" {
        CentralLifo: "the coordinator grants the latest request first",
        CentralGrantsTwice: "the coordinator grants although a node is inside",
        CentralForgetsQueue: "a RELEASE makes the coordinator grant nothing",
        CentralAsksTwice: "a REQUEST is sent twice and the second ignored, which costs only messages",
    }
    "ricart-agrawala" {
        RicartAgrawalaNoTieBreak: "two requests have one number: each node replies to the other",
        RicartAgrawalaTieBothWait: "two requests have one number: each node defers its reply to the other",
        RicartAgrawalaHighestNotSeen: "the number of a REQUEST received does not count as seen",
        RicartAgrawalaReplyForgotten: "the first of the deferred replies is never sent",
        RicartAgrawalaRepliesInside: "a node that is inside replies as if it were idle",
        RicartAgrawalaClockForgotten: "a node that is forgotten starts again with the number 1",
    }
    "suzuki-kasami" {
        SuzukiKasamiLifo: "the token goes to the last in its queue",
        SuzukiKasamiLnNotUpdated: "a node that leaves does not record its request in LN",
        SuzukiKasamiOldRequestCounts: "an old REQUEST sets RN back",
        SuzukiKasamiTokenKept: "a node that sends the token on request keeps it too",
        SuzukiKasamiQueuedTwice: "a node in the token's queue is enqueued again",
    }
    "naimi-trehel" {
        NaimiTrehelNextNotCleared: "next stays set when the token has gone there",
        NaimiTrehelTokenKept: "the token is sent and kept",
        NaimiTrehelFatherNotSet: "a root that takes a next stays a root",
        NaimiTrehelNoReversal: "a node that forwards a request keeps its father",
    }
    "lamport" {
        LamportNoTieBreak: "requests with one timestamp are queued in the order of arrival",
        LamportClockNotSet: "a message received does not set the clock (IR2)",
        LamportHearsEarlier: "any message counts as later than the own request (rule 5)",
        LamportReleaseNotToOne: "the first of the others is sent no RELEASE",
        LamportAckForgotten: "an idle node acknowledges nothing",
        LamportClockForgotten: "a node that is forgotten starts again with its clock at 0",
    }
    "carvalho-roucairol" {
        CarvalhoRoucairolNoTieBreak: "two requests have one number: each node replies to the other",
        CarvalhoRoucairolPermissionKept: "an idle node that replies keeps the requester's permission",
        CarvalhoRoucairolPermissionKeptOnRelease: "a node that answers deferred requests keeps the requesters' permissions",
        CarvalhoRoucairolBothBegin: "staircase: of two nodes, each begins with the other's permission",
        CarvalhoRoucairolNotAskedAgain: "a waiting node that gives up a permission does not request it again",
        CarvalhoRoucairolHighestNotSeen: "the number of a REQUEST received does not count as seen",
        CarvalhoRoucairolClockForgotten: "a node that is forgotten starts again with the number 1",
        CarvalhoRoucairolGivenComesBack: "staircase: a node is forgotten although it gave a permission away that it began with",
    }
    "neilsen-mizuno" {
        NeilsenMizunoFollowNotCleared: "FOLLOW stays set when the privilege has gone there",
        NeilsenMizunoHoldingKept: "the privilege is sent and held",
        NeilsenMizunoLastNotTurned: "a node that hands a request on does not turn LAST round",
    }
    "le-lann" {
        LeLannTokenTwice: "the token is sent twice",
        LeLannTokenKept: "the token is sent and kept",
        LeLannRequestNotNoted: "resting: a REQUEST that ends at an alerted node is not noted",
        LeLannAgainDropped: "resting: the token forgets that it has to go round once more",
    }
    "quorums" {
        QuorumsFoldedTooEarly: "points are folded before they go round the plane: some sets do not meet",
        QuorumsGridRowOnly: "a node's set in a grid is its row only",
    }
}

/// Index of the planted mutant plus one, or 0 if none is planted.
#[cfg(feature = "mutants")]
static PLANTED: AtomicUsize = AtomicUsize::new(0);

#[cfg(feature = "mutants")]
impl Mutant {
    /// Plants this fault in the whole process, replacing any other. `None` removes it.
    pub fn plant(mutant: Option<Mutant>) {
        let number = mutant.map_or(0, |mutant| mutant as usize + 1);
        PLANTED.store(number, Ordering::SeqCst);
    }

    pub(crate) fn planted(self) -> bool {
        PLANTED.load(Ordering::Relaxed) == self as usize + 1
    }
}

#[cfg(not(feature = "mutants"))]
impl Mutant {
    pub(crate) const fn planted(self) -> bool {
        false
    }
}
