//! The facts of one look: what the leader and the members answered, beside what this node knows.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures_util::future::join_all;
use soloist_api::LockName;
use soloist_api::dashboard::{Change, ChangeKind, KeeperState, OutsideInfo, OutsideState};

use super::Lookout;
use crate::membership::LeaderView;
use crate::node::event::{milliseconds, unix_ms};
use crate::node::kept::Kept;
use crate::{Moment, Node};
use soloist_core::epochs::member::MemberState;
use soloist_core::record::{
    Facts, HolderFact, KeeperFact, MemberFact, OUTSIDE_SHOWN_MS, OwnMembership, WAIT_UNUSUAL_MS,
    WaitFact,
};

/// Maximum number of long waits that are shown, with their holders.
const WAITS_MAX: usize = 3;

/// The answers of one look.
pub(super) struct Answers {
    pub led: Option<LeaderView>,
    /// By node that was asked: what it has kept, and how long the answer took in milliseconds.
    /// `None` if it did not answer.
    pub kept: BTreeMap<String, Option<(Kept, f64)>>,
}

impl Answers {
    /// What the nodes that answered have kept.
    pub(super) fn kept(&self) -> impl Iterator<Item = (&str, &Kept)> {
        let kept = self.kept.iter();
        kept.filter_map(|(name, kept)| Some((name.as_str(), &kept.as_ref()?.0)))
    }

    /// What is left of a member's lease, in milliseconds, if the leader told.
    fn lease_left_ms(&self, name: &str) -> Option<u64> {
        let mut members = self.led.as_ref()?.cluster.members.iter();
        let (_, left) = members.find(|(member, _)| member.name.as_str() == name)?;
        Some(*left)
    }

    fn members(&self, is_keeper: impl Fn(&str) -> bool) -> Vec<MemberFact> {
        let members = self.kept.iter().map(|(name, kept)| MemberFact {
            name: name.clone(),
            is_keeper: is_keeper(name),
            lease_left_ms: self.lease_left_ms(name),
            report: kept.as_ref().map(|(kept, ms)| (kept.report.clone(), *ms)),
        });
        members.collect()
    }
}

impl Lookout {
    /// Collects the facts.
    pub(super) async fn facts(&self, node: &Node, answers: &Answers) -> Facts {
        let shared = &node.shared;
        let now_ms = unix_ms(Duration::ZERO);
        let why = shared.why_unknown();
        let way = shared.keeping.leader_client.way();
        let all_keepers = match &way.keepers {
            Some(keepers) => keepers.clone(),
            None => shared.keeping.membership.first_keepers(),
        };
        let (state, until, changing_since, since_ms, last_epoch) = {
            let core = shared.core();
            let memory = core.memory();
            (
                core.member_state(),
                core.valid_until(),
                core.changing_since(),
                memory.outside_since_ms(),
                memory.last_epoch(),
            )
        };
        let changing_for_ms = changing_since
            .filter(|_| matches!(state, MemberState::Changing(_)))
            .map(|since| milliseconds(Moment::now().since(since)));
        let led = answers.led.as_ref();
        let membership = match state {
            MemberState::Member(_) | MemberState::Changing(_) => OwnMembership::Member {
                lease_left_ms: until.map_or(0, |until| milliseconds(until.since(Moment::now()))),
            },
            MemberState::Outside => OwnMembership::Outside {
                since_ms,
                why: why.unwrap_or_else(|| "it has not joined yet".to_owned()),
            },
        };
        let epoch = match state {
            MemberState::Member(epoch) | MemberState::Changing(epoch) => epoch,
            MemberState::Outside => last_epoch,
        };
        let is_keeper = |name: &str| {
            let mut keepers = all_keepers.iter();
            keepers.any(|keeper| keeper.name.as_str() == name)
        };
        let members = match membership {
            OwnMembership::Member { .. } => answers.members(is_keeper),
            // Without a lease, this node does not know who else is a member.
            OwnMembership::Outside { .. } => Vec::new(),
        };
        let leader = led.map(|led| led.cluster.leader.to_string());
        let changes = &self.known.changes;
        let outside = outside(changes, &members, led, &is_keeper, now_ms, &membership);
        let keepers = all_keepers.iter().map(|keeper| {
            let name = keeper.name.to_string();
            let tried = way.tried.get(&keeper.name).cloned();
            let leader = leader.as_deref();
            let follows = led.is_some_and(|led| led.followers.contains(&keeper.name));
            keeper_fact(
                name,
                &members,
                &outside,
                leader,
                follows,
                &membership,
                tried,
            )
        });
        let mut keepers: Vec<KeeperFact> = keepers.collect();
        keepers.sort_by(|one, other| one.name.cmp(&other.name));
        let clocks = led.map(|led| led.clocks.clone()).unwrap_or_default();
        Facts {
            me: shared.name().to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            now_ms,
            membership,
            epoch,
            changing_for_ms,
            lease_ms: milliseconds(shared.lease().length),
            drift_percent: shared.lease().drift,
            leader,
            keepers,
            members,
            outside,
            clocks: clocks
                .into_iter()
                .map(|(name, percent)| (name.into(), percent))
                .collect(),
            waits: self.waits(node, answers).await,
            wait_p99_ms: self.known.seconds.total().wait.percentile(0.99),
        }
    }

