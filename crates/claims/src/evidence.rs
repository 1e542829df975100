//! What a row cites: commands, scenarios and theorems.

use soloist_algorithms::Kind;

/// The text for a claim that is proved for any number of nodes, by its theorem (docs/proofs.md).
pub(crate) fn proved(theorem: &str) -> String {
    format!("proved for any number of nodes (theorem `{theorem}`)")
}

/// Path of a scenario's file.
pub(crate) fn scenario(name: &str) -> String {
    format!("crates/lab/tests/scenarios/{name}.txt")
}

/// The command that examines the claims of a section again. For rows that no other command shows.
pub(crate) fn examined_again(paper: Kind, section: &str) -> String {
    format!(
        "soloist lab claims --paper {} --section {section:?}",
        paper.info().name
    )
}
