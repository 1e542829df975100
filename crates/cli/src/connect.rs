//! How commands find their node and ask it.

use anyhow::Result;
use serde::Serialize;
use soloist_client::{Client, ClientBuilder, ClientError, Target, TargetError};

use crate::output;
use crate::runtime::block_on;

#[derive(clap::Args)]
pub(crate) struct Connect {
    /// Node to talk to: unix:/path/of.sock, /path/of.sock, https://host:port or up; several, with
    /// commas or by repeating the option, to continue on another one if a node stops or dies
    #[arg(long, value_name = "TARGET", value_parser = Target::parse)]
    api: Vec<Target>,
}

impl Connect {
    pub(crate) async fn client(&self) -> Result<Client, ClientError> {
        self.client_with(Client::builder()).await
    }

    pub(crate) async fn client_with(&self, settings: ClientBuilder) -> Result<Client, ClientError> {
        settings.connect(self.target()?).await
    }

    pub(crate) fn target(&self) -> Result<Target, TargetError> {
        match &self.api[..] {
            [] => Target::from_env(),
            named => Target::any_of(named.iter().cloned()).with_env(),
        }
    }
}

/// Options of the commands that ask a node one question.
#[derive(clap::Args)]
pub(crate) struct Query {
    #[command(flatten)]
    connect: Connect,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Query {
    /// Asks the node, prints its answer (as JSON, or as `page` shows it), and returns it.
    pub(crate) fn ask<T: Serialize>(
        &self,
        question: impl AsyncFnOnce(Client) -> Result<T, ClientError>,
        page: impl FnOnce(&T) -> String,
    ) -> Result<T> {
        let answer = block_on(async { Ok(question(self.connect.client().await?).await?) })?;
        match self.json {
            true => output::json(&answer)?,
            false => output::text(&page(&answer))?,
        }
        Ok(answer)
    }
}
