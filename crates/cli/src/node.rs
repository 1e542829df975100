//! `soloist node`: one node of a cluster.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use soloist_node::config::Config;
use soloist_node::{Node, http};

use crate::{Verdict, duration, exit, logging, output, runtime, service, signals, ui};

/// Run one node of a cluster
///
/// `soloist init` creates the configuration, the certificate and the key. The node joins the
/// cluster by itself. The first start of a cluster needs all keepers.
///
/// SIGTERM, SIGHUP or Ctrl-C drains the node: it admits no new holders, and existing holds may
/// continue for the time given by --drain. After that time, or after a second signal, holds are no
/// longer extended. The node waits until each hold is released or the time that was promised to its
/// holder has passed (at most the lease). Then it leaves the cluster, so that nobody has to wait
/// for its lease to expire.
///
/// The log goes to stderr; RUST_LOG sets its level.
#[derive(clap::Args)]
#[command(after_long_help = format!(
    "Exit code {}: the node failed (a panic) and should be restarted.",
    exit::PANICKED
))]
pub(crate) struct Args {
    /// Configuration file of the node
    #[arg(long, value_name = "FILE", default_value = "soloist.toml")]
    config: PathBuf,

    /// How long holds may continue after the node is told to stop, such as 30s or 5m
    #[arg(long, value_name = "D", default_value = "30s", value_parser = duration::parse)]
    drain: Duration,
}

impl Args {
    pub(crate) fn run(self) -> Result<Verdict> {
        let config = Config::load(&self.config)?;
        logging::start("info");
        runtime::block_on_threads(config.io_threads, self.serve(config))
    }

    async fn serve(self, config: Config) -> Result<Verdict> {
        let mut signals = signals::Termination::new()?;
        let has_one_keeper = config.members.keepers.len() == 1;
        // How many connections others may open depends on it.
        let files = soloist_node::files::raise_limit();
        tracing::debug!(files, "limit of open files");
        let node = Node::start(config).await?;
        end_with(&node);
        let server = match http::serve_with_page(&node, ui::file).await {
            Ok(server) => server,
            Err(error) => {
                node.stop(Duration::ZERO).await;
                return Err(error.into());
            }
        };
        if has_one_keeper {
            tracing::warn!(
                "this cluster has only one keeper: while it is down, no node can join and all \
                 leases expire; three keepers tolerate the loss of one"
            );
        }
        let addresses = server.addresses();
        let tcp = addresses.tcp.map(tracing::field::display);
        tracing::info!(node = node.name(), socket = %addresses.socket.display(), tcp, "ready");
        service::notify(service::READY);
        signals.next().await;
        service::notify(service::STOPPING);
        tracing::info!(drain = ?self.drain, "stopping: no new grants; current holds may continue \
                                             until the drain ends");
        tokio::select! {
            () = node.stop(self.drain) => {}
            () = signals.next() => {
                tracing::warn!("second signal: no hold is extended any longer");
                node.stop(Duration::ZERO).await;
            }
        }
        server.stop().await;
        tracing::info!("stopped");
        Ok(Verdict::Well)
    }
}

/// Ends this process as soon as the node fails, without any cleanup. Other members continue when
/// the node's lease has expired.
pub(crate) fn end_with(node: &Node) {
    let node = node.clone();
    tokio::spawn(async move {
        let reason = node.failed().await;
        output::complain(&format!(
            "error: the node has failed: {reason}; this is a bug: please report it with the lines \
             above, and restart the node"
        ));
        std::process::exit(exit::PANICKED.into())
    });
}
