//! The lock API: the same for a node in this process and for a client of a node.

use std::fmt;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use crate::{AcquireError, Fence, LockName, LockNameError, Loss, ReleaseError, WithLockError};

/// A place to get locks from: a node in this process, or a client of a node elsewhere. Cheap to
/// clone.
///
/// A program that is generic over this trait runs with either:
///
/// ```
/// use soloist_api::{Fence, Locks, WithLockError};
///
/// async fn nightly(locks: impl Locks) -> Result<u64, WithLockError> {
///     let lock = locks.lock("nightly").expect("the name is valid");
///     lock.with(|fence| report(fence)).await
/// }
///
/// async fn report(fence: Fence) -> u64 {
///     // Send the fence along with every write.
/// #   fence.number()
/// }
/// ```
pub trait Locks: Clone + Send + Sync + 'static {
    /// The guard of a held lock.
    type Guard: Guard;

    /// Waits until the lock is granted, or for [`Request::wait`].
    ///
    /// Cancel safe: if the future is dropped, the request is cancelled, and a grant that is already
    /// on its way is released.
    fn request(
        &self,
        request: Request,
    ) -> impl Future<Output = Result<Self::Guard, AcquireError>> + Send;

    /// Returns the lock of this name. It exists from its first use, and this asks no node.
    fn lock(&self, name: &str) -> Result<Lock<Self>, LockNameError> {
        Ok(Lock {
            locks: self.clone(),
            request: Request::new(LockName::new(name)?),
        })
    }
}

/// A held lock. Dropping the guard releases it.
#[must_use = "the lock is released as soon as its guard is dropped"]
pub trait Guard: fmt::Debug + Send + Sync + 'static {
    /// The lock's name.
    fn name(&self) -> &LockName;

    /// The fencing token, greater than that of every earlier holder of this lock. Send it along
    /// with every request to the protected resource, which can then refuse a late holder.
    fn fence(&self) -> Fence;

    /// How much longer the lock is certainly held if nothing is heard of the node, or of the
    /// cluster. It is extended in the background, and zero once the lock is lost. The time is
    /// counted on a clock that runs while the machine sleeps.
    fn valid_for(&self) -> Duration;

    /// Waits until the lock is lost, or certain to be lost because the node is stopping, and
    /// returns why. In the second case [`valid_for`](Guard::valid_for) is the time that is left:
    /// stop working, and release the lock. Later calls return the same loss immediately.
    fn lost(&self) -> impl Future<Output = Loss> + Send;

    /// Releases the lock. Returns an error if it was lost before, or if the node did not confirm
    /// the release.
    fn release(self) -> impl Future<Output = Result<(), ReleaseError>> + Send;
}

/// A request for a lock.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Request {
    /// The lock.
    pub lock: LockName,
    /// Name of the holder, shown in lists of holders and waiters: at most 256 bytes, without
    /// control characters. By default it says which process it is.
    pub owner: Option<Arc<str>>,
    /// Maximum time to wait, or `None` to wait until the lock is granted. A request that may not
    /// wait (zero) never queues behind others: it takes as long as it takes to find out whether the
    /// lock is free.
    pub wait: Option<Duration>,
}

impl Request {
    /// A request that waits until the lock is granted.
    pub fn new(lock: LockName) -> Self {
        Request {
            lock,
            owner: None,
            wait: None,
        }
    }

    /// Sets the name of the holder.
    pub fn owner(mut self, owner: &str) -> Self {
        self.owner = Some(owner.into());
        self
    }

    /// Sets the maximum time to wait.
    pub fn wait(mut self, limit: Duration) -> Self {
        self.wait = Some(limit);
        self
    }
}

/// A lock, by name. Cheap to clone.
#[derive(Clone)]
pub struct Lock<L> {
    locks: L,
    request: Request,
}

impl<L: Locks> Lock<L> {
    /// The lock's name.
    pub fn name(&self) -> &LockName {
        &self.request.lock
    }

    /// Sets the owner of later requests, see [`Request::owner`].
    pub fn owner(mut self, owner: &str) -> Self {
        self.request = self.request.owner(owner);
        self
    }

