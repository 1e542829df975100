//! The roster: what the keepers agree on. It changes when members come and go, never for a lock.

use std::collections::HashSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::config::{Address, NodeName};
use crate::locks::{Fence, LockName};

/// One life of a node: a node that was restarted, or whose lease ran out, is another member.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Member {
    /// The node's name.
    pub name: NodeName,
    /// Which of its lives: a random number.
    pub incarnation: u64,
    /// Where other members reach it.
    pub address: Address,
}

/// Who takes part from an epoch on. A member's place is its number in the algorithms.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Change {
    /// The epoch's number.
    pub epoch: u64,
    /// Its members.
    pub members: Vec<Member>,
}

impl Change {
    /// No name and no incarnation twice, and a number that fits a fence.
    pub(super) fn is_sound(&self) -> bool {
        let names = self.members.iter().map(|member| &member.name);
        let lives = self.members.iter().map(|member| member.incarnation);
        self.epoch <= Fence::EPOCH_MAX
            && names.collect::<HashSet<_>>().len() == self.members.len()
            && lives.collect::<HashSet<_>>().len() == self.members.len()
    }
}

/// A lock that was held when its epoch began.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct HeldLock {
    /// The lock.
    pub lock: LockName,
    /// Its holder's place among the members.
    pub holder: u32,
}

/// What is asked of the roster.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Command {
    /// A leader begins, who waits so long for the leases that it grants. With the first one all first keepers are keepers, and
    /// epochs may begin.
    Lead {
        /// [Guarded](super::lease::Lease::guarded).
        lease: Duration,
    },
    /// The leases of all leaders before are over.
    Settle {
        /// How long the present one waits for its own.
        lease: Duration,
    },
    /// The next epoch is to have these members. The epoch before it is over, also one that was not installed.
    Begin(Change),
    /// All members of the epoch that was begun last have reported what they hold: it starts from that.
    Install {
        /// The epoch's number.
        epoch: u64,
        /// What its members hold.
        holds: Vec<HeldLock>,
    },
}

/// What became of a command.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Applied {
    /// It was carried out.
    Done,
    /// It came too late, or makes no sense: nothing has changed.
    Refused,
}

/// The epochs so far.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Roster {
    is_founded: bool,
    longest_lease: Duration,
    begun: Option<Change>,
    installed: Option<(Change, Vec<HeldLock>)>,
}

impl Roster {
    /// Whether the first keepers have come together. Before that nothing is decided, so that nothing can be lost
    /// with one of them.
    pub fn is_founded(&self) -> bool {
        self.is_founded
    }

    /// How long it takes until all leases are over, whoever granted them.
    pub fn longest_lease(&self) -> Duration {
        self.longest_lease
    }

    /// The epoch that was begun last, whether or not it is installed.
    pub fn begun(&self) -> Option<&Change> {
        self.begun.as_ref()
    }

    /// The epoch that was installed last, and what its members held then.
    pub fn installed(&self) -> Option<(&Change, &[HeldLock])> {
        let (change, holds) = self.installed.as_ref()?;
        Some((change, holds))
    }

    /// Whether an epoch was begun and is not installed yet.
    pub fn is_changing(&self) -> bool {
        let number = |change: &Change| change.epoch;
        self.begun.as_ref().map(number) != self.installed().map(|(change, _)| change.epoch)
    }

    /// The number of the next epoch.
    pub fn next_epoch(&self) -> u64 {
        1 + self.begun.as_ref().map_or(0, |change| change.epoch)
    }

    /// Moves the number of the epoch that was begun last on, for keepers that have lost others who may have begun more.
    /// Its members stay the same, so that a leader waits for their leases; and nothing is installed any more, for
    /// what was may not have been the last.
    pub fn skip(&mut self, epochs: u64) -> Applied {
        let begun = self.begun.as_ref();
        let epoch = begun.map_or(0, |change| change.epoch);
        let moved = epoch.checked_add(epochs);
        // Others must be able to follow.
        let Some(epoch) = moved.filter(|&moved| moved > epoch && moved < Fence::EPOCH_MAX) else {
            return Applied::Refused;
        };
        let members = begun.map_or_else(Vec::new, |change| change.members.clone());
        self.begun = Some(Change { epoch, members });
        self.installed = None;
        Applied::Done
    }

    /// Carries out a command, if it fits what was carried out before.
    pub fn apply(&mut self, command: Command) -> Applied {
        match command {
            Command::Lead { lease } => {
                self.is_founded = true;
                self.longest_lease = self.longest_lease.max(lease);
                Applied::Done
            }
            Command::Settle { lease } => {
                self.longest_lease = lease;
                Applied::Done
            }
            Command::Begin(change) if change.epoch == self.next_epoch() && change.is_sound() => {
                self.begun = Some(change);
                Applied::Done
            }
            Command::Install { epoch, holds } if self.is_changing() => match &self.begun {
                Some(change) if change.epoch == epoch && all_held_by(&holds, change) => {
                    self.installed = Some((change.clone(), holds));
                    Applied::Done
                }
                _ => Applied::Refused,
            },
            _ => Applied::Refused,
        }
    }
}

