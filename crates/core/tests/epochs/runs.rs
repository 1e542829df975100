//! Random runs: a phase with faults, then one without, in which all requests must be served.

use rand::RngExt;
use soloist_algorithms::Choice;
use soloist_core::Mutant;
use soloist_core::epochs::pieces::set_piece_bytes;
use soloist_core::locks::set_begun_at_once;

use crate::referee::{Clock, Referee};
use crate::world::World;

const SECOND: u64 = 1_000_000;

/// Injects or repairs one fault.
fn disturb(world: &mut World) {
    let nodes = world.nodes.len();
    let node = world.rng.random_range(0..nodes);
    let other = world.rng.random_range(0..nodes);
    match world.rng.random_range(0..17) {
        0 => world.crash(node),
        1 | 2 => world.start(node),
        3 => world.pause(node),
        4 | 5 => world.go_on(node),
        6 => world.cuts.push((node, other)),
        7 => {
            world.cuts.retain(|cut| *cut != (node, other));
            world.release_held_back();
        }
        8 => {
            world.cuts.clear();
            world.release_held_back();
        }
        9 => world.nodes[node].to_keepers_cut ^= true,
        10 => world.nodes[node].from_keepers_cut ^= true,
        11 => world.elect(),
        12 => world.stop(node),
        13 => world.suspend(node),
        14 => world.isolate_leader(),
        15 => world.nodes[node].away = [0, 0, 300_000, 1_200_000][world.rng.random_range(0..4)],
        _ => world.slowest = [500, 5_000, 50_000][world.rng.random_range(0..3)],
    }
}

fn run(choice: Choice, seed: u64) -> usize {
    let nodes = 1 + (seed % 7) as usize + if seed % 50 == 49 { 18 } else { 0 };
    // Half of the runs have one piece per lock.
    set_piece_bytes(seed.is_multiple_of(2).then_some(1));
    // In a third of them, locks begin an epoch one by one.
    set_begun_at_once(seed.is_multiple_of(3).then_some(1));
    let world = World::new(choice, nodes, 1 + (seed % 3) as u32, seed);
    run_in(world, choice, seed).entries
}

fn run_in(mut world: World, choice: Choice, seed: u64) -> Referee {
    let end = 60 * SECOND;
    while world.now < end {
        let pause = world.rng.random_range(SECOND / 20..3 * SECOND);
        let until = (world.now + pause).min(end);
        world.run_until(until);
        disturb(&mut world);
    }
    // No violation so far, or the referee would have failed the run. From here on there are no
    // faults.
    world.slowest = 5_000;
    world.heal();
    for node in &mut world.nodes {
        node.clients.calm = true;
    }
    let limit = world.now + 120 * SECOND;
    while world
        .nodes
        .iter()
        .any(|node| !node.clients.waiting.is_empty())
    {
        assert!(
            world.now < limit,
            "{}, seed {seed}: somebody waits for ever: {:?}",
            choice.name,
            world.member_states()
        );
        let next = world.now + SECOND;
        world.run_until(next);
    }
    world.referee
}

fn served(world: &World) -> Vec<usize> {
    let nodes = world.nodes.iter();
    nodes.map(|node| node.clients.served).collect()
}

/// Two members cannot reach each other for a long time, although both reach the keepers. One of
/// them is evicted most of the time, and locks continue. When they reach each other again, both are
/// members.
#[test]
fn others_go_on_while_two_members_do_not_reach_each_other() {
    let mut parted = 0;
    for choice in Choice::all() {
        for seed in 0..2 {
            let mut world = World::new(choice, 5, 1, seed);
            world.run_until(5 * SECOND);
            world.cuts = vec![(3, 4), (4, 3)];
            world.run_until(30 * SECOND);
            let before = served(&world);
            // Each attempt to rejoin costs the others a few seconds.
            world.run_until(90 * SECOND);
            let gained = served(&world).into_iter().zip(before);
            let gained: Vec<_> = gained.map(|(now, then)| now - then).collect();
            // Some algorithms arrange these five nodes so that the two exchange no messages.
            parted += usize::from(world.barred > 0);
            assert!(
                gained[..3].iter().all(|gained| *gained > 20),
                "{}, seed {seed}: {gained:?}",
                choice.name
            );
            world.heal();
            let limit = world.now + 240 * SECOND;
            while !world.are_all_members() {
                assert!(world.now < limit, "{:?}", world.member_states());
                let next = world.now + SECOND;
                world.run_until(next);
            }
        }
    }
    assert!(parted > Choice::all().count(), "{parted} runs");
}

