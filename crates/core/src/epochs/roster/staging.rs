//! Staging: what does not fit into one command is added in pieces, and takes effect when the epoch
//! is installed.

use super::super::pieces::{HOLDS_BYTES_MAX, Piece};
use super::{Applied, Change, Roster};
use soloist_api::LockName;

impl Roster {
    /// The epoch that was begun last, if it is this one and not installed yet.
    fn open(&self, epoch: u64) -> Option<&Change> {
        let begun = self.begun.as_ref().filter(|_| self.is_changing());
        begun.filter(|change| change.epoch == epoch)
    }

    /// Adds pieces to those that were staged before, or replaces all of them if `first` is 0.
    /// Pieces are validated here, a few at a time, and not again when they are installed.
    pub(super) fn stage(&mut self, epoch: u64, first: u32, pieces: Vec<Piece>) -> Applied {
        let before = match first {
            0 => &[][..],
            _ => &self.staged[..],
        };
        let bytes: usize = before.iter().chain(&pieces).map(Piece::bytes).sum();
        let fits = before.len() == first as usize && bytes <= HOLDS_BYTES_MAX;
        let Some(change) = self.open(epoch).filter(|_| fits) else {
            return Applied::Refused;
        };
        if !are_sound(before.last(), &pieces, change) {
            return Applied::Refused;
        }
        self.staged.truncate(first as usize);
        self.staged.extend(pieces);
        Applied::Done
    }

    pub(super) fn install_staged(&mut self, epoch: u64, pieces: u32) -> Applied {
        let Some(change) = self.open(epoch) else {
            return Applied::Refused;
        };
        if self.staged.len() != pieces as usize {
            return Applied::Refused;
        }
        self.installed = Some((change.clone(), std::mem::take(&mut self.staged)));
        Applied::Done
    }
}

/// Returns whether the locks are in order, none occurs twice, and every holder is a member.
fn are_sound(before: Option<&Piece>, pieces: &[Piece], change: &Change) -> bool {
    let last_of = |piece: &Piece| Some(piece.unpack()?.pop()?.lock);
    let mut last: Option<LockName> = before.and_then(last_of);
    pieces.iter().all(|piece| {
        let mut holds = piece.unpack().unwrap_or_default();
        let is_sound = !holds.is_empty()
            && last.as_ref() < holds.first().map(|held| &held.lock)
            && holds.windows(2).all(|pair| pair[0].lock < pair[1].lock)
            && holds
                .iter()
                .all(|held| (held.holder as usize) < change.members.len());
        last = holds.pop().map(|held| held.lock);
        is_sound
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{begin, install};
    use super::super::{Command, HeldLock};
    use super::*;

    fn packed(holds: &[(&str, u32)]) -> Vec<Piece> {
        let pieces = holds.iter().map(|&(lock, holder)| HeldLock {
            lock: LockName::new(lock).unwrap(),
            holder,
        });
        // One piece per lock.
        pieces.flat_map(|held| Piece::pack(&[held])).collect()
    }

    fn stage(epoch: u64, first: u32, holds: &[(&str, u32)]) -> Command {
        Command::Stage {
            epoch,
            first,
            pieces: packed(holds),
        }
    }

    fn install_staged(epoch: u64, pieces: u32) -> Command {
        Command::InstallStaged { epoch, pieces }
    }

    #[test]
    fn staged_pieces_count_all_at_once_and_a_new_leader_starts_over() {
        use Applied::{Done, Refused};
        let mut roster = Roster::default();
        assert_eq!(roster.apply(stage(1, 0, &[("a", 0)])), Refused);
        assert_eq!(roster.apply(begin(1, &["a", "b"])), Done);
        for (command, applied) in [
            (stage(2, 0, &[("a", 0)]), Refused),
            (stage(1, 1, &[("a", 0)]), Refused),
            (stage(1, 0, &[("a", 0), ("b", 1)]), Done),
            (stage(1, 1, &[("c", 0)]), Refused),
            (stage(1, 2, &[("c", 1)]), Done),
            (install_staged(1, 2), Refused),
            // A new leader stages something else.
            (stage(1, 0, &[("b", 0)]), Done),
            (install_staged(1, 3), Refused),
            (stage(1, 1, &[("c", 1)]), Done),
        ] {
            assert_eq!(roster.apply(command), applied);
            assert!(roster.is_changing());
        }
        assert_eq!(roster.apply(install_staged(1, 2)), Done);
        let (_, installed) = roster.installed().unwrap();
        assert_eq!(installed, packed(&[("b", 0), ("c", 1)]));
        assert_eq!(roster.apply(install_staged(1, 2)), Refused);
        // What was staged for an epoch that is never installed has no effect.
        assert_eq!(roster.apply(begin(2, &["a"])), Done);
        assert_eq!(roster.apply(stage(2, 0, &[("a", 0)])), Done);
        assert_eq!(roster.apply(begin(3, &["a"])), Done);
        assert_eq!(roster.apply(install_staged(3, 1)), Refused);
        // What fits into one command needs no staging.
        assert_eq!(roster.apply(install(3, &[("x", 0)])), Done);
        assert!(!roster.is_changing());
    }

    #[test]
    fn pieces_that_make_no_sense_are_refused() {
        use Applied::{Done, Refused};
        let mut roster = Roster::default();
        assert_eq!(roster.apply(begin(1, &["a"])), Done);
        for nonsense in [
            [("b", 0), ("a", 0)],
            [("a", 0), ("a", 0)],
            [("a", 0), ("b", 1)],
        ] {
            assert_eq!(
                roster.apply(stage(1, 0, &nonsense)),
                Refused,
                "{nonsense:?}"
            );
            assert_eq!(roster.apply(install_staged(1, 2)), Refused);
        }
        // Nor may a piece overlap with those that were staged before it.
        assert_eq!(roster.apply(stage(1, 0, &[("b", 0)])), Done);
        for overlapping in ["a", "b"] {
            assert_eq!(roster.apply(stage(1, 1, &[(overlapping, 0)])), Refused);
        }
        assert_eq!(roster.apply(stage(1, 1, &[("c", 0)])), Done);
        assert_eq!(roster.apply(install_staged(1, 2)), Done);
    }
}
