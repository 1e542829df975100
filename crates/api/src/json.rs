//! What a Soloist node and its clients say to each other over HTTP, as JSON.
//!
//! | request | answer |
//! |---|---|
//! | `POST /v1/locks/{name}/acquire` with [`AcquireRequest`] | `200` [`Hold`]; `409` not granted in time |
//! | `DELETE /v1/requests/{request_id}` | `204` cancelled; `404` no such request of this client |
//! | `GET /v1/holds/{hold}?wait_ms=N` | `200` [`Hold`] while it is held, at once or after N ms, or as soon as it is `ending`; `410` as soon as it has ended |
//! | `POST /v1/holds/{hold}/renew` with [`RenewRequest`] | `200` [`Hold`]; `410` if it has ended |
//! | `DELETE /v1/holds/{hold}` | `204` released; `410` if it ended before |
//! | `GET /v1/locks?after=NAME` | `200` [`Locks`] |
//! | `GET /v1/locks/{name}` | `200` [`LockInfo`] |
//! | `GET /v1/cluster` | `200` [`Cluster`] |
//! | `PUT /v1/cluster/keepers/{node}` | `204` it is a keeper; `409` it cannot be one |
//! | `DELETE /v1/cluster/keepers/{node}` | `204` it is no keeper; `409` it must stay one |
//! | `GET /v1/events` | `200` server-sent [`Event`]s of this node |
//!
//! Whatever fails is answered with [`Error`]. Names of locks are one segment of the path, percent-encoded: `a/b` is `a%2Fb`.

use serde::{Deserialize, Serialize};

use crate::whole;

/// Somebody wants a lock.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields, default)]
pub struct AcquireRequest {
    /// How long to wait, in milliseconds; without it, until it is granted. 0: not behind anybody, only
    /// as long as it takes to learn whether the lock is free.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "whole::deserialize"
    )]
    #[cfg_attr(feature = "schema", schema(minimum = 0))]
    pub wait_ms: Option<u64>,
    /// How long the hold lives without being renewed, in milliseconds; without it, the node's default.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "whole::deserialize"
    )]
    #[cfg_attr(feature = "schema", schema(minimum = 1))]
    pub ttl_ms: Option<u64>,
    /// As the holder wants to be called, for those who look who holds and who waits; at most 256 bytes, no
    /// control characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(
        feature = "schema",
        schema(max_length = 256, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$")
    )]
    pub owner: Option<String>,
    /// A random UUID, a new one for each request. The same request may then be sent again, and its
    /// grant must be confirmed with a renewal.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(
        feature = "schema",
        schema(pattern = "^([0-9a-fA-F]{32}|[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})$")
    )]
    pub request_id: Option<String>,
}

/// A hold is to live on.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields, default)]
pub struct RenewRequest {
    /// For how long from now, in milliseconds; without it, as long as at first.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "whole::deserialize"
    )]
    #[cfg_attr(feature = "schema", schema(minimum = 1))]
    pub ttl_ms: Option<u64>,
}

/// A lock that is held.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Hold {
    /// The hold's name: who knows it can renew and release it.
    pub hold: String,
    /// Greater than that of every earlier hold of this lock. 64 bits: some languages' numbers are too small.
    pub fence: u64,
    /// The lock's name.
    pub lock: String,
    /// How much longer it is certainly held if it is not renewed, in milliseconds. Count it from when the request was sent.
    /// It is shorter than what the node waits, by how much clocks may run apart.
    pub valid_for_ms: u64,
    /// Set when the node stops: the hold is not extended any more, and ends after `valid_for_ms` at the latest, for
    /// this reason (`node-stopped`). Release it as soon as the work has stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ending: Option<String>,
}

/// Something failed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Error {
    /// What, for programs: see [`ErrorKind`].
    pub error: ErrorKind,
    /// What, for people.
    pub detail: String,
    /// Why a hold ended, if that is what is wrong: `released`, `expired`, `epoch-lost`, `node-stopped`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How long ago it ended, in milliseconds: a node that slept may notice late that it was cut off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_ago_ms: Option<u64>,
}

/// What failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ErrorKind {
    /// `400`, `404`, `405`, `413`, `415`, `422`: the request cannot be served as it is.
    BadRequest,
    /// `401`: no token, or a wrong one.
    Unauthorized,
    /// `404`: this node knows no such hold.
    NoSuchHold,
    /// `409`: not granted in time.
    NotGranted,
    /// `410`: the hold has ended.
    Ended,
    /// `429`: beyond a quota of the client or of the node.
    TooMany,
    /// `409`: it cannot be changed so.
    Conflict,
    /// `503`: the node stops.
    Stopping,
    /// `503`: the cluster cannot tell now: this node is not a member, other nodes do not answer, or the keepers' leader
    /// cannot be reached. `detail` says which.
    Unavailable,
    /// Something that this version does not know.
    #[serde(other)]
    Other,
}

