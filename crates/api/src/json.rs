//! JSON types of the HTTP API between a Soloist node and its clients.
//!
//! | request | response |
//! |---|---|
//! | `POST /v1/locks/{name}/acquire` with [`AcquireRequest`] | `200` [`Hold`]; `409` not granted |
//! | `DELETE /v1/requests/{request_id}` | `204` cancelled; `404` this client has no such request |
//! | `GET /v1/holds/{hold}?wait_ms=N` | `200` [`Hold`]; `410` if it has ended |
//! | `POST /v1/holds/{hold}/renew` with [`RenewRequest`] | `200` [`Hold`]; `410` if it has ended |
//! | `DELETE /v1/holds/{hold}` | `204` released; `410` if it had already ended |
//! | `GET /v1/locks?after=NAME` | `200` [`LockList`] |
//! | `GET /v1/locks/{name}` | `200` [`LockInfo`] |
//! | `GET /v1/cluster` | `200` [`Cluster`] |
//! | `GET /v1/overview` | `200` [`Overview`](crate::dashboard::Overview) |
//! | `PUT /v1/cluster/keepers/{node}` | `204` the node is a keeper; `409` it cannot become one |
//! | `DELETE /v1/cluster/keepers/{node}` | `204` the node is not a keeper; `409` it must stay one |
//! | `GET /v1/events` | `200` stream of this node's [`Event`]s as server-sent events |
//! | `GET /v1/events?all=true` | `200` the same for all members; see also `prefix` and `after` |
//!
//! Without `wait_ms`, `GET /v1/holds/{hold}` responds immediately. With it, the response comes
//! after N ms, or as soon as the hold is `ending` or has ended.
//!
//! The body of every error response is an [`Error`]. A lock name is a single path segment,
//! percent-encoded: `a/b` is written `a%2Fb`.

use serde::{Deserialize, Serialize};

use crate::{EndReason, Fence, int_or_float};

/// Request to acquire a lock.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields, default)]
pub struct AcquireRequest {
    /// Maximum time to wait, in milliseconds. By default, the request waits until the lock is
    /// granted. With 0, the request does not queue behind others: it takes only as long as it takes
    /// to find out whether the lock is free.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "int_or_float::deserialize"
    )]
    #[cfg_attr(feature = "schema", schema(minimum = 0))]
    pub wait_ms: Option<u64>,
    /// Time to live of the hold, in milliseconds: it expires this long after the grant unless it is
    /// renewed. Defaults to the node's setting.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "int_or_float::deserialize"
    )]
    #[cfg_attr(feature = "schema", schema(minimum = 1))]
    pub ttl_ms: Option<u64>,
    /// Name of the holder, shown in lists of holders and waiters. At most 256 bytes, without
    /// control characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(
        feature = "schema",
        schema(max_length = 256, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$")
    )]
    pub owner: Option<String>,
    /// A random UUID, unique to each request. It allows the client to send the same request again,
    /// and requires it to confirm the grant by renewing the hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(
        feature = "schema",
        schema(pattern = "^([0-9a-fA-F]{32}|[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})$")
    )]
    pub request_id: Option<String>,
}

/// Request to renew a hold.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields, default)]
pub struct RenewRequest {
    /// New time to live from now on, in milliseconds. Defaults to the original one.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "int_or_float::deserialize"
    )]
    #[cfg_attr(feature = "schema", schema(minimum = 1))]
    pub ttl_ms: Option<u64>,
}

/// A granted lock.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Hold {
    /// The hold's id. Every client that knows it can renew and release the hold.
    pub hold: String,
    /// Fencing token, greater than that of every earlier hold of this lock: a number of 64 bits, as
    /// text, because many readers of JSON round numbers above 2^53.
    #[cfg_attr(feature = "schema", schema(value_type = String, pattern = "^[0-9]+$"))]
    pub fence: Fence,
    /// The lock's name.
    pub lock: String,
    /// How long the lock is certainly held without a further answer, in milliseconds: what is left
    /// of the time to live or of the node's lease, less the margin for clock drift. Count it from
    /// when the request was sent, and stop the work when it has passed.
    pub valid_for_ms: u64,
    /// When the hold expires unless it is renewed, in milliseconds from the answer: what is left of
    /// the time to live. It is not a promise, because the node's lease may end the hold earlier.
    pub expires_in_ms: u64,
    /// Set while the node is stopping, to the reason for which the hold will end (`node-stopped`).
    /// Renewals no longer extend the hold, and it ends within `valid_for_ms`. Release it as soon as
    /// the work has stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<String>))]
    pub ending: Option<EndReason>,
}

