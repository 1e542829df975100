//! Measures locks that clients take through a server, and what the machine itself can do, in the
//! same run.
//!
//! `soloist bench` measures Soloist with it, and the crate `compare` other systems in the same way.
//! A system is anything that implements [`System`]; [`workloads::measure`] runs all workloads
//! against it.

mod course;
pub mod floors;
mod measured;
mod placement;
mod report;
mod run;
mod samples;
mod usage;
pub mod workloads;

pub use measured::{Bound, Cost, Measured, Ratio, Repeats, microseconds};
pub use placement::{Cores, Placement};
pub use report::{Report, rate};
pub use run::{Client, Failure, System};
pub use samples::{Samples, Times};
pub use usage::Usage;

use std::io;

/// Why something cannot be measured.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system refused something.
    #[error("{what}")]
    Io {
        /// What cannot be done.
        what: &'static str,
        /// Why.
        source: io::Error,
    },
    /// A client failed.
    #[error("a client failed")]
    Client(#[source] Failure),
}

impl Error {
    fn io(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Error::Io { what, source }
    }
}
