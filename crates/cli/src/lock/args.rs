//! What `soloist lock` is told.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::time::Duration;

use soloist_client::{AcquireError, Client, Guard};
use soloist_node::config::parse_duration;

use super::NOT_ACQUIRED;
use crate::connect::{Connect, FINDING};

const EXPLANATION: &str = "\
The command runs in a process group of its own, with SOLOIST_LOCK and SOLOIST_FENCE (see `soloist fence`) in its environment. SIGINT,
SIGTERM, SIGHUP, SIGQUIT, SIGUSR1 and SIGUSR2 are passed on to the group. When the command ends, what it left behind in its group
is ended before the lock is released (SIGTERM, after the grace SIGKILL), unless --leave-children is given.

The lock is renewed while the command runs. If it is lost, the group gets SIGTERM, and SIGKILL after the grace, but no
later than the moment until which the lock was known to be held. The same if its node stops; the lock is released when the group is gone. If it cannot be renewed, SIGTERM comes a third of the time to live before
that moment (or the grace, if that is less): nothing of the group is left when another may come in. The same holds if `soloist lock` is killed or
stopped, also with SIGKILL or Ctrl-Z: its guard process sees to it. A process that has left the group (setsid) is not seen; nor is anybody seen
if `soloist lock` and its guard are killed both at once. A resource that checks fences is safe even then.

Exit codes: the command's (128+N if signal N ended it); 75, or that of -E, if the lock was not acquired in time since
others hold it or wait for it; 74 if it was not acquired in time and the cluster cannot tell whether it is held (no majority of the keepers, nodes that
do not answer; the reason is on stderr); 76 if it was lost while the command
ran; 127 if the command was not found, 126 if it cannot be run; 69 if no node can be reached; 2 for wrong input; 128+N if signal N came while waiting.";

/// Run a command while holding a lock, as flock(1) does on one machine
#[derive(clap::Args)]
#[command(after_long_help = format!("{EXPLANATION}\n\n{FINDING}"))]
pub struct Args {
    /// Do not wait behind others: give up at once if the lock is held
    #[arg(short = 'n', long, visible_alias = "nb", conflicts_with = "wait")]
    nonblock: bool,

    /// Give up after so many seconds
    #[arg(short, long, value_name = "SECONDS", visible_alias = "timeout", value_parser = seconds, allow_negative_numbers = true)]
    wait: Option<Duration>,

    /// How long the lock stays taken if this machine dies, such as 10s; the node's default if not given
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    ttl: Option<Duration>,

    /// The exit code if the lock is not acquired in time, 0 to 255
    #[arg(short = 'E', long = "conflict-exit-code", value_name = "CODE", default_value_t = NOT_ACQUIRED, allow_negative_numbers = true)]
    pub not_acquired: u8,

    /// How long processes have between SIGTERM and SIGKILL
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_duration)]
    pub grace: Duration,

    /// As the holder is called in `soloist who`; otherwise, this machine and process
    #[arg(long)]
    owner: Option<String>,

    /// Leave processes alone that the command left behind, and release the lock when the command itself ends
    #[arg(long)]
    pub leave_children: bool,

    /// Say on stderr whom it waits for; on a terminal, it does so anyway
    #[arg(short, long)]
    verbose: bool,

    #[command(flatten)]
    pub connect: Connect,

    /// The lock
    #[arg(value_name = "NAME")]
    pub name: String,

    /// The command and its arguments
    #[arg(value_name = "COMMAND", required = true, trailing_var_arg = true)]
    pub command: Vec<OsString>,
}

impl Args {
    /// Whether to say whom it waits for.
    pub fn is_talkative(&self) -> bool {
        self.verbose || std::io::stderr().is_terminal()
    }

    pub async fn acquire(&self, client: &Client) -> Result<Guard, AcquireError> {
        let mut acquire = client.acquire(&self.name);
        if self.nonblock {
            acquire = acquire.wait(Duration::ZERO);
        }
        if let Some(wait) = self.wait {
            acquire = acquire.wait(wait);
        }
        if let Some(ttl) = self.ttl {
            acquire = acquire.ttl(ttl);
        }
        if let Some(owner) = &self.owner {
            acquire = acquire.owner(owner);
        }
        acquire.await
    }
}

/// A day: nodes let nobody wait longer.
const SECONDS_MAX: f64 = 24.0 * 60.0 * 60.0;

fn seconds(text: &str) -> Result<Duration, String> {
    let number: Option<f64> = text.parse().ok();
    number
        .filter(|seconds| (0.0..=SECONDS_MAX).contains(seconds))
        .map(Duration::from_secs_f64)
        .ok_or_else(|| format!("use a number of seconds from 0 to {SECONDS_MAX}, such as 5 or 0.5"))
}
