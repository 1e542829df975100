//! The starter: a process in the command's group that becomes the command, but not before the guard
//! process knows its pid. So if `soloist lock` is killed, either the command was never executed, or
//! the guard process ends it.
//!
//! Its standard input is a Unix socket. `soloist lock` sends one message over it, and the command's
//! standard input with it: execute the command. If the socket ends without a message,
//! `soloist lock` is dead, and the starter exits. If the command cannot be executed, the starter
//! answers with the number of the error. Otherwise its end of the socket closes without an answer.

use std::ffi::OsString;
use std::io::{self, IoSlice, IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::Command;

use anyhow::{Context, Result};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use rustix::process::Pid;
use soloist_client::{ClientGuard, Guard};
use tokio::io::AsyncReadExt;

use crate::Verdict;

/// A process that waits to become the command.
pub(super) struct Starter {
    pid: Pid,
    socket: UnixStream,
}

impl Starter {
    /// Starts the process in this group.
    pub(super) fn spawn(command: &[OsString], lock: &ClientGuard, group: Pid) -> io::Result<Self> {
        let (socket, theirs) = UnixStream::pair()?;
        // Not by path: the file may have been replaced since this process was started.
        let child = Command::new("/proc/self/exe")
            .arg0("soloist")
            .arg(ARGUMENT)
            .args(command)
            .env("SOLOIST_LOCK", lock.name().as_str())
            .env("SOLOIST_FENCE", lock.fence().to_string())
            .process_group(group.as_raw_pid())
            .stdin(OwnedFd::from(theirs))
            .spawn()?;
        Ok(Starter {
            pid: Pid::from_child(&child),
            socket,
        })
    }

    /// The pid that the command will have.
    pub(super) fn pid(&self) -> Pid {
        self.pid
    }

    /// Makes it execute the command, with the standard input of this process. Returns when the
    /// command runs, or why it cannot.
    pub(super) async fn execute(self) -> io::Result<()> {
        let (stdin, mut space) = (io::stdin(), [MaybeUninit::uninit(); SPACE]);
        let stdin = [stdin.as_fd()];
        let mut attached = SendAncillaryBuffer::new(&mut space);
        attached.push(SendAncillaryMessage::ScmRights(&stdin));
        let message = [IoSlice::new(&[0])];
        sendmsg(&self.socket, &message, &mut attached, SendFlags::NOSIGNAL)?;
        self.socket.set_nonblocking(true)?;
        let mut socket = tokio::net::UnixStream::from_std(self.socket)?;
        let mut answer = String::new();
        socket.read_to_string(&mut answer).await?;
        match answer.parse() {
            Ok(number) => Err(io::Error::from_raw_os_error(number)),
            // Closed without an answer.
            Err(_) => Ok(()),
        }
    }
}

/// Room for one descriptor that is sent with a message.
const SPACE: usize = rustix::cmsg_space!(ScmRights(1));

/// First argument of a starter; the others are the command.
const ARGUMENT: &str = "lock-starter";

/// Runs the starter if this process was started as one.
pub(crate) fn run_if_asked() -> Option<Result<Verdict>> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next()? != ARGUMENT {
        return None;
    }
    Some(run(arguments).map(|()| Verdict::Failed))
}

/// Returns only if the command was not executed.
fn run(mut command: impl Iterator<Item = OsString>) -> Result<()> {
    let program = command.next().context("no command")?;
    let mut socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let Some(stdin) = receive(&socket)? else {
        return Ok(());
    };
    let error = Command::new(program).args(command).stdin(stdin).exec();
    let number = error.raw_os_error().context(error)?;
    socket.write_all(number.to_string().as_bytes())?;
    Ok(())
}

/// Waits for the message. Returns the descriptor that came with it, or `None` if the socket ended.
fn receive(socket: &UnixStream) -> io::Result<Option<OwnedFd>> {
    let (mut byte, mut space) = ([0], [MaybeUninit::uninit(); SPACE]);
    let mut attached = RecvAncillaryBuffer::new(&mut space);
    let mut message = [IoSliceMut::new(&mut byte)];
    recvmsg(socket, &mut message, &mut attached, RecvFlags::CMSG_CLOEXEC)?;
    let mut descriptors = attached.drain().filter_map(|part| match part {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    Ok(descriptors.next())
}
