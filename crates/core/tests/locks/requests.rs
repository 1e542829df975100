//! Requests with ids: a request that is sent twice counts once, and an unread grant soon ends.

use std::collections::BTreeMap;
use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha12Rng;
use soloist_api::{EndReason, Moment};
use soloist_core::locks::{
    Client, FIRST_PROMISE, HoldError, HoldId, LockRequest, RESEND_WITHIN, RequestError, RequestId,
    Resumed,
};
use soloist_core::{Mutant, Tuning};

use crate::cluster::Cluster;
use crate::{name, raymond, seconds};

fn request(client: &str, id: u128) -> LockRequest {
    LockRequest {
        client: Client::new(client),
        request: Some(RequestId::new(id)),
        ..Cluster::ask(Some(seconds(60)), None)
    }
}

/// Lets time pass on a single node.
fn pass(cluster: &mut Cluster, time: Duration) {
    cluster.now = cluster.now + time;
    cluster.tick(0);
}

const MOMENT: Duration = Duration::from_millis(1);

#[test]
fn a_resent_request_keeps_its_place_and_does_not_wait_for_itself() {
    let mut cluster = raymond(1);
    let lock = name("a");
    cluster.acquire(0, &lock, Cluster::ask(None, None)).unwrap();
    let first = cluster.hold_of(0, &lock);
    let ask = request("me", 1);
    assert_eq!(cluster.resume(0, &lock, &ask), Ok(None));
    let mine = cluster.acquire(0, &lock, ask.clone()).unwrap();
    let other = cluster.acquire(0, &lock, Cluster::ask(None, None)).unwrap();
    assert_eq!(
        cluster.resume(0, &lock, &ask),
        Ok(Some(Resumed::Waits(mine)))
    );
    assert_eq!(cluster.tables[0].waiters(), 2);
    cluster.release(0, first).unwrap();
    assert_eq!(cluster.granted.last().unwrap().1, mine);
    let hold = cluster.hold_of(0, &lock);
    assert_eq!(
        cluster.resume(0, &lock, &ask),
        Ok(Some(Resumed::Holds(hold)))
    );
    cluster.release(0, hold).unwrap();
    assert_eq!(cluster.granted.last().unwrap().1, other);
    // A late duplicate does not start a new request.
    assert_eq!(
        cluster.resume(0, &lock, &ask),
        Ok(Some(Resumed::Ended(hold)))
    );
    let ended = cluster.tables[0].expires(hold);
    assert_eq!(ended, Err(HoldError::Ended(EndReason::Released)));
}

#[test]
fn an_id_belongs_to_one_client_and_one_lock() {
    let mut cluster = raymond(1);
    let ask = request("me", 1);
    cluster.acquire(0, &name("a"), ask.clone()).unwrap();
    let elsewhere = cluster.resume(0, &name("b"), &ask);
    assert!(
        matches!(&elsewhere, Err(RequestError::OtherLock { lock, .. }) if *lock == name("a")),
        "{elsewhere:?}"
    );
    let other = request("you", 1);
    assert_eq!(cluster.resume(0, &name("a"), &other), Ok(None));
    cluster.acquire(0, &name("a"), other).unwrap();
    assert_eq!(cluster.tables[0].waiters(), 1);
}

#[test]
fn a_grant_that_nobody_reads_ends_with_its_first_promise() {
    let mut cluster = raymond(1);
    let lock = name("a");
    cluster.acquire(0, &lock, request("me", 1)).unwrap();
    let unread = cluster.hold_of(0, &lock);
    let next = cluster.acquire(0, &lock, Cluster::ask(None, None)).unwrap();
    assert_eq!(
        cluster.tables[0].expires(unread),
        Ok(Some(cluster.now + FIRST_PROMISE))
    );
    pass(&mut cluster, FIRST_PROMISE - MOMENT);
    assert_eq!(cluster.hold_of(0, &lock), unread);
    pass(&mut cluster, MOMENT);
    assert_eq!(cluster.ended, [(unread, EndReason::Expired)]);
    assert_eq!(cluster.granted.last().unwrap().1, next);
}

