//! What the lock API promises.

use std::future::{pending, poll_fn, ready};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

use rand_pcg::Pcg32;
use rand_pcg::rand_core::{Rng, SeedableRng};
use soloist_client::{
    AcquireError, EndReason, Fence, Guard, Moment, ReleaseError, WithLockError, reached,
};

use super::{NAME, Subject, Two, granted, next_is_next, tried};
use crate::{Nodes, soon, until};

pub(super) async fn fences_rise_from_holder_to_holder<L: Subject>() {
    let cluster = Two::<L>::start().await;
    let mut last = Fence::default();
    for round in 0..10 {
        let lock = if round % 2 == 0 {
            &cluster.one
        } else {
            &cluster.two
        };
        let guard = granted(lock).await;
        assert_eq!((guard.name(), lock.name().as_str()), (lock.name(), NAME));
        assert!(guard.fence() > last);
        assert!(!guard.valid_for().is_zero());
        last = guard.fence();
        guard.release().await.unwrap();
    }
    cluster.stop().await;
}

pub(super) async fn try_acquire_never_waits_behind_others<L: Subject>() {
    let cluster = Two::<L>::start().await;
    let guard = tried(&cluster.one).await.expect("it is free");
    for lock in [&cluster.one, &cluster.two] {
        assert!(tried(lock).await.is_none(), "it is held");
    }
    cluster.waiting(0).await;
    // Nor does it overtake others who wait.
    let waiter = cluster.two.clone();
    let waiter = tokio::spawn(async move { granted(&waiter).await });
    cluster.waiting(1).await;
    for lock in [&cluster.one, &cluster.two] {
        assert!(tried(lock).await.is_none(), "it is held, and waited for");
    }
    let fence = guard.fence();
    guard.release().await.unwrap();
    let guard = soon("the waiter is next", waiter).await.unwrap();
    assert_eq!(Some(guard.fence()), fence.next());
    guard.release().await.unwrap();
    for lock in [&cluster.one, &cluster.two] {
        let guard = tried(lock).await.expect("it is free again");
        guard.release().await.unwrap();
    }
    cluster.stop().await;
}

pub(super) async fn acquire_within_leaves_nothing_behind_when_it_times_out<L: Subject>() {
    let cluster = Two::<L>::start().await;
    let guard = granted(&cluster.one).await;
    let limit = Duration::from_millis(100);
    for lock in [&cluster.one, &cluster.two] {
        let asked = Moment::now();
        let error = soon("denied", lock.acquire_within(limit))
            .await
            .unwrap_err();
        assert!(Moment::now().since(asked) >= limit);
        let AcquireError::NotGranted { lock, detail } = error else {
            panic!("another error: {error}");
        };
        assert_eq!(lock.as_str(), NAME);
        assert!(detail.contains("held by"), "{detail}");
    }
    cluster.waiting(0).await;
    let guard = next_is_next(guard, &cluster.two).await;
    guard.release().await.unwrap();
    let guard = cluster.one.acquire_within(crate::TIMEOUT).await.unwrap();
    guard.release().await.unwrap();
    cluster.stop().await;
}

pub(super) async fn a_dropped_request_leaves_no_waiter_and_no_hold<L: Subject>() {
    let cluster = Two::<L>::start().await;
    let guard = granted(&cluster.one).await;
    let waiter = cluster.two.clone();
    let waiter = tokio::spawn(async move { granted(&waiter).await });
    cluster.waiting(1).await;
    waiter.abort();
    cluster.waiting(0).await;
    let guard = next_is_next(guard, &cluster.one).await;
    guard.release().await.unwrap();
    cluster.stop().await;
}

/// Drops requests before, while and after they are granted.
pub(super) async fn requests_that_are_dropped_at_any_time_leave_no_hold<L: Subject>() {
    let cluster = Two::<L>::start().await;
    for polls in (0..40).map(|step| step * step) {
        let guard = granted(&cluster.one).await;
        let released = tokio::spawn(guard.release());
        {
            let mut request = pin!(cluster.two.acquire());
            for _ in 0..polls {
                let polled = poll_fn(|context| Poll::Ready(request.as_mut().poll(context)));
                if polled.await.is_ready() {
                    break;
                }
                tokio::task::yield_now().await;
            }
        }
        released.await.unwrap().unwrap();
        granted(&cluster.one).await.release().await.unwrap();
    }
    cluster.waiting(0).await;
    cluster.stop().await;
}

pub(super) async fn a_dropped_guard_releases_the_lock<L: Subject>() {
    let cluster = Two::<L>::start().await;
    let guard = granted(&cluster.one).await;
    let waiter = cluster.two.clone();
    let waiter = tokio::spawn(async move { granted(&waiter).await });
    cluster.waiting(1).await;
    let fence = guard.fence();
    drop(guard);
    let guard = soon("it is the next one", waiter).await.unwrap();
    assert_eq!(Some(guard.fence()), fence.next());
    guard.release().await.unwrap();
    cluster.stop().await;
}

