//! The notes of all nodes as one list of changes.

use std::collections::{BTreeMap, BTreeSet};

use soloist_api::EndReason;
use soloist_api::dashboard::{Change, ChangeKind};

use super::journal::{JOURNAL_MAX, Note, Noted};
use super::words::{count, names, standstill};

/// Merges the notes of all nodes into changes, oldest first: at most the last [`JOURNAL_MAX`] of
/// the membership, as many losses and links, and the last departure of each node besides.
///
/// Every member notes that it installed an epoch, and who joined and is gone since the epoch
/// before. Only the leader knows why a member is gone. An eviction that the leader noted counts
/// only if a member has seen its effect, because a change of epoch may fail.
///
/// `notes` has the node, the number of the note there, and the note.
pub fn merged_changes<'n>(notes: impl Iterator<Item = (&'n str, u64, &'n Noted)>) -> Vec<Change> {
    let mut epochs: BTreeMap<u64, InstalledEpoch> = BTreeMap::new();
    let mut departures: Vec<Departure> = Vec::new();
    let mut changes = Vec::new();
    for (from, number, Noted { at_ms, note }) in notes {
        match note {
            Note::Installed {
                epoch,
                before,
                members,
                joined,
                gone,
                stood_still_us,
            } => {
                let known = epochs.entry(*epoch).or_insert_with(|| InstalledEpoch {
                    at_ms: *at_ms,
                    members: *members,
                    stood_still_us: None,
                    nodes: BTreeMap::new(),
                });
                known.at_ms = known.at_ms.min(*at_ms);
                known.stood_still_us = known.stood_still_us.max(*stood_still_us);
                for (names, has_joined) in [(joined, true), (gone, false)] {
                    for name in names {
                        let since = before.unwrap_or_default();
                        let key = (has_joined, name.as_str());
                        // The earliest epoch before covers the most of the leader's notes.
                        let least = known.nodes.entry(key).or_insert(since);
                        *least = since.min(*least);
                    }
                }
            }
            Note::Left { node, epoch } => departures.push(Departure {
                node,
                epoch: *epoch,
                reason: None,
                holds: None,
            }),
            Note::Evicted {
                node,
                epoch,
                reason,
                holds,
            } => departures.push(Departure {
                node,
                epoch: *epoch,
                reason: Some(reason),
                holds: *holds,
            }),
            Note::Elected { term } => changes.push(Change {
                id: format!("{from}:{number}"),
                at_ms: *at_ms,
                kind: ChangeKind::Elected,
                node: Some(from.to_owned()),
                epoch: None,
                what: format!("{from} leads"),
                why: format!("The keepers elected it in term {term}."),
                holds: None,
                is_bad: false,
            }),
            Note::Lost { .. } | Note::LinkDown { .. } | Note::LinkUp { .. } => {
                changes.push(local(from, number, *at_ms, note));
            }
        }
    }
    for (epoch, installed) in &epochs {
        installed.show(*epoch, &departures, &mut changes);
    }
    changes.sort_by(|one, other| {
        (one.at_ms, one.kind, &one.id).cmp(&(other.at_ms, other.kind, &other.id))
    });
    keep_last(&mut changes);
    changes
}

/// Drops changes that are too old. Losses and links do not crowd out the membership, and nothing
/// crowds out the last departure of a node.
fn keep_last(changes: &mut Vec<Change>) {
    let (mut membership, mut local) = (JOURNAL_MAX, JOURNAL_MAX);
    let mut departed = BTreeSet::new();
    let is_kept = |change: &Change| {
        let is_last_departure = matches!(change.kind, ChangeKind::Evicted | ChangeKind::Left)
            && departed.insert(change.node.clone());
        let room = match change.kind {
            ChangeKind::Lost | ChangeKind::LinkDown | ChangeKind::LinkUp => &mut local,
            _ => &mut membership,
        };
        let has_room = *room > 0;
        *room = room.saturating_sub(1);
        has_room || is_last_departure
    };
    let mut kept: Vec<bool> = changes.iter().rev().map(is_kept).collect();
    changes.retain(|_| kept.pop().unwrap_or_default());
}

/// An epoch, as its members noted it.
struct InstalledEpoch<'n> {
    /// When the first member installed it.
    at_ms: u64,
    members: u32,
    /// The longest standstill of a member.
    stood_still_us: Option<u64>,
    /// Nodes that joined (`true`) or are gone, and the epoch of that.
    nodes: BTreeMap<(bool, &'n str), u64>,
}

