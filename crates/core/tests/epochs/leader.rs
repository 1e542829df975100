//! A leader alone.

use std::time::Duration;

use soloist_api::Moment;
use soloist_core::cluster_identity::{ClusterId, ClusterIdentity};
use soloist_core::epochs::leader::{Leader, LeaderEffects};
use soloist_core::epochs::lease::Lease;
use soloist_core::epochs::message::{ToKeepers, ToMember};
use soloist_core::epochs::roster::{Applied, Command, Member, Roster};
use soloist_core::name_hash::NameHash;
use soloist_core::notice::Notice;
use soloist_core::rows::Rows;

use crate::setup::{change, keys, member};

/// A roster with these members in the first epoch.
fn roster(members: &[Member]) -> Roster {
    let mut roster = Roster::default();
    roster.apply(Command::Begin(change(1, members)));
    roster.apply(Command::Install { epoch: 1 });
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
    // The member stays silent. An earlier leader may have granted it a lease right before the
    // election.
    let begin = Moment::default();
    let mut leader = Leader::elected(lease(short), begin, &roster, keys());
    let mut act = |now| {
        let mut out = LeaderEffects::default();
        leader.tick(now, &roster, &mut out);
        out.propose
    };
    let over = begin + lease(long).guarded();
    assert_eq!(act(begin + long), None);
    assert_eq!(act(over), Some(Command::Begin(change(2, &[]))));
}

/// A report that nothing is held.
fn report(epoch: u64) -> ToKeepers {
    report_of(epoch, &[])
}

/// A report that locks with these hashes are held.
fn report_of(epoch: u64, held: &[NameHash]) -> ToKeepers {
    ToKeepers::Report {
        epoch,
        pieces: 1,
        number: 0,
        held: Rows::new(held),
    }
}

fn after(millis: u64) -> Moment {
    Moment::default() + Duration::from_millis(millis)
}

/// A leader, its roster, and the candidates' round-trip time.
struct Trial {
    leader: Leader,
    roster: Roster,
    renewals: u64,
    /// How long candidates take to answer.
    round_trip: Duration,
}

fn is_probe((_, message): &(Member, ToMember)) -> bool {
    matches!(message, ToMember::Probe { .. })
}

impl Trial {
    /// A leader with these members.
    fn new(members: &[Member]) -> Self {
        let roster = roster(members);
        Trial {
            leader: Leader::elected(Lease::default(), Moment::default(), &roster, keys()),
            roster,
            renewals: 0,
            round_trip: Duration::ZERO,
        }
    }

    /// Elects another keeper.
    fn elect(&mut self, now: Moment) {
        self.leader = Leader::elected(Lease::default(), now, &self.roster, keys());
    }

    /// Applies what the leader proposes at this time, and what follows from it. Returns the first
    /// command.
    fn tick(&mut self, now: Moment) -> Option<Command> {
        let mut out = LeaderEffects::default();
        self.leader.tick(now, &self.roster, &mut out);
        self.carry_out(now, out.propose)
    }

    fn carry_out(&mut self, now: Moment, command: Option<Command>) -> Option<Command> {
        let applied = self.roster.apply(command.clone()?);
        assert_eq!(applied, Applied::Done, "{command:?}");
        let mut out = LeaderEffects::default();
        self.leader.applied(now, &self.roster, &mut out);
        self.carry_out(now, out.propose);
        command
    }

    fn receive(&mut self, now: Moment, from: &Member, message: ToKeepers) -> LeaderEffects {
        let mut out = LeaderEffects::default();
        let round_trip = self.round_trip;
        let Trial { leader, roster, .. } = self;
        leader.receive(now, roster, from, message, &mut out);
        while let Some(place) = out.sends.iter().position(is_probe) {
            let (to, probe) = out.sends.remove(place);
            let ToMember::Probe { number } = probe else {
                unreachable!("it is a probe");
            };
            let answered = now + round_trip;
            leader.receive(
                answered,
                roster,
                &to,
                ToKeepers::Probed { number },
                &mut out,
            );
        }
        if out.confirm {
            leader.confirmed(now, roster, &mut out);
        }
        out
    }

