//! The roster: the state that the keepers agree on. It changes when members join or leave, never
//! for a lock, and does not grow with the number of locks.

pub mod old;

use std::collections::BTreeSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use soloist_api::{Address, Fence, NodeName};

use crate::Incarnation;
use crate::cluster_identity::{ClusterIdentity, Generation};
use crate::name_hash::HashKey;
use crate::near_end::epochs_skipped;

/// One incarnation of a node. A node that was restarted, or whose lease expired, is another member.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Member {
    /// The node's name.
    pub name: NodeName,
    /// Which incarnation of the node this is: a random number.
    pub incarnation: Incarnation,
    /// Where other members reach it.
    pub address: Address,
}

/// The members of an epoch. A member's index is its number in the algorithms.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Change {
    /// The epoch's number.
    pub epoch: u64,
    /// Its members.
    pub members: Vec<Member>,
    /// The key with which names of held locks are hashed in its reports, and when it is installed.
    pub key: HashKey,
}

impl Change {
    /// Returns whether no name and no incarnation occurs twice, and the number fits into a fence.
    pub(super) fn is_sound(&self) -> bool {
        let names = self.members.iter().map(|member| &member.name);
        let incarnations = self.members.iter().map(|member| member.incarnation);
        self.epoch <= Fence::EPOCH_MAX
            && names.collect::<BTreeSet<_>>().len() == self.members.len()
            && incarnations.collect::<BTreeSet<_>>().len() == self.members.len()
    }
}

/// A replicated command.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Command {
    /// A leader's term begins. Once the first of these is applied, the first keepers have formed a
    /// cluster, and epochs may begin.
    Lead {
        /// How long this leader waits for the leases that it grants:
        /// [guarded](super::lease::Lease::guarded).
        lease: Duration,
    },
    /// The leases of all earlier leaders have expired.
    Settle {
        /// How long the current leader waits for the leases that it grants.
        lease: Duration,
    },
    /// The next epoch is to have these members. The epoch before is over, even if it was never
    /// installed.
    Begin(Change),
    /// All members of the epoch that was begun last have reported, and it starts with what they
    /// hold. Only the leader knows what that is.
    Install {
        /// The epoch's number.
        epoch: u64,
    },
    /// Gives an identity to a cluster that was created before clusters had one. Epochs had 24 bits
    /// of a fence then. From here on they have 32, and continue above all fences that were granted.
    Identify {
        /// Its generation must be [`Roster::first_generation`].
        cluster: ClusterIdentity,
    },
    /// These nodes disturbed the members lately and must wait before they may join. Replaces the
    /// previous list. The next leader learns it from here. It is not part of `Begin`, which must
    /// not grow with information that is not essential.
    HoldOff(Vec<HeldOff>),
}

/// A node that must wait before it may join.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct HeldOff {
    /// The node's name, whatever its incarnation.
    pub name: NodeName,
    /// How long it must wait.
    pub pause: Duration,
}

/// Outcome of a command.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Applied {
    /// It was applied.
    Done,
    /// It came too late, or is invalid. The state is unchanged.
    Refused,
}

/// The replicated state: the epochs so far, and what later leaders must know.
// Methods: installs that arrive in pieces in `roster/staging.rs`.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Roster {
    cluster: Option<ClusterIdentity>,
    is_founded: bool,
    longest_lease: Duration,
    begun: Option<Change>,
    /// The epoch that was installed last.
    installed: Option<u64>,
    held_off: Vec<HeldOff>,
}

impl Roster {
    /// The roster of a new cluster. `cluster` is `None` only for a cluster from before clusters had
    /// an identity.
    pub fn new(cluster: Option<ClusterIdentity>) -> Self {
        Roster {
            cluster,
            ..Roster::default()
        }
    }

    /// The cluster's identity, or `None` before [`Command::Identify`].
    pub fn cluster(&self) -> Option<ClusterIdentity> {
        self.cluster
    }

    /// Whether the first keepers have formed a cluster. Nothing is decided before that, so nothing
    /// can be lost with one of them.
    pub fn is_founded(&self) -> bool {
        self.is_founded
    }

    /// How long it takes until all leases have expired, whichever leader granted them.
    pub fn longest_lease(&self) -> Duration {
        self.longest_lease
    }

    /// Nodes that must wait before they may join.
    pub fn held_off(&self) -> &[HeldOff] {
        &self.held_off
    }

    /// The epoch that was begun last, whether or not it is installed.
    pub fn begun(&self) -> Option<&Change> {
        self.begun.as_ref()
    }

