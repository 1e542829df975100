//! The `soloist` command: one file per subcommand.
//!
//! Exit codes: 0 success; 1 a run failed, a fence is stale, a lock is free, or a node is down; 2
//! invalid input; 3 a search was not exhausted; 69 no node can be reached; 70 the node panicked; 74
//! the state of the cluster is unknown. `soloist lock` has exit codes of its own.

#[cfg(not(target_os = "linux"))]
compile_error!("Soloist runs on Linux only: it needs pidfds, /proc and CLOCK_MONOTONIC_RAW");

mod bench;
mod cluster;
mod completions;
mod connect;
mod demo;
mod fence;
mod init;
mod lab;
mod lock;
mod locks;
mod logging;
mod memory;
mod node;
mod output;
mod processes;
mod signals;
mod status;
mod up;
mod watch;
mod who;

use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Parser, Subcommand};
use soloist_client::ClientError;

/// Mutual exclusion for distributed systems, without a central server
#[derive(Parser)]
#[command(name = "soloist", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Demo(demo::Args),
    Up(up::Args),
    Init(init::Args),
    Node(node::Args),
    Lock(lock::Args),
    #[command(hide = true)]
    LockGuard(lock::guard::Args),
    Status(status::Args),
    Cluster(cluster::Args),
    Locks(locks::Args),
    Who(who::Args),
    Watch(watch::Args),
    Fence(fence::Args),
    Bench(bench::Args),
    Completions(completions::Args),
    Man(completions::Man),
    /// Simulate, measure and compare the algorithms
    #[command(subcommand)]
    Lab(lab::Command),
}

/// Outcome of a command that ran to its end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Well,
    /// Mutual exclusion was violated, a waiter was never served, or the command's question is
    /// answered with no (a stale fence, a free lock, a node that is down).
    Failed,
    /// A search was not exhausted, so nothing is claimed.
    Unknown,
    /// The node that was asked is not a member, or other members do not answer it.
    CannotTell,
    /// An exit code chosen by the command.
    Code(u8),
}

impl Verdict {
    fn of(well: bool) -> Self {
        if well { Verdict::Well } else { Verdict::Failed }
    }
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage_error(&error),
    };
    let result = match cli.command {
        Command::Demo(args) => args.run(),
        Command::Up(args) => args.run(),
        Command::Init(args) => args.run(),
        Command::Node(args) => args.run(),
        Command::Lock(args) => args.run(),
        Command::LockGuard(args) => args.run(),
        Command::Status(args) => args.run(),
        Command::Cluster(args) => args.run(),
        Command::Locks(args) => args.run(),
        Command::Who(args) => args.run(),
        Command::Watch(args) => args.run(),
        Command::Fence(args) => args.run(),
        Command::Bench(args) => args.run(),
        Command::Completions(args) => args.run(),
        Command::Man(args) => args.run(),
        Command::Lab(command) => command.run(),
    };
    match result {
        Ok(Verdict::Well) => ExitCode::SUCCESS,
        Ok(Verdict::Failed) => ExitCode::from(1),
        Ok(Verdict::Unknown) => ExitCode::from(3),
        Ok(Verdict::CannotTell) => ExitCode::from(UNKNOWN),
        Ok(Verdict::Code(code)) => ExitCode::from(code),
        Err(error) => {
            output::complain(&format!("error: {}", explain(&error)));
            match error.downcast_ref::<ClientError>() {
                Some(error) if error.is_unavailable() => ExitCode::from(NO_NODE),
                _ => ExitCode::from(2),
            }
        }
    }
}

/// The error and its causes on one line. A cause that the text already contains is not repeated.
fn explain(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !text.contains(&cause) {
            text += &format!(": {cause}");
        }
    }
    text
}

/// A multi-threaded runtime.
fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    let runtime = tokio::runtime::Runtime::new();
    anyhow::Context::context(runtime, "cannot start the threads that the command needs")
}

/// No node can be reached. Same value as `EX_UNAVAILABLE`.
const NO_NODE: u8 = 69;

/// The cluster cannot determine who holds what: there is no majority of keepers, or some nodes do
/// not answer. Same value as `EX_IOERR`.
const UNKNOWN: u8 = 74;

/// Prints an invalid value as one line, and help and all other errors as clap formats them.
fn usage_error(error: &clap::Error) -> ExitCode {
    if matches!(
        error.kind(),
        ErrorKind::ValueValidation | ErrorKind::InvalidValue
    ) {
        let text = error.render().to_string();
        output::complain(text.lines().next().unwrap_or_default());
        return ExitCode::from(2);
    }
    let _ = error.print();
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}
