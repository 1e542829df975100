//! Help texts that several commands share.
//!
//! A paragraph is one line, however long: clap wraps it to the width of the terminal. Lists and
//! examples have lines of at most 80 characters, which clap leaves alone.

use crate::exit::{INVALID, NO_NODE, UNKNOWN};

/// How a command finds its node.
pub(crate) const FINDING: &str = "\
The command talks to the node that --api or SOLOIST_API names: unix:/path/of.sock, /path/of.sock, \
https://host:port, or `up` for the cluster that `soloist up` runs for this user. Both accept \
several nodes, separated by commas: the first one that answers is used, and if it stops or dies, \
requests that wait continue on the next. By default it is \
the node of this machine (/run/soloist/soloist.sock) or of this folder (./soloist.sock); if both \
exist, you must name one. The cluster of `soloist up` is used only if neither socket exists.

For https, SOLOIST_CA names the file with the cluster's CA. Authenticate with SOLOIST_TOKEN, \
SOLOIST_TOKEN_FILE, or SOLOIST_CERTIFICATE and SOLOIST_KEY.";

/// The text after the options of a command that asks a node: its own exit codes, those that such
/// commands share, and how the node is found.
pub(crate) fn asking(own_codes: &str, unknown: &str) -> String {
    format!(
        "Exit codes: {own_codes}; {INVALID} invalid input; {NO_NODE} no node can be reached; \
         {UNKNOWN} {unknown}.\n\n{FINDING}"
    )
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use crate::Cli;

    /// Width of the narrowest terminal for which lists and examples are laid out.
    const LINE_MAX: usize = 80;

    /// Calls `look` with the command and all its subcommands.
    fn each(command: &mut clap::Command, look: &mut impl FnMut(&mut clap::Command)) {
        look(command);
        command
            .get_subcommands_mut()
            .for_each(|command| each(command, look));
    }

    #[test]
    fn only_paragraphs_of_one_line_are_wrapped() {
        each(&mut Cli::command(), &mut |command| {
            let name = command.get_name().to_owned();
            let after = command.get_after_long_help();
            let after = after.map(ToString::to_string).unwrap_or_default();
            for paragraph in after.split("\n\n") {
                let long = |line: &str| line.chars().count() > LINE_MAX;
                let is_one_line = paragraph.lines().count() == 1 && !paragraph.starts_with(' ');
                let too_long = paragraph.lines().find(|line| long(line) && !is_one_line);
                assert_eq!(too_long, None, "help of {name} would be wrapped twice");
            }
        });
    }

    #[test]
    fn it_fits_a_narrow_terminal() {
        each(&mut Cli::command().term_width(LINE_MAX), &mut |command| {
            let help = command.render_long_help().to_string();
            let long = help.lines().find(|line| line.chars().count() > LINE_MAX);
            assert_eq!(long, None, "in the help of {}", command.get_name());
        });
    }
}
