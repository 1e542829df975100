//! A Soloist node: named locks, agreed upon with its peers over TLS links.
//!
//! The lock table ([`soloist_core::locks`]) is a pure state machine that drives the algorithms.
//! [`links`] carry its messages. [`Node`] is the thin shell that combines both.

#[cfg(not(target_os = "linux"))]
compile_error!("Soloist runs on Linux only: it needs pidfds, /proc and CLOCK_MONOTONIC_RAW");

pub mod cluster_memory;
pub mod config;
pub mod files;
pub mod http;
pub mod identity;
pub mod keepers;
pub mod links;
pub mod local;
mod membership;
mod metrics;
mod node;
mod sha256;
mod throttle;
pub mod transport;

pub use membership::{FIRST_START, MembershipError, Shown, probe};
pub use node::{AcquireError, Events, Guard, Lock, Lost, Node, StartError};
pub use soloist_api::{Event, EventKind, Moment};
#[cfg(feature = "mutants")]
pub use soloist_core::{skip_epochs, skip_fences};