/// Two users of two locks take random steps, and a model says what must come of each.
pub(super) async fn random_use_agrees_with_a_model<L: Subject>() {
    let nodes = Nodes::start_steady(2).await;
    let users = [L::of(&nodes, 0).await, L::of(&nodes, 1).await];
    let mut random = Pcg32::seed_from_u64(7);
    let mut below = |bound: u32| (random.next_u32() % bound) as usize;
    let names = ["x", "y"];
    // The holder of each lock, and the last fence.
    let mut held: [Option<(usize, L::Guard)>; 2] = [None, None];
    let mut last = [Fence::default(); 2];
    for step in 0..200 {
        let (user, lock, action) = (below(2), below(2), below(6));
        let asked = users[user].lock(names[lock]).unwrap();
        let is_mine = held[lock]
            .as_ref()
            .is_some_and(|(holder, _)| *holder == user);
        let is_free = held[lock].is_none();
        match action {
            0 | 1 => {
                let guard = tried(&asked).await;
                assert_eq!(guard.is_some(), is_free, "step {step}: try");
                held[lock] = guard.map(|guard| (user, guard)).or(held[lock].take());
            }
            2 if is_free => held[lock] = Some((user, granted(&asked).await)),
            2 => {
                let limit = Duration::from_millis(3);
                let denied = soon("denied", asked.acquire_within(limit)).await;
                let is_denied = matches!(denied, Err(AcquireError::NotGranted { .. }));
                assert!(is_denied, "step {step}: {denied:?}");
            }
            3 if is_free => {
                let fence = soon("it runs", asked.with(ready)).await.unwrap();
                assert!(fence > last[lock], "step {step}: with");
                last[lock] = fence;
            }
            4 if is_mine => {
                drop(held[lock].take());
                users[user].settle().await;
            }
            _ if is_mine => {
                let (_, guard) = held[lock].take().expect("it is held");
                guard.release().await.unwrap();
            }
            _ => {}
        }
        if let Some((_, guard)) = &held[lock] {
            assert!(guard.fence() >= last[lock], "step {step}: fences rise");
            last[lock] = guard.fence();
        }
    }
    drop(held);
    nodes.0.stop().await;
}

pub(super) async fn the_owner_is_shown_and_checked<L: Subject>() {
    let cluster = Two::<L>::start().await;
    let guard = granted(&cluster.one.clone().owner("ann")).await;
    let holder = cluster.observer.lock_info(NAME).await.unwrap().holder;
    let holder = holder.expect("it is held");
    assert_eq!(
        (holder.owner.as_str(), holder.fence),
        ("ann", guard.fence())
    );
    guard.release().await.unwrap();
    for owner in ["x".repeat(257), "two\nlines".to_owned()] {
        let refused = cluster.one.clone().owner(&owner).acquire().await;
        let refused = refused.unwrap_err();
        assert!(matches!(refused, AcquireError::Refused(_)), "{refused:?}");
        assert!(refused.to_string().contains("the owner"), "{refused}");
    }
    // By default, it is this process.
    let guard = granted(&cluster.one).await;
    let holder = cluster.observer.lock_info(NAME).await.unwrap().holder;
    let process = format!("process {}", std::process::id());
    assert!(holder.is_some_and(|holder| holder.owner.contains(&process)));
    guard.release().await.unwrap();
    cluster.stop().await;
}

pub(super) async fn with_returns_what_the_work_returned_and_releases<L: Subject>() {
    let cluster = Two::<L>::start().await;
    let observer = cluster.observer.clone();
    let work = async |fence: Fence| {
        let holder = observer.lock_info(NAME).await.unwrap().holder;
        assert_eq!(holder.map(|holder| holder.fence), Some(fence));
        fence
    };
    let fence = soon("it is done", cluster.one.with(work)).await.unwrap();
    let guard = tried(&cluster.two).await.expect("it was released");
    assert_eq!(Some(guard.fence()), fence.next());
    guard.release().await.unwrap();
    cluster.stop().await;
}

pub(super) async fn with_does_not_begin_the_work_without_the_lock<L: Subject>() {
    let cluster = Two::<L>::start().await;
    cluster.nodes.cluster.nodes[1].stop(Duration::ZERO).await;
    let with = cluster
        .two
        .with(|_| -> std::future::Ready<()> { panic!("it begins") });
    let error = soon("it fails", with).await.unwrap_err();
    let WithLockError::NotAcquired(AcquireError::Unavailable(_)) = error else {
        panic!("another error: {error:?}");
    };
    cluster.stop().await;
}

