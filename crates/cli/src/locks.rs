//! `soloist locks`.

use std::fmt::Write as _;

use anyhow::Result;
use soloist_client::api::{LockInfo, Locks};

use crate::connect::{Connect, FINDING, block_on};
use crate::who::{quoted, time};
use crate::{Verdict, output};

/// List all locks that are held or waited for
///
/// Exit codes: 0 success; 2 invalid input; 69 no node can be reached; 74 the list may be
/// incomplete, because some nodes do not answer, the node that was asked is cut off, or the epoch
/// is changing.
#[derive(clap::Args)]
#[command(after_long_help = FINDING)]
pub struct Args {
    #[command(flatten)]
    connect: Connect,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Args {
    pub fn run(self) -> Result<Verdict> {
        let locks = block_on(async { Ok(self.connect.client().await?.locks().await?) })?;
        if self.json {
            output::json(&locks)?;
        } else {
            output::text(&table(&locks))?;
        }
        Ok(output::verdict(locks.reason.as_deref(), Verdict::Well))
    }
}

fn table(locks: &Locks) -> String {
    if locks.locks.is_empty() {
        return match locks.reason {
            Some(_) => "no lock is known to be held or waited for\n".to_owned(),
            None => "no lock is held or waited for\n".to_owned(),
        };
    }
    let names = locks
        .locks
        .iter()
        .map(|lock| quoted(&lock.name).chars().count());
    let name = names.max().unwrap_or(0).max(4);
    let mut page = format!(
        "{:<name$}  {:<7}  {:>7}  {:<20}  {:>9}  {:>8}  holder\n",
        "lock", "state", "waiting", "algorithm", "held for", "fence"
    );
    for lock in &locks.locks {
        line(lock, name, &mut page);
    }
    page
}

fn line(lock: &LockInfo, name: usize, page: &mut String) {
    let (held_for, fence, who) = match &lock.holder {
        None => (String::new(), String::new(), String::new()),
        Some(holder) => (
            time(holder.held_for_ms),
            holder.fence.to_string(),
            format!("{} on {}", quoted(&holder.owner), holder.node),
        ),
    };
    let _ = writeln!(
        page,
        "{:<name$}  {:<7}  {:>7}  {:<20}  {held_for:>9}  {fence:>8}  {who}",
        quoted(&lock.name),
        crate::who::state(lock.state),
        lock.waiting,
        lock.algorithm,
    );
}
