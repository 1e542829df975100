//! Termination signals.

use std::fs;

use anyhow::{Context, Result};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// SIGINT (Ctrl-C), SIGTERM, and SIGHUP: the terminal was closed.
pub(crate) struct Termination {
    interrupt: Signal,
    terminate: Signal,
    /// `None` if it is ignored, as with nohup(1).
    hangup: Option<Signal>,
}

impl Termination {
    /// Installs handlers. From now on these signals do not end the process by themselves.
    pub(crate) fn new() -> Result<Self> {
        let listen = |kind| signal(kind).context("cannot handle signals");
        let is_ignored = is_ignored(SignalKind::hangup().as_raw_value());
        Ok(Termination {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            hangup: match is_ignored {
                true => None,
                false => Some(listen(SignalKind::hangup())?),
            },
        })
    }

    /// Waits for the next signal.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            () = next(&mut self.hangup) => {}
        }
    }
}

async fn next(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => drop(signal.recv().await),
        None => std::future::pending().await,
    }
}

/// Returns whether this process ignores a signal. A handler for it would change that.
pub(crate) fn is_ignored(number: i32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let bits = line.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok());
    bits.unwrap_or(0) & (1 << (number - 1)) != 0
}