    /// The longest waits, with the holders that they wait for.
    async fn waits(&self, node: &Node, answers: &Answers) -> Vec<WaitFact> {
        let waits = answers.kept().flat_map(|(name, kept)| {
            let waits = kept.report.long_waits.iter();
            waits.map(move |(lock, owner, waited_ms)| WaitFact {
                lock: lock.clone(),
                owner: owner.clone(),
                node: name.to_owned(),
                waited_ms: *waited_ms,
                holder: None,
            })
        });
        let mut waits: Vec<_> = waits
            .filter(|wait| wait.waited_ms >= WAIT_UNUSUAL_MS)
            .collect();
        waits.sort_by_key(|wait| std::cmp::Reverse(wait.waited_ms));
        let mut seen = BTreeSet::new();
        waits.retain(|wait| seen.insert(wait.lock.clone()));
        waits.truncate(WAITS_MAX);
        join_all(waits.iter_mut().map(async |wait| {
            if let Ok(name) = LockName::new(&wait.lock) {
                let holder = node.seen_lock(&name).await.holder;
                wait.holder = holder.map(|holder| HolderFact {
                    owner: holder.owner,
                    node: holder.node,
                    held_ms: holder.held_for_ms,
                });
            }
        }))
        .await;
        waits
    }
}

/// Nodes that are not members, but were lately or should be.
pub(super) fn outside(
    changes: &[Change],
    members: &[MemberFact],
    led: Option<&LeaderView>,
    is_keeper: &dyn Fn(&str) -> bool,
    now_ms: u64,
    membership: &OwnMembership,
) -> Vec<OutsideInfo> {
    if matches!(membership, OwnMembership::Outside { .. }) {
        return Vec::new();
    }
    let is_member = |name: &str| members.iter().any(|member| member.name == name);
    type Outside = BTreeMap<String, OutsideInfo>;
    let add = |outside: &mut Outside, name: &str, state, reason: String, since_ms| {
        if !is_member(name) {
            let info = OutsideInfo {
                name: name.to_owned(),
                is_keeper: is_keeper(name),
                state,
                reason,
                since_ms,
            };
            outside.insert(name.to_owned(), info);
        }
    };
    let mut outside = Outside::new();
    for keeper in led.iter().flat_map(|led| &led.cluster.keepers) {
        let reason = "It is not a member.".to_owned();
        let name = keeper.name.as_str();
        add(&mut outside, name, OutsideState::Down, reason, None);
    }
    for change in changes.iter() {
        let (Some(name), true) = (&change.node, now_ms <= change.at_ms + OUTSIDE_SHOWN_MS) else {
            continue;
        };
        let reason = || match change.why.is_empty() {
            true => format!("{}.", change.what),
            false => change.why.clone(),
        };
        let at_ms = Some(change.at_ms);
        match change.kind {
            ChangeKind::Evicted => add(&mut outside, name, OutsideState::Evicted, reason(), at_ms),
            ChangeKind::Left => add(&mut outside, name, OutsideState::Left, reason(), at_ms),
            _ => {}
        }
    }
    for name in led.iter().flat_map(|led| &led.joining) {
        let waits = "It waits to be admitted.";
        // A node that was evicted stays so until it is a member again: its attempts may fail.
        if let Some(node) = outside.get_mut(name.as_str())
            && node.state == OutsideState::Evicted
        {
            node.reason += &format!(" {waits}");
            continue;
        }
        add(
            &mut outside,
            name.as_str(),
            OutsideState::Joining,
            waits.to_owned(),
            None,
        );
    }
    outside.into_values().collect()
}

