//! Arguments of `soloist lock`.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::time::Duration;

use soloist_api::ttl::WARNING;
use soloist_client::{LockName, LockNameError, Request};

use super::owner;
use crate::connect::Connect;
use crate::exit::{INVALID, LOST, NO_NODE, NOT_ACQUIRED, NOT_EXECUTABLE, NOT_FOUND, UNKNOWN};
use crate::{duration, help};

/// The text after the options. Each paragraph is one line, which clap wraps.
fn explanation() -> String {
    let paragraphs = [
        "The command runs in its own process group, with SOLOIST_LOCK and SOLOIST_FENCE (see \
         `soloist fence`) in its environment. SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1 and \
         SIGUSR2 are passed on to the group. When the command exits, processes that it left \
         behind in its group are ended before the lock is released (SIGTERM, and SIGKILL after \
         the grace period), unless --leave-children is given.",
        &format!(
            "The lock is renewed while the command runs. If it is lost, the group gets SIGTERM, \
             and SIGKILL after the grace period, but no later than the moment until which the \
             lock was known to be held. The same happens if the node stops; the lock is released \
             when the group is gone. If the lock cannot be renewed, SIGTERM is sent 1/{WARNING} \
             of the time to live before that moment (or the grace period before it, if that is \
             shorter), so that nothing of the group is left when the next holder enters. This \
             also holds if `soloist lock` itself is killed or stopped, even by SIGKILL or Ctrl-Z: \
             its guard process ends the group. If `soloist lock` was killed, the guard process \
             then releases the lock at once, without waiting for the time to live."
        ),
        "Two cases are not covered: a process that left the group (setsid), and killing \
         `soloist lock` and its guard process at the same time. A resource that checks fences is \
         safe even then.",
        &format!(
            "Exit codes: the command's own (128+N if signal N ended it); {NOT_ACQUIRED}, or that \
             of -E, if others held the lock until the wait was over; {UNKNOWN} if the lock was \
             not acquired in time and the cluster cannot tell whether it is held (no majority of \
             keepers, or nodes that do not answer; the reason is on stderr); {LOST} if the lock \
             was lost while the command ran; {NOT_FOUND} if the command was not found, \
             {NOT_EXECUTABLE} if it cannot be run; {NO_NODE} if no node can be reached; {INVALID} \
             for invalid input; 128+N if signal N arrived while waiting."
        ),
    ];
    paragraphs.join("\n\n")
}

/// Run a command while holding a lock, as flock(1) does on one machine
#[derive(clap::Args)]
#[command(after_long_help = format!("{}\n\n{}", explanation(), help::FINDING))]
pub(crate) struct Args {
    /// Give up immediately if the lock is held
    #[arg(short = 'n', long, visible_alias = "nb", conflicts_with = "wait")]
    nonblock: bool,

    /// Give up after this time, such as 10s; a plain number means seconds
    #[arg(short, long, value_name = "TIME", visible_alias = "timeout", value_parser = wait_time, allow_negative_numbers = true)]
    wait: Option<Duration>,

    /// How long the lock stays held if it is no longer renewed, such as 10s [default: the node's]
    #[arg(long, value_name = "TIME", value_parser = duration::parse, allow_negative_numbers = true)]
    pub ttl: Option<Duration>,

    /// Exit code if the lock is not acquired in time, 0 to 255
    #[arg(short = 'E', long = "conflict-exit-code", value_name = "CODE", default_value_t = NOT_ACQUIRED, allow_negative_numbers = true)]
    pub not_acquired: u8,

    /// Grace period between SIGTERM and SIGKILL
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration::parse, allow_negative_numbers = true)]
    pub grace: Duration,

    /// Name shown by `soloist who` [default: user, host, program and process id]
    #[arg(long)]
    owner: Option<String>,

    /// Release the lock when the command exits, without ending processes that it left behind
    #[arg(long)]
    pub leave_children: bool,

    /// Print the holder on stderr while waiting, even if stderr is not a terminal
    #[arg(short, long)]
    verbose: bool,

    #[command(flatten)]
    pub connect: Connect,

    /// Name of the lock
    #[arg(value_name = "NAME")]
    pub name: String,

    /// Command to run, with its arguments
    #[arg(value_name = "COMMAND", required = true, trailing_var_arg = true)]
    pub command: Vec<OsString>,
}

impl Args {
    /// Returns whether to print the holder while waiting.
    pub(crate) fn is_talkative(&self) -> bool {
        self.verbose || std::io::stderr().is_terminal()
    }

    pub(crate) fn request(&self) -> Result<Request, LockNameError> {
        let mut request = Request::new(LockName::new(&self.name)?);
        if self.nonblock {
            request = request.wait(Duration::ZERO);
        }
        if let Some(wait) = self.wait {
            request = request.wait(wait);
        }
        let owner = self.owner.clone();
        let owner = owner.unwrap_or_else(|| owner::default(&self.command[0]));
        Ok(request.owner(&owner))
    }
}

/// One day, which is also the longest wait that nodes allow.
const WAIT_MAX: Duration = Duration::from_secs(24 * 60 * 60);

fn wait_time(text: &str) -> Result<Duration, String> {
    let given = duration::parse(text)?;
    let in_range = (given <= WAIT_MAX).then_some(given);
    in_range.ok_or_else(|| {
        let most = duration::text(WAIT_MAX);
        format!("too long (maximum: {most}); omit it to wait without limit")
    })
}
