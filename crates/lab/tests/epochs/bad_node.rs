//! Three healthy nodes and a faulty fourth: how many epochs it causes, and how long the others are
//! frozen.

use std::time::Duration;

use soloist_algorithms::Choice;
use soloist_core::epochs::lease::Lease;
use soloist_core::epochs::member::MemberState;
use soloist_core::epochs::roster::Member;
use soloist_core::{Mutant, Tuning};

use soloist_lab::epochs::setup::index_of;
use soloist_lab::epochs::world::World;

const MILLISECOND: u64 = 1_000;
const SECOND: u64 = 1_000_000;

/// The healthy nodes are 0, 1 and 2.
const BAD: usize = 3;
/// Simulated time, from when the fourth node starts.
const TIME: u64 = 120 * SECOND;
/// Interval at which a crashed node is restarted.
const RESTARTED_EVERY: u64 = 1500 * MILLISECOND;

/// The fault of the fourth node.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Trouble {
    /// Each message between it and the keepers takes this many milliseconds, one way.
    Away(u64),
    /// It crashes when an epoch begins for it.
    DiesInChange,
    /// It crashes once it is a member.
    DiesAsMember,
    /// It leaves in an orderly way once it is a member.
    Leaves,
    /// It constantly reports lost messages.
    Suspects,
}

/// The effect on the cluster.
#[derive(Debug)]
struct Cost {
    epochs: u64,
    /// Share of time in which the average healthy node was frozen, in percent.
    frozen: f64,
    /// How often the fourth node became a member.
    joined: usize,
    /// Number of leases that healthy nodes lost.
    lapsed: usize,
}

fn member_state(world: &World, node: usize) -> Option<MemberState> {
    let participant = world.nodes[node].participant.as_ref();
    participant.map(|participant| participant.member_state())
}

fn is_member(world: &World, node: usize) -> bool {
    matches!(member_state(world, node), Some(MemberState::Member(_)))
}

fn members(world: &World) -> Vec<Member> {
    let healthy = world.nodes[..BAD].iter();
    let healthy = healthy.filter_map(|node| node.participant.as_ref());
    healthy
        .map(|participant| participant.me().clone())
        .collect()
}

fn epoch(world: &World) -> u64 {
    world.roster.begun().map_or(0, |change| change.epoch)
}

fn measure(lease: Duration, trouble: Trouble, seed: u64) -> Cost {
    measure_tuned(Tuning::default(), lease, trouble, seed)
}

fn measure_tuned(tuning: Tuning, lease: Duration, trouble: Trouble, seed: u64) -> Cost {
    let lease = Lease {
        length: lease,
        drift: 5,
    };
    let choice = Choice::parse("naimi-trehel", "").unwrap();
    let mut world = World::tuned(tuning, lease, choice, BAD + 1, 1, seed);
    world.slowest = MILLISECOND / 2;
    world.loss = 0.0;
    world.crash(BAD);
    world.run_until(10 * SECOND);
    let healthy: Vec<_> = (0..BAD).map(|node| is_member(&world, node)).collect();
    assert_eq!(healthy, [true; BAD], "the healthy ones are in");
    if let Trouble::Away(ms) = trouble {
        world.nodes[BAD].away = ms * MILLISECOND;
    }
    let before = (epoch(&world), members(&world));
    let (mut frozen, mut joined, mut was_member) = (0, 0, false);
    let mut misbehaves_at = 0;
    let (begin, end) = (world.now, world.now + TIME);
    while world.now < end {
        let dead_time = (world.now - begin) % RESTARTED_EVERY;
        let restart = world.now + RESTARTED_EVERY - dead_time;
        world.start(BAD);
        while world.now < restart.min(end) {
            let then = world.now;
            let is_frozen = |node: &usize| !is_member(&world, *node);
            let frozen_now = (0..BAD).filter(is_frozen).count() as u64;
            if !world.step(restart.min(end)) {
                world.now = restart.min(end);
            }
            frozen += frozen_now * (world.now - then);
            let is_in = is_member(&world, BAD);
            joined += usize::from(is_in && !was_member);
            was_member = is_in;
            if trouble != Trouble::Suspects || world.now >= misbehaves_at {
                misbehave(&mut world, trouble);
                misbehaves_at = world.now + 100 * MILLISECOND;
            }
        }
    }
    let lapsed = before.1.iter().zip(members(&world));
    Cost {
        epochs: epoch(&world) - before.0,
        frozen: 100.0 * frozen as f64 / (BAD as u64 * TIME) as f64,
        joined,
        lapsed: lapsed.filter(|(then, now)| *then != now).count(),
    }
}

fn misbehave(world: &mut World, trouble: Trouble) {
    let begun = world.roster.begun().expect("others are members");
    let is_begun = world.roster.is_changing() && begun.members.iter().any(|it| index_of(it) == BAD);
    let is_in = is_member(world, BAD);
    match trouble {
        Trouble::Away(_) => {}
        Trouble::DiesInChange if is_begun => world.crash(BAD),
        Trouble::DiesAsMember if is_in => world.crash(BAD),
        Trouble::Leaves if is_in => world.stop(BAD),
        Trouble::Suspects if is_in => {
            world.with(BAD, |participant, _, out| participant.suspect(out));
        }
        _ => {}
    }
}

const SHORT: Duration = Duration::from_millis(500);
const USUAL: Duration = Duration::from_secs(3);

#[test]
fn healthy_nodes_are_hardly_frozen_beside_a_bad_one() {
    for (lease, trouble) in [
        (USUAL, Trouble::Away(520)),
        (SHORT, Trouble::Away(90)),
        (USUAL, Trouble::DiesInChange),
        (USUAL, Trouble::DiesAsMember),
        (USUAL, Trouble::Leaves),
        (SHORT, Trouble::Suspects),
    ] {
        let cost = measure(lease, trouble, 1);
        println!("{trouble:?}, lease {lease:?}: {cost:.2?}");
        assert!(cost.frozen < 1.0, "{trouble:?}: {cost:?}");
        assert_eq!(cost.lapsed, 0, "{trouble:?}: {cost:?}");
    }
}

#[test]
fn a_node_that_is_not_too_far_away_joins_at_once() {
    let cost = measure(USUAL, Trouble::Away(100), 1);
    println!("{cost:.2?}");
    assert_eq!((cost.epochs, cost.joined, cost.lapsed), (1, 1, 0));
    assert!(cost.frozen < 0.25, "{cost:?}");
}

#[test]
fn mutants_of_joining_keep_healthy_nodes_frozen() {
    for (mutant, trouble) in [
        (Mutant::JoinUnprobed, Trouble::Away(520)),
        (Mutant::NoBackOff, Trouble::DiesInChange),
    ] {
        let cost = measure_tuned(Tuning::plant(mutant), USUAL, trouble, 1);
        println!("{mutant:?}: {cost:.2?}");
        assert!(cost.frozen > 1.0, "{mutant:?}: {cost:?}");
    }
}
