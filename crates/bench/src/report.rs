//! Results as a table, printed as they come.

use std::io::{self, Write};

use crate::{Error, Measured, microseconds};

/// The results so far, and which workloads are wanted.
#[derive(Debug, Default)]
pub struct Report {
    /// Only workloads whose name contains this text are wanted.
    pub only: Option<String>,
    /// Whether the caller prints JSON, so that no table is printed.
    pub is_json: bool,
    /// Whether workloads do a tenth of the work.
    pub is_quick: bool,
    /// The results so far.
    pub measured: Vec<Measured>,
}

impl Report {
    /// Returns whether a workload is to be run.
    pub fn wants(&self, workload: &str) -> bool {
        let only = self.only.as_ref();
        only.is_none_or(|only| workload.contains(only.as_str()))
    }

    /// Prints the head of the table.
    pub fn head(&self) -> Result<(), Error> {
        self.line(&["workload", "per second", "p50", "p90", "p99"].map(str::to_owned))
    }

    /// Prints a line of the table: the workload, then numbers.
    fn line(&self, cells: &[String; 5]) -> Result<(), Error> {
        let [name, rate, p50, p90, p99] = cells;
        self.print(&format!(
            "{name:<42}  {rate:>10}  {p50:>8}  {p90:>8}  {p99:>8}\n"
        ))
    }

    /// Prints text. A closed pipe is not an error: the reader has seen enough.
    fn print(&self, text: &str) -> Result<(), Error> {
        if self.is_json {
            return Ok(());
        }
        let mut stdout = io::stdout().lock();
        let written = stdout.write_all(text.as_bytes());
        match written.and_then(|()| stdout.flush()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            written => written.map_err(Error::io("cannot write to standard output")),
        }
    }

    /// Adds a result and prints it.
    pub fn add(&mut self, measured: Measured) -> Result<(), Error> {
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
        if !notes.is_empty() {
            self.print(&format!("    {notes}\n"))?;
        }
        self.measured.push(measured);
        Ok(())
    }
}

/// A rate with three significant digits if it is small.
pub fn rate(per_second: f64) -> String {
    match per_second {
        _ if per_second >= 100.0 => format!("{per_second:.0}"),
        _ if per_second >= 10.0 => format!("{per_second:.1}"),
        _ => format!("{per_second:.2}"),
    }
}
