//! A participant alone, with messages in any order that the network may choose.

use std::time::Duration;

use soloist_algorithms::NodeId;
use soloist_api::Moment;
use soloist_api::{EndReason, LockName};
use soloist_core::Tuning;
use soloist_core::epochs::lease::Lease;
use soloist_core::epochs::member::{MemberEffects, MemberState, Participant};
use soloist_core::epochs::message::{ToKeepers, ToMember};
use soloist_core::epochs::pieces::cut;
use soloist_core::locks::{HeldLock, HoldError, HoldId, LockEvent, LockRequest};
use soloist_core::rows::Rows;

use crate::setup::{change, keys, member, table};

/// The only member of the first epoch, with a lease from the beginning and a lock that it holds.
fn holder(out: &mut MemberEffects) -> (Participant, HoldId) {
    let begin = Moment::default();
    let mut node = Participant::new(member(0, 1), table(), Lease::default(), begin);
    let change = change(1, &[member(0, 1)]);
    node.receive_from_leader(begin, ToMember::Begin(change.clone()), out);
    node.receive_from_leader(begin, ToMember::Granted { number: 1 }, out);
    let install = ToMember::Install {
        change,
        pieces: 0,
        first: None,
    };
    node.receive_from_leader(begin, install, out);
    let ask = LockRequest {
        ttl: Some(Duration::from_secs(60)),
        ..LockRequest::new("somebody")
    };
    let lock = LockName::new("a").unwrap();
    let table = node.table_mut(begin, out);
    table.acquire(begin, &lock, ask, &mut out.locks).unwrap();
    let granted = out.locks.events.iter().find_map(|one| match one {
        LockEvent::Granted { grant, .. } => Some(grant.hold),
        _ => None,
    });
    (node, granted.expect("it is free"))
}

fn renewal(out: &MemberEffects) -> u64 {
    let mut words = out.keepers.iter().rev();
    let found = words.find_map(|word| match word {
        ToKeepers::Renew { number, .. } => Some(*number),
        _ => None,
    });
    found.expect("it renews")
}

#[test]
fn a_draining_member_extends_no_promise_and_leaves_when_all_have_ended() {
    let after = |millis| Moment::default() + Duration::from_millis(millis);
    let promised = Moment::default() + Lease::default().length;
    for is_released in [true, false] {
        let mut out = MemberEffects::default();
        let (mut node, hold) = holder(&mut out);
        assert_eq!(node.promise(hold), Ok(Some(promised)));
        node.drain(after(500), &mut out);
        // Its own lease continues, and it reports what is held.
        node.tick(after(1000), &mut out);
        let number = renewal(&out);
        node.receive_from_leader(after(1000), ToMember::Granted { number }, &mut out);
        assert_eq!(node.valid_until(), Some(promised + Duration::from_secs(1)));
        let ttl = Some(Duration::from_secs(60));
        let table = node.table_mut(after(1100), &mut out);
        let renewed = table.renew(after(1100), hold, ttl);
        assert_eq!(renewed, Ok(Some(promised)));
        assert_eq!(node.promise(hold), Ok(Some(promised)));
        let change = change(2, &[member(0, 1)]);
        out.keepers.clear();
        node.receive_from_leader(after(1200), ToMember::Begin(change), &mut out);
        let held = Rows::new(&[keys().of(2).hash(&LockName::new("a").unwrap())]);
        assert_eq!(
            out.keepers,
            [ToKeepers::Report {
                epoch: 2,
                pieces: 1,
                number: 0,
                held
            }]
        );
        assert_eq!(node.member_state(), MemberState::Changing(2));
        out = MemberEffects::default();
        if is_released {
            node.release(after(1300), hold, &mut out).unwrap();
        } else {
            node.tick(promised.before(Duration::from_millis(1)), &mut out);
            assert_eq!(node.table().holds(), 1, "the promise runs");
            node.tick(promised, &mut out);
        }
        assert_eq!(node.table().holds(), 0);
        assert_eq!(out.keepers.last(), Some(&ToKeepers::Leave));
        node.receive_from_leader(promised, ToMember::NoMember, &mut out);
        assert!(node.has_left());
    }
}

