//! The guard process. It leads the command's process group, and ends the group if `soloist lock`
//! dies or is stopped for too long.
//!
//! It reads lines from its standard input, which `soloist lock` writes:
//!
//! | line | meaning |
//! |---|---|
//! | `until NS` | the group may not run beyond this time, in nanoseconds since boot |
//! | `command PID` | the command was started |
//! | `terminal` | return the terminal to the group of `soloist lock`, and answer with a line |
//! | `done` | the session is over: exit and leave the group alone |
//!
//! End of file without `done` means that `soloist lock` is dead, because no other process has the
//! write end of the pipe.

use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::{Pid, Signal, getpgid, getpgrp, getppid};
use soloist_client::Moment;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::net::unix::pipe;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{sleep, timeout};

use super::terminal;
use super::work::Work;
use crate::Verdict;
use crate::runtime::block_on;

/// Maximum time for the guard process to start or to answer.
const ANSWER_MAX: Duration = Duration::from_secs(10);

/// How often to check whether processes are left in the group.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(10);

/// The guard process as a child of `soloist lock`.
pub(crate) struct GuardProcess {
    child: Child,
    stdin: Option<ChildStdin>,
    answers: Lines<BufReader<pipe::Receiver>>,
}

impl GuardProcess {
    pub(crate) fn start(grace: Duration) -> Result<Self> {
        // Not by path: the file may have been replaced since this process was started.
        let mut child = Command::new("/proc/self/exe")
            .arg0("soloist")
            .arg(ARGUMENT)
            .arg(grace.as_millis().to_string())
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("cannot start the guard process")?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let stdin = stdin.context("no pipe to the guard process")?;
        let stdout = stdout.context("no pipe from the guard process")?;
        // Writes must not block if the guard process is stopped and no longer reads.
        let flags = fcntl_getfl(&stdin)?;
        fcntl_setfl(&stdin, flags | OFlags::NONBLOCK)?;
        let answers = pipe::Receiver::from_owned_fd(OwnedFd::from(stdout))?;
        Ok(GuardProcess {
            child,
            stdin: Some(stdin),
            answers: BufReader::new(answers).lines(),
        })
    }

    /// The process group that it leads.
    pub(crate) fn group(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Waits until the guard process has installed its signal handlers.
    pub(crate) async fn ready(&mut self) -> Result<()> {
        let line = timeout(ANSWER_MAX, self.answers.next_line()).await;
        line.with_context(|| format!("the guard process did not start within {ANSWER_MAX:?}"))?
            .context("cannot read from the guard process")?
            .context("the guard process has ended")?;
        Ok(())
    }

    /// Sets the latest time until which the group may run.
    pub(crate) fn tell_until(&mut self, moment: Moment) {
        self.tell(&format!("until {}\n", moment.since_start().as_nanos()));
    }

    pub(crate) fn tell_command(&mut self, command: Pid) {
        self.tell(&format!("command {}\n", command.as_raw_pid()));
    }

    /// Asks the guard process to return the terminal to our process group. It may have been killed
    /// together with the group, so the answer is optional.
    pub(crate) async fn take_terminal_back(&mut self) {
        self.tell("terminal\n");
        let _ = timeout(ANSWER_MAX, self.answers.next_line()).await;
    }

    /// Lets the guard process exit.
    pub(crate) fn done(&mut self) {
        self.tell("done\n");
        drop(self.stdin.take());
        // Reap it if it has exited already, but do not wait: it may be stopped.
        let _ = self.child.try_wait();
    }

    /// Writes a line. Errors are ignored: the session notices if the guard process is dead, and a
    /// stopped one does not need lines that it cannot read.
    fn tell(&mut self, line: &str) {
        if let Some(stdin) = &mut self.stdin {
            let _ = stdin.write_all(line.as_bytes());
        }
    }

    pub(crate) fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }
}

