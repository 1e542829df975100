//! `soloist node`: one node of a cluster.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use soloist_api::parse_duration;
use soloist_node::config::Config;
use soloist_node::{Node, api};

use crate::{Verdict, logging, output, signals};

/// Run one node of a cluster
///
/// `soloist init` makes the configuration, the certificate and the key. The node joins by itself, as the keepers let it; the first start
/// needs all of them. SIGTERM (or Ctrl-C) drains the node: nobody new gets in, and holds go on for as long as --drain says. After that, or
/// after a second signal, no hold is extended: the node waits until each is released or the time that its holder was promised is
/// over (at most the lease), and leaves, so that nobody waits for its lease.
/// Exit code 70: the node has failed (a panic); start it again.
/// The log goes to stderr; RUST_LOG says how much of it.
#[derive(clap::Args)]
pub struct Args {
    /// The node's configuration file
    #[arg(long, value_name = "FILE", default_value = "soloist.toml")]
    config: PathBuf,

    /// How long holds may go on when the node is told to stop, such as 30s or 5m
    #[arg(long, value_name = "D", default_value = "30s", value_parser = parse_duration)]
    drain: Duration,
}

impl Args {
    pub fn run(self) -> Result<Verdict> {
        let config = Config::load(&self.config)?;
        logging::start("info");
        super::runtime()?.block_on(self.serve(config))
    }

    async fn serve(self, config: Config) -> Result<Verdict> {
        let mut signals = signals::Termination::new()?;
        let has_one_keeper = config.members.keepers.len() == 1;
        // What others are allowed to open follows from it.
        let files = soloist_node::files::raise_limit();
        tracing::debug!(files, "limit of open files");
        let node = Node::start(config).await?;
        end_with(&node);
        let server = match api::serve(&node).await {
            Ok(server) => server,
            Err(error) => {
                node.stop(Duration::ZERO).await;
                return Err(error.into());
            }
        };
        if has_one_keeper {
            tracing::warn!(
                "there is one keeper only: while it is down nobody joins, and all leases run out; three stand the loss of one"
            );
        }
        tracing::info!(node = node.name(), api = %server.socket().display(), "ready");
        signals.next().await;
        tracing::info!(drain = ?self.drain, "stopping: holds may go on, nobody new gets in");
        tokio::select! {
            () = node.stop(self.drain) => {}
            () = signals.next() => {
                tracing::warn!("a second signal: no hold is extended any more");
                node.stop(Duration::ZERO).await;
            }
        }
        server.stop().await;
        tracing::info!("stopped");
        Ok(Verdict::Well)
    }
}

/// The node panicked, as `EX_SOFTWARE`.
const FAILED: i32 = 70;

/// Ends this process when the node fails. Nothing is waited for: others go on when its lease has run out.
pub fn end_with(node: &Node) {
    let node = node.clone();
    tokio::spawn(async move {
        let reason = node.failed().await;
        output::complain(&format!(
            "error: the node has failed: {reason}; this is a bug: please report it with the lines above, and start the node again"
        ));
        std::process::exit(FAILED)
    });
}