    /// A renewal of a member that has installed the last epoch.
    fn renew(&mut self, now: Moment, from: &Member) -> LeaderEffects {
        let installed = self.roster.installed().unwrap_or(0);
        self.renew_after(now, from, installed)
    }

    /// A renewal of a member that has installed this epoch last.
    fn renew_after(&mut self, now: Moment, from: &Member, installed: u64) -> LeaderEffects {
        self.renewals += 1;
        let number = self.renewals;
        self.receive(now, from, ToKeepers::Renew { number, installed })
    }
}

/// A member whose fences are used up gets an epoch with new ones. A message about an earlier epoch
/// changes nothing.
#[test]
fn used_up_fences_begin_another_epoch() {
    let a = member(0, 1);
    let now = Moment::default() + Duration::from_secs(1);
    let mut trial = Trial::new(std::slice::from_ref(&a));
    let late = trial.receive(now, &a, ToKeepers::Exhausted { epoch: 0 });
    assert_eq!(late.propose, None);
    let now = now + Duration::from_millis(1);
    let begun = trial.receive(now, &a, ToKeepers::Exhausted { epoch: 1 });
    assert_eq!(begun.propose, Some(Command::Begin(change(2, &[a]))));
}

#[test]
fn no_epoch_begins_beyond_the_generation() {
    let a = member(0, 1);
    let mut cluster = ClusterIdentity::new(ClusterId::from_bytes([7; 16]), 1);
    cluster.generation.number = 7;
    let roster = roster(std::slice::from_ref(&a)).recovered(cluster);
    let last = cluster.generation.last_epoch();
    // As if all but one of its epochs were used up.
    let bytes = postcard::to_allocvec(&roster).unwrap();
    let first = postcard::to_allocvec(&cluster.generation.first_epoch()).unwrap();
    for (epoch, begins) in [(last - 1, true), (last, false)] {
        let place = bytes.windows(first.len()).position(|part| part == first);
        let rest = &bytes[place.unwrap() + first.len()..];
        let moved = postcard::to_allocvec(&epoch).unwrap();
        let moved = [&bytes[..place.unwrap()], &moved, rest].concat();
        let roster: Roster = postcard::from_bytes(&moved).unwrap();
        assert_eq!(roster.begun().unwrap().epoch, epoch);
        let mut leader = Leader::elected(Lease::default(), Moment::default(), &roster, keys());
        let mut out = LeaderEffects::default();
        // Its member stays silent, so it would be evicted.
        let later = Moment::default() + Duration::from_secs(60);
        leader.tick(later, &roster, &mut out);
        assert_eq!(out.propose.is_some(), begins, "{epoch}");
    }
}

/// An evicted member has lapsed long before its lease ends at the leader, so an epoch that includes
/// it would make no progress.
#[test]
fn nobody_joins_while_an_evicted_members_lease_runs() {
    let [a, b, c] = [0, 1, 2].map(|index| member(index, 1));
    let mut trial = Trial::new(&[a.clone(), b.clone()]);
    let incarnations = vec![b.incarnation];
    for second in 1..=2 {
        trial.renew(after(1000 * second), &a);
        trial.renew(after(1000 * second), &b);
        let incarnations = incarnations.clone();
        let unreached = ToKeepers::Unreached { incarnations };
        trial.receive(after(1000 * second), &a, unreached);
    }
    let refused = trial.renew(after(2500), &b).sends;
    assert_eq!(refused, [(b.clone(), ToMember::NoMember)]);
    // Its last lease runs until 5,158.
    for tenth in 26..=51 {
        let now = after(100 * tenth);
        assert_eq!(trial.renew(now, &a).propose, None);
        assert_eq!(trial.receive(now, &c, ToKeepers::Join).propose, None);
    }
    let next = change(2, &[a.clone(), c]);
    let due = trial.renew(after(5200), &a).propose;
    assert_eq!(due, Some(Command::Begin(next)));
    // Nor may it rejoin while the two would be apart.
    let again = member(1, 2);
    let refused = trial.receive(after(5200), &again, ToKeepers::Join).sends;
    let apart_from = vec![a.name];
    assert_eq!(refused, [(again, ToMember::Barred { apart_from })]);
}