/// Work that never ends, and sets a flag when it is dropped.
async fn endless(begun: Arc<AtomicBool>, dropped: Arc<AtomicBool>) {
    struct Flag(Arc<AtomicBool>);

    impl Drop for Flag {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }

    let _flag = Flag(dropped);
    begun.store(true, Ordering::SeqCst);
    pending().await
}

pub(super) async fn dropping_with_drops_the_work_and_releases<L: Subject>() {
    let cluster = Two::<L>::start().await;
    let (begun, dropped) = (Arc::<AtomicBool>::default(), Arc::<AtomicBool>::default());
    let task = tokio::spawn({
        let (lock, begun, dropped) = (cluster.one.clone(), begun.clone(), dropped.clone());
        async move { lock.with(|_| endless(begun, dropped)).await }
    });
    until("it begins", async || begun.load(Ordering::SeqCst)).await;
    assert!(tried(&cluster.two).await.is_none());
    task.abort();
    granted(&cluster.two).await.release().await.unwrap();
    assert!(dropped.load(Ordering::SeqCst));
    cluster.stop().await;
}

pub(super) async fn with_drops_the_work_when_the_lock_is_lost<L: Subject>() {
    let cluster = Two::<L>::on(Nodes::start(2).await).await;
    let (begun, dropped) = (Arc::<AtomicBool>::default(), Arc::<AtomicBool>::default());
    let task = tokio::spawn({
        let (lock, begun, dropped) = (cluster.two.clone(), begun.clone(), dropped.clone());
        async move { lock.with(|_| endless(begun, dropped)).await }
    });
    until("it begins", async || begun.load(Ordering::SeqCst)).await;
    // The node waits until the lock is released, or its promise has passed.
    let node = &cluster.nodes.cluster.nodes[1];
    soon("it stops", node.stop(Duration::ZERO)).await;
    let error = soon("it ends", task).await.unwrap().unwrap_err();
    assert!(dropped.load(Ordering::SeqCst));
    let WithLockError::Lost(loss) = error else {
        panic!("another error: {error:?}");
    };
    assert_eq!(loss.reason, EndReason::NodeStopped);
    granted(&cluster.one).await.release().await.unwrap();
    cluster.stop().await;
}

pub(super) async fn a_loss_is_told_once_and_for_all<L: Subject>() {
    let cluster = Two::<L>::on(Nodes::start(2).await).await;
    let guard = granted(&cluster.two).await;
    let node = cluster.nodes.cluster.nodes[1].clone();
    let stops = tokio::spawn(async move { node.stop(Duration::ZERO).await });
    let loss = soon("it is told", guard.lost()).await;
    assert_eq!(loss.reason, EndReason::NodeStopped);
    // It is told before it happens.
    let left = loss.since.since(Moment::now());
    assert!(guard.valid_for() <= left);
    reached(loss.since).await;
    assert_eq!(guard.valid_for(), Duration::ZERO);
    assert_eq!(guard.lost().await, loss);
    soon("the node stops", stops).await.unwrap();
    assert_eq!(guard.lost().await, loss);
    assert_eq!(guard.valid_for(), Duration::ZERO);
    let released = guard.release().await;
    let Err(ReleaseError::Lost(same)) = released else {
        panic!("it was lost: {released:?}");
    };
    assert_eq!(same, loss);
    cluster.stop().await;
}

pub(super) async fn a_stopping_node_admits_nobody<L: Subject>() {
    let cluster = Two::<L>::start().await;
    let guard = granted(&cluster.two).await;
    let waiter = cluster.two.clone();
    let waiter = tokio::spawn(async move { waiter.acquire().await });
    cluster.waiting(1).await;
    let node = cluster.nodes.cluster.nodes[1].clone();
    let stops = tokio::spawn(async move { node.stop(crate::TIMEOUT).await });
    let denied = soon("the waiter is told", waiter).await.unwrap();
    let unavailable = |denied: &Result<L::Guard, AcquireError>| {
        matches!(denied, Err(AcquireError::Unavailable(_)))
    };
    assert!(unavailable(&denied), "{denied:?}");
    let denied = cluster.two.acquire().await;
    assert!(unavailable(&denied), "{denied:?}");
    let free = L::of(&cluster.nodes, 1).await.lock("free").unwrap();
    let denied = free.try_acquire().await;
    assert!(
        matches!(denied, Err(AcquireError::Unavailable(_))),
        "{denied:?}"
    );
    // Holds continue.
    assert!(!guard.valid_for().is_zero());
    guard.release().await.unwrap();
    soon("the node stops", stops).await.unwrap();
    cluster.stop().await;
}
