//! Members that cannot reach each other, although each of them reaches the keepers.
//!
//! Locks that need both of two such members cannot make progress. So a few members are evicted, so
//! that all the others reach each other. An evicted member is barred from joining for a while,
//! longer each time, because only a rejoined member shows whether it can be reached again.
//!
//! A new leader starts without this state. A member may therefore come back too early, and be
//! evicted again.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::lease::Lease;
use crate::Incarnation;
use crate::notice::Notice;
use soloist_api::Moment;
use soloist_api::NodeName;

/// How long an evicted member is barred the first time, and at most, as multiples of the time it
/// takes to detect that it is unreachable.
const BARRED_FOR: (u32, u32) = (1, 12);

/// Which members report that they cannot reach which others, and which nodes are barred for it.
/// Members are identified by incarnation.
#[derive(Clone, PartialEq, Eq, Hash, Default, Debug)]
pub(super) struct Partitions {
    /// By the member that complains.
    complaints: BTreeMap<Incarnation, Complaint>,
    /// When to decide, so that others with the same complaint can send it first. `None` without
    /// complaints.
    decide_at: Option<Moment>,
    barred: Vec<Barred>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Complaint {
    /// When it was last received.
    received: Moment,
    /// The unreachable members, and when each was first named.
    about: BTreeMap<Incarnation, Moment>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Barred {
    name: NodeName,
    /// The members that it could not reach.
    apart_from: Vec<NodeName>,
    until: Moment,
    pause: Duration,
}

/// A member that stays unless it is evicted by [`Partitions::decide`].
#[derive(Clone, Copy)]
pub(super) struct Staying<'a> {
    pub incarnation: Incarnation,
    pub name: &'a NodeName,
    /// When its last message arrived.
    pub last_message: Moment,
}

impl Partitions {
    /// Records which others a member cannot reach: all of them, with each renewal.
    pub(super) fn complain(
        &mut self,
        now: Moment,
        lease: &Lease,
        from: Incarnation,
        about: impl IntoIterator<Item = Incarnation>,
    ) {
        self.complaints
            .retain(|_, complaint| now.since(complaint.received) <= lease.statement_valid_for());
        let before = self.complaints.remove(&from);
        let since = |incarnation| {
            before
                .as_ref()
                .and_then(|before| before.about.get(&incarnation))
        };
        let about = about.into_iter().filter(|incarnation| *incarnation != from);
        let about =
            about.map(|incarnation| (incarnation, since(incarnation).copied().unwrap_or(now)));
        let about: BTreeMap<_, _> = about.collect();
        if !about.is_empty() {
            self.complaints.insert(
                from,
                Complaint {
                    received: now,
                    about,
                },
            );
        }
        self.decide_at = if self.complaints.is_empty() {
            None
        } else {
            self.decide_at.or(Some(now + lease.renewed_every()))
        };
    }

    /// Chooses which of these members to evict, if it is time to decide. Returns each with the
    /// members that it cannot reach. A member that was heard from after a complaint about it is
    /// alive and only unreachable.
    pub(super) fn decide(
        &mut self,
        now: Moment,
        lease: &Lease,
        members: &[Staying<'_>],
        notices: &mut Vec<Notice>,
    ) -> Vec<(Incarnation, Vec<Incarnation>)> {
        if self.decide_at.is_none_or(|at| now < at) {
            return Vec::new();
        }
        self.decide_at = Some(now + lease.renewed_every());
        self.forget(now, lease);
        let mut apart = self.between(members);
        let out_for = self.out_for(members, &apart);
        let mut parted = Vec::new();
        loop {
            let number =
                |incarnation: Incarnation| apart.get(&incarnation).map_or(0, BTreeSet::len);
            let partitioned = members
                .iter()
                .filter(|member| number(member.incarnation) > 0);
            // Members that were evicted because of this one count as well. Otherwise, a member that
            // no other reaches would stay while the others go one by one. Between two that are
            // apart from equally many, the one goes that is alone in complaining about more
            // members; then the one that came later.
            let weight = |member: &&Staying<'_>| {
                let out_for = out_for.get(&member.incarnation).copied().unwrap_or(0);
                (
                    number(member.incarnation) + out_for,
                    self.alone(member.incarnation),
                )
            };
            let Some(incarnation) = partitioned
                .max_by_key(weight)
                .map(|member| member.incarnation)
            else {
                break;
            };
            let others = apart.remove(&incarnation).expect("it has partitions");
            for other in &others {
                let of_other = apart.get_mut(other).expect("it is recorded twice");
                of_other.remove(&incarnation);
            }
            parted.push((incarnation, others.into_iter().collect()));
        }
        let out = self.barred.iter().filter(|known| now < known.until);
        let out = out.count();
        if !parted.is_empty() && 2 * (out + parted.len()) > out + members.len() {
            notices.push(Notice::MostPartitioned);
            self.decide_at = Some(now + lease.apart_after());
            return Vec::new();
        }
        parted
    }

