//! Signals that are passed on to the command.

use std::future::poll_fn;
use std::task::Poll;

use anyhow::{Context, Result};
use rustix::process::Signal;
use tokio::signal::unix::{self, SignalKind};

use crate::signals::is_ignored;

const PASSED_ON: [Signal; 6] = [
    Signal::INT,
    Signal::TERM,
    Signal::HUP,
    Signal::QUIT,
    Signal::USR1,
    Signal::USR2,
];

/// Handlers for the signals that are passed on.
pub(super) struct Signals(Vec<(Signal, unix::Signal)>);

impl Signals {
    /// Installs the handlers. Signals that are ignored (nohup, background jobs) stay ignored, and
    /// the command inherits that.
    pub(super) fn new() -> Result<Self> {
        let mut signals = Vec::new();
        for signal in PASSED_ON {
            let number = signal.as_raw();
            if !is_ignored(number) {
                let stream = unix::signal(SignalKind::from_raw(number))
                    .with_context(|| format!("cannot handle signal {number}"))?;
                signals.push((signal, stream));
            }
        }
        Ok(Signals(signals))
    }

    /// Waits for the next signal.
    pub(super) async fn next(&mut self) -> Signal {
        poll_fn(|context| {
            for (signal, stream) in &mut self.0 {
                if stream.poll_recv(context).is_ready() {
                    return Poll::Ready(*signal);
                }
            }
            Poll::Pending
        })
        .await
    }
}
