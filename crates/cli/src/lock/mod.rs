//! `soloist lock`.
//!
//! There are four processes. This one holds the lock and is the parent of the command. The [guard
//! process](guard) ends the command and releases the lock if this process dies. Its child, the
//! [anchor], leads the process group in which the command runs. The fourth is the command, which
//! begins as a [starter].

pub(crate) mod anchor;
mod args;
pub(crate) mod guard;
mod owner;
mod session;
mod signals;
pub(crate) mod starter;
mod terminal;
mod waiting;
mod work;

pub(crate) use args::Args;

use std::convert::Infallible;
use std::io;
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal};
use soloist_client::{
    AcquireError, Client, ClientGuard, Guard, Locks, Moment, ReleaseError, SessionKey,
};

use crate::exit::{LOST, NOT_EXECUTABLE, NOT_FOUND, UNKNOWN};
use crate::runtime::block_on;
use crate::{Verdict, output};
use guard::{ANSWER_MAX, GuardProcess};
use session::{Ended, Session};
use signals::Signals;
use starter::Starter;
use terminal::Terminal;
use work::Work;

/// Maximum time to wait until the node has processed the cancellation of a request.
const CANCEL_MAX: Duration = Duration::from_millis(500);

impl Args {
    pub(crate) fn run(self) -> Result<Verdict> {
        block_on(self.hold()).map(Verdict::Code)
    }

    async fn hold(self) -> Result<u8> {
        // From here on, signals are passed on to the command, or cancel the wait.
        let mut signals = Signals::new()?;
        let ended_by = |signal: Signal| Ok(128 + signal.as_raw() as u8);
        let request = self.request()?;
        let settings = match self.ttl {
            Some(ttl) => Client::builder().ttl(ttl),
            None => Client::builder(),
        };
        let client = tokio::select! {
            client = self.connect.client_with(settings) => client?,
            signal = signals.next() => return ended_by(signal),
        };
        if client.is_last_resort() {
            let address = client.address();
            output::complain(&format!(
                "note: no node was found; using the cluster of `soloist up` ({address})"
            ));
        }
        let mut process = GuardProcess::start(self.grace)?;
        let acquired = tokio::select! {
            acquired = client.request(request) => acquired,
            never = tell_sessions(&client, &mut process) => match never {},
            never = waiting::tell(&client, &self.name), if self.is_talkative() => match never {},
            signal = signals.next() => {
                // Leave the queue now instead of when the node notices the closed connection.
                client.settle(CANCEL_MAX).await;
                return ended_by(signal);
            }
        };
        let lock = match acquired {
            Ok(lock) => lock,
            Err(AcquireError::NotGranted { detail, .. }) => {
                if self.is_talkative() {
                    output::complain(&detail);
                }
                return Ok(self.not_acquired);
            }
            Err(AcquireError::Unknown { detail, .. }) => {
                output::complain(&format!("error: {detail}"));
                return Ok(UNKNOWN);
            }
            Err(error @ AcquireError::Lost { .. }) => {
                output::complain(&format!("error: {error}"));
                return Ok(LOST);
            }
            Err(error) => return Err(error.into()),
        };
        let code = match process.ready().await {
            Ok(_) => self.work(&lock, &mut process, signals).await,
            Err(error) => Err(error),
        };
        let released = lock.release().await;
        process.done();
        match released {
            Ok(()) => code,
            Err(error) => self.not_released(&error, code?),
        }
    }

    /// Runs the command until it and all processes that it left behind have ended.
    async fn work(
        &self,
        lock: &ClientGuard,
        process: &mut GuardProcess,
        signals: Signals,
    ) -> Result<u8> {
        if lock.valid_for().is_zero() {
            output::complain("error: the lock was lost before the command began");
            return Ok(LOST);
        }
        let mut terminal = Terminal::here();
        let mut session = Session::new(lock, process, self.grace, self.leave_children);
        // Before the command starts, so that the guard process can end it and release the lock if
        // this process dies.
        session.tell_session();
        session.tell_validity();
        // Before the command starts, so that it is in the foreground from its first instruction on.
        terminal.hand_over(session.group());
        let command = match self.start(lock, &mut session).await {
            Ok(command) => command,
            Err(error) => {
                if terminal.is_handed_over() {
                    process.take_terminal_back(answer_by()).await;
                }
                let program = self.command[0].to_string_lossy();
                output::complain(&format!("error: cannot run {program}: {error}"));
                return Ok(match error.kind() {
                    io::ErrorKind::NotFound => NOT_FOUND,
                    _ => NOT_EXECUTABLE,
                });
            }
        };
        let work = Work::new(session.group(), Some(command));
        let ended = session.run(&work, command, signals, &mut terminal).await;
        if terminal.is_handed_over() {
            process.take_terminal_back(answer_by()).await;
        }
        match ended.context("cannot watch the command")? {
            Ended::ByItself(code) => Ok(code),
            Ended::LockLost => Ok(LOST),
        }
    }

    /// Starts the command, once the guard process knows its pid.
    async fn start(&self, lock: &ClientGuard, session: &mut Session<'_>) -> io::Result<Pid> {
        let starter = Starter::spawn(&self.command, lock, session.group())?;
        let command = starter.pid();
        session.tell_command(command)?;
        starter.execute().await?;
        Ok(command)
    }

    /// Exit code if the release failed. The command's own exit code counts only if the lock was
    /// held until the command ended.
    fn not_released(&self, error: &ReleaseError, code: u8) -> Result<u8> {
        match error {
            // The loss was reported when it happened.
            _ if code == LOST => Ok(LOST),
            ReleaseError::Lost(loss) => {
                output::complain(&format!("error: lock {:?}: {loss}", self.name));
                Ok(LOST)
            }
            error => {
                output::complain(&format!("warning: lock {:?}: {error}", self.name));
                Ok(code)
            }
        }
    }
}

/// When a process that was asked now must have answered.
fn answer_by() -> Moment {
    Moment::now() + ANSWER_MAX
}

/// Tells the guard process which session to end if this process dies while it waits.
async fn tell_sessions(client: &Client, process: &mut GuardProcess) -> Infallible {
    let mut told: Option<SessionKey> = None;
    loop {
        let key = client.session_key(told.as_ref()).await;
        process.tell_session(&key);
        told = Some(key);
    }
}
