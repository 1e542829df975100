//! Building blocks of clusters.

use std::time::Duration;

use soloist_algorithms::Choice;
use soloist_api::NodeName;
use soloist_core::epochs::roster::Member;
use soloist_core::limits::Limits;
use soloist_core::locks::{Settings, Table};
use soloist_core::rules::{RuleError, RuleSettings, Rules};
use soloist_core::{Incarnation, Tuning};

/// The names of this many nodes.
pub fn names(nodes: usize) -> Vec<NodeName> {
    let name = |index: usize| format!("n{index}").parse().expect("a name");
    (0..nodes).map(name).collect()
}

/// One incarnation of a node, by the number of its start.
pub fn named(name: NodeName, index: usize, start: u64) -> Member {
    Member {
        address: format!("{name}:7401").parse().expect("an address"),
        name,
        incarnation: Incarnation((index as u64) << 32 | start << 16),
    }
}

/// The node of a member.
pub fn index_of(member: &Member) -> usize {
    index_of_incarnation(member.incarnation)
}

/// The node of an incarnation. A lapse adds 1 to the incarnation.
pub fn index_of_incarnation(incarnation: Incarnation) -> usize {
    (incarnation.0 >> 32) as usize
}

/// Rules that give all locks this algorithm. The error is why a node would not take them.
pub fn rules(choice: Choice, nodes: usize, max_local_turns: u32) -> Result<Rules, RuleError> {
    let settings = RuleSettings {
        algorithm: choice.name.to_owned(),
        variant: choice.variants.names(choice.kind.info()),
        max_local_turns,
        ..RuleSettings::default()
    };
    Rules::new(nodes, &settings, &[])
}

/// The lock table of one incarnation of a node.
pub fn table(rules: &Rules, tuning: Tuning, index: usize, start: u64) -> Table {
    let mut table = Table::new(Settings {
        rules: rules.clone(),
        ttl_max: Duration::from_secs(3600),
        limits: Limits::default(),
        locks_max: 1000,
        forget_after: Duration::from_secs(10),
        turns_away_after: None,
        seed: [(index as u64 * 100 + start) as u8; 32],
    });
    table.tune(tuning);
    table
}
