//! The decisions of the keepers' leader: granting leases, admitting and evicting members, and
//! changing epochs.
//!
//! This state machine only decides; its caller commits each decision through Raft. A new leader
//! starts from the roster alone. It must assume that leases granted by its predecessors run for a
//! full lease more, and members report to it again. What members held when an epoch began is only
//! known to the leader that installed it: if it dies before all members have installed that epoch,
//! its successor begins another one.

mod commands;
mod gone;
mod reports;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use self::reports::{Report, Reports};
use super::backoff::BackOff;
use super::candidates::Candidates;
use super::lease::Lease;
use super::message::{ToKeepers, ToMember};
use super::pace::Pace;
use super::partitions::Partitions;
use super::roster::{Change, Command, Member, Roster};
use crate::locks::HeldLock;
use crate::mutant::Mutant;
use crate::name_hash::HashKeys;
use crate::notice::Notice;
use crate::rows::Rows;
use crate::{Incarnation, Tuning};
use soloist_api::Moment;
use soloist_api::NodeName;

/// Maximum number of members that are listed by name in a message or a log line.
const NAMED: usize = 8;

/// Effects of one event.
#[derive(Debug, Default)]
pub struct LeaderEffects {
    /// Messages to members.
    pub sends: Vec<(Member, ToMember)>,
    /// Command to propose. Report the outcome with [`Leader::applied`] or [`Leader::refused`].
    pub propose: Option<Command>,
    /// Confirm with a majority that this is still the leader. Report the outcome with
    /// [`Leader::confirmed`] or [`Leader::unconfirmed`].
    pub confirm: bool,
    /// Lines for the log.
    pub notices: Vec<Notice>,
}

/// The keepers' leader, from its election to the end of its term.
// Methods: commands to commit in `leader/commands.rs`, reports in `leader/reports.rs`, members
// given up in `leader/gone.rs`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Leader {
    lease: Lease,
    /// The members of the epoch that was begun last, in that epoch's order.
    members: Vec<Known>,
    /// The epoch that was begun last.
    begun: u64,
    candidates: Candidates,
    back_off: BackOff,
    pace: Pace,
    /// The installed epoch cannot continue, for example because a message was lost in it.
    suspected: bool,
    /// Until this moment, no suspicion changes the epoch again.
    calm_until: Moment,
    /// A command has been proposed, and its outcome is unknown.
    proposing: bool,
    /// That command changes what members have to be told.
    is_news: bool,
    /// When the last epoch was begun, or when this leader was elected if that was later.
    begun_at: Moment,
    /// When all members that have been in an epoch before had reported. `None` if there are no such
    /// members, or not all of them have.
    others_reported: Option<Moment>,
    /// Renewals that wait for the next confirmation.
    asking: Vec<(Member, u64)>,
    /// The start of the confirmation in progress, and the renewals that it covers.
    confirming: Option<(Moment, Vec<(Member, u64)>)>,
    partitions: Partitions,
    reports: Reports,
    /// What the members of the epoch that was begun last hold, once all have reported to this
    /// leader.
    holds: Option<Vec<Rows<HeldLock>>>,
    /// For the epochs that it begins.
    keys: HashKeys,
    tuning: Tuning,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Known {
    member: Member,
    /// Until when it may rely on being a member.
    until: Moment,
    /// When its last message arrived.
    last_message: Moment,
    /// When it became a member, or when this leader was elected if that was later.
    since: Moment,
    /// How long its report may take once all others have reported. `None` if a lease may have been
    /// granted to it.
    report_time: Option<Duration>,
    /// It is being evicted or is leaving, and is granted no more leases.
    is_leaving: bool,
    /// It sent `Leave`.
    has_left: bool,
    /// Its departure has been counted in the back-off.
    is_noted: bool,
    /// The locks it holds, once it has reported them for the epoch that is about to begin.
    report: Report,
}

impl Leader {
    /// Starts a term. This keeper was elected, has confirmed that, and has applied everything that
    /// was agreed before. The secret of the keys must be new.
    pub fn elected(lease: Lease, now: Moment, roster: &Roster, keys: HashKeys) -> Self {
        Self::tuned(Tuning::default(), lease, now, roster, keys)
    }

