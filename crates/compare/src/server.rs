//! Processes of other systems.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use soloist_bench::Usage;

/// Maximum time for a server to start.
const READY_MAX: Duration = Duration::from_secs(60);

/// A server, which is stopped on drop.
pub(crate) struct Server {
    child: Child,
    /// What makes it stop at once, and its children with it.
    stop: Signal,
    log: PathBuf,
}

impl Server {
    /// Starts a server that writes its log to this file.
    pub(crate) fn start(mut command: Command, stop: Signal, log: PathBuf) -> Result<Self> {
        let file = fs::File::create(&log).context("cannot write a server's log")?;
        command.stdin(std::process::Stdio::null());
        command.stdout(file.try_clone()?).stderr(file);
        let child = command.spawn();
        let child = child.with_context(|| format!("cannot start {:?}", command.get_program()))?;
        Ok(Server { child, stop, log })
    }

    /// Waits until `is_ready`.
    pub(crate) fn ready(&mut self, is_ready: impl Fn() -> bool) -> Result<()> {
        let began = Instant::now();
        while !is_ready() {
            let ended = self.child.try_wait()?;
            if ended.is_some() || began.elapsed() > READY_MAX {
                let log = fs::read_to_string(&self.log).unwrap_or_default();
                bail!("a server did not start:\n{log}");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// CPU time and context switches of the server and of the processes that it has started.
    pub(crate) fn usage(&self) -> io::Result<Usage> {
        let server = self.child.id();
        let mut sum = Usage::of_process(server)?;
        let children = fs::read_to_string(format!("/proc/{server}/task/{server}/children"))?;
        for child in children
            .split_whitespace()
            .filter_map(|pid| pid.parse().ok())
        {
            // It may have ended since.
            if let Ok(usage) = Usage::of_process(child) {
                sum += usage;
            }
        }
        Ok(sum)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_child(&self.child), self.stop);
        let _ = self.child.wait();
    }
}

/// Finds a program in `PATH`, or else in one of these folders.
pub(crate) fn find(program: &str, folders: &[PathBuf]) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let listed: Vec<PathBuf> = env::split_paths(&path).collect();
    let files = listed
        .iter()
        .chain(folders)
        .map(|folder| folder.join(program));
    files.into_iter().find(|file| file.is_file())
}

/// The first line that a program prints with `--version`.
pub(crate) fn version(program: &Path) -> Result<String> {
    let output = Command::new(program).arg("--version").output();
    let output = output.with_context(|| format!("cannot run {}", program.display()))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().next().unwrap_or_default().trim().to_owned();
    ensure!(!line.is_empty(), "{} prints no version", program.display());
    Ok(line)
}
