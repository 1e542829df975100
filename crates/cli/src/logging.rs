//! The log of commands that run for long: on stderr, one line an event.

use std::io::{IsTerminal, stderr};

use tracing_subscriber::EnvFilter;

/// Writes what is at least this important; RUST_LOG says otherwise. What matters of Raft, keepers say themselves.
pub fn start(level: &str) {
    let quiet = |wanted: &str| match wanted.contains("openraft") {
        true => wanted.to_owned(),
        false => format!("{wanted},openraft=off"),
    };
    let wanted = std::env::var("RUST_LOG").ok();
    let wanted = wanted.and_then(|wanted| EnvFilter::try_new(quiet(&wanted)).ok());
    let filter = wanted.unwrap_or_else(|| EnvFilter::new(quiet(level)));
    let no_colour = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(stderr().is_terminal() && !no_colour)
        .with_writer(stderr)
        .init();
}
