//! Members that cannot reach each other, though the keepers reach them all.
//!
//! Locks that need both stand still. So some are done without: few, without whom all others reach each other. They are
//! kept out for a while, which grows each time, because whether they are reached again shows only when they are in.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::lease::Lease;
use crate::Moment;
use crate::config::NodeName;

/// For how many leases somebody is kept out at first, and at most.
const KEPT_OUT: (u32, u32) = (4, 20);

/// Who decides hears others first who complain at about the same time.
const GATHER: Duration = Duration::from_millis(50);

/// Who cannot reach whom, as they say, and who is kept out for it. Members are told apart by their lives.
#[derive(Clone, PartialEq, Eq, Hash, Default, Debug)]
pub(super) struct Rifts {
    /// By who complains.
    complaints: BTreeMap<u64, Complaint>,
    /// When it was last decided who is done without.
    decided: Option<Moment>,
    kept_out: Vec<KeptOut>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Complaint {
    /// When it was said last.
    said: Moment,
    /// Of whom, and when each was named first.
    about: BTreeMap<u64, Moment>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct KeptOut {
    name: NodeName,
    /// Who would not reach it.
    apart_from: Vec<NodeName>,
    until: Moment,
    pause: Duration,
}

impl Rifts {
    /// How many somebody names who reaches nobody.
    pub const NAMED_MAX: usize = 16;

    /// A member says whom it does not reach: all of them, each time.
    pub fn complain(&mut self, now: Moment, from: u64, about: &[u64]) {
        let before = self.complaints.remove(&from);
        let since = |life| before.as_ref().and_then(|before| before.about.get(&life));
        let about = about.iter().take(Self::NAMED_MAX);
        let about = about.map(|&life| (life, since(life).copied().unwrap_or(now)));
        let about = about.collect();
        self.complaints.insert(from, Complaint { said: now, about });
    }

    /// Who is done without, and whom it would be apart from. `members` are those who stay otherwise, in their order, and
    /// when each was heard last: who was heard after somebody complained of it is alive, and only not reached.
    pub fn decide(
        &mut self,
        now: Moment,
        lease: &Lease,
        members: &[(u64, Moment)],
    ) -> Vec<(u64, Vec<u64>)> {
        if self.decided.is_some_and(|at| now.since(at) < GATHER) {
            return Vec::new();
        }
        self.decided = Some(now);
        let patience = lease.patience();
        self.complaints
            .retain(|_, complaint| now.since(complaint.said) <= patience);
        let mut apart = self.rifts(members);
        let mut parted = Vec::new();
        loop {
            let number = |life: u64| apart.get(&life).map_or(0, BTreeSet::len);
            // Of two that are apart from as many others, the one that came later.
            let most = members.iter().max_by_key(|(life, _)| number(*life));
            let Some(&(life, _)) = most.filter(|(life, _)| number(*life) > 0) else {
                return parted;
            };
            let others = apart.remove(&life).expect("it is apart from some");
            for other in &others {
                let of_other = apart.get_mut(other).expect("rifts have two sides");
                of_other.remove(&life);
            }
            parted.push((life, others.into_iter().collect()));
        }
    }

    /// From whom each of these members is apart.
    fn rifts(&self, members: &[(u64, Moment)]) -> BTreeMap<u64, BTreeSet<u64>> {
        let heard: BTreeMap<u64, Moment> = members.iter().copied().collect();
        let mut apart: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
        for (&from, complaint) in &self.complaints {
            for (&about, since) in &complaint.about {
                let is_alive = heard.get(&about).is_some_and(|at| at > since);
                if is_alive && heard.contains_key(&from) && from != about {
                    apart.entry(from).or_default().insert(about);
                    apart.entry(about).or_default().insert(from);
                }
            }
        }
        apart
    }

    /// Somebody is done without.
    pub fn keep_out(
        &mut self,
        now: Moment,
        lease: &Lease,
        name: &NodeName,
        apart_from: Vec<NodeName>,
    ) {
        let (first, most) = KEPT_OUT;
        // Who was in for long enough begins anew.
        self.kept_out
            .retain(|known| now.since(known.until) <= lease.length * most);
        let mut before = self.kept_out.iter();
        let before = before.find(|known| known.name == *name);
        let pause = before.map_or(lease.length * first, |known| known.pause * 2);
        let pause = pause.min(lease.length * most);
        self.kept_out.retain(|known| known.name != *name);
        self.kept_out.push(KeptOut {
            name: name.clone(),
            apart_from,
            until: now + pause,
            pause,
        });
    }

    /// From whom somebody would be apart that wants to come in, if it must wait for that.
    pub fn keeps_out(
        &self,
        now: Moment,
        name: &NodeName,
        is_member: impl Fn(&NodeName) -> bool,
    ) -> Option<&[NodeName]> {
        let mut kept_out = self.kept_out.iter();
        let known = kept_out.find(|known| known.name == *name && now < known.until)?;
        known
            .apart_from
            .iter()
            .any(is_member)
            .then_some(&known.apart_from[..])
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

    /// Who is done without, of members 0 to 4, if these do not reach those, and all are alive.
    fn parted(complaints: &[(u64, &[u64])]) -> Vec<(u64, Vec<u64>)> {
        let mut rifts = Rifts::default();
        for (from, about) in complaints {
            rifts.complain(after(0), *from, about);
        }
        let members: Vec<_> = (0..5).map(|life| (life, after(1))).collect();
        rifts.decide(after(1), &Lease::default(), &members)
    }

    #[test]
    fn of_two_the_later_one_goes() {
        assert_eq!(parted(&[(1, &[3])]), [(3, vec![1])]);
        assert_eq!(parted(&[(3, &[1])]), [(3, vec![1])]);
        assert_eq!(parted(&[(1, &[3]), (3, &[1])]), [(3, vec![1])]);
        assert_eq!(parted(&[]), []);
    }

    #[test]
    fn who_is_apart_from_most_goes_and_nobody_else() {
        assert_eq!(parted(&[(0, &[1, 2, 3, 4])]), [(0, vec![1, 2, 3, 4])]);
        assert_eq!(
            parted(&[(2, &[0]), (3, &[0]), (4, &[0])]),
            [(0, vec![2, 3, 4])]
        );
    }

    #[test]
    fn of_two_groups_one_goes() {
        let parted = parted(&[(0, &[3, 4]), (1, &[3, 4]), (2, &[3, 4])]);
        assert_eq!(parted, [(4, vec![0, 1, 2]), (3, vec![0, 1, 2])]);
    }

    #[test]
    fn who_was_not_heard_since_may_be_dead() {
        let (mut rifts, lease) = (Rifts::default(), Lease::default());
        let members = |heard| [(0, after(9)), (1, after(heard))];
        rifts.complain(after(2), 0, &[1]);
        rifts.complain(after(3), 0, &[1]);
        assert_eq!(rifts.decide(after(3), &lease, &members(2)), []);
        let soon = after(3) + GATHER;
        assert_eq!(rifts.decide(soon, &lease, &members(3)).len(), 1);
        // It does not complain any more.
        assert_eq!(rifts.decide(after(5), &lease, &members(5)), []);
        rifts.complain(after(6), 0, &[1]);
        assert_eq!(rifts.decide(after(6), &lease, &members(6)), []);
        assert_eq!(rifts.decide(after(7), &lease, &members(7)).len(), 1);
        // Who is a member no more is nobody.
        rifts.complain(after(8), 0, &[1]);
        assert_eq!(rifts.decide(after(8), &lease, &[(0, after(9))]), []);
    }

    #[test]
    fn who_goes_again_and_again_is_kept_out_for_longer() {
        let (mut rifts, lease) = (Rifts::default(), Lease::default());
        let (a, b) = (name("a"), name("b"));
        let mut now = 0;
        for leases in [4, 8, 16, 20, 20] {
            rifts.keep_out(after(now), &lease, &b, vec![a.clone()]);
            let is_a = |name: &NodeName| *name == a;
            now += leases * 3;
            let kept_out = rifts.keeps_out(after(now - 1), &b, is_a);
            assert_eq!(kept_out, Some(&[a.clone()][..]), "{leases}");
            assert_eq!(rifts.keeps_out(after(now), &b, is_a), None, "{leases}");
            assert_eq!(rifts.keeps_out(after(now - 1), &a, is_a), None);
            // There is nobody that it could be apart from.
            assert_eq!(rifts.keeps_out(after(now - 1), &b, |_| false), None);
        }
        // It was in for long enough.
        now += 61;
        rifts.keep_out(after(now), &lease, &b, vec![a.clone()]);
        assert_eq!(rifts.keeps_out(after(now + 12), &b, |_| true), None);
    }
}
