//! `soloist completions` and `soloist man`.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::CommandFactory;
use clap_complete::Shell;

use crate::{Cli, Verdict, output};

/// Print a completion script for a shell
///
/// For bash: `soloist completions bash > /etc/bash_completion.d/soloist`
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Shell to complete for
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

impl Args {
    pub(crate) fn run(self) -> Result<Verdict> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "soloist", &mut script);
        output::text(&String::from_utf8(script)?)?;
        Ok(Verdict::Well)
    }
}

/// Write the manual pages into a folder
///
/// One page per command: `soloist man /usr/local/share/man/man1`
#[derive(clap::Args)]
pub(crate) struct Man {
    /// Folder to write into; it must exist
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
}

impl Man {
    pub(crate) fn run(self) -> Result<Verdict> {
        let shown = self.folder.display();
        clap_mangen::generate_to(Cli::command(), &self.folder)
            .with_context(|| format!("cannot write manual pages into {shown}"))?;
        Ok(Verdict::Well)
    }
}
