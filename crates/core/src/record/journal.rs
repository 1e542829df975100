//! What a node remembers of its cluster.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use soloist_api::{EndReason, LockName};

use super::departures::Departures;
use crate::epochs::roster::Member;

/// Number of notes that are kept about the membership, and as many about losses and links.
pub const JOURNAL_MAX: usize = 1000;

/// Maximum number of locks that a note names.
const NAMED: usize = 4;

/// Losses for the same reason within this time share a note, in milliseconds.
const SAME_LOSS_MS: u64 = 1000;

/// A note, with its time in milliseconds since 1970.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Noted {
    /// When it was noted.
    pub at_ms: u64,
    /// What happened.
    pub note: Note,
}

impl Noted {
    /// Approximate size in bytes.
    pub fn bytes(&self) -> usize {
        let all = |names: &[String]| names.iter().map(|name| name.len() + 8).sum::<usize>();
        let text = match &self.note {
            Note::Installed { joined, gone, .. } => all(joined) + all(gone),
            Note::Left { node, .. } => node.len(),
            Note::Evicted { node, reason, .. } => node.len() + reason.len(),
            Note::Elected { .. } => 0,
            Note::Lost { locks, .. } => all(locks),
            Note::LinkDown { to, reason } => to.len() + reason.len(),
            Note::LinkUp { to } => to.len(),
        };
        text + 32
    }
}

/// Something that a node noted about its cluster.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Note {
    /// From a member: it installed an epoch.
    Installed {
        /// The epoch.
        epoch: u64,
        /// The epoch that it was a member of before, or `None` if it was not a member. Then it does
        /// not know who joined or is gone.
        before: Option<u64>,
        /// Number of members.
        members: u32,
        /// New members.
        joined: Vec<String>,
        /// Former members.
        gone: Vec<String>,
        /// How long locks stood still, in microseconds, if it was a member before.
        stood_still_us: Option<u64>,
    },
    /// From the leader: this member left in good order, by the change to this epoch.
    Left {
        /// The member.
        node: String,
        /// The epoch that begins without it.
        epoch: u64,
    },
    /// From the leader: this member is evicted, by the change to this epoch.
    Evicted {
        /// The member.
        node: String,
        /// The epoch that begins without it.
        epoch: u64,
        /// The reason.
        reason: String,
        /// How many holds it had when it renewed its lease last, if the leader heard it.
        holds: Option<u32>,
    },
    /// From the leader: it was elected in this term.
    Elected {
        /// The term.
        term: u64,
    },
    /// From any node: it lost holds.
    Lost {
        /// The reason.
        reason: EndReason,
        /// Number of holds.
        holds: u32,
        /// Some of the locks.
        locks: Vec<String>,
    },
    /// From any node: its link to this peer broke.
    LinkDown {
        /// The peer.
        to: String,
        /// The reason.
        reason: String,
    },
    /// From any node: its link to this peer works again.
    LinkUp {
        /// The peer.
        to: String,
    },
}

impl Note {
    /// Returns whether the note is about the node's own losses and links, and not about the
    /// membership.
    pub fn is_local(&self) -> bool {
        matches!(
            self,
            Note::Lost { .. } | Note::LinkDown { .. } | Note::LinkUp { .. }
        )
    }

    /// The epoch that the note is about, and whether the note was made when the epoch began, rather
    /// than before. Notes of different nodes are in this order.
    pub fn epoch(&self) -> (u64, bool) {
        match self {
            Note::Installed { epoch, .. } => (*epoch, true),
            Note::Left { epoch, .. } | Note::Evicted { epoch, .. } => (*epoch, false),
            _ => (0, false),
        }
    }
}

