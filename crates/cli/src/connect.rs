//! How commands find their node.

use std::future::Future;

use anyhow::{Context, Result};
use soloist_client::{Client, ClientError, Target};

/// For the help of each command that talks to a node.
pub const FINDING: &str = "\
The node is the one that --api or SOLOIST_API names: unix:/path/of.sock, /path/of.sock or https://host:port. Without them, the
first that answers of: the cluster that `soloist up` runs for this user, ./soloist.sock, /run/soloist/soloist.sock. For https,
SOLOIST_CA is the file with the cluster's CA; SOLOIST_TOKEN or SOLOIST_TOKEN_FILE, or SOLOIST_CERTIFICATE and SOLOIST_KEY, show
who one is.";

#[derive(clap::Args)]
pub struct Connect {
    /// The node: unix:/path/of.sock, /path/of.sock or https://host:port
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

/// Runs on this thread alone.
pub fn block_on<T>(future: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    runtime.block_on(future)
}
