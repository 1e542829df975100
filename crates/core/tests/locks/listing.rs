//! Listing locks, a few at a time.

use std::time::{Duration, Instant};

use soloist_algorithms::Choice;
use soloist_core::limits::Limits;

use crate::cluster::Cluster;
use crate::{name, raymond};

#[test]
fn locks_are_listed_in_the_order_of_their_names_and_none_is_left_out() {
    let mut cluster = raymond(1);
    for number in 0..500 {
        let lock = name(&format!("lock/{number:03}"));
        cluster.acquire(0, &lock, Cluster::ask(None, None)).unwrap();
    }
    let mut told = Vec::new();
    let mut after: Option<String> = None;
    loop {
        let page = cluster.tables[0].views(cluster.now, after.as_deref(), 2000, 1000);
        told.extend(page.locks.into_iter().map(|view| view.name));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    let all: Vec<_> = (0..500).map(|number| format!("lock/{number:03}")).collect();
    assert_eq!(told, all);
}

#[test]
fn one_look_at_the_table_is_bounded_also_if_most_locks_are_idle() {
    let mut cluster = raymond(1);
    for number in 0..100 {
        cluster.use_once(0, &name(&format!("idle/{number:03}")));
    }
    let held = name("the last one");
    cluster.acquire(0, &held, Cluster::ask(None, None)).unwrap();
    assert_eq!(cluster.tables[0].locks(), 101);
    let mut after: Option<String> = None;
    for expected in [Some("idle/039"), Some("idle/079"), None] {
        let page = cluster.tables[0].views(cluster.now, after.as_deref(), 10_000, 40);
        assert_eq!(page.next.as_deref(), expected);
        assert_eq!(page.locks.len(), usize::from(expected.is_none()));
        after = page.next;
    }
}

#[test]
fn a_lock_that_is_forgotten_is_not_listed_and_the_list_goes_on_behind_it() {
    let mut cluster = raymond(1);
    for lock in ["a", "b", "c"] {
        cluster
            .acquire(0, &name(lock), Cluster::ask(None, None))
            .unwrap();
    }
    let hold = cluster.hold_of(0, &name("b"));
    cluster.release(0, hold).unwrap();
    cluster.rest();
    assert_eq!(cluster.tables[0].locks(), 2);
    let page = cluster.tables[0].views(cluster.now, Some("b"), 10_000, 10);
    let names: Vec<_> = page.locks.iter().map(|view| view.name.as_str()).collect();
    assert_eq!((names, page.next), (vec!["c"], None));
}

#[test]
#[ignore = "a measurement"]
fn how_long_the_table_is_busy_when_300_000_locks_are_listed() {
    let raymond = Choice::parse("raymond", "").unwrap();
    let mut cluster = Cluster::with_limits(raymond, 1, 1, Limits::alone(), 1 << 20);
    for number in 0..300_000 {
        let lock = name(&format!("lock/{number:06}"));
        cluster.acquire(0, &lock, Cluster::ask(None, None)).unwrap();
    }
    let (mut calls, mut longest, mut all) = (0, Duration::ZERO, Duration::ZERO);
    let mut after: Option<String> = None;
    let mut told = 0;
    loop {
        #[expect(clippy::disallowed_methods, reason = "a measurement")]
        let begin = Instant::now();
        let page = cluster.tables[0].views(cluster.now, after.as_deref(), 16 << 10, 128);
        let took = begin.elapsed();
        calls += 1;
        longest = longest.max(took);
        all += took;
        told += page.locks.len();
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    println!("{told} locks in {calls} calls: longest {longest:?}, all {all:?}");
}
