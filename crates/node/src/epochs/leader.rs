//! What the keepers' leader does: grants leases, admits and removes members, and leads from epoch to epoch.
//!
//! It decides; the keepers make it so. A new leader knows the roster and nothing else: leases that others have
//! granted may run for a full lease more, and what was reported is reported again.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use super::lease::Lease;
use super::message::{ToKeepers, ToMember};
use super::rifts::{Rifts, Staying};
use super::roster::{Change, Command, HeldLock, Member, Roster};
use crate::Moment;
use crate::config::NodeName;
use crate::locks::LockName;
use crate::mutant::Mutant;

/// Whoever comes waits so long for others who come at about the same time.
const GATHER: Duration = Duration::from_millis(50);

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
}

/// The keepers' leader, from its election until it is deposed.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Leader {
    lease: Lease,
    /// The members of the epoch that was begun last, in its order.
    members: Vec<Known>,
    /// The epoch that was begun last.
    begun: u64,
    joining: Vec<Joining>,
    /// A message was lost in the epoch that is installed.
    suspected: bool,
    /// Before this, nobody's suspicion changes the epoch again.
    calm_until: Moment,
    /// A command is under way.
    proposing: bool,
    /// When the last epoch was begun, as far as this leader knows.
    begun_at: Moment,
    /// Renewals that wait for the next confirmation.
    asking: Vec<(Member, u64)>,
    /// Renewals that the confirmation under way is for, and when it began.
    confirming: Option<(Moment, Vec<(Member, u64)>)>,
    rifts: Rifts,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Known {
    member: Member,
    /// Until when it may rely on being a member.
    until: Moment,
    /// When it was heard last.
    heard: Moment,
    /// It is out, or will be: no lease is granted any more.
    is_leaving: bool,
    /// What it holds, once it has said so for the epoch that is to begin.
    report: Option<Vec<LockName>>,
}

/// Somebody who wants to be a member.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Joining {
    member: Member,
    since: Moment,
    /// When it was heard last.
    heard: Moment,
}

