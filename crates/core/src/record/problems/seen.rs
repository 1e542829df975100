//! Problems that were seen before: which are over, and which could not be examined.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use soloist_api::dashboard::{KeeperState, OutsideInfo, OutsideState, Problem, ProblemCode};

use super::OUTSIDE_SHOWN_MS;
use crate::record::facts::{Facts, Report};

/// How long a problem is shown after its end, in milliseconds.
const OVER_SHOWN_MS: u64 = 60_000;

/// Everything is forgotten if nobody has looked for this time, in milliseconds.
const FORGOTTEN_AFTER_MS: u64 = 15 * 60_000;

/// What makes a problem the same as before: its kind, its node, the node that it was seen from, and
/// its lock.
type Key = (ProblemCode, Option<String>, Option<String>, Option<String>);

/// The problems that earlier looks have seen.
///
/// Memory: at most one of each kind for each node and each pair of nodes, and a few waits for each
/// node and for each look of the last minute.
#[derive(Clone, Debug, Default)]
pub struct SeenProblems {
    seen: BTreeMap<Key, Seen>,
    /// When somebody looked last.
    looked_ms: u64,
}

#[derive(Clone, Debug)]
struct Seen {
    problem: Problem,
    /// When it was found to be over.
    ended_ms: Option<u64>,
}

/// What became of a problem that a look does not find again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Outcome {
    /// It was examined, and is no more.
    Over,
    /// It could not be examined.
    Unexamined,
    /// Another problem that is found says more, or it has no meaning any more.
    Replaced,
}

/// Where a node is.
enum Whereabouts<'f> {
    /// A member that answered.
    Heard(&'f Report),
    /// A member that did not answer.
    Silent,
    /// It is not a member, and may come back.
    Outside,
    /// It left, or is not known.
    Gone,
}

impl SeenProblems {
    /// Adds the problems of a look. Returns them with those that were seen before and could not be
    /// examined, the most important first, and then those that are over since a short time.
    pub(in crate::record) fn update(
        &mut self,
        facts: &Facts,
        mut problems: Vec<Problem>,
    ) -> Vec<Problem> {
        let now_ms = facts.now_ms;
        if now_ms > self.looked_ms.saturating_add(FORGOTTEN_AFTER_MS) {
            self.seen.clear();
        }
        self.looked_ms = now_ms;
        let mut found = BTreeSet::new();
        for problem in &mut problems {
            let key = key(problem);
            if let Some(seen) = self.seen.get(&key)
                && seen.ended_ms.is_none()
            {
                problem.since_ms = problem.since_ms.min(seen.problem.since_ms);
            }
            let seen = Seen {
                problem: problem.clone(),
                ended_ms: None,
            };
            self.seen.insert(key.clone(), seen);
            found.insert(key);
        }
        self.seen
            .retain(|key, seen| found.contains(key) || seen.is_kept(facts));
        let earlier = self.seen.iter().filter(|(key, _)| !found.contains(key));
        problems.extend(earlier.map(|(_, seen)| seen.problem.clone()));
        problems.sort_by_key(|problem| (problem.is_over, Reverse(problem.level), problem.code));
        problems
    }
}

/// A wait is the same problem whichever client has waited longest.
fn key(problem: &Problem) -> Key {
    let node = match problem.code {
        ProblemCode::LongWait => None,
        _ => problem.node.clone(),
    };
    (
        problem.code,
        node,
        problem.from.clone(),
        problem.lock.clone(),
    )
}

impl Seen {
    /// Decides what became of a problem that was not found again. Returns whether to show it.
    fn is_kept(&mut self, facts: &Facts) -> bool {
        if let Some(ended_ms) = self.ended_ms {
            return facts.now_ms < ended_ms.saturating_add(OVER_SHOWN_MS);
        }
        match facts.outcome(&self.problem) {
            Outcome::Over => {
                self.problem.is_over = true;
                self.ended_ms = Some(facts.now_ms);
                true
            }
            Outcome::Unexamined => true,
            Outcome::Replaced => false,
        }
    }
}