#[test]
fn a_resent_request_repeats_the_short_promise_and_a_renewal_extends_it() {
    let mut cluster = raymond(1);
    let lock = name("a");
    let ask = request("me", 1);
    cluster.acquire(0, &lock, ask.clone()).unwrap();
    let hold = cluster.hold_of(0, &lock);
    for _ in 0..5 {
        pass(&mut cluster, FIRST_PROMISE - MOMENT);
        assert_eq!(
            cluster.resume(0, &lock, &ask),
            Ok(Some(Resumed::Holds(hold)))
        );
        let promised = cluster.tables[0].expires(hold).unwrap();
        assert_eq!(promised, Some(cluster.now + FIRST_PROMISE));
    }
    let (now, table) = (cluster.now, &mut cluster.tables[0]);
    let whole = Some(now + seconds(60));
    assert_eq!(table.renew(now, hold, None), Ok(whole));
    // A resend does not shorten the promise.
    pass(&mut cluster, seconds(10));
    assert_eq!(
        cluster.resume(0, &lock, &ask),
        Ok(Some(Resumed::Holds(hold)))
    );
    assert_eq!(cluster.tables[0].expires(hold), Ok(whole));
}

#[test]
fn a_short_time_to_live_is_not_made_longer() {
    let mut cluster = raymond(1);
    let lock = name("a");
    let mut ask = request("me", 1);
    ask.ttl = Some(seconds(1));
    cluster.acquire(0, &lock, ask.clone()).unwrap();
    let hold = cluster.hold_of(0, &lock);
    let promised = Ok(Some(cluster.now + seconds(1)));
    assert_eq!(cluster.tables[0].expires(hold), promised);
    cluster.resume(0, &lock, &ask).unwrap();
    assert_eq!(cluster.tables[0].expires(hold), promised);
}

#[test]
fn a_disconnected_waiter_stays_queued_only_briefly() {
    let mut cluster = raymond(1);
    let lock = name("a");
    cluster.acquire(0, &lock, Cluster::ask(None, None)).unwrap();
    let ask = request("me", 1);
    let ticket = cluster.acquire(0, &lock, ask.clone()).unwrap();
    cluster.tables[0].abandon(cluster.now, ticket);
    pass(&mut cluster, RESEND_WITHIN - MOMENT);
    assert_eq!(
        cluster.resume(0, &lock, &ask),
        Ok(Some(Resumed::Waits(ticket)))
    );
    pass(&mut cluster, seconds(3600));
    assert_eq!(
        cluster.tables[0].waiters(),
        1,
        "the request is no longer abandoned"
    );
    cluster.tables[0].abandon(cluster.now, ticket);
    pass(&mut cluster, RESEND_WITHIN);
    assert_eq!(cluster.tables[0].waiters(), 0);
    assert_eq!(
        cluster.resume(0, &lock, &ask),
        Ok(None),
        "it is a new request"
    );
}

#[test]
fn the_turn_of_a_disconnected_waiter_is_kept_briefly() {
    let mut cluster = raymond(1);
    let lock = name("a");
    cluster.acquire(0, &lock, Cluster::ask(None, None)).unwrap();
    let first = cluster.hold_of(0, &lock);
    let ask = request("me", 1);
    let ticket = cluster.acquire(0, &lock, ask.clone()).unwrap();
    let other = cluster.acquire(0, &lock, Cluster::ask(None, None)).unwrap();
    cluster.tables[0].abandon(cluster.now, ticket);
    let broke = cluster.now;
    pass(&mut cluster, RESEND_WITHIN / 2);
    cluster.release(0, first).unwrap();
    let kept = cluster.hold_of(0, &lock);
    assert_eq!(
        cluster.tables[0].expires(kept),
        Ok(Some(broke + RESEND_WITHIN))
    );
    // If the request is sent again, it is promised as much as any other.
    let mut again = cluster.tables[0].clone();
    let resumed = again.resume(cluster.now, &lock, &ask);
    assert_eq!(resumed, Ok(Some(Resumed::Holds(kept))));
    assert_eq!(again.expires(kept), Ok(Some(cluster.now + FIRST_PROMISE)));
    // If it is not sent again, the lock is soon free.
    pass(&mut cluster, RESEND_WITHIN / 2);
    assert_eq!(cluster.granted.last().unwrap().1, other);
}

