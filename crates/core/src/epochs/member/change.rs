//! A node's part in a change of epoch: it freezes, reports and installs.

use soloist_algorithms::NodeId;

use super::super::early::EarlyFrames;
use super::super::message::ToKeepers;
use super::super::roster::Change;
use super::arriving::{Arriving, Unsound};
use super::report::Report;
use super::{Current, MemberEffects, Participant, Stage};
use crate::locks::{Epoch, HeldLock, Inside};
use crate::mutant::Mutant;
use crate::notice::Notice;
use crate::rows::Rows;
use soloist_api::Moment;

impl Participant {
    /// Another epoch is about to begin. This node stops taking part in the one before, and reports
    /// what it holds.
    pub(super) fn begin(&mut self, now: Moment, change: &Change, out: &mut MemberEffects) {
        let is_over = change.epoch < self.begun || change.epoch <= self.installed;
        let takes_part = matches!(self.stage, Stage::Outside | Stage::Member);
        if !takes_part || is_over || !change.is_sound() || !change.members.contains(&self.me) {
            return;
        }
        if !self.tuning().has(Mutant::NoFreeze) && self.current.take().is_some() {
            self.table_mut(now, out).freeze();
        }
        if change.epoch > self.begun {
            self.early = EarlyFrames::default();
            self.is_suspicious = false;
            self.report = None;
            self.incoming = None;
        }
        let is_new = self.stage == Stage::Outside;
        self.stage = Stage::Member;
        self.begun = change.epoch;
        if self.report.is_none() {
            self.report = Some(Report::new(self.table(), &change.key));
        }
        self.send_report(change.epoch, 0, out);
        if is_new {
            self.contact_leader(now, out);
        }
    }

    pub(super) fn install(
        &mut self,
        now: Moment,
        change: Change,
        inside: Inside,
        out: &mut MemberEffects,
    ) {
        // An epoch that this node has not reported for was formed without its holds.
        let is_frozen_for = self.begun == change.epoch && self.installed < change.epoch;
        let me = change.members.iter().position(|member| *member == self.me);
        let (true, Some(me)) = (is_frozen_for, me) else {
            return;
        };
        if self.valid_until().is_none() {
            self.pending = Some((change, inside));
            return;
        }
        let place = |index: usize| NodeId::from_index(index);
        let epoch = Epoch {
            number: change.epoch,
            me: place(me),
            members: change
                .members
                .iter()
                .map(|member| member.incarnation)
                .collect(),
            inside,
        };
        let places = change.members.iter().enumerate();
        let places = places.map(|(index, member)| (member.incarnation, place(index)));
        if self.tuning().has(Mutant::NoFreeze) {
            self.table_mut(now, out).freeze();
        }
        self.current = Some(Current {
            epoch: change.epoch,
            places: places.collect(),
        });
        self.installed = change.epoch;
        self.report = None;
        let early = self.early.take();
        out.links = Some(change);
        let table = self.table_mut(now, out);
        table.install(now, epoch, &mut out.locks);
        for (from, bytes) in early {
            if let Err(error) = self.receive(now, from, &bytes, out) {
                out.notices.push(Notice::EarlyMessage(error));
                self.is_suspicious = true;
            }
        }
        if self.is_suspicious {
            self.suspect(out);
        }
    }

    /// Sends a piece of the report, if it is for this epoch.
    pub(super) fn send_report(&mut self, epoch: u64, number: u32, out: &mut MemberEffects) {
        let report = self.report.as_ref().filter(|_| epoch == self.begun);
        if let Some(report) = report
            && let Some(held) = report.piece(number)
        {
            out.keepers.push(ToKeepers::Report {
                epoch,
                pieces: report.pieces(),
                number,
                held,
            });
        }
    }

    /// An epoch is to be installed once all pieces of what its members hold have arrived.
    pub(super) fn expect_holds(
        &mut self,
        now: Moment,
        change: Change,
        pieces: u32,
        first: Option<Rows<HeldLock>>,
        out: &mut MemberEffects,
    ) {
        let mut pending = self.pending.iter();
        let is_pending = pending.any(|(pending, _)| pending.epoch == change.epoch);
        if self.begun != change.epoch || self.installed >= change.epoch || is_pending {
            return;
        }
        let arriving = self.incoming.take();
        let arriving = arriving.filter(|arriving| arriving.is_of(&change, pieces));
        let Some(arriving) = arriving.or_else(|| Arriving::new(change, pieces)) else {
            out.notices.push(Notice::TooManyPieces(pieces));
            return;
        };
        self.go_on(now, arriving, 0, first, out);
    }

    /// Handles a piece of what members hold.
    pub(super) fn take_holds(
        &mut self,
        now: Moment,
        epoch: u64,
        number: u32,
        piece: Rows<HeldLock>,
        out: &mut MemberEffects,
    ) {
        let arriving = self.incoming.take_if(|arriving| arriving.epoch() == epoch);
        if let Some(arriving) = arriving {
            self.go_on(now, arriving, number, Some(piece), out);
        }
    }

    /// Takes a piece, then asks for more or installs the epoch.
    fn go_on(
        &mut self,
        now: Moment,
        mut arriving: Arriving,
        number: u32,
        piece: Option<Rows<HeldLock>>,
        out: &mut MemberEffects,
    ) {
        if let Some(piece) = piece
            && let Err(Unsound) = arriving.add(number, piece)
        {
            out.notices.push(Notice::UnsoundPieces);
            return;
        }
        if arriving.is_complete(self.tuning()) {
            match arriving.finish() {
                Ok((change, inside)) => self.install(now, change, inside, out),
                Err(Unsound) => out.notices.push(Notice::UnsoundPieces),
            }
            return;
        }
        let epoch = arriving.epoch();
        let asked = arriving.ask(number).into_iter();
        out.keepers
            .extend(asked.map(|number| ToKeepers::SendHolds { epoch, number }));
        self.incoming = Some(arriving);
    }
}
