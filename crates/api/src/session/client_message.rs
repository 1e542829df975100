//! Messages from the client to the node.

use serde::{Deserialize, Serialize};

use super::Secret;
#[cfg(doc)]
use super::Welcome;
use crate::int_or_float;

/// A message from the client to the node.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ClientMessage {
    /// The first message of a connection, and only that: starts a session or resumes one. The node
    /// responds with `welcome`, or with `closed`.
    Hello(Hello),
    /// Requests a lock. The node responds with `granted`, or with `error` if the lock was not
    /// granted in time or the request is refused. Until then the request waits, also while the
    /// connection is broken, for as long as the session lives.
    Acquire(Acquire),
    /// Gives a request up. If it was granted in the meantime, the hold is released. The node
    /// responds with `done`, and sends no more about the request.
    Cancel(Cancel),
    /// Releases a hold. The node responds with `done`, or with `error` if the hold has ended
    /// before.
    Release(Release),
    /// Renews the session. Send one if nothing else was sent for [`Welcome::ping_every_ms`], or for
    /// a third of the last promise if that is shorter. The node responds with `pong`.
    Ping(Numbered),
    /// Asks for the holder and waiters of a lock. The node asks all nodes and responds with `lock`.
    Lock(LockQuery),
    /// Asks for a page of all locks that are held or waited for. The node responds with `locks`.
    Locks(LocksQuery),
    /// Asks for a part of the list of locks with the longest waits, such as a client has in view.
    /// The node responds with `done`, and then sends `listed`: now, and when the part has changed,
    /// until the end of the connection. Replaces the part that was asked for before; none is sent
    /// for 0 rows.
    List(ListQuery),
    /// Asks for the state of the cluster. The node responds with `cluster`.
    Cluster(Numbered),
    /// Asks for the events of this node, or of all nodes. The node responds with `done`, and then
    /// sends `event` until `unwatch` or the end of the connection.
    Watch(WatchQuery),
    /// Ends `watch`. The node responds with `done`.
    Unwatch(Numbered),
    /// Asks for the dashboard's data. The node responds with `done`, and then sends `overview`,
    /// `history` and `changes` until `unfollow` or the end of the connection: first all that is
    /// known, then what is new, at least every second.
    Follow(Numbered),
    /// Ends `follow`. The node responds with `done`.
    Unfollow(Numbered),
    /// Ends the session: gives up all requests and releases all holds. The node responds with
    /// `done` and closes the connection. The session cannot be resumed.
    End(Numbered),
}

/// Content of [`ClientMessage::Hello`].
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Hello {
    /// Name of the client, shown in lists of holders and waiters. At most 256 bytes, without
    /// control characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Time to live of the session, in milliseconds. Defaults to the node's setting. A resumed
    /// session keeps its own.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "int_or_float::deserialize"
    )]
    pub ttl_ms: Option<u64>,
    /// The session to resume. It may have a connection, which is cut. Only the principal (Unix
    /// user, token or certificate) that started the session can resume it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resume: Option<Resume>,
    /// The session on another node that the client has left. This node makes that node end its
    /// requests and the grants that the client has not seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left: Option<Left>,
    /// Whether the session ends when the process that opened the connection ends. Works over Unix
    /// sockets only, and is refused elsewhere. The last hello of a session counts.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub ends_with_process: bool,
}

/// Proof that a session belongs to the client: what [`Welcome`] told.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resume {
    /// The session.
    pub session: String,
    /// Its secret.
    pub secret: Secret,
    /// The last outcome that the client has read, or 0.
    #[serde(default)]
    pub seen: u64,
}

/// A session that the client has left for another node.
///
/// The client must have closed its connection to the old node, and must not use any grant above
/// `seen`. It keeps the holds that it has read: a hold is bound to its node, and the old session
/// can still be resumed to renew and release them.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Left {
    /// The node of the session, by its name in [`Welcome::node`].
    pub node: String,
    /// The session.
    pub session: String,
    /// Its secret.
    pub secret: Secret,
    /// The last outcome that the client has read, or 0.
    #[serde(default)]
    pub seen: u64,
    /// Holds that the client has released without reading the answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub release: Vec<u64>,
}

/// Content of [`ClientMessage::Acquire`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Acquire {
    /// The number of this message, which also names the hold.
    pub n: u64,
    /// The lock's name.
    pub lock: String,
    /// Maximum time to wait, in milliseconds from when the node handles the request. By default,
    /// the request waits until the lock is granted. With 0, it does not queue behind others.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "int_or_float::deserialize"
    )]
    pub wait_ms: Option<u64>,
    /// Name of the holder, if not that of the client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// The last outcome that the client has read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<u64>,
}

