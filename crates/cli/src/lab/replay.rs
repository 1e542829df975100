//! `soloist lab replay`, and what it shares with `soloist lab epochs replay`.

use std::path::PathBuf;

use anyhow::{Context, Result};
use soloist_lab::scenario::{self, ScenarioError, first_difference};

use crate::{Verdict, output};

/// Replay a scenario, such as `soloist lab check` prints for a violation
///
/// Prints the scenario with what the nodes actually do at each step. Exit code 1 if two nodes are
/// inside or a node rejects a message (a line that begins with FAULT). Other findings of a search
/// are in the scenario's comments.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    text: Text,
}

impl Args {
    pub(crate) fn run(self) -> Result<Verdict> {
        self.text.replay(scenario::replay)
    }
}

/// A run as text.
#[derive(clap::Args)]
pub(super) struct Text {
    /// File of the text, or - for standard input
    file: PathBuf,

    /// Print nothing, and exit with 1 at the first line that is not what happens
    #[arg(long)]
    check: bool,
}

impl Text {
    /// Replays the text with this function.
    pub(super) fn replay(self, play: fn(&str) -> Result<String, ScenarioError>) -> Result<Verdict> {
        let name = self.file.display();
        let text = if self.file.as_os_str() == "-" {
            std::io::read_to_string(std::io::stdin())
        } else {
            std::fs::read_to_string(&self.file)
        };
        let text = text.with_context(|| format!("cannot read '{name}'"))?;
        let played = play(&text).with_context(|| name.to_string())?;
        if self.check {
            let Some(difference) = first_difference(&text, &played) else {
                return Ok(Verdict::Well);
            };
            let show = |line: Option<String>| line.unwrap_or_else(|| "(the end)".to_owned());
            output::complain(&format!(
                "{name}: line {} differs\n  expected: {}\n  actual:   {}",
                difference.line,
                show(difference.expected),
                show(difference.actual),
            ));
            return Ok(Verdict::Failed);
        }
        output::text(&played)?;
        let is_well = !played.lines().any(|line| line.starts_with("FAULT "));
        Ok(Verdict::of(is_well))
    }
}
