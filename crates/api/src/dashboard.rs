//! JSON of the dashboard: whether the cluster is well, what it did in the last 15 minutes, and what
//! changed.
//!
//! A node sends [`Overview`], [`History`] and [`Changes`] to a client whose session sent `follow`.
//! `GET /v1/overview` returns one [`Overview`], for `soloist doctor`.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The cluster as one node sees it at a moment, judged.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Overview {
    /// Name of the node that sees the cluster so.
    pub from: String,
    /// Version of Soloist on that node.
    pub version: String,
    /// Time of this overview, in milliseconds since 1970 by the node's clock.
    pub at_ms: u64,
    /// The current epoch, or the last one that the node was a member of.
    pub epoch: u64,
    /// Length of a lease, in milliseconds.
    pub lease_ms: u64,
    /// Time left of the node's own lease, in milliseconds. `null` if the node has none.
    pub lease_left_ms: Option<u64>,
    /// Time since the node's lease expired, or since its start if it never had one, in
    /// milliseconds. `null` while it has one. Without a lease, the node cannot know what the rest
    /// of the cluster does.
    pub without_lease_for_ms: Option<u64>,
    /// The keepers' leader, if it answers the node.
    pub leader: Option<String>,
    /// The worst level of all problems, or `unknown` if the node has no lease.
    pub level: Level,
    /// The state of the cluster in a sentence.
    pub verdict: String,
    /// More about the verdict, in one or two sentences.
    pub detail: String,
    /// Problems, the most important first.
    pub problems: Vec<Problem>,
    /// What was examined and is well, a few words for each.
    pub well: Vec<String>,
    /// The keepers, sorted by name.
    pub keepers: Vec<KeeperInfo>,
    /// The members, sorted by name.
    pub members: Vec<MemberInfo>,
    /// Nodes that are not members, but were lately or should be, sorted by name.
    pub outside: Vec<OutsideInfo>,
    /// Links between members that are down.
    pub links_down: Vec<LinkDown>,
    /// Members that did not answer in time, sorted by name.
    pub silent: Vec<String>,
}

/// How bad something is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Level {
    /// Nothing is wrong.
    Ok,
    /// Locks are granted, but an operator should look.
    Warning,
    /// Locks are not granted, or one more failure would stop them.
    Critical,
    /// The node that was asked cannot know. Also a level that this version does not know.
    #[serde(other)]
    Unknown,
}

/// Something that is wrong, and what to do.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Problem {
    /// What kind of problem it is, for programs.
    pub code: ProblemCode,
    /// How bad it is: `warning` or `critical`.
    pub level: Level,
    /// The problem in a few words.
    pub title: String,
    /// Since when it is known, in milliseconds since 1970.
    pub since_ms: u64,
    /// When it was seen last, in milliseconds since 1970. If that is before the overview's `at_ms`
    /// and the problem is not over, it could not be examined since: a node does not answer.
    pub last_seen_ms: u64,
    /// Whether it was examined again and has ended. It is shown for a while after that.
    pub is_over: bool,
    /// What it means.
    pub text: String,
    /// Anchor of its entry in `docs/operations.md`.
    pub link: String,
    /// The lock that it is about, if it is about one.
    pub lock: Option<String>,
    /// The node that it is about, if it is about one.
    pub node: Option<String>,
    /// The node that cannot send to `node`, if it is about a link.
    pub from: Option<String>,
    /// Commands for an operator. Nothing runs them automatically.
    pub commands: Vec<Advice>,
}

/// A command for an operator.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Advice {
    /// When or why to run it.
    pub label: String,
    /// The command line.
    pub command: String,
}

/// Kind of problem.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ProblemCode {
    /// The node that was asked reaches no majority of the keepers, and no leader.
    MajorityLost,
    /// The node that was asked has no lease.
    NoLease,
    /// No leader of the keepers answers the node that was asked, so that no lease is renewed.
    NoLeader,
    /// The epoch has been changing for unusually long, and no lock is granted.
    Changing,
    /// A keeper is down, or has stopped.
    KeeperDown,
    /// A clock runs at another rate than the leader's.
    ClocksApart,
    /// A node was evicted, and has not come back.
    NodeOutside,
    /// A certificate expires soon.
    CertificateExpires,
    /// A member did not renew its lease when it should have.
    LeaseNearEnd,
    /// A member does not answer.
    NodeSilent,
    /// Two members cannot reach each other.
    LinkDown,
    /// A client has waited unusually long for a lock.
    LongWait,
    /// Members have different versions.
    VersionsDiffer,
    /// A kind that this version does not know.
    #[serde(other)]
    Other,
}

impl Problem {
    /// Returns whether it could not be examined in the overview of this time, in milliseconds since
    /// 1970. Then it may have ended or not.
    pub fn is_unexamined(&self, at_ms: u64) -> bool {
        !self.is_over && self.last_seen_ms < at_ms
    }
}

impl ProblemCode {
    /// All codes that a node sends.
    pub const ALL: [ProblemCode; 13] = [
        ProblemCode::MajorityLost,
        ProblemCode::NoLease,
        ProblemCode::NoLeader,
        ProblemCode::Changing,
        ProblemCode::KeeperDown,
        ProblemCode::ClocksApart,
        ProblemCode::NodeOutside,
        ProblemCode::CertificateExpires,
        ProblemCode::LeaseNearEnd,
        ProblemCode::NodeSilent,
        ProblemCode::LinkDown,
        ProblemCode::LongWait,
        ProblemCode::VersionsDiffer,
    ];

