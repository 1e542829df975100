//! Connections between Soloist's nodes, for all protocols on a node's one port: links, membership
//! and keepers.
//!
//! - `hello`: types and wire format of the hello and its reply, and the rules for which nodes may
//!   talk to each other. No I/O.
//! - `endpoint`: this node's identity on its connections. `security`: TLS or plain TCP.
//! - `dial`: opens a connection and sends the hello. `accept`: accepts a connection and reads its
//!   hello. `backoff`: pauses between dials.
//! - [`identity`]: certificates, keys and roles; TLS configurations from them.
//! - [`links`]: reliable ordered channels between members.
//! - `listen`: listening sockets. `strangers`: chooses the connection to close when too many are
//!   unauthenticated. `throttle`: limits log lines about the same peer.
//! - `error`: failures of a connection. `farewell`: closes one so that the last message arrives.
//!
//! Invariants: nothing here knows the meaning of a message after the hello. Nothing of a protocol
//! is read or written before both sides have checked both names, the version and the cluster.

mod accept;
mod backoff;
mod dial;
mod endpoint;
mod error;
mod farewell;
pub mod files;
pub mod hello;
pub mod identity;
pub mod links;
mod listen;
mod security;
mod sha256;
mod strangers;
mod throttle;

use tokio::io::{AsyncRead, AsyncWrite};

pub use accept::{Arrival, Declined};
pub use backoff::Backoff;
pub use dial::Dialled;
pub use endpoint::Endpoint;
pub use error::{ConnectionError, broken, closed_by, late, shown};
pub use farewell::{farewell, write};
pub use hello::{Code, Hello, Purpose, Refusal, Reply, Versions};
pub use listen::{BACKLOG, Turns, lengthen_queue};
pub use security::Security;
pub use sha256::sha256;
pub use strangers::{Stranger, Strangers};
pub use throttle::{Refusals, Throttle};

/// A stream of bytes in both directions.
pub trait Io: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

/// A connection, with or without TLS.
pub type Stream = Box<dyn Io>;
