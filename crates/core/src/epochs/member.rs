//! A node's part in the epochs: it renews its lease, freezes, reports and installs, and drives the
//! lock table in between.
//!
//! Every call first checks the clock: without a valid lease, the node takes part in nothing. The
//! only way to change the table, [`Participant::table_mut`], does so. A lapse is final: the node
//! and its waiters come back as a new incarnation.

mod arriving;
mod change;
mod leased_table;
mod leaving;
mod report;

use std::collections::BTreeMap;
use std::fmt;

use soloist_algorithms::NodeId;

use self::arriving::Arriving;
use self::leased_table::LeasedTable;
use self::report::Report;
use super::early::EarlyFrames;
use super::lease::Lease;
use super::message::{ToKeepers, ToMember};
use super::roster::{Change, Member};
use crate::locks::wire::WireError;
use crate::locks::{Effects, HoldError, HoldId, Inside, ReceiveError, Table, wire};
use crate::mutant::Mutant;
use crate::notice::Notice;
use crate::{Incarnation, Tuning};
use soloist_api::Moment;

/// Effects of one event.
#[derive(Debug, Default)]
pub struct MemberEffects {
    /// Messages to other members of the epoch, and answers to clients.
    pub locks: Effects,
    /// Messages to the keepers' leader.
    pub keepers: Vec<ToKeepers>,
    /// Connect the links to these members from now on.
    pub links: Option<Change>,
    /// The lease expired or was refused.
    pub lapsed: bool,
    /// Lines for the log.
    pub notices: Vec<Notice>,
}

/// A node's state machine for taking part in the epochs.
// Methods: changes of epoch in `member/change.rs`, leaving in `member/leaving.rs`.
#[derive(Clone, Hash)]
pub struct Participant {
    me: Member,
    table: LeasedTable,
    lease: Lease,
    stage: Stage,
    /// The current epoch, or `None` while the node is frozen or not a member.
    current: Option<Current>,
    /// The epoch that it was last told to report for.
    begun: u64,
    /// When to send the next renewal, `Join` or `Leave`. `None` once the keepers know that it has
    /// left.
    renew_at: Option<Moment>,
    /// Unanswered renewals: their numbers, and when they were sent.
    renewals: Vec<(u64, Moment)>,
    renewals_sent: u64,
    installed: u64,
    /// An epoch to install as soon as the node has a lease.
    pending: Option<(Change, Inside)>,
    /// Its report for the epoch that was begun.
    report: Option<Report>,
    /// An epoch to install when all its pieces have arrived.
    incoming: Option<Arriving>,
    early: EarlyFrames,
    is_suspicious: bool,
    unreached: Vec<Incarnation>,
    has_complained: bool,
    /// It leaves as soon as it holds nothing.
    is_draining: bool,
    has_left: bool,
}

impl fmt::Debug for Participant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Participant").finish_non_exhaustive()
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Stage {
    /// Not a member yet, or no longer.
    Outside,
    /// In an epoch, or between two.
    Member,
    /// Has left for good.
    Gone,
}

#[derive(Clone, Hash)]
struct Current {
    epoch: u64,
    /// By incarnation.
    places: BTreeMap<Incarnation, NodeId>,
}

/// Whether a node is a member, and of which epoch.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum MemberState {
    /// It takes part in this epoch.
    Member(u64),
    /// This epoch is about to begin.
    Changing(u64),
    /// It is not a member.
    Outside,
}

impl Participant {
    /// A node that wants to be a member.
    pub fn new(me: Member, mut table: Table, lease: Lease, now: Moment) -> Self {
        table.go_outside(now);
        Participant {
            me,
            table: LeasedTable::new(table),
            lease,
            stage: Stage::Outside,
            current: None,
            begun: 0,
            renew_at: Some(now),
            renewals: Vec::new(),
            renewals_sent: 0,
            installed: 0,
            pending: None,
            report: None,
            incoming: None,
            early: EarlyFrames::default(),
            is_suspicious: false,
            unreached: Vec::new(),
            has_complained: false,
            is_draining: false,
            has_left: false,
        }
    }

    /// This node, with its current incarnation.
    pub fn me(&self) -> &Member {
        &self.me
    }

    /// The lock table as of the last event. It may contain holds whose lease has expired since.
    pub fn table(&self) -> &Table {
        self.table.get()
    }

