//! Client for Soloist, and a fence gate that rejects stale holders at the protected resource.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use std::time::Duration;
//! use soloist_client::{Client, Target};
//!
//! let client = Client::connect(Target::from_env()?).await?;
//! let guard = client.acquire("nightly").wait(Duration::from_secs(5)).await?;
//! tokio::select! {
//!     () = work(guard.fence()) => guard.release().await?,
//!     loss = guard.lost() => eprintln!("stopped working: {loss}"),
//! }
//! # Ok(())
//! # }
//! # async fn work(_fence: u64) {}
//! ```

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
mod loss;
mod path;
mod target;
mod tls;

pub use acquire::{Acquire, AcquireError};
pub use client::Client;
pub use clock::reached;
pub use error::{Attempt, ClientError};
pub use events::Events;
pub use guard::{Guard, ReleaseError};
pub use loss::{Loss, LossReason};
pub use soloist_api::Moment;
pub use target::{Target, TargetError};

/// Types of the HTTP API, and others that nodes and clients share.
pub use soloist_api as api;
