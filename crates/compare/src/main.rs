//! `soloist-compare`: the workloads of `soloist bench --api` against Soloist, PostgreSQL's advisory
//! locks and etcd's locks, one after the other, on this machine.
//!
//! Systems that are not installed are left out, and named. All servers run in temporary folders, on
//! free ports or Unix sockets.

mod etcd;
mod markdown;
mod postgres;
mod server;
mod soloist;

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use soloist_bench::{Cores, Measured, Placement, Report, System, workloads};

/// Run the workloads of `soloist bench --api` against Soloist, PostgreSQL and etcd
#[derive(Parser)]
#[command(name = "soloist-compare", max_term_width = 100)]
struct Args {
    /// The `soloist` executable
    #[arg(long, value_name = "PATH", default_value = "soloist")]
    soloist: PathBuf,

    /// Do a tenth of the work
    #[arg(long)]
    quick: bool,

    /// Run only workloads whose name contains this text
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,

    /// Print JSON
    #[arg(long, conflicts_with = "write")]
    json: bool,

    /// Replace the tables between the markers of this Markdown file
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
}

/// A system that can be started.
trait Contender {
    type System: System;

    /// The name and version, for the table.
    fn title(&self) -> Result<String>;

    /// Starts the servers. They inherit the cores of the calling thread.
    fn start(&self) -> Result<Self::System>;
}

/// What was measured of one system.
struct Results {
    title: String,
    measured: Vec<Measured>,
}

impl Results {
    /// The result of a row of the table, if it was measured.
    fn find(&self, row: &str) -> Option<&Measured> {
        let mut rows = self.measured.iter();
        rows.find(|measured| measured.workload == row)
    }
}

fn main() -> Result<()> {
    let args = Args::parse();
    let mut all = vec![soloist::measure(&args)?];
    match postgres::Postgres::installed() {
        Some(postgres) => all.push(measure(&args, &all[0], &postgres)?),
        None => eprintln!("PostgreSQL is left out: no `initdb` was found (Debian: postgresql)"),
    }
    match etcd::Etcd::installed() {
        Some(etcd) => all.push(measure(&args, &all[0], &etcd)?),
        None => eprintln!("etcd is left out: no `etcd` was found (Debian: etcd-server)"),
    }
    if args.json {
        let all: BTreeMap<_, _> = all.iter().map(|one| (&one.title, &one.measured)).collect();
        println!("{}", serde_json::to_string_pretty(&all)?);
    }
    match &args.write {
        Some(file) => markdown::write(file, &all),
        None => Ok(()),
    }
}

impl Args {
    /// An empty report of a system, and the head of its table.
    fn report(&self, title: &str) -> Result<Report> {
        let report = Report {
            only: self.only.clone(),
            is_json: self.json,
            is_quick: self.quick,
            ..Report::default()
        };
        if !self.json {
            println!("\n{title}");
        }
        report.head()?;
        Ok(report)
    }
}

/// Measures a system, beside the floors that were measured with Soloist.
fn measure(args: &Args, soloist: &Results, contender: &impl Contender) -> Result<Results> {
    let title = contender.title()?;
    let mut report = args.report(&title)?;
    let floors = soloist.measured.iter();
    let floors = floors.filter(|floor| workloads::is_floor(&floor.workload));
    report.measured = floors.cloned().collect();
    let floors = report.measured.len();
    let cores = Cores::find().context("cannot find out which cores may be used")?;
    for placement in workloads::placements(&report, &cores) {
        let pinned = || format!("cannot pin threads to {}", placement.name());
        cores.pin_as_server(placement).with_context(pinned)?;
        let system = contender.start()?;
        cores.pin_as_client(placement).with_context(pinned)?;
        workloads::measure(&mut report, &system, placement)?;
    }
    // The next system looks for its cores, too.
    cores
        .pin_as_client(Placement::Free)
        .context("cannot undo the pinning of threads")?;
    let measured = report.measured.split_off(floors);
    ensure!(!measured.is_empty(), "no workload of {title} was measured");
    Ok(Results { title, measured })
}