fn names(command: &Option<Command>) -> Vec<&str> {
    match command {
        Some(Command::Begin(change)) => {
            let members = change.members.iter();
            members.map(|member| member.name.as_str()).collect()
        }
        _ => Vec::new(),
    }
}

#[test]
fn an_epoch_begins_for_a_candidate_that_answers_in_time() {
    let [a, b] = [0, 1].map(|index| member(index, 1));
    for (round_trip, joins) in [(200, true), (500, true), (501, false), (1040, false)] {
        let mut trial = Trial::new(std::slice::from_ref(&a));
        trial.round_trip = Duration::from_millis(round_trip);
        let answer = trial.receive(after(0), &b, ToKeepers::Join);
        let took = trial.round_trip;
        let limit = Duration::from_millis(500);
        let slow = ToMember::TooSlow { took, limit };
        let is_told = answer.sends.contains(&(b.clone(), slow));
        assert_eq!(is_told, !joins, "{round_trip}");
        let begun = trial.tick(after(1500));
        let expected: &[&str] = if joins { &["n0", "n1"] } else { &[] };
        assert_eq!(names(&begun), expected, "{round_trip}");
    }
}

/// A candidate is part of the next epoch and crashes. The others wait for its report no longer than
/// the report may take.
#[test]
fn a_node_that_does_not_report_waits_longer_each_time_also_for_the_next_leader() {
    let a = member(0, 1);
    let mut trial = Trial::new(std::slice::from_ref(&a));
    let mut now = 0;
    for (start, pause) in [1, 2, 4, 8, 16, 32].into_iter().enumerate() {
        trial.renew(after(now), &a);
        let b = member(1, 1 + start as u64);
        trial.receive(after(now), &b, ToKeepers::Join);
        let begun = trial.tick(after(now + 50));
        assert_eq!(names(&begun), ["n0", "n1"]);
        let epoch = trial.roster.next_epoch() - 1;
        trial.receive(after(now + 60), &a, report(epoch));
        assert_eq!(trial.tick(after(now + 150)), None, "it may still report");
        let begun = trial.tick(after(now + 160));
        assert_eq!(names(&begun), ["n0"], "it had enough time");
        let reported = trial.receive(after(now + 160), &a, report(epoch + 1));
        let install = trial.carry_out(after(now + 160), reported.propose);
        assert!(matches!(install, Some(Command::Install { .. })));
        assert_eq!(trial.roster.held_off()[0].pause.as_secs(), pause);
        now += 160;
        if start % 2 == 1 {
            trial.elect(after(now));
        }
        // Whatever its incarnation.
        let again = member(1, 100 + start as u64);
        let early = now + 1000 * pause - 1;
        for second in 0..pause {
            trial.renew(after(now + 1000 * second), &a);
        }
        let refused = trial.receive(after(early), &again, ToKeepers::Join).sends;
        let left = Duration::from_millis(1);
        assert_eq!(refused, [(again, ToMember::HeldOff { left })], "{pause} s");
        now += 1000 * pause;
    }
}

/// Changes that could come later must not come all the time.
#[test]
fn suspicions_begin_a_limited_number_of_epochs() {
    let a = member(0, 1);
    let mut trial = Trial::new(std::slice::from_ref(&a));
    let first = trial.roster.next_epoch();
    for second in 0..240 {
        let now = after(1000 * second);
        let epoch = trial.roster.next_epoch() - 1;
        let renewed = trial.renew(now, &a);
        trial.carry_out(now, renewed.propose);
        let suspected = trial.receive(now, &a, ToKeepers::Suspect { epoch });
        trial.carry_out(now, suspected.propose);
        let epoch = trial.roster.next_epoch() - 1;
        let reported = trial.receive(now, &a, report(epoch));
        trial.carry_out(now, reported.propose);
    }
    let changes = trial.roster.next_epoch() - first;
    // One per lease of 3 s.
    assert_eq!(changes, 80);
}

