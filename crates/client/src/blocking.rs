//! The client for programs without tokio.
//!
//! A thread in the background keeps the session; the calls here wait in the thread that makes them.
//!
//! ```no_run
//! # fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use std::time::Duration;
//! use soloist_client::{Target, blocking};
//!
//! let client = blocking::Client::connect(Target::from_env()?)?;
//! let lock = client.lock("nightly")?;
//!
//! // An error if the lock was lost before the work returned.
//! lock.with(|fence| work(fence))?;
//!
//! // The same by hand, with a guard. It waits for at most 5 s.
//! let guard = lock.acquire_within(Duration::from_secs(5))?;
//! work(guard.fence());
//! guard.release()?;
//! # Ok(())
//! # }
//! # fn work(_fence: soloist_client::Fence) {}
//! ```
//!
//! Work in a thread cannot be interrupted. Long work should look at [`Guard::valid_for`] between
//! its steps, and the protected resource should check the fence.

use std::fmt;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use soloist_api::{
    AcquireError, Fence, Guard as _, LockName, LockNameError, Locks as _, Loss, ReleaseError,
    WithLockError,
};
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

use crate::{ClientBuilder, ClientError, ClientGuard, Target};

/// Client of a node, or of several nodes of a cluster. Cheap to clone; clones share the session.
///
/// Its methods panic if they are called in a task of tokio, which they would block.
#[derive(Clone)]
pub struct Client {
    client: crate::Client,
    thread: Arc<Thread>,
}

/// The thread that keeps the session. Ends when it is dropped.
struct Thread {
    runtime: Handle,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Thread {
    fn start() -> std::io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new().name("soloist-client".to_owned());
        let thread = thread.spawn(move || {
            let _ = runtime.block_on(stopped);
        })?;
        Ok(Thread {
            runtime: handle,
            stop: Some(stop),
            thread: Some(thread),
        })
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Client {
    /// Connects to a node, with the default settings: see [`crate::Client::connect`].
    pub fn connect(target: Target) -> Result<Self, ClientError> {
        Self::connect_with(ClientBuilder::default(), target)
    }

    /// Connects to a node.
    pub fn connect_with(settings: ClientBuilder, target: Target) -> Result<Self, ClientError> {
        let thread = Thread::start().map_err(ClientError::Thread)?;
        let client = thread.runtime.block_on(settings.connect(target))?;
        Ok(Client {
            client,
            thread: Arc::new(thread),
        })
    }

    /// Returns the lock of this name. It exists from its first use, and this asks no node.
    pub fn lock(&self, name: &str) -> Result<Lock, LockNameError> {
        Ok(Lock {
            lock: self.client.lock(name)?,
            thread: Arc::clone(&self.thread),
        })
    }

    /// Waits until the node has answered all releases of dropped guards, but not longer than
    /// `within`: see [`crate::Client::settle`].
    pub fn settle(&self, within: Duration) {
        self.thread.runtime.block_on(self.client.settle(within));
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.client.fmt(f)
    }
}

/// A lock, by name. Cheap to clone.
#[derive(Clone)]
pub struct Lock {
    lock: crate::Lock<crate::Client>,
    thread: Arc<Thread>,
}

impl Lock {
    /// The lock's name.
    pub fn name(&self) -> &LockName {
        self.lock.name()
    }

    /// Sets the owner of later requests, see [`Request::owner`](crate::Request::owner).
    pub fn owner(mut self, owner: &str) -> Self {
        self.lock = self.lock.owner(owner);
        self
    }

    /// Waits until the lock is granted.
    pub fn acquire(&self) -> Result<Guard, AcquireError> {
        let guard = self.thread.runtime.block_on(self.lock.acquire());
        guard.map(|guard| self.guard(guard))
    }

    /// Waits until the lock is granted, for at most `limit`: see
    /// [`Lock::acquire_within`](crate::Lock::acquire_within).
    pub fn acquire_within(&self, limit: Duration) -> Result<Guard, AcquireError> {
        let guard = self
            .thread
            .runtime
            .block_on(self.lock.acquire_within(limit));
        guard.map(|guard| self.guard(guard))
    }

    /// Acquires the lock if it is free, and returns `None` if it is not: see
    /// [`Lock::try_acquire`](crate::Lock::try_acquire).
    pub fn try_acquire(&self) -> Result<Option<Guard>, AcquireError> {
        let guard = self.thread.runtime.block_on(self.lock.try_acquire());
        guard.map(|guard| guard.map(|guard| self.guard(guard)))
    }

    /// Waits until the lock is granted, runs `work`, and releases the lock. Returns what the work
    /// returned if the lock was held until then, and the loss otherwise.
    pub fn with<T>(&self, work: impl FnOnce(Fence) -> T) -> Result<T, WithLockError> {
        let guard = self.acquire()?;
        // Not in the runtime: the work may block in a runtime of its own.
        let output = work(guard.fence());
        if guard.valid_for().is_zero() {
            return Err(guard.lost().into());
        }
        match guard.release() {
            Err(ReleaseError::Lost(loss)) => Err(loss.into()),
            // A release that was not confirmed delays the next holder, and concerns no one else.
            Ok(()) | Err(_) => Ok(output),
        }
    }

    fn guard(&self, guard: ClientGuard) -> Guard {
        Guard {
            guard,
            thread: Arc::clone(&self.thread),
        }
    }
}

impl fmt::Debug for Lock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lock.fmt(f)
    }
}

/// A lock that is held. It is renewed in the background until it is released or lost. Dropping the
/// guard releases the lock and does not wait for the node's answer.
#[must_use = "the lock is released as soon as its guard is dropped"]
pub struct Guard {
    guard: ClientGuard,
    thread: Arc<Thread>,
}

impl Guard {
    /// The lock's name.
    pub fn name(&self) -> &LockName {
        self.guard.name()
    }

    /// The fencing token, see [`Guard::fence`](crate::Guard::fence).
    pub fn fence(&self) -> Fence {
        self.guard.fence()
    }

    /// How much longer the lock is certainly held if nothing is heard of the node; zero once it is
    /// lost.
    pub fn valid_for(&self) -> Duration {
        self.guard.valid_for()
    }

    /// Waits until the lock is lost, or certain to be lost, and returns why: see
    /// [`Guard::lost`](crate::Guard::lost).
    pub fn lost(&self) -> Loss {
        self.thread.runtime.block_on(self.guard.lost())
    }

    /// Releases the lock. Returns an error if it was lost before, or if the node did not confirm
    /// the release.
    pub fn release(self) -> Result<(), ReleaseError> {
        let Guard { guard, thread } = self;
        thread.runtime.block_on(guard.release())
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.guard.fmt(f)
    }
}
