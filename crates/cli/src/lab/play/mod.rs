//! `soloist lab play`: runs in the browser.

mod assets;
mod export;
mod server;

use std::path::PathBuf;

use anyhow::{Context, Result};
use soloist_lab::play;

use self::server::{SITE, Start, router};
use super::{replay, run, settings};
use crate::page::Show;
use crate::{Verdict, runtime};

/// Entries of a simulated run, unless the number is given: at most this many per node ...
const ENTRIES_PER_NODE: u64 = 2;
/// ... and in total.
const ENTRIES_MAX: u64 = 40;

const EXPLANATION: &str = "\
Without arguments, the page shows a gallery: walk-throughs of the papers, faults in print, and each \
algorithm under load. With --algorithm and --nodes, a run is simulated as by `soloist lab run`.

The server listens on 127.0.0.1 only, and answers only a browser that opened the link. Ctrl-C stops \
it.

Examples:
  soloist lab play --open
  soloist lab play --algorithm raymond --nodes 15
  soloist lab play scenario.txt --step 12
  soloist lab play --algorithm raymond --nodes 15 --export run.html";

/// Play a run in the browser: watch it, take over by hand, find trouble from any step
///
/// Prints a link to a page that shows the cluster and its space-time diagram. Each step can be
/// played, taken back, and continued by hand with the choices that a search has.
#[derive(clap::Args)]
#[command(after_long_help = EXPLANATION)]
pub(crate) struct Args {
    /// File of a scenario, or - for standard input
    #[arg(conflicts_with_all = ["algorithm", "shape", "variant", "load", "home", "inside", "entries", "crashes", "delay", "hold", "requesters", "channels", "seed"])]
    file: Option<PathBuf>,

    /// Name, alias or preset of the algorithm of a simulated run; `soloist lab list` lists them
    #[arg(long, short, value_name = "A", requires = "nodes")]
    algorithm: Option<String>,

    /// Number of nodes of a simulated run
    #[arg(
        long,
        short,
        value_name = "N",
        value_parser = settings::nodes,
        allow_hyphen_values = true,
        requires = "algorithm"
    )]
    nodes: Option<usize>,

    #[command(flatten)]
    simulation: run::Simulation,

    /// Step to show first
    #[arg(
        long,
        value_name = "STEP",
        default_value_t = 0,
        hide_default_value = true
    )]
    step: usize,

    #[command(flatten)]
    show: Show,

    /// Write the run as one HTML file that opens without a server, and start none
    #[arg(long, value_name = "FILE", conflicts_with_all = ["open", "port"])]
    export: Option<PathBuf>,
}

impl Args {
    pub(crate) fn run(self) -> Result<Verdict> {
        let text = match (&self.file, &self.algorithm, self.nodes) {
            (Some(file), ..) => Some(replay::read(file)?),
            (None, Some(algorithm), Some(nodes)) => {
                let entries = (ENTRIES_PER_NODE * nodes as u64).clamp(1, ENTRIES_MAX);
                let setup = self.simulation.setup(algorithm, nodes, entries)?;
                Some(play::scenario_of(&setup)?)
            }
            _ => None,
        };
        let name = self
            .file
            .as_ref()
            .map_or("-".into(), |it| it.display().to_string());
        let text = text.as_deref();
        // An invalid scenario is refused here, and not only on the page.
        let run = text.map(|text| play::run(text, 0)).transpose();
        let run = run.with_context(|| name)?;
        let Some(file) = self.export else {
            let start = Start {
                text: text.map(str::to_owned),
                at: self.step,
            };
            return serve(&self.show, start);
        };
        let run =
            run.context("--export needs a run: give a scenario, or --algorithm and --nodes")?;
        let page = export::page(&serde_json::to_string(&run)?);
        std::fs::write(&file, page)
            .with_context(|| format!("cannot write '{}'", file.display()))?;
        Ok(Verdict::Well)
    }
}

/// Shows a scenario.
pub(super) fn show(text: String) -> Result<Verdict> {
    let start = Start {
        text: Some(text),
        at: 0,
    };
    serve(&Show::default(), start)
}

/// Serves the page until a signal ends it.
fn serve(show: &Show, start: Start) -> Result<Verdict> {
    runtime::block_on_all_cores(show.serve(SITE, router(start)))
}
