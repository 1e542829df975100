//! Pages in the browser: a local server for each, which only the browser that opened its link may
//! use. `lab play` and `ui` share it.

mod files;
mod gate;

use std::process::{Command, Stdio};
use std::sync::Arc;

use anyhow::{Context, Result};
use axum::Router;
use axum::middleware::from_fn_with_state;
use tempfile::NamedTempFile;
use tokio::net::TcpListener;

pub(crate) use self::files::{Module, modules, text};
use self::gate::{Gate, guard};
use crate::{Verdict, output, signals};

/// A page, and the command that serves it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Site {
    /// Part of the cookie's name.
    pub(crate) name: &'static str,
    /// The command, as users type it.
    pub(crate) command: &'static str,
    /// Path of the page, below that of the server.
    pub(crate) home: &'static str,
}

/// How a page is shown.
#[derive(clap::Args, Default)]
pub(crate) struct Show {
    /// Open the page in the browser
    #[arg(long)]
    open: bool,

    /// Port of the page [default: a free one]
    #[arg(
        long,
        value_name = "PORT",
        default_value_t = 0,
        hide_default_value = true
    )]
    port: u16,
}

impl Show {
    /// Prints the link to a page and serves it until a signal ends it.
    pub(crate) async fn serve(&self, site: Site, router: Router) -> Result<Verdict> {
        let mut signals = signals::Termination::new()?;
        let server = Server::bind(self.port, site, router).await?;
        output::text(&format!("{}\n", server.link()))?;
        // It must exist until the browser has read it.
        let _opened = match self.open {
            true => Some(open(server.link())?),
            false => None,
        };
        tokio::select! {
            ended = server.run() => ended?,
            () = signals.next() => {}
        }
        Ok(Verdict::Well)
    }
}

/// A server that listens, and its link.
#[derive(Debug)]
pub(crate) struct Server {
    listener: TcpListener,
    router: Router,
    link: String,
}

impl Server {
    /// Listens on this machine only. Port 0 is a free one.
    pub(crate) async fn bind(port: u16, site: Site, router: Router) -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", port)).await;
        let listener = listener.with_context(|| format!("cannot listen on 127.0.0.1:{port}"))?;
        let gate = Arc::new(Gate::new(site, listener.local_addr()?.port()));
        Ok(Server {
            listener,
            link: gate.link(),
            router: Router::new()
                .nest(gate.path(), router)
                .layer(from_fn_with_state(gate, guard)),
        })
    }

    /// The link that opens the page.
    pub(crate) fn link(&self) -> &str {
        &self.link
    }

    /// Answers requests until it is dropped.
    pub(crate) async fn run(self) -> Result<()> {
        let serve = axum::serve(self.listener, self.router);
        serve.await.context("the server of the page failed")
    }
}

/// Opens the link in the user's browser, through a file that only this user can read: every user of
/// this machine can read the arguments of a program.
fn open(link: &str) -> Result<NamedTempFile> {
    let file = tempfile::Builder::new().suffix(".html").tempfile();
    let file = file.context("cannot create a file for the browser")?;
    let page = format!(
        "<!doctype html><meta charset=\"utf-8\"><meta http-equiv=\"refresh\" content=\"0; url={link}\">\n"
    );
    std::fs::write(file.path(), page).context("cannot write the file for the browser")?;
    let browser = Command::new("xdg-open")
        .arg(file.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    if browser.is_err() {
        output::complain("cannot run xdg-open: open the link above by hand");
    }
    Ok(file)
}
