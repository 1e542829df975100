//! Records entries and checks mutual exclusion.
//!
//! By fence: a resource rejects any fence that is lower than the highest it has seen. No fence may
//! be granted twice, and a worker that still holds the lock, to its own knowledge, must never be
//! rejected.
//!
//! By time: no worker may enter while another is inside. A worker is inside from the grant until it
//! releases the lock, is told that it lost the lock, or sees that its hold has expired.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use soloist_client::gate::{Gates, Stale};
use soloist_client::{ClientGuard, EndReason, Fence, Guard, Locks, Loss, ReleaseError};
use soloist_testing::wait::within;

use crate::TIMEOUT;
use crate::cluster::{Cluster, Plan};
use crate::workers::Workers;

#[derive(Default)]
pub(crate) struct Referee {
    resources: Gates,
    numbers: AtomicU64,
    book: Mutex<Book>,
}

#[derive(Default)]
struct Book {
    inside: HashMap<u64, Entered>,
    entries: Vec<Entry>,
    losses: Vec<Lost>,
    violations: Vec<String>,
}

struct Entered {
    worker: String,
    lock: String,
    fence: Fence,
    guard: Arc<ClientGuard>,
}

/// An entry of a worker.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub worker: String,
    pub lock: String,
    pub fence: Fence,
    pub at: Instant,
}

/// A lock that a worker lost while it was inside.
#[derive(Clone, Debug)]
pub(crate) struct Lost {
    pub worker: String,
    pub reason: EndReason,
}

/// A worker that is inside.
pub(crate) struct Inside {
    referee: Arc<Referee>,
    number: u64,
    guard: Option<Arc<ClientGuard>>,
}

impl Referee {
    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap()
    }

    /// Records the entry of a worker that was granted a lock. Returns `None` if the hold has
    /// expired or its fence is stale.
    pub(crate) fn enter(self: &Arc<Self>, worker: &str, guard: ClientGuard) -> Option<Inside> {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        let guard = Arc::new(guard);
        let mut book = self.book();
        let (lock, fence) = (guard.name().to_string(), guard.fence());
        if guard.valid_for().is_zero() {
            return None;
        }
        let admitted = self.resources.of(lock.as_str()).admit(fence);
        if let Err(stale) = admitted
            && !guard.valid_for().is_zero()
        {
            let text = format!("{worker} holds {lock}, and is refused: {stale}");
            book.violations.push(text);
        }
        admitted.ok()?;
        let same = |entry: &&Entry| entry.lock == lock && entry.fence == fence;
        if let Some(other) = book.entries.iter().find(same) {
            let text = format!("{worker} has the fence of {other:?}");
            book.violations.push(text);
        }
        let others = book.inside.values().filter(|other| other.lock == lock);
        let together = others.filter(|other| !other.guard.valid_for().is_zero());
        let together: Vec<String> = together
            .map(|other| {
                let (name, valid_for) = (&other.worker, other.guard.valid_for());
                format!(
                    "{worker} went into {lock} with fence {fence}, and {name} is inside with {} for another {valid_for:?}",
                    other.fence
                )
            })
            .collect();
        book.violations.extend(together);
        book.entries.push(Entry {
            worker: worker.to_owned(),
            lock: lock.clone(),
            fence,
            at: Instant::now(),
        });
        let entered = Entered {
            worker: worker.to_owned(),
            lock,
            fence,
            guard: Arc::clone(&guard),
        };
        book.inside.insert(number, entered);
        Some(Inside {
            referee: Arc::clone(self),
            number,
            guard: Some(guard),
        })
    }

    /// All entries so far.
    pub(crate) fn entries(&self) -> Vec<Entry> {
        self.book().entries.clone()
    }

    /// All losses so far.
    pub(crate) fn losses(&self) -> Vec<Lost> {
        self.book().losses.clone()
    }

    /// Number of entries per worker.
    fn counts(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for entry in &self.book().entries {
            *counts.entry(entry.worker.clone()).or_default() += 1;
        }
        counts
    }

    /// Waits until each of these workers has entered once more, and returns how long that took.
    pub(crate) async fn serves(&self, workers: &[String], limit: Duration) -> Duration {
        let count = |counts: &BTreeMap<String, usize>, worker: &str| {
            counts.get(worker).copied().unwrap_or_default()
        };
        let before = self.counts();
        let mut waiting = workers.to_vec();
        let began = Instant::now();
        while !waiting.is_empty() {
            let now = self.counts();
            waiting.retain(|worker| count(&now, worker) <= count(&before, worker));
            assert!(
                began.elapsed() < limit,
                "not served within {limit:?}: {waiting:?}"
            );
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        began.elapsed()
    }

    /// Waits for the next entry into a lock with a higher fence than this one, and returns it.
    pub(crate) async fn follows(&self, lock: &str, fence: Fence) -> Entry {
        let mut found = None;
        within(TIMEOUT, "the next one goes in", async || {
            let entries = self.book();
            let mut later = entries.entries.iter();
            found = later
                .find(|entry| entry.lock == lock && entry.fence > fence)
                .cloned();
            found.is_some()
        })
        .await;
        found.unwrap()
    }

    /// The longest time since `begin` without an entry into a lock.
    pub(crate) fn longest_pause(&self, lock: &str, begin: Instant) -> Duration {
        let entries = self.entries();
        let times = entries.iter().filter(|entry| entry.lock == lock);
        let times = times.map(|entry| entry.at).filter(|at| *at > begin);
        let mut longest = Duration::ZERO;
        let mut last = begin;
        for at in times.chain([Instant::now()]) {
            longest = longest.max(at - last);
            last = at;
        }
        longest
    }

    /// All violations so far.
    pub(crate) fn violations(&self) -> Vec<String> {
        self.book().violations.clone()
    }
}

