//! Types shared by all of Soloist: names, addresses, fences, moments, durations, time-to-live
//! arithmetic, the lock API ([`Locks`]), and the JSON that a node and its clients exchange.
//!
//! This crate does no I/O. The only code that reads a clock is behind the feature `clock`.

// The node and the client need the clock, so this is the only error on other platforms.
#[cfg(all(feature = "clock", not(target_os = "linux")))]
compile_error!("Soloist runs on Linux only: it needs pidfds, /proc and CLOCK_MONOTONIC_RAW");

mod address;
#[cfg(all(feature = "clock", target_os = "linux"))]
mod clock;
mod compiled_here;
pub mod dashboard;
mod duration;
mod end_reason;
mod fence;
#[cfg(test)]
mod golden;
mod int_or_float;
mod json;
mod lock_error;
mod lock_name;
mod locks;
mod moment;
mod node_name;
#[doc(hidden)]
pub mod obstacle;
mod owner;
pub mod session;
pub mod ttl;

pub use address::{Address, AddressError, Host};
#[cfg(all(feature = "clock", target_os = "linux"))]
pub use clock::Reading;
pub use compiled_here::compiled_here;
pub use duration::{DurationError, parse_duration};
pub use end_reason::EndReason;
pub use fence::{Fence, FenceError};
pub use json::*;
pub use lock_error::{AcquireError, Loss, ReleaseError, WithLockError};
pub use lock_name::{LockName, LockNameError};
pub use locks::{Guard, Lock, Locks, Request};
pub use moment::{Moment, NAP_MAX, nap, wait_until};
pub use node_name::{NodeName, NodeNameError};
pub use owner::{OwnerError, check_owner};