impl Leader {
    /// This keeper was elected, has confirmed it, and knows all that was agreed before.
    pub fn elected(lease: Lease, now: Moment, roster: &Roster) -> Self {
        let mut leader = Leader {
            lease,
            members: Vec::new(),
            begun: 0,
            joining: Vec::new(),
            suspected: false,
            calm_until: now,
            proposing: false,
            begun_at: now,
            asking: Vec::new(),
            confirming: None,
            rifts: Rifts::default(),
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
        let Some(known) = place.map(|place| &mut self.members[place]) else {
            match message {
                ToKeepers::Join => self.ask_to_join(now, from, out),
                ToKeepers::Leave => {
                    self.joining.retain(|joining| joining.member != *from);
                    out.sends.push((from.clone(), ToMember::NoMember));
                }
                // Whether it is none, only a leader that still leads can tell.
                ToKeepers::Renew { number, .. } => self.ask(from, number),
                ToKeepers::Report { .. }
                | ToKeepers::Suspect { .. }
                | ToKeepers::Unreached { .. } => {}
            }
            return self.act(now, roster, out);
        };
        known.heard = now;
        match message {
            // It was admitted and does not know yet.
            ToKeepers::Join => out.sends.extend(known.catch_up(roster, 0)),
            ToKeepers::Renew { number, .. } if known.is_leaving => self.ask(from, number),
            ToKeepers::Renew { number, installed } => {
                out.sends.extend(known.catch_up(roster, installed));
                if Mutant::GrantUnconfirmed.planted() {
                    known.until = now + self.lease.guarded();
                    out.sends.push((from.clone(), ToMember::Granted { number }));
                }
                self.ask(from, number);
            }
            ToKeepers::Report { epoch, mut held } => {
                if roster.is_changing() && epoch == self.begun {
                    held.sort_unstable();
                    held.dedup();
                    known.report = Some(held);
                }
            }
            ToKeepers::Leave => {
                known.is_leaving = true;
                known.until = now;
            }
            ToKeepers::Suspect { epoch } => {
                let installed = roster.installed().map(|(change, _)| change.epoch);
                self.suspected |= installed == Some(epoch) && !roster.is_changing();
            }
            ToKeepers::Unreached { lives } => {
                let lives: HashSet<u64> = lives.into_iter().collect();
                let members = self.members.iter().map(|known| known.member.incarnation);
                let missed = members.filter(|life| lives.contains(life));
                self.rifts
                    .complain(now, &self.lease, from.incarnation, missed);
                if !roster.is_changing() {
                    self.part(now);
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
        self.keep_up(now, roster, out);
        let told = self.members.iter();
        out.sends
            .extend(told.filter_map(|known| known.catch_up(roster, 0)));
        self.act(now, roster, out);
    }

    /// Nobody knows what becomes of the command that was proposed, or it came too late. If it is carried out after all,
    /// the roster shows it.
    pub fn refused(&mut self) {
        self.proposing = false;
    }

    /// What was reported is too much to be written down: everybody is asked anew. Some may hold less by then.
    pub fn ask_anew(&mut self, now: Moment) {
        self.proposing = false;
        self.begun_at = now;
        self.members
            .iter_mut()
            .for_each(|known| known.report = None);
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
        let joins = self.joining.iter().map(|joining| joining.since + GATHER);
        let all = leases
            .chain(joins)
            .chain([self.report_by(), self.calm_until]);
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
        self.begun_at + self.lease.length
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
        let joined = |member: &Member| {
            let mut joining = self.joining.iter();
            joining.any(|joining| joining.member == *member)
        };
        let fresh = |member: &Member| Known {
            member: member.clone(),
            until: match joined(member) || Mutant::NewLeaderDoesNotWait.planted() {
                // Nobody has granted it anything yet: if it is gone, nobody need wait long.
                true => now + self.lease.renewed_every(),
                // That leader's may have been longer.
                false => now + self.lease.guarded().max(roster.longest_lease()),
            },
            heard: now,
            is_leaving: false,
            report: None,
        };
        let known = members.iter().map(|member| Known {
            report: None,
            ..before.get(member).cloned().unwrap_or_else(|| fresh(member))
        });
        self.members = known.collect();
        self.joining
            .retain(|joining| !members.contains(&joining.member));
        self.begun = roster.begun().map_or(0, |change| change.epoch);
        self.begun_at = now;
        self.suspected = false;
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
        let mut apart_from = self.rifts.keeps_out(now, &from.name, is_member);
        if !apart_from.is_empty() {
            apart_from.truncate(NAMED);
            out.sends
                .push((from.clone(), ToMember::KeptOut { apart_from }));
            return;
        }
        let mut joining = self.joining.iter();
        let since = joining.find(|joining| joining.member == *from);
        let since = since.map_or(now, |joining| joining.since);
        let mut members = self.members.iter();
        let same_name = members.find(|known| known.member.name == from.name);
        if same_name.is_some_and(|known| known.heard > since) {
            out.sends.push((from.clone(), ToMember::NameTaken));
        }
        // Of two lives of a node, the one that speaks now is the later one.
        self.joining
            .retain(|joining| joining.member.name != from.name);
        self.joining.push(Joining {
            member: from.clone(),
            since,
            heard: now,
        });
    }

    /// Does what is to be done now.
    fn act(&mut self, now: Moment, roster: &Roster, out: &mut LeaderEffects) {
        if self.confirming.is_none() && !self.asking.is_empty() {
            self.confirming = Some((now, std::mem::take(&mut self.asking)));
            out.confirm = true;
        }
        let patience = self.lease.patience();
        self.joining
            .retain(|joining| now.since(joining.heard) <= patience);
        if roster.is_changing() && now >= self.report_by() {
            // Their leases run out, and the next change is without them.
            let late = self
                .members
                .iter_mut()
                .filter(|known| known.report.is_none());
            late.for_each(|known| known.is_leaving = true);
        }
        if self.proposing {
            return;
        }
        if let Some(command) = self.next_command(now, roster) {
            self.proposing = true;
            out.propose = Some(command);
        }
    }

    /// Members that cannot reach each other cannot all stay.
    fn part(&mut self, now: Moment) {
        let staying = self.members.iter().filter(|known| !known.is_leaving);
        let staying = staying.map(|known| Staying {
            life: known.member.incarnation,
            name: &known.member.name,
            heard: known.heard,
        });
        let staying: Vec<_> = staying.collect();
        for (life, others) in self.rifts.decide(now, &self.lease, &staying) {
            let members = self.members.iter().map(|known| &known.member);
            let apart_from = members.filter(|member| others.contains(&member.incarnation));
            let apart_from: Vec<_> = apart_from.map(|member| member.name.clone()).collect();
            let mut members = self.members.iter_mut();
            let known = members.find(|known| known.member.incarnation == life);
            let known = known.expect("it stays otherwise");
            let name = &known.member.name;
            let named = &apart_from[..apart_from.len().min(NAMED)];
            tracing::warn!(%name, apart_from = ?named, "members do not reach each other: one is done without");
            // Its lease runs out.
            known.is_leaving = true;
            if Mutant::PartAtOnce.planted() {
                known.until = now;
            }
            self.rifts.keep_out(now, &self.lease, name, apart_from);
        }
    }

    fn next_command(&mut self, now: Moment, roster: &Roster) -> Option<Command> {
        let is_changing = roster.is_changing();
        let mut is_smaller = false;
        for known in self.members.iter_mut().filter(|known| known.until <= now) {
            // From here on it is granted nothing, whatever becomes of the command.
            known.is_leaving = true;
            is_smaller = true;
        }
        let stay = self.members.iter().filter(|known| known.until > now);
        let is_free = |name: &NodeName| stay.clone().all(|known| known.member.name != *name);
        let join = self.joining.iter();
        let join = join.filter(|joining| is_free(&joining.member.name));
        let gathered = join.clone().any(|joining| joining.since + GATHER <= now);
        // Somebody who sees trouble everywhere must not keep all others from their work.
        let is_suspected = self.suspected && now >= self.calm_until;
        // Somebody who is gone before its lease has run out would not report, and all would wait for that.
        let mut leaving = self.members.iter().filter(|known| known.is_leaving);
        let is_parting = leaving.any(|known| known.until > now);
        let is_due = match is_changing || is_parting {
            true => is_smaller,
            false => is_smaller || gathered || is_suspected,
        };
        if is_due {
            let stay = stay.clone().map(|known| &known.member);
            let members = stay.chain(join.map(|joining| &joining.member));
            let change = Change {
                epoch: roster.next_epoch(),
                members: members.cloned().collect(),
            };
            if is_suspected {
                self.calm_until = now + self.lease.length;
            }
            return Some(Command::Begin(change));
        }
        match is_changing {
            true => self.installation(),
            false => None,
        }
    }

    /// The epoch that was begun starts from what its members have reported, once all have.
    fn installation(&mut self) -> Option<Command> {
        let all_have_reported = self.members.iter().all(|known| known.report.is_some());
        if !all_have_reported && !Mutant::InstallTooEarly.planted() {
            return None;
        }
        let members = self.members.iter().enumerate();
        let holds = members.flat_map(|(place, known)| {
            let held = known.report.iter().flatten();
            held.map(move |lock| HeldLock {
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
        let epoch = self.begun;
        Some(Command::Install { epoch, holds })
    }
}

impl Known {
    /// What it does not know yet, or has not answered.
    fn catch_up(&self, roster: &Roster, installed: u64) -> Option<(Member, ToMember)> {
        let message = if roster.is_changing() {
            let is_open = self.report.is_none();
            let change = roster.begun().filter(|_| is_open)?;
            ToMember::Begin(change.clone())
        } else {
            let (change, holds) = roster.installed()?;
            (installed < change.epoch).then(|| ToMember::Install {
                change: change.clone(),
                holds: holds.to_vec(),
            })?
        };
        Some((self.member.clone(), message))
    }
}
