//! Supervises the command from its start until every process of its group has ended.

use std::io;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions, kill_current_process_group, waitpid};
use soloist_api::ttl::{kill_before, warn_before};
use soloist_client::{ClientGuard, Guard, Moment, reached};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::sleep;

use super::answer_by;
use super::guard::{GuardProcess, LOOK_EVERY};
use super::signals::Signals;
use super::terminal::Terminal;
use super::work::Work;
use crate::output;

pub(super) struct Session<'a> {
    lock: &'a ClientGuard,
    process: &'a mut GuardProcess,
    grace: Duration,
    leave_children: bool,
    /// The lock's `valid_until` when the guard process was last informed.
    told: Option<Moment>,
    /// Exit code of the command, or `None` while it runs.
    code: Option<u8>,
    lost: bool,
    /// When to send SIGKILL. `None` until SIGTERM was sent.
    kill_at: Option<Moment>,
    /// Whether the guard process was asked for the terminal before SIGKILL.
    terminal_asked: bool,
}

/// Maximum time to wait for the terminal before SIGKILL.
const TERMINAL_MAX: Duration = Duration::from_millis(200);

/// How the session ended.
pub(super) enum Ended {
    ByItself(u8),
    LockLost,
}

impl<'a> Session<'a> {
    pub(super) fn new(
        lock: &'a ClientGuard,
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
            terminal_asked: false,
        }
    }

    pub(super) fn group(&self) -> Pid {
        self.process.group()
    }

    pub(super) fn tell_session(&mut self) {
        if let Some(key) = self.lock.session_key() {
            self.process.tell_session(&key);
        }
    }

    pub(super) fn tell_command(&mut self, command: Pid) -> io::Result<()> {
        self.process.tell_command(command)
    }

    /// The latest time until which the group may run, given the last known renewal.
    fn last_moment(&self) -> Moment {
        self.lock.valid_until().before(kill_before(self.lock.ttl()))
    }

    pub(super) fn tell_validity(&mut self) {
        self.told = Some(self.lock.valid_until());
        // Once the lock is lost, the guard process already has the final deadline.
        if !self.lost {
            self.process.tell_until(self.last_moment());
        }
    }

    /// Waits until the command and its group have ended. Meanwhile it passes on signals, informs
    /// the guard process of renewals, and ends the group if the lock is lost.
    pub(super) async fn run(
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
                .before(self.grace.min(warn_before(self.lock.ttl())));
            tokio::select! {
                _ = children.recv() => {}
                signal = signals.next() => work.signal(signal),
                () = renewed(self.lock, self.told) => self.tell_validity(),
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

    /// The exit code, once nothing is left to wait for.
    fn finished(&mut self, work: &Work) -> Option<u8> {
        let code = self.code?;
        if work.is_over() || (self.leave_children && !self.lost) {
            return Some(code);
        }
        if self.kill_at.is_none() {
            // The lock is still renewed while the group ends.
            self.begin_to_end(work, Moment::now() + self.grace);
        }
        None
    }

    fn lose(&mut self, work: &Work, why: &str) {
        output::complain(&format!("error: lock {:?}: {why}", self.lock.name()));
        self.lost = true;
        let kill_at = (Moment::now() + self.grace).min(self.last_moment());
        self.process.tell_until(kill_at);
        match self.kill_at {
            // SIGTERM was sent before.
            Some(earlier) => self.kill_at = Some(earlier.min(kill_at)),
            None => self.begin_to_end(work, kill_at),
        }
    }

    fn begin_to_end(&mut self, work: &Work, kill_at: Moment) {
        work.terminate();
        self.kill_at = Some(kill_at);
    }

    /// Takes the terminal back shortly before SIGKILL. That kills the group's leader too, and only
    /// the leader can return the terminal. The guard process may be stopped and not answer, so
    /// SIGKILL does not wait beyond the last moment.
    async fn kill_if_due(&mut self, work: &Work, terminal: &Terminal) {
        let Some(kill_at) = self.kill_at else { return };
        let is_due = |moment: Moment| moment.since(Moment::now()).is_zero();
        if terminal.is_handed_over()
            && !self.terminal_asked
            && is_due(kill_at.before(TERMINAL_MAX.min(self.grace / 4)))
            && self.process.is_alive()
        {
            self.terminal_asked = true;
            let until = kill_at.max(Moment::now() + TERMINAL_MAX);
            let until = until.min(self.last_moment());
            self.process.take_terminal_back(until).await;
        }
        if is_due(kill_at) {
            work.signal(Signal::KILL);
        }
    }

    /// Checks whether the command has ended, or was stopped from the terminal.
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
                output::complain("error: the guard process was killed, so the command is ended");
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

    /// Ctrl-Z: stops this process too, because the shell waits for it and not for the command.
    /// While it is stopped nothing renews the lock, and the guard process ends the command if that
    /// lasts too long.
    async fn stop_too(&mut self, work: &Work, terminal: &mut Terminal) {
        self.process.ask_for_terminal();
        let answer_by = answer_by();
        let lock = self.lock;
        loop {
            let until = answer_by.min(self.last_moment());
            tokio::select! {
                is_back = self.process.terminal_is_back(until) => match is_back {
                    true => break,
                    // Without the guard process, this process must go on, to end the command.
                    false => return,
                },
                // The guard process must not take the lock for lost meanwhile.
                () = renewed(lock, self.told) => self.tell_validity(),
            }
        }
        let _ = kill_current_process_group(Signal::TSTP);
        // Continued, in the foreground or in the background.
        *terminal = Terminal::here();
        terminal.hand_over(self.group());
        work.signal(Signal::CONT);
    }
}

/// Waits until a lock is valid for longer than the guard process was told, if it was.
async fn renewed(lock: &ClientGuard, told: Option<Moment>) {
    match told {
        Some(told) => lock.renewed_after(told).await,
        None => std::future::pending().await,
    }
}