/// A departure that a leader noted.
struct Departure<'n> {
    node: &'n str,
    epoch: u64,
    /// `None` if the member left in good order.
    reason: Option<&'n str>,
    /// Its holds at its last renewal.
    holds: Option<u32>,
}

impl InstalledEpoch<'_> {
    fn show(&self, epoch: u64, departures: &[Departure<'_>], changes: &mut Vec<Change>) {
        let change = |kind, node: Option<&str>, what: String, why: String| Change {
            id: format!("{epoch}:{kind:?}:{}", node.unwrap_or_default()),
            at_ms: self.at_ms,
            kind,
            node: node.map(str::to_owned),
            epoch: Some(epoch),
            what,
            why,
            holds: None,
            is_bad: kind == ChangeKind::Evicted,
        };
        for (&(has_joined, node), &since) in &self.nodes {
            if has_joined {
                let what = format!("{node} joined");
                changes.push(change(ChangeKind::Joined, Some(node), what, String::new()));
                continue;
            }
            let noted = departures.iter().rev().find(|departure| {
                departure.node == node && (since + 1..=epoch).contains(&departure.epoch)
            });
            let holds = noted.and_then(|departure| departure.holds);
            let (kind, what, why) = match noted.map(|departure| departure.reason) {
                Some(None) => (ChangeKind::Left, format!("{node} left"), String::new()),
                Some(Some(reason)) => {
                    let mut why = format!("The leader evicted it because {reason}.");
                    if let Some(holds) = holds.filter(|holds| *holds > 0) {
                        why += &format!(" It had {}.", count(holds as usize, "hold"));
                    }
                    (ChangeKind::Evicted, format!("{node} evicted"), why)
                }
                None => {
                    let why = "The reason is unknown: the leader of that time does not answer.";
                    let what = format!("{node} is no longer a member");
                    (ChangeKind::Evicted, what, why.to_owned())
                }
            };
            changes.push(Change {
                holds,
                ..change(kind, Some(node), what, why)
            });
        }
        let mut why = format!("It has {}.", count(self.members as usize, "member"));
        if let Some(us) = self.stood_still_us {
            why += &format!(" Locks stood still for {}.", standstill(us));
        }
        let what = format!("Epoch {epoch} began");
        changes.push(change(ChangeKind::Epoch, None, what, why));
    }
}

