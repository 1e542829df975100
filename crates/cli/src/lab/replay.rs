//! `soloist lab replay`.

use std::path::PathBuf;

use anyhow::{Context, Result};
use soloist_lab::scenario;

use crate::{Verdict, output};

/// Replay a scenario, such as `soloist lab check` prints for a violation
///
/// Prints the scenario with what the nodes actually do at each step. Exit code 1 if two nodes are
/// inside or a node rejects a message (a line that begins with FAULT). Other findings of a search
/// are in the scenario's comments.
#[derive(clap::Args)]
pub struct Args {
    /// File of the scenario, or - for standard input
    file: PathBuf,
}

impl Args {
    pub fn run(self) -> Result<Verdict> {
        let name = self.file.display();
        let text = if self.file.as_os_str() == "-" {
            std::io::read_to_string(std::io::stdin())
        } else {
            std::fs::read_to_string(&self.file)
        };
        let text = text.with_context(|| format!("cannot read '{name}'"))?;
        let played = scenario::replay(&text).with_context(|| name.to_string())?;
        output::text(&played)?;
        let is_well = !played.lines().any(|line| line.starts_with("FAULT "));
        Ok(Verdict::of(is_well))
    }
}
