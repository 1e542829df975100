//! The command and everybody in its process group.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, PidfdFlags, Signal, getpgid, kill_process_group, pidfd_open, pidfd_send_signal,
};

/// What runs under the lock. The group's leader is the guard process, which does not count: as long as it lives, no
/// other group can have this number.
pub struct Work {
    leader: Pid,
    /// A handle on the command: its number may be another process's by now.
    command: Option<(Pid, OwnedFd)>,
}

impl Work {
    pub fn new(leader: Pid, command: Option<Pid>) -> Self {
        // Without a handle (an old kernel) the group alone is seen, which is where the command starts.
        let command = command.and_then(|pid| {
            let handle = pidfd_open(pid, PidfdFlags::empty()).ok()?;
            Some((pid, handle))
        });
        Work { leader, command }
    }

    /// Sends a signal to all of it.
    pub fn signal(&self, signal: Signal) {
        // First the command by itself, in case that it went into another group: an interactive shell does.
        if let Some((pid, handle)) = &self.command
            && !self.command_is_over()
            && getpgid(Some(*pid)).is_ok_and(|group| group != self.leader)
        {
            let _ = pidfd_send_signal(handle, signal);
        }
        // It fails if nobody is left, or nobody that we may signal.
        let _ = kill_process_group(self.leader, signal);
    }

    /// Asks it to end. What is stopped could not.
    pub fn terminate(&self) {
        self.signal(Signal::TERM);
        self.signal(Signal::CONT);
    }

    /// Whether nothing runs any more.
    pub fn is_over(&self) -> bool {
        // If it cannot be seen whether somebody is left, somebody is.
        self.command_is_over() && self.somebody_in_group().is_ok_and(|found| !found)
    }

    fn command_is_over(&self) -> bool {
        let Some((_, handle)) = &self.command else {
            return true;
        };
        let mut ready = [PollFd::new(handle, PollFlags::IN)];
        let at_once = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        poll(&mut ready, Some(&at_once)).is_ok_and(|ready| ready > 0)
    }

    /// A process that is made meanwhile has a higher number, and is seen in the same pass.
    fn somebody_in_group(&self) -> io::Result<bool> {
        let leader = self.leader.as_raw_pid();
        for entry in fs::read_dir("/proc")? {
            let name = entry?.file_name();
            let number: Option<i32> = name.to_str().and_then(|name| name.parse().ok());
            let Some(pid) = number.filter(|pid| *pid != leader) else {
                continue;
            };
            // It may have ended since.
            let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else {
                continue;
            };
            if runs_in_group(&stat, leader) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Whether a line of `/proc/PID/stat` is that of a process that runs in this group.
fn runs_in_group(stat: &str, group: i32) -> bool {
    // The name, in parentheses, may contain anything.
    let Some((_, rest)) = stat.rsplit_once(')') else {
        return false;
    };
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next();
    let found = fields.nth(1).and_then(|group| group.parse().ok());
    found == Some(group) && !matches!(state, Some("Z" | "X"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_proc_is_read_whatever_the_name_is() {
        assert!(runs_in_group("7 (sleep) S 1 42 42 0 -1", 42));
        assert!(runs_in_group("7 (a) Z 1 9 (b) R 1 42 42", 42));
        assert!(!runs_in_group("7 (sleep) Z 1 42 42 0 -1", 42));
        assert!(!runs_in_group("7 (sleep) S 42 1 42 0 -1", 42));
        assert!(!runs_in_group("garbage", 42));
    }
}
