//! The lock table: local rules one by one, and whole clusters of tables in random runs.

mod cluster;
mod forgetting;
mod late;
mod listing;
mod quotas;
mod random;
mod random_sessions;
mod requests;
mod sessions;
mod unseen;

use std::time::Duration;

use cluster::{Cluster, FORGET_AFTER};
use soloist_algorithms::Choice;
use soloist_api::Moment;
use soloist_api::{EndReason, Fence, LockName};
use soloist_core::limits::Limits;
use soloist_core::locks::{Denial, HoldError, LockEvent, RequestError};
use soloist_core::record::Recorder;

fn raymond(nodes: usize) -> Cluster {
    Cluster::new(Choice::parse("raymond", "").unwrap(), nodes, 1)
}

fn name(text: &str) -> LockName {
    LockName::new(text).unwrap()
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn one_node_alone_grants_at_once_and_in_order() {
    let mut cluster = raymond(1);
    let lock = name("a");
    let first = cluster.acquire(0, &lock, Cluster::ask(None, None)).unwrap();
    let second = cluster.acquire(0, &lock, Cluster::ask(None, None)).unwrap();
    let third = cluster.acquire(0, &lock, Cluster::ask(None, None)).unwrap();
    for ticket in [first, second, third] {
        assert_eq!(cluster.granted.last().unwrap().1, ticket);
        let hold = cluster.hold_of(0, &lock);
        cluster.release(0, hold).unwrap();
    }
    cluster.rest();
    assert_eq!(cluster.tables[0].locks(), 0, "the lock is forgotten");
}

/// The fences of an epoch are used up. No request is refused, and no fence is granted twice.
/// Waiters get the lock in the next epoch.
#[test]
fn waiters_wait_for_the_next_epoch_when_fences_are_used_up() {
    let mut cluster = raymond(2);
    let lock = name("a");
    let last = Fence::from_number(Fence::first_of(2).number() - 1);
    cluster.use_once(0, &lock);
    cluster.use_once(1, &lock);
    assert!(!cluster.tables[0].is_exhausted() && !cluster.tables[1].is_exhausted());
    // Node 0 requests it, and the answer tells it that all but one of the fences have been used.
    let one = cluster.acquire(0, &lock, Cluster::ask(None, None)).unwrap();
    let two = cluster.acquire(0, &lock, Cluster::ask(None, None)).unwrap();
    cluster.raise_fences(Fence::from_number(last.number() - 1));
    cluster.deliver_all();
    let (_, ticket, grant) = cluster.granted.last().unwrap();
    assert_eq!((*ticket, grant.fence), (one, last));
    let hold = cluster.hold_of(0, &lock);
    cluster.release(0, hold).unwrap();
    cluster.deliver_all();
    assert!(cluster.tables[0].is_exhausted());
    assert!(cluster.denied.is_empty());
    assert_eq!(cluster.granted.last().unwrap().1, one);
    assert_eq!(cluster.tables[0].held(), []);
    cluster.change_epoch(2, |_| {});
    cluster.deliver_all();
    let (_, ticket, grant) = cluster.granted.last().unwrap();
    assert_eq!(*ticket, two);
    assert!(grant.fence > last && grant.fence.epoch() == 2);
    assert!(!cluster.tables[0].is_exhausted());
}

/// Very many locks begin an epoch a few at a time. Those that are needed begin immediately,
/// whatever their position.
#[test]
fn many_locks_begin_an_epoch_in_steps_starting_with_those_in_use() {
    let choice = Choice::parse("raymond", "").unwrap();
    let mut cluster = Cluster::with_limits(choice, 2, 1, Limits::alone(), 10_000);
    let held: Vec<_> = (0..4000).map(|n| name(&format!("held/{n:04}"))).collect();
    for lock in &held {
        cluster.acquire(0, lock, Cluster::ask(None, None)).unwrap();
        cluster.deliver_all();
    }
    let waiter = cluster
        .acquire(1, &held[3000], Cluster::ask(None, None))
        .unwrap();
    // It is released between two epochs, and passed on at the beginning of the next.
    let hold = cluster.hold_of(0, &held[3000]);
    cluster.change_epoch(2, |cluster| cluster.release(0, hold).unwrap());
    let at_once = Some(Moment::default());
    assert_eq!(cluster.tables[0].next_deadline(), at_once);
    cluster.deliver_all();
    assert_eq!(cluster.granted.last().unwrap().1, waiter);
    // A lock whose turn has not come yet moves to another node that requests it, when it is
    // released.
    let asked = cluster
        .acquire(1, &held[3999], Cluster::ask(None, None))
        .unwrap();
    let hold = cluster.hold_of(0, &held[3999]);
    cluster.release(0, hold).unwrap();
    cluster.deliver_all();
    assert_eq!(cluster.granted.last().unwrap().1, asked);
    let mut steps = 1;
    while cluster.tables[0].next_deadline() == at_once {
        cluster.tick(0);
        steps += 1;
    }
    assert_eq!(steps, 4, "a thousand and a few locks at a time");
    assert_eq!(cluster.tables[0].holds(), 3998);
    // If an epoch ends before all locks have begun it, no hold is lost.
    cluster.change_epoch(3, |_| {});
    assert_eq!(cluster.tables[0].next_deadline(), at_once);
    cluster.change_epoch(4, |_| {});
    cluster.deliver_all();
    assert_eq!(cluster.tables[0].holds(), 3998);
    assert_eq!(cluster.tables[0].held().len(), 3998);
}

#[test]
fn a_lock_that_is_used_again_soon_is_not_forgotten() {
    let mut cluster = raymond(1);
    let lock = name("a");
    for _ in 0..5 {
        cluster.acquire(0, &lock, Cluster::ask(None, None)).unwrap();
        let hold = cluster.hold_of(0, &lock);
        cluster.release(0, hold).unwrap();
        cluster.now = cluster.now + FORGET_AFTER / 2;
        cluster.tick(0);
        assert_eq!(cluster.tables[0].locks(), 1);
    }
    cluster.now = cluster.now + FORGET_AFTER;
    cluster.tick(0);
    assert_eq!(cluster.tables[0].locks(), 0);
}

#[test]
fn a_lock_moves_between_nodes() {
    let mut cluster = raymond(5);
    let lock = name("a");
    for node in [3, 0, 4, 4, 1] {
        cluster.use_once(node, &lock);
    }
    assert_eq!(cluster.granted.len(), 5);
}

#[test]
fn a_waiter_that_disconnects_is_skipped() {
    let mut cluster = raymond(3);
    let lock = name("a");
    for node in 0..3 {
        cluster
            .acquire(node, &lock, Cluster::ask(None, None))
            .unwrap();
    }
    cluster.deliver_all();
    let (holder, held, _) = cluster.granted[0];
    assert!(!cluster.cancel(holder, held), "it is not queued");
    let gone = (holder + 1) % 3;
    let ticket = cluster
        .acquire(gone, &lock, Cluster::ask(None, None))
        .unwrap();
    assert!(cluster.cancel(gone, ticket));
    let hold = cluster.hold_of(holder, &lock);
    cluster.release(holder, hold).unwrap();
    cluster.deliver_all();
    let (second, hold) = cluster.holders[&lock];
    cluster.release(second, hold).unwrap();
    cluster.deliver_all();
    let (third, hold) = cluster.holders[&lock];
    cluster.release(third, hold).unwrap();
    cluster.deliver_all();
    assert_eq!(cluster.granted.len(), 3);
    assert!(cluster.holders.is_empty());
}

#[test]
fn a_grant_that_nobody_claims_is_passed_on() {
    let mut cluster = raymond(3);
    let lock = name("a");
    cluster.acquire(0, &lock, Cluster::ask(None, None)).unwrap();
    cluster.deliver_all();
    let waits = cluster.acquire(1, &lock, Cluster::ask(None, None)).unwrap();
    cluster.acquire(2, &lock, Cluster::ask(None, None)).unwrap();
    cluster.deliver_all();
    assert!(cluster.cancel(1, waits));
    let hold = cluster.hold_of(0, &lock);
    cluster.release(0, hold).unwrap();
    cluster.deliver_all();
    cluster.hold_of(2, &lock);
    assert_eq!(cluster.tables[1].counts().unclaimed, 1);
}

#[test]
fn a_waiter_that_times_out_gets_nothing() {
    let mut cluster = raymond(2);
    let lock = name("a");
    cluster.acquire(0, &lock, Cluster::ask(None, None)).unwrap();
    cluster.deliver_all();
    let until = cluster.now + seconds(3);
    let ticket = cluster.acquire(1, &lock, Cluster::ask(None, Some(until)));
    assert_eq!(cluster.tables[1].next_deadline(), Some(until));
    cluster.now = cluster.now + seconds(2);
    cluster.tick(1);
    assert!(cluster.denied.is_empty());
    cluster.now = until;
    cluster.tick(1);
    assert_eq!(cluster.denied, [(1, ticket.unwrap(), Denial::NotGranted)]);
    assert_eq!(cluster.tables[1].waiters(), 0);
}

#[test]
fn a_hold_that_is_not_renewed_ends_and_the_next_one_enters() {
    let mut cluster = raymond(2);
    let lock = name("a");
    let ask = Cluster::ask(Some(seconds(10)), None);
    cluster.acquire(0, &lock, ask.clone()).unwrap();
    cluster.deliver_all();
    let hold = cluster.hold_of(0, &lock);
    cluster.acquire(1, &lock, ask).unwrap();
    cluster.now = cluster.now + seconds(8);
    let renewed = cluster.tables[0].renew(cluster.now, hold, None);
    assert_eq!(renewed, Ok(Some(Moment::default() + seconds(18))));
    cluster.now = Moment::default() + seconds(17);
    cluster.tick(0);
    assert!(cluster.ended.is_empty());
    cluster.now = Moment::default() + seconds(18);
    cluster.tick(0);
    assert_eq!(cluster.ended, [(hold, EndReason::Expired)]);
    cluster.deliver_all();
    cluster.hold_of(1, &lock);
    let late = cluster.release(0, hold);
    assert_eq!(late, Err(HoldError::Ended(EndReason::Expired)));
    let late = cluster.tables[0].renew(cluster.now, hold, None);
    assert_eq!(late, Err(HoldError::Ended(EndReason::Expired)));
    cluster.hold_of(1, &lock);
}

/// The client may never read the answer, and then relies on what it was promised before.
#[test]
fn a_renewal_with_a_shorter_time_to_live_ends_no_hold_before_its_promise() {
    let mut cluster = raymond(1);
    let ask = Cluster::ask(Some(seconds(10)), None);
    cluster.acquire(0, &name("a"), ask).unwrap();
    let hold = cluster.hold_of(0, &name("a"));
    let promised = Some(cluster.now + seconds(10));
    assert_eq!(cluster.tables[0].expires(hold), Ok(promised));
    let renewed = cluster.tables[0].renew(cluster.now, hold, Some(seconds(1)));
    assert_eq!(renewed, Ok(promised));
    // Later renewals have the new time to live.
    cluster.now = cluster.now + seconds(9) + Duration::from_millis(500);
    cluster.tick(0);
    let renewed = cluster.tables[0].renew(cluster.now, hold, None);
    assert_eq!(renewed, Ok(Some(cluster.now + seconds(1))));
    cluster.now = cluster.now + seconds(1);
    cluster.tick(0);
    assert_eq!(cluster.ended, [(hold, EndReason::Expired)]);
}

#[test]
fn nobody_releases_twice_or_for_another() {
    let mut cluster = raymond(2);
    cluster
        .acquire(0, &name("a"), Cluster::ask(None, None))
        .unwrap();
    cluster.deliver_all();
    let hold = cluster.hold_of(0, &name("a"));
    assert_eq!(cluster.release(1, hold), Err(HoldError::Unknown));
    cluster.release(0, hold).unwrap();
    let twice = cluster.release(0, hold);
    assert_eq!(twice, Err(HoldError::Ended(EndReason::Released)));
}

#[test]
fn a_node_serves_no_more_of_its_own_than_its_turns() {
    let choice = Choice::parse("raymond", "").unwrap();
    let mut cluster = Cluster::new(choice, 2, 3);
    let lock = name("a");
    cluster.acquire(0, &lock, Cluster::ask(None, None)).unwrap();
    cluster.deliver_all();
    for _ in 0..5 {
        cluster.acquire(0, &lock, Cluster::ask(None, None)).unwrap();
    }
    cluster.acquire(1, &lock, Cluster::ask(None, None)).unwrap();
    cluster.deliver_all();
    for _ in 0..7 {
        let (node, hold) = cluster.holders[&lock];
        cluster.release(node, hold).unwrap();
        cluster.deliver_all();
    }
    let served: Vec<_> = cluster.granted.iter().map(|(node, ..)| *node).collect();
    assert_eq!(served, [0, 0, 0, 1, 0, 0, 0]);
}

#[test]
fn a_time_to_live_is_positive_and_within_the_limit() {
    let mut cluster = raymond(1);
    for ttl in [Duration::ZERO, seconds(3601)] {
        let refused = cluster.acquire(0, &name("a"), Cluster::ask(Some(ttl), None));
        let refused = refused.unwrap_err();
        assert!(matches!(refused, RequestError::Ttl { .. }));
        assert!(refused.to_string().contains("at most 3600s"), "{refused}");
    }
    assert_eq!(cluster.tables[0].locks(), 0);
}

#[test]
fn a_stopping_node_keeps_holds_and_grants_nothing_new() {
    let mut cluster = raymond(1);
    let lock = name("a");
    cluster.acquire(0, &lock, Cluster::ask(None, None)).unwrap();
    let waits = cluster.acquire(0, &lock, Cluster::ask(None, None)).unwrap();
    cluster.stop(0);
    assert_eq!(cluster.denied, [(0, waits, Denial::NodeStopped)]);
    let late = cluster.acquire(0, &lock, Cluster::ask(None, None));
    assert_eq!(late, Err(RequestError::Stopping));
    let hold = cluster.hold_of(0, &lock);
    cluster.release(0, hold).unwrap();
}

#[test]
fn limits_are_reported() {
    let mut cluster = raymond(1);
    for number in 0..1000 {
        let lock = name(&format!("lock/{number}"));
        cluster.acquire(0, &lock, Cluster::ask(None, None)).unwrap();
    }
    let refused = cluster.acquire(0, &name("one more"), Cluster::ask(None, None));
    assert_eq!(refused, Err(RequestError::LocksFull(1000)));
}

#[test]
fn holders_and_waiters_are_shown() {
    let mut cluster = raymond(1);
    let lock = name("a");
    assert_eq!(cluster.tables[0].view(cluster.now, &lock), None);
    let ask = Cluster::ask(Some(seconds(10)), None);
    cluster.acquire(0, &lock, ask.clone()).unwrap();
    cluster.acquire(0, &name("b"), ask.clone()).unwrap();
    cluster.now = cluster.now + seconds(4);
    cluster.acquire(0, &lock, ask).unwrap();
    cluster.now = cluster.now + seconds(1);
    let view = cluster.tables[0].view(cluster.now, &lock).unwrap();
    let holder = view.holder.unwrap();
    assert_eq!(holder.held_for, seconds(5));
    assert_eq!(holder.expires_in, Some(seconds(5)));
    assert_eq!(view.waiters[0].waited_for, seconds(1));
    let page = cluster.tables[0].views(cluster.now, None, 10_000, 10);
    assert_eq!(page.next, None);
    let names: Vec<_> = page.locks.iter().map(|view| view.name.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    let page = cluster.tables[0].views(cluster.now, Some("a"), 10_000, 10);
    assert_eq!((page.locks[0].name.as_str(), page.next), ("b", None));
    let page = cluster.tables[0].views(cluster.now, None, 1, 10);
    assert_eq!((page.locks.len(), page.next.as_deref()), (1, Some("a")));
}

#[test]
fn the_longest_wait_is_that_of_the_oldest_waiter() {
    let mut cluster = raymond(1);
    let (a, b) = (name("a"), name("b"));
    let ask = || Cluster::ask(None, None);
    cluster.acquire(0, &a, ask()).unwrap();
    cluster.acquire(0, &b, ask()).unwrap();
    let longest = |cluster: &Cluster| cluster.tables[0].longest_wait(cluster.now);
    assert_eq!(longest(&cluster), None, "holders do not wait");
    let first = cluster.acquire(0, &b, ask()).unwrap();
    cluster.now = cluster.now + seconds(3);
    cluster.acquire(0, &a, ask()).unwrap();
    cluster.now = cluster.now + seconds(1);
    assert_eq!(longest(&cluster), Some(seconds(4)));
    let table = &cluster.tables[0];
    let (by_age, next) = table.waits_by_age(cluster.now, None, 1);
    assert_eq!((&by_age[0].name, by_age.len()), (&b, 1));
    assert_eq!(by_age[0].waited_for, Some(seconds(4)));
    let (by_age, next) = table.waits_by_age(cluster.now, next, 2);
    assert_eq!((&by_age[0].name, by_age.len(), next), (&a, 1, None));
    let (by_name, next) = table.waits_by_name(cluster.now, None, 1);
    assert_eq!((&by_name[0].name, next), (&a, Some(a.clone())));
    assert_eq!(by_name[0].held_for, Some(seconds(4)));
    let (by_name, next) = table.waits_by_name(cluster.now, Some("a"), 2);
    assert_eq!((&by_name[0].name, next), (&b, None));
    let mut effects = soloist_core::locks::Effects::new();
    cluster.tables[0].cancel(cluster.now, first, &mut effects);
    assert_eq!(longest(&cluster), Some(seconds(1)));
}

#[test]
fn the_longest_waits_are_told_once_for_each_lock() {
    let mut cluster = raymond(1);
    let a = name("a");
    let mut recorder = Recorder::new(1);
    cluster.acquire(0, &a, Cluster::ask(None, None)).unwrap();
    let mut wait = |recorder: &mut Recorder, at_ms: u64, lock: &str| {
        let ticket = cluster.acquire(0, &a, Cluster::ask(None, None)).unwrap();
        let waiting = LockEvent::Waiting {
            ticket,
            lock: name(lock),
            owner: lock.into(),
        };
        recorder.note(at_ms, &waiting);
    };
    let told = |recorder: &Recorder, since_ms: u64| {
        let long = recorder.long_waits(since_ms);
        let waits = long.waits.iter();
        let waits = waits.map(|wait| (wait.lock.to_string(), wait.since_ms));
        (waits.collect::<Vec<_>>(), long.has_more)
    };
    for (at_ms, lock) in (1..).zip(["x", "x", "y", "x", "z", "y"]) {
        wait(&mut recorder, at_ms, lock);
    }
    let [x, y, z] = [("x", 1), ("y", 3), ("z", 5)].map(|(lock, ms)| (lock.to_owned(), ms));
    let all = vec![x.clone(), y.clone(), z];
    assert_eq!(told(&recorder, 0), (vec![], false));
    assert_eq!(told(&recorder, 4), (vec![x, y], false));
    assert_eq!(told(&recorder, 9), (all.clone(), false));
    wait(&mut recorder, 9, "w");
    assert_eq!(told(&recorder, 8), (all.clone(), false));
    assert_eq!(told(&recorder, 9), (all, true));

    // Not all of the waiters for one lock are examined.
    let mut recorder = Recorder::new(1);
    for at_ms in 1..=1025 {
        wait(&mut recorder, at_ms, "x");
    }
    let x = vec![("x".to_owned(), 1)];
    assert_eq!(told(&recorder, 1024), (x.clone(), false));
    assert_eq!(told(&recorder, 1025), (x, true));
}

#[test]
fn hostile_bytes_change_nothing() {
    let mut cluster = raymond(2);
    let mut effects = soloist_core::locks::Effects::new();
    let from = soloist_algorithms::NodeId::new(1);
    for bytes in [&b""[..], b"short", &[0xff; 40], &[0; 300]] {
        let refused = cluster.tables[0].receive(cluster.now, from, bytes, &mut effects);
        assert!(refused.is_err() || effects.sends().next().is_none());
        assert!(effects.events.is_empty());
        assert_eq!(cluster.tables[0].locks(), 0);
    }
}

#[test]
fn turns_are_counted_across_epochs() {
    // Tokens, permissions, and strict order.
    for name in ["raymond", "naimi-trehel", "maekawa", "lodha-kshemkalyani"] {
        let choice = Choice::parse(name, "").unwrap();
        for turns in [1, 2] {
            let mut cluster = Cluster::new(choice, 3, turns);
            let lock = LockName::new("a").unwrap();
            let ask = || Cluster::ask(None, None);
            // Node 0 serves as many of its own waiters as it may. Others of its own wait, and node
            // 1 waits.
            for _ in 0..turns + 2 {
                cluster.acquire(0, &lock, ask()).unwrap();
                cluster.deliver_all();
            }
            cluster.acquire(1, &lock, ask()).unwrap();
            for _ in 1..turns {
                let hold = cluster.hold_of(0, &lock);
                cluster.release(0, hold).unwrap();
            }
            let hold = cluster.hold_of(0, &lock);
            // The last hold of its turns ends during the change of epoch.
            cluster.change_epoch(2, |cluster| cluster.release(0, hold).unwrap());
            cluster.deliver_all();
            let (node, ..) = cluster.granted.last().unwrap();
            assert_eq!(*node, 1, "{}, {turns} turns", choice.name);
            let hold = cluster.hold_of(1, &lock);
            cluster.release(1, hold).unwrap();
            // And no waiter is forgotten.
            for _ in 0..2 {
                cluster.deliver_all();
                let &(holder, hold) = cluster
                    .holders
                    .get(&lock)
                    .expect("a waiter is granted the lock");
                cluster.release(holder, hold).unwrap();
            }
            cluster.rest();
            assert!(cluster.tables.iter().all(|table| table.waiters() == 0));
        }
    }
}

#[test]
fn a_node_that_yields_to_nobody_continues() {
    let choice = Choice::parse("raymond", "").unwrap();
    let mut cluster = Cluster::new(choice, 3, 1);
    let lock = LockName::new("a").unwrap();
    for _ in 0..2 {
        cluster.acquire(0, &lock, Cluster::ask(None, None)).unwrap();
        cluster.deliver_all();
    }
    let hold = cluster.hold_of(0, &lock);
    cluster.change_epoch(2, |cluster| cluster.release(0, hold).unwrap());
    cluster.deliver_all();
    assert!(cluster.holders.is_empty(), "others may still come");
    cluster.now = cluster.now + Duration::from_millis(50);
    cluster.tick(0);
    cluster.deliver_all();
    assert_eq!(cluster.holders[&lock].0, 0, "no request came");
}