    /// Its name in JSON, and the anchor of its entry in `docs/operations.md`.
    pub fn name(self) -> &'static str {
        match self {
            ProblemCode::MajorityLost => "majority-lost",
            ProblemCode::NoLease => "no-lease",
            ProblemCode::NoLeader => "no-leader",
            ProblemCode::Changing => "changing",
            ProblemCode::KeeperDown => "keeper-down",
            ProblemCode::ClocksApart => "clocks-apart",
            ProblemCode::NodeOutside => "node-outside",
            ProblemCode::CertificateExpires => "certificate-expires",
            ProblemCode::LeaseNearEnd => "lease-near-end",
            ProblemCode::NodeSilent => "node-silent",
            ProblemCode::LinkDown => "link-down",
            ProblemCode::LongWait => "long-wait",
            ProblemCode::VersionsDiffer => "versions-differ",
            ProblemCode::Other => "other",
        }
    }
}

impl fmt::Display for ProblemCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A keeper, in an [`Overview`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct KeeperInfo {
    /// The node's name.
    pub name: String,
    /// What it does.
    pub state: KeeperState,
    /// Since when it is in this state, in milliseconds since 1970, if that is known.
    pub since_ms: Option<u64>,
}

/// State of a keeper.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum KeeperState {
    /// It is the keepers' leader.
    Leads,
    /// It follows the leader.
    Follows,
    /// Its store has stopped, or its node is not a member and the leader does not hear its store.
    Down,
    /// The node that was asked cannot know. Also a state that this version does not know.
    #[serde(other)]
    Unknown,
}

/// A member, in an [`Overview`].
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct MemberInfo {
    /// The node's name.
    pub name: String,
    /// Whether it is a keeper.
    pub is_keeper: bool,
    /// Time left of its lease as the leader sees it, in milliseconds. `null` if the leader did not
    /// answer.
    pub lease_left_ms: Option<u64>,
    /// Number of holds on the node. `null` if it did not answer.
    pub holds: Option<u64>,
    /// Number of waiters on the node. `null` if it did not answer.
    pub waiters: Option<u64>,
    /// How long its answer took, in milliseconds. `null` if it did not answer.
    pub answered_in_ms: Option<f64>,
    /// Its version. `null` if it did not answer.
    pub version: Option<String>,
}

/// A node that is not a member, in an [`Overview`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct OutsideInfo {
    /// The node's name.
    pub name: String,
    /// Whether it is a keeper.
    pub is_keeper: bool,
    /// How it came to be outside.
    pub state: OutsideState,
    /// Why.
    pub reason: String,
    /// Since when, in milliseconds since 1970, if that is known.
    pub since_ms: Option<u64>,
}

/// How a node came to be outside.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum OutsideState {
    /// The leader evicted it.
    Evicted,
    /// It left in good order.
    Left,
    /// It is a keeper and not a member, and nothing more is known.
    Down,
    /// It is running, and waits to be admitted.
    Joining,
    /// A state that this version does not know.
    #[serde(other)]
    Other,
}

/// A link that is down.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct LinkDown {
    /// The node that cannot send.
    pub from: String,
    /// The node that it cannot reach.
    pub to: String,
    /// Since when, in milliseconds since 1970.
    pub since_ms: u64,
}

/// What the whole cluster did, second by second.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct History {
    /// The first second, in seconds since 1970.
    pub from_s: u64,
    /// One point for each second from there on. `null` if nothing is known about that second. A
    /// point that was sent before is replaced: a member has told more.
    pub points: Vec<Option<Point>>,
}

/// What the whole cluster did in one second. The percentiles are of that second's entries; they are
/// interpolated between bounds that differ by a factor of two, and are `null` without entries.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Point {
    /// Number of grants.
    pub entries: u64,
    /// Median of the time from request to grant, in milliseconds.
    pub wait_p50_ms: Option<f64>,
    /// 99th percentile of that time.
    pub wait_p99_ms: Option<f64>,
    /// Median of the time from the end of a hold to the next grant on the same node.
    pub hand_over_p50_ms: Option<f64>,
    /// 99th percentile of that time.
    pub hand_over_p99_ms: Option<f64>,
    /// Number of holds lost.
    pub lost: u64,
}

/// Changes of the cluster, oldest first.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Changes {
    /// The changes. One that was sent before, with the same id, is replaced: more is known now.
    pub changes: Vec<Change>,
}

/// Something that happened to the cluster.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Change {
    /// Identifies the change among those of one node that serves them.
    pub id: String,
    /// When it happened, in milliseconds since 1970.
    pub at_ms: u64,
    /// What kind of change it is.
    pub kind: ChangeKind,
    /// The node that it is about, if it is about one.
    pub node: Option<String>,
    /// The epoch that it belongs to, if it belongs to one.
    pub epoch: Option<u64>,
    /// The change in a few words.
    pub what: String,
    /// Its reason and its effect.
    pub why: String,
    /// How many holds an evicted node had when it renewed its lease last. `null` if nobody knows,
    /// and for all other changes.
    pub holds: Option<u32>,
    /// Whether it is a sign of trouble.
    pub is_bad: bool,
}

/// Kind of [`Change`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ChangeKind {
    /// A node became a member.
    Joined,
    /// A node left in good order.
    Left,
    /// A node was evicted.
    Evicted,
    /// A keeper became the leader.
    Elected,
    /// An epoch began.
    Epoch,
    /// Holds were lost.
    Lost,
    /// A link broke.
    LinkDown,
    /// A link works again.
    LinkUp,
    /// A kind that this version does not know.
    #[serde(other)]
    Other,
}
