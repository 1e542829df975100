//! What the keepers' leader does: grants leases, admits and removes members, and leads from epoch to epoch.
//!
//! It decides; the keepers make it so. A new leader knows the roster and nothing else: leases that others have
//! granted may run for a full lease more, and what was reported is reported again.

mod gone;
mod reports;

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use self::reports::{Report, Reports};
use super::backoff::BackOff;
use super::candidates::Candidates;
use super::lease::Lease;
use super::message::{ToKeepers, ToMember};
use super::pace::Pace;
use super::partitions::Partitions;
use super::roster::{Change, Command, Member, Roster};
use crate::mutant::Mutant;
use crate::notice::Notice;
use soloist_api::Moment;
use soloist_api::NodeName;

/// How many members are named to somebody who does not reach them.
const NAMED: usize = 8;

/// What comes of an event at the leader.
#[derive(Debug, Default)]
pub struct LeaderEffects {
    /// Words to members.
    pub sends: Vec<(Member, ToMember)>,
    /// Make this so, and tell with [`Leader::applied`] or [`Leader::refused`].
    pub propose: Option<Command>,
    /// Confirm with a majority that this still is the leader, and tell with [`Leader::confirmed`].
    pub confirm: bool,
    /// Write these to the log.
    pub notices: Vec<Notice>,
}

/// The keepers' leader, from its election until it is deposed.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Leader {
    lease: Lease,
    /// The members of the epoch that was begun last, in its order.
    members: Vec<Known>,
    /// The epoch that was begun last.
    begun: u64,
    candidates: Candidates,
    back_off: BackOff,
    pace: Pace,
    /// The epoch that is installed cannot go on: a message was lost in it, for example.
    suspected: bool,
    /// Before this, nobody's suspicion changes the epoch again.
    calm_until: Moment,
    /// A command is under way.
    proposing: bool,
    /// What members are told changes with that command.
    is_news: bool,
    /// When the last epoch was begun, as far as this leader knows.
    begun_at: Moment,
    /// When all members had reported that were in an epoch before, if there are any.
    others_reported: Option<Moment>,
    /// Renewals that wait for the next confirmation.
    asking: Vec<(Member, u64)>,
    /// Renewals that the confirmation under way is for, and when it began.
    confirming: Option<(Moment, Vec<(Member, u64)>)>,
    partitions: Partitions,
    reports: Reports,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Known {
    member: Member,
    /// Until when it may rely on being a member.
    until: Moment,
    /// When it was heard last.
    heard: Moment,
    /// Since when it is a member, as far as this leader knows.
    since: Moment,
    /// How long its report may take, when all others have reported. `None` once a lease was granted to it, perhaps.
    report_time: Option<Duration>,
    /// It is out, or will be: no lease is granted any more.
    is_leaving: bool,
    /// It said so itself.
    has_left: bool,
    /// It was noted in the back-off that it is out.
    is_noted: bool,
    /// What it holds, once it has said so for the epoch that is to begin.
    report: Report,
}

