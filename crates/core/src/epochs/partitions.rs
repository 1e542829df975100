//! Members that cannot reach each other, though the keepers reach them all.
//!
//! Locks that need both stand still. So some are done without: few, without whom all others reach each other. They are
//! kept out for a while, which grows each time, because whether they are reached again shows only when they are in.
//!
//! A new leader begins without all this: somebody may come back too early because of it, and go again.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::lease::Lease;
use crate::notice::Notice;
use soloist_api::Moment;
use soloist_api::NodeName;

/// How long somebody is kept out at first, and at most, against how long it takes to see that others do not reach it.
const KEPT_OUT: (u32, u32) = (1, 12);

/// Who cannot reach whom, as they say, and who is kept out for it. Members are told apart by their lives.
#[derive(Clone, PartialEq, Eq, Hash, Default, Debug)]
pub(super) struct Partitions {
    /// By who complains.
    complaints: BTreeMap<u64, Complaint>,
    /// Others who have the same reason complain until then. Nothing, if nobody does.
    decide_at: Option<Moment>,
    barred: Vec<Barred>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Complaint {
    /// When it was said last.
    said: Moment,
    /// Of whom, and when each was named first.
    about: BTreeMap<u64, Moment>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Barred {
    name: NodeName,
    /// Who would not reach it.
    apart_from: Vec<NodeName>,
    until: Moment,
    pause: Duration,
}

/// A member that stays, unless others do not reach it.
#[derive(Clone, Copy)]
pub(super) struct Staying<'a> {
    pub life: u64,
    pub name: &'a NodeName,
    /// When it was heard last.
    pub heard: Moment,
}

impl Partitions {
    /// A member says which others it does not reach: all of them, with each renewal.
    pub fn complain(
        &mut self,
        now: Moment,
        lease: &Lease,
        from: u64,
        about: impl IntoIterator<Item = u64>,
    ) {
        self.complaints
            .retain(|_, complaint| now.since(complaint.said) <= lease.patience());
        let before = self.complaints.remove(&from);
        let since = |life| before.as_ref().and_then(|before| before.about.get(&life));
        let about = about.into_iter().filter(|life| *life != from);
        let about = about.map(|life| (life, since(life).copied().unwrap_or(now)));
        let about: BTreeMap<_, _> = about.collect();
        if !about.is_empty() {
            self.complaints.insert(from, Complaint { said: now, about });
        }
        self.decide_at = match self.complaints.is_empty() {
            true => None,
            false => self.decide_at.or(Some(now + lease.renewed_every())),
        };
    }