impl Facts {
    fn whereabouts(&self, name: &str) -> Whereabouts<'_> {
        if let Some(member) = self.members.iter().find(|member| member.name == name) {
            return match &member.report {
                Some((report, _)) => Whereabouts::Heard(report),
                None => Whereabouts::Silent,
            };
        }
        let may_return = |state| state != OutsideState::Left;
        let mut outside = self.outside.iter();
        match outside.any(|node| node.name == name && may_return(node.state)) {
            true => Whereabouts::Outside,
            false => Whereabouts::Gone,
        }
    }

    /// What became of a problem that was seen before and is not found now.
    fn outcome(&self, problem: &Problem) -> Outcome {
        let node = problem.node.as_deref().unwrap_or_default();
        match problem.code {
            // A node always knows its own lease and whether it reaches the keepers.
            ProblemCode::MajorityLost | ProblemCode::NoLease => Outcome::Over,
            // That it has no lease says more.
            ProblemCode::NoLeader if self.is_outside() => Outcome::Replaced,
            _ if self.is_outside() => Outcome::Unexamined,
            ProblemCode::NoLeader | ProblemCode::Changing => Outcome::Over,
            ProblemCode::NodeOutside => self.outcome_of_outside(problem, node),
            ProblemCode::KeeperDown => self.outcome_of_keeper(node),
            ProblemCode::LinkDown => self.outcome_of_link(problem.from.as_deref(), node),
            ProblemCode::LongWait => {
                let lock = problem.lock.as_deref().unwrap_or_default();
                self.outcome_of_wait(lock, node)
            }
            ProblemCode::VersionsDiffer => examined(self.silent().next().is_none()),
            code => self.outcome_of_node(code, node),
        }
    }

    /// Problems of one node that the leader or the node itself tells.
    fn outcome_of_node(&self, code: ProblemCode, node: &str) -> Outcome {
        let lease_is_told = || {
            let mut members = self.members.iter();
            members.any(|member| member.name == node && member.lease_left_ms.is_some())
        };
        match (code, self.whereabouts(node)) {
            (_, Whereabouts::Gone) => Outcome::Replaced,
            // That it is not a member says more.
            (ProblemCode::LeaseNearEnd | ProblemCode::NodeSilent, Whereabouts::Outside) => {
                Outcome::Replaced
            }
            (_, Whereabouts::Outside) => Outcome::Unexamined,
            (ProblemCode::LeaseNearEnd, _) => examined(lease_is_told()),
            (ProblemCode::ClocksApart, _) => examined(self.leader.is_some()),
            (_, Whereabouts::Heard(_)) => Outcome::Over,
            (_, Whereabouts::Silent) => Outcome::Unexamined,
        }
    }

    fn outcome_of_keeper(&self, name: &str) -> Outcome {
        let keeper = self.keepers.iter().find(|keeper| keeper.name == name);
        examined(keeper.is_none_or(|keeper| keeper.state != KeeperState::Unknown))
    }

    fn outcome_of_link(&self, from: Option<&str>, to: &str) -> Outcome {
        let from = self.whereabouts(from.unwrap_or_default());
        match (from, self.whereabouts(to)) {
            (Whereabouts::Heard(_), Whereabouts::Heard(_)) => Outcome::Over,
            (Whereabouts::Silent, Whereabouts::Heard(_) | Whereabouts::Silent) => {
                Outcome::Unexamined
            }
            // That one of the two is silent or not a member says more.
            _ => Outcome::Replaced,
        }
    }

    /// A node that is missing stays a problem until it is a member again, has left, or is no longer
    /// shown.
    fn outcome_of_outside(&self, problem: &Problem, name: &str) -> Outcome {
        let is_member = self.members.iter().any(|member| member.name == name);
        let mut outside = self.outside.iter();
        let has_left = |node: &OutsideInfo| node.name == name && node.state == OutsideState::Left;
        if is_member || outside.any(has_left) {
            return Outcome::Over;
        }
        let is_old = self.now_ms > problem.since_ms.saturating_add(OUTSIDE_SHOWN_MS);
        match is_old || self.is_keeper_down(name) {
            true => Outcome::Replaced,
            // The notes of its eviction are gone, or it waits to be admitted.
            false => Outcome::Unexamined,
        }
    }

    /// A wait that was a problem is one of the node's long waits as long as it lasts.
    fn outcome_of_wait(&self, lock: &str, node: &str) -> Outcome {
        let mut waits = self.reports().flat_map(|(_, report)| &report.long_waits);
        if waits.any(|(waited_for, ..)| waited_for == lock) {
            // It may go on, even if it is not shown or not unusual any more.
            return Outcome::Replaced;
        }
        match self.whereabouts(node) {
            Whereabouts::Heard(report) if report.has_more_waits => Outcome::Replaced,
            Whereabouts::Heard(_) => Outcome::Over,
            Whereabouts::Silent | Whereabouts::Outside => Outcome::Unexamined,
            Whereabouts::Gone => Outcome::Replaced,
        }
    }
}

/// What became of a problem that was examined, or was not.
fn examined(is_examined: bool) -> Outcome {
    match is_examined {
        true => Outcome::Over,
        false => Outcome::Unexamined,
    }
}