/// What is known of a keeper. `follows` is whether the leader has heard its store lately.
fn keeper_fact(
    name: String,
    members: &[MemberFact],
    outside: &[OutsideInfo],
    leader: Option<&str>,
    follows: bool,
    membership: &OwnMembership,
    tried: Option<String>,
) -> KeeperFact {
    let member = members.iter().find(|member| member.name == name);
    let report = member.and_then(|member| member.report.as_ref());
    let stopped = report.and_then(|(report, _)| report.keeper_stopped.clone());
    let gone = outside.iter().find(|node| node.name == name);
    let (state, reason) = match membership {
        // Without a lease, this node knows only which keepers it cannot reach.
        OwnMembership::Outside { .. } => match tried {
            Some(problem) if !answered(&problem) => (KeeperState::Down, Some(problem)),
            _ => (KeeperState::Unknown, None),
        },
        // The node of a store that votes may be no member, for example because two members do not
        // reach each other. A node that left stops its keeper.
        OwnMembership::Member { .. } if member.is_none() => {
            let has_left = gone.is_some_and(|gone| gone.state == OutsideState::Left);
            let reason = gone.map(|gone| gone.reason.clone());
            let not_told = || {
                let why = reason.as_deref().unwrap_or("It is not a member.");
                format!("{why} Its store may still vote: no leader tells")
            };
            match (leader, follows && !has_left) {
                (Some(leader), _) if leader == name => (KeeperState::Leads, None),
                (_, true) => (KeeperState::Follows, None),
                (None, false) if !has_left => (KeeperState::Down, Some(not_told())),
                (_, false) => (KeeperState::Down, reason),
            }
        }
        // A keeper that has stopped needs no leader to be known.
        OwnMembership::Member { .. } if stopped.is_some() => (KeeperState::Down, stopped),
        OwnMembership::Member { .. } if leader == Some(name.as_str()) => (KeeperState::Leads, None),
        // Nobody has told whether it follows a leader.
        OwnMembership::Member { .. } if leader.is_none() || report.is_none() => {
            (KeeperState::Unknown, None)
        }
        OwnMembership::Member { .. } => (KeeperState::Follows, None),
    };
    let gone = gone.filter(|_| state == KeeperState::Down);
    KeeperFact {
        since_ms: gone.and_then(|gone| gone.since_ms),
        name,
        state,
        reason,
    }
}

/// Whether a keeper answered, though it does not lead. Its problem says so.
fn answered(problem: &str) -> bool {
    problem.starts_with("says that") || problem == "knows of no leader"
}

#[cfg(test)]
mod tests {
    use soloist_core::record::Report;

    use super::*;

    const MEMBER: OwnMembership = OwnMembership::Member {
        lease_left_ms: 2_500,
    };

    fn member(name: &str, report: Option<Report>) -> MemberFact {
        MemberFact {
            name: name.to_owned(),
            is_keeper: true,
            lease_left_ms: None,
            report: report.map(|report| (report, 0.4)),
        }
    }

    fn stopped() -> Option<Report> {
        Some(Report {
            keeper_stopped: Some("disk full".to_owned()),
            ..Report::default()
        })
    }