    /// The lock table as of now, to read or to change it. If the lease has expired, the holds are
    /// lost first. This is the only way to change the table.
    pub fn table_mut(&mut self, now: Moment, out: &mut MemberEffects) -> &mut Table {
        self.check_lease(now, out);
        self.table.at(now)
    }

    /// Whether the node is a member, and of which epoch.
    pub fn member_state(&self) -> MemberState {
        match (self.stage, &self.current) {
            (Stage::Member, Some(current)) => MemberState::Member(current.epoch),
            (Stage::Member, None) => MemberState::Changing(self.begun),
            (Stage::Outside | Stage::Gone, _) => MemberState::Outside,
        }
    }

    /// Until when its holds are valid, whatever else happens.
    pub fn valid_until(&self) -> Option<Moment> {
        self.table.valid_until()
    }

    /// Releases a hold, and leaves if the node is draining and this was the last one.
    pub fn release(
        &mut self,
        now: Moment,
        hold: HoldId,
        out: &mut MemberEffects,
    ) -> Result<(), HoldError> {
        let table = self.table_mut(now, out);
        let released = table.release(now, hold, &mut out.locks);
        self.leave_if_over(now, out);
        released
    }

    /// Handles bytes from this incarnation of another member. They may be anything.
    pub fn receive(
        &mut self,
        now: Moment,
        from: Incarnation,
        bytes: &[u8],
        out: &mut MemberEffects,
    ) -> Result<(), ReceiveError> {
        self.check_lease(now, out);
        let short = || ReceiveError::Wire(WireError::Short(bytes.len()));
        let epoch = wire::epoch(bytes).ok_or_else(short)?;
        let tuning = self.tuning();
        let is_current =
            |current: &&Current| current.epoch == epoch || tuning.has(Mutant::AnyEpoch);
        if let Some(current) = self.current.as_ref().filter(is_current) {
            let Some(&place) = current.places.get(&from) else {
                return Ok(());
            };
            let table = self.table_mut(now, out);
            return table.receive(now, place, bytes, &mut out.locks);
        }
        // Other members have already installed the epoch that this node has reported for and will
        // install. None can be in a later one, and earlier ones are over.
        let is_early = epoch == self.begun && epoch > self.installed;
        if is_early && self.stage == Stage::Member && !tuning.has(Mutant::EarlyDropped) {
            let fits = self.early.add(from, bytes);
            self.is_suspicious |= !fits;
        }
        Ok(())
    }

    /// A message to another member could not be sent, or one from it could not be handled. Locks
    /// that needed it make no progress until another epoch begins.
    pub fn suspect(&mut self, out: &mut MemberEffects) {
        self.is_suspicious = true;
        if let Some(current) = &self.current {
            let epoch = current.epoch;
            out.keepers.push(ToKeepers::Suspect { epoch });
        }
    }

    /// Whether the next tick sends a renewal. If so, call [`miss`](Participant::miss) first.
    pub fn is_renewal_due(&self, now: Moment) -> bool {
        self.stage == Stage::Member && self.renew_at.is_some_and(|at| at <= now)
    }

    /// Sets the incarnations of members to which messages have been pending [for too
    /// long](Lease::apart_after).
    pub fn miss(&mut self, incarnations: Vec<Incarnation>) {
        self.unreached = incarnations;
    }

    /// Handles a message from the keepers' leader.
    pub fn receive_from_leader(&mut self, now: Moment, message: ToMember, out: &mut MemberEffects) {
        self.check_lease(now, out);
        match message {
            ToMember::Granted { .. }
            | ToMember::Install { .. }
            | ToMember::Holds { .. }
            | ToMember::SendReport { .. }
                if self.stage != Stage::Member => {}
            ToMember::Granted { number } => {
                self.granted(now, number);
                if self.valid_until().is_some()
                    && let Some((change, inside)) = self.pending.take()
                {
                    self.install(now, change, inside, out);
                }
            }
            ToMember::NoMember => match self.stage {
                Stage::Member => self.lapse(now, out),
                Stage::Gone => {
                    self.renew_at = None;
                    self.has_left = true;
                }
                Stage::Outside => {}
            },
            // The keepers admit it when the other node is gone, or when it has waited long enough.
            ToMember::NameTaken
            | ToMember::Barred { .. }
            | ToMember::TooSlow { .. }
            | ToMember::HeldOff { .. } => {}
            ToMember::Probe { number } => {
                if self.stage == Stage::Outside {
                    out.keepers.push(ToKeepers::Probed { number });
                }
            }
            ToMember::Begin(change) => self.begin(now, &change, out),
            ToMember::SendReport { epoch, number } => self.send_report(epoch, number, out),
            ToMember::Install {
                change,
                pieces,
                first,
            } => self.expect_holds(now, change, pieces, first, out),
            ToMember::Holds {
                epoch,
                number,
                piece,
            } => self.take_holds(now, epoch, number, piece, out),
        }
    }