/// Content of [`ClientMessage::Cancel`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cancel {
    /// The number of this message.
    pub n: u64,
    /// The number of the `acquire` to give up.
    pub request: u64,
    /// The last outcome that the client has read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<u64>,
}

/// Content of [`ClientMessage::Release`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Release {
    /// The number of this message.
    pub n: u64,
    /// The hold to release: the number of its `acquire`.
    pub hold: u64,
    /// Whether the answer may wait for the node's next message, because nothing waits for it. An
    /// answer on its own would wake the client for nothing. Any `ping` brings it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub later: bool,
    /// The last outcome that the client has read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<u64>,
}

/// Content of a message that has nothing but its number.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Numbered {
    /// The number of this message.
    pub n: u64,
    /// The last outcome that the client has read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<u64>,
}

/// Content of [`ClientMessage::Lock`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockQuery {
    /// The number of this message.
    pub n: u64,
    /// The lock's name.
    pub lock: String,
    /// The last outcome that the client has read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<u64>,
}

/// Content of [`ClientMessage::Locks`].
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LocksQuery {
    /// The number of this message.
    pub n: u64,
    /// List only locks after this name: the `next` of the previous page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// List only locks whose name starts with this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// The order of the locks. By default, they are sorted by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sort: Option<LockOrder>,
    /// The last outcome that the client has read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<u64>,
}

/// Order of a list of locks, other than by name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LockOrder {
    /// The lock with the longest wait first. The answer is a single page, with
    /// [`total`](super::LocksAnswer::total); `after` has no effect.
    Wait,
}

/// Content of [`ClientMessage::List`].
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListQuery {
    /// The number of this message.
    pub n: u64,
    /// List only locks whose name starts with this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// Index of the first row, from 0.
    #[serde(default)]
    pub first: usize,
    /// Maximum number of rows. At most [`ROWS_MAX`](super::ROWS_MAX) are sent.
    pub rows: usize,
    /// The last outcome that the client has read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<u64>,
}

/// Content of [`ClientMessage::Watch`].
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WatchQuery {
    /// The number of this message.
    pub n: u64,
    /// Whether to send the events of all members, not only of this node. Events of several nodes
    /// are sent a moment later, and have a `cursor`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub all: bool,
    /// Send only events of locks whose name starts with this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// Send also earlier events, those after this `cursor` of an event, as far as nodes still have
    /// them. Works with `all` only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// The last outcome that the client has read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<u64>,
}

impl ClientMessage {
    /// Its number, or `None` for `hello`.
    pub fn n(&self) -> Option<u64> {
        match self {
            ClientMessage::Hello(_) => None,
            ClientMessage::Acquire(acquire) => Some(acquire.n),
            ClientMessage::Cancel(cancel) => Some(cancel.n),
            ClientMessage::Release(release) => Some(release.n),
            ClientMessage::Lock(query) => Some(query.n),
            ClientMessage::Locks(query) => Some(query.n),
            ClientMessage::List(query) => Some(query.n),
            ClientMessage::Watch(query) => Some(query.n),
            ClientMessage::Ping(numbered)
            | ClientMessage::Cluster(numbered)
            | ClientMessage::Unwatch(numbered)
            | ClientMessage::Follow(numbered)
            | ClientMessage::Unfollow(numbered)
            | ClientMessage::End(numbered) => Some(numbered.n),
        }
    }

    /// The last outcome that the client has read, if the message says so.
    pub fn seen(&self) -> Option<u64> {
        match self {
            ClientMessage::Hello(hello) => hello.resume.as_ref().map(|resume| resume.seen),
            ClientMessage::Acquire(acquire) => acquire.seen,
            ClientMessage::Cancel(cancel) => cancel.seen,
            ClientMessage::Release(release) => release.seen,
            ClientMessage::Lock(query) => query.seen,
            ClientMessage::Locks(query) => query.seen,
            ClientMessage::List(query) => query.seen,
            ClientMessage::Watch(query) => query.seen,
            ClientMessage::Ping(numbered)
            | ClientMessage::Cluster(numbered)
            | ClientMessage::Unwatch(numbered)
            | ClientMessage::Follow(numbered)
            | ClientMessage::Unfollow(numbered)
            | ClientMessage::End(numbered) => numbered.seen,
        }
    }
}