impl Leader {
    /// This keeper was elected, has confirmed it, and knows all that was agreed before.
    pub fn elected(lease: Lease, now: Moment, roster: &Roster) -> Self {
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
        };
        leader.know(now, roster);
        leader
    }

    /// A member, or a node that wants to be one, says something.
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
                // Whether it is none, only a leader that still leads can tell.
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
        known.heard = now;
        match message {
            // It was admitted and does not know yet.
            ToKeepers::Join => out.sends.extend(known.catch_up(roster, 0)),
            ToKeepers::Probed { .. } => {}
            ToKeepers::Renew { number, .. } if known.is_leaving => self.ask(from, number),
            ToKeepers::Renew { number, installed } => {
                out.sends.extend(known.catch_up(roster, installed));
                if Mutant::GrantUnconfirmed.planted() {
                    known.until = now + self.lease.guarded();
                    out.sends.push((from.clone(), ToMember::Granted { number }));
                }
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
                let holds = roster.holds(epoch, number);
                let holds = holds.filter(|_| !roster.is_changing());
                out.sends.extend(holds.map(|holds| (from.clone(), holds)));
            }
            ToKeepers::Leave => {
                known.is_leaving = true;
                known.has_left = true;
                known.until = now;
            }
            ToKeepers::Suspect { epoch } | ToKeepers::Exhausted { epoch } => {
                self.end_epoch(roster, epoch);
            }
            ToKeepers::Unreached { lives } => {
                let lives: HashSet<u64> = lives.into_iter().collect();
                let members = self.members.iter().map(|known| known.member.incarnation);
                let missed = members.filter(|life| lives.contains(life));
                self.partitions
                    .complain(now, &self.lease, from.incarnation, missed);
                if !roster.is_changing() {
                    self.part(now, out);
                }
            }
        }
        self.act(now, roster, out);
    }

    /// The confirmation under way succeeded, in the term in which this leader was elected.
    pub fn confirmed(&mut self, now: Moment, roster: &Roster, out: &mut LeaderEffects) {
        let Some((began, renewals)) = self.confirming.take() else {
            return;
        };
        self.keep_up(now, roster, out);
        let until = began + self.lease.guarded();
        for (member, number) in renewals {
            let mut members = self.members.iter_mut();
            let found = members.find(|known| known.member == member);
            // Who was given up meanwhile must not go on.
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

    /// The roster has changed.
    pub fn applied(&mut self, now: Moment, roster: &Roster, out: &mut LeaderEffects) {
        self.proposing = false;
        self.reports.staged();
        self.keep_up(now, roster, out);
        if std::mem::take(&mut self.is_news) {
            let told = self.members.iter();
            out.sends
                .extend(told.filter_map(|known| known.catch_up(roster, 0)));
        }
        self.act(now, roster, out);
    }

    /// Nobody knows what becomes of the command that was proposed, or it came too late. If it is carried out after all,
    /// the roster shows it.
    pub fn refused(&mut self) {
        self.proposing = false;
        self.reports.stage_again();
    }

    /// The confirmation under way failed, though the term goes on: it is tried again.
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

    /// Time has passed.
    pub fn tick(&mut self, now: Moment, roster: &Roster, out: &mut LeaderEffects) {
        self.keep_up(now, roster, out);
        self.act(now, roster, out);
    }

    /// Whether a command was proposed of which it is not known yet what became of it.
    pub fn is_proposing(&self) -> bool {
        self.proposing
    }

    /// When [`tick`](Leader::tick) has something to do next.
    pub fn next_deadline(&self, now: Moment) -> Option<Moment> {
        let leases = self.members.iter().map(|known| known.until);
        let joins = self.candidates.deadlines();
        let late = self.members.iter().filter_map(|known| self.late_at(known));
        let paces = [self.report_by(), self.calm_until, self.pace.more_at()];
        let all = leases.chain(joins).chain(late).chain(paces);
        // What is past has been done, or waits for something else.
        all.filter(|moment| *moment > now).min()
    }

    /// The members and until when they may rely on it, at most; and whether they are on their way out.
    pub fn leases(&self) -> impl Iterator<Item = (&Member, Moment, bool)> {
        let members = self.members.iter();
        members.map(|known| (&known.member, known.until, known.is_leaving))
    }

    fn has(&self, member: &Member) -> bool {
        self.members.iter().any(|known| known.member == *member)
    }

    /// The latest renewal of each counts.
    fn ask(&mut self, from: &Member, number: u64) {
        self.asking.retain(|(member, _)| member.name != from.name);
        self.asking.push((from.clone(), number));
    }

    /// The roster may show that an epoch was begun before this leader is told.
    fn keep_up(&mut self, now: Moment, roster: &Roster, out: &mut LeaderEffects) {
        let is_new = |change: &Change| change.epoch != self.begun;
        if !roster.begun().is_some_and(is_new) {
            return;
        }
        let before = self.members.iter().map(|known| known.member.clone());
        let before: Vec<_> = before.collect();
        self.know(now, roster);
        // Who has left need not wait any longer, and who was given up should know.
        let gone = before.into_iter().filter(|member| !self.has(member));
        out.sends
            .extend(gone.map(|member| (member, ToMember::NoMember)));
    }

    fn report_by(&self) -> Moment {
        self.begun_at + self.lease.length + self.reports.time()
    }

    /// Takes over the members of the epoch that was begun last. Whoever is not known yet may have been granted a lease
    /// just now, by another leader.
    fn know(&mut self, now: Moment, roster: &Roster) {
        let before: HashMap<Member, Known> = self
            .members
            .drain(..)
            .map(|known| (known.member.clone(), known))
            .collect();
        let members = roster.begun().map_or(&[][..], |change| &change.members);
        let fresh = |member: &Member| {
            // Nobody has granted it anything yet: if it is gone, nobody need wait long.
            let report_time = self.candidates.report_time(&self.lease, member);
            let is_new = report_time.is_some() || Mutant::NewLeaderDoesNotWait.planted();
            Known {
                member: member.clone(),
                until: match is_new {
                    true => now + self.lease.renewed_every(),
                    // Another leader's lease may have been longer.
                    false => now + self.lease.guarded().max(roster.longest_lease()),
                },
                heard: now,
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
            ..before.get(member).cloned().unwrap_or_else(|| fresh(member))
        });
        self.members = known.collect();
        self.candidates.forget(now, &self.lease, members);
        self.begun = roster.begun().map_or(0, |change| change.epoch);
        self.begun_at = now;
        self.others_reported = None;
        self.reports = Reports::default();
        self.suspected = false;
    }

    /// An installed epoch cannot go on: another one is to begin, unless that happened lately.
    fn end_epoch(&mut self, roster: &Roster, epoch: u64) {
        let installed = roster.installed().map(|(change, _)| change.epoch);
        self.suspected |= installed == Some(epoch) && !roster.is_changing();
    }

    fn ask_to_join(&mut self, now: Moment, from: &Member, out: &mut LeaderEffects) {
        // Lives are told apart by a random number; who comes with another one's number is nobody.
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
        // With nobody to disturb, nobody need wait.
        let left = self.back_off.left(now, &from.name);
        if let Some(left) = left.filter(|_| self.members.iter().any(|known| !known.is_leaving)) {
            out.sends.push((from.clone(), ToMember::HeldOff { left }));
            return;
        }
        let since = self.candidates.ask(now, &self.lease, from, out);
        let mut members = self.members.iter();
        let same_name = members.find(|known| known.member.name == from.name);
        if same_name.is_some_and(|known| known.heard > since) {
            out.sends.push((from.clone(), ToMember::NameTaken));
        }
    }

    /// Does what is to be done now.
    fn act(&mut self, now: Moment, roster: &Roster, out: &mut LeaderEffects) {
        if self.confirming.is_none() && !self.asking.is_empty() {
            self.confirming = Some((now, std::mem::take(&mut self.asking)));
            out.confirm = true;
        }
        self.candidates.forget(now, &self.lease, &[]);
        self.back_off.forget(now);
        if roster.is_changing() {
            self.give_up_late(now);
        }
        if self.proposing {
            return;
        }
        if let Some(command) = self.next_command(now, roster, &mut out.notices) {
            self.proposing = true;
            out.propose = Some(command);
        }
    }

    fn next_command(
        &mut self,
        now: Moment,
        roster: &Roster,
        notices: &mut Vec<Notice>,
    ) -> Option<Command> {
        let is_changing = roster.is_changing();
        let mut is_smaller = false;
        for known in self.members.iter_mut().filter(|known| known.until <= now) {
            // From here on it is granted nothing, whatever becomes of the command.
            known.is_leaving = true;
            is_smaller = true;
        }
        if is_smaller {
            self.note_gone(now, is_changing, notices);
        }
        let stay = self.members.iter().filter(|known| known.until > now);
        let is_free = |name: &NodeName| stay.clone().all(|known| known.member.name != *name);
        let ready = self.candidates.ready(is_free);
        let may_begin = self.pace.allows(now);
        let gathered = ready.is_due(now) && may_begin;
        // Somebody who sees trouble everywhere must not keep all others from their work.
        let is_suspected = self.suspected && now >= self.calm_until && may_begin;
        // Somebody who is gone before its lease has run out would not report, and all would wait for that.
        let mut leaving = self.members.iter().filter(|known| known.is_leaving);
        let is_parting = leaving.any(|known| known.until > now);
        let is_due = match is_changing || is_parting {
            true => is_smaller,
            false => is_smaller || gathered || is_suspected,
        };
        if is_due && roster.next_epoch() <= roster.last_epoch() {
            self.notice_evictions(now, is_changing, notices);
            let stay = stay.clone().map(|known| &known.member);
            let members = stay.chain(ready.members());
            let change = Change {
                epoch: roster.next_epoch(),
                members: members.cloned().collect(),
            };
            if is_suspected {
                self.calm_until = now + self.lease.length;
            }
            if !is_smaller {
                self.pace.count(now);
            }
            self.is_news = true;
            return Some(Command::Begin(change));
        }
        if is_changing {
            let install = self.installation(notices);
            self.is_news |= !matches!(install, None | Some(Command::Stage { .. }));
            return install;
        }
        let held_off = self.back_off.held_off();
        (held_off != roster.held_off()).then_some(Command::HoldOff(held_off))
    }
}

impl Known {
    /// What it does not know yet, or has not answered.
    fn catch_up(&self, roster: &Roster, installed: u64) -> Option<(Member, ToMember)> {
        let message = if roster.is_changing() {
            let is_open = !self.report.is_whole();
            let change = roster.begun().filter(|_| is_open)?;
            ToMember::Begin(change.clone())
        } else {
            let (change, pieces) = roster.installed()?;
            (installed < change.epoch).then(|| ToMember::Install {
                change: change.clone(),
                pieces: pieces.len() as u32,
                first: pieces.first().cloned(),
            })?
        };
        Some((self.member.clone(), message))
    }
}
