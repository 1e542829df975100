//! The reports of what members hold when an epoch is about to begin. They arrive in pieces, and
//! become the pieces that the epoch starts with.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use soloist_algorithms::NodeId;

use super::super::message::ToMember;
use super::super::pieces::{self, Incoming};
use super::super::roster::Command;
use super::{Leader, LeaderEffects};
use crate::limits::Limits;
use crate::locks::HeldLock;
use crate::mutant::Mutant;
use crate::name_hash::NameHash;
use crate::notice::Notice;
use crate::rows::Rows;

/// Time allowed per piece of a report, in addition to the lease that all members have.
const PIECE_TIME: Duration = Duration::from_millis(50);

/// A member's report of the locks it holds.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) enum Report {
    #[default]
    Missing,
    Arriving(Incoming<Rows<NameHash>>),
    /// All of it, sorted.
    Whole(Vec<NameHash>),
}

impl Report {
    pub(super) fn is_whole(&self) -> bool {
        matches!(self, Report::Whole(_))
    }
}

/// Progress of all reports for the epoch that is about to begin.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Reports {
    /// Number of locks in the pieces received.
    locks: usize,
    /// Number of those pieces.
    pieces: u32,
    /// Two of them contradict each other, so the epoch is never installed.
    are_refuted: bool,
}

/// Two members, by place, that both claim to hold a lock.
struct Twice {
    places: [usize; 2],
}

impl Reports {
    /// Additional time that reports may take, by the number of pieces received so far.
    pub(super) fn time(&self) -> Duration {
        PIECE_TIME * self.pieces
    }
}

impl Leader {
    /// Takes a piece of a member's report for the epoch that is about to begin.
    pub(super) fn take_report(
        &mut self,
        place: usize,
        pieces: u32,
        number: u32,
        held: Rows<NameHash>,
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
        let locks = self.reports.locks + held.len();
        let Some(mut arriving) = arriving.filter(|_| locks <= Limits::HOLDS_MAX) else {
            let member = known.member.name.clone();
            out.notices.push(Notice::TooMuchHeld { member, pieces });
            known.is_leaving = true;
            return;
        };
        if arriving.add(number, held) {
            self.reports.locks = locks;
            self.reports.pieces += 1;
        }
        if arriving.is_complete(self.tuning) {
            let mut held = Vec::new();
            for piece in arriving.take() {
                held.extend(piece.iter());
            }
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

    /// The command that installs the epoch with what its members reported, or `None` until all
    /// have.
    pub(super) fn installation(&mut self, notices: &mut Vec<Notice>) -> Option<Command> {
        let epoch = self.begun;
        let all_have_reported = self.members.iter().all(|known| known.report.is_whole());
        if !all_have_reported && !self.tuning.has(Mutant::InstallTooEarly) {
            return None;
        }
        if self.reports.are_refuted {
            return None;
        }
        if self.holds.is_none() {
            match self.merge_reports() {
                Ok(holds) => self.holds = Some(pieces::cut(&holds, self.tuning)),
                Err(twice) => {
                    self.disbelieve(twice, notices);
                    return None;
                }
            }
            for known in self.members.iter_mut() {
                known.report = Report::Whole(Vec::new());
            }
        }
        Some(Command::Install { epoch })
    }

    /// All reported locks, sorted.
    fn merge_reports(&self) -> Result<Vec<HeldLock>, Twice> {
        let reports = self.members.iter().map(|known| match &known.report {
            Report::Whole(held) => &held[..],
            _ => &[],
        });
        let mut reports: Vec<_> = reports.map(|held| held.iter()).collect();
        let mut holds = Vec::with_capacity(self.reports.locks);
        let heads = reports.iter_mut().enumerate();
        let heads = heads.filter_map(|(place, held)| Some(Reverse((*held.next()?, place))));
        let mut heads: BinaryHeap<_> = heads.collect();
        while let Some(Reverse((lock, place))) = heads.pop() {
            heads.extend(reports[place].next().map(|next| Reverse((*next, place))));
            let holder = NodeId::from_index(place);
            match holds.last() {
                Some(HeldLock { lock: last, holder }) if *last == lock => {
                    if !self.tuning.has(Mutant::FirstIsBelieved) {
                        let places = [holder.index(), place];
                        return Err(Twice { places });
                    }
                }
                _ => holds.push(HeldLock { lock, holder }),
            }
        }
        Ok(holds)
    }

    /// A piece of what members held when the epoch that was begun last was installed.
    pub(super) fn holds(&self, epoch: u64, number: u32) -> Option<ToMember> {
        let piece = self.holds.as_ref()?.get(number as usize)?.clone();
        Some(ToMember::Holds {
            epoch,
            number,
            piece,
        })
    }

    /// One of the two members is lying, or an algorithm is wrong, or two names have the same hash.
    /// Neither is trusted: the next change leaves out both.
    fn disbelieve(&mut self, twice: Twice, notices: &mut Vec<Notice>) {
        self.reports.are_refuted = true;
        let members = twice.places.map(|place| {
            let known = &mut self.members[place];
            known.is_leaving = true;
            known.member.name.clone()
        });
        notices.push(Notice::HeldTwice(members));
    }
}
