//! How commands find their node and ask it.

use anyhow::Result;
use serde::Serialize;
use soloist_client::{Client, ClientBuilder, ClientError, Target};

use crate::output;
use crate::runtime::block_on;

#[derive(clap::Args)]
pub(crate) struct Connect {
    /// Node to talk to: unix:/path/of.sock, /path/of.sock, https://host:port or up
    #[arg(long, value_name = "TARGET", value_parser = Target::parse)]
    api: Option<Target>,
}

impl Connect {
    pub(crate) async fn client(&self) -> Result<Client, ClientError> {
        self.client_with(Client::builder()).await
    }

    pub(crate) async fn client_with(&self, settings: ClientBuilder) -> Result<Client, ClientError> {
        let target = match &self.api {
            Some(target) => target.clone().with_env()?,
            None => Target::from_env()?,
        };
        settings.connect(target).await
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
