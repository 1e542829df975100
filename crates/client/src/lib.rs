//! Client for Soloist, and a fence gate that rejects stale holders at the protected resource.
//!
//! A [`Client`] asks a node for locks, in a [session](soloist_api::session) over one connection.
//! Its methods are those of the trait [`Locks`], which a node inside the program has as well (the
//! crate `soloist-node`): a program that is generic over `Locks` runs with either.
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
//! - `SOLOIST_API`: the node, or several nodes of a cluster, separated by commas. A node is given
//!   as `unix:/path/of.sock`, `/path/of.sock`, `https://host:port`, or `up` for the cluster of
//!   `soloist up`. Without it, [the system's node or the folder's](Target::default).
//! - `SOLOIST_CA`: for `https`, the file with the cluster's CA.
//! - `SOLOIST_TOKEN`, or `SOLOIST_TOKEN_FILE`: the token, or the file that contains it.
//! - `SOLOIST_CERTIFICATE` and `SOLOIST_KEY`: the files with the client's certificate and its key.
//!
//! # What happens when
//!
//! - **The guard is dropped**: the release is sent at once, and nobody waits for the answer. A
//!   program that exits should await [`Client::settle`] first; otherwise others may wait until the
//!   session expires. [`Guard::release`] waits for the answer.
//! - **A request is dropped** before it is answered: it is cancelled in the same way.
//! - **The client is dropped**, and all its clones, guards and requests with it: the node is told
//!   to end the session, and nobody waits for the answer.
//! - **The process dies**: its session expires after its time to live, which is the node's setting
//!   or [`ClientBuilder::ttl`], and all its holds with it.
//! - **The connection breaks**: the session is resumed over a new one. Holds are kept, and waiting
//!   requests keep their places in the queues.
//! - **The node stops**: [`Guard::lost`] returns immediately, and [`Guard::valid_for`] says how
//!   much time is left to finish and to release. Requests move to the next node if the target names
//!   several, and keep their deadlines. Otherwise they fail with [`AcquireError::Unavailable`].
//! - **The node dies or is cut off**: requests move in the same way. The next node makes the old
//!   one end what was requested there, so that no grant is left behind. Holds do not move: they are
//!   bound to their node, and renewed and released there if it can be reached again in time.
//! - **The node loses the cluster** and still answers: requests that wait move once it has been
//!   outside for longer than it takes to come back, and later ones at once if a hold was lost.
//! - **The node is restarted or cut off**: its holds are lost. The guard says so as soon as it
//!   learns of it, and at the latest when the time that it was promised has passed by the client's
//!   own clock.
//! - **The runtime ends**: the session is renewed on the runtime in which the client was connected,
//!   so it expires.
//!
//! One ping renews all holds of a client, however many there are. Requests may be made at the same
//! time from any number of tasks, and are sent without waiting for earlier answers. A task that
//! waits for an answer reads the connection itself, so a request of a client that is otherwise idle
//! wakes no other thread.
//!
//! Programs without tokio use [`blocking`].
//!
//! More in the examples: `client_guard`, `fence_gate`, and `either_way`, which runs one program
//! with a client and with a node inside.

mod acquire;
pub mod blocking;
mod client;
mod clock;
mod dial;
mod direct;
mod error;
mod events;
pub mod gate;
mod guard;
mod http;
mod path;
mod session;
mod target;
mod tls;

pub use client::{Client, ClientBuilder};
pub use clock::reached;
pub use error::{Attempt, ClientError};
pub use events::Events;
pub use guard::ClientGuard;
pub use session::{RawSession, SessionKey};
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
