//! The anchor: a process that leads the command's process group. While it is not reaped, no other
//! group can have the same number. The guard process is its parent.
//!
//! It reads lines from its standard input. `terminal` makes it return the terminal to the group of
//! `soloist lock`, which only a process of the terminal's foreground group may do. It answers with
//! a line. At the end of the input it exits.

use std::io::{self, Write};
use std::process::{Child, ChildStdin};

use anyhow::{Context, Result};
use rustix::process::Pid;
use soloist_client::Moment;

use super::guard::{Answers, answer, first_answer, reached, spawn, survive_signals};
use super::terminal;
use crate::Verdict;
use crate::runtime::block_on;

/// The anchor as a child of the guard process.
pub(super) struct Anchor {
    /// Not reaped, so that the number of the group stays taken.
    child: Child,
    stdin: ChildStdin,
    answers: Answers,
}

impl Anchor {
    /// Starts the anchor, and waits until it has installed its signal handlers.
    pub(super) async fn start(locks_group: Pid) -> Result<Self> {
        let (child, stdin, mut answers) = spawn(ARGUMENT, &locks_group.as_raw_pid().to_string())?;
        first_answer(&mut answers).await?;
        Ok(Anchor {
            child,
            stdin,
            answers,
        })
    }

    /// The group that it leads.
    pub(super) fn group(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Returns the terminal to the group of `soloist lock`. This may fail: the anchor may have been
    /// killed together with the group.
    pub(super) fn return_terminal(&mut self) {
        let _ = self.stdin.write_all(b"terminal\n");
    }

    /// Waits for the answer to [`return_terminal`](Anchor::return_terminal), until this moment at
    /// the latest. Cancel safe.
    pub(super) async fn answered(&mut self, until: Option<Moment>) {
        tokio::select! {
            biased;
            _ = self.answers.next_line() => {}
            () = reached(until) => {}
        }
    }
}

/// First argument of an anchor; the second one is the group of `soloist lock`.
const ARGUMENT: &str = "lock-anchor";

/// Runs the anchor if this process was started as one.
pub(crate) fn run_if_asked() -> Option<Result<Verdict>> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next()? != ARGUMENT {
        return None;
    }
    let group = arguments.next().unwrap_or_default();
    let group = group.to_string_lossy().parse().ok().and_then(Pid::from_raw);
    let run = |group| block_on(async move { run(group) }).map(|()| Verdict::Well);
    Some(group.context("no process group").and_then(run))
}

fn run(locks_group: Pid) -> Result<()> {
    survive_signals();
    answer("ok");
    for line in io::stdin().lines() {
        anyhow::ensure!(line? == "terminal", "unknown line");
        let _ = terminal::give_to(locks_group);
        answer("ok");
    }
    Ok(())
}
