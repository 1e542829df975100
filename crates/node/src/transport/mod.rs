//! What links, membership and keepers share on the node's one port: dialling, TLS, and the hello.
//!
//! - `hello`: types and wire format of the hello and its reply, and the rules for which nodes may
//!   talk to each other. No I/O.
//! - `endpoint`: this node's identity on its connections. `security`: TLS or plain TCP.
//! - `dial`: opens a connection and sends the hello. `accept`: accepts a connection and reads its
//!   hello.
//! - `listen`: listening sockets. `strangers`: chooses the connection to close when too many are
//!   unauthenticated.
//! - `error`: failures of a connection. `farewell`: closes one so that the last message arrives.
//!
//! Invariants: nothing here knows the meaning of a message after the hello. Nothing of a protocol
//! is read or written before both sides have checked both names, the version and the cluster.

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

/// A stream of bytes in both directions.
pub trait Io: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

/// A connection, with or without TLS.
pub type Stream = Box<dyn Io>;