/// A change that one node noted about itself.
fn local(from: &str, number: u64, at_ms: u64, note: &Note) -> Change {
    let (kind, node, what, why) = match note {
        Note::Lost {
            reason,
            holds,
            locks,
        } => {
            let cause = match reason {
                EndReason::Expired => "Their clients were silent for longer than the time to live.",
                EndReason::EpochLost => "The node was cut off from the keepers, or was suspended.",
                EndReason::NodeStopped => "The node stopped.",
                _ => "",
            };
            let named: Vec<&str> = locks.iter().map(String::as_str).collect();
            let named = match (*holds as usize).checked_sub(named.len()) {
                None | Some(0) => names(&named),
                Some(more) => format!("{} and {more} more", named.join(", ")),
            };
            let what = format!("{} lost on {from}", count(*holds as usize, "hold"));
            let why = format!("{cause} Locks: {named}.");
            (ChangeKind::Lost, from, what, why.trim_start().to_owned())
        }
        Note::LinkDown { to, reason } => {
            let what = format!("Link {from} to {to} broke");
            (
                ChangeKind::LinkDown,
                to.as_str(),
                what,
                format!("{reason}."),
            )
        }
        Note::LinkUp { to } => {
            let what = format!("Link {from} to {to} works again");
            (ChangeKind::LinkUp, to.as_str(), what, String::new())
        }
        _ => unreachable!("the caller handles all other notes"),
    };
    Change {
        id: format!("{from}:{number}"),
        at_ms,
        kind,
        node: Some(node.to_owned()),
        epoch: None,
        what,
        why,
        holds: None,
        is_bad: matches!(kind, ChangeKind::Lost | ChangeKind::LinkDown),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn installed(epoch: u64, before: Option<u64>, joined: &[&str], gone: &[&str]) -> Note {
        let all = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Note::Installed {
            epoch,
            before,
            members: 3,
            joined: all(joined),
            gone: all(gone),
            stood_still_us: before.map(|_| 38_000),
        }
    }

    fn merged(notes: Vec<(&str, u64, Note)>) -> Vec<(ChangeKind, String, String)> {
        let noted: Vec<(&str, Noted)> = notes
            .into_iter()
            .map(|(from, at_ms, note)| (from, Noted { at_ms, note }))
            .collect();
        let changes = merged_changes(
            noted
                .iter()
                .zip(1..)
                .map(|((f, n), number)| (*f, number, n)),
        );
        let changes = changes.into_iter();
        changes
            .map(|change| (change.kind, change.what, change.why))
            .collect()
    }

    #[test]
    fn members_note_an_epoch_together_and_the_leader_adds_the_reason() {
        let evicted = Note::Evicted {
            node: "d".to_owned(),
            epoch: 6,
            reason: "its lease expired".to_owned(),
            holds: Some(3),
        };
        let left = Note::Left {
            node: "e".to_owned(),
            epoch: 7,
        };
        // Epoch 6 was begun without d, and never installed.
        let changes = merged(vec![
            ("a", 900, evicted),
            ("a", 950, left),
            ("a", 1_000, installed(7, Some(5), &["f"], &["d", "e"])),
            ("b", 1_001, installed(7, Some(5), &["f"], &["d", "e"])),
            ("f", 1_002, installed(7, None, &[], &[])),
        ]);
        let kinds: Vec<ChangeKind> = changes.iter().map(|change| change.0).collect();
        use ChangeKind::*;
        assert_eq!(kinds, [Joined, Left, Evicted, Epoch]);
        assert_eq!(changes[2].1, "d evicted");
        assert_eq!(
            changes[2].2,
            "The leader evicted it because its lease expired. It had 3 holds."
        );
        assert_eq!(
            changes[3].2,
            "It has 3 members. Locks stood still for 38 ms."
        );
    }

    #[test]
    fn losses_and_epochs_do_not_crowd_out_an_eviction() {
        let lost = || Note::Lost {
            reason: EndReason::Expired,
            holds: 1,
            locks: vec!["x".to_owned()],
        };
        let after = 2..2 + JOURNAL_MAX as u64;
        let mut notes = vec![("a", 1, installed(7, Some(6), &[], &["d"]))];
        notes.extend(after.clone().map(|at_ms| ("b", at_ms, lost())));
        let kinds = |notes: &[(&'static str, u64, Note)]| -> Vec<ChangeKind> {
            let changes = merged(notes.to_vec()).into_iter();
            changes.map(|(kind, ..)| kind).collect()
        };
        let first = kinds(&notes);
        assert_eq!(first[..2], [ChangeKind::Evicted, ChangeKind::Epoch]);
        assert_eq!(first.len(), 2 + JOURNAL_MAX);
        notes.extend(after.map(|at_ms| ("a", at_ms, installed(6 + at_ms, None, &[], &[]))));
        let all = kinds(&notes);
        assert_eq!(all[0], ChangeKind::Evicted);
        assert_eq!(all.len(), 1 + 2 * JOURNAL_MAX);
    }

    #[test]
    fn an_eviction_without_effect_is_not_shown_and_one_without_reason_is() {
        let noted = Note::Evicted {
            node: "b".to_owned(),
            epoch: 9,
            reason: "its lease expired".to_owned(),
            holds: None,
        };
        let changes = merged(vec![
            ("a", 1, noted),
            ("a", 2, installed(7, Some(6), &[], &["d"])),
        ]);
        let what: Vec<&str> = changes.iter().map(|change| change.1.as_str()).collect();
        assert_eq!(what, ["d is no longer a member", "Epoch 7 began"]);
    }

    #[test]
    fn losses_links_and_elections_are_told_by_their_node() {
        let lost = Note::Lost {
            reason: EndReason::EpochLost,
            holds: 5,
            locks: vec!["x".to_owned(), "y".to_owned()],
        };
        let down = Note::LinkDown {
            to: "b".to_owned(),
            reason: "no route".to_owned(),
        };
        let changes = merged(vec![
            ("a", 1, Note::Elected { term: 4 }),
            ("a", 2, lost),
            ("a", 3, down),
            ("a", 4, Note::LinkUp { to: "b".to_owned() }),
        ]);
        let what: Vec<&str> = changes.iter().map(|change| change.1.as_str()).collect();
        let expected = [
            "a leads",
            "5 holds lost on a",
            "Link a to b broke",
            "Link a to b works again",
        ];
        assert_eq!(what, expected);
        assert!(
            changes[1].2.ends_with("Locks: x, y and 3 more."),
            "{}",
            changes[1].2
        );
    }
}
