//! Types shared by all of Soloist: names, addresses, fences, moments, durations, and the JSON that
//! a node and its clients exchange.
//!
//! This crate does no I/O. The only code that reads a clock is behind the feature `clock`.

mod address;
#[cfg(feature = "clock")]
mod clock;
mod duration;
mod fence;
mod int_or_float;
mod json;
mod lock_name;
mod moment;
mod node_name;

pub use address::{Address, AddressError, Host};
#[cfg(feature = "clock")]
pub use clock::Reading;
pub use duration::{DurationError, parse_duration};
pub use fence::Fence;
pub use json::*;
pub use lock_name::{LockName, LockNameError};
pub use moment::{Moment, NAP_MAX, nap, wait_until};
pub use node_name::{NodeName, NodeNameError};
