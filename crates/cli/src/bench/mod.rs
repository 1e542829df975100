//! `soloist bench`: measures the lock, and what the machine itself can do, in the same run.

mod contention;
mod faults;
mod floors;
mod memory;
mod open_loop;
mod samples;
mod single;

use anyhow::{Result, bail};
use serde::Serialize;

use crate::show::microseconds;
use crate::{Verdict, output, runtime};
use samples::Samples;

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
    format!("{list}\n\n{note}\n\n{}", faults::explanation())
}

/// Measure the lock, and compare it with what the machine can do
#[derive(clap::Args)]
#[command(after_long_help = explanation())]
pub(crate) struct Args {
    /// Measure the cost of fault tolerance and the effect of faults; node processes are killed
    #[arg(long)]
    faults: bool,

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

/// Result of one workload.
#[derive(Serialize)]
pub(crate) struct Measured {
    pub workload: String,
    /// What one operation is.
    pub what: &'static str,
    pub operations: usize,
    pub operations_per_second: f64,
    /// Time per operation, in microseconds.
    #[serde(flatten)]
    pub times: Option<samples::Times>,
    /// The median relative to that of a floor in the same run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio: Option<Ratio>,
    /// Messages sent per operation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_each: Option<f64>,
    /// Expected maximum of the longest operation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound: Option<Bound>,
}

/// Expected maximum of a time.
#[derive(Serialize, Clone)]
pub(crate) struct Bound {
    pub what: &'static str,
    pub us: f64,
}

#[derive(Serialize, Clone)]
pub(crate) struct Ratio {
    pub floor: &'static str,
    pub times: f64,
}

impl Measured {
    pub(crate) fn new(
        workload: impl Into<String>,
        what: &'static str,
        seconds: f64,
        samples: &Samples,
    ) -> Self {
        Measured {
            workload: workload.into(),
            what,
            operations: samples.len(),
            operations_per_second: samples.len() as f64 / seconds,
            times: samples.times(),
            ratio: None,
            messages: None,
            bytes_each: None,
            bound: None,
        }
    }

    /// What is measured besides times.
    fn notes(&self) -> String {
        let ratio = self.ratio.as_ref();
        let ratio = ratio.map(|ratio| format!("{:.2} x {}", ratio.times, ratio.floor));
        let messages = self.messages.map(|m| format!("{m:.2} messages each"));
        let bytes = self.bytes_each.map(|b| format!("{b:.0} bytes each"));
        let bound = self.bound.as_ref().zip(self.times.as_ref());
        let bound = bound.map(|(bound, times)| {
            let longest = microseconds(times.max_us);
            format!("longest {longest}, expected at most {}", bound.what)
        });
        let notes: Vec<_> = [ratio, messages, bytes, bound]
            .into_iter()
            .flatten()
            .collect();
        notes.join(", ")
    }

    fn beside(mut self, floor: &'static str, floors: &[Measured]) -> Self {
        let floor_time = floors.iter().find(|measured| measured.workload == floor);
        let floor_time = floor_time.and_then(|measured| measured.times.as_ref());
        if let (Some(own), Some(other)) = (&self.times, floor_time) {
            let times = own.p50_us / other.p50_us;
            self.ratio = Some(Ratio { floor, times });
        }
        self
    }
}

impl Args {
    pub(crate) fn run(self) -> Result<Verdict> {
        let measured = runtime::block_on_all_cores(self.measure())?;
        if self.json {
            output::json(&measured)?;
        }
        Ok(Verdict::Well)
    }

    async fn measure(&self) -> Result<Vec<Measured>> {
        let rounds = |full: usize| if self.quick { full / 10 } else { full };
        let mut report = Report {
            args: self,
            measured: Vec::new(),
        };
        if !workloads(self.faults)
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

/// Names of all workloads.
fn workloads(faults: bool) -> Vec<String> {
    if faults {
        return faults::workloads();
    }
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

struct Report<'a> {
    args: &'a Args,
    measured: Vec<Measured>,
}

impl Report<'_> {
    fn wants(&self, workload: &str) -> bool {
        let only = self.args.only.as_ref();
        only.is_none_or(|only| workload.contains(only.as_str()))
    }

    fn head(&self) -> Result<()> {
        self.line(&["workload", "per second", "p50", "p90", "p99"].map(str::to_owned))
    }

    /// Prints a line of the table: the workload, then numbers.
    fn line(&self, cells: &[String; 5]) -> Result<()> {
        let [name, numbers @ ..] = cells;
        let [rate, p50, p90, p99] = numbers;
        match self.args.json {
            true => Ok(()),
            false => output::text(&format!(
                "{name:<38}  {rate:>10}  {p50:>8}  {p90:>8}  {p99:>8}\n"
            )),
        }
    }

    fn add(&mut self, measured: Measured) -> Result<()> {
        let times = measured.times.as_ref();
        let time = |time: Option<f64>| time.map(microseconds).unwrap_or_default();
        self.line(&[
            measured.workload.clone(),
            rate(measured.operations_per_second),
            time(times.map(|t| t.p50_us)),
            time(times.map(|t| t.p90_us)),
            time(times.map(|t| t.p99_us)),
        ])?;
        let notes = measured.notes();
        if !notes.is_empty() && !self.args.json {
            output::text(&format!("    {notes}\n"))?;
        }
        self.measured.push(measured);
        Ok(())
    }
}

/// A rate with three significant digits if it is small.
fn rate(per_second: f64) -> String {
    match per_second {
        _ if per_second >= 100.0 => format!("{per_second:.0}"),
        _ if per_second >= 10.0 => format!("{per_second:.1}"),
        _ => format!("{per_second:.2}"),
    }
}
