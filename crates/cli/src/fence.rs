//! `soloist fence`.

use std::path::PathBuf;

use anyhow::Result;
use serde::Serialize;
use soloist_client::Fence;
use soloist_client::gate::{FileGate, GateError, Stale};

use crate::exit::{FAILED, INVALID};
use crate::{Verdict, output};

/// The text after the options.
fn explanation() -> String {
    format!(
        "The highest fence is stored in FILE, which is created if it does not exist. Processes on \
         this machine may use it at the same time, and it survives a crash. A damaged file admits \
         nothing.\n\n\
         Exit codes: 0 admitted; {FAILED} stale; {INVALID} invalid input, or a file that cannot be \
         used. Continue only after 0.\n\n\
         Example, in a script that `soloist lock` runs:\n  \
         soloist fence orders.gate \"$SOLOIST_FENCE\" && cp new-orders.csv orders.csv"
    )
}

/// Admit a fence, or refuse it if a higher one was admitted before
///
/// For scripts that guard a resource. A holder that was paused and lost the lock has a lower fence
/// than its successor, and is refused. Equal fences are admitted, so that one holder may write many
/// times.
#[derive(clap::Args)]
#[command(after_long_help = explanation())]
pub(crate) struct Args {
    /// File that stores the highest fence
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Fence of the writer, as in SOLOIST_FENCE
    #[arg(value_name = "FENCE", allow_hyphen_values = true)]
    fence: Fence,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Answer {
    file: PathBuf,
    fence: Fence,
    admitted: bool,
    /// The highest fence that was admitted, including this one.
    highest: Fence,
}

impl Args {
    pub(crate) fn run(self) -> Result<Verdict> {
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
