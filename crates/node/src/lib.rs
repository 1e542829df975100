//! A Soloist node: named locks, agreed upon with its peers over TLS links.
//!
//! A program that has a node inside asks it for locks with the methods of the trait [`Locks`]. A
//! client of a node elsewhere has the same methods (the crate `soloist-client`), so a program that
//! is generic over `Locks` runs with either.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use std::time::Duration;
//! use soloist_node::config::Config;
//! use soloist_node::{Guard, Locks, Node};
//!
//! // The folder was made by `soloist init`, and has the node's certificate, too.
//! let node = Node::start(Config::load("soloist.toml".as_ref())?).await?;
//! node.ready().await;
//! let lock = node.lock("nightly")?;
//!
//! // The work is dropped if the lock is lost.
//! lock.with(|fence| work(fence)).await?;
//!
//! // The same by hand, with a guard.
//! if let Some(guard) = lock.try_acquire().await? {
//!     tokio::select! {
//!         () = work(guard.fence()) => guard.release().await?,
//!         loss = guard.lost() => eprintln!("stopped working: {loss}"),
//!     }
//! }
//!
//! // Others need not wait for this node's lease.
//! node.stop(Duration::from_secs(30)).await;
//! # Ok(())
//! # }
//! # async fn work(_fence: soloist_node::Fence) {}
//! ```
//!
//! For experiments and tests, [`LocalCluster`](local::LocalCluster) starts a whole cluster in one
//! process.
//!
//! # What happens when
//!
//! - **The guard is dropped**: the lock is released immediately. If the process is killed instead,
//!   others get its locks when the node's lease has expired.
//! - **A request is dropped** before it is granted: it is cancelled. If the lock arrives later, it
//!   is passed on.
//! - **The node stops** ([`Node::stop`]): no request is admitted any more, and holds continue for
//!   the given time. Then [`Guard::lost`] returns, and [`Guard::valid_for`] says how much time is
//!   left to finish and to release. Then the node leaves.
//! - **The process is restarted**: the node is a new member. What it held before is free when the
//!   lease of its former incarnation has expired.
//! - **The node is cut off** from the keepers: when its lease has expired, its holds are lost, and
//!   requests wait until it is a member again.
//! - **The runtime ends** without `stop`: the node's lease expires, as if the process had died.
//!
//! # Inside
//!
//! The lock table ([`soloist_core::locks`]) is a pure state machine that drives the algorithms.
//! [Links](soloist_transport::links) carry its messages. [`Node`] is the thin shell that combines
//! both.

// Hidden: for the binary `soloist` and for tests, with types of openraft.
#[doc(hidden)]
pub mod cluster_memory;
pub mod config;
#[doc(hidden)]
pub mod files;
#[cfg(test)]
mod golden;
pub mod http;
#[doc(hidden)]
pub mod keepers;
pub mod local;
mod membership;
mod metrics;
mod mutant;
mod node;

pub use membership::{FIRST_START, MembershipError, Shown, probe};
#[cfg(feature = "mutants")]
pub use mutant::Mutant;
pub use node::{Events, Node, NodeGuard, StartError};
pub use soloist_api::{
    AcquireError, EndReason, Event, EventKind, Fence, Guard, Lock, LockName, LockNameError, Locks,
    Loss, Moment, ReleaseError, Request, WithLockError,
};
#[cfg(feature = "mutants")]
pub use soloist_core::{skip_epochs, skip_fences};

/// Certificates, keys and roles of nodes and clients.
pub mod identity {
    pub use soloist_transport::identity::{
        Authority, Identity, IdentityError, Issued, Role, Validity,
    };
}
