//! `soloist watch`.

use anyhow::Result;
use soloist_client::ClientError;
use soloist_client::api::{Event, EventKind};

use crate::connect::Connect;
use crate::runtime::block_on;
use crate::show::{count, quoted, time};
use crate::{Verdict, help, output};

/// Show the events of the locks on a node as they happen
///
/// Prints when a client of this node starts to wait for a lock, gives up, acquires it, releases it
/// or loses it. Clients of other nodes are not shown: watch each node, or see `soloist locks` for
/// the whole cluster. Stops on Ctrl-C, or when the node stops.
#[derive(clap::Args)]
#[command(after_long_help = help::FINDING)]
pub(crate) struct Args {
    /// Show only locks whose name matches; * matches anything, as in billing/*
    #[arg(long, value_name = "PATTERN")]
    lock: Option<String>,

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
        let mut events = client.events().await?;
        if !self.json {
            let cluster = client.cluster().await?;
            output::complain(&format!(
                "watching {}, one of {}; only clients of this node are shown",
                cluster.node,
                count(cluster.nodes.len(), "node")
            ));
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
    let day_ms = event.at_unix_ms % (24 * 60 * 60 * 1000);
    let (seconds, ms) = (day_ms / 1000, day_ms % 1000);
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let mut line = format!(
        "{hours:02}:{minutes:02}:{seconds:02}.{ms:03}Z  {:<8}",
        event.event.name()
    );
    if let Some(missed) = event.missed {
        return line + &format!("  {missed} events on {}: they came too fast\n", event.node);
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
