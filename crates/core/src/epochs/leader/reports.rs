//! The reports of what members hold when an epoch is about to begin. They arrive in pieces, and are
//! committed in pieces.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use super::super::message::ToMember;
use super::super::pieces::{HOLDS_BYTES_MAX, Incoming, Piece, bytes_of, piece_bytes};
use super::super::roster::{Command, HeldLock};
use super::{Leader, LeaderEffects};
use crate::limits::HOLD_BYTES;
use crate::mutant::Mutant;
use crate::notice::Notice;
use soloist_api::LockName;

/// Time allowed per piece of a report, in addition to the lease that all members have.
const PIECE_TIME: Duration = Duration::from_millis(50);

/// Number of pieces staged by one command.
const PIECES_STAGED: usize = 4;

/// A member's report of the locks it holds.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) enum Report {
    #[default]
    Missing,
    Arriving(Incoming<Vec<LockName>>),
    /// All of it, in name order.
    Whole(Vec<LockName>),
}

impl Report {
    pub fn is_whole(&self) -> bool {
        matches!(self, Report::Whole(_))
    }
}

/// Progress of all reports for the epoch that is about to begin.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Reports {
    /// Total bytes and number of the pieces received.
    bytes: usize,
    pieces: u32,
    /// What the keepers have applied.
    staged: Staged,
    /// What they will have once the command in progress is applied.
    staging: Staged,
}

/// How much of the reports is staged.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
struct Staged {
    pieces: u32,
    /// Number of locks staged of each member's report, by the member's place. 0 beyond the end.
    locks: Vec<usize>,
}

/// Two members, by place, that both claim to hold a lock.
struct Twice {
    lock: LockName,
    places: [usize; 2],
}

impl Reports {
    /// Additional time that reports may take, by the number of pieces received so far.
    pub fn time(&self) -> Duration {
        PIECE_TIME * self.pieces
    }

    /// The command in progress was applied.
    pub fn staged(&mut self) {
        self.staged = self.staging.clone();
    }

    /// It is unknown whether the command was applied, so staging restarts from the first piece.
    pub fn stage_again(&mut self) {
        (self.staged, self.staging) = Default::default();
    }
}

impl Leader {
    /// Takes a piece of a member's report for the epoch that is about to begin.
    pub(super) fn take_report(
        &mut self,
        place: usize,
        pieces: u32,
        number: u32,
        held: Vec<LockName>,
        out: &mut LeaderEffects,
    ) {
        let known = &mut self.members[place];
        if known.report.is_whole() || pieces == 0 {
            return;
        }
        let arriving = match std::mem::take(&mut known.report) {
            Report::Arriving(arriving) if arriving.pieces() == pieces => Some(arriving),
            _ => Incoming::new(pieces),
        };
        let bytes = self.reports.bytes + bytes_of(&held);
        let Some(mut arriving) = arriving.filter(|_| bytes <= HOLDS_BYTES_MAX) else {
            let member = known.member.name.clone();
            out.notices.push(Notice::TooMuchHeld { member, pieces });
            known.is_leaving = true;
            return;
        };
        if arriving.add(number, held) {
            self.reports.bytes = bytes;
            self.reports.pieces += 1;
        }
        if arriving.is_complete() {
            let mut held: Vec<_> = arriving.take().flatten().collect();
            held.sort_unstable();
            held.dedup();
            known.report = Report::Whole(held);
            return;
        }
        let epoch = self.begun;
        let asked = arriving.ask(number).into_iter();
        let asked = asked.map(|number| ToMember::SendReport { epoch, number });
        let member = &known.member;
        out.sends
            .extend(asked.map(|message| (member.clone(), message)));
        known.report = Report::Arriving(arriving);
    }

    /// The next command towards installing the epoch with what its members reported, or `None`
    /// until all have. What does not fit into one command is staged first. Each command is built
    /// only when its turn comes, so that renewals do not wait for all of them.
    pub(super) fn installation(&mut self, notices: &mut Vec<Notice>) -> Option<Command> {
        let epoch = self.begun;
        let all_have_reported = self.members.iter().all(|known| known.report.is_whole());
        if !all_have_reported && !Mutant::InstallTooEarly.planted() {
            return None;
        }
        let mut next = self.reports.staged.clone();
        let (holds, is_all) = match self.next_holds(&mut next.locks) {
            Ok(next) => next,
            Err(twice) => {
                self.disbelieve(twice, notices);
                return None;
            }
        };
        let first = next.pieces;
        if holds.is_empty() && first > 0 {
            let pieces = first;
            return Some(Command::InstallStaged { epoch, pieces });
        }
        let pieces = Piece::pack(&holds);
        if first == 0 && is_all && pieces.len() <= 1 {
            return Some(Command::Install { epoch, holds });
        }
        next.pieces += pieces.len() as u32;
        self.reports.staging = next;
        Some(Command::Stage {
            epoch,
            first,
            pieces,
        })
    }

    /// The next reported locks, ordered by name: as many as one command stages. `done` counts the
    /// locks of each member that were staged before, and is advanced by these. Also returns whether
    /// these are the last.
    fn next_holds(&self, done: &mut Vec<usize>) -> Result<(Vec<HeldLock>, bool), Twice> {
        let reports = self.members.iter().map(|known| match &known.report {
            Report::Whole(held) => &held[..],
            _ => &[],
        });
        let reports: Vec<_> = reports.collect();
        done.resize(reports.len(), 0);
        let next = |place: usize, done: &[usize]| {
            let lock = reports[place].get(done[place])?;
            Some(Reverse((lock, place)))
        };
        let places = 0..reports.len();
        let mut heads: BinaryHeap<_> = places.filter_map(|place| next(place, done)).collect();
        // Each piece may fall short of the limit by one name.
        let limit = PIECES_STAGED * piece_bytes().saturating_sub(LockName::LEN_MAX + HOLD_BYTES);
        let (mut holds, mut bytes) = (Vec::new(), 0);
        while let Some(Reverse((lock, place))) = heads.pop() {
            bytes += lock.as_str().len() + HOLD_BYTES;
            if bytes > limit && !holds.is_empty() {
                return Ok((holds, false));
            }
            if let Some(Reverse((same, other))) = heads.peek()
                && *same == lock
            {
                let (lock, places) = (lock.clone(), [place, *other]);
                return Err(Twice { lock, places });
            }
            done[place] += 1;
            heads.extend(next(place, done));
            holds.push(HeldLock {
                lock: lock.clone(),
                holder: place as u32,
            });
        }
        Ok((holds, true))
    }

    /// One of the two members is lying, or an algorithm is wrong. Neither is trusted: the next
    /// change leaves out both.
    fn disbelieve(&mut self, twice: Twice, notices: &mut Vec<Notice>) {
        notices.push(Notice::HeldTwice(twice.lock));
        for place in twice.places {
            self.members[place].is_leaving = true;
        }
    }
}