    /// Waits until the lock is granted. Cancel safe.
    pub async fn acquire(&self) -> Result<L::Guard, AcquireError> {
        self.locks.request(self.request.clone()).await
    }

    /// Waits until the lock is granted, for at most `limit`. After that the error is
    /// [`NotGranted`](AcquireError::NotGranted), or [`Unknown`](AcquireError::Unknown) if it is not
    /// known whether the lock is held. Cancel safe.
    pub async fn acquire_within(&self, limit: Duration) -> Result<L::Guard, AcquireError> {
        self.locks.request(self.request.clone().wait(limit)).await
    }

    /// Acquires the lock if it is free, and returns `None` if it is not. Never queues behind
    /// others; returns [`Unknown`](AcquireError::Unknown) if it is not known whether the lock is
    /// free. Cancel safe.
    pub async fn try_acquire(&self) -> Result<Option<L::Guard>, AcquireError> {
        match self.acquire_within(Duration::ZERO).await {
            Ok(guard) => Ok(Some(guard)),
            Err(AcquireError::NotGranted { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Waits until the lock is granted, runs `work`, and releases the lock. Returns what the work
    /// returned if the lock was held until then.
    ///
    /// If the lock is lost meanwhile, or its node stops, the work is dropped at the point where it
    /// waits, and the loss is returned. Work that never waits cannot be interrupted. It is told of
    /// the loss all the same, and the protected resource should check the fence.
    ///
    /// Dropping the future drops the work first, and then releases the lock.
    pub async fn with<T, F: Future<Output = T>>(
        &self,
        work: impl FnOnce(Fence) -> F,
    ) -> Result<T, WithLockError> {
        let guard = self.acquire().await?;
        // The work ends with this block, before the lock is released.
        let done = {
            let mut work = pin!(work(guard.fence()));
            let mut lost = pin!(guard.lost());
            poll_fn(|context| match lost.as_mut().poll(context) {
                Poll::Ready(loss) => Poll::Ready(Err(loss)),
                Poll::Pending => work.as_mut().poll(context).map(Ok),
            })
            .await
        };
        let done = match done {
            // The loss may not have been noticed yet, if the work kept the thread busy.
            Ok(_) if guard.valid_for().is_zero() => Err(guard.lost().await),
            done => done,
        };
        match (done, guard.release().await) {
            (Err(loss), _) | (Ok(_), Err(ReleaseError::Lost(loss))) => Err(loss.into()),
            // A release that was not confirmed delays the next holder, and concerns no one else.
            (Ok(output), Ok(()) | Err(ReleaseError::NotConfirmed { .. })) => Ok(output),
        }
    }
}

impl<L> fmt::Debug for Lock<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Lock").field(&self.request.lock).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::sync::Mutex;
    use std::task::{Context, Waker};

    use super::*;
    use crate::{EndReason, Moment};

    const LOSS: Loss = Loss {
        reason: EndReason::Expired,
        since: Moment::new(Duration::from_secs(7)),
    };

    /// A lock that the test loses as it likes. It records what happens.
    #[derive(Clone, Debug, Default)]
    struct Fake(Arc<Mutex<State>>);

    #[derive(Debug, Default)]
    struct State {
        is_over: bool,
        loss: Option<Loss>,
        release: Option<ReleaseError>,
        happened: Vec<&'static str>,
    }

    impl Fake {
        fn set(&self, change: impl FnOnce(&mut State)) {
            change(&mut self.0.lock().unwrap());
        }

        fn note(&self, what: &'static str) {
            self.set(|state| state.happened.push(what));
        }

        fn happened(&self) -> Vec<&'static str> {
            self.0.lock().unwrap().happened.clone()
        }

        /// Work that never ends. Its end is recorded when it is dropped.
        async fn endless(self) {
            struct OnDrop(Fake);

            impl Drop for OnDrop {
                fn drop(&mut self) {
                    self.0.note("work dropped");
                }
            }

            let _end = OnDrop(self);
            pending().await
        }
    }

    #[derive(Debug)]
    struct FakeGuard(Fake, LockName);

    impl Drop for FakeGuard {
        fn drop(&mut self) {
            self.0.note("released");
        }
    }

    impl Locks for Fake {
        type Guard = FakeGuard;

        async fn request(&self, request: Request) -> Result<FakeGuard, AcquireError> {
            self.note("acquired");
            Ok(FakeGuard(self.clone(), request.lock))
        }
    }

    impl Guard for FakeGuard {
        fn name(&self) -> &LockName {
            &self.1
        }

        fn fence(&self) -> Fence {
            Fence::from_number(5)
        }

        fn valid_for(&self) -> Duration {
            match self.0.0.lock().unwrap().is_over {
                true => Duration::ZERO,
                false => Duration::MAX,
            }
        }

        async fn lost(&self) -> Loss {
            poll_fn(|_| match self.0.0.lock().unwrap().loss {
                Some(loss) => Poll::Ready(loss),
                None => Poll::Pending,
            })
            .await
        }

        async fn release(self) -> Result<(), ReleaseError> {
            match self.0.0.lock().unwrap().release.take() {
                Some(error) => Err(error),
                None => Ok(()),
            }
        }
    }

    fn lock(fake: &Fake) -> Lock<Fake> {
        fake.lock("a").unwrap()
    }

    fn poll<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
        future.poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn with_holds_the_lock_while_the_work_runs() {
        let fake = Fake::default();
        let lock = lock(&fake);
        let mut with = pin!(lock.with(async |fence| {
            fake.note("work");
            fence
        }));
        let Poll::Ready(Ok(fence)) = poll(with.as_mut()) else {
            panic!("the work does not wait");
        };
        assert_eq!(fence, Fence::from_number(5));
        assert_eq!(fake.happened(), ["acquired", "work", "released"]);
    }

    #[test]
    fn with_drops_the_work_before_it_releases() {
        let fake = Fake::default();
        let lock = lock(&fake);
        let mut with = pin!(lock.with(|_| fake.clone().endless()));
        assert!(poll(with.as_mut()).is_pending());
        fake.set(|state| state.loss = Some(LOSS));
        let lost = poll(with.as_mut());
        assert!(matches!(lost, Poll::Ready(Err(WithLockError::Lost(LOSS)))));
        let expected = ["acquired", "work dropped", "released"];
        assert_eq!(fake.happened(), expected);

        // The same if the caller loses interest.
        let fake = Fake::default();
        {
            let lock = fake.lock("a").unwrap();
            let mut with = pin!(lock.with(|_| fake.clone().endless()));
            assert!(poll(with.as_mut()).is_pending());
        }
        assert_eq!(fake.happened(), expected);
    }

    #[test]
    fn with_is_no_success_if_the_lock_was_lost_before_the_work_returned() {
        // The loss is known when the work returns.
        let fake = Fake::default();
        fake.set(|state| state.loss = Some(LOSS));
        let with = lock(&fake);
        let lost = poll(pin!(with.with(ready)));
        assert!(matches!(lost, Poll::Ready(Err(WithLockError::Lost(LOSS)))));

        // It becomes known soon after, because the work kept the thread busy.
        let fake = Fake::default();
        let with = lock(&fake);
        let mut with = pin!(with.with(async |_| fake.set(|state| state.is_over = true)));
        assert!(poll(with.as_mut()).is_pending());
        fake.set(|state| state.loss = Some(LOSS));
        let lost = poll(with.as_mut());
        assert!(matches!(lost, Poll::Ready(Err(WithLockError::Lost(LOSS)))));

        // Only the node knew.
        let fake = Fake::default();
        fake.set(|state| state.release = Some(LOSS.into()));
        let with = lock(&fake);
        let lost = poll(pin!(with.with(ready)));
        assert!(matches!(lost, Poll::Ready(Err(WithLockError::Lost(LOSS)))));
    }

    #[test]
    fn with_is_a_success_even_if_the_release_is_not_confirmed() {
        let fake = Fake::default();
        fake.set(|state| {
            state.release = Some(ReleaseError::NotConfirmed {
                source: "the connection broke".into(),
                expires_within: Duration::from_secs(3),
            });
        });
        let with = lock(&fake);
        let done = poll(pin!(with.with(ready)));
        assert!(matches!(done, Poll::Ready(Ok(_))), "{done:?}");
    }
}