#[test]
fn a_stopping_node_extends_no_promise() {
    let mut cluster = raymond(1);
    let lock = name("a");
    let ask = request("me", 1);
    cluster.acquire(0, &lock, ask.clone()).unwrap();
    let hold = cluster.hold_of(0, &lock);
    let promised = cluster.tables[0].expires(hold);
    cluster.stop(0);
    cluster.now = cluster.now + seconds(1);
    assert_eq!(
        cluster.resume(0, &lock, &ask),
        Ok(Some(Resumed::Holds(hold)))
    );
    assert_eq!(cluster.tables[0].expires(hold), promised);
}

/// What a client may have read: the end of the last promise for each hold, whether or not it was
/// read.
#[derive(Default)]
struct Promises(BTreeMap<HoldId, Moment>);

impl Promises {
    fn answer(&mut self, cluster: &Cluster, hold: HoldId) {
        if let Ok(Some(until)) = cluster.tables[0].expires(hold) {
            let promised = self.0.entry(hold).or_default();
            *promised = until.max(*promised);
        }
    }
}

#[test]
fn no_hold_ends_before_the_last_promise_that_could_have_been_read() {
    for seed in 0..300 {
        let broken = broken_promise(seed, Tuning::default());
        assert_eq!(broken, None, "seed {seed}");
    }
}

#[test]
fn a_promise_that_is_shortened_is_seen() {
    let tuning = Tuning::plant(Mutant::PromiseShortened);
    let seen = (0..300).any(|seed| broken_promise(seed, tuning).is_some());
    assert!(seen);
}

/// Sends, resends and abandons requests, and renews and releases holds. Returns a hold that ended
/// too early.
fn broken_promise(seed: u64, tuning: Tuning) -> Option<(HoldId, EndReason)> {
    let mut rng = ChaCha12Rng::seed_from_u64(seed);
    let mut cluster = raymond(1);
    cluster.tables[0].tune(tuning);
    let mut promises = Promises::default();
    let lock = name("a");
    let mut ids = 0;
    for _ in 0..200 {
        let id = rng.random_range(ids - 3i64..=ids).max(0);
        ids = ids.max(id + 1);
        let ask = request("me", id as u128);
        let holder = cluster.holders.get(&lock).map(|&(_, hold)| hold);
        match (rng.random_range(0..8), holder) {
            (0..3, _) => match cluster.resume(0, &lock, &ask).unwrap() {
                None => drop(cluster.acquire(0, &lock, ask).unwrap()),
                Some(Resumed::Holds(hold)) => promises.answer(&cluster, hold),
                Some(_) => {}
            },
            (3, _) => {
                let known = cluster.tables[0].request(&ask.client, ask.request.unwrap());
                if let Some(Resumed::Waits(ticket)) = known {
                    cluster.tables[0].abandon(cluster.now, ticket);
                }
            }
            (4, Some(hold)) => {
                let now = cluster.now;
                cluster.tables[0].renew(now, hold, None).unwrap();
                promises.answer(&cluster, hold);
            }
            (5, Some(hold)) if rng.random_bool(0.3) => {
                // Its client releases it, so no promise remains.
                promises.0.remove(&hold);
                cluster.release(0, hold).unwrap();
            }
            _ => pass(
                &mut cluster,
                Duration::from_millis(rng.random_range(0..5000)),
            ),
        }
        // A grant is answered immediately if its connection still exists.
        let holder = cluster.holders.get(&lock).map(|&(_, hold)| hold);
        if let Some(hold) = holder.filter(|_| rng.random_bool(0.5)) {
            promises.answer(&cluster, hold);
        }
        for (hold, end) in std::mem::take(&mut cluster.ended) {
            let until = promises.0.remove(&hold).unwrap_or_default();
            if cluster.now < until {
                return Some((hold, end));
            }
        }
    }
    None
}
