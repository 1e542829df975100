//! Kinds of errors of a session.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Kind of error in a session.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Code {
    /// `error`: a name, an owner or a time is invalid.
    BadRequest,
    /// `error`: the lock was not granted in time. A query about the lock says who has it.
    NotGranted,
    /// `error`: it is not known whether the lock is held, and it was not granted: the node is not a
    /// member of the cluster, or found no holder. Another node may serve the request.
    Unavailable,
    /// `error` or `closed`: a quota of the client or of the node is used up.
    TooMany,
    /// `error`: the client has not seen [`UNSEEN_MAX`](super::UNSEEN_MAX) outcomes, or very many in
    /// all its sessions. Report `seen`, then send the request again with a new number.
    Busy,
    /// `error` or `closed`: the node is stopping. Use another one.
    Stopping,
    /// `error`: the hold has ended; `reason` says why.
    Ended,
    /// `error`: the session has no such request or hold.
    NoSuchRequest,
    /// `error`: the number was used before, and its outcome is no longer known. `closed`: it was
    /// used for something else.
    NumberUsed,
    /// `closed`: the message is not JSON, has an unknown kind or a wrong type, or is too large.
    BadMessage,
    /// `closed`: no `hello` came first, or a second one came.
    Hello,
    /// `closed`: there is no such session, or the secret or the principal is not the session's. The
    /// session to resume has expired or ended, and all its holds with it, if the client's
    /// credentials are right.
    NoSuchSession,
    /// `closed`: the session was resumed by another connection.
    Resumed,
    /// `closed`: the session has expired. All its holds have ended.
    Expired,
    /// `closed`: the client does not read, or sends faster than it is answered.
    TooSlow,
    /// A kind that this version does not know.
    #[serde(other)]
    Other,
}

impl Code {
    /// All codes that a node sends.
    pub const ALL: [Code; 15] = [
        Code::BadRequest,
        Code::NotGranted,
        Code::Unavailable,
        Code::TooMany,
        Code::Busy,
        Code::Stopping,
        Code::Ended,
        Code::NoSuchRequest,
        Code::NumberUsed,
        Code::BadMessage,
        Code::Hello,
        Code::NoSuchSession,
        Code::Resumed,
        Code::Expired,
        Code::TooSlow,
    ];

    /// Its name in JSON, in logs and in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Code::BadRequest => "bad-request",
            Code::NotGranted => "not-granted",
            Code::Unavailable => "unavailable",
            Code::TooMany => "too-many",
            Code::Busy => "busy",
            Code::Stopping => "stopping",
            Code::Ended => "ended",
            Code::NoSuchRequest => "no-such-request",
            Code::NumberUsed => "number-used",
            Code::BadMessage => "bad-message",
            Code::Hello => "hello",
            Code::NoSuchSession => "no-such-session",
            Code::Resumed => "resumed",
            Code::Expired => "expired",
            Code::TooSlow => "too-slow",
            Code::Other => "other",
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