    /// As [`elected`](Leader::elected), with changes for tests.
    pub fn tuned(
        tuning: Tuning,
        lease: Lease,
        now: Moment,
        roster: &Roster,
        keys: HashKeys,
    ) -> Self {
        let mut leader = Leader {
            lease,
            members: Vec::new(),
            begun: 0,
            candidates: Candidates::default(),
            back_off: BackOff::resume(now, roster.held_off()),
            pace: Pace::new(now),
            suspected: false,
            calm_until: now,
            proposing: false,
            is_news: false,
            begun_at: now,
            others_reported: None,
            asking: Vec::new(),
            confirming: None,
            partitions: Partitions::default(),
            reports: Reports::default(),
            holds: None,
            keys,
            tuning,
        };
        leader.know(now, roster);
        leader
    }

    /// Handles a message from a member, or from a node that wants to be one.
    pub fn receive(
        &mut self,
        now: Moment,
        roster: &Roster,
        from: &Member,
        message: ToKeepers,
        out: &mut LeaderEffects,
    ) {
        self.keep_up(now, roster, out);
        let place = self.members.iter().position(|known| known.member == *from);
        let Some(place) = place else {
            match message {
                ToKeepers::Join => self.ask_to_join(now, from, out),
                ToKeepers::Probed { number } => {
                    self.candidates.answer(now, &self.lease, from, number, out);
                }
                ToKeepers::Leave => {
                    self.candidates.remove(from);
                    out.sends.push((from.clone(), ToMember::NoMember));
                }
                // Only a leader that has confirmed its term may answer that the sender is not a
                // member.
                ToKeepers::Renew { number, .. } => self.ask(from, number),
                ToKeepers::Report { .. }
                | ToKeepers::SendHolds { .. }
                | ToKeepers::Suspect { .. }
                | ToKeepers::Exhausted { .. }
                | ToKeepers::Unreached { .. } => {}
            }
            return self.act(now, roster, out);
        };
        let known = &mut self.members[place];
        known.last_message = now;
        match message {
            // It was admitted and does not know it yet.
            ToKeepers::Join => out.sends.extend(self.catch_up(place, roster, 0)),
            ToKeepers::Probed { .. } => {}
            ToKeepers::Renew { number, .. } if known.is_leaving => self.ask(from, number),
            ToKeepers::Renew { number, installed } => {
                if self.tuning.has(Mutant::GrantUnconfirmed) {
                    known.until = now + self.lease.guarded();
                    out.sends.push((from.clone(), ToMember::Granted { number }));
                }
                out.sends.extend(self.catch_up(place, roster, installed));
                self.suspected |= self.is_stuck(roster, installed);
                self.ask(from, number);
            }
            ToKeepers::Report {
                epoch,
                pieces,
                number,
                held,
            } => {
                if roster.is_changing() && epoch == self.begun {
                    self.take_report(place, pieces, number, held, out);
                }
            }
            ToKeepers::SendHolds { epoch, number } => {
                if roster.installed() == Some(epoch) && epoch == self.begun {
                    let holds = self.holds(epoch, number);
                    out.sends.extend(holds.map(|holds| (from.clone(), holds)));
                }
            }
            ToKeepers::Leave => {
                known.is_leaving = true;
                known.has_left = true;
                known.until = now;
            }
            ToKeepers::Suspect { epoch } | ToKeepers::Exhausted { epoch } => {
                self.end_epoch(roster, epoch);
            }
            ToKeepers::Unreached { incarnations } => {
                let incarnations: BTreeSet<Incarnation> = incarnations.into_iter().collect();
                let members = self.members.iter().map(|known| known.member.incarnation);
                let missed = members.filter(|member| incarnations.contains(member));
                self.partitions
                    .complain(now, &self.lease, from.incarnation, missed);
                if !roster.is_changing() {
                    self.part(now, out);
                }
            }
        }
        self.act(now, roster, out);
    }

    /// The confirmation in progress succeeded, in the term in which this leader was elected.
    pub fn confirmed(&mut self, now: Moment, roster: &Roster, out: &mut LeaderEffects) {
        let Some((began, renewals)) = self.confirming.take() else {
            return;
        };
        self.keep_up(now, roster, out);
        let until = began + self.lease.guarded();
        for (member, number) in renewals {
            let mut members = self.members.iter_mut();
            let found = members.find(|known| known.member == member);
            // A member that was given up in the meantime must not continue.
            let answer = match found.filter(|known| !known.is_leaving) {
                Some(known) => {
                    known.until = known.until.max(until);
                    known.report_time = None;
                    ToMember::Granted { number }
                }
                None => ToMember::NoMember,
            };
            out.sends.push((member, answer));
        }
        self.act(now, roster, out);
    }

