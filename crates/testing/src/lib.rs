//! What the tests of several crates share. Crates depend on it for their tests only.
//!
//! - [`referee`]: asserts mutual exclusion. [`proxy`]: connections that are delayed and cut.
//! - [`free`]: addresses to listen on. [`queue`]: connections waiting to be accepted.
//!   [`swallowing`]: an address that swallows packets.
//! - [`client_hello`]: the first bytes of a TLS client. [`golden_file`]: text that must not change.
//! - [`wait`]: waiting for a condition. [`http_get`]: a node's HTTP API without the client.
//! - [`scripts`]: commands for `soloist lock`. [`programs`]: what must be installed for some tests.
//! - `alone` and `served`, with the feature `node`: nodes in this process.

#[cfg(feature = "node")]
pub mod alone;
pub mod client_hello;
pub mod free;
pub mod golden_file;
pub mod http_get;
pub mod programs;
pub mod proxy;
pub mod queue;
pub mod referee;
pub mod scripts;
#[cfg(feature = "node")]
pub mod served;
pub mod swallowing;
pub mod wait;
