//! The time from the command's start to the end of everything that it started.

use std::io;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions, kill_current_process_group, waitpid};
use soloist_client::{Guard, Moment, reached};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::sleep;

use super::guard::{GuardProcess, LOOK_EVERY};
use super::signals::Signals;
use super::terminal::Terminal;
use super::work::Work;
use crate::output;

/// SIGKILL is sent this much before another may come in: it takes a moment, and timers are late.
const KILL_BEFORE_MAX: Duration = Duration::from_millis(500);

/// SIGTERM is sent when this part of the lock's life is left: late enough that renewals may be held up for a while, as when
/// the keepers elect another leader.
pub const WARNING: u32 = 8;

pub struct Session<'a> {
    lock: &'a Guard,
    process: &'a mut GuardProcess,
    grace: Duration,
    leave_children: bool,
    /// Until when the lock was known to be held, when the guard process was told last.
    told: Option<Moment>,
    /// The exit code of the command, once it has ended.
    code: Option<u8>,
    lost: bool,
    /// When SIGKILL is due, once SIGTERM was sent.
    kill_at: Option<Moment>,
}

/// How it went.
pub enum Ended {
    ByItself(u8),
    LockLost,
}

impl<'a> Session<'a> {
    pub fn new(
        lock: &'a Guard,
        process: &'a mut GuardProcess,
        grace: Duration,
        leave_children: bool,
    ) -> Self {
        Session {
            lock,
            process,
            grace,
            leave_children,
            told: None,
            code: None,
            lost: false,
            kill_at: None,
        }
    }

    pub fn group(&self) -> Pid {
        self.process.group()
    }

    pub fn tell_command(&mut self, command: Pid) {
        self.process.tell_command(command);
    }

    /// Until when the command may run at most, as far as is known now.
    fn last_moment(&self) -> Moment {
        let before = (self.lock.ttl() / 20).min(KILL_BEFORE_MAX);
        self.lock.valid_until().before(before)
    }

    pub fn tell_validity(&mut self) {
        self.told = Some(self.lock.valid_until());
        // Once the lock is lost, the time that is left has been told.
        if !self.lost {
            self.process.tell_until(self.last_moment());
        }
    }

    /// Waits for the command's end and that of its group, whatever happens meanwhile.
    pub async fn run(
        mut self,
        work: &Work,
        command: Pid,
        mut signals: Signals,
        terminal: &mut Terminal,
    ) -> io::Result<Ended> {
        let mut children = signal(SignalKind::child())?;
        loop {
            self.look_at_command(work, command, terminal).await?;
            if let Some(code) = self.finished(work) {
                return Ok(if self.lost {
                    Ended::LockLost
                } else {
                    Ended::ByItself(code)
                });
            }
            let warn_at = self
                .last_moment()
                .before(self.grace.min(self.lock.ttl() / WARNING));
            tokio::select! {
                _ = children.recv() => {}
                signal = signals.next() => work.signal(signal),
                () = self.renewed() => self.tell_validity(),
                loss = self.lock.lost(), if !self.lost => {
                    self.lose(work, &loss.to_string());
                }
                () = reached(warn_at), if !self.lost => {
                    self.lose(work, "the lock could not be renewed and is about to be lost");
                }
                () = sleep(LOOK_EVERY), if self.kill_at.is_some() => self.kill_if_due(work, terminal).await,
            }
        }
    }

    async fn renewed(&self) {
        match self.told {
            Some(told) => self.lock.renewed_after(told).await,
            None => std::future::pending().await,
        }
    }

    /// The exit code, if nothing is left to wait for.
    fn finished(&mut self, work: &Work) -> Option<u8> {
        let code = self.code?;
        if work.is_over() || (self.leave_children && !self.lost) {
            return Some(code);
        }
        if self.kill_at.is_none() {
            // The lock stays ours meanwhile.
            self.begin_to_end(work, Moment::now() + self.grace);
        }
        None
    }

    fn lose(&mut self, work: &Work, why: &str) {
        output::complain(&format!("error: lock {:?}: {why}", self.lock.lock()));
        self.lost = true;
        let kill_at = (Moment::now() + self.grace).min(self.last_moment());
        self.process.tell_until(kill_at);
        match self.kill_at {
            // It is on its way out already.
            Some(earlier) => self.kill_at = Some(earlier.min(kill_at)),
            None => self.begin_to_end(work, kill_at),
        }
    }

    fn begin_to_end(&mut self, work: &Work, kill_at: Moment) {
        work.terminate();
        self.kill_at = Some(kill_at);
    }

    async fn kill_if_due(&mut self, work: &Work, terminal: &Terminal) {
        let due = |kill_at: Moment| kill_at.since(Moment::now()).is_zero();
        if self.kill_at.is_some_and(due) {
            // The guard process is in the group; only while it lives can it give the terminal back.
            if terminal.is_handed_over() && self.process.is_alive() {
                self.process.take_terminal_back().await;
            }
            work.signal(Signal::KILL);
        }
    }

    /// Takes note of the command's end, or of its having been stopped from the terminal.
    async fn look_at_command(
        &mut self,
        work: &Work,
        command: Pid,
        terminal: &mut Terminal,
    ) -> io::Result<()> {
        if self.code.is_some() {
            return Ok(());
        }
        let options = WaitOptions::NOHANG | WaitOptions::UNTRACED;
        let Some((_, status)) = waitpid(Some(command), options)? else {
            if !self.process.is_alive() && self.kill_at.is_none() {
                output::complain("error: the guard process was killed: the command is ended too");
                self.begin_to_end(work, Moment::now() + self.grace);
            }
            return Ok(());
        };
        if let Some(code) = status.exit_status() {
            self.code = Some(code as u8);
        } else if let Some(number) = status.terminating_signal() {
            self.code = Some(128 + number as u8);
        } else if status.stopped() && terminal.is_handed_over() {
            self.stop_too(work, terminal).await;
        }
        Ok(())
    }

    /// Ctrl-Z: the shell waits for us, not for the command. While we are stopped nobody renews; the guard process ends
    /// the command if that takes too long.
    async fn stop_too(&mut self, work: &Work, terminal: &mut Terminal) {
        self.process.take_terminal_back().await;
        let _ = kill_current_process_group(Signal::TSTP);
        // We are back, in the foreground or not.
        *terminal = Terminal::here();
        terminal.hand_over(self.group());
        work.signal(Signal::CONT);
    }
}
