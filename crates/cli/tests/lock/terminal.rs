//! On a terminal, the command runs in the foreground: it can read, and it receives Ctrl-C.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command};

use rustix::io::ioctl_fionread;
use rustix::process::{Pid, Signal, getpgid, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::ending::guard_of;
use crate::{Nodes, runs, until};

/// A shell script and its controlling terminal.
struct Terminal {
    keyboard: File,
    screen: BufReader<File>,
    shell: Child,
}

impl Terminal {
    fn start(nodes: &Nodes, script: &str) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let path = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
        let slave = || {
            OpenOptions::new()
                .read(true)
                .write(true)
                .open(&path)
                .unwrap()
        };
        let soloist = nodes.soloist(0);
        let shell = Command::new("setsid")
            .args(["--ctty", "--wait", "sh", "-c", script])
            .env("SOLOIST", soloist.get_program())
            .envs(
                soloist
                    .get_envs()
                    .filter_map(|(key, value)| Some((key, value?))),
            )
            .stdin(slave())
            .stdout(slave())
            .stderr(slave())
            .spawn()
            .unwrap();
        let master = File::from(master);
        Terminal {
            keyboard: master.try_clone().unwrap(),
            screen: BufReader::new(master),
            shell,
        }
    }

    fn types(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    /// Reads until a line contains this text. Returns the line.
    fn shows(&mut self, text: &str) -> String {
        let mut line = String::new();
        while !line.contains(text) {
            line.clear();
            assert_ne!(self.screen.read_line(&mut line).unwrap(), 0);
        }
        line
    }

    /// Reads the line with the process id of the command.
    fn command(&mut self) -> Pid {
        let line = self.shows("pid ");
        let (_, pid) = line.trim_end().rsplit_once(' ').unwrap();
        Pid::from_raw(pid.parse().unwrap()).unwrap()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}

#[test]
fn the_command_reads_from_the_terminal_and_gives_it_back() {
    let nodes = Nodes::start(1);
    let script = "$SOLOIST lock a -- sh -c 'echo ready; read line; echo inner $line'
        echo code $?; read line; echo outer $line";
    let mut terminal = Terminal::start(&nodes, script);
    terminal.shows("ready");
    terminal.types("one\n");
    terminal.shows("inner one");
    terminal.shows("code 0");
    terminal.types("two\n");
    terminal.shows("outer two");
}

#[test]
fn control_c_reaches_the_command() {
    let nodes = Nodes::start(1);
    let script = "$SOLOIST lock a -- sh -c 'trap \"exit 9\" INT; echo ready; read line'
        echo code $?; read line; echo outer $line";
    let mut terminal = Terminal::start(&nodes, script);
    terminal.shows("ready");
    terminal.types("\x03");
    terminal.shows("code 9");
    terminal.types("two\n");
    terminal.shows("outer two");
}

#[test]
fn control_z_stops_and_the_shell_can_continue() {
    let nodes = Nodes::start(1);
    // With job control, as in an interactive shell.
    let script =
        "set -m; $SOLOIST lock --ttl 1h a -- sh -c 'echo ready; read line; echo inner $line'
        echo stopped; fg; echo code $?";
    let mut terminal = Terminal::start(&nodes, script);
    terminal.shows("ready");
    terminal.types("\x1a");
    terminal.shows("stopped");
    terminal.types("one\n");
    terminal.shows("inner one");
    terminal.shows("code 0");
}

/// A process that is stopped, and killed on drop.
struct Stopped(Pid);

impl Stopped {
    fn new(process: Pid) -> Self {
        kill_process(process, Signal::STOP).unwrap();
        let stopped = Stopped(process);
        // Until then it may go on.
        until("it is stopped", || {
            let stat = std::fs::read_to_string(format!("/proc/{}/stat", process.as_raw_pid()));
            stat.unwrap().contains(") T ")
        });
        stopped
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        let _ = kill_process(self.0, Signal::KILL);
    }
}

/// The command is killed in time, although the guard process does not return the terminal.
#[test]
fn a_command_on_a_terminal_whose_guard_is_stopped_does_not_outlive_the_lock() {
    let mut nodes = Nodes::start(2);
    let script = "$SOLOIST lock --ttl 1500ms --grace 1h a -- sh -c \
        'trap \"\" TERM; echo pid $$; while :; do sleep 0.05; done'; echo code $?";
    let mut terminal = Terminal::start(&nodes, script);
    let command = terminal.command();
    let _guard = Stopped::new(guard_of(command));
    nodes.cut(0);
    let next = nodes.lock(1, "a", "exit 0").status().unwrap();
    assert!(!runs(command), "it ran while another held the lock");
    assert_eq!(next.code(), Some(0));
}

/// The guard process kills the command in time, although its anchor does not return the terminal.
#[test]
fn a_command_whose_anchor_and_parent_are_stopped_does_not_outlive_the_lock() {
    let nodes = Nodes::start(1);
    // The shell stays: if it ended, the kernel would continue the stopped `soloist lock`.
    let script = "set -m; $SOLOIST lock --ttl 2s a -- sh -c \
        'echo pid $PPID; echo pid $$; while :; do sleep 0.05; done'; echo code $?; read line";
    let mut terminal = Terminal::start(&nodes, script);
    let (parent, command) = (terminal.command(), terminal.command());
    let anchor = Stopped::new(getpgid(Some(command)).unwrap());
    let told = File::open(format!("/proc/{}/fd/0", anchor.0.as_raw_pid())).unwrap();
    terminal.types("\x1a");
    until("the anchor is told to return the terminal", || {
        ioctl_fionread(&told).unwrap() > 0
    });
    drop(told);
    let _parent = Stopped::new(parent);
    let next = nodes.lock(0, "a", "exit 0").status().unwrap();
    assert!(!runs(command), "it ran while another held the lock");
    assert_eq!(next.code(), Some(0));
}
