//! Who may read from the terminal, and gets its Ctrl-C.

use std::io::{self, IsTerminal};

use rustix::process::{Pid, getpgrp};
use rustix::termios::{tcgetpgrp, tcsetpgrp};

/// The terminal on standard input. The command's process group is not ours, so that it must become the terminal's
/// foreground group, or it would be stopped as soon as it reads.
pub struct Terminal {
    /// Whether this process is in the foreground of a terminal: otherwise it has nothing to hand over.
    ours: bool,
    handed_over: bool,
}

impl Terminal {
    pub fn here() -> Self {
        let stdin = io::stdin();
        let ours = stdin.is_terminal() && tcgetpgrp(&stdin).is_ok_and(|group| group == getpgrp());
        Terminal {
            ours,
            handed_over: false,
        }
    }

    /// Lets the group have the terminal.
    pub fn hand_over(&mut self, group: Pid) {
        if self.ours {
            self.handed_over = tcsetpgrp(io::stdin(), group).is_ok();
        }
    }

    pub fn is_handed_over(&self) -> bool {
        self.handed_over
    }
}

/// Gives the terminal of this session to a group, if our own has it. Of the processes here, only those in the
/// foreground can do that without being stopped.
pub fn give_to(group: Pid) -> io::Result<()> {
    let terminal = std::fs::File::open("/dev/tty")?;
    if tcgetpgrp(&terminal)? == getpgrp() {
        tcsetpgrp(&terminal, group)?;
    }
    Ok(())
}
