//! Problems of the keepers, and of the lease and the epoch of the node that looks.

use soloist_api::dashboard::{Advice, KeeperState, Level, Problem, ProblemCode};

use super::{advice, look_at};
use crate::record::facts::{Facts, KeeperFact, OwnMembership};
use crate::record::words::{count, names, span};

/// A change of epoch takes milliseconds. One that takes this long, and a third of a lease, is a
/// problem.
const CHANGE_UNUSUAL_MS: u64 = 1_000;

/// The keepers, as a member sees them.
struct Keepers<'f> {
    all: usize,
    down: Vec<&'f KeeperFact>,
    /// Those whose nodes are members and did not answer.
    silent: Vec<&'f str>,
}

impl Keepers<'_> {
    /// Number of keepers that are neither down nor silent.
    fn left(&self) -> usize {
        self.all - self.down.len() - self.silent.len()
    }

    fn majority(&self) -> usize {
        self.all / 2 + 1
    }
}

impl Facts {
    fn counted_keepers(&self) -> Keepers<'_> {
        let silent: Vec<&str> = self.silent().collect();
        let keepers = self.keepers.iter();
        let is_silent = |keeper: &&KeeperFact| {
            keeper.state == KeeperState::Unknown && silent.contains(&keeper.name.as_str())
        };
        Keepers {
            all: self.keepers.len(),
            down: keepers
                .clone()
                .filter(|keeper| keeper.state == KeeperState::Down)
                .collect(),
            silent: keepers
                .filter(is_silent)
                .map(|keeper| keeper.name.as_str())
                .collect(),
        }
    }

    pub(super) fn majority_lost(&self, problems: &mut Vec<Problem>) {
        let OwnMembership::Outside { since_ms, .. } = &self.membership else {
            return;
        };
        let unreached = |keeper: &&KeeperFact| keeper.state == KeeperState::Down;
        let unreached: Vec<&KeeperFact> = self.keepers.iter().filter(unreached).collect();
        let all = self.keepers.len();
        if self.leader.is_some() || all == 0 || 2 * (all - unreached.len()) > all {
            return;
        }
        let each = unreached.iter().map(|keeper| match &keeper.reason {
            Some(reason) => format!("{} ({reason})", keeper.name),
            None => keeper.name.clone(),
        });
        let text = format!(
            "{} does not reach {}. Without a majority of the keepers no lease is renewed, and all \
             holds are lost. Either these keepers are down, or {} is cut off from them.",
            self.me,
            each.collect::<Vec<_>>().join(", "),
            self.me
        );
        let title = format!(
            "{} of {} cannot be reached",
            unreached.len(),
            count(all, "keeper")
        );
        let mut commands: Vec<Advice> = unreached
            .iter()
            .map(|keeper| advice(&format!("Look at {}", keeper.name), &look_at(&keeper.name)))
            .collect();
        commands.push(advice(
            "Only if a majority is lost for good",
            "soloist cluster recover --help",
        ));
        problems.push(Problem {
            since_ms: *since_ms,
            commands,
            ..self.problem(ProblemCode::MajorityLost, Level::Critical, title, text)
        });
    }

    pub(super) fn no_lease(&self, problems: &mut Vec<Problem>) {
        let OwnMembership::Outside { since_ms, why } = &self.membership else {
            return;
        };
        let me = &self.me;
        let text = format!(
            "{me} grants nothing, and all its holds are lost: {why}. It rejoins by itself. \
             Only a node with a lease knows whether locks are granted elsewhere."
        );
        let title = format!("{me} has no lease");
        problems.push(Problem {
            since_ms: *since_ms,
            node: Some(me.clone()),
            commands: vec![self.ask_another()],
            ..self.problem(ProblemCode::NoLease, Level::Critical, title, text)
        });
    }

    /// A member that has no leader: its lease lasts, and is not renewed.
    pub(super) fn no_leader(&self, problems: &mut Vec<Problem>) {
        let OwnMembership::Member { lease_left_ms } = self.membership else {
            return;
        };
        if self.leader.is_some() {
            return;
        }
        let me = &self.me;
        let keepers = self.counted_keepers();
        let has_majority = keepers.left() >= keepers.majority();
        let level = match has_majority && lease_left_ms >= self.renewed_every_ms() {
            true => Level::Warning,
            false => Level::Critical,
        };
        let outlook = match has_majority {
            true => "If a majority of the keepers works, it elects a leader within seconds.".into(),
            false => {
                let down = keepers.down.iter().map(|keeper| keeper.name.as_str());
                let missing: Vec<&str> = down.chain(keepers.silent.iter().copied()).collect();
                format!(
                    "A majority is {} of {}, and {} cannot be counted on.",
                    keepers.majority(),
                    count(keepers.all, "keeper"),
                    names(&missing)
                )
            }
        };
        let text = format!(
            "Without a leader no lease is renewed: that of {me} lasts for another {}, and then its \
             holds are lost. Leases and clocks of the members are not known. {outlook}",
            span(lease_left_ms)
        );
        // A keeper that is down has commands of its own.
        let silent = keepers.silent.iter();
        let mut commands: Vec<Advice> = silent
            .map(|name| advice(&format!("Look at {name}"), &look_at(name)))
            .collect();
        commands.push(self.ask_another());
        problems.push(Problem {
            commands,
            ..self.problem(
                ProblemCode::NoLeader,
                level,
                format!("No leader of the keepers answers {me}"),
                text,
            )
        });
    }

    /// Returns whether the epoch has been changing for unusually long.
    pub(in crate::record) fn stands_still(&self) -> bool {
        let limit = CHANGE_UNUSUAL_MS.max(self.renewed_every_ms());
        self.changing_for_ms.is_some_and(|ms| ms >= limit)
    }

    pub(super) fn changing(&self, problems: &mut Vec<Problem>) {
        let Some(for_ms) = self.changing_for_ms.filter(|_| self.stands_still()) else {
            return;
        };
        let epoch = self.epoch;
        let text = format!(
            "No lock is granted until epoch {epoch} has begun, which normally takes milliseconds. \
             The leader waits for the report of a member, or for the lease of one that does not \
             report; or a majority of the keepers does not answer it."
        );
        problems.push(Problem {
            since_ms: self.now_ms.saturating_sub(for_ms),
            commands: vec![
                advice("See the leader and the members", "soloist cluster"),
                self.ask_another(),
            ],
            ..self.problem(
                ProblemCode::Changing,
                Level::Critical,
                format!("Locks stand still: epoch {epoch} does not begin"),
                text,
            )
        });
    }

    pub(super) fn keepers_down(&self, problems: &mut Vec<Problem>) {
        if self.is_outside() {
            return;
        }
        let keepers = self.counted_keepers();
        let (left, majority) = (keepers.left(), keepers.majority());
        let silent = match keepers.silent.len() {
            0 => String::new(),
            1 => format!(
                ", not counting {}, which does not answer",
                keepers.silent[0]
            ),
            _ => format!(
                ", not counting {}, which do not answer",
                names(&keepers.silent)
            ),
        };
        let (level, may_fail) = match left.checked_sub(majority) {
            None => (
                Level::Critical,
                format!(
                    "A majority is {majority}: without one, no lease is renewed and all holds are lost"
                ),
            ),
            Some(0) => (
                Level::Critical,
                "If one more fails, no lease is renewed and all holds are lost".to_owned(),
            ),
            Some(more) => (Level::Warning, format!("{more} more may fail")),
        };
        let mut others = self.reports().map(|(name, _)| name);
        let other = others.find(|name| !self.is_keeper(name));
        let other = other.unwrap_or("OTHER-NODE");
        for keeper in &keepers.down {
            let name = &keeper.name;
            let reason = keeper.reason.as_deref();
            let reason = reason.map(|reason| format!(" Known of {name}: {}.", phrase(reason)));
            let text = format!(
                "{left} of {} are left{silent}. {may_fail}.{}",
                count(keepers.all, "keeper"),
                reason.unwrap_or_default()
            );
            let replace =
                format!("soloist cluster promote {other} && soloist cluster demote {name}");
            problems.push(Problem {
                since_ms: keeper.since_ms.unwrap_or(self.now_ms),
                node: Some(name.clone()),
                commands: vec![
                    advice("See why", &look_at(name)),
                    advice("If it is gone for good", &replace),
                ],
                ..self.problem(
                    ProblemCode::KeeperDown,
                    level,
                    format!("Keeper {name} is down"),
                    text,
                )
            });
        }
    }

    fn is_keeper(&self, name: &str) -> bool {
        self.keepers.iter().any(|keeper| keeper.name == name)
    }

    pub(super) fn is_keeper_down(&self, name: &str) -> bool {
        let mut keepers = self.keepers.iter();
        keepers.any(|keeper| keeper.name == name && keeper.state == KeeperState::Down)
    }

    /// A command on another node that most likely runs: a member that answered, or else a keeper
    /// that is not down.
    fn ask_another(&self) -> Advice {
        let answered = self.reports().map(|(name, _)| name);
        let running = |keeper: &&KeeperFact| keeper.state != KeeperState::Down;
        let keepers = self.keepers.iter();
        let running = keepers.clone().filter(running);
        let mut others = answered.chain(running.chain(keepers).map(|keeper| keeper.name.as_str()));
        let command = match others.find(|name| *name != self.me) {
            Some(other) => format!("ssh {other} soloist doctor"),
            None => "soloist doctor --api https://OTHER-NODE:PORT".to_owned(),
        };
        advice("Ask another node", &command)
    }
}

/// A reason inside a sentence. Some reasons are sentences of their own.
fn phrase(reason: &str) -> String {
    let reason = reason.trim_end_matches('.');
    for (first, inside) in [("The ", "the "), ("It ", "it ")] {
        if let Some(rest) = reason.strip_prefix(first) {
            return format!("{inside}{rest}");
        }
    }
    reason.to_owned()
}
