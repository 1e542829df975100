//! `soloist locks`.

use anyhow::Result;
use soloist_client::api::{LockInfo, LockList};

use crate::connect::Query;
use crate::show::{quoted, state, time};
use crate::table::Table;
use crate::{Verdict, help, output};

/// List all locks that are held or waited for
#[derive(clap::Args)]
#[command(after_long_help = help::asking(
    "0 success",
    "the list may be incomplete: some nodes do not answer, the node that was asked is cut off, or \
     the epoch is changing",
))]
pub(crate) struct Args {
    #[command(flatten)]
    query: Query,
}

impl Args {
    pub(crate) fn run(self) -> Result<Verdict> {
        let locks = self.query.ask(async |client| client.locks().await, page)?;
        Ok(output::verdict(locks.reason.as_deref(), Verdict::Well))
    }
}

fn page(locks: &LockList) -> String {
    if locks.locks.is_empty() {
        return match locks.reason {
            Some(_) => "no lock is known to be held or waited for\n".to_owned(),
            None => "no lock is held or waited for\n".to_owned(),
        };
    }
    let head = [
        "lock",
        "state",
        "waiting",
        "algorithm",
        "held for",
        "fence",
        "holder",
    ];
    let mut table = Table::new(head).optional(&["algorithm", "fence", "state"]);
    locks.locks.iter().for_each(|lock| table.row(row(lock)));
    table.fit(output::width())
}

fn row(lock: &LockInfo) -> [String; 7] {
    let holder = lock.holder.as_ref();
    let cell = |text: Option<String>| text.unwrap_or_default();
    [
        quoted(&lock.name),
        state(lock.state).to_owned(),
        lock.waiting.to_string(),
        lock.algorithm.clone(),
        cell(holder.map(|holder| time(holder.held_for_ms))),
        cell(holder.map(|holder| holder.fence.to_string())),
        cell(holder.map(|holder| format!("{} on {}", quoted(&holder.owner), holder.node))),
    ]
}