    /// The epoch that was installed last.
    pub fn installed(&self) -> Option<u64> {
        self.installed
    }

    /// Whether an epoch was begun and is not installed yet.
    pub fn is_changing(&self) -> bool {
        self.begun.as_ref().map(|change| change.epoch) != self.installed
    }

    /// The number of the next epoch.
    pub fn next_epoch(&self) -> u64 {
        let before = self
            .cluster
            .map_or(0, |cluster| cluster.generation.first_epoch())
            + epochs_skipped();
        1 + self.begun.as_ref().map_or(before, |change| change.epoch)
    }

    /// The last epoch of this generation, so that fences of two generations never overlap.
    pub fn last_epoch(&self) -> u64 {
        self.cluster
            .map_or(Fence::EPOCH_MAX, |cluster| cluster.generation.last_epoch())
    }

    /// The generation of a cluster without an identity: its epochs are renumbered to lie above all
    /// fences that it granted. `None` if its epochs are used up. The nonce must be random.
    pub fn first_generation(&self, nonce: u64) -> Option<Generation> {
        let epoch = self.begun.as_ref().map_or(0, renumbered);
        let number = u8::try_from(epoch >> Generation::EPOCH_BITS).ok()?;
        Some(Generation { number, nonce })
    }

    /// The roster of the next generation, for a keeper that continues without the others, which may
    /// have begun more epochs. The members stay the same, so that the leader waits for their
    /// leases. Nothing is installed, because the installed epoch that this keeper knows may not be
    /// the last.
    pub fn recovered(&self, cluster: ClusterIdentity) -> Self {
        let before = self.begun.as_ref();
        Roster {
            cluster: Some(cluster),
            is_founded: true,
            longest_lease: self.longest_lease,
            begun: Some(Change {
                epoch: cluster.generation.first_epoch(),
                members: before.map_or_else(Vec::new, |change| change.members.clone()),
                key: before.map(|change| change.key).unwrap_or_default(),
            }),
            installed: None,
            held_off: self.held_off.clone(),
        }
    }

    /// Whether this epoch was begun last, and is not installed yet.
    fn is_open(&self, epoch: u64) -> bool {
        let begun = self.begun.as_ref();
        self.is_changing() && begun.is_some_and(|change| change.epoch == epoch)
    }

    fn identify(&mut self, cluster: ClusterIdentity) -> Applied {
        let first = self.first_generation(0).map(|first| first.number);
        if self.cluster.is_some() || first != Some(cluster.generation.number) {
            return Applied::Refused;
        }
        self.cluster = Some(cluster);
        self.installed = None;
        if let Some(change) = &mut self.begun {
            change.epoch = renumbered(change);
        }
        Applied::Done
    }

    /// Applies a command, or refuses it if the state does not allow it.
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
            Command::HoldOff(held_off) => {
                self.held_off = held_off;
                Applied::Done
            }
            Command::Begin(change)
                if change.epoch == self.next_epoch()
                    && change.epoch <= self.last_epoch()
                    && change.is_sound() =>
            {
                self.begun = Some(change);
                Applied::Done
            }
            Command::Identify { cluster } => self.identify(cluster),
            Command::Install { epoch } if self.is_open(epoch) => {
                self.installed = Some(epoch);
                Applied::Done
            }
            _ => Applied::Refused,
        }
    }
}

