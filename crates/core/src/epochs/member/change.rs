//! A node's way from one epoch to the next: it freezes, reports, and installs.

use soloist_algorithms::NodeId;

use super::super::early::EarlyFrames;
use super::super::message::ToKeepers;
use super::super::pieces::{Incoming, Piece, pack_names};
use super::super::roster::{Change, HeldLock};
use super::{Current, MemberEffects, Participant, Stage};
use crate::locks::Epoch;
use crate::mutant::Mutant;
use soloist_api::Moment;

impl Participant {
    /// Another epoch is to begin: this node takes no part in the one before any more, and says what it holds.
    pub(super) fn begin(&mut self, now: Moment, change: &Change, out: &mut MemberEffects) {
        let is_over = change.epoch < self.begun || change.epoch <= self.installed;
        let takes_part = matches!(self.stage, Stage::Outside | Stage::Member);
        if !takes_part || is_over || !change.is_sound() || !change.members.contains(&self.me) {
            return;
        }
        if !Mutant::NoFreeze.planted() && self.current.take().is_some() {
            self.table.freeze();
        }
        if change.epoch > self.begun {
            self.early = EarlyFrames::default();
            self.is_suspicious = false;
            self.report = Vec::new();
            self.incoming = None;
        }
        let is_new = self.stage == Stage::Outside;
        self.stage = Stage::Member;
        self.begun = change.epoch;
        if self.report.is_empty() {
            self.report = pack_names(match Mutant::HoldsNotReported.planted() {
                true => Vec::new(),
                false => self.table.held(),
            });
        }
        self.send_report(change.epoch, 0, out);
        if is_new {
            self.say_hello(now, out);
        }
    }

    pub(super) fn install(
        &mut self,
        now: Moment,
        change: Change,
        holds: Vec<HeldLock>,
        out: &mut MemberEffects,
    ) {
        // What it has not reported for, it was not counted in.
        let is_frozen_for = self.begun == change.epoch && self.installed < change.epoch;
        let me = change.members.iter().position(|member| *member == self.me);
        let (true, Some(me)) = (is_frozen_for, me) else {
            return;
        };
        if self.valid_until.is_none() {
            self.pending = Some((change, holds));
            return;
        }
        let place = |index: usize| NodeId::from_index(index);
        let inside = holds.iter();
        let inside = inside.map(|held| (held.lock.clone(), place(held.holder as usize)));
        let epoch = Epoch {
            number: change.epoch,
            me: place(me),
            nodes: change.members.len(),
            inside: inside.collect(),
        };
        let places = change.members.iter().enumerate();
        let places = places.map(|(index, member)| (member.incarnation, place(index)));
        if Mutant::NoFreeze.planted() {
            self.table.freeze();
        }
        self.current = Some(Current {
            epoch: change.epoch,
            places: places.collect(),
        });
        self.installed = change.epoch;
        self.report = Vec::new();
        let early = self.early.take();
        out.links = Some(change);
        self.table.install(now, epoch, &mut out.locks);
        for (from, bytes) in early {
            if let Err(error) = self.receive(now, from, &bytes, out) {
                tracing::error!("a message that came before its epoch is refused: {error}");
                self.is_suspicious = true;
            }
        }
        if self.is_suspicious {
            self.suspect(out);
        }
    }

    /// Sends a piece of its report, if that is for this epoch.
    pub(super) fn send_report(&self, epoch: u64, number: u32, out: &mut MemberEffects) {
        let held = self.report.get(number as usize);
        if let Some(held) = held.filter(|_| epoch == self.begun) {
            out.keepers.push(ToKeepers::Report {
                epoch,
                pieces: self.report.len() as u32,
                number,
                held: held.clone(),
            });
        }
    }

    /// An epoch begins when all pieces of what members hold have come.
    pub(super) fn expect_holds(
        &mut self,
        now: Moment,
        change: Change,
        pieces: u32,
        first: Option<Piece>,
        out: &mut MemberEffects,
    ) {
        let mut pending = self.pending.iter();
        let is_pending = pending.any(|(pending, _)| pending.epoch == change.epoch);
        if self.begun != change.epoch || self.installed >= change.epoch || is_pending {
            return;
        }
        let is_it = |(known, incoming): &(Change, Incoming<Piece>)| {
            *known == change && incoming.pieces() == pieces
        };
        let incoming = match self.incoming.take().filter(is_it) {
            Some((_, incoming)) => Some(incoming),
            None => Incoming::new(pieces),
        };
        let Some(mut incoming) = incoming else {
            tracing::error!(pieces, "more is held than an epoch can begin with");
            return;
        };
        if let Some(first) = first {
            incoming.add(0, first);
        }
        self.incoming = Some((change, incoming));
        self.go_on(now, 0, out);
    }

    /// A piece of what members hold has come.
    pub(super) fn take_holds(
        &mut self,
        now: Moment,
        epoch: u64,
        number: u32,
        piece: Piece,
        out: &mut MemberEffects,
    ) {
        if let Some((change, incoming)) = &mut self.incoming
            && change.epoch == epoch
        {
            incoming.add(number, piece);
            self.go_on(now, number, out);
        }
    }

    /// Asks for further pieces, or installs the epoch.
    fn go_on(&mut self, now: Moment, arrived: u32, out: &mut MemberEffects) {
        let Some((change, mut incoming)) = self.incoming.take() else {
            return;
        };
        if !incoming.is_complete() {
            let epoch = change.epoch;
            let asked = incoming.ask(arrived).into_iter();
            out.keepers
                .extend(asked.map(|number| ToKeepers::SendHolds { epoch, number }));
            self.incoming = Some((change, incoming));
            return;
        }
        let holds: Option<Vec<Vec<HeldLock>>> =
            incoming.take().map(|piece| piece.unpack()).collect();
        match holds {
            Some(holds) => self.install(now, change, holds.concat(), out),
            None => tracing::error!("the leader sent what cannot be read; it is asked again"),
        }
    }
}