/// A member that begins an epoch with very many holds keeps renewing its lease.
#[test]
fn a_member_renews_its_lease_while_its_locks_begin_an_epoch() {
    let after = |millis| Moment::default() + Duration::from_millis(millis);
    let mut out = MemberEffects::default();
    let (mut node, _) = holder(&mut out);
    let tuning = Tuning {
        begun_at_once: Some(200),
        ..Tuning::default()
    };
    node.table_mut(after(1), &mut out).tune(tuning);
    for number in 0..800 {
        let lock = LockName::new(&format!("many/{number}")).unwrap();
        let (table, ask) = (
            node.table_mut(after(1), &mut out),
            LockRequest::new("somebody"),
        );
        table.acquire(after(1), &lock, ask, &mut out.locks).unwrap();
    }
    let change = change(2, &[member(0, 1)]);
    node.receive_from_leader(after(10), ToMember::Begin(change.clone()), &mut out);
    let held = node.table().held_hashes(&change.key).into_iter();
    let held = held.map(|lock| HeldLock {
        lock,
        holder: NodeId::new(0),
    });
    let pieces = cut(&held.collect::<Vec<_>>(), Tuning::default());
    let install = ToMember::Install {
        change,
        pieces: pieces.len() as u32,
        first: pieces.first().cloned(),
    };
    node.receive_from_leader(after(20), install, &mut out);
    assert_eq!(node.member_state(), MemberState::Member(2));
    let begins = |node: &Participant| node.next_deadline() == Some(Moment::default());
    assert!(begins(&node), "not all locks have begun");
    out = MemberEffects::default();
    let renews = after(0) + Lease::default().renewed_every();
    node.tick(renews, &mut out);
    assert!(begins(&node), "not all locks have begun");
    let number = renewal(&out);
    node.receive_from_leader(renews, ToMember::Granted { number }, &mut out);
    assert_eq!(node.valid_until(), Some(renews + Lease::default().length));
    while begins(&node) {
        node.tick(renews, &mut out);
    }
    assert_eq!(node.table().holds(), 801);
}

#[test]
fn a_suspend_ends_the_lease_and_pending_renewals() {
    let mut out = MemberEffects::default();
    let (mut node, hold) = holder(&mut out);
    let second = Moment::default() + Duration::from_secs(1);
    node.tick(second, &mut out);
    let number = renewal(&out);
    node.wake(second, &mut out);
    assert!(out.lapsed);
    assert!(node.promise(hold).is_err());
    node.receive_from_leader(second, ToMember::Granted { number }, &mut out);
    assert_eq!(node.valid_until(), None);
    assert_eq!(node.member_state(), MemberState::Outside);
}

#[test]
fn a_lease_that_expired_before_it_arrived_is_not_used() {
    let begin = Moment::default();
    let lease = Lease::default();
    let mut node = Participant::new(member(0, 1), table(), lease, begin);
    let mut out = MemberEffects::default();
    let ask = LockRequest::new("somebody");
    let lock = LockName::new("a").unwrap();
    let table = node.table_mut(begin, &mut out);
    table.acquire(begin, &lock, ask, &mut out.locks).unwrap();
    let change = change(1, &[member(0, 1)]);
    node.receive_from_leader(begin, ToMember::Begin(change.clone()), &mut out);
    assert!(matches!(
        out.keepers[..],
        [ToKeepers::Report { .. }, ToKeepers::Renew { number: 1, .. }]
    ));
    // The process sleeps. When it wakes up, both messages have arrived.
    let late = begin + lease.length + Duration::from_secs(5);
    let install = ToMember::Install {
        change,
        pieces: 0,
        first: None,
    };
    node.receive_from_leader(late, install, &mut out);
    node.receive_from_leader(late, ToMember::Granted { number: 1 }, &mut out);
    assert_eq!(node.member_state(), MemberState::Changing(1));
    assert_eq!(node.table().holds(), 0);
    // A lease that arrives in time lets it install the epoch.
    out = MemberEffects::default();
    node.tick(late, &mut out);
    let [ToKeepers::Renew { number, .. }] = out.keepers[..] else {
        panic!("it renews: {:?}", out.keepers);
    };
    node.receive_from_leader(late, ToMember::Granted { number }, &mut out);
    assert_eq!(node.member_state(), MemberState::Member(1));
    assert_eq!(node.table().holds(), 1);
}

#[test]
fn a_table_has_no_hold_once_the_lease_has_expired() {
    let mut out = MemberEffects::default();
    let (mut node, hold) = holder(&mut out);
    let ends = node.valid_until().unwrap();
    let table = node.table_mut(ends.before(Duration::from_nanos(1)), &mut out);
    assert_eq!(table.holds(), 1);
    let table = node.table_mut(ends, &mut out);
    let renewed = table.renew(ends, hold, None);
    assert_eq!(renewed, Err(HoldError::Ended(EndReason::EpochLost)));
    assert!(out.lapsed);
    assert_eq!(node.valid_until(), None);
}