/// Renumbers an epoch from when a fence had 24 bits for it and 40 to count entries. With 32 and 32
/// bits, its fences are above all that were granted in it.
fn renumbered(change: &Change) -> u64 {
    (change.epoch + 1) << 8
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster_identity::ClusterId;

    fn member(name: &str, incarnation: u64) -> Member {
        Member {
            name: name.parse().unwrap(),
            incarnation: Incarnation(incarnation),
            address: format!("{name}:7401").parse().unwrap(),
        }
    }

    fn begin(epoch: u64, names: &[&str]) -> Command {
        let members = names.iter().zip(1..);
        Command::Begin(Change {
            epoch,
            members: members
                .map(|(name, incarnation)| member(name, incarnation))
                .collect(),
            key: HashKey::from_bytes([7; 16]),
        })
    }

    fn install(epoch: u64) -> Command {
        Command::Install { epoch }
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
        let (applied, changing, _) = all(vec![install(1), begin(2, &["a"])]);
        assert_eq!((applied, changing), (vec![Refused, Refused], false));
        let (applied, changing, next) = all(vec![begin(1, &["a", "b"]), begin(1, &["a"])]);
        assert_eq!((applied, changing, next), (vec![Done, Refused], true, 2));
        let (applied, changing, _) = all(vec![install(1), install(1)]);
        assert_eq!((applied, changing), (vec![Done, Refused], false));
        // An epoch that was begun may never be installed: the next one replaces it.
        let (applied, changing, _) = all(vec![begin(2, &["a"]), begin(3, &["b"]), install(2)]);
        assert_eq!((applied, changing), (vec![Done, Done, Refused], true));
        assert_eq!(roster.installed(), Some(1));
    }

    fn in_generation(number: u8) -> ClusterIdentity {
        let mut cluster = ClusterIdentity::new(ClusterId::from_bytes([7; 16]), 1);
        cluster.generation.number = number;
        cluster
    }

    #[test]
    fn a_new_generation_begins_above_all_epochs_of_the_last() {
        let first = in_generation(0);
        let mut roster = Roster::new(Some(first));
        roster.apply(Command::Lead {
            lease: Duration::from_secs(9),
        });
        roster.apply(begin(1, &["a", "b"]));
        roster.apply(install(1));
        let second = ClusterIdentity {
            generation: first.generation.next(0).unwrap(),
            ..first
        };
        let mut next = roster.recovered(second);
        assert!(next.begun().unwrap().epoch > first.generation.last_epoch());
        let (before, after) = (roster.begun().unwrap(), next.begun().unwrap());
        assert_eq!(after.members, before.members);
        assert_eq!(after.key, before.key);
        assert_eq!((next.installed(), next.is_changing()), (None, true));
        assert_eq!(next.longest_lease(), Duration::from_secs(9));
        let epoch = next.next_epoch();
        assert_eq!(next.apply(begin(epoch, &["a"])), Applied::Done);
        assert_eq!(next.apply(install(epoch)), Applied::Done);
    }

    #[test]
    fn no_epoch_begins_beyond_the_last_of_the_generation() {
        let cluster = in_generation(3);
        let mut roster = Roster::new(Some(cluster));
        let first = cluster.generation.first_epoch() + 1;
        assert_eq!(roster.apply(begin(1, &["a"])), Applied::Refused);
        assert_eq!(roster.apply(begin(first, &["a"])), Applied::Done);
        let last = cluster.generation.last_epoch();
        roster.begun.as_mut().unwrap().epoch = last - 1;
        assert_eq!(roster.apply(begin(last, &["a"])), Applied::Done);
        assert_eq!(roster.apply(begin(last + 1, &["a"])), Applied::Refused);
        assert_eq!(roster.begun().unwrap().epoch, last);
    }

    #[test]
    fn a_cluster_is_identified_once_and_its_fences_rise() {
        for (old, number) in [(1, 0), (65_534, 0), (65_535, 1), ((1 << 24) - 2, 255)] {
            let mut roster = Roster::default();
            roster.apply(begin(1, &["a"]));
            roster.apply(install(1));
            roster.begun.as_mut().unwrap().epoch = old;
            let last_given = (old << 40) | ((1 << 40) - 1);
            assert_eq!(roster.first_generation(0).unwrap().number, number);
            let wrong = in_generation(number ^ 1);
            let identify = |cluster| Command::Identify { cluster };
            assert_eq!(roster.apply(identify(wrong)), Applied::Refused);
            let cluster = in_generation(number);
            assert_eq!(roster.apply(identify(cluster)), Applied::Done);
            assert_eq!(roster.cluster(), Some(cluster));
            let next = Fence::first_of(roster.next_epoch());
            assert!(next.number() > last_given, "{old}");
            assert!(roster.is_changing() && roster.begun().unwrap().members.len() == 1);
            assert_eq!(roster.apply(identify(cluster)), Applied::Refused);
        }
        let mut used_up = Roster::default();
        used_up.apply(begin(1, &["a"]));
        used_up.begun.as_mut().unwrap().epoch = (1 << 24) - 1;
        assert_eq!(used_up.first_generation(0), None);
        let mut unused = Roster::default();
        let cluster = in_generation(0);
        assert_eq!(unused.apply(Command::Identify { cluster }), Applied::Done);
        assert_eq!(unused.next_epoch(), 1);
    }

    #[test]
    fn leases_of_earlier_leaders_are_remembered_until_they_end() {
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
        for wrong in [0, 2, u64::MAX] {
            assert_eq!(roster.apply(install(wrong)), Applied::Refused);
            assert_eq!(roster.apply(begin(wrong, &["a", "a"])), Applied::Refused);
        }
        assert_eq!(roster.apply(install(1)), Applied::Done);
    }
}