/// Number of the last of these notes of a node that is final, or `None` without notes. A note about
/// losses grows for a while.
pub fn settled(notes: &[(u64, Noted)]) -> Option<u64> {
    let (last, newest) = notes.iter().max_by_key(|(number, _)| number)?;
    let grows = |noted: &Noted| {
        matches!(noted.note, Note::Lost { .. }) && noted.at_ms + SAME_LOSS_MS >= newest.at_ms
    };
    let growing = notes.iter().filter(|(_, noted)| grows(noted));
    let growing = growing.map(|(number, _)| *number).max();
    Some(growing.map_or(*last, |number| number.saturating_sub(1)))
}

/// A node's last notes about its cluster, and its broken links.
///
/// Losses and broken links do not crowd out the membership: there are at most [`JOURNAL_MAX`] notes
/// of each, and the last departure of each node besides.
///
/// Memory: notes of about 150 bytes, at most 1.5 kB each if all names are as long as allowed.
#[derive(Clone, Debug)]
pub struct Journal {
    membership: VecDeque<(u64, Noted)>,
    /// Losses and links.
    local: VecDeque<(u64, Noted)>,
    /// Of older notes about the membership.
    departures: Departures<u64>,
    /// Number of the first note that was ever added.
    first: u64,
    /// Number of the next note.
    next: u64,
    /// By peer: since when the link to it is broken, in milliseconds since 1970.
    links_down: BTreeMap<String, u64>,
}

impl Journal {
    /// Creates an empty journal. `first` is as in [`Recorder::new`](super::Recorder::new).
    pub fn new(first: u64) -> Self {
        Journal {
            membership: VecDeque::new(),
            local: VecDeque::new(),
            departures: Departures::default(),
            first,
            next: first,
            links_down: BTreeMap::new(),
        }
    }

    /// The notes after this number: older departures, the membership, and losses and links, each
    /// from the oldest to the latest. All notes, if the number is not one of this journal.
    pub fn after(&self, number: u64) -> [Vec<(u64, Noted)>; 3] {
        let is_known = (self.first..=self.next).contains(&number.saturating_add(1));
        let is_new = |noted: &u64| !is_known || *noted > number;
        let of = |notes: &VecDeque<(u64, Noted)>| {
            let new = notes.iter().filter(|(noted, _)| is_new(noted));
            new.cloned().collect()
        };
        let departures = self.departures.iter().filter(|(noted, _)| is_new(noted));
        let departures = departures.map(|(number, noted)| (*number, noted.clone()));
        [departures.collect(), of(&self.membership), of(&self.local)]
    }

    /// Since when the link to a peer is broken, if it is.
    pub fn link_down_since(&self, peer: &str) -> Option<u64> {
        self.links_down.get(peer).copied()
    }

    /// Adds a note.
    pub fn note(&mut self, at_ms: u64, note: Note) {
        let notes = match note.is_local() {
            true => &mut self.local,
            false => &mut self.membership,
        };
        notes.push_back((self.next, Noted { at_ms, note }));
        self.next += 1;
        if notes.len() > JOURNAL_MAX
            && let Some((number, dropped)) = notes.pop_front()
        {
            self.departures.retire(number, dropped);
        }
    }

    /// Notes that this node installed an epoch. `before` is the epoch and the members that it knew
    /// before, if it was a member.
    pub fn installed(
        &mut self,
        at_ms: u64,
        epoch: u64,
        members: &[Member],
        before: Option<(u64, &[Member])>,
        stood_still: Option<Duration>,
    ) {
        let missing = |from: &[Member], to: &[Member]| -> Vec<String> {
            let others = from.iter().filter(|member| !to.contains(member));
            others.map(|member| member.name.to_string()).collect()
        };
        let (joined, gone) = match before {
            Some((_, before)) => (missing(members, before), missing(before, members)),
            None => Default::default(),
        };
        let note = Note::Installed {
            epoch,
            before: before.map(|(epoch, _)| epoch),
            members: u32::try_from(members.len()).unwrap_or(u32::MAX),
            joined,
            gone,
            stood_still_us: stood_still
                .map(|time| u64::try_from(time.as_micros()).unwrap_or(u64::MAX)),
        };
        self.note(at_ms, note);
        self.links_down
            .retain(|peer, _| members.iter().any(|member| member.name.as_str() == peer));
    }

