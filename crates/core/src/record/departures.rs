//! Departures that are remembered longer than the other notes.

use std::collections::BTreeMap;

use super::journal::{Note, Noted};

/// Maximum number of notes about departures that are kept besides the others.
pub const DEPARTURES_MAX: usize = 1000;

/// The notes that tell of each node's last departure, of notes that were dropped otherwise. So a
/// node that is missing is known as long as its reason matters, whatever happened since.
///
/// At most [`DEPARTURES_MAX`] notes are kept, the latest ones. `K` identifies a note.
#[derive(Clone, Debug)]
pub struct Departures<K>(BTreeMap<K, Noted>);

impl<K> Default for Departures<K> {
    fn default() -> Self {
        Departures(BTreeMap::new())
    }
}

impl<K: Ord + Clone> Departures<K> {
    /// Keeps what a dropped note tells of departures. Notes come in the order of their epochs, and
    /// a leader's note of a departure before the epoch that begins without the node.
    pub fn retire(&mut self, key: K, Noted { at_ms, note }: Noted) {
        let note = match note {
            Note::Installed {
                epoch,
                before,
                members,
                joined,
                mut gone,
                stood_still_us,
            } => {
                self.forget(|name, _| joined.contains(name));
                gone.retain(|name| !joined.contains(name));
                self.forget(|name, is_leaders| !is_leaders && gone.contains(name));
                if gone.is_empty() {
                    return;
                }
                Note::Installed {
                    epoch,
                    before,
                    members,
                    joined: Vec::new(),
                    gone,
                    stood_still_us,
                }
            }
            Note::Left { ref node, .. } | Note::Evicted { ref node, .. } => {
                self.forget(|name, is_leaders| is_leaders && name == node);
                note
            }
            _ => return,
        };
        self.0.insert(key, Noted { at_ms, note });
        if self.0.len() > DEPARTURES_MAX
            && let Some((oldest, _)) = self.0.iter().min_by_key(|(_, noted)| noted.at_ms)
        {
            let oldest = oldest.clone();
            self.0.remove(&oldest);
        }
    }

    /// Forgets departures, by the node's name and whether the note is the leader's.
    fn forget(&mut self, is_old: impl Fn(&String, bool) -> bool) {
        self.0.retain(|_, noted| match &mut noted.note {
            Note::Installed { gone, .. } => {
                gone.retain(|name| !is_old(name, false));
                !gone.is_empty()
            }
            Note::Left { node, .. } | Note::Evicted { node, .. } => !is_old(node, true),
            _ => false,
        });
    }

    /// The notes that are kept.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &Noted)> {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn installed(epoch: u64, joined: &[&str], gone: &[&str]) -> Note {
        let all = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Note::Installed {
            epoch,
            before: Some(epoch - 1),
            members: 3,
            joined: all(joined),
            gone: all(gone),
            stood_still_us: None,
        }
    }

    fn evicted(node: &str, epoch: u64) -> Note {
        Note::Evicted {
            node: node.to_owned(),
            epoch,
            reason: "its lease expired".to_owned(),
            holds: None,
        }
    }

    fn kept(notes: Vec<Note>) -> Vec<(u64, Note)> {
        let mut departures = Departures::default();
        for (note, number) in notes.into_iter().zip(1..) {
            let at_ms = number;
            departures.retire(number, Noted { at_ms, note });
        }
        let kept = departures.iter();
        kept.map(|(number, noted)| (*number, noted.note.clone()))
            .collect()
    }

    #[test]
    fn the_last_departure_of_each_node_is_kept_until_it_joins_again() {
        let notes = vec![
            evicted("d", 5),
            installed(5, &["e"], &["d", "c"]),
            Note::Elected { term: 3 },
            // d comes back and is evicted again, and c comes back.
            installed(6, &["d"], &[]),
            evicted("d", 7),
            installed(7, &["c"], &["d"]),
            // b is restarted.
            installed(8, &["b"], &["b"]),
        ];
        let expected = [(5, evicted("d", 7)), (6, installed(7, &[], &["d"]))];
        assert_eq!(kept(notes), expected);
    }

    #[test]
    fn at_most_the_latest_departures_are_kept() {
        let many = 2..DEPARTURES_MAX as u64 + 12;
        let notes = many.map(|epoch| installed(epoch, &[], &[&format!("n{epoch}")]));
        let kept = kept(notes.collect());
        assert_eq!(kept.len(), DEPARTURES_MAX);
        assert_eq!(kept[0].0, 11);
    }
}