/// Body of an error response.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Error {
    /// The kind of error, for programs. See [`ErrorKind`].
    pub error: ErrorKind,
    /// Description of the error, for people.
    pub detail: String,
    /// Why the hold ended, if that is the error: `released`, `expired`, `epoch-lost` or
    /// `node-stopped`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<String>))]
    pub reason: Option<EndReason>,
    /// How long ago the hold ended, in milliseconds. A node whose machine was suspended may notice
    /// late that its lease had expired.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_ago_ms: Option<u64>,
}

/// Kind of error.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ErrorKind {
    /// `400`, `404`, `405`, `413`, `415`, `422`: the request is invalid.
    BadRequest,
    /// `401`: the token is missing or wrong.
    Unauthorized,
    /// `404`: this node does not know the hold.
    NoSuchHold,
    /// `409`: the lock was not granted in time.
    NotGranted,
    /// `410`: the hold has ended.
    Ended,
    /// `429`: the request exceeds a quota of the client or of the node.
    TooMany,
    /// `409`: the request conflicts with the current state. `detail` says how.
    Conflict,
    /// `503`: the node is stopping.
    Stopping,
    /// `503`: the cluster cannot answer at the moment. This node is not a member, other nodes do
    /// not respond, or the keepers' leader is unreachable; `detail` says which.
    Unavailable,
    /// A kind that this version does not know.
    #[serde(other)]
    Other,
}

/// Whether a lock is held.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum LockState {
    /// Not held. All nodes have answered.
    Free,
    /// Held.
    Held,
    /// No holder is known, and the epoch is changing: the lock is not granted until that is done.
    Changing,
    /// No holder is known, but some nodes did not answer, or the node that was asked is not a
    /// member.
    Unknown,
    /// A state that this version does not know. The lock may be held.
    #[serde(other)]
    Other,
}

/// State of a lock, combined from the answers of all nodes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct LockInfo {
    /// The lock's name.
    pub name: String,
    /// Whether the lock is held.
    pub state: LockState,
    /// Name of the algorithm that grants this lock.
    pub algorithm: String,
    /// The current holder, if one is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holder: Option<Holder>,
    /// Waiters, longest wait first. The list may be truncated; `waiting` is the full count.
    pub waiters: Vec<Waiter>,
    /// Number of waiters.
    pub waiting: u64,
    /// Nodes that did not answer. They may have a holder and waiters that are missing here.
    pub silent: Vec<String>,
    /// Why the holder or waiters may be missing, if they may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A holder of a lock.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Holder {
    /// Name of the holder, as given in its request.
    pub owner: String,
    /// Node that the hold is on.
    pub node: String,
    /// Fencing token of the hold.
    #[cfg_attr(feature = "schema", schema(value_type = String, pattern = "^[0-9]+$"))]
    pub fence: Fence,
    /// Time since the grant, in milliseconds.
    pub held_for_ms: u64,
    /// Time of the grant, in milliseconds since 1970 by the clock of the node that was asked.
    pub since_unix_ms: u64,
    /// Time until the hold expires unless it is renewed, in milliseconds. Absent if the hold needs
    /// no renewal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_in_ms: Option<u64>,
}

/// A waiter for a lock.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Waiter {
    /// Rank by waiting time: 1 has waited longest. The algorithm may grant in a different order.
    pub position: u64,
    /// Name of the waiter, as given in its request.
    pub owner: String,
    /// Node that it waits on.
    pub node: String,
    /// Time since its request, in milliseconds.
    pub waited_for_ms: u64,
}

/// One page of the locks that have a holder or waiters.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = Locks))]
pub struct LockList {
    /// The locks, sorted by name.
    pub locks: Vec<LockInfo>,
    /// Value of `after` for the next page, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// Nodes that did not answer.
    pub silent: Vec<String>,
    /// Why locks may be missing, if they may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The cluster as one node sees it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Cluster {
    /// Name of the node that answered.
    pub node: String,
    /// Whether that node is a member.
    pub state: NodeState,
    /// Why it is not a member, if it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The current epoch.
    pub epoch: u64,
    /// The keepers' leader, if it is reachable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leader: Option<String>,
    /// The default algorithm.
    pub algorithm: String,
    /// All nodes, sorted by name.
    pub nodes: Vec<NodeInfo>,
    /// Nodes that left or were evicted in the last 15 minutes and have not come back, the latest
    /// first.
    #[serde(default)]
    pub departed: Vec<Departed>,
}

/// A node that is no longer a member.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Departed {
    /// The node's name.
    pub name: String,
    /// When it left or was evicted, in milliseconds since 1970 by the clock of the node that noted
    /// it.
    pub at_unix_ms: u64,
    /// Whether it was evicted. Otherwise it left in good order.
    pub evicted: bool,
    /// Why, in words.
    pub reason: String,
}