    /// The proposed command was applied to the roster.
    pub fn applied(&mut self, now: Moment, roster: &Roster, out: &mut LeaderEffects) {
        self.proposing = false;
        self.keep_up(now, roster, out);
        if std::mem::take(&mut self.is_news) {
            let all = 0..self.members.len();
            out.sends
                .extend(all.filter_map(|place| self.catch_up(place, roster, 0)));
        }
        self.act(now, roster, out);
    }

    /// The outcome of the proposed command is unknown, or it came too late. If it is applied after
    /// all, the roster shows it.
    pub fn refused(&mut self) {
        self.proposing = false;
    }

    /// The confirmation in progress failed, but the term continues: it is tried again.
    pub fn unconfirmed(&mut self) {
        if let Some((_, renewals)) = self.confirming.take() {
            for (member, number) in renewals {
                let mut asking = self.asking.iter();
                if asking.all(|(other, _)| *other != member) {
                    self.asking.push((member, number));
                }
            }
        }
    }

    /// Handles everything that has become due.
    pub fn tick(&mut self, now: Moment, roster: &Roster, out: &mut LeaderEffects) {
        self.keep_up(now, roster, out);
        self.act(now, roster, out);
    }

    /// Whether a command has been proposed and its outcome is unknown.
    pub fn is_proposing(&self) -> bool {
        self.proposing
    }

    /// When [`tick`](Leader::tick) next has something to do.
    pub fn next_deadline(&self, now: Moment) -> Option<Moment> {
        let leases = self.members.iter().map(|known| known.until);
        let joins = self.candidates.deadlines();
        let late = self.members.iter().filter_map(|known| self.late_at(known));
        let paces = [self.report_by(), self.calm_until, self.pace.more_at()];
        let all = leases.chain(joins).chain(late).chain(paces);
        // Moments in the past have been handled, or wait for something else.
        all.filter(|moment| *moment > now).min()
    }

    /// The members, until when each may rely on its membership at most, and whether each is
    /// leaving.
    pub fn leases(&self) -> impl Iterator<Item = (&Member, Moment, bool)> {
        let members = self.members.iter();
        members.map(|known| (&known.member, known.until, known.is_leaving))
    }

    /// The nodes that want to join.
    pub fn candidates(&self) -> impl Iterator<Item = &Member> {
        self.candidates.members()
    }

    /// Number of holds in the reports for the epoch that was begun last.
    pub fn holds_reported(&self) -> usize {
        let pieces = self.holds.iter().flatten();
        pieces.map(Rows::len).sum()
    }

    fn has(&self, member: &Member) -> bool {
        self.members.iter().any(|known| known.member == *member)
    }

    /// Only the latest renewal of each member counts.
    fn ask(&mut self, from: &Member, number: u64) {
        self.asking.retain(|(member, _)| member.name != from.name);
        self.asking.push((from.clone(), number));
    }

    /// Catches up with the roster, which may show a new epoch before `applied` is called.
    fn keep_up(&mut self, now: Moment, roster: &Roster, out: &mut LeaderEffects) {
        let is_new = |change: &Change| change.epoch != self.begun;
        if !roster.begun().is_some_and(is_new) {
            return;
        }
        let before = self.members.iter().map(|known| known.member.clone());
        let before: Vec<_> = before.collect();
        self.know(now, roster);
        // A member that left need not wait any longer, and one that was evicted should know.
        let gone = before.into_iter().filter(|member| !self.has(member));
        out.sends
            .extend(gone.map(|member| (member, ToMember::NoMember)));
    }

    fn report_by(&self) -> Moment {
        self.begun_at + self.lease.length + self.reports.time()
    }

