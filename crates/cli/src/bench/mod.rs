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

use crate::{Verdict, output};
use samples::Samples;

const EXPLANATION: &str = "\
Workloads:
  tcp, tls, unix            floors: a byte there and back between two tasks, without Soloist
  reacquire embedded        acquire and release on the node that has the token, in one program
  reacquire api             the same through the node's Unix socket, by the Rust client
  eight locks               8 clients, each with a lock of its own, on 5 nodes
  contended N, hand-over N  N nodes, two clients on each, want one lock and do nothing inside; the hand-over is from the
                            release to the next entry
  60 nodes                  500 acquisitions a second in all, of 500 locks, from 60 nodes
  idle locks, live locks    memory that locks leave behind once they were used, and of locks that are held

All nodes run in one process. Two cores and many nodes measure the scheduler, too: look at the ratios.";

/// The workloads, for the help.
fn explanation() -> String {
    format!("{EXPLANATION}\n\n{}", faults::EXPLANATION)
}

/// Measure the lock, and compare it with what the machine can do
#[derive(clap::Args)]
#[command(after_long_help = explanation())]
pub struct Args {
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
pub struct Measured {
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
pub struct Bound {
    pub what: &'static str,
    pub us: f64,
}

#[derive(Serialize, Clone)]
pub struct Ratio {
    pub floor: &'static str,
    pub times: f64,
}

impl Measured {
    pub fn new(
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
    pub fn run(self) -> Result<Verdict> {
        let measured = super::runtime()?.block_on(self.measure())?;
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
            bail!("no workload has {only:?} in its name: `soloist bench --help` lists them");
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
        if self.args.json {
            return Ok(());
        }
        output::text(&format!(
            "{:<40} {:>12} {:>10} {:>10} {:>10}  {}\n",
            "workload", "a second", "p50 us", "p90 us", "p99 us", "beside the floor; else"
        ))
    }

    fn add(&mut self, measured: Measured) -> Result<()> {
        if !self.args.json {
            let time = |time: Option<f64>| time.map_or_else(String::new, |us| format!("{us:.1}"));
            let times = measured.times.as_ref();
            let mut rest = Vec::new();
            rest.extend(
                measured
                    .ratio
                    .as_ref()
                    .map(|ratio| format!("{:.2} x {}", ratio.times, ratio.floor)),
            );
            rest.extend(measured.messages.map(|m| format!("{m:.2} messages")));
            rest.extend(measured.bytes_each.map(|b| format!("{b:.0} bytes each")));
            rest.extend(measured.bound.as_ref().zip(times).map(|(bound, times)| {
                let (longest, most) = (times.max_us / 1000.0, bound.us / 1000.0);
                format!("longest {longest:.0} ms of {most:.0} ms ({})", bound.what)
            }));
            output::text(&format!(
                "{:<40} {:>12.0} {:>10} {:>10} {:>10}  {}\n",
                measured.workload,
                measured.operations_per_second,
                time(times.map(|t| t.p50_us)),
                time(times.map(|t| t.p90_us)),
                time(times.map(|t| t.p99_us)),
                rest.join(", "),
            ))?;
        }
        self.measured.push(measured);
        Ok(())
    }
}