/// Whether a lock is held.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum LockState {
    /// Nobody holds it, as all nodes say.
    Free,
    /// Somebody holds it.
    Held,
    /// Nobody is known to hold it, and the nodes that take part are being changed: nobody gets it meanwhile.
    Changing,
    /// Nobody is known to hold it, but some nodes do not answer, or the one that was asked is cut off.
    Unknown,
}

/// A lock, as the nodes together see it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct LockInfo {
    /// Its name.
    pub name: String,
    /// Whether it is held.
    pub state: LockState,
    /// The algorithm's name.
    pub algorithm: String,
    /// Who holds it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holder: Option<Holder>,
    /// Who waits, those who have waited longest first; not all if they are many.
    pub waiters: Vec<Waiter>,
    /// How many wait.
    pub waiting: u64,
    /// Nodes that did not answer: they may have holders and waiters of their own.
    pub silent: Vec<String>,
    /// Why holders or waiters may be missing, if that is so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Somebody who holds a lock.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Holder {
    /// As they call themselves.
    pub owner: String,
    /// On which node.
    pub node: String,
    /// Their fence.
    pub fence: u64,
    /// For how long, in milliseconds.
    pub held_for_ms: u64,
    /// Since when: milliseconds since 1970, by the clock of the node that was asked.
    pub since_unix_ms: u64,
    /// How much longer without renewal, in milliseconds; nothing, if it needs none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub valid_for_ms: Option<u64>,
}

/// Somebody who waits for a lock.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Waiter {
    /// 1 for who has waited longest. The algorithm may let them in in another order.
    pub position: u64,
    /// As they call themselves.
    pub owner: String,
    /// On which node.
    pub node: String,
    /// For how long, in milliseconds.
    pub waited_for_ms: u64,
}

/// Locks that somebody holds or waits for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Locks {
    /// By name.
    pub locks: Vec<LockInfo>,
    /// Ask for those `after` this name next, if there are more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// Nodes that did not answer.
    pub silent: Vec<String>,
    /// Why locks may be missing, if that is so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The cluster, as one node sees it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Cluster {
    /// The node that answers.
    pub node: String,
    /// Whether it takes part.
    pub state: NodeState,
    /// Why it does not, if it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The epoch.
    pub epoch: u64,
    /// The keepers' leader, if it can be reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leader: Option<String>,
    /// The default algorithm.
    pub algorithm: String,
    /// All nodes, by name.
    pub nodes: Vec<NodeInfo>,
}

/// Whether a node takes part.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum NodeState {
    /// It does.
    Member,
    /// It does again when the change of epoch that is under way is done.
    Changing,
    /// It does not: it waits to be let in, or is cut off.
    Outside,
}

/// A node, as it says of itself.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct NodeInfo {
    /// Its name.
    pub name: String,
    /// Where its peers reach it.
    pub address: String,
    /// Whether it is a keeper.
    #[serde(default)]
    pub keeper: bool,
    /// How much longer it may rely on being a member, in milliseconds, as the keepers' leader sees it; nothing, if
    /// it is none or needs no lease.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease_ms: Option<u64>,
    /// What it says; nothing, if it does not answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health: Option<NodeHealth>,
    /// What came of the last attempt to reach it as a keeper, if it says nothing of itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// How a node is.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct NodeHealth {
    /// Its version of Soloist.
    pub version: String,
    /// Locks that it has to do with.
    pub locks: u64,
    /// Holds on it.
    pub holds: u64,
    /// Who waits on it.
    pub waiters: u64,
    /// Its links to peers that are open.
    pub links_up: u64,
}

/// Something that happened to a lock on the node that is watched. Also the name of the server-sent event.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Event {
    /// What happened.
    pub event: EventKind,
    /// When: milliseconds since 1970, by the node's clock.
    pub at_unix_ms: u64,
    /// The node.
    pub node: String,
    /// The lock.
    pub lock: String,
    /// Who, as they call themselves.
    pub owner: String,
    /// The hold's fence, if there is a hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fence: Option<u64>,
    /// How long they had waited, if they got it; how long they had held it, if it ended. In microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after_us: Option<u64>,
    /// Why it was lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How many events were left out before this one, if some were.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missed: Option<u64>,
}

/// What happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum EventKind {
    /// Somebody began to wait.
    Waiting,
    /// Somebody got the lock.
    Acquired,
    /// A holder gave it back.
    Released,
    /// A holder lost it.
    Lost,
    /// The watcher was too slow: some events were left out, `missed` says how many. It has no lock and
    /// no owner.
    Missed,
}

impl EventKind {
    /// Its name as a server-sent event.
    pub fn name(self) -> &'static str {
        match self {
            EventKind::Waiting => "waiting",
            EventKind::Acquired => "acquired",
            EventKind::Released => "released",
            EventKind::Lost => "lost",
            EventKind::Missed => "missed",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_has_defaults_and_what_is_unknown_is_refused() {
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
            assert!(error.contains("whole milliseconds"), "{bad}: {error}");
        }
        let later: ErrorKind = serde_json::from_str(r#""of-a-later-version""#).unwrap();
        assert_eq!(later, ErrorKind::Other);
    }
}
