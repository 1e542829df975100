//! `soloist watch`.

use anyhow::Result;
use soloist_client::ClientError;
use soloist_client::api::{Event, EventKind};
use soloist_core::record::EVENTS_KEPT;

use crate::connect::Connect;
use crate::runtime::block_on;
use crate::show::{count, quoted, time, time_of_day};
use crate::{Verdict, help, output};

const ABOUT: &str = "Show the events of locks as they happen, on one node or on all";

fn long_about() -> String {
    format!(
        "{ABOUT}\n\nPrints when a client starts to wait for a lock, gives up, acquires it, releases \
         it or loses it: clients of the node that is asked, or with --all clients of all members, \
         a moment later. With --all --json, each event has a cursor; --after continues after it, \
         on any node. A member keeps its last {EVENTS_KEPT} events; if some are gone, `missed` says \
         on which node. Stops on Ctrl-C, or when the node stops."
    )
}

/// Arguments of `soloist watch`.
#[derive(clap::Args)]
#[command(about = ABOUT, long_about = long_about(), after_long_help = help::FINDING)]
pub(crate) struct Args {
    /// Show only locks whose name matches; * matches anything, as in billing/*
    #[arg(long, value_name = "PATTERN")]
    lock: Option<String>,

    /// Show the events of all members
    #[arg(long)]
    all: bool,

    /// Show only locks whose name starts with this
    #[arg(
        long,
        value_name = "TEXT",
        requires = "all",
        default_value = "",
        hide_default_value = true
    )]
    prefix: String,

    /// Begin after the event with this cursor
    #[arg(long, value_name = "CURSOR", requires = "all")]
    after: Option<String>,

    #[command(flatten)]
    connect: Connect,

    /// Print JSON, one event per line
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) fn run(self) -> Result<Verdict> {
        block_on(self.watch())
    }

    async fn watch(self) -> Result<Verdict> {
        let client = self.connect.client().await?;
        let mut events = match self.all {
            true => {
                client
                    .all_events(&self.prefix, self.after.as_deref())
                    .await?
            }
            false => client.events().await?,
        };
        if !self.json {
            let cluster = client.cluster().await?;
            let (node, nodes) = (&cluster.node, count(cluster.nodes.len(), "node"));
            output::complain(&match self.all {
                true => format!("watching {nodes} through {node}"),
                false => format!(
                    "watching {node}, one of {nodes}; only clients of this node are shown: see --all"
                ),
            });
        }
        loop {
            let event = match events.next().await {
                Ok(Some(event)) => event,
                Ok(None) => return Ok(Verdict::Well),
                Err(error @ ClientError::Broken { .. }) => {
                    return Err(anyhow::Error::new(error).context("the node has stopped"));
                }
                Err(error) => return Err(error.into()),
            };
            let wanted = self.lock.as_deref();
            let missed = event.event == EventKind::Missed;
            if !missed && !wanted.is_none_or(|pattern| matches(pattern, &event.lock)) {
                continue;
            }
            let line = match self.json {
                true => serde_json::to_string(&event)? + "\n",
                false => line(&event),
            };
            if !output::line_is_read(&line)? {
                return Ok(Verdict::Well);
            }
        }
    }
}

fn line(event: &Event) -> String {
    let at = time_of_day(event.at_unix_ms);
    let mut line = format!("{at}  {:<8}", event.event.name());
    if event.event == EventKind::Missed {
        let events = match event.missed {
            Some(missed) => format!("{missed} events"),
            None => "an unknown number of events".to_owned(),
        };
        return line + &format!("  {events} on {}: they were not kept\n", event.node);
    }
    line += &format!(
        "  {}  {}, {}",
        quoted(&event.lock),
        event.node,
        quoted(&event.owner),
    );
    if let Some(fence) = event.fence {
        line += &format!(", fence {fence}");
    }
    if let Some(after_us) = event.after_us {
        line += &format!(", after {}", time(after_us / 1000));
    }
    if let Some(reason) = event.reason {
        line += &format!(", {reason}");
    }
    line + "\n"
}

/// Returns whether a name matches a pattern in which `*` matches any text.
fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else {
        return false;
    };
    let Some(last) = parts.next_back() else {
        return rest.is_empty();
    };
    // Greedy matching is safe: the leftmost match of each part leaves the most text for the others.
    for part in parts {
        match rest.find(part) {
            Some(place) => rest = &rest[place + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_matches_anything() {
        for (pattern, name, wanted) in [
            ("a", "a", true),
            ("a", "ab", false),
            ("*", "", true),
            ("billing/*", "billing/eu/1", true),
            ("billing/*", "billing", false),
            ("*/1", "a/1", true),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-c-b", false),
            ("ab*ba", "aba", false),
        ] {
            assert_eq!(matches(pattern, name), wanted, "{pattern} {name}");
        }
    }
}