/// Whether a node is a member.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum NodeState {
    /// The node is a member.
    Member,
    /// The epoch is changing. The node is a member again when that is done.
    Changing,
    /// The node is not a member: it is waiting to join, or is cut off from the cluster.
    Outside,
    /// A state that this version does not know.
    #[serde(other)]
    Other,
}

/// A node of the cluster.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct NodeInfo {
    /// The node's name.
    pub name: String,
    /// Address at which its peers reach it.
    pub address: String,
    /// Whether the node is a keeper.
    #[serde(default)]
    pub keeper: bool,
    /// Time left on the node's lease, in milliseconds, as the keepers' leader sees it. Absent if
    /// the node is not a member, or if the leader is unreachable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease_ms: Option<u64>,
    /// The node's own report. Absent if it did not answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health: Option<NodeHealth>,
    /// Error of the last attempt to reach the node as a keeper, if the node did not answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// A node's report on itself.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct NodeHealth {
    /// Version of Soloist.
    pub version: String,
    /// Number of locks that the node has state for.
    pub locks: u64,
    /// Number of holds on the node.
    pub holds: u64,
    /// Number of waiters on the node.
    pub waiters: u64,
    /// Number of open links to peers.
    pub links_up: u64,
}

/// Something that happened to a lock on a node.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Event {
    /// What happened. Also the name of the server-sent event.
    pub event: EventKind,
    /// Time of the event, in milliseconds since 1970 by the node's clock.
    pub at_unix_ms: u64,
    /// Name of the node.
    pub node: String,
    /// Name of the lock.
    pub lock: String,
    /// Name of the holder or waiter, as given in its request.
    pub owner: String,
    /// Fencing token of the hold, if there is a hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<String>, pattern = "^[0-9]+$"))]
    pub fence: Option<Fence>,
    /// Waiting time if the lock was acquired or the waiter gave up, holding time if the hold ended,
    /// in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after_us: Option<u64>,
    /// Why the hold was lost. `node-stopped` also for a waiter that gave up because its node stops.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<String>))]
    pub reason: Option<EndReason>,
    /// Number of events that were left out before this one, if any. Absent from an event of kind
    /// `missed` if the number is unknown, because the node has restarted or forgot too much.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missed: Option<u64>,
    /// Where a stream of all members' events can be resumed after this event. Its text has no
    /// meaning for clients. Absent from the events of a single node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// Kind of event.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum EventKind {
    /// A request started to wait.
    Waiting,
    /// A request stopped waiting without the lock.
    GaveUp,
    /// The lock was granted.
    Acquired,
    /// The holder released the lock.
    Released,
    /// The holder lost the lock.
    Lost,
    /// `missed` events of this node were left out: the client read too slowly, or resumed too
    /// late. This event has no lock and no owner.
    Missed,
    /// A kind that this version does not know.
    #[serde(other)]
    Other,
}

impl EventKind {
    /// The name of the server-sent event.
    pub fn name(self) -> &'static str {
        match self {
            EventKind::Waiting => "waiting",
            EventKind::GaveUp => "gave-up",
            EventKind::Acquired => "acquired",
            EventKind::Released => "released",
            EventKind::Lost => "lost",
            EventKind::Missed => "missed",
            EventKind::Other => "other",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_fields_have_defaults_and_unknown_fields_are_refused() {
        let request: AcquireRequest = serde_json::from_str("{}").unwrap();
        assert_eq!(request, AcquireRequest::default());
        assert_eq!(serde_json::to_string(&request).unwrap(), "{}");
        let misspelt = serde_json::from_str::<AcquireRequest>(r#"{"wait": 5}"#);
        assert!(misspelt.unwrap_err().to_string().contains("wait_ms"));
        let request: AcquireRequest =
            serde_json::from_str(r#"{"wait_ms": 5.0, "ttl_ms": null}"#).unwrap();
        assert_eq!((request.wait_ms, request.ttl_ms), (Some(5), None));
        for bad in ["5.5", "-1", "-1.0", "1e300", "\"5\"", "[5]", "true"] {
            let read = serde_json::from_str::<RenewRequest>(&format!(r#"{{"ttl_ms": {bad}}}"#));
            let error = read.unwrap_err().to_string();
            assert!(
                error.contains("whole number of milliseconds"),
                "{bad}: {error}"
            );
        }
    }

    #[test]
    fn names_of_later_versions_are_read() {
        fn read<T: serde::de::DeserializeOwned>() -> T {
            serde_json::from_str(r#""of-a-later-version""#).unwrap()
        }
        assert_eq!(read::<ErrorKind>(), ErrorKind::Other);
        assert_eq!(read::<LockState>(), LockState::Other);
        assert_eq!(read::<NodeState>(), NodeState::Other);
        assert_eq!(read::<EventKind>(), EventKind::Other);
        assert_eq!(read::<EndReason>(), EndReason::Other);
    }
}