    /// The states of n1, which looks, and of n2, n3 and n4, as members with these reports. n5 is
    /// not a member.
    fn states(leader: Option<&str>, reports: [Option<Report>; 4]) -> [KeeperState; 5] {
        let names = ["n1", "n2", "n3", "n4"];
        let members: Vec<MemberFact> = names
            .into_iter()
            .zip(reports)
            .map(|(name, report)| member(name, report))
            .collect();
        ["n1", "n2", "n3", "n4", "n5"].map(|name| {
            let name = name.to_owned();
            keeper_fact(name, &members, &[], leader, false, &MEMBER, None).state
        })
    }

    #[test]
    fn a_keeper_that_is_no_member_works_if_its_store_follows() {
        let fact = |state, leader, follows| {
            let outside = [OutsideInfo {
                name: "n5".to_owned(),
                is_keeper: true,
                state,
                reason: "It was evicted.".to_owned(),
                since_ms: Some(900),
            }];
            let name = "n5".to_owned();
            keeper_fact(name, &[], &outside, leader, follows, &MEMBER, None)
        };
        let evicted = fact(OutsideState::Evicted, Some("n1"), true);
        assert_eq!(
            (evicted.state, evicted.since_ms),
            (KeeperState::Follows, None)
        );
        let leader = fact(OutsideState::Evicted, Some("n5"), false);
        assert_eq!(leader.state, KeeperState::Leads);
        let dead = fact(OutsideState::Evicted, Some("n1"), false);
        assert_eq!((dead.state, dead.since_ms), (KeeperState::Down, Some(900)));
        assert_eq!(dead.reason.as_deref(), Some("It was evicted."));
        // It was heard just before it stopped.
        let left = fact(OutsideState::Left, Some("n1"), true);
        assert_eq!(left.state, KeeperState::Down);
        // Without a leader nobody knows, and it is not counted on.
        let unknown = fact(OutsideState::Evicted, None, false);
        let reason = "It was evicted. Its store may still vote: no leader tells";
        assert_eq!(
            (unknown.state, unknown.reason.as_deref()),
            (KeeperState::Down, Some(reason))
        );
    }

    #[test]
    fn a_keeper_works_only_if_it_is_heard() {
        use KeeperState::*;
        let well = || Some(Report::default());
        let reports = || [well(), well(), None, stopped()];
        let with_leader = states(Some("n2"), reports());
        assert_eq!(with_leader, [Follows, Leads, Unknown, Down, Down]);
        // The leader's own answer is enough.
        let silent_leader = states(Some("n3"), reports());
        assert_eq!(silent_leader, [Follows, Follows, Leads, Down, Down]);
        let without = states(None, reports());
        assert_eq!(without, [Unknown, Unknown, Unknown, Down, Down]);
    }

    #[test]
    fn an_evicted_node_that_tries_to_return_stays_evicted() {
        let name = |name: &str| name.parse::<soloist_api::NodeName>().unwrap();
        let led = LeaderView {
            cluster: crate::membership::ClusterView {
                leader: name("n1"),
                keepers: Vec::new(),
                epoch: 8,
                is_changing: false,
                members: Vec::new(),
            },
            followers: Vec::new(),
            joining: vec![name("n6"), name("n7")],
            clocks: Vec::new(),
        };
        let evicted = Change {
            id: "8:Evicted:n7".to_owned(),
            at_ms: 900,
            kind: ChangeKind::Evicted,
            node: Some("n7".to_owned()),
            epoch: Some(8),
            what: "n7 evicted".to_owned(),
            why: "The leader evicted it because its lease expired.".to_owned(),
            holds: None,
            is_bad: true,
        };
        let outside = outside(&[evicted], &[], Some(&led), &|_| false, 1_000, &MEMBER);
        let states: Vec<(OutsideState, &str, Option<u64>)> = outside
            .iter()
            .map(|node| (node.state, node.reason.as_str(), node.since_ms))
            .collect();
        let waits = "It waits to be admitted.";
        let why = format!("The leader evicted it because its lease expired. {waits}");
        let expected = [
            (OutsideState::Joining, waits, None),
            (OutsideState::Evicted, why.as_str(), Some(900)),
        ];
        assert_eq!(states, expected);
    }
}
