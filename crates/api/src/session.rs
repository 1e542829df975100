//! JSON messages of a session: one WebSocket between a client and a node, at `/v1/session`.
//!
//! Each text frame is one message: a [`ClientMessage`] or a [`NodeMessage`], written as
//! `{"kind": {fields}}`. The client begins with [`Hello`] and sends nothing else before it has read
//! [`Welcome`]. After that, both sides send at any time, and requests are answered in any order.
//!
//! # Numbers of the client
//!
//! Every message but `hello` has a number `n`. The client chooses it: from 1 up to [`NUMBER_MAX`],
//! each greater than the one before. Numbers belong to the session and continue after a resume. The
//! number of an `acquire` also names the hold that it leads to, in `release`, `cancel` and `lost`.
//!
//! The node handles messages in the order of their numbers, and each number once. After a resume,
//! [`Welcome::handled`] is the highest number that it has handled. The client sends again what is
//! above, with the same numbers. A message that is sent again although it was handled has no second
//! effect; a number with other content than before ends the connection.
//!
//! # Numbers of the node
//!
//! Outcomes that the client must not miss have a number `seq`, counted from 1: `granted`, `lost`,
//! `done` and `error` if the request had an effect before. The node keeps them until the client
//! reports that it has read them: `seen: seq` in any message means all outcomes up to `seq`. After
//! a resume, the node repeats the ones that the client has not seen. If [`UNSEEN_MAX`] are unseen,
//! new requests are refused as [`busy`](Code::Busy).
//!
//! A refused request had no effect, and its `error` has no `seq`. The repeated outcomes of a resume
//! end with [`Welcome::last_seq`]. A request up to `handled` that has no outcome by then, and is in
//! neither list of `welcome`, was refused. The client may send it again with a new number. The same
//! holds for queries.
//!
//! # Time
//!
//! All holds of a session have one time to live. Every message of the client renews it, and a
//! session without messages for that long expires: its requests end, and its holds with the reason
//! `expired`. An open connection alone renews nothing.
//!
//! A [`Promise`] says how long holds are certain, counted from when the client sent a certain
//! message. A client stops relying on its holds when its last promise has passed, even if it hears
//! nothing.

mod client_message;
mod code;
#[cfg(test)]
mod golden;
mod node_message;

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use self::client_message::{
    Acquire, Cancel, ClientMessage, Hello, Left, ListQuery, LockOrder, LockQuery, LocksQuery,
    Numbered, Release, Resume, WatchQuery,
};
pub use self::code::Code;
pub use self::node_message::{
    Closed, ClusterAnswer, Done, Failure, Granted, Held, Listed, LockAnswer, LocksAnswer, Lost,
    NodeMessage, Pong, Stopping, Welcome,
};
use crate::Moment;

/// The highest number that a client may choose. Every reader of JSON has it exactly.
pub const NUMBER_MAX: u64 = 1 << 53;

/// Maximum number of outcomes that a node keeps because the client has not seen them.
pub const UNSEEN_MAX: usize = 1024;

/// Maximum number of rows in a part of the list of locks.
pub const ROWS_MAX: usize = 200;

/// Maximum size of a client's message in bytes.
pub const MESSAGE_BYTES_MAX: usize = 64 << 10;

/// How long the holds of a session are certain.
///
/// A promise covers the holds whose `granted` the client has read before, and that were not lost.
/// The one in `welcome` covers only the holds that `welcome` lists, and the one in `granted` or
/// `lost` only that hold.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Promise {
    /// The last message that the node had handled, by its number; 0 is the `hello` of this
    /// connection. The time counts from when the client sent that message over this connection,
    /// never from when the promise arrived: it may have waited in a buffer.
    pub after: u64,
    /// How long holds are certainly held after that, in milliseconds. The node waits longer before
    /// it ends them, by the margin for clock drift.
    pub valid_for_ms: u64,
}

impl Promise {
    /// Until when holds are certain, if the client sent the message [`after`](Promise::after) at
    /// this moment.
    pub fn until(self, sent: Moment) -> Moment {
        sent + Duration::from_millis(self.valid_for_ms)
    }
}

/// Secret of a session. Its `Debug` form does not show it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(pub String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}