    /// Which of these is done without, and whom it would be apart from, if it is time to decide that. Who was heard after
    /// somebody complained of it is alive, and only not reached.
    pub fn decide(
        &mut self,
        now: Moment,
        lease: &Lease,
        members: &[Staying<'_>],
        notices: &mut Vec<Notice>,
    ) -> Vec<(u64, Vec<u64>)> {
        if self.decide_at.is_none_or(|at| now < at) {
            return Vec::new();
        }
        self.decide_at = Some(now + lease.renewed_every());
        self.forget(now, lease);
        let mut apart = self.between(members);
        let out_for = self.out_for(members, &apart);
        let mut parted = Vec::new();
        loop {
            let number = |life: u64| apart.get(&life).map_or(0, BTreeSet::len);
            let in_rifts = members.iter().filter(|member| number(member.life) > 0);
            // Who is out because of it counts as well, or a member that nobody reaches would stay, and others go one by one.
            // Of two that are apart from as many others, the one goes that alone complains of more; and then the one that
            // came later.
            let weight = |member: &&Staying<'_>| {
                let out_for = out_for.get(&member.life).copied().unwrap_or(0);
                (number(member.life) + out_for, self.alone(member.life))
            };
            let Some(life) = in_rifts.max_by_key(weight).map(|member| member.life) else {
                break;
            };
            let others = apart.remove(&life).expect("it is apart from some");
            for other in &others {
                let of_other = apart.get_mut(other).expect("rifts have two sides");
                of_other.remove(&life);
            }
            parted.push((life, others.into_iter().collect()));
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

    /// Number of members that only this one complains of, whether or not they were heard since; 0 if there is only
    /// one, for then each of the two may be the one that is cut off.
    fn alone(&self, life: u64) -> usize {
        let Some(complaint) = self.complaints.get(&life) else {
            return 0;
        };
        let others = || {
            let others = self.complaints.iter();
            others.filter(|(from, _)| **from != life)
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

    /// From whom each of these members is apart.
    fn between(&self, members: &[Staying<'_>]) -> BTreeMap<u64, BTreeSet<u64>> {
        let heard: BTreeMap<_, _> = members
            .iter()
            .map(|member| (member.life, member.heard))
            .collect();
        let mut apart: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
        for (&from, complaint) in &self.complaints {
            for (&about, since) in &complaint.about {
                let is_alive = heard.get(&about).is_some_and(|at| at > since);
                if is_alive && heard.contains_key(&from) {
                    apart.entry(from).or_default().insert(about);
                    apart.entry(about).or_default().insert(from);
                }
            }
        }
        apart
    }

    /// How many others are out, or were until lately, because they were apart from each of these members. Who is in again,
    /// and apart from it again, is not counted twice.
    fn out_for(
        &self,
        members: &[Staying<'_>],
        apart: &BTreeMap<u64, BTreeSet<u64>>,
    ) -> BTreeMap<u64, usize> {
        let lives: BTreeMap<_, _> = members
            .iter()
            .map(|member| (member.name, member.life))
            .collect();
        let mut numbers = BTreeMap::new();
        for known in &self.barred {
            let back = lives.get(&known.name);
            for life in known.apart_from.iter().filter_map(|name| lives.get(name)) {
                let again = apart.get(life).zip(back);
                if !again.is_some_and(|(apart, back)| apart.contains(back)) {
                    *numbers.entry(*life).or_default() += 1;
                }
            }
        }
        numbers
    }

    /// Who was in for long enough begins anew.
    fn forget(&mut self, now: Moment, lease: &Lease) {
        let (_, most) = KEPT_OUT;
        self.barred
            .retain(|known| now.since(known.until) <= lease.apart_after() * most);
    }

    /// Somebody is done without.
    pub fn bar(&mut self, now: Moment, lease: &Lease, name: &NodeName, apart_from: Vec<NodeName>) {
        let (first, most) = KEPT_OUT;
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

    /// From whom somebody would be apart that wants to come in, if it must wait for that.
    pub fn bars(
        &self,
        now: Moment,
        name: &NodeName,
        is_member: impl Fn(&NodeName) -> bool,
    ) -> Vec<NodeName> {
        let barred = self.barred.iter().filter(|known| now < known.until);
        let apart_from = barred.flat_map(|known| match known.name == *name {
            true => known.apart_from.clone(),
            // The other one may have come back before.
            false if known.apart_from.contains(name) => vec![known.name.clone()],
            false => Vec::new(),
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
        /// Members 0 to 4.
        fn new() -> Self {
            Trial {
                partitions: Partitions::default(),
                names: ["a", "b", "c", "d", "e"].map(name).into(),
            }
        }

        fn complain(&mut self, now: u32, from: u64, about: &[u64]) {
            let about = about.iter().copied();
            self.partitions
                .complain(after(now), &Lease::default(), from, about);
        }

        /// Who is done without, if all were heard just now but this one.
        fn decide(&mut self, now: u32, silent: Option<u64>) -> Vec<u64> {
            let members = (0..).zip(&self.names).map(|(life, name)| Staying {
                life,
                name,
                heard: after(if silent == Some(life) { 0 } else { now }),
            });
            let members: Vec<_> = members.collect();
            let lease = Lease::default();
            let parted = self
                .partitions
                .decide(after(now), &lease, &members, &mut Vec::new());
            for (life, others) in &parted {
                let name = |life: &u64| self.names[*life as usize].clone();
                let others = others.iter().map(name).collect();
                self.partitions.bar(after(now), &lease, &name(life), others);
            }
            parted.into_iter().map(|(life, _)| life).collect()
        }
    }

    /// Who is done without if these do not reach those, and all are alive.
    fn parted(complaints: &[(u64, &[u64])]) -> Vec<u64> {
        let mut trial = Trial::new();
        for (from, about) in complaints {
            trial.complain(0, *from, about);
        }
        assert_eq!(trial.decide(0, None), [0; 0], "others may complain as well");
        trial.decide(1, None)
    }

    #[test]
    fn of_two_the_later_one_goes() {
        assert_eq!(parted(&[(1, &[3])]), [3]);
        assert_eq!(parted(&[(3, &[1])]), [3]);
        assert_eq!(parted(&[(1, &[3]), (3, &[1])]), [3]);
        assert_eq!(parted(&[]), [0; 0]);
        assert_eq!(parted(&[(1, &[1, 77])]), [0; 0]);
    }

    #[test]
    fn who_is_apart_from_most_goes_and_nobody_else() {
        assert_eq!(parted(&[(0, &[1, 2, 3, 4])]), [0]);
        assert_eq!(parted(&[(2, &[0]), (3, &[0]), (4, &[0])]), [0]);
    }

    #[test]
    fn a_member_that_alone_complains_of_many_goes_though_few_were_heard_since() {
        let mut trial = Trial::new();
        let members = (0..).zip(&trial.names).map(|(life, name)| Staying {
            life,
            name,
            // The last renewals of 2 and 3 came a moment before the complaint.
            heard: after(if life == 2 || life == 3 { 1 } else { 2 }),
        });
        let members: Vec<_> = members.collect();
        let lease = Lease::default();
        for now in [1, 2] {
            let about = [2, 3, 4];
            trial.partitions.complain(after(now), &lease, 0, about);
        }
        let parted = trial
            .partitions
            .decide(after(2), &lease, &members, &mut Vec::new());
        assert_eq!(parted, [(0, vec![4])]);
    }

    #[test]
    fn of_two_groups_one_goes() {
        assert_eq!(parted(&[(0, &[3, 4]), (1, &[3, 4]), (2, &[3, 4])]), [4, 3]);
    }

    #[test]
    fn nobody_goes_if_most_would_have_to() {
        let all = [0, 1, 2, 3, 4];
        assert_eq!(parted(&all.map(|from| (from, &all[..]))), [0; 0]);
    }

    #[test]
    fn who_was_not_heard_since_may_be_dead() {
        let mut trial = Trial::new();
        trial.complain(1, 0, &[1]);
        trial.complain(2, 0, &[1]);
        assert_eq!(trial.decide(2, Some(1)), [0; 0]);
        trial.complain(3, 0, &[1]);
        assert_eq!(trial.decide(3, None), [1]);
    }

    #[test]
    fn a_complaint_that_is_taken_back_or_old_does_not_count() {
        let mut trial = Trial::new();
        trial.complain(1, 0, &[1]);
        trial.complain(2, 0, &[]);
        assert_eq!(trial.decide(2, None), [0; 0]);
        trial.complain(10, 0, &[1]);
        trial.complain(15, 2, &[3]);
        assert_eq!(trial.decide(16, None), [3]);
        // What was said long ago is not gone on with.
        trial.complain(100, 0, &[1]);
        assert_eq!(trial.decide(100, Some(1)), [0; 0]);
    }

    #[test]
    fn a_member_that_nobody_reaches_goes_though_others_complain_one_by_one() {
        let mut trial = Trial::new();
        trial.complain(1, 3, &[0]);
        assert_eq!(trial.decide(2, None), [3]);
        trial.complain(3, 2, &[0]);
        assert_eq!(trial.decide(4, None), [0]);
    }

    #[test]
    fn of_two_that_stay_apart_the_same_one_goes_each_time() {
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
    fn who_goes_again_and_again_is_kept_out_for_longer() {
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
            // Nor is the other one let in, if this one came back before.
            let barred = partitions.bars(early, &a, |_| true);
            assert_eq!(barred, std::slice::from_ref(&b));
            // There is nobody that it could be apart from.
            assert_eq!(partitions.bars(early, &b, |_| false), []);
        }
        // It was in for long enough.
        now += 121;
        partitions.bar(after(now), &lease, &b, vec![a]);
        assert_eq!(partitions.bars(after(now + 10), &b, |_| true), []);
    }
}
