//! On a terminal, the command runs in the foreground: it can read, and it receives Ctrl-C.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::Nodes;

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

    /// Reads until a line contains this text.
    fn shows(&mut self, text: &str) {
        let mut line = String::new();
        while !line.contains(text) {
            line.clear();
            assert_ne!(self.screen.read_line(&mut line).unwrap(), 0);
        }
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
