//! Control of the terminal: its foreground process group may read from it and receives Ctrl-C.

use std::io::{self, IsTerminal};

use rustix::process::{Pid, getpgrp};
use rustix::termios::{tcgetpgrp, tcsetpgrp};

/// The terminal on standard input. The command runs in a process group of its own, which must
/// become the terminal's foreground group. Otherwise the command would be stopped as soon as it
/// reads.
pub(super) struct Terminal {
    /// Whether this process is in the foreground of a terminal. If not, it has no terminal to hand
    /// over.
    ours: bool,
    handed_over: bool,
}

impl Terminal {
    pub(super) fn here() -> Self {
        let stdin = io::stdin();
        let ours = stdin.is_terminal() && tcgetpgrp(&stdin).is_ok_and(|group| group == getpgrp());
        Terminal {
            ours,
            handed_over: false,
        }
    }

    /// Makes the group the foreground group, if this process is in the foreground.
    pub(super) fn hand_over(&mut self, group: Pid) {
        if self.ours {
            self.handed_over = tcsetpgrp(io::stdin(), group).is_ok();
        }
    }

    pub(super) fn is_handed_over(&self) -> bool {
        self.handed_over
    }
}

/// Makes a group the foreground group of this session's terminal, if our own group is. A process in
/// the background would be stopped if it tried.
pub(super) fn give_to(group: Pid) -> io::Result<()> {
    let terminal = std::fs::File::open("/dev/tty")?;
    if tcgetpgrp(&terminal)? == getpgrp() {
        tcsetpgrp(&terminal, group)?;
    }
    Ok(())
}
