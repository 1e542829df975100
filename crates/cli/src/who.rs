//! `soloist who`.

use std::fmt::Write as _;

use anyhow::Result;
use soloist_client::api::{LockInfo, LockState};

use crate::connect::{Connect, FINDING, block_on};
use crate::{Verdict, output};

/// Show the holder and the waiters of a lock
///
/// Exit codes: 0 the lock is held; 1 it is free; 2 invalid input; 69 no node can be reached; 74
/// unknown: no holder is known, but some nodes do not answer, the node that was asked is cut off,
/// or the epoch is changing.
#[derive(clap::Args)]
#[command(after_long_help = FINDING)]
pub struct Args {
    /// Name of the lock
    name: String,

    #[command(flatten)]
    connect: Connect,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Args {
    pub fn run(self) -> Result<Verdict> {
        let lock =
            block_on(async { Ok(self.connect.client().await?.lock_info(&self.name).await?) })?;
        if self.json {
            output::json(&lock)?;
        } else {
            output::text(&page(&lock))?;
        }
        Ok(match lock.state {
            LockState::Held => Verdict::Well,
            LockState::Free => Verdict::Failed,
            _ => {
                let reason = lock.reason.as_deref();
                output::verdict(
                    reason.or(Some("the node does not say why")),
                    Verdict::Failed,
                )
            }
        })
    }
}

fn page(lock: &LockInfo) -> String {
    let mut page = format!("{} is {}", quoted(&lock.name), state(lock.state));
    if let Some(holder) = &lock.holder {
        let _ = write!(
            page,
            " by {} on {} for {}, fence {}",
            quoted(&holder.owner),
            holder.node,
            time(holder.held_for_ms),
            holder.fence
        );
    }
    let _ = writeln!(page, " ({})", lock.algorithm);
    for waiter in &lock.waiters {
        let _ = writeln!(
            page,
            "{:>4}. {} on {} has waited {}",
            waiter.position,
            quoted(&waiter.owner),
            waiter.node,
            time(waiter.waited_for_ms)
        );
    }
    let more = lock.waiting.saturating_sub(lock.waiters.len() as u64);
    if more > 0 {
        let _ = writeln!(page, "      and {more} more");
    }
    if !lock.silent.is_empty() {
        let _ = writeln!(page, "no answer from {}", lock.silent.join(", "));
    }
    page
}

pub fn state(state: LockState) -> &'static str {
    match state {
        LockState::Free => "free",
        LockState::Held => "held",
        LockState::Changing => "changing",
        _ => "unknown",
    }
}

/// Quotes and escapes the text if it could affect the terminal or be misread.
pub fn quoted(text: &str) -> String {
    let plain = |c: char| !c.is_control() && c != '"' && c != '\\';
    match !text.is_empty() && text.chars().all(plain) && text.trim() == text {
        true => text.to_owned(),
        false => format!("{text:?}"),
    }
}

/// A duration in a readable unit.
pub fn time(ms: u64) -> String {
    let (seconds, minutes, hours) = (ms / 1000, ms / 60_000, ms / 3_600_000);
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..60_000 => format!("{seconds}.{} s", ms % 1000 / 100),
        60_000..3_600_000 => format!("{minutes} m {} s", seconds % 60),
        _ => format!("{hours} h {} m", minutes % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_names_are_readable() {
        assert_eq!(time(999), "999 ms");
        assert_eq!(time(1_999), "1.9 s");
        assert_eq!(time(61_000), "1 m 1 s");
        assert_eq!(time(3_660_000), "1 h 1 m");
        assert_eq!(quoted("a/b c"), "a/b c");
        assert_eq!(quoted("a\x1b[2J"), r#""a\u{1b}[2J""#);
        assert_eq!(quoted(""), r#""""#);
    }
}
