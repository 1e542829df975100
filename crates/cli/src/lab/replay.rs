//! `soloist lab replay`, and what it shares with `soloist lab epochs replay`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use soloist_lab::play;
use soloist_lab::scenario::{self, ScenarioError, first_difference};

use super::plot::PlotFile;
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

    /// Draw the space-time diagram: a line per node, boxes for waiting and inside, arrows for
    /// messages
    #[arg(long, value_name = "FILE.svg")]
    svg: Option<PathBuf>,
}

impl Args {
    pub(crate) fn run(self) -> Result<Verdict> {
        let text = read(&self.text.file)?;
        if let Some(file) = &self.svg {
            let file = PlotFile::new("--svg", file)?;
            let run = play::run(&text, 0);
            let run = run.with_context(|| self.text.file.display().to_string())?;
            file.write(&play::svg(&run))?;
        }
        self.text.replay(&text, scenario::replay)
    }
}

/// Reads a file, or standard input if it is "-".
pub(in crate::lab) fn read(file: &Path) -> Result<String> {
    let text = if file.as_os_str() == "-" {
        std::io::read_to_string(std::io::stdin())
    } else {
        std::fs::read_to_string(file)
    };
    text.with_context(|| format!("cannot read '{}'", file.display()))
}

/// A run as text.
#[derive(clap::Args)]
pub(super) struct Text {
    /// File of the text, or - for standard input
    pub(in crate::lab) file: PathBuf,

    /// Print nothing, and exit with 1 at the first line that is not what happens
    #[arg(long)]
    check: bool,
}

impl Text {
    /// Replays the text with this function.
    pub(super) fn replay(
        &self,
        text: &str,
        play: fn(&str) -> Result<String, ScenarioError>,
    ) -> Result<Verdict> {
        let name = self.file.display();
        let played = play(text).with_context(|| name.to_string())?;
        if self.check {
            let Some(difference) = first_difference(text, &played) else {
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
