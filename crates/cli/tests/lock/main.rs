//! `soloist lock` and the commands that inspect locks, against a real cluster, and the commands
//! that run clusters. All with the real executable.

mod algorithms;
mod draining;
mod ending;
mod exit_codes;
mod failing;
mod failover;
mod kept;
mod look;
mod lost;
mod processes;
mod readme;
mod shows;
mod signals;
mod starting;
mod stopping;
mod terminal;
mod threads;
mod up;

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use soloist_testing::served::Served;
use tokio::runtime::Runtime;

/// Timeout that is longer than any step takes, so that a test fails instead of hanging.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A cluster in this process, to whose sockets the executable connects.
struct Nodes {
    runtime: Runtime,
    served: Served,
}

impl Nodes {
    fn start(count: usize) -> Self {
        let runtime = Runtime::new().unwrap();
        let served = runtime.block_on(Served::start(count));
        Nodes { runtime, served }
    }

    /// The executable, connected to a node.
    fn soloist(&self, node: usize) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_soloist"));
        command.env("SOLOIST_API", self.served.socket(node));
        command
    }

    /// `soloist lock` around a shell script. Options and lock name are separated by spaces.
    fn lock(&self, node: usize, options: &str, script: &str) -> Command {
        let mut command = self.soloist(node);
        command.arg("lock").args(options.split_whitespace());
        command.args(["--", "sh", "-c", script]);
        command
    }

    /// Number of waiters of a lock.
    fn waiting(&self, lock: &str) -> u64 {
        let output = self.soloist(0).args(["who", lock, "--json"]).output();
        let info: serde_json::Value = serde_json::from_slice(&output.unwrap().stdout).unwrap();
        info["waiting"].as_u64().unwrap()
    }

    /// Drops the node's API server without a shutdown.
    fn cut(&mut self, node: usize) {
        let _entered = self.runtime.enter();
        self.served.cut(node);
    }
}

/// Waits until a condition holds.
#[track_caller]
fn until(what: &str, condition: impl Fn() -> bool) {
    let began = Instant::now();
    while !condition() {
        assert!(began.elapsed() < TIMEOUT, "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A process that is killed on drop, also if the test fails.
struct Running {
    child: Child,
    stdout: BufReader<ChildStdout>,
}

impl Running {
    fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Running { child, stdout }
    }

    /// The next line of its output.
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        assert!(line.ends_with('\n'), "it has ended: {line:?}");
        line.trim_end().to_owned()
    }

    /// The next line of its output, as a process id.
    fn process(&mut self) -> Pid {
        Pid::from_raw(self.line().parse().unwrap()).unwrap()
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    #[track_caller]
    fn code(&mut self) -> Option<i32> {
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            assert!(began.elapsed() < TIMEOUT, "it does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns whether a process runs. A process that has ended stays listed until its parent reaps it.
/// One whose main thread has ended is listed like that too, and runs while it has other threads.
fn runs(process: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", process.as_raw_pid()));
    let runs = |stat: &str| {
        let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
        let threads: u32 = fields.get(17)?.parse().ok()?;
        Some(!matches!(fields[0], "Z" | "X") || threads > 1)
    };
    stat.is_ok_and(|stat| runs(&stat) == Some(true))
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}
