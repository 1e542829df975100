//! Building blocks of clusters.

use std::time::Duration;

use soloist_algorithms::Choice;
use soloist_core::epochs::roster::Member;
use soloist_core::limits::Limits;
use soloist_core::locks::{Settings, Table};
use soloist_core::rules::{RuleSettings, Rules};

/// One incarnation of a node.
pub fn member(index: usize, life: u64) -> Member {
    let name = format!("n{index}");
    Member {
        address: format!("{name}:7401").parse().unwrap(),
        name: name.parse().unwrap(),
        incarnation: (index as u64) << 32 | life << 16,
    }
}

/// The node of this incarnation.
pub fn index_of(member: &Member) -> usize {
    (member.incarnation >> 32) as usize
}

/// Rules that give all locks this algorithm.
pub fn rules(choice: Choice, nodes: usize, max_local_turns: u32) -> Rules {
    let settings = RuleSettings {
        algorithm: choice.name.to_owned(),
        max_local_turns,
        ..RuleSettings::default()
    };
    Rules::new(nodes, &settings, &[]).unwrap()
}

/// The lock table of one incarnation of a node.
pub fn table(rules: &Rules, index: usize, life: u64) -> Table {
    Table::new(Settings {
        rules: rules.clone(),
        ttl_max: Duration::from_secs(3600),
        limits: Limits::default(),
        locks_max: 1000,
        forget_after: Duration::from_secs(10),
        seed: [(index as u64 * 100 + life) as u8; 32],
    })
}
