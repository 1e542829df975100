//! How commands find their node.

use std::future::Future;

use anyhow::{Context, Result};
use soloist_client::{Client, ClientError, Target};

/// Shown in the help of every command that talks to a node.
pub const FINDING: &str = "\
The node is the one that --api or SOLOIST_API names: unix:/path/of.sock, /path/of.sock, https://host:port, or `up` for the cluster
that `soloist up` runs for this user. Without them, it is the system's node (/run/soloist/soloist.sock) or that of this folder
(./soloist.sock); if both are there, you must name one. The cluster of `soloist up` is used only if neither socket exists. For https,
SOLOIST_CA is the file with the cluster's CA; SOLOIST_TOKEN or SOLOIST_TOKEN_FILE, or SOLOIST_CERTIFICATE and SOLOIST_KEY, show
who one is.";

#[derive(clap::Args)]
pub struct Connect {
    /// Node to talk to: unix:/path/of.sock, /path/of.sock, https://host:port or up
    #[arg(long, value_name = "TARGET", value_parser = Target::parse)]
    api: Option<Target>,
}

impl Connect {
    pub async fn client(&self) -> Result<Client, ClientError> {
        let target = match &self.api {
            Some(target) => target.clone().with_env()?,
            None => Target::from_env()?,
        };
        Client::connect(target).await
    }
}

/// Runs a future on a single-threaded runtime.
pub fn block_on<T>(future: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    runtime.block_on(future)
}