    /// Handles everything that has become due.
    pub fn tick(&mut self, now: Moment, out: &mut MemberEffects) {
        self.table_mut(now, out).tick(now, &mut out.locks);
        self.leave_if_over(now, out);
        if self.renew_at.is_some_and(|at| at <= now) {
            self.contact_leader(now, out);
        }
    }

    /// A leader was found, perhaps another one than before. Messages sent before this call may have
    /// been lost.
    pub fn find_leader(&mut self, now: Moment, out: &mut MemberEffects) {
        self.check_lease(now, out);
        if self.renew_at.is_some() {
            self.contact_leader(now, out);
        }
    }

    /// When [`tick`](Participant::tick) next has something to do.
    pub fn next_deadline(&self) -> Option<Moment> {
        let locks = self.table().next_deadline();
        let leaves = self.is_to_leave().then(Moment::default);
        let all = [locks, self.valid_until(), self.renew_at, leaves];
        all.into_iter().flatten().min()
    }

    fn tuning(&self) -> Tuning {
        self.table().tuning()
    }

    fn check_lease(&mut self, now: Moment, out: &mut MemberEffects) {
        if self.table.has_expired(now) {
            self.lapse(now, out);
        }
    }

    /// The machine slept, and its clock cannot be trusted for the time it did. A lease requested
    /// before that is worthless.
    pub fn wake(&mut self, now: Moment, out: &mut MemberEffects) {
        self.renewals.clear();
        if self.valid_until().is_some() {
            self.lapse(now, out);
        }
    }

    /// Ends the membership. The node comes back as a new incarnation.
    fn lapse(&mut self, now: Moment, out: &mut MemberEffects) {
        self.table.lose(now, &mut out.locks);
        self.me.incarnation = self.me.incarnation.next();
        self.stage = Stage::Outside;
        self.current = None;
        self.begun = 0;
        self.renewals.clear();
        self.installed = 0;
        self.pending = None;
        self.report = None;
        self.incoming = None;
        self.early = EarlyFrames::default();
        self.is_suspicious = false;
        self.unreached.clear();
        self.has_complained = false;
        self.renew_at = Some(now);
        out.lapsed = true;
    }

    fn contact_leader(&mut self, now: Moment, out: &mut MemberEffects) {
        self.renew_at = Some(now + self.lease.renewed_every());
        match self.stage {
            Stage::Outside => out.keepers.push(ToKeepers::Join),
            Stage::Gone => out.keepers.push(ToKeepers::Leave),
            Stage::Member => {
                self.renewals_sent += 1;
                let number = self.renewals_sent;
                // An answer to a renewal older than a lease would be worthless.
                let length = self.lease.length;
                self.renewals.retain(|(_, sent)| now.since(*sent) < length);
                self.renewals.push((number, now));
                out.keepers.push(ToKeepers::Renew {
                    number,
                    installed: self.installed,
                });
                // The leader that was told before may be gone.
                if self.is_suspicious {
                    self.suspect(out);
                }
                let table = self.table();
                if let Some(epoch) = table.epoch().filter(|_| table.is_exhausted()) {
                    out.keepers.push(ToKeepers::Exhausted { epoch });
                }
                let incarnations = self.unreached.clone();
                let complains = !incarnations.is_empty();
                if std::mem::replace(&mut self.has_complained, complains) || complains {
                    out.keepers.push(ToKeepers::Unreached { incarnations });
                }
            }
        }
    }

    fn granted(&mut self, now: Moment, number: u64) {
        let mut renewals = self.renewals.iter();
        if let Some((_, sent)) = renewals.find(|(sent, _)| *sent == number) {
            let is_late = self.tuning().has(Mutant::LeaseFromAnswer);
            let from = if is_late { now } else { *sent };
            let until = from + self.lease.length;
            // A late answer is worthless, above all to a node that has no lease yet.
            if until > now {
                self.table.extend(until);
            }
            self.renewals.retain(|(other, _)| *other > number);
        }
    }
}
