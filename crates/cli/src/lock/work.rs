//! The command and the other processes of its group.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, PidfdFlags, Signal, getpgid, kill_process_group, pidfd_open, pidfd_send_signal,
};

/// The processes that run under the lock. The anchor leads their group but is not counted.
pub(super) struct Work {
    leader: Pid,
    /// The command and a pidfd of it, because its pid may be reused after it has ended.
    command: Option<(Pid, OwnedFd)>,
}

impl Work {
    pub(super) fn new(leader: Pid, command: Option<Pid>) -> Self {
        // Without pidfds (an old kernel) only the group is observed, in which the command starts.
        let command = command.and_then(|pid| {
            let handle = pidfd_open(pid, PidfdFlags::empty()).ok()?;
            Some((pid, handle))
        });
        Work { leader, command }
    }

    /// Sends a signal to the group, and to the command if it has left the group.
    pub(super) fn signal(&self, signal: Signal) {
        // First the command alone, if it has moved to another group, as interactive shells do.
        if let Some((pid, handle)) = &self.command
            && !self.command_is_over()
            && getpgid(Some(*pid)).is_ok_and(|group| group != self.leader)
        {
            let _ = pidfd_send_signal(handle, signal);
        }
        // This fails if the group is empty, or has no process that we may signal.
        let _ = kill_process_group(self.leader, signal);
    }

    /// Sends SIGTERM, and SIGCONT because stopped processes could not act on it.
    pub(super) fn terminate(&self) {
        self.signal(Signal::TERM);
        self.signal(Signal::CONT);
    }

    /// Returns whether no process is left.
    pub(super) fn is_over(&self) -> bool {
        // If that cannot be determined, assume that a process is left.
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

    /// Returns whether the group has a process other than its leader. A process that is forked
    /// during the scan has a higher pid and is found by the same scan, unless pids wrap around
    /// meanwhile.
    fn somebody_in_group(&self) -> io::Result<bool> {
        let leader = self.leader.as_raw_pid();
        for entry in fs::read_dir("/proc")? {
            let name = entry?.file_name();
            let number: Option<i32> = name.to_str().and_then(|name| name.parse().ok());
            let Some(pid) = number.filter(|pid| *pid != leader) else {
                continue;
            };
            // The process may have ended since.
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

/// Returns whether a line of `/proc/PID/stat` describes a running process of this group.
fn runs_in_group(stat: &str, group: i32) -> bool {
    // The process name, in parentheses, may contain any character.
    let Some((_, rest)) = stat.rsplit_once(')') else {
        return false;
    };
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next();
    let found = fields.nth(1).and_then(|group| group.parse().ok());
    if found != Some(group) {
        return false;
    }
    // A process whose main thread has ended is a zombie, even if its other threads run.
    let threads: Option<u32> = fields.nth(14).and_then(|threads| threads.parse().ok());
    let is_over = matches!(state, Some("Z" | "X")) && threads.is_some_and(|threads| threads <= 1);
    !is_over
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proc_line_is_parsed_for_any_process_name() {
        let rest = "42 0 -1 4227084 2918 6528 0 0 4 0 4 1 20 0 1 0 252314 0 0";
        let runs = |start: &str| runs_in_group(&format!("{start} {rest}"), 42);
        assert!(runs("7 (sleep) S 1 42"));
        assert!(runs("7 (a) Z 1 9 (b) R 1 42"));
        assert!(!runs("7 (sleep) Z 1 42"));
        assert!(!runs("7 (sleep) S 42 1"));
        assert!(!runs_in_group("garbage", 42));
    }

    #[test]
    fn a_zombie_runs_while_it_has_other_threads() {
        let stat = |threads: u32| {
            format!("7 (sleep) Z 1 42 42 0 -1 0 0 0 0 0 4 0 4 1 20 0 {threads} 0 252314 0 0")
        };
        assert!(runs_in_group(&stat(2), 42));
        assert!(!runs_in_group(&stat(1), 42));
        assert!(!runs_in_group(&stat(0), 42));
    }
}
