//! `soloist lab epochs replay`.

use anyhow::Result;
use soloist_lab::epochs::text;

use crate::Verdict;
use crate::lab::replay::{Text, read};

/// Replay a run of epochs or keepers as text, such as a search prints for a violation
///
/// Prints the text with what actually happens at each step: the messages between members and the
/// keepers' leader, what the keepers commit, who enters with which fence, and each member's lease
/// and epoch. Exit code 1 if a property is violated (a line that begins with FAULT). The language
/// is in docs/lab.md, and examples are in crates/lab/tests/scenarios/epochs-*.txt.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    text: Text,
}

impl Args {
    pub(crate) fn run(self) -> Result<Verdict> {
        self.text.replay(&read(&self.text.file)?, text::replay)
    }
}
