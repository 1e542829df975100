//! The guard process. It ends the command's process group if `soloist lock` dies or is stopped for
//! too long, and ends the session of a dead `soloist lock` when nothing of the group is left.
//!
//! It stands outside the group, so that no signal to the group ends it. Its child, the
//! [anchor](super::anchor), leads the group.
//!
//! It reads lines from its standard input, which `soloist lock` writes:
//!
//! | line | meaning |
//! |---|---|
//! | `session KEY` | the session that holds the lock, as JSON |
//! | `until NS` | the group may not run beyond this time, in nanoseconds since boot |
//! | `command PID` | this process becomes the command next |
//! | `terminal` | return the terminal to the group of `soloist lock`, and answer with a line |
//! | `done` | the lock was released: exit and leave the group alone |
//!
//! Its first answer is the number of the group. End of file without `done` means that
//! `soloist lock` is dead, because no other process has the write end of the pipe.

use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::{Pid, Signal, getpgid, getppid};
use soloist_client::{Moment, SessionKey};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::net::unix::pipe;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{sleep, timeout};

use super::anchor::Anchor;
use super::work::Work;
use crate::Verdict;
use crate::runtime::block_on;

/// Timeout for ending the session of a `soloist lock` that is dead. After that it expires.
const RELEASE_MAX: Duration = Duration::from_secs(30);

/// Maximum time for a process to start or to answer.
pub(super) const ANSWER_MAX: Duration = Duration::from_secs(10);

/// How often to check whether processes are left in the group.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(10);

/// The guard process as a child of `soloist lock`.
pub(crate) struct GuardProcess {
    child: Child,
    stdin: Option<ChildStdin>,
    answers: Answers,
    /// The group that it guards, once it is ready.
    group: Option<Pid>,
}

/// Lines that another process answers with.
pub(super) type Answers = Lines<BufReader<pipe::Receiver>>;

impl GuardProcess {
    pub(crate) fn start(grace: Duration) -> Result<Self> {
        let argument = grace.as_millis().to_string();
        let (child, stdin, answers) = spawn(ARGUMENT, &argument)?;
        // Writes must not block if the guard process is stopped and no longer reads.
        let flags = fcntl_getfl(&stdin)?;
        fcntl_setfl(&stdin, flags | OFlags::NONBLOCK)?;
        Ok(GuardProcess {
            child,
            stdin: Some(stdin),
            answers,
            group: None,
        })
    }

    /// Waits until the guard process has installed its signal handlers, and the group exists.
    /// Returns the group.
    pub(crate) async fn ready(&mut self) -> Result<Pid> {
        let group = first_answer(&mut self.answers).await?;
        let group = Pid::from_raw(group.parse()?).context("no process group")?;
        self.group = Some(group);
        Ok(group)
    }

    /// The process group that the command runs in.
    pub(crate) fn group(&self) -> Pid {
        self.group.expect("it is ready")
    }

    /// Sets the session to end if this process dies.
    pub(crate) fn tell_session(&mut self, key: &SessionKey) {
        let key = serde_json::to_string(key).expect("it has no part that cannot be encoded");
        self.tell(&format!("session {key}\n"));
    }

    /// Sets the latest time until which the group may run.
    pub(crate) fn tell_until(&mut self, moment: Moment) {
        self.tell(&format!("until {}\n", moment.since_start().as_nanos()));
    }

    /// Sets the process that becomes the command. Once the line is written, the guard process reads
    /// it even if this process dies.
    pub(crate) fn tell_command(&mut self, command: Pid) -> io::Result<()> {
        let written = self.write(&format!("command {}\n", command.as_raw_pid()));
        written.map_err(|error| {
            let text = format!("cannot inform the guard process: {error}");
            io::Error::new(error.kind(), text)
        })
    }

    /// Asks the guard process to return the terminal to our process group, and waits for its answer
    /// until this moment at the latest. Returns whether it answered.
    pub(crate) async fn take_terminal_back(&mut self, until: Moment) -> bool {
        self.ask_for_terminal();
        self.terminal_is_back(until).await
    }

    pub(crate) fn ask_for_terminal(&mut self) {
        self.tell("terminal\n");
    }

    /// Waits for the answer to [`ask_for_terminal`](GuardProcess::ask_for_terminal). Cancel safe.
    pub(crate) async fn terminal_is_back(&mut self, until: Moment) -> bool {
        tokio::select! {
            biased;
            line = self.answers.next_line() => line.is_ok_and(|line| line.is_some()),
            () = soloist_client::reached(until) => false,
        }
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
        let _ = self.write(line);
    }