/// First argument of a guard process; the second one is the grace period in milliseconds. This is
/// not a subcommand, because shells would complete it and clap would suggest it.
const ARGUMENT: &str = "lock-guard";

/// Runs the guard process if this process was started as one.
pub(crate) fn run_if_asked() -> Option<Result<Verdict>> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next()? != ARGUMENT {
        return None;
    }
    let grace_ms = arguments.next().unwrap_or_default();
    let grace_ms = grace_ms.to_string_lossy().parse();
    Some(grace_ms.context("no grace period").and_then(|grace_ms| {
        let watch = Watch { grace_ms };
        block_on(watch.run()).map(|()| Verdict::Well)
    }))
}

/// The guard process itself.
struct Watch {
    grace_ms: u64,
}

impl Watch {
    async fn run(self) -> Result<()> {
        survive_signals();
        let parents_group = getpgid(getppid()).context("no parent process")?;
        let stdin = io::stdin().as_fd().try_clone_to_owned()?;
        let mut lines = BufReader::new(pipe::Receiver::from_owned_fd(stdin)?).lines();
        answer();
        let group = getpgrp();
        let mut work = Work::new(group, None);
        let mut until: Option<Moment> = None;
        loop {
            let line = tokio::select! {
                line = lines.next_line() => line.ok().flatten(),
                () = reached(until) => {
                    work.signal(Signal::KILL);
                    return Ok(());
                }
            };
            let Some(line) = line else { break };
            match line.split_once(' ').unwrap_or((&line, "")) {
                ("until", ns) => until = Some(Moment::new(Duration::from_nanos(ns.parse()?))),
                ("command", pid) => work = Work::new(group, Pid::from_raw(pid.parse()?)),
                ("terminal", _) => {
                    // `soloist lock` continues whether or not this succeeds.
                    let _ = terminal::give_to(parents_group);
                    answer();
                }
                ("done", _) => return Ok(()),
                (other, _) => anyhow::bail!("unknown line {other:?}"),
            }
        }
        let grace = Moment::now() + Duration::from_millis(self.grace_ms);
        end(&work, until.map_or(grace, |until| until.min(grace))).await;
        Ok(())
    }
}

/// Ends the group, with SIGKILL at `kill_at` if SIGTERM is not enough. Called when `soloist lock`
/// is dead, so that nothing renews the lock.
async fn end(work: &Work, kill_at: Moment) {
    work.terminate();
    while !work.is_over() {
        if kill_at.since(Moment::now()).is_zero() {
            // This also kills the guard process, which is in the group itself.
            work.signal(Signal::KILL);
        }
        sleep(LOOK_EVERY.min(kill_at.since(Moment::now()))).await;
    }
}

async fn reached(moment: Option<Moment>) {
    match moment {
        Some(moment) => soloist_client::reached(moment).await,
        None => std::future::pending().await,
    }
}

/// Answers `soloist lock` with a line. Errors are ignored: if it is dead, standard input ends.
fn answer() {
    let mut stdout = io::stdout();
    let _ = stdout.write_all(b"ok\n").and_then(|()| stdout.flush());
}

/// Keeps signals to the group, which are meant for the command, from ending this process. A handler
/// stays installed even if its stream is dropped.
fn survive_signals() {
    const FIRST_REAL_TIME: i32 = 32;
    for number in 1..FIRST_REAL_TIME {
        let is_own = number == Signal::CHILD.as_raw() || number == Signal::CONT.as_raw();
        if !is_own && !FATAL.contains(&number) {
            // Without a handler, the signal ends this process, as it would have anyway.
            let _ = signal(SignalKind::from_raw(number));
        }
    }
}

/// Signals for which tokio refuses to install a handler.
const FATAL: [i32; 5] = [
    Signal::ILL.as_raw(),
    Signal::FPE.as_raw(),
    Signal::KILL.as_raw(),
    Signal::SEGV.as_raw(),
    Signal::STOP.as_raw(),
];
