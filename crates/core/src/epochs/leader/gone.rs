//! Members that the leader gives up: those that do not report in time, and those that others cannot
//! reach.

use std::collections::BTreeSet;
use std::time::Duration;

use super::super::partitions::Staying;
use super::{Known, Leader, LeaderEffects, NAMED};
use crate::mutant::Mutant;
use crate::notice::Notice;
use crate::record::names;
use soloist_api::{Moment, NodeName};

/// A node that is a member for less than this counts as flapping. If that happens repeatedly, it
/// must wait before it may join.
const SETTLED_AFTER: Duration = Duration::from_secs(30);

impl Leader {
    /// When a new member is given up because all others wait for its report.
    pub(super) fn late_at(&self, known: &Known) -> Option<Moment> {
        let time = known.report_time.filter(|_| !known.report.is_whole())?;
        Some(self.others_reported? + time)
    }

    /// Marks members that have not reported in time, so that the next change leaves them out.
    pub(super) fn give_up_late(&mut self, now: Moment) {
        let members = self.members.iter();
        let mut before = members.filter(|known| known.report_time.is_none());
        let are_there = before.clone().next().is_some();
        if are_there && before.all(|known| known.report.is_whole()) {
            self.others_reported = self.others_reported.or(Some(now));
        }
        for place in 0..self.members.len() {
            let late_at = self.late_at(&self.members[place]);
            let is_over = now >= self.report_by();
            let known = &mut self.members[place];
            if late_at.is_some_and(|at| at <= now) {
                // It was never granted a lease.
                known.until = now;
                known.is_leaving = true;
            } else if is_over && !known.report.is_whole() {
                // It stays until its lease expires.
                known.is_leaving = true;
            }
        }
    }

    /// Logs which members the change that is about to begin evicts, and why.
    pub(super) fn notice_evictions(
        &self,
        now: Moment,
        is_changing: bool,
        notices: &mut Vec<Notice>,
    ) {
        for known in self.members.iter().filter(|known| known.until <= now) {
            let name = &known.member.name;
            let apart_from = self.partitions.bars(now, name, |_| true);
            let reason = match known {
                Known { has_left: true, .. } => {
                    notices.push(Notice::Left(name.clone()));
                    continue;
                }
                _ if !apart_from.is_empty() => apart(apart_from),
                known if is_changing && !known.report.is_whole() => {
                    "it did not report in time".to_owned()
                }
                _ => "its lease expired".to_owned(),
            };
            let member = name.clone();
            notices.push(Notice::Evicted { member, reason });
        }
    }

    /// Records in the back-off which departed members disturbed the others, unless most members
    /// departed.
    pub(super) fn note_gone(&mut self, now: Moment, is_changing: bool, notices: &mut Vec<Notice>) {
        let gone = |known: &&Known| known.until <= now;
        let all = self.members.len();
        if 2 * self.members.iter().filter(gone).count() > all {
            return;
        }
        let reported = self.members.iter().filter(|known| known.report.is_whole());
        let have_most_reported = is_changing && 2 * reported.count() >= all;
        let gone = self.members.iter_mut().filter(|known| known.until <= now);
        for known in gone.filter(|known| !known.is_noted) {
            known.is_noted = true;
            let name = &known.member.name;
            if have_most_reported && !known.report.is_whole() && !known.has_left {
                self.back_off.failed(now, name);
                notices.push(Notice::LateReport(name.clone()));
            } else if now.since(known.since) < SETTLED_AFTER {
                self.back_off.flapped(now, name);
            }
        }
    }

    /// Evicts members so that all remaining ones reach each other.
    pub(super) fn part(&mut self, now: Moment, out: &mut LeaderEffects) {
        let staying = self.members.iter().filter(|known| !known.is_leaving);
        let staying = staying.map(|known| Staying {
            incarnation: known.member.incarnation,
            name: &known.member.name,
            last_message: known.last_message,
        });
        let staying: Vec<_> = staying.collect();
        let notices = &mut out.notices;
        for (incarnation, others) in self.partitions.decide(now, &self.lease, &staying, notices) {
            let members = self.members.iter().map(|known| &known.member);
            let apart_from = members.filter(|member| others.contains(&member.incarnation));
            let apart_from: Vec<_> = apart_from.map(|member| member.name.clone()).collect();
            let mut members = self.members.iter_mut();
            let known = members.find(|known| known.member.incarnation == incarnation);
            let known = known.expect("it is a member");
            let name = &known.member.name;
            let named = &apart_from[..apart_from.len().min(NAMED)];
            notices.push(Notice::Partitioned {
                member: name.clone(),
                from: named.to_vec(),
            });
            // It stays until its lease expires.
            known.is_leaving = true;
            if self.tuning.has(Mutant::EvictAtOnce) {
                known.until = now;
            }
            self.partitions.bar(now, &self.lease, name, apart_from);
        }
    }
}

/// The reason to evict a member that cannot reach these others.
fn apart(others: Vec<NodeName>) -> String {
    let others: BTreeSet<&str> = others.iter().map(NodeName::as_str).collect();
    let mut named: Vec<&str> = others.iter().copied().take(NAMED).collect();
    let more = match others.len() - named.len() {
        0 => None,
        more => Some(format!("{more} more")),
    };
    named.extend(more.as_deref());
    format!("it and {} cannot reach each other", names(&named))
}
