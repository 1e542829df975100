//! The guard process: leads the command's process group, and ends it if `soloist lock` dies or is stopped for too long.
//!
//! It knows what `soloist lock` writes into its standard input, a line each:
//!
//! | line | meaning |
//! |---|---|
//! | `until NS` | nothing may run later than this, in nanoseconds since the machine was started |
//! | `command PID` | the command runs |
//! | `terminal` | the terminal is wanted back; answered with a line |
//! | `done` | all is over: end, and leave the group alone |
//!
//! Its end without `done` means that `soloist lock` is dead: nobody else can write into that pipe.

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
use crate::connect::block_on;

/// How long the guard process may take to start, or to answer.
const ANSWER_MAX: Duration = Duration::from_secs(10);

/// How often one looks whether somebody is left.
pub const LOOK_EVERY: Duration = Duration::from_millis(10);

/// The guard process, as `soloist lock` sees it.
pub struct GuardProcess {
    child: Child,
    stdin: Option<ChildStdin>,
    answers: Lines<BufReader<pipe::Receiver>>,
}

impl GuardProcess {
    pub fn start(grace: Duration) -> Result<Self> {
        // Not by its name: the file may have been replaced since this process was started.
        let mut child = Command::new("/proc/self/exe")
            .arg0("soloist")
            .args(["lock-guard", "--grace-ms"])
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
        // If it is stopped and reads no more, we must not wait for it.
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
    pub fn group(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Waits until it is ready to be in a group that gets signals.
    pub async fn ready(&mut self) -> Result<()> {
        let line = timeout(ANSWER_MAX, self.answers.next_line()).await;
        line.context("the guard process does not start within 10 s")?
            .context("cannot read from the guard process")?
            .context("the guard process has ended")?;
        Ok(())
    }

    /// Tells until when the group may run at most.
    pub fn tell_until(&mut self, moment: Moment) {
        self.tell(&format!("until {}\n", moment.since_start().as_nanos()));
    }

    pub fn tell_command(&mut self, command: Pid) {
        self.tell(&format!("command {}\n", command.as_raw_pid()));
    }

    /// Has it give the terminal back to our group. It may have been killed with the group.
    pub async fn take_terminal_back(&mut self) {
        self.tell("terminal\n");
        let _ = timeout(ANSWER_MAX, self.answers.next_line()).await;
    }

    /// Lets it go.
    pub fn done(&mut self) {
        self.tell("done\n");
        drop(self.stdin.take());
        // It ends at once; but if somebody has stopped it, that is no reason to wait.
        let _ = self.child.try_wait();
    }

    /// If it is dead, the session notices; a line that it does not read, it does not need.
    fn tell(&mut self, line: &str) {
        if let Some(stdin) = &mut self.stdin {
            let _ = stdin.write_all(line.as_bytes());
        }
    }

    pub fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }
}

/// Not for people: `soloist lock` runs it
#[derive(clap::Args)]
pub struct Args {
    #[arg(long)]
    grace_ms: u64,
}

impl Args {
    pub fn run(self) -> Result<Verdict> {
        block_on(self.watch()).map(|()| Verdict::Well)
    }

    async fn watch(self) -> Result<()> {
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
                    // Whether it worked or not, whoever asked goes on.
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

/// Nobody holds the lock for it any more.
async fn end(work: &Work, kill_at: Moment) {
    work.terminate();
    while !work.is_over() {
        if kill_at.since(Moment::now()).is_zero() {
            // The last thing this process does, for it is in the group itself.
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

/// A line, so that `soloist lock` goes on. If it is dead, the other pipe tells.
fn answer() {
    let mut stdout = io::stdout();
    let _ = stdout.write_all(b"ok\n").and_then(|()| stdout.flush());
}

/// Signals to the group are for the command. A handler once installed stays, even if nobody listens.
fn survive_signals() {
    const FIRST_REAL_TIME: i32 = 32;
    for number in 1..FIRST_REAL_TIME {
        let is_own = number == Signal::CHILD.as_raw() || number == Signal::CONT.as_raw();
        if !is_own && !FATAL.contains(&number) {
            // One that cannot be handled ends us, as it would have done anyway.
            let _ = signal(SignalKind::from_raw(number));
        }
    }
}

/// Signals that say that a process is broken; handling them is refused with a panic.
const FATAL: [i32; 5] = [
    Signal::ILL.as_raw(),
    Signal::FPE.as_raw(),
    Signal::KILL.as_raw(),
    Signal::SEGV.as_raw(),
    Signal::STOP.as_raw(),
];
