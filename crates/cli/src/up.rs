//! `soloist up`: a cluster on this machine, in one process.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, symlink};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::Serialize;
use soloist_client::Target;
use soloist_core::rules::RuleSettings;
use soloist_node::http;
use soloist_node::local::{LocalCluster, LocalSettings};

use crate::{Verdict, logging, node, output, runtime, signals, ui};

/// Run a cluster on this machine, to try things out
///
/// All nodes run in one process, on free ports, with real sockets and TLS between them. The
/// commands `lock`, `who`, `status` and others find the cluster without further options. Ctrl-C
/// stops it. Nothing is kept: for production, see `soloist init` and `soloist node`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Number of nodes
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=100))]
    nodes: u16,

    /// Algorithm of all locks; `soloist lab list` lists them
    #[arg(long, value_name = "A", default_value = RuleSettings::ALGORITHM)]
    algorithm: String,

    /// Print a link to a page that shows the cluster, as by `soloist ui`
    #[arg(long)]
    ui: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Up {
    algorithm: String,
    /// The socket that commands use by default. It links to the first node's.
    socket: PathBuf,
    nodes: Vec<UpNode>,
    /// Link to the page that shows the cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    ui: Option<String>,
}

#[derive(Serialize)]
struct UpNode {
    name: String,
    socket: PathBuf,
}

impl Args {
    pub(crate) fn run(self) -> Result<Verdict> {
        logging::start("warn");
        runtime::block_on_all_cores(self.stay_up())
    }

    async fn stay_up(self) -> Result<Verdict> {
        let mut signals = signals::Termination::new()?;
        let announced = Target::announced();
        let folder = Folder::prepare(&announced)?;
        let data = tempfile::tempdir().context("cannot create a folder for the keepers' stores")?;
        let cluster = LocalCluster::start(LocalSettings {
            data: data.path().to_owned(),
            ..LocalSettings::new(self.nodes.into(), &folder.path).with_algorithm(&self.algorithm)
        })
        .await?;
        let mut servers = Vec::new();
        for node in &cluster.nodes {
            servers.push(http::serve(node).await?);
        }
        folder.announce(servers[0].socket())?;
        let page = match self.ui {
            true => Some(ui::Beside::start(&Target::socket(servers[0].socket())).await?),
            false => None,
        };
        let nodes = cluster.nodes.iter().zip(&servers);
        let up = Up {
            algorithm: self.algorithm.clone(),
            socket: announced,
            nodes: nodes
                .map(|(node, server)| UpNode {
                    name: node.name().to_owned(),
                    socket: server.socket().to_owned(),
                })
                .collect(),
            ui: page.as_ref().map(|page| page.link().to_owned()),
        };
        self.print(&up)?;
        cluster.nodes.iter().for_each(node::end_with);
        signals.next().await;
        logging::only_errors();
        drop(page);
        folder.withdraw();
        cluster.stop().await;
        for server in servers {
            server.stop().await;
        }
        Ok(Verdict::Well)
    }

    fn print(&self, up: &Up) -> Result<()> {
        if self.json {
            return output::json(up);
        }
        let (nodes, algorithm) = (up.nodes.len(), &up.algorithm);
        let are_up = match nodes {
            1 => "1 node is up".to_owned(),
            _ => format!("{nodes} nodes are up"),
        };
        let page = up
            .ui
            .as_ref()
            .map(|link| format!("In the browser: {link}\n"));
        output::text(&format!(
            "{are_up} ({algorithm}). In another terminal:\n\n  \
             soloist lock nightly -- sh -c 'echo inside with fence $SOLOIST_FENCE; sleep 5'\n  \
             soloist who nightly\n  \
             soloist watch\n  \
             curl --unix-socket {} http://localhost/v1/cluster\n\n\
             To talk to another node than {}, use --api {}\n\
             {}\
             Ctrl-C ends it.\n",
            up.socket.display(),
            up.nodes[0].name,
            up.nodes[nodes - 1].socket.display(),
            page.unwrap_or_default(),
        ))
    }
}

/// The folder of the sockets.
struct Folder {
    path: PathBuf,
    announced: PathBuf,
}

impl Folder {
    /// Creates the folder, accessible to this user only. Fails if another cluster answers there.
    fn prepare(announced: &Path) -> Result<Self> {
        let path = announced.parent().context("a socket is in a folder")?;
        match DirBuilder::new().mode(0o700).create(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => made.with_context(|| format!("cannot create the folder {}", path.display()))?,
        }
        let found = fs::symlink_metadata(path)?;
        let mine = found.uid() == rustix::process::getuid().as_raw();
        if !found.is_dir() || !mine || found.mode() & 0o077 != 0 {
            bail!(
                "{} must be a folder that only you can access: remove it, or `chmod 700` it",
                path.display()
            );
        }
        if UnixStream::connect(announced).is_ok() {
            bail!(
                "a cluster is already up at {}: stop it first",
                announced.display()
            );
        }
        Ok(Folder {
            path: path.to_owned(),
            announced: announced.to_owned(),
        })
    }

    /// Links the socket at the path where commands look for a cluster.
    fn announce(&self, socket: &Path) -> Result<()> {
        self.withdraw();
        symlink(socket, &self.announced).with_context(|| {
            format!(
                "cannot announce the cluster at {}",
                self.announced.display()
            )
        })
    }

    fn withdraw(&self) {
        let _ = fs::remove_file(&self.announced);
    }
}
