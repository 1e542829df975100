//! What a search or a text of the keepers is about: the machines, what may happen, and the rules.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;
use soloist_api::NodeName;

/// A cluster, a budget of events, and the rules.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The names of the machines.
    pub names: Vec<NodeName>,
    /// Number of first keepers. They are the first machines.
    pub first: usize,
    /// Whether the cluster is bootstrapped before the first step.
    pub starts_founded: bool,
    /// Whether re-imaging the first machine restores its folder as `soloist init` made it, with the
    /// permission to found a cluster.
    pub redeploys: bool,
    /// Whether elections may reach any subset of the voters, and leaders any of their followers.
    pub partitions: bool,
    /// Machines that are down at first. They may return with their disks.
    pub down: Vec<usize>,
    /// Whether to check, in each state, that a majority of the keepers can make progress. This
    /// takes most of the time.
    pub checks_progress: bool,
    /// What may happen.
    pub budget: Budget,
    /// Rules that are broken.
    pub variants: Variants,
}

impl Setup {
    /// The name of a machine.
    pub fn name(&self, machine: usize) -> &NodeName {
        &self.names[machine]
    }

    /// Returns whether this rule is broken.
    pub fn has(&self, variant: Variant) -> bool {
        self.variants.contains(variant)
    }
}

/// How often each event may still happen.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize)]
pub struct Budget {
    /// Nodes that are appointed as keepers.
    pub promotions: u8,
    /// Keepers that are demoted.
    pub demotions: u8,
    /// Machines that go down.
    pub crashes: u8,
    /// Machines that return re-imaged.
    pub reimages: u8,
    /// Recoveries of the cluster on one machine.
    pub recoveries: u8,
    /// Elections, won or not.
    pub elections: u8,
}

impl Budget {
    /// The budget of a text, which is restored before each step.
    pub(super) const ONE_OF_EACH: Budget = Budget {
        promotions: 1,
        demotions: 1,
        crashes: 1,
        reimages: 1,
        recoveries: 1,
        elections: 1,
    };
}

/// A correct rule that is replaced by a wrong one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Variant {
    /// A node without a store answers Raft with an empty one.
    EmptyStoreVotes,
    /// A keeper answers only keepers that it knows.
    RefuseUnknown,
    /// A store is set aside because of an uncommitted membership.
    SetAsideUncommitted,
    /// A leader proposes its own removal, or completes a change that removes it. openraft does not
    /// let a keeper stand for election if an entry in its own log removes it, even if that entry is
    /// not committed. If such a leader crashes before others have the entry, a cluster of four
    /// keepers, one of them down, has no leader until that one returns.
    LeadersRemoveThemselves,
    /// A keeper's id follows from its node's name, so a node that is promoted again has its old id.
    IdsFromNames,
    /// A keeper of an earlier generation stands for election although it sees a later one.
    IgnoreSuccessors,
}

impl Variant {
    /// All of them.
    pub const ALL: [Variant; 6] = [
        Variant::EmptyStoreVotes,
        Variant::RefuseUnknown,
        Variant::SetAsideUncommitted,
        Variant::LeadersRemoveThemselves,
        Variant::IdsFromNames,
        Variant::IgnoreSuccessors,
    ];

    /// The name that users write.
    pub fn name(self) -> &'static str {
        match self {
            Variant::EmptyStoreVotes => "empty-store-votes",
            Variant::RefuseUnknown => "refuse-unknown",
            Variant::SetAsideUncommitted => "set-aside-uncommitted",
            Variant::LeadersRemoveThemselves => "leaders-remove-themselves",
            Variant::IdsFromNames => "ids-from-names",
            Variant::IgnoreSuccessors => "ignore-successors",
        }
    }
}

/// A text that names no variant.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("use {}", Variant::ALL.map(Variant::name).join(", "))]
pub struct NotAVariant;

impl FromStr for Variant {
    type Err = NotAVariant;

    fn from_str(text: &str) -> Result<Self, NotAVariant> {
        let mut all = Variant::ALL.into_iter();
        all.find(|variant| variant.name() == text)
            .ok_or(NotAVariant)
    }
}

/// A set of variants.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Variants(u8);

impl Variants {
    /// Returns whether the variant is in the set.
    pub fn contains(self, variant: Variant) -> bool {
        self.0 & (1 << variant as u8) != 0
    }
}

impl FromIterator<Variant> for Variants {
    fn from_iter<I: IntoIterator<Item = Variant>>(all: I) -> Self {
        let all = all.into_iter();
        Variants(all.fold(0, |set, variant| set | 1 << variant as u8))
    }
}

/// Their names, separated by commas.
impl fmt::Display for Variants {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = Variant::ALL.into_iter();
        let names = all.filter(|variant| self.contains(*variant));
        f.write_str(&names.map(Variant::name).collect::<Vec<_>>().join(","))
    }
}
