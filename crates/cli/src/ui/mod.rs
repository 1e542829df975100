//! `soloist ui`: the cluster in the browser.

mod assets;
mod tunnel;

use std::sync::Arc;

use anyhow::Result;
use axum::Router;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use soloist_client::Target;
use tokio::task::JoinHandle;

pub(crate) use self::assets::file;
use self::tunnel::Nodes;
use crate::connect::Connect;
use crate::page::{Server, Show, Site, text};
use crate::{Verdict, runtime};

const EXPLANATION: &str = "\
The page shows what is wrong and what to do, who has a lock and who waits for it, and what changed in \
the last 15 minutes, as one node sees it. It never acts: it shows commands to copy. With several \
nodes, it looks from the first one that answers, and from the next one if that is lost.

The server listens on 127.0.0.1 only, and answers only a browser that opened the link. It talks to \
the node with your rights. Ctrl-C stops it.

Examples:
  soloist ui --open
  soloist ui --api https://n1:7402,https://n2:7402";

/// Show the cluster in the browser: what is wrong, this lock, what changed
///
/// Prints a link to a page that follows the cluster, live.
#[derive(clap::Args)]
#[command(after_long_help = EXPLANATION)]
pub(crate) struct Args {
    #[command(flatten)]
    connect: Connect,

    #[command(flatten)]
    show: Show,
}

const SITE: Site = Site {
    name: "ui",
    command: "soloist ui",
    home: "ui/",
};

impl Args {
    pub(crate) fn run(self) -> Result<Verdict> {
        runtime::block_on_all_cores(async {
            let nodes = Nodes::new(&self.connect.target()?);
            // If no node answers, say so here and not only on the page.
            drop(nodes.open().await?);
            self.show.serve(SITE, router(nodes)).await
        })
    }
}

/// A page beside a cluster that this process runs. Dropping it ends it.
pub(crate) struct Beside {
    link: String,
    task: JoinHandle<Result<()>>,
}

impl Beside {
    /// Serves the page on a free port.
    pub(crate) async fn start(target: &Target) -> Result<Self> {
        let server = Server::bind(0, SITE, router(Nodes::new(target))).await?;
        Ok(Beside {
            link: server.link().to_owned(),
            task: tokio::spawn(server.run()),
        })
    }

    /// The link that opens the page.
    pub(crate) fn link(&self) -> &str {
        &self.link
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn router(nodes: Nodes) -> Router {
    Router::new()
        .route("/ui", get(async || Redirect::permanent(SITE.home)))
        .route("/ui/", get(async || respond("")))
        .route(
            "/ui/{*path}",
            get(async |Path(path): Path<String>| respond(&path)),
        )
        // A node may want a token here; this server has it.
        .route("/ui/login", get(async || StatusCode::NO_CONTENT))
        .route("/v1/session", get(tunnel::session))
        .with_state(Arc::new(nodes))
}

fn respond(path: &str) -> Response {
    match file(path) {
        Some((kind, content)) => text(kind, content),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}
