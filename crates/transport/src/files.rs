//! The limit of open files. Each connection takes one.

use rustix::process::{Resource, getrlimit, setrlimit};

/// The limit to assume if there is none.
const UNLIMITED: u64 = 1 << 20;

/// Raises this process's soft limit of open files to its hard limit, and returns the limit now in
/// force.
pub fn raise_limit() -> u64 {
    let mut limits = getrlimit(Resource::Nofile);
    if limits.current != limits.maximum {
        limits.current = limits.maximum;
        if let Err(error) = setrlimit(Resource::Nofile, limits) {
            tracing::warn!("cannot raise the limit of open files: {error}");
        }
    }
    limit()
}

/// Returns the soft limit of open files.
pub fn limit() -> u64 {
    let limits = getrlimit(Resource::Nofile);
    limits.current.unwrap_or(UNLIMITED)
}
