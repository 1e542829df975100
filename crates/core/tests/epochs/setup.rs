//! Building blocks of clusters.

use std::time::Duration;

use soloist_core::Incarnation;
use soloist_core::epochs::roster::{Change, Member};
use soloist_core::limits::Limits;
use soloist_core::locks::{Settings, Table};
use soloist_core::name_hash::HashKeys;
use soloist_core::rules::{RuleSettings, Rules};

/// One incarnation of a node, by the number of its start.
pub(crate) fn member(index: usize, start: u64) -> Member {
    let name = format!("n{index}");
    Member {
        address: format!("{name}:7401").parse().unwrap(),
        name: name.parse().unwrap(),
        incarnation: Incarnation((index as u64) << 32 | start << 16),
    }
}

/// The keys of all leaders.
pub(crate) fn keys() -> HashKeys {
    HashKeys::new([7; 16])
}

/// An epoch with these members.
pub(crate) fn change(epoch: u64, members: &[Member]) -> Change {
    Change {
        epoch,
        members: members.to_vec(),
        key: keys().of(epoch),
    }
}

/// The lock table of a node that is alone.
pub(crate) fn table() -> Table {
    let settings = RuleSettings {
        algorithm: "raymond".to_owned(),
        max_local_turns: 1,
        ..RuleSettings::default()
    };
    Table::new(Settings {
        rules: Rules::new(1, &settings, &[]).unwrap(),
        ttl_max: Duration::from_secs(3600),
        limits: Limits::default(),
        locks_max: 1000,
        forget_after: Duration::from_secs(10),
        turns_away_after: None,
        seed: [1; 32],
    })
}
