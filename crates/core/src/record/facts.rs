//! What a node knows of its cluster at a moment.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use soloist_api::dashboard::{
    KeeperInfo, KeeperState, Level, LinkDown, MemberInfo, OutsideInfo, Overview, Problem,
};

use super::problems::SeenProblems;
use super::words::{count, count_first, span};
use crate::epochs::lease::Lease;

/// What a node knows of its cluster at a moment. Times are in milliseconds since 1970.
#[derive(Clone, PartialEq, Debug)]
pub struct Facts {
    /// The node.
    pub me: String,
    /// Its version.
    pub version: String,
    /// The moment.
    pub now_ms: u64,
    /// Whether the node is a member.
    pub membership: OwnMembership,
    /// The current epoch, or the last one that is known.
    pub epoch: u64,
    /// For how long the epoch has been changing, in milliseconds, if it is. No lock is granted
    /// meanwhile.
    pub changing_for_ms: Option<u64>,
    /// Length of a lease, in milliseconds.
    pub lease_ms: u64,
    /// Tolerated drift of clocks, in percent.
    pub drift_percent: u32,
    /// The keepers' leader, if it answers.
    pub leader: Option<String>,
    /// The keepers, sorted by name.
    pub keepers: Vec<KeeperFact>,
    /// The members, sorted by name.
    pub members: Vec<MemberFact>,
    /// Nodes that are not members, but were lately or should be, sorted by name.
    pub outside: Vec<OutsideInfo>,
    /// Nodes whose clocks run at another rate than the leader's, with the difference in percent.
    pub clocks: Vec<(String, i64)>,
    /// Clients that have waited for long, the longest wait first.
    pub waits: Vec<WaitFact>,
    /// 99th percentile of all waits in the last 15 minutes, in milliseconds.
    pub wait_p99_ms: Option<f64>,
}

/// Whether the node that looks is a member.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OwnMembership {
    /// It is a member, and its lease lasts for this many milliseconds.
    Member {
        /// What is left of its lease.
        lease_left_ms: u64,
    },
    /// It is not a member.
    Outside {
        /// Since when.
        since_ms: u64,
        /// Why.
        why: String,
    },
}

/// A keeper.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeeperFact {
    /// The node's name.
    pub name: String,
    /// Its state.
    pub state: KeeperState,
    /// Since when, if that is known.
    pub since_ms: Option<u64>,
    /// Why it is down, if it is.
    pub reason: Option<String>,
}

/// A member.
#[derive(Clone, PartialEq, Debug)]
pub struct MemberFact {
    /// The node's name.
    pub name: String,
    /// Whether it is a keeper.
    pub is_keeper: bool,
    /// What is left of its lease, if the leader told.
    pub lease_left_ms: Option<u64>,
    /// Its own report, and how long that took in milliseconds. `None` if it did not answer.
    pub report: Option<(Report, f64)>,
}

/// A member's report about itself.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Report {
    /// Version of Soloist.
    pub version: String,
    /// Number of locks that the node has state for.
    pub locks: u64,
    /// Number of holds.
    pub holds: u64,
    /// Number of waiters.
    pub waiters: u64,
    /// Number of open links to peers.
    pub links_up: u64,
    /// When its certificate expires, if it has one.
    pub certificate_ends_ms: Option<u64>,
    /// Why its keeper has stopped, if it has one that has.
    pub keeper_stopped: Option<String>,
    /// The peers that it cannot send to, and for how long, in milliseconds.
    pub links_down: Vec<(String, u64)>,
    /// The locks that clients have waited for longest there, of waits of at least
    /// [`WAIT_UNUSUAL_MS`](super::WAIT_UNUSUAL_MS): lock, owner of the longest wait, and how long
    /// it has waited in milliseconds.
    pub long_waits: Vec<(String, String, u64)>,
    /// Whether clients there may have waited as long for further locks.
    pub has_more_waits: bool,
}

/// A client that has waited for long.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WaitFact {
    /// The lock.
    pub lock: String,
    /// The waiter.
    pub owner: String,
    /// Its node.
    pub node: String,
    /// For how long it has waited, in milliseconds.
    pub waited_ms: u64,
    /// The lock's holder, if one was found.
    pub holder: Option<HolderFact>,
}

/// The holder of a lock that a client waits for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HolderFact {
    /// The name that the client gave.
    pub owner: String,
    /// Its node.
    pub node: String,
    /// For how long it has held the lock, in milliseconds.
    pub held_ms: u64,
}

