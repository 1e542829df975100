//! `soloist fence`.

use std::path::PathBuf;

use anyhow::Result;
use serde::Serialize;
use soloist_client::gate::{FileGate, GateError, Stale};

use crate::{Verdict, output};

const EXPLANATION: &str = "\
The highest fence is kept in FILE, which is made if it is not there; processes on this machine may use it at the
same time, and a crash leaves it whole. A file that is damaged refuses everybody.

Exit codes: 0 admitted, 1 stale, 2 wrong input or a file that cannot be used. Go on after 0 only.

Example, in a script that `soloist lock` runs:
  soloist fence orders.gate \"$SOLOIST_FENCE\" && cp new-orders.csv orders.csv";

/// Admit a fence, or refuse it if a higher one was admitted before
///
/// For scripts that guard a resource. A holder that was paused and lost the lock has a lower fence
/// than its successor, and is refused. Equal fences are admitted, so that one holder may write many
/// times.
#[derive(clap::Args)]
#[command(after_long_help = EXPLANATION)]
pub struct Args {
    /// File that stores the highest fence
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Fence of the writer, as in SOLOIST_FENCE
    #[arg(value_name = "FENCE", value_parser = fence, allow_hyphen_values = true)]
    fence: u64,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn fence(text: &str) -> Result<u64, String> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok().filter(|_| digits);
    number.ok_or_else(|| format!("use a whole number from 0 to {}", u64::MAX))
}

#[derive(Serialize)]
struct Answer {
    file: PathBuf,
    fence: u64,
    admitted: bool,
    /// The highest fence that was admitted, including this one.
    highest: u64,
}

impl Args {
    pub fn run(self) -> Result<Verdict> {
        let highest = match FileGate::open(&self.file)?.admit(self.fence) {
            Ok(()) => self.fence,
            Err(GateError::Stale(stale)) => {
                output::complain(&format!("{}: {stale}", self.file.display()));
                let Stale { seen, .. } = stale;
                seen
            }
            Err(error) => return Err(error.into()),
        };
        let admitted = highest == self.fence;
        if self.json {
            output::json(&Answer {
                file: self.file,
                fence: self.fence,
                admitted,
                highest,
            })?;
        }
        Ok(Verdict::of(admitted))
    }
}