impl Inside {
    pub(crate) fn guard(&self) -> &ClientGuard {
        self.guard.as_ref().expect("it is taken at the end")
    }

    pub(crate) fn fence(&self) -> Fence {
        self.guard().fence()
    }

    /// Writes to the resource that the lock protects.
    pub(crate) fn write(&self) -> Result<(), Stale> {
        let guard = self.guard();
        let resource = self.referee.resources.of(guard.name().as_str());
        let written = resource.run(guard.fence(), || ());
        if let Err(stale) = written
            && !guard.valid_for().is_zero()
        {
            let text = format!("the holder of {} is refused: {stale}", guard.name());
            self.referee.book().violations.push(text);
        }
        written
    }

    /// Records that the worker was told of the loss of its lock.
    pub(crate) fn lost(&self, loss: &Loss) {
        let mut book = self.referee.book();
        let worker = book.inside[&self.number].worker.clone();
        let reason = loss.reason;
        book.losses.push(Lost { worker, reason });
    }

    /// Writes once more, then releases the lock.
    pub(crate) async fn leave(mut self) -> Result<(), ReleaseError> {
        // A rejection is allowed only if the hold has expired. `write` records any other as a
        // violation.
        let _ = self.write();
        let guard = self.guard.take().expect("it is taken once");
        self.referee.book().inside.remove(&self.number);
        let guard = Arc::into_inner(guard).expect("no other client holds it");
        guard.release().await
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        if let Ok(mut book) = self.referee.book.lock() {
            book.inside.remove(&self.number);
        }
    }
}

/// Two independent clusters grant the same lock at the same time.
#[tokio::test(flavor = "multi_thread")]
async fn the_referee_sees_two_inside_and_fences_that_do_not_rise() {
    let alone = || Plan {
        nodes: 1,
        keepers: 1,
        ..Plan::default()
    };
    let one = Cluster::start(alone()).await;
    let other = Cluster::start(alone()).await;
    let workers = Workers::new();
    for _ in 0..3 {
        let inside = workers.enter(&one, 0, "raymond/a").await;
        inside.leave().await.unwrap();
    }
    assert_eq!(workers.referee.violations(), [""; 0]);
    let client = other.client(0).await;
    let late = client.lock("raymond/a").unwrap().acquire().await.unwrap();
    assert!(workers.referee.enter("late", late).is_none());
    let found = workers.referee.violations();
    assert!(found[0].contains("is refused"), "{found:?}");

    let _first = workers.enter(&one, 0, "maekawa/a").await;
    let _second = workers.enter(&other, 0, "maekawa/a").await;
    let found = workers.referee.violations();
    assert!(found[1].contains("has the fence of"), "{found:?}");
    assert!(found[2].contains("is inside with"), "{found:?}");
    assert_eq!(found.len(), 3, "{found:?}");
}