impl Facts {
    /// Judges the cluster: what is wrong, what is well, and a verdict. Problems that were seen
    /// before and cannot be examined now count as well; this look is added to `seen`.
    pub fn judge(&self, seen: &mut SeenProblems) -> Overview {
        let mut problems = seen.update(self, self.problems());
        let over = problems.split_off(problems.partition_point(|problem| !problem.is_over));
        let worst = problems.iter().map(|problem| problem.level).max();
        let (lease_left_ms, without_lease_for_ms, level) = match &self.membership {
            OwnMembership::Member { lease_left_ms } => {
                (Some(*lease_left_ms), None, worst.unwrap_or(Level::Ok))
            }
            OwnMembership::Outside { since_ms, .. } => {
                let time = self.now_ms.saturating_sub(*since_ms);
                (None, Some(time), Level::Unknown)
            }
        };
        Overview {
            from: self.me.clone(),
            version: self.version.clone(),
            at_ms: self.now_ms,
            epoch: self.epoch,
            lease_ms: self.lease_ms,
            lease_left_ms,
            without_lease_for_ms,
            leader: self.leader.clone(),
            level,
            verdict: self.verdict(level, &problems),
            detail: self.detail(),
            well: self.well(&problems),
            problems: [problems, over].concat(),
            keepers: self.keepers.iter().map(KeeperFact::info).collect(),
            members: self.members.iter().map(MemberFact::info).collect(),
            outside: self.outside.clone(),
            links_down: self.links_down(),
            silent: self.silent().map(str::to_owned).collect(),
        }
    }

    /// Interval between a member's renewals.
    pub(super) fn renewed_every_ms(&self) -> u64 {
        let lease = Lease {
            length: Duration::from_millis(self.lease_ms),
            ..Lease::default()
        };
        lease.renewed_every().as_millis() as u64
    }

    fn verdict(&self, level: Level, problems: &[Problem]) -> String {
        let need = match problems.len() {
            1 => "One thing needs you.".to_owned(),
            many => format!("{} need you.", count_first(many, "thing")),
        };
        match level {
            Level::Ok => "All is well.".to_owned(),
            Level::Warning => format!("Working. {need}"),
            Level::Critical if self.stands_still() => format!("Locks stand still. {need}"),
            Level::Critical => format!("Working, but at risk. {need}"),
            _ => format!("From {}, the state of the cluster is unknown.", self.me),
        }
    }

    fn detail(&self) -> String {
        if let OwnMembership::Outside { since_ms, .. } = &self.membership {
            return format!(
                "{} has had no lease for {}, and grants nothing. The rest of the cluster may work \
                 or not: ask another node.",
                self.me,
                span(self.now_ms.saturating_sub(*since_ms))
            );
        }
        let locks = match (self.changing_for_ms, &self.leader) {
            (Some(ms), _) => format!(
                "No lock is granted until epoch {} has begun, for {} so far.",
                self.epoch,
                span(ms)
            ),
            (None, Some(_)) => "Locks are granted.".to_owned(),
            (None, None) => "Locks are granted until the leases expire.".to_owned(),
        };
        format!(
            "{locks} {} in epoch {}, {} outside; {}.",
            count(self.members.len(), "member"),
            self.epoch,
            self.outside.len(),
            self.keepers_in_words(),
        )
    }

    fn keepers_in_words(&self) -> String {
        let all = count(self.keepers.len(), "keeper");
        if self.leader.is_none() {
            return format!("no leader of {all} answers");
        }
        let in_state = |states: &[KeeperState]| {
            let keepers = self.keepers.iter();
            keepers
                .filter(|keeper| states.contains(&keeper.state))
                .count()
        };
        let work = in_state(&[KeeperState::Leads, KeeperState::Follows]);
        match in_state(&[KeeperState::Unknown]) {
            0 => format!("{work} of {all} work"),
            silent => format!("{work} of {all} work, and {silent} cannot be asked"),
        }
    }

    /// The members that did not answer.
    pub(super) fn silent(&self) -> impl Iterator<Item = &str> {
        let silent = self.members.iter().filter(|member| member.report.is_none());
        silent.map(|member| member.name.as_str())
    }

    /// The members that answered, with their reports.
    pub(super) fn reports(&self) -> impl Iterator<Item = (&str, &Report)> {
        let members = self.members.iter();
        members.filter_map(|member| Some((member.name.as_str(), &member.report.as_ref()?.0)))
    }

    /// The links between members that are down.
    pub(super) fn links_down(&self) -> Vec<LinkDown> {
        let is_member = |name: &str| self.members.iter().any(|member| member.name == name);
        let down = self.reports().flat_map(|(from, report)| {
            let down = report.links_down.iter();
            down.map(move |(to, for_ms)| (from, to, for_ms))
        });
        let down = down.filter(|(_, to, _)| is_member(to));
        let down = down.map(|(from, to, for_ms)| LinkDown {
            from: from.to_owned(),
            to: to.clone(),
            since_ms: self.now_ms.saturating_sub(*for_ms),
        });
        down.collect()
    }
}

impl KeeperFact {
    fn info(&self) -> KeeperInfo {
        KeeperInfo {
            name: self.name.clone(),
            state: self.state,
            since_ms: self.since_ms,
        }
    }
}

impl MemberFact {
    fn info(&self) -> MemberInfo {
        let report = self.report.as_ref().map(|(report, _)| report);
        MemberInfo {
            name: self.name.clone(),
            is_keeper: self.is_keeper,
            lease_left_ms: self.lease_left_ms,
            holds: report.map(|report| report.holds),
            waiters: report.map(|report| report.waiters),
            answered_in_ms: self.report.as_ref().map(|(_, took_ms)| *took_ms),
            version: report.map(|report| report.version.clone()),
        }
    }
}
