//! The `soloist` command: one file per subcommand.
//!
//! The exit codes are in `exit.rs`.

mod bench;
mod cluster;
mod completions;
mod connect;
mod demo;
mod doctor;
mod duration;
mod exit;
mod fence;
mod help;
mod init;
mod lab;
mod lock;
mod locks;
mod logging;
mod memory;
mod node;
mod output;
mod page;
mod processes;
mod runtime;
mod service;
mod show;
mod signals;
mod table;
mod ui;
mod up;
mod watch;
mod who;

use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Parser, Subcommand};
use soloist_client::{AcquireError, ClientError, api};

use exit::Verdict;

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
    #[command(visible_alias = "status")]
    Cluster(cluster::Args),
    Doctor(doctor::Args),
    Locks(locks::Args),
    Who(who::Args),
    Watch(watch::Args),
    Ui(ui::Args),
    Fence(fence::Args),
    Bench(bench::Args),
    Completions(completions::Args),
    Man(completions::Man),
    /// Simulate, measure and compare the algorithms
    #[command(subcommand)]
    Lab(lab::Command),
}

impl Command {
    fn run(self) -> anyhow::Result<Verdict> {
        match self {
            Command::Demo(args) => args.run(),
            Command::Up(args) => args.run(),
            Command::Init(args) => args.run(),
            Command::Node(args) => args.run(),
            Command::Lock(args) => args.run(),
            Command::Cluster(args) => args.run(),
            Command::Doctor(args) => args.run(),
            Command::Locks(args) => args.run(),
            Command::Who(args) => args.run(),
            Command::Watch(args) => args.run(),
            Command::Ui(args) => args.run(),
            Command::Fence(args) => args.run(),
            Command::Bench(args) => args.run(),
            Command::Completions(args) => args.run(),
            Command::Man(args) => args.run(),
            Command::Lab(command) => command.run(),
        }
    }
}

fn main() -> ExitCode {
    let role = lock::guard::run_if_asked()
        .or_else(lock::anchor::run_if_asked)
        .or_else(lock::starter::run_if_asked);
    let result = role.unwrap_or_else(|| match Cli::try_parse() {
        Ok(cli) => cli.command.run(),
        Err(error) => Ok(usage_error(&error)),
    });
    match result {
        Ok(verdict) => verdict.into(),
        Err(error) => {
            let code = if is_unavailable(&error) {
                exit::NO_NODE
            } else {
                exit::INVALID
            };
            output::error(&explain(&error), code);
            ExitCode::from(code)
        }
    }
}

/// Returns whether no node can be reached, or the one that was asked is stopping.
fn is_unavailable(error: &anyhow::Error) -> bool {
    let client = error.downcast_ref::<ClientError>();
    let acquire = error.downcast_ref::<AcquireError>();
    client.is_some_and(ClientError::is_unavailable)
        || matches!(acquire, Some(AcquireError::Unavailable(_)))
}

/// Returns whether the node asked for a token, or for another one.
fn is_unauthorized(error: &anyhow::Error) -> bool {
    let client = match error.downcast_ref::<AcquireError>() {
        Some(AcquireError::Refused(inner)) => inner.downcast_ref::<ClientError>(),
        _ => error.downcast_ref::<ClientError>(),
    };
    let is_kind = |kind: &api::ErrorKind| *kind == api::ErrorKind::Unauthorized;
    matches!(client, Some(ClientError::Refused { kind, .. }) if is_kind(kind))
}

/// The error and its causes on one line. A cause that the text already contains is not repeated.
fn explain(error: &anyhow::Error) -> String {
    if is_unauthorized(error) {
        return "the node refused the request without a valid token: set SOLOIST_TOKEN to the \
                token, or SOLOIST_TOKEN_FILE to a file with it"
            .to_owned();
    }
    let mut text = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !text.contains(&cause) {
            text += &format!(": {cause}");
        }
    }
    text
}

/// Prints an invalid value as one line, and help and all other errors as clap formats them.
fn usage_error(error: &clap::Error) -> Verdict {
    let code = u8::try_from(error.exit_code()).unwrap_or(exit::INVALID);
    let invalid_value = [ErrorKind::ValueValidation, ErrorKind::InvalidValue];
    if invalid_value.contains(&error.kind()) || (error.use_stderr() && output::wants_json()) {
        let text = error.render().to_string();
        let first = text.lines().take_while(|line| !line.is_empty());
        let line = first.map(str::trim).collect::<Vec<_>>().join(" ");
        output::error(line.strip_prefix("error: ").unwrap_or(&line), code);
    } else {
        let _ = error.print();
    }
    Verdict::Code(code)
}
