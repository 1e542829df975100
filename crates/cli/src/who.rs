//! `soloist who`.

use std::fmt::Write as _;

use anyhow::Result;
use soloist_client::api::{LockInfo, LockState};

use crate::connect::Query;
use crate::exit::FAILED;
use crate::show::{quoted, state, time};
use crate::{Verdict, help, output};

/// Show the holder and the waiters of a lock
#[derive(clap::Args)]
#[command(after_long_help = help::asking(
    &format!("0 the lock is held; {FAILED} it is free"),
    "no holder is known, but some nodes do not answer, the node that was asked is cut off, or the \
     epoch is changing",
))]
pub(crate) struct Args {
    /// Name of the lock
    name: String,

    #[command(flatten)]
    query: Query,
}

impl Args {
    pub(crate) fn run(self) -> Result<Verdict> {
        let lock = self
            .query
            .ask(async |client| client.lock_info(&self.name).await, page)?;
        Ok(match lock.state {
            LockState::Held => Verdict::Well,
            LockState::Free => Verdict::Failed,
            _ => {
                let reason = lock.reason.as_deref();
                output::verdict(reason.or(Some("the node gives no reason")), Verdict::Failed)
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
