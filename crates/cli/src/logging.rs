//! The log of commands that run for long: on stderr, one line an event.

use std::io::{IsTerminal, stderr};

use tracing_subscriber::EnvFilter;

/// Writes what is at least this important; RUST_LOG says otherwise. What matters of Raft, keepers say themselves.
pub fn start(level: &str) {
    let filter = EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| EnvFilter::new(format!("{level},openraft=off")));
    let no_colour = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(stderr().is_terminal() && !no_colour)
        .with_writer(stderr)
        .init();
}
