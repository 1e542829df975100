//! `soloist bench`: measures the lock, and what the machine itself can do, in the same run.

mod api;
mod contention;
mod faults;
mod floors;
mod memory;
mod open_loop;
mod single;

use anyhow::{Result, bail};
use soloist_bench::{Measured, Report, workloads};
use soloist_core::rules::RuleSettings;

use crate::{Verdict, output, runtime};

/// The workloads, for the help.
fn explanation() -> String {
    let list = format!(
        "\
Workloads:
  tcp, tls, unix      floors: one byte back and forth, without Soloist
  reacquire embedded  acquire and release on the node that has the token
  reacquire api       the same with the Rust client, through the Unix socket
  eight locks         {CLIENTS} clients with a lock each, on {NODES} nodes
  contended N         two clients on each of N nodes want the same lock
  hand-over N         the same: from a release to the next entry elsewhere
  {OPEN_NODES} nodes            {A_SECOND} acquisitions per second, of {OPEN_LOCKS} locks
  idle locks          memory that remains of locks that were used once
  live locks          memory of locks that are held",
        CLIENTS = single::CLIENTS,
        NODES = single::NODES,
        OPEN_NODES = open_loop::NODES,
        A_SECOND = open_loop::A_SECOND,
        OPEN_LOCKS = open_loop::LOCKS,
    );
    let note = "All nodes run in one process. With few cores and many nodes, the scheduler is \
                measured too: compare the ratios to the floors.";
    format!(
        "{list}\n\n{note}\n\n{}\n\n{}",
        api::explanation(),
        faults::explanation()
    )
}

/// Measure the lock, and compare it with what the machine can do
#[derive(clap::Args)]
#[command(after_long_help = explanation())]
pub(crate) struct Args {
    /// Measure the cost of fault tolerance and the effect of faults; node processes are killed
    #[arg(long)]
    faults: bool,

    /// Measure clients of node processes, through the API
    #[arg(long, conflicts_with = "faults")]
    api: bool,

    /// Number of nodes
    #[arg(long, value_name = "N", default_value_t = 5, requires = "api",
          value_parser = clap::value_parser!(u16).range(1..=100))]
    nodes: u16,

    /// Algorithm of the locks
    #[arg(long, value_name = "NAME", default_value = RuleSettings::ALGORITHM, requires = "api")]
    algorithm: String,

    /// How many of its own waiters a node serves before it passes the lock on
    #[arg(long, value_name = "N", default_value_t = RuleSettings::LOCAL_TURNS, requires = "api",
          value_parser = clap::value_parser!(u32).range(1..=i64::from(RuleSettings::TURNS_MOST)))]
    max_local_turns: u32,

    /// Number of threads of each node, as in its configuration
    #[arg(long, value_name = "N", default_value_t = 1, requires = "api",
          value_parser = clap::value_parser!(u16).range(1..=1024))]
    io_threads: u16,

    /// How many microseconds clients spin before they sleep, see `ClientBuilder::spin`
    #[arg(long, value_name = "N", default_value_t = 0, requires = "api",
          value_parser = clap::value_parser!(u16).range(..=1000))]
    spin: u16,

    /// Do a tenth of the work; with --faults, cause a fifth of the faults
    #[arg(long)]
    quick: bool,

    /// Run only workloads whose name contains this text
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) fn run(self) -> Result<Verdict> {
        let measured = match self.api {
            // Each client has a thread of its own.
            true => runtime::block_on(self.measure())?,
            false => runtime::block_on_all_cores(self.measure())?,
        };
        if self.json {
            output::json(&measured)?;
        }
        Ok(Verdict::Well)
    }

    /// Names of all workloads.
    fn workloads(&self) -> Vec<String> {
        match (self.faults, self.api) {
            (true, _) => faults::workloads(),
            (_, true) => workloads::names(),
            (false, false) => embedded(),
        }
    }

    async fn measure(&self) -> Result<Vec<Measured>> {
        let rounds = |full: usize| if self.quick { full / 10 } else { full };
        let mut report = Report {
            only: self.only.clone(),
            is_json: self.json,
            is_quick: self.quick,
            ..Report::default()
        };
        if !self
            .workloads()
            .iter()
            .any(|workload| report.wants(workload))
        {
            let only = self.only.as_deref().unwrap_or_default();
            bail!("no workload has {only:?} in its name; `soloist bench --help` lists them");
        }
        report.head()?;
        if self.faults {
            faults::measure(&mut report).await?;
            return Ok(report.measured);
        }
        if self.api {
            api::measure(self, &mut report).await?;
            return Ok(report.measured);
        }
        // Ratios need the floors, even if --only selects other workloads.
        report.add(floors::tcp(rounds(20_000)).await?)?;
        report.add(floors::tls(rounds(20_000)).await?)?;
        report.add(floors::unix(rounds(20_000)).await?)?;
        if report.wants("reacquire embedded") {
            report.add(single::embedded(rounds(1_000_000)).await?)?;
        }
        if report.wants("reacquire api") {
            let measured = single::over_the_api(rounds(20_000)).await?;
            report.add(measured.beside("unix", &report.measured))?;
        }
        if report.wants("eight locks") {
            report.add(single::eight_locks(rounds(400_000)).await?)?;
        }
        for (algorithm, nodes, tls) in contention::CASES {
            let name = contention::name(algorithm, nodes, tls);
            if report.wants(&name) {
                let floor = if tls { "tls" } else { "tcp" };
                let [entries, hand_over] =
                    contention::measure(algorithm, nodes, tls, rounds(20_000)).await?;
                report.add(entries)?;
                report.add(hand_over.beside(floor, &report.measured))?;
            }
        }
        if report.wants("60 nodes") {
            report.add(open_loop::measure(rounds(5_000)).await?)?;
        }
        if report.wants("idle locks") {
            report.add(memory::idle(rounds(1_000_000)).await?)?;
        }
        if report.wants("live locks") {
            report.add(memory::live(rounds(100_000)).await?)?;
        }
        Ok(report.measured)
    }
}

/// Names of the workloads that run on nodes in this process.
fn embedded() -> Vec<String> {
    let contended = contention::CASES.iter();
    let contended =
        contended.map(|(algorithm, nodes, tls)| contention::name(algorithm, *nodes, *tls));
    let others = [
        "tcp",
        "tls",
        "unix",
        "reacquire embedded",
        "reacquire api",
        "eight locks",
        "60 nodes",
        "idle locks",
        "live locks",
    ];
    let others = others.map(str::to_owned).into_iter();
    others.chain(contended).collect()
}
