//! Locks that were used and are idle everywhere leave nothing behind, whatever the algorithm.

use soloist_algorithms::{Choice, NodeId};
use soloist_api::{Fence, LockName};
use soloist_core::locks::{Effects, wire};
use xxhash_rust::xxh3::xxh3_64;

use crate::cluster::Cluster;

const NODES: usize = 4;
const NAMES: usize = 100;

fn name(number: usize) -> LockName {
    LockName::new(&format!("lock/{number}")).unwrap()
}

/// Number of entries on all nodes together.
fn entries(cluster: &Cluster) -> usize {
    cluster.tables.iter().map(|table| table.locks()).sum()
}

#[test]
fn every_algorithm_forgets_locks_that_are_idle_everywhere() {
    let mut left = Vec::new();
    for choice in Choice::all() {
        let mut cluster = Cluster::new(choice, NODES, 1);
        for number in 0..NAMES {
            for node in 0..NODES {
                cluster.use_once((node + number) % NODES, &name(number));
            }
        }
        cluster.rest();
        left.push((choice.name, entries(&cluster)));
    }
    println!("{left:?}");
    assert!(left.iter().all(|(_, entries)| *entries == 0), "{left:?}");
}

/// One offer and one answer for each node that knew the lock and is not its home.
#[test]
fn forgetting_costs_two_messages_for_each_node_that_knew_the_lock() {
    for choice in Choice::all() {
        let mut cluster = Cluster::new(choice, NODES, 1);
        for number in 0..NAMES {
            for node in 0..NODES {
                cluster.use_once(node, &name(number));
            }
        }
        cluster.rest();
        let counts = cluster.tables.iter().map(|table| table.counts());
        let messages: u64 = counts.map(|counts| counts.forgetting).sum();
        println!("{}: {messages} messages for {NAMES} names", choice.name);
        assert!(messages <= 2 * (NODES - 1) as u64 * NAMES as u64);
    }
}

#[test]
fn fences_rise_over_what_was_forgotten() {
    for choice in Choice::all() {
        let mut cluster = Cluster::new(choice, 7, 1);
        for node in [3, 6, 0, 5] {
            // The cluster checks that fences rise.
            cluster.use_once(node, &name(1));
            cluster.rest();
            assert_eq!(entries(&cluster), 0, "{}", choice.name);
        }
    }
}

#[test]
fn locks_held_at_the_start_of_an_epoch_are_forgotten_too() {
    for choice in Choice::all() {
        let mut cluster = Cluster::new(choice, NODES, 1);
        for number in 0..8 {
            let ask = Cluster::ask(None, None);
            cluster.acquire(number % NODES, &name(number), ask).unwrap();
        }
        cluster.deliver_all();
        let early = cluster.hold_of(0, &name(0));
        cluster.change_epoch(2, |cluster| cluster.release(0, early).unwrap());
        for number in 1..8 {
            cluster.deliver_all();
            let hold = cluster.hold_of(number % NODES, &name(number));
            cluster.release(number % NODES, hold).unwrap();
        }
        cluster.use_once(1, &name(2));
        cluster.rest();
        assert_eq!(entries(&cluster), 0, "{}", choice.name);
        for number in 0..8 {
            (0..NODES).for_each(|node| cluster.use_once(node, &name(number)));
        }
        cluster.rest();
        assert_eq!(entries(&cluster), 0, "{}", choice.name);
    }
}

/// The lock is idle on one node, while another one uses it constantly.
#[test]
fn a_lock_that_others_use_is_not_forgotten_and_costs_them_nothing() {
    let choice = Choice::parse("suzuki-kasami", "").unwrap();
    let mut cluster = Cluster::new(choice, 3, 1);
    cluster.use_once(1, &name(0));
    cluster.deliver_all();
    let ask = Cluster::ask(None, None);
    cluster.acquire(2, &name(0), ask.clone()).unwrap();
    cluster.rest();
    let counts = |cluster: &Cluster, node: usize| cluster.tables[node].counts().forgetting;
    let words: u64 = (0..3).map(|node| counts(&cluster, node)).sum();
    assert!(words <= 2, "at most two offered it: {words}");
    assert_eq!(entries(&cluster), 3);
    // A node that has offered the lock requests it again, and is served when it is free.
    cluster.acquire(1, &name(0), ask.clone()).unwrap();
    cluster.acquire(0, &name(0), ask).unwrap();
    cluster.deliver_all();
    for _ in 0..3 {
        let (node, hold) = cluster.holders[&name(0)];
        cluster.release(node, hold).unwrap();
        cluster.deliver_all();
    }
    assert_eq!(cluster.granted.len(), 4);
    cluster.rest();
    assert_eq!(entries(&cluster), 0);
}

fn idle_message(lock: &LockName, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    wire::encode(wire::IDLE, 1, Fence::first_of(1), lock, payload, &mut bytes);
    bytes
}

/// A home takes offers for as many locks as peers may create. Offers beyond that are returned, and
/// the locks continue.
#[test]
fn offers_beyond_the_limit_are_given_back() {
    let choice = Choice::parse("raymond", "").unwrap();
    let mut cluster = Cluster::new(choice, 2, 1);
    let at_first = |name: &LockName| xxh3_64(name.as_str().as_bytes()).is_multiple_of(2);
    let names: Vec<_> = (0..).map(name).filter(at_first).take(2001).collect();
    let mut effects = Effects::new();
    let offer = [0, 1, 0, 0, 0, 0, 0, 0, 0];
    for (number, name) in names.iter().enumerate() {
        let bytes = idle_message(name, &offer);
        let table = &mut cluster.tables[0];
        let received = table.receive(cluster.now, NodeId::new(1), &bytes, &mut effects);
        received.unwrap();
        assert_eq!(effects.sends().count(), usize::from(number == 2000));
    }
    assert_eq!(cluster.tables[0].locks(), 0);
    let twice = idle_message(&names[0], &offer);
    let table = &mut cluster.tables[0];
    let refused = table.receive(cluster.now, NodeId::new(1), &twice, &mut effects);
    let refused = refused.unwrap_err().to_string();
    assert!(refused.ends_with("it was offered before"), "{refused}");
}

/// Whatever messages about idle locks a member sends: nothing panics, no event results, at most one
/// lock is created per message, and a node that is not the home decides nothing.
#[test]
fn any_message_on_an_idle_lock_is_refused_or_harmless() {
    for choice in Choice::all() {
        let mut cluster = Cluster::new(choice, 3, 1);
        let mut effects = Effects::new();
        for number in 0..3 {
            let lock = name(number);
            cluster.use_once(1, &lock);
            cluster.deliver_all();
        }
        for (number, kind) in (0..3).flat_map(|number| (0..7).map(move |kind| (number, kind))) {
            for length in [1, 9, 12] {
                for (from, to) in [(0, 1), (1, 0), (2, 0), (0, 2), (900, 0), (900, 1), (3, 2)] {
                    let bytes = idle_message(&name(number), &vec![kind; length]);
                    let table = &mut cluster.tables[to];
                    let before = table.locks();
                    let from = NodeId::new(from);
                    let _ = table.receive(cluster.now, from, &bytes, &mut effects);
                    assert!(effects.events.is_empty());
                    assert!(table.locks() <= before + 1);
                }
            }
        }
    }
}
