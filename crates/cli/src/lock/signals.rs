//! Signals that are passed on to the command.

use std::fs;
use std::future::poll_fn;
use std::task::Poll;

use anyhow::{Context, Result};
use rustix::process::Signal;
use tokio::signal::unix::{self, SignalKind};

const PASSED_ON: [Signal; 6] = [
    Signal::INT,
    Signal::TERM,
    Signal::HUP,
    Signal::QUIT,
    Signal::USR1,
    Signal::USR2,
];

/// Signals to this process, which no longer do what they otherwise would.
pub struct Signals(Vec<(Signal, unix::Signal)>);

impl Signals {
    /// Those that are ignored already stay so (nohup, jobs in the background): the command inherits that.
    pub fn new() -> Result<Self> {
        let ignored = ignored();
        let mut signals = Vec::new();
        for signal in PASSED_ON {
            let number = signal.as_raw();
            if ignored & (1 << (number - 1)) == 0 {
                let stream = unix::signal(SignalKind::from_raw(number))
                    .with_context(|| format!("cannot handle signal {number}"))?;
                signals.push((signal, stream));
            }
        }
        Ok(Signals(signals))
    }

    /// The next signal.
    pub async fn next(&mut self) -> Signal {
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

/// A bit for each signal that is ignored.
fn ignored() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let bits = line.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok());
    bits.unwrap_or(0)
}