    fn write(&mut self, line: &str) -> io::Result<()> {
        match &mut self.stdin {
            Some(stdin) => stdin.write_all(line.as_bytes()),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    pub(crate) fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }
}

/// Starts a process of this program in a process group of its own. Returns it, its standard input,
/// and the lines of its standard output.
pub(super) fn spawn(role: &str, argument: &str) -> Result<(Child, ChildStdin, Answers)> {
    // Not by path: the file may have been replaced since this process was started.
    let mut child = Command::new("/proc/self/exe")
        .arg0("soloist")
        .args([role, argument])
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .with_context(|| format!("cannot start the process {role}"))?;
    let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
    let stdin = stdin.with_context(|| format!("no pipe to the process {role}"))?;
    let stdout = stdout.with_context(|| format!("no pipe from the process {role}"))?;
    let answers = pipe::Receiver::from_owned_fd(OwnedFd::from(stdout))?;
    Ok((child, stdin, BufReader::new(answers).lines()))
}

/// The first line of a process that was started.
pub(super) async fn first_answer(answers: &mut Answers) -> Result<String> {
    let line = timeout(ANSWER_MAX, answers.next_line()).await;
    line.with_context(|| format!("the guard process did not start within {ANSWER_MAX:?}"))?
        .context("cannot read from the guard process")?
        .context("the guard process has ended")
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
        let mut anchor = Anchor::start(parents_group).await?;
        let group = anchor.group();
        answer(&group.as_raw_pid().to_string());
        let mut work = Work::new(group, None);
        let mut until: Option<Moment> = None;
        let mut session: Option<SessionKey> = None;
        // Until when the anchor may answer that it has returned the terminal.
        let mut returning: Option<Moment> = None;
        loop {
            let line = tokio::select! {
                line = lines.next_line() => line.ok().flatten(),
                () = reached(until) => {
                    work.signal(Signal::KILL);
                    return Ok(());
                }
                // Meanwhile the lock may be renewed, or lost.
                () = anchor.answered(returning), if returning.is_some() => {
                    // `soloist lock` continues whether or not this succeeded.
                    answer("ok");
                    returning = None;
                    continue;
                }
            };
            let Some(line) = line else { break };
            match line.split_once(' ').unwrap_or((&line, "")) {
                ("session", key) => session = Some(serde_json::from_str(key)?),
                ("until", ns) => until = Some(Moment::new(Duration::from_nanos(ns.parse()?))),
                ("command", pid) => work = Work::new(group, Pid::from_raw(pid.parse()?)),
                ("terminal", _) => {
                    anchor.return_terminal();
                    returning = Some(Moment::now() + ANSWER_MAX);
                }
                ("done", _) => return Ok(()),
                (other, _) => anyhow::bail!("unknown line {other:?}"),
            }
        }
        let grace = Moment::now() + Duration::from_millis(self.grace_ms);
        end(&work, until.map_or(grace, |until| until.min(grace))).await;
        // Nothing of the group is left, and nobody waits any more. A starter that joins the group
        // after this does not execute the command.
        if let Some(session) = session {
            timeout(RELEASE_MAX, session.end()).await??;
        }
        Ok(())
    }
}

/// Ends the group, with SIGKILL at `kill_at` if SIGTERM is not enough. Called when `soloist lock`
/// is dead, so that nothing renews the lock.
async fn end(work: &Work, kill_at: Moment) {
    work.terminate();
    while !work.is_over() {
        if kill_at.since(Moment::now()).is_zero() {
            work.signal(Signal::KILL);
        }
        sleep(LOOK_EVERY.min(kill_at.since(Moment::now()))).await;
    }
}

pub(super) async fn reached(moment: Option<Moment>) {
    match moment {
        Some(moment) => soloist_client::reached(moment).await,
        None => std::future::pending().await,
    }
}

/// Answers the parent process with a line. Errors are ignored: if it is dead, standard input ends.
pub(super) fn answer(line: &str) {
    let mut stdout = io::stdout();
    let _ = writeln!(stdout, "{line}").and_then(|()| stdout.flush());
}

/// Keeps signals that are meant for others from ending this process. A handler stays installed even
/// if its stream is dropped.
pub(super) fn survive_signals() {
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
