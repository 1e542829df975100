//! Nodes that want to join, until an epoch begins for them.
//!
//! Members are frozen until a joining node has reported, so a slow one would disturb them. Each
//! node is therefore a candidate first: the leader probes it, and begins an epoch only for a node
//! that answers two probes in a row in time.

use std::time::Duration;

use super::leader::LeaderEffects;
use super::lease::Lease;
use super::message::ToMember;
use super::roster::Member;
use crate::Tuning;
use crate::mutant::Mutant;
use soloist_api::Moment;
use soloist_api::NodeName;

/// Joins within this window share one change of epoch.
const JOIN_WINDOW: Duration = Duration::from_millis(50);

/// Number of consecutive probes that must be answered in time.
const PROBES: u8 = 2;

/// Time limit of a candidate's report, as a multiple of its slowest probe, and the minimum of that
/// limit.
const REPORT_FACTOR: u32 = 8;
const REPORT_MIN: Duration = Duration::from_millis(100);

/// All candidates, at most one per name.
#[derive(Clone, PartialEq, Eq, Hash, Default, Debug)]
pub(super) struct Candidates(Vec<Candidate>);

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Candidate {
    member: Member,
    /// When it first asked to join.
    since: Moment,
    /// When its last message arrived.
    last_message: Moment,
    /// Number of probes sent.
    probes: u64,
    /// When the pending probe was sent, or `None` if none is pending.
    probed: Option<Moment>,
    /// Number of consecutive probes answered in time, and the longest of these round trips.
    passed: u8,
    slowest: Duration,
    /// When it passed the last probe, or `None` if it has not.
    ready: Option<Moment>,
}

impl Candidates {
    /// Handles a request to join. Returns when the node first asked.
    pub(super) fn ask(
        &mut self,
        now: Moment,
        lease: &Lease,
        from: &Member,
        tuning: Tuning,
        out: &mut LeaderEffects,
    ) -> Moment {
        // The incarnation that sends now is the later one.
        self.0
            .retain(|known| known.member.name != from.name || known.member == *from);
        let mut places = self.0.iter();
        let place = places.position(|known| known.member == *from);
        let place = place.unwrap_or_else(|| {
            self.0.push(Candidate {
                member: from.clone(),
                since: now,
                last_message: now,
                probes: 0,
                probed: None,
                passed: 0,
                slowest: Duration::ZERO,
                ready: tuning.has(Mutant::JoinUnprobed).then_some(now),
            });
            self.0.len() - 1
        });
        let candidate = &mut self.0[place];
        candidate.last_message = now;
        let limit = lease.answered_within();
        let is_pending = candidate
            .probed
            .is_some_and(|sent| now.since(sent) <= limit);
        if candidate.ready.is_none() && !is_pending {
            candidate.passed = 0;
            candidate.probe(now, out);
        }
        candidate.since
    }

    /// Handles the answer to a probe.
    pub(super) fn answer(
        &mut self,
        now: Moment,
        lease: &Lease,
        from: &Member,
        number: u64,
        out: &mut LeaderEffects,
    ) {
        let mut all = self.0.iter_mut();
        let candidate = all.find(|known| known.member == *from && known.probes == number);
        let Some(candidate) = candidate else { return };
        let Some(sent) = candidate.probed.take() else {
            return;
        };
        candidate.last_message = now;
        let (took, limit) = (now.since(sent), lease.answered_within());
        if took > limit {
            // Probing starts over with the next request to join.
            candidate.passed = 0;
            out.sends
                .push((from.clone(), ToMember::TooSlow { took, limit }));
            return;
        }
        candidate.slowest = match candidate.passed {
            0 => took,
            _ => took.max(candidate.slowest),
        };
        candidate.passed += 1;
        if candidate.passed < PROBES {
            candidate.probe(now, out);
        } else {
            candidate.ready = Some(now);
        }
    }

    /// Removes a node that no longer wants to join.
    pub(super) fn remove(&mut self, member: &Member) {
        self.0.retain(|known| known.member != *member);
    }

    /// Drops candidates that became members, and those that have been silent for too long.
    pub(super) fn forget(&mut self, now: Moment, lease: &Lease, members: &[Member]) {
        self.0.retain(|known| {
            now.since(known.last_message) <= lease.statement_valid_for()
                && !members.contains(&known.member)
        });
    }

    /// The candidates that passed and whose name is free.
    pub(super) fn ready(&self, is_free: impl Fn(&NodeName) -> bool) -> Ready<'_> {
        let passed = self.0.iter().filter(|known| known.ready.is_some());
        let passed = passed.filter(|known| is_free(&known.member.name));
        Ready(passed.collect())
    }

    /// How long a member's report may take once all others have reported, or `None` if it was not a
    /// candidate.
    pub(super) fn report_time(
        &self,
        lease: &Lease,
        member: &Member,
        tuning: Tuning,
    ) -> Option<Duration> {
        let mut all = self.0.iter();
        let candidate = all.find(|known| known.member == *member)?;
        let most = lease.renewed_every();
        let time = (candidate.slowest * REPORT_FACTOR).clamp(REPORT_MIN.min(most), most);
        let is_probed = !tuning.has(Mutant::JoinUnprobed);
        Some(if is_probed { time } else { most })
    }

    /// All candidates.
    pub(super) fn members(&self) -> impl Iterator<Item = &Member> {
        self.0.iter().map(|candidate| &candidate.member)
    }

    /// The ends of the join windows of candidates that are ready.
    pub(super) fn deadlines(&self) -> impl Iterator<Item = Moment> {
        let ready = self.0.iter().filter_map(|known| known.ready);
        ready.map(|since| since + JOIN_WINDOW)
    }
}

impl Candidate {
    fn probe(&mut self, now: Moment, out: &mut LeaderEffects) {
        self.probes += 1;
        self.probed = Some(now);
        let number = self.probes;
        out.sends
            .push((self.member.clone(), ToMember::Probe { number }));
    }
}

/// Candidates for which an epoch may begin.
pub(super) struct Ready<'a>(Vec<&'a Candidate>);

impl<'a> Ready<'a> {
    /// Returns whether the join window of one of them has ended.
    pub(super) fn is_due(&self, now: Moment) -> bool {
        let mut since = self.0.iter().filter_map(|known| known.ready);
        since.any(|since| since + JOIN_WINDOW <= now)
    }

    pub(super) fn members(&self) -> impl Iterator<Item = &'a Member> {
        self.0.iter().map(|known| &known.member)
    }
}
