//! What the demo prints: a line now and then, and a summary.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use anyhow::Result;
use serde::Serialize;
use soloist_api::Fence;

use super::Args;
use super::kill::Killed;
use super::shared_file::SharedFile;
use crate::{Verdict, output};

/// Number of progress lines in the time that the demo is to take.
const LINES: u32 = 8;

/// One turn of a worker, as the worker saw it.
pub(super) struct Turn {
    pub worker: String,
    pub fence: Fence,
    /// The number that it wrote to the shared file.
    pub number: u64,
    pub waited: Duration,
    pub inside: Duration,
}

/// The log of a demo.
pub(super) struct Log<'a> {
    args: &'a Args,
    shared_file: &'a SharedFile,
    begin: Instant,
    /// When the next progress line is due.
    due: Instant,
    turns: Vec<Turn>,
}

#[derive(Serialize)]
struct Summary {
    algorithm: String,
    nodes: u16,
    workers: usize,
    seconds: f64,
    entries: usize,
    /// The number in the shared file at the end.
    counter: u64,
    /// Number of entries, according to the journal, while another worker was inside.
    overlaps: usize,
    fences_rise: bool,
    fewest_turns: usize,
    most_turns: usize,
    longest_wait_ms: u128,
    #[serde(skip_serializing_if = "Option::is_none")]
    kill: Option<Killed>,
}

impl<'a> Log<'a> {
    /// Starts the log. `nodes` says what the nodes are.
    pub(super) fn start(args: &'a Args, shared_file: &'a SharedFile, nodes: &str) -> Result<Self> {
        let begin = Instant::now();
        let log = Log {
            args,
            shared_file,
            begin,
            due: begin + args.duration() / LINES,
            turns: Vec::new(),
        };
        let workers = args.nodes * args.workers;
        log.print(&format!(
            "{} {nodes} with TLS links, {workers} workers, one lock ({}), {} s\n",
            args.nodes, args.algorithm, args.seconds
        ))?;
        Ok(log)
    }

    pub(super) fn begin(&self) -> Instant {
        self.begin
    }

    fn print(&self, text: &str) -> Result<()> {
        match self.args.json {
            true => Ok(()),
            false => output::text(text),
        }
    }

    /// Prints a line with the time since the start.
    fn line(&self, text: &str) -> Result<()> {
        let seconds = self.begin.elapsed().as_secs_f64();
        self.print(&format!("{seconds:>6.1} s  {text}\n"))
    }

    /// Prints a line that stands out from the others.
    pub(super) fn headline(&self, text: &str) -> Result<()> {
        self.line(&output::bold(&format!(">>> {text}")))
    }

    /// Records a turn. With --verbose, it gets a line.
    pub(super) fn turn(&mut self, turn: Turn) -> Result<()> {
        if self.args.verbose {
            self.line(&format!(
                "{:<7} wrote {:>3}  fence {}  waited {:>4} ms, inside {:>3} ms",
                turn.worker,
                turn.number,
                turn.fence,
                turn.waited.as_millis(),
                turn.inside.as_millis(),
            ))?;
        }
        self.turns.push(turn);
        Ok(())
    }

    /// Prints how far the demo is, if a line is due.
    pub(super) fn progress(&mut self, what: impl FnOnce() -> Option<String>) -> Result<()> {
        if Instant::now() < self.due {
            return Ok(());
        }
        self.due += self.args.duration() / LINES;
        let (overlaps, _) = self.shared_file.judge()?;
        let entries = self.turns.len();
        let last = || {
            let turn = self.turns.last()?;
            Some(format!("{} wrote {} last", turn.worker, turn.number))
        };
        let what = what().or_else(last).unwrap_or_default();
        self.line(&format!(
            "{entries:>4} entries, {overlaps} overlaps; {what}"
        ))
    }

    /// Prints the summary.
    pub(super) fn conclude(self, kill: Option<Killed>) -> Result<Verdict> {
        let summary = self.summary(kill)?;
        match self.args.json {
            true => output::json(&summary)?,
            false => self.print(&summary.text())?,
        }
        let counted = summary.counter == summary.entries as u64;
        Ok(Verdict::of(
            counted && summary.overlaps == 0 && summary.fences_rise,
        ))
    }

    fn summary(&self, kill: Option<Killed>) -> Result<Summary> {
        let args = self.args;
        let workers = usize::from(args.nodes) * usize::from(args.workers);
        let mut turns = HashMap::new();
        for turn in &self.turns {
            *turns.entry(turn.worker.as_str()).or_insert(0_usize) += 1;
        }
        let waits = self.turns.iter().map(|turn| turn.waited.as_millis());
        let (overlaps, fences_rise) = self.shared_file.judge()?;
        Ok(Summary {
            algorithm: args.algorithm.clone(),
            nodes: args.nodes,
            workers,
            seconds: self.begin.elapsed().as_secs_f64(),
            entries: self.turns.len(),
            counter: self.shared_file.counter()?,
            overlaps,
            fences_rise,
            fewest_turns: match turns.len() < workers {
                true => 0,
                false => turns.values().copied().min().unwrap_or(0),
            },
            most_turns: turns.values().copied().max().unwrap_or(0),
            longest_wait_ms: waits.max().unwrap_or(0),
            kill,
        })
    }
}

impl Summary {
    fn text(&self) -> String {
        let fences = match self.fences_rise {
            true => "fences rise",
            false => "FENCES DO NOT RISE",
        };
        let overlaps = match self.overlaps {
            0 => "0 overlaps".to_owned(),
            overlaps => format!("{overlaps} OVERLAPS"),
        };
        let mut text = format!(
            "\n{} entries in {:.1} s, {overlaps}; the number in the file is {}; {fences}\n\
             each worker entered {} to {} times and waited at most {} ms\n",
            self.entries,
            self.seconds,
            self.counter,
            self.fewest_turns,
            self.most_turns,
            self.longest_wait_ms,
        );
        if let Some(kill) = &self.kill {
            text += &kill.to_string();
        }
        text
    }
}
