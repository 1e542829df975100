//! A leader by itself.

use std::time::Duration;

use soloist_node::Moment;
use soloist_node::epochs::leader::{Leader, LeaderEffects};
use soloist_node::epochs::lease::Lease;
use soloist_node::epochs::message::{ToKeepers, ToMember};
use soloist_node::epochs::roster::{Change, Command, Member, Roster};

use crate::setup::member;

/// These are in the first epoch.
fn roster(members: &[Member]) -> Roster {
    let change = Change {
        epoch: 1,
        members: members.to_vec(),
    };
    let install = Command::Install {
        epoch: 1,
        holds: Vec::new(),
    };
    let mut roster = Roster::default();
    roster.apply(Command::Begin(change));
    roster.apply(install);
    roster
}

/// Keepers may be restarted one by one with another configuration.
#[test]
fn a_new_leader_waits_for_leases_that_were_longer_than_its_own() {
    let (long, short) = (Duration::from_secs(10), Duration::from_secs(1));
    let lease = |length| Lease { length, drift: 5 };
    let mut roster = roster(&[member(0, 1)]);
    for length in [long, short] {
        let lease = lease(length).guarded();
        roster.apply(Command::Lead { lease });
    }
    // The member is never heard of again; somebody granted it a lease right before the election, perhaps.
    let begin = Moment::default();
    let mut leader = Leader::elected(lease(short), begin, &roster);
    let mut act = |now| {
        let mut out = LeaderEffects::default();
        leader.tick(now, &roster, &mut out);
        out.propose
    };
    let over = begin + lease(long).guarded();
    assert_eq!(act(begin + long), None);
    let without = Change {
        epoch: 2,
        members: Vec::new(),
    };
    assert_eq!(act(over), Some(Command::Begin(without)));
}

/// A leader, what it is told, and what it says.
struct Trial {
    leader: Leader,
    roster: Roster,
    renewals: u64,
}

impl Trial {
    fn hear(&mut self, now: Moment, from: &Member, word: ToKeepers) -> LeaderEffects {
        let mut out = LeaderEffects::default();
        let Trial { leader, roster, .. } = self;
        leader.receive(now, roster, from, word, &mut out);
        if out.confirm {
            leader.confirmed(now, roster, &mut out);
        }
        out
    }

    fn renew(&mut self, now: Moment, from: &Member) -> LeaderEffects {
        self.renewals += 1;
        let number = self.renewals;
        let installed = 1;
        self.hear(now, from, ToKeepers::Renew { number, installed })
    }
}

/// One that is done without has lapsed long before its lease is over: an epoch with it would stand still.
#[test]
fn nobody_joins_while_somebody_is_done_without_and_its_lease_runs() {
    let [a, b, c] = [0, 1, 2].map(|index| member(index, 1));
    let lease = Lease::default();
    let after = |millis| Moment::default() + Duration::from_millis(millis);
    let roster = roster(&[a.clone(), b.clone()]);
    let mut trial = Trial {
        leader: Leader::elected(lease, after(0), &roster),
        roster,
        renewals: 0,
    };
    let lives = vec![b.incarnation];
    for second in 1..=2 {
        trial.renew(after(1000 * second), &a);
        trial.renew(after(1000 * second), &b);
        let lives = lives.clone();
        trial.hear(after(1000 * second), &a, ToKeepers::Unreached { lives });
    }
    let refused = trial.renew(after(2500), &b).sends;
    assert_eq!(refused, [(b.clone(), ToMember::NoMember)]);
    // Its last lease runs until 5,150.
    for tenth in 26..=51 {
        let now = after(100 * tenth);
        assert_eq!(trial.renew(now, &a).propose, None);
        assert_eq!(trial.hear(now, &c, ToKeepers::Join).propose, None);
    }
    let next = Change {
        epoch: 2,
        members: vec![a.clone(), c],
    };
    let due = trial.renew(after(5200), &a).propose;
    assert_eq!(due, Some(Command::Begin(next)));
    // Nor is it let in again while they would be apart.
    let again = member(1, 2);
    let refused = trial.hear(after(5200), &again, ToKeepers::Join).sends;
    let apart_from = vec![a.name];
    assert_eq!(refused, [(again, ToMember::KeptOut { apart_from })]);
}
