//! Messages from the node to the client.

use serde::{Deserialize, Serialize};

use super::{Code, Promise, Secret};
use crate::dashboard::{Changes, History, Overview};
use crate::{Cluster, EndReason, Event, Fence, LockInfo, LockList};

/// A message from the node to the client. A node of a later version sends a kind that is not here
/// only to a client that asked for it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum NodeMessage {
    /// The session has started or was resumed. The first message of every connection that is not
    /// refused. The client then sends again what is above [`Welcome::handled`].
    Welcome(Welcome),
    /// The lock is held, and the client may enter. A client whose time is up by the promise's
    /// count releases the hold instead.
    Granted(Granted),
    /// A hold has ended, or will certainly end, without having been released. The client stops
    /// working on what the lock protects within [`Lost::promise`], and then releases the hold.
    Lost(Lost),
    /// A message was handled: the answer to `release`, `cancel`, `watch`, `unwatch`, `follow`,
    /// `unfollow`, `list` and `end`.
    Done(Done),
    /// A request failed or was refused. The session continues.
    Error(Failure),
    /// The answer to `ping`.
    Pong(Pong),
    /// The node is stopping and extends no promise. New requests are refused, and waiting ones get
    /// an `error`. The client continues on another node, and releases its holds here.
    Stopping(Stopping),
    /// The answer to a query about a lock.
    Lock(LockAnswer),
    /// The answer to a query about all locks.
    Locks(LocksAnswer),
    /// The part of the list of locks that the client asked for with `list`, as it is now.
    Listed(Listed),
    /// The answer to a query about the cluster.
    Cluster(ClusterAnswer),
    /// An event of this node or of another member, for a client that sent `watch`.
    Event(Event),
    /// The cluster as this node sees it now, for a client that sent `follow`.
    Overview(Box<Overview>),
    /// What the cluster did, for a client that sent `follow`. It replaces earlier points of the
    /// same seconds.
    History(History),
    /// What changed in the cluster, for a client that sent `follow`.
    Changes(Changes),
    /// The last message of a connection that the node closes, and why. Requests and holds of the
    /// session are not affected, unless [`Closed::code`] says that the session has ended.
    Closed(Closed),
}

/// Content of [`NodeMessage::Welcome`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Welcome {
    /// The session, to resume it.
    pub session: String,
    /// The secret that resuming takes.
    pub secret: Secret,
    /// Name of the node.
    pub node: String,
    /// The current epoch of the cluster, or 0 if the node is not a member.
    pub epoch: u64,
    /// Send at least one message in this time, in milliseconds.
    pub ping_every_ms: u64,
    /// The session expires if the node receives nothing for this long, in milliseconds.
    pub expires_in_ms: u64,
    /// How long holds are certain, counted from this connection's `hello`.
    pub promise: Promise,
    /// The highest number that the node has handled in this session.
    pub handled: u64,
    /// The number of the last outcome. The ones that the client has not seen follow this message.
    pub last_seq: u64,
    /// All holds of the session, by number.
    pub holds: Vec<Held>,
    /// The numbers of all requests that wait.
    pub waiting: Vec<u64>,
}

/// A hold of a resumed session.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Held {
    /// The number of its `acquire`.
    pub hold: u64,
    /// The lock's name.
    pub lock: String,
    /// The fencing token.
    pub fence: Fence,
}

/// Content of [`NodeMessage::Granted`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Granted {
    /// The number of the `acquire`, which now names the hold.
    pub n: u64,
    /// The number of this outcome.
    pub seq: u64,
    /// Fencing token, greater than that of every earlier hold of this lock.
    pub fence: Fence,
    /// How long the hold is certain, like all others of the session.
    pub promise: Promise,
}

/// Content of [`NodeMessage::Lost`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Lost {
    /// The hold: the number of its `acquire`.
    pub hold: u64,
    /// The number of this outcome.
    pub seq: u64,
    /// Why it ended or will end.
    pub reason: EndReason,
    /// How long it is still certain. `valid_for_ms` is 0 if it has ended.
    pub promise: Promise,
}

/// Content of [`NodeMessage::Done`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Done {
    /// The number of the message that was handled.
    pub n: u64,
    /// The number of this outcome, for `release`, and for a `cancel` that had an effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
}

/// Content of [`NodeMessage::Error`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Failure {
    /// The number of the message that failed.
    pub n: u64,
    /// The number of this outcome. Absent if the message was refused and had no effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// The kind of error, for programs.
    pub code: Code,
    /// Description of the error, for people.
    pub detail: String,
    /// Why the hold ended, if that is the error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<EndReason>,
}

/// Content of [`NodeMessage::Pong`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Pong {
    /// The number of the `ping`.
    pub n: u64,
    /// How long holds are certain.
    pub promise: Promise,
}

/// Content of [`NodeMessage::Stopping`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Stopping {
    /// How long holds are still certain. Messages of the client no longer extend this.
    pub promise: Promise,
}

/// Content of [`NodeMessage::Lock`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LockAnswer {
    /// The number of the query.
    pub n: u64,
    /// The lock.
    pub lock: LockInfo,
    /// The lock's last events on all nodes, oldest first: at most 100 of those that the nodes
    /// still have.
    #[serde(default)]
    pub recent: Vec<Event>,
}

/// Content of [`NodeMessage::Locks`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LocksAnswer {
    /// The number of the query.
    pub n: u64,
    /// One page of locks.
    pub page: LockList,
    /// Number of locks that the query is about, in answers that are not sorted by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
}

/// Content of [`NodeMessage::Listed`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Listed {
    /// The query's prefix.
    pub prefix: String,
    /// Index of the first row.
    pub first: usize,
    /// The rows: the longest wait first, then the longest hold. Fewer than asked for at the end of
    /// the list.
    pub locks: Vec<LockInfo>,
    /// Number of rows in the whole list: at most 1,000.
    pub rows: usize,
    /// Whether rows may be missing at the end of the list: not all locks with this prefix fitted,
    /// or not all could be examined.
    #[serde(default)]
    pub is_cut: bool,
    /// Number of locks with this prefix that are held or waited for.
    pub total: u64,
    /// Nodes that did not answer. Locks may be missing.
    pub silent: Vec<String>,
    /// Why locks may be missing, if they may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Content of [`NodeMessage::Cluster`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ClusterAnswer {
    /// The number of the query.
    pub n: u64,
    /// The cluster.
    pub cluster: Cluster,
}

/// Content of [`NodeMessage::Closed`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Closed {
    /// The kind of error, for programs.
    pub code: Code,
    /// Description of the error, for people.
    pub detail: String,
}