    /// Takes over the members of the epoch that was begun last. A member that is not known yet may
    /// have been granted a lease a moment ago by another leader.
    fn know(&mut self, now: Moment, roster: &Roster) {
        let before = self.members.drain(..);
        let before = before.map(|known| (known.member.incarnation, known));
        let before: BTreeMap<Incarnation, Known> = before.collect();
        let before = |member: &Member| {
            let known = before.get(&member.incarnation);
            known.filter(|known| known.member == *member).cloned()
        };
        let members = roster.begun().map_or(&[][..], |change| &change.members);
        let fresh = |member: &Member| {
            // No leader has granted it a lease yet, so if it is gone, the wait for it is short.
            let report_time = self
                .candidates
                .report_time(&self.lease, member, self.tuning);
            let is_new = report_time.is_some() || self.tuning.has(Mutant::NewLeaderDoesNotWait);
            Known {
                member: member.clone(),
                until: if is_new {
                    now + self.lease.renewed_every()
                } else {
                    // Another leader's lease may have been longer.
                    now + self.lease.guarded().max(roster.longest_lease())
                },
                last_message: now,
                since: now,
                report_time,
                is_leaving: false,
                has_left: false,
                is_noted: false,
                report: Report::Missing,
            }
        };
        let known = members.iter().map(|member| Known {
            report: Report::Missing,
            ..before(member).unwrap_or_else(|| fresh(member))
        });
        self.members = known.collect();
        self.candidates.forget(now, &self.lease, members);
        self.begun = roster.begun().map_or(0, |change| change.epoch);
        self.begun_at = now;
        self.others_reported = None;
        self.reports = Reports::default();
        self.holds = None;
        self.suspected = false;
    }

    /// An installed epoch cannot continue. Another one begins, unless that happened lately.
    fn end_epoch(&mut self, roster: &Roster, epoch: u64) {
        self.suspected |= roster.installed() == Some(epoch) && !roster.is_changing();
    }

    /// Whether a member that has installed this epoch last cannot install the next one, because the
    /// leader that knew what that starts with is gone.
    fn is_stuck(&self, roster: &Roster, installed: u64) -> bool {
        let is_behind = roster.installed().is_some_and(|epoch| installed < epoch);
        let is_known = self.holds.is_some() || self.tuning.has(Mutant::StuckUnnoticed);
        is_behind && !roster.is_changing() && !is_known
    }

    fn ask_to_join(&mut self, now: Moment, from: &Member, out: &mut LeaderEffects) {
        // Incarnations are distinguished by a random number. A request with the number of another
        // member is ignored.
        let mut others = self.members.iter().map(|known| &known.member);
        if others.any(|other| other.incarnation == from.incarnation) {
            return;
        }
        let is_member = |name: &NodeName| {
            let mut staying = self.members.iter().filter(|known| !known.is_leaving);
            staying.any(|known| known.member.name == *name)
        };
        let mut apart_from = self.partitions.bars(now, &from.name, is_member);
        if !apart_from.is_empty() {
            apart_from.truncate(NAMED);
            out.sends
                .push((from.clone(), ToMember::Barred { apart_from }));
            return;
        }
        // Without members there is none to disturb, so the node need not wait.
        let left = self.back_off.left(now, &from.name);
        let left = left.filter(|_| !self.tuning.has(Mutant::NoBackOff));
        if let Some(left) = left.filter(|_| self.members.iter().any(|known| !known.is_leaving)) {
            out.sends.push((from.clone(), ToMember::HeldOff { left }));
            return;
        }
        let since = self
            .candidates
            .ask(now, &self.lease, from, self.tuning, out);
        let mut members = self.members.iter();
        let same_name = members.find(|known| known.member.name == from.name);
        if same_name.is_some_and(|known| known.last_message > since) {
            out.sends.push((from.clone(), ToMember::NameTaken));
        }
    }

    /// The message with what this member does not know yet, or has not answered.
    fn catch_up(
        &self,
        place: usize,
        roster: &Roster,
        installed: u64,
    ) -> Option<(Member, ToMember)> {
        let known = &self.members[place];
        let change = roster.begun()?;
        let message = if roster.is_changing() {
            (!known.report.is_whole()).then(|| ToMember::Begin(change.clone()))?
        } else {
            let pieces = self.holds.as_ref().filter(|_| installed < change.epoch)?;
            ToMember::Install {
                change: change.clone(),
                pieces: pieces.len() as u32,
                first: pieces.first().cloned(),
            }
        };
        Some((known.member.clone(), message))
    }
}
