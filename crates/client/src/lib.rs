//! Client for Soloist, and a fence gate that rejects stale holders at the protected resource.
//!
//! A [`Client`] asks a node for locks, through the node's HTTP API. Its methods are those of the
//! trait [`Locks`], which a node inside the program has as well (the crate `soloist-node`): a
//! program that is generic over `Locks` runs with either.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use std::time::Duration;
//! use soloist_client::{Client, Guard, Locks, Target};
//!
//! let client = Client::connect(Target::from_env()?).await?;
//! let lock = client.lock("nightly")?;
//!
//! // The work is dropped if the lock is lost.
//! lock.with(|fence| work(fence)).await?;
//!
//! // The same by hand, with a guard. It waits for at most 5 s.
//! let guard = lock.acquire_within(Duration::from_secs(5)).await?;
//! tokio::select! {
//!     () = work(guard.fence()) => guard.release().await?,
//!     loss = guard.lost() => eprintln!("stopped working: {loss}"),
//! }
//! # Ok(())
//! # }
//! # async fn work(_fence: soloist_client::Fence) {}
//! ```
//!
//! # Which node
//!
//! [`Target::from_env`] reads these variables:
//!
//! - `SOLOIST_API`: the node, as `unix:/path/of.sock`, `/path/of.sock`, `https://host:port`, or
//!   `up` for the cluster of `soloist up`. Without it, [the system's node or the
//!   folder's](Target::default).
//! - `SOLOIST_CA`: for `https`, the file with the cluster's CA.
//! - `SOLOIST_TOKEN`, or `SOLOIST_TOKEN_FILE`: the token, or the file that contains it.
//! - `SOLOIST_CERTIFICATE` and `SOLOIST_KEY`: the files with the client's certificate and its key.
//!
//! # What happens when
//!
//! - **The guard is dropped**: the lock is released in the background. A program that exits should
//!   await [`Client::settle`] first; otherwise others wait until the hold expires.
//! - **A request is dropped** before it is answered: it is cancelled in the background.
//! - **The process dies**: the hold expires after its time to live, which is the node's setting or
//!   [`ClientBuilder::ttl`].
//! - **The connection breaks**: the guard renews its hold over a new one. A waiting request is sent
//!   again, and keeps its place in the queue.
//! - **The node stops**: [`Guard::lost`] returns immediately, and [`Guard::valid_for`] says how
//!   much time is left to finish and to release. Requests fail with
//!   [`AcquireError::Unavailable`]; another node may serve them.
//! - **The node is restarted or cut off**: its holds are lost. The guard says so as soon as it
//!   learns of it, and at the latest when the time that it was promised has passed by the client's
//!   own clock.
//! - **The runtime ends**: holds are renewed on the runtime in which the client was connected, so
//!   they expire.
//!
//! There is no blocking client. A synchronous program creates a multi-threaded tokio runtime and
//! calls `block_on`; such a runtime renews holds between these calls as well.
//!
//! More in the examples: `client_guard`, `fence_gate`, and `either_way`, which runs one program
//! with a client and with a node inside.

#[cfg(not(target_os = "linux"))]
compile_error!("Soloist runs on Linux only: it needs pidfds, /proc and CLOCK_MONOTONIC_RAW");

mod acquire;
mod background;
mod client;
mod clock;
mod connection;
mod error;
mod events;
pub mod gate;
mod guard;
mod keeper;
mod path;
mod target;
mod tls;

pub use client::{Client, ClientBuilder};
pub use clock::reached;
pub use error::{Attempt, ClientError};
pub use events::Events;
pub use guard::ClientGuard;
pub use soloist_api::{
    AcquireError, EndReason, Fence, Guard, Lock, LockName, LockNameError, Locks, Loss, Moment,
    ReleaseError, Request, WithLockError,
};
pub use target::{Target, TargetError};

/// Types of the HTTP API, and others that nodes and clients share.
pub use soloist_api as api;

/// Compiles the Rust in `README.md`.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