/// Both hold the lock, or locks whose names have the same hash. No epoch starts with either.
#[test]
fn members_that_report_the_same_lock_are_both_evicted() {
    let members = [0, 1, 2].map(|index| member(index, 1));
    let mut trial = Trial::new(&members);
    for from in &members {
        trial.renew(after(0), from);
    }
    let begun = trial.receive(after(10), &members[0], ToKeepers::Suspect { epoch: 1 });
    trial.carry_out(after(10), begun.propose);
    let hash = |byte| NameHash::from_bytes([byte; 16]);
    let reports = [
        vec![hash(1), hash(2), hash(9)],
        vec![hash(3), hash(9)],
        vec![hash(4)],
    ];
    let mut twice = Vec::new();
    for (from, held) in members.iter().zip(&reports) {
        let out = trial.receive(after(20), from, report_of(2, held));
        assert_eq!(out.propose, None);
        twice.extend(out.notices.into_iter().filter_map(|notice| match notice {
            Notice::HeldTwice(members) => Some(members),
            _ => None,
        }));
    }
    assert_eq!(twice, [[members[0].name.clone(), members[1].name.clone()]]);
    // They are granted no more leases, and the next epoch begins when theirs have ended.
    for tenth in 1..=31 {
        let renewed = members.each_ref().map(|from| {
            let out = trial.renew(after(100 * tenth), from);
            assert_eq!((out.propose, out.notices.len()), (None, 0), "{tenth}");
            matches!(out.sends.last(), Some((_, ToMember::Granted { .. })))
        });
        assert_eq!(renewed, [false, false, true], "{tenth}");
    }
    let next = trial.renew(after(3200), &members[2]).propose;
    let alone = change(3, &members[2..]);
    assert_eq!(next, Some(Command::Begin(alone)));
}

/// The pieces that are sent for the installed epoch.
fn installs(out: &LeaderEffects) -> Vec<(u32, usize)> {
    let sends = out.sends.iter();
    let pieces = sends.filter_map(|(_, message)| match message {
        ToMember::Install { pieces, first, .. } => {
            Some((*pieces, first.as_ref().map_or(0, |first| first.len())))
        }
        _ => None,
    });
    pieces.collect()
}

/// Only the leader that installed an epoch knows what was held. If it dies before all members have
/// installed that epoch, the next leader begins another one.
#[test]
fn a_leader_that_does_not_know_what_was_held_begins_another_epoch() {
    let members = [0, 1].map(|index| member(index, 1));
    let mut trial = Trial::new(&members);
    for from in &members {
        trial.renew(after(0), from);
    }
    let begun = trial.receive(after(10), &members[0], ToKeepers::Suspect { epoch: 1 });
    trial.carry_out(after(10), begun.propose);
    let held = [NameHash::from_bytes([1; 16])];
    trial.receive(after(20), &members[0], report_of(2, &held));
    let reported = trial.receive(after(20), &members[1], report(2));
    assert_eq!(reported.propose, Some(Command::Install { epoch: 2 }));
    assert_eq!(installs(&reported), []);
    trial.carry_out(after(30), reported.propose);
    // This leader knows it.
    let late = trial.renew_after(after(40), &members[0], 1);
    assert_eq!((installs(&late), late.propose), (vec![(1, 1)], None));
    trial.elect(after(100));
    // The next one need not, as long as all members have installed the epoch.
    for from in &members {
        let renewed = trial.renew(after(110), from);
        assert_eq!((installs(&renewed), renewed.propose), (vec![], None));
    }
    let late = trial.renew_after(after(120), &members[1], 1);
    assert_eq!(installs(&late), []);
    assert_eq!(late.propose, Some(Command::Begin(change(3, &members))));
}
