//! The log of long-running commands: on stderr, one line per event.

use std::io::{IsTerminal, stderr};
use std::sync::atomic::{AtomicBool, Ordering};

use tracing::Level;
use tracing_subscriber::filter::{Targets, dynamic_filter_fn};
use tracing_subscriber::prelude::*;

use crate::output;

/// Logs events of at least this level, unless RUST_LOG sets other levels (`debug`, or per target,
/// as in `info,soloist_node=debug`). Raft's own log is off unless RUST_LOG names it: keepers log
/// the events of Raft that matter.
pub(crate) fn start(level: &str) {
    let with_raft_off = |wanted: &str| match wanted.contains("openraft") {
        true => wanted.to_owned(),
        false => format!("{wanted},openraft=off"),
    };
    let parse = |wanted: &str| with_raft_off(wanted).parse::<Targets>();
    let default = || parse(level).expect("a level's name");
    let filter = match std::env::var("RUST_LOG") {
        Ok(wanted) => parse(&wanted).unwrap_or_else(|error| {
            eprintln!("soloist: RUST_LOG={wanted:?} is ignored: {error}; use a level, such as debug, or target=level");
            default()
        }),
        Err(_) => default(),
    };
    let lines = tracing_subscriber::fmt::layer()
        .with_ansi(stderr().is_terminal() && !output::no_colour())
        .with_writer(stderr);
    let if_wanted = dynamic_filter_fn(|line, _| {
        *line.level() == Level::ERROR || !ONLY_ERRORS.load(Ordering::Relaxed)
    });
    tracing_subscriber::registry()
        .with(lines)
        .with(filter)
        .with(if_wanted)
        .init();
}

static ONLY_ERRORS: AtomicBool = AtomicBool::new(false);

/// Logs only errors from now on, unless RUST_LOG is set. For a cluster that stops as a whole: its
/// nodes lose each other, which is expected.
pub(crate) fn only_errors() {
    ONLY_ERRORS.store(std::env::var_os("RUST_LOG").is_none(), Ordering::Relaxed);
}