    /// Notes that this node lost a hold.
    pub fn lost(&mut self, at_ms: u64, lock: &LockName, end: EndReason) {
        if let Some((
            _,
            Noted {
                at_ms: began,
                note:
                    Note::Lost {
                        reason,
                        holds,
                        locks,
                    },
            },
        )) = self.local.back_mut()
            && *reason == end
            && at_ms.saturating_sub(*began) <= SAME_LOSS_MS
        {
            *holds = holds.saturating_add(1);
            if locks.len() < NAMED {
                locks.push(lock.to_string());
            }
            return;
        }
        let note = Note::Lost {
            reason: end,
            holds: 1,
            locks: vec![lock.to_string()],
        };
        self.note(at_ms, note);
    }

    /// Notes that the link to a peer broke. One that was broken before is not noted again.
    pub fn link_down(&mut self, at_ms: u64, peer: &str, reason: &str) {
        if self.links_down.contains_key(peer) {
            return;
        }
        self.links_down.insert(peer.to_owned(), at_ms);
        let note = Note::LinkDown {
            to: peer.to_owned(),
            reason: reason.to_owned(),
        };
        self.note(at_ms, note);
    }

    /// Notes that the link to a peer works, if it was broken.
    pub fn link_up(&mut self, at_ms: u64, peer: &str) {
        if self.links_down.remove(peer).is_some() {
            let note = Note::LinkUp {
                to: peer.to_owned(),
            };
            self.note(at_ms, note);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Incarnation;

    fn member(name: &str, incarnation: u64) -> Member {
        Member {
            name: name.parse().unwrap(),
            incarnation: Incarnation(incarnation),
            address: "127.0.0.1:1".parse().unwrap(),
        }
    }

    fn notes(journal: &Journal) -> Vec<Note> {
        let notes = journal.after(0).into_iter().flatten();
        notes.map(|(_, noted)| noted.note).collect()
    }

    #[test]
    fn a_member_knows_who_joined_and_who_is_gone() {
        let mut journal = Journal::new(1);
        let before = [member("a", 1), member("b", 2), member("c", 3)];
        let after = [member("a", 1), member("b", 4), member("d", 5)];
        let time = Duration::from_millis(38);
        journal.installed(7, 41, &after, Some((40, &before)), Some(time));
        journal.installed(8, 41, &after, None, None);
        let [known, unknown] = &notes(&journal)[..] else {
            panic!("{journal:?}");
        };
        let expected = Note::Installed {
            epoch: 41,
            before: Some(40),
            members: 3,
            // A node that restarted is gone and has joined.
            joined: vec!["b".to_owned(), "d".to_owned()],
            gone: vec!["b".to_owned(), "c".to_owned()],
            stood_still_us: Some(38_000),
        };
        assert_eq!(*known, expected);
        assert!(matches!(unknown, Note::Installed { joined, gone, .. }
            if joined.is_empty() && gone.is_empty()));
    }

    #[test]
    fn losses_of_one_moment_share_a_note() {
        let mut journal = Journal::new(1);
        for number in 0..10 {
            let lock = LockName::new(&format!("lock {number}")).unwrap();
            journal.lost(1_000 + number, &lock, EndReason::EpochLost);
        }
        let lock = LockName::new("later").unwrap();
        journal.lost(3_000, &lock, EndReason::EpochLost);
        journal.lost(3_000, &lock, EndReason::Expired);
        let notes = notes(&journal);
        assert_eq!(notes.len(), 3, "{notes:?}");
        assert!(matches!(&notes[0], Note::Lost { holds: 10, locks, .. } if locks.len() == NAMED));
    }

    #[test]
    fn a_link_is_noted_when_it_breaks_and_when_it_is_back() {
        let mut journal = Journal::new(1);
        journal.link_up(1, "b");
        journal.link_down(2, "b", "refused");
        journal.link_down(3, "b", "refused");
        assert_eq!(journal.link_down_since("b"), Some(2));
        journal.link_up(4, "b");
        journal.link_up(5, "b");
        assert_eq!(journal.link_down_since("b"), None);
        assert_eq!(notes(&journal).len(), 2);
        // A peer that is no longer a member has no link.
        journal.link_down(6, "b", "refused");
        journal.installed(7, 2, &[member("a", 1)], None, None);
        assert_eq!(journal.link_down_since("b"), None);
    }

    fn evicted(node: &str) -> Note {
        Note::Evicted {
            node: node.to_owned(),
            epoch: 2,
            reason: "its lease expired".to_owned(),
            holds: None,
        }
    }

    #[test]
    fn an_eviction_outlives_losses_and_later_epochs() {
        let mut journal = Journal::new(1);
        let (all, left) = ([member("a", 1), member("d", 2)], [member("a", 1)]);
        journal.installed(1_000, 1, &all, None, None);
        journal.note(2_000, evicted("d"));
        journal.installed(2_001, 2, &left, Some((1, &all)), None);
        let told = |journal: &Journal| -> (bool, bool) {
            let notes = notes(journal);
            let is_gone =
                |note: &Note| matches!(note, Note::Installed { gone, .. } if gone == &["d"]);
            (notes.contains(&evicted("d")), notes.iter().any(is_gone))
        };
        let lock = LockName::new("x").unwrap();
        for second in 0..2 * JOURNAL_MAX as u64 {
            journal.lost(10_000 + 2_000 * second, &lock, EndReason::Expired);
        }
        assert_eq!(told(&journal), (true, true));
        assert_eq!(notes(&journal).len(), 3 + JOURNAL_MAX);
        for epoch in 3..3 + 2 * JOURNAL_MAX as u64 {
            journal.installed(100_000, epoch, &left, Some((epoch - 1, &left)), None);
        }
        assert_eq!(told(&journal), (true, true));
        assert_eq!(notes(&journal).len(), 2 + 2 * JOURNAL_MAX);
        let [departures, ..] = journal.after(3);
        assert!(departures.is_empty(), "a reader gets them once");
    }

    #[test]
    fn a_reader_gets_what_is_new_and_all_notes_after_a_restart() {
        let mut journal = Journal::new(100);
        journal.link_down(1, "b", "refused");
        journal.note(2, Note::Elected { term: 1 });
        let numbers = |after: u64| -> Vec<u64> {
            let notes = journal.after(after).into_iter().flatten();
            notes.map(|(number, _)| number).collect()
        };
        assert_eq!(numbers(99), [101, 100]);
        assert_eq!(numbers(100), [101]);
        assert!(numbers(101).is_empty());
        // Numbers of an earlier life, and numbers that were never given.
        for unknown in [0, 98, 102, u64::MAX] {
            assert_eq!(numbers(unknown), [101, 100]);
        }
    }

    #[test]
    fn a_note_that_still_grows_is_asked_for_again() {
        let mut journal = Journal::new(1);
        let lock = LockName::new("x").unwrap();
        let all = |journal: &Journal| journal.after(0).concat();
        assert_eq!(settled(&all(&journal)), None);
        journal.note(1_000, Note::Elected { term: 1 });
        assert_eq!(settled(&all(&journal)), Some(1));
        journal.lost(2_000, &lock, EndReason::Expired);
        journal.note(3_000, Note::Elected { term: 2 });
        let first = all(&journal);
        assert_eq!(settled(&first), Some(1));
        // The loss grows behind the note that was made meanwhile.
        journal.lost(3_000, &lock, EndReason::Expired);
        let next = journal.after(1).concat();
        assert!(next.iter().any(
            |(number, noted)| *number == 2 && matches!(noted.note, Note::Lost { holds: 2, .. })
        ));
        journal.note(3_001, Note::Elected { term: 3 });
        assert_eq!(settled(&all(&journal)), Some(4));
    }
}