/// Clocks run at half or double speed. Leases are meaningless, and nodes rely on locks that others
/// hold. A resource that checks fences still sees them in order: the late holder has the lower
/// fence. And all requests are served.
#[test]
fn fences_tell_holders_apart_when_clocks_run_wildly() {
    let (mut overlaps, mut stale) = (0, 0);
    for choice in Choice::all() {
        for seed in 0..10 {
            let mut world = World::new(choice, 3 + (seed % 3) as usize, 1, seed);
            world.clocks_keep_the_margin = false;
            for (number, node) in world.nodes.iter_mut().enumerate() {
                let faster_by = [-500_000, 0, 1_000_000][(number + seed as usize) % 3];
                node.clock = Clock { faster_by };
            }
            let referee = run_in(world, choice, seed);
            overlaps += referee.overlaps;
            stale += referee.stale;
        }
    }
    println!("{overlaps} overlapped, {stale} came with a stale fence");
    assert!(overlaps > 0, "clocks were not wild enough");
}

fn fails(choice: Choice, seed: u64) -> bool {
    std::panic::catch_unwind(|| run(choice, seed)).is_err()
}

#[test]
fn at_most_one_is_inside_and_everybody_is_served_when_nothing_goes_wrong_any_more() {
    let seeds = match std::env::var("SOLOIST_SEED") {
        Ok(seed) => {
            let seed: u64 = seed.parse().expect("SOLOIST_SEED is a number");
            seed..seed + 1
        }
        Err(_) => 0..75,
    };
    let mut entries = 0;
    for choice in Choice::all() {
        for seed in seeds.clone() {
            let run = std::panic::catch_unwind(|| run(choice, seed));
            entries += run.unwrap_or_else(|_| {
                panic!("{} fails with SOLOIST_SEED={seed}", choice.name);
            });
        }
    }
    println!("{entries} entries");
    assert!(entries > 1000, "something was done: {entries} entries");
}

/// The first run that shows a planted fault, or `None`.
fn caught_by(mutant: Mutant) -> Option<(&'static str, u64)> {
    Mutant::plant(Some(mutant));
    let choices = ["naimi-trehel", "maekawa", "raymond"];
    let choices = choices.map(|name| Choice::parse(name, "").unwrap());
    let mut runs = (0..150).flat_map(|seed| choices.map(|choice| (choice, seed)));
    let caught = runs.find(|&(choice, seed)| fails(choice, seed));
    Mutant::plant(None);
    caught.map(|(choice, seed)| (choice.name, seed))
}

#[test]
fn every_mutant_of_the_epochs_is_caught() {
    // Hides the panic messages of planted faults.
    std::panic::set_hook(Box::new(|_| {}));
    // Only the search shows the first two reliably, and only slow or repeatedly crashing nodes show
    // the others.
    let elsewhere = [
        Mutant::ReleaseForgotten,
        Mutant::EvictAtOnce,
        Mutant::JoinUnprobed,
        Mutant::NoBackOff,
    ];
    let mut missed = Vec::new();
    for mutant in Mutant::ALL {
        if elsewhere.contains(&mutant) {
            continue;
        }
        let run = caught_by(mutant);
        println!("{mutant:?}: {run:?}");
        if run.is_none() {
            missed.push(mutant);
        }
    }
    let _ = std::panic::take_hook();
    assert!(missed.is_empty(), "not caught: {missed:?}");
}
