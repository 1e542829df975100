//! What members hold when an epoch is to begin: it comes in pieces, and is agreed on in pieces.

use std::time::Duration;

use super::super::message::ToMember;
use super::super::pieces::{HOLDS_BYTES_MAX, Incoming, Piece, bytes_of};
use super::super::roster::{Command, HeldLock};
use super::{Leader, LeaderEffects};
use crate::mutant::Mutant;
use soloist_api::LockName;

/// Each piece of a report may take this long, beside the lease that all members have.
const PIECE_TIME: Duration = Duration::from_millis(50);

/// Number of pieces in one command.
const PIECES_STAGED: usize = 4;

/// What a member holds.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) enum Report {
    #[default]
    Missing,
    Arriving(Incoming<Vec<LockName>>),
    /// All of it, until it is part of what is staged.
    Whole(Vec<LockName>),
}

impl Report {
    pub fn is_whole(&self) -> bool {
        matches!(self, Report::Whole(_))
    }
}

/// All reports for the epoch that is to begin, together.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Reports {
    /// Bytes and number of the pieces so far.
    bytes: usize,
    pieces: u32,
    /// What was reported, if it does not fit one command, and how many pieces the keepers have.
    packed: Vec<Piece>,
    staged: usize,
    /// How many they have when the command under way is carried out.
    staging: usize,
}

impl Reports {
    /// How much time the pieces so far have taken at most.
    pub fn time(&self) -> Duration {
        PIECE_TIME * self.pieces
    }

    /// A command was carried out.
    pub fn staged(&mut self) {
        self.staged = self.staging;
    }

    /// Nobody knows whether the command was carried out: pieces are staged from the first one.
    pub fn stage_again(&mut self) {
        (self.staged, self.staging) = (0, 0);
    }
}

impl Leader {
    /// A piece of a member's report has come, for the epoch that is to begin.
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
            let name = &known.member.name;
            tracing::error!(
                %name, pieces,
                "members hold more locks than can be agreed on ({HOLDS_BYTES_MAX} bytes of names): \
                 this one is evicted; hold fewer locks, or give them shorter names"
            );
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

    /// The epoch that was begun starts from what its members have reported, once all have. What does not fit one
    /// command is staged first.
    pub(super) fn installation(&mut self) -> Option<Command> {
        let epoch = self.begun;
        if self.reports.packed.is_empty() {
            let all_have_reported = self.members.iter().all(|known| known.report.is_whole());
            if !all_have_reported && !Mutant::InstallTooEarly.planted() {
                return None;
            }
            let holds = self.reported()?;
            let packed = Piece::pack(&holds);
            if packed.len() <= 1 {
                return Some(Command::Install { epoch, holds });
            }
            self.reports.packed = packed;
            self.members.iter_mut().for_each(|known| {
                if let Report::Whole(held) = &mut known.report {
                    *held = Vec::new();
                }
            });
        }
        let Reports {
            packed,
            staged,
            staging,
            ..
        } = &mut self.reports;
        let rest = &packed[*staged..];
        if rest.is_empty() {
            let pieces = packed.len() as u32;
            return Some(Command::InstallStaged { epoch, pieces });
        }
        let pieces = rest[..rest.len().min(PIECES_STAGED)].to_vec();
        *staging = *staged + pieces.len();
        let first = *staged as u32;
        Some(Command::Stage {
            epoch,
            first,
            pieces,
        })
    }

    /// All that was reported, by name.
    fn reported(&mut self) -> Option<Vec<HeldLock>> {
        let members = self.members.iter().enumerate();
        let holds = members.flat_map(|(place, known)| {
            let held = match &known.report {
                Report::Whole(held) => &held[..],
                _ => &[],
            };
            held.iter().map(move |lock| HeldLock {
                lock: lock.clone(),
                holder: place as u32,
            })
        });
        let mut holds: Vec<_> = holds.collect();
        holds.sort_by(|one, other| one.lock.cmp(&other.lock));
        let twice = holds.windows(2).find(|pair| pair[0].lock == pair[1].lock);
        if let Some([one, other]) = twice {
            // One of them lies, or an algorithm is wrong. Neither is believed: the next change is without both.
            tracing::error!(lock = ?one.lock, "two members say that they hold it");
            for place in [one.holder, other.holder] {
                self.members[place as usize].is_leaving = true;
            }
            return None;
        }
        Some(holds)
    }
}
