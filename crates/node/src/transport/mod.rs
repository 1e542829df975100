//! What links, membership and keepers share on the node's one port: dialling, TLS, and one hello.
//!
//! - `hello`: the hello and its reply as types and bytes, and the rules of who may speak to whom.
//!   Without I/O.
//! - `endpoint`: what this node shows of itself. `security`: TLS or plain TCP.
//! - `dial`: opens a connection and says hello. `accept`: takes a connection and reads its hello.
//! - `listen`: listening sockets. `strangers`: which connection is closed when too many have not shown
//!   whose they are.
//! - `error`: how a connection fails. `farewell`: how one is closed so that the last message arrives.
//!
//! Invariants: nothing here knows what a message after the hello means. Nothing of a protocol is
//! read or written before both names, the version and the cluster were checked on both sides.

mod accept;
mod dial;
mod endpoint;
mod error;
mod farewell;
pub mod hello;
mod listen;
mod security;
mod strangers;

use tokio::io::{AsyncRead, AsyncWrite};

pub use accept::{Arrival, Declined};
pub use dial::Dialled;
pub use endpoint::Endpoint;
pub use error::ConnectionError;
pub use hello::{Code, Hello, Purpose, Refusal, Reply, Versions};
pub use security::Security;

pub(crate) use error::{broken, closed_by, late, shown};
pub(crate) use farewell::{farewell, write};
pub(crate) use listen::{BACKLOG, Turns, lengthen_queue};
pub(crate) use strangers::{Stranger, Strangers};

/// Bytes both ways.
pub trait Io: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

/// A connection, with TLS or without.
pub type Stream = Box<dyn Io>;