    /// Number of members that only this one complains about, whether or not they were heard from
    /// since. Returns 0 if there is just one: then either of the two may be the one that is cut
    /// off.
    fn alone(&self, incarnation: Incarnation) -> usize {
        let Some(complaint) = self.complaints.get(&incarnation) else {
            return 0;
        };
        let others = || {
            let others = self.complaints.iter();
            others.filter(|(from, _)| **from != incarnation)
        };
        let about = complaint.about.keys();
        let number = about
            .filter(|about| {
                let is_named = |other: &Complaint| other.about.contains_key(about);
                let has_complained = others().any(|(from, _)| from == *about);
                !has_complained && !others().any(|(_, other)| is_named(other))
            })
            .count();
        if number > 1 { number } else { 0 }
    }

    /// For each of these members, the ones that it cannot reach.
    fn between(&self, members: &[Staying<'_>]) -> BTreeMap<Incarnation, BTreeSet<Incarnation>> {
        let last_message: BTreeMap<_, _> = members
            .iter()
            .map(|member| (member.incarnation, member.last_message))
            .collect();
        let mut apart: BTreeMap<Incarnation, BTreeSet<Incarnation>> = BTreeMap::new();
        for (&from, complaint) in &self.complaints {
            for (&about, since) in &complaint.about {
                let is_alive = last_message.get(&about).is_some_and(|at| at > since);
                if is_alive && last_message.contains_key(&from) {
                    apart.entry(from).or_default().insert(about);
                    apart.entry(about).or_default().insert(from);
                }
            }
        }
        apart
    }

    /// For each of these members, the number of others that are barred, or were until lately,
    /// because they were apart from it. A member that has rejoined and is apart from it again is
    /// not counted twice.
    fn out_for(
        &self,
        members: &[Staying<'_>],
        apart: &BTreeMap<Incarnation, BTreeSet<Incarnation>>,
    ) -> BTreeMap<Incarnation, usize> {
        let incarnations: BTreeMap<_, _> = members
            .iter()
            .map(|member| (member.name, member.incarnation))
            .collect();
        let mut numbers = BTreeMap::new();
        for known in &self.barred {
            let back = incarnations.get(&known.name);
            for incarnation in known
                .apart_from
                .iter()
                .filter_map(|name| incarnations.get(name))
            {
                let again = apart.get(incarnation).zip(back);
                if !again.is_some_and(|(apart, back)| apart.contains(back)) {
                    *numbers.entry(*incarnation).or_default() += 1;
                }
            }
        }
        numbers
    }

    /// Forgets nodes that have not been barred for long enough.
    fn forget(&mut self, now: Moment, lease: &Lease) {
        let (_, most) = BARRED_FOR;
        self.barred
            .retain(|known| now.since(known.until) <= lease.apart_after() * most);
    }

    /// Bars an evicted member from joining for a while.
    pub(super) fn bar(
        &mut self,
        now: Moment,
        lease: &Lease,
        name: &NodeName,
        apart_from: Vec<NodeName>,
    ) {
        let (first, most) = BARRED_FOR;
        self.forget(now, lease);
        let mut before = self.barred.iter();
        let before = before.find(|known| known.name == *name);
        let pause = before.map_or(lease.apart_after() * first, |known| known.pause * 2);
        let pause = pause.min(lease.apart_after() * most);
        self.barred.retain(|known| known.name != *name);
        self.barred.push(Barred {
            name: name.clone(),
            apart_from,
            until: now + pause,
            pause,
        });
    }

    /// The members because of which a node may not join yet. Empty if it may.
    pub(super) fn bars(
        &self,
        now: Moment,
        name: &NodeName,
        is_member: impl Fn(&NodeName) -> bool,
    ) -> Vec<NodeName> {
        let barred = self.barred.iter().filter(|known| now < known.until);
        let apart_from = barred.flat_map(|known| {
            if known.name == *name {
                known.apart_from.clone()
            } else if known.apart_from.contains(name) {
                // The other of the two may have come back first.
                vec![known.name.clone()]
            } else {
                Vec::new()
            }
        });
        apart_from.filter(is_member).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn after(seconds: u32) -> Moment {
        Moment::default() + SECOND * seconds
    }

    fn name(name: &str) -> NodeName {
        name.parse().unwrap()
    }

    struct Trial {
        partitions: Partitions,
        names: Vec<NodeName>,
    }

    impl Trial {
        /// Five members, with incarnations 0 to 4.
        fn new() -> Self {
            Trial {
                partitions: Partitions::default(),
                names: ["a", "b", "c", "d", "e"].map(name).into(),
            }
        }

        fn complain(&mut self, now: u32, from: u64, about: &[u64]) {
            let about = about.iter().copied().map(Incarnation);
            self.partitions
                .complain(after(now), &Lease::default(), Incarnation(from), about);
        }

        /// The members that are evicted if all but `silent` were heard from just now.
        fn decide(&mut self, now: u32, silent: Option<u64>) -> Vec<u64> {
            let members = (0..).zip(&self.names).map(|(incarnation, name)| Staying {
                incarnation: Incarnation(incarnation),
                name,
                last_message: after(if silent == Some(incarnation) { 0 } else { now }),
            });
            let members: Vec<_> = members.collect();
            let lease = Lease::default();
            let parted = self
                .partitions
                .decide(after(now), &lease, &members, &mut Vec::new());
            for (incarnation, others) in &parted {
                let name = |incarnation: &Incarnation| self.names[incarnation.0 as usize].clone();
                let others = others.iter().map(name).collect();
                self.partitions
                    .bar(after(now), &lease, &name(incarnation), others);
            }
            parted
                .into_iter()
                .map(|(incarnation, _)| incarnation.0)
                .collect()
        }
    }

    /// The members that are evicted after these complaints, if all members are alive.
    fn parted(complaints: &[(u64, &[u64])]) -> Vec<u64> {
        let mut trial = Trial::new();
        for (from, about) in complaints {
            trial.complain(0, *from, about);
        }
        assert_eq!(trial.decide(0, None), [0; 0], "the others may complain too");
        trial.decide(1, None)
    }

    #[test]
    fn the_later_of_two_partitioned_members_is_evicted() {
        assert_eq!(parted(&[(1, &[3])]), [3]);
        assert_eq!(parted(&[(3, &[1])]), [3]);
        assert_eq!(parted(&[(1, &[3]), (3, &[1])]), [3]);
        assert_eq!(parted(&[]), [0; 0]);
        assert_eq!(parted(&[(1, &[1, 77])]), [0; 0]);
    }

    #[test]
    fn only_the_member_partitioned_from_most_others_is_evicted() {
        assert_eq!(parted(&[(0, &[1, 2, 3, 4])]), [0]);
        assert_eq!(parted(&[(2, &[0]), (3, &[0]), (4, &[0])]), [0]);
    }

    #[test]
    fn a_member_that_alone_complains_about_many_is_evicted() {
        let mut trial = Trial::new();
        let members = (0..).zip(&trial.names).map(|(incarnation, name)| Staying {
            incarnation: Incarnation(incarnation),
            name,
            // The last renewals of 2 and 3 came a moment before the complaint.
            last_message: after(if incarnation == 2 || incarnation == 3 {
                1
            } else {
                2
            }),
        });
        let members: Vec<_> = members.collect();
        let lease = Lease::default();
        for now in [1, 2] {
            let about = [2, 3, 4].map(Incarnation);
            trial
                .partitions
                .complain(after(now), &lease, Incarnation(0), about);
        }
        let parted = trial
            .partitions
            .decide(after(2), &lease, &members, &mut Vec::new());
        assert_eq!(parted, [(Incarnation(0), vec![Incarnation(4)])]);
    }

    #[test]
    fn one_of_two_partitioned_groups_is_evicted() {
        assert_eq!(parted(&[(0, &[3, 4]), (1, &[3, 4]), (2, &[3, 4])]), [4, 3]);
    }

    #[test]
    fn nobody_is_evicted_if_most_would_have_to_be() {
        let all = [0, 1, 2, 3, 4];
        assert_eq!(parted(&all.map(|from| (from, &all[..]))), [0; 0]);
    }

    #[test]
    fn a_member_that_was_silent_since_may_be_dead() {
        let mut trial = Trial::new();
        trial.complain(1, 0, &[1]);
        trial.complain(2, 0, &[1]);
        assert_eq!(trial.decide(2, Some(1)), [0; 0]);
        trial.complain(3, 0, &[1]);
        assert_eq!(trial.decide(3, None), [1]);
    }

    #[test]
    fn withdrawn_and_old_complaints_do_not_count() {
        let mut trial = Trial::new();
        trial.complain(1, 0, &[1]);
        trial.complain(2, 0, &[]);
        assert_eq!(trial.decide(2, None), [0; 0]);
        trial.complain(10, 0, &[1]);
        trial.complain(15, 2, &[3]);
        assert_eq!(trial.decide(16, None), [3]);
        // An expired complaint is not continued by a new one.
        trial.complain(100, 0, &[1]);
        assert_eq!(trial.decide(100, Some(1)), [0; 0]);
    }

    #[test]
    fn a_member_that_nobody_reaches_is_evicted_though_complaints_arrive_one_by_one() {
        let mut trial = Trial::new();
        trial.complain(1, 3, &[0]);
        assert_eq!(trial.decide(2, None), [3]);
        trial.complain(3, 2, &[0]);
        assert_eq!(trial.decide(4, None), [0]);
    }

    #[test]
    fn the_same_of_two_partitioned_members_is_evicted_each_time() {
        let mut trial = Trial::new();
        for now in [0, 30, 80, 150] {
            trial.complain(now, 3, &[4]);
            trial.complain(now + 1, 3, &[4]);
            assert_eq!(trial.decide(now + 1, None), [4], "{now}");
        }
        let pauses = trial.partitions.barred.iter().map(|known| known.pause);
        assert_eq!(pauses.collect::<Vec<_>>(), [SECOND * 80]);
    }

    #[test]
    fn a_member_that_is_evicted_repeatedly_is_barred_for_longer() {
        let (mut partitions, lease) = (Partitions::default(), Lease::default());
        let (a, b) = (name("a"), name("b"));
        let mut now = 0;
        for seconds in [10, 20, 40, 80, 120, 120] {
            partitions.bar(after(now), &lease, &b, vec![a.clone()]);
            now += seconds;
            let (early, late) = (after(now - 1), after(now));
            let barred = partitions.bars(early, &b, |_| true);
            assert_eq!(barred, std::slice::from_ref(&a));
            assert_eq!(partitions.bars(late, &b, |_| true), [], "{seconds}");
            // The other one may not join either, if this one came back first.
            let barred = partitions.bars(early, &a, |_| true);
            assert_eq!(barred, std::slice::from_ref(&b));
            // There is no member that it could be apart from.
            assert_eq!(partitions.bars(early, &b, |_| false), []);
        }
        // It has not been barred for long enough to start over.
        now += 121;
        partitions.bar(after(now), &lease, &b, vec![a]);
        assert_eq!(partitions.bars(after(now + 10), &b, |_| true), []);
    }
}