/// No lock twice, and none with a holder who is no member.
fn all_held_by(holds: &[HeldLock], change: &Change) -> bool {
    let mut locks: Vec<_> = holds.iter().map(|held| &held.lock).collect();
    locks.sort_unstable();
    locks.windows(2).all(|pair| pair[0] != pair[1])
        && holds
            .iter()
            .all(|held| (held.holder as usize) < change.members.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(name: &str, incarnation: u64) -> Member {
        Member {
            name: name.parse().unwrap(),
            incarnation,
            address: format!("{name}:7401").parse().unwrap(),
        }
    }

    fn begin(epoch: u64, names: &[&str]) -> Command {
        let members = names.iter().zip(1..);
        let members = members.map(|(name, life)| member(name, life)).collect();
        Command::Begin(Change { epoch, members })
    }

    fn install(epoch: u64, holds: &[(&str, u32)]) -> Command {
        let held = |&(lock, holder): &(&str, u32)| HeldLock {
            lock: LockName::new(lock).unwrap(),
            holder,
        };
        let holds = holds.iter().map(held).collect();
        Command::Install { epoch, holds }
    }

    #[test]
    fn epochs_are_begun_in_turn_and_installed_at_most_once() {
        let mut roster = Roster::default();
        let mut all = |commands: Vec<Command>| {
            let applied = commands.into_iter().map(|command| roster.apply(command));
            let applied: Vec<_> = applied.collect();
            (applied, roster.is_changing(), roster.next_epoch())
        };
        use Applied::{Done, Refused};
        let (applied, changing, _) = all(vec![install(1, &[]), begin(2, &["a"])]);
        assert_eq!((applied, changing), (vec![Refused, Refused], false));
        let (applied, changing, next) = all(vec![begin(1, &["a", "b"]), begin(1, &["a"])]);
        assert_eq!((applied, changing, next), (vec![Done, Refused], true, 2));
        let (applied, changing, _) = all(vec![install(1, &[("x", 1)]), install(1, &[])]);
        assert_eq!((applied, changing), (vec![Done, Refused], false));
        // One that is begun may never be installed: the next one takes its place.
        let (applied, changing, _) = all(vec![begin(2, &["a"]), begin(3, &["b"]), install(2, &[])]);
        assert_eq!((applied, changing), (vec![Done, Done, Refused], true));
        assert_eq!(roster.installed().unwrap().0.epoch, 1);
    }

    #[test]
    fn epochs_that_others_may_have_begun_are_skipped() {
        let mut roster = Roster::default();
        roster.apply(begin(1, &["a", "b"]));
        roster.apply(install(1, &[("x", 0)]));
        let before = roster.clone();
        for epochs in [0, Fence::EPOCH_MAX - 1, Fence::EPOCH_MAX, u64::MAX] {
            assert_eq!(roster.skip(epochs), Applied::Refused);
            assert_eq!(roster, before);
        }
        assert_eq!(roster.skip(99), Applied::Done);
        assert_eq!(roster.begun().unwrap().epoch, 100);
        let members = &before.begun().unwrap().members;
        assert_eq!(&roster.begun().unwrap().members, members);
        assert_eq!((roster.installed(), roster.is_changing()), (None, true));
        // It goes on as after any other epoch.
        assert_eq!(roster.apply(install(100, &[("y", 1)])), Applied::Done);
        assert_eq!(roster.apply(begin(101, &["a"])), Applied::Done);
        let mut fresh = Roster::default();
        assert_eq!(fresh.skip(7), Applied::Done);
        assert_eq!(fresh.apply(install(7, &[])), Applied::Done);
        assert_eq!(fresh.apply(begin(8, &["a"])), Applied::Done);
    }

    #[test]
    fn leases_of_leaders_before_are_known_until_they_are_over() {
        let mut roster = Roster::default();
        assert!(!roster.is_founded());
        let seconds = Duration::from_secs;
        for (command, longest) in [
            (Command::Lead { lease: seconds(10) }, seconds(10)),
            (Command::Lead { lease: seconds(2) }, seconds(10)),
            (Command::Lead { lease: seconds(20) }, seconds(20)),
            (Command::Lead { lease: seconds(3) }, seconds(20)),
            (Command::Settle { lease: seconds(3) }, seconds(3)),
        ] {
            assert_eq!(roster.apply(command), Applied::Done);
            assert_eq!(roster.longest_lease(), longest);
        }
        assert!(roster.is_founded());
    }

    #[test]
    fn nonsense_is_refused() {
        let mut roster = Roster::default();
        assert_eq!(roster.apply(begin(1, &["a", "a"])), Applied::Refused);
        assert_eq!(roster.apply(begin(1, &["a"])), Applied::Done);
        assert_eq!(roster.apply(install(1, &[("x", 1)])), Applied::Refused);
        let twice = install(1, &[("x", 0), ("x", 0)]);
        assert_eq!(roster.apply(twice), Applied::Refused);
        assert_eq!(roster.apply(install(1, &[("x", 0)])), Applied::Done);
    }
}
