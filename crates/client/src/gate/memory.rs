//! Gates in memory.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Stale, check};
use crate::Fence;

/// A gate for one resource, in memory. Its state is lost when the process ends; see
/// [`FileGate`](super::FileGate) for a persistent gate.
///
/// ```
/// use soloist_client::Fence;
/// use soloist_client::gate::{Gate, Stale};
///
/// let gate = Gate::new();
/// let (one, two) = (Fence::from_number(7), Fence::from_number(8));
/// assert_eq!(gate.admit(one), Ok(()));
/// assert_eq!(gate.admit(one), Ok(())); // the same holder again
/// assert_eq!(gate.admit(two), Ok(()));
/// assert_eq!(gate.admit(one), Err(Stale { seen: two, given: one }));
/// ```
#[derive(Debug, Default)]
pub struct Gate {
    seen: Mutex<Option<Fence>>,
}

impl Gate {
    /// Creates a gate that has not admitted any fence yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Admits `fence` and rejects lower ones from now on, or returns an error if it is stale.
    ///
    /// Work done after this call may still come too late, since a higher fence may be admitted in
    /// between. Where that matters, use [`run`](Self::run).
    pub fn admit(&self, fence: Fence) -> Result<(), Stale> {
        self.run(fence, || ())
    }

    /// Admits `fence` and runs `work` before any other fence is admitted. Does not run `work` if
    /// the fence is rejected.
    pub fn run<R>(&self, fence: Fence, work: impl FnOnce() -> R) -> Result<R, Stale> {
        let mut seen = self.lock();
        check(*seen, fence)?;
        *seen = Some(fence);
        Ok(work())
    }

    /// The highest fence admitted so far, or `None` if there was none.
    pub fn seen(&self) -> Option<Fence> {
        *self.lock()
    }

    /// Ignores poisoning: if `work` panicked, its fence was admitted all the same.
    fn lock(&self) -> MutexGuard<'_, Option<Fence>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The gates of many resources, by key. A gate is created when its key is first used, and kept
/// forever: a new gate in its place would admit stale holders.
///
/// ```
/// use soloist_client::Fence;
/// use soloist_client::gate::Gates;
///
/// let gates = Gates::new();
/// gates.of("accounts/7").admit(Fence::from_number(12)).unwrap();
/// gates.of("accounts/8").admit(Fence::from_number(3)).unwrap();
/// assert!(gates.of("accounts/7").admit(Fence::from_number(11)).is_err());
/// ```
#[derive(Debug)]
pub struct Gates<K = String> {
    all: Mutex<HashMap<K, Arc<Gate>>>,
}

impl<K> Default for Gates<K> {
    fn default() -> Self {
        Gates {
            all: Mutex::default(),
        }
    }
}

impl Gates {
    /// Creates an empty set of gates with strings as keys.
    pub fn new() -> Self {
        Self::default()
    }
}

impl<K: Eq + Hash> Gates<K> {
    /// Returns the gate of the resource with this key.
    pub fn of<Q>(&self, key: &Q) -> Arc<Gate>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ToOwned<Owned = K> + ?Sized,
    {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(gate) = all.get(key) {
            return Arc::clone(gate);
        }
        Arc::clone(all.entry(key.to_owned()).or_default())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::thread;

    use proptest::prelude::*;

    use super::*;

    fn admit(gate: &Gate, fence: u64) -> Result<(), Stale> {
        gate.admit(Fence::from_number(fence))
    }

    fn run<R>(gate: &Gate, fence: u64, work: impl FnOnce() -> R) -> Result<R, Stale> {
        gate.run(Fence::from_number(fence), work)
    }

    #[test]
    fn zero_and_the_highest_are_fences() {
        let gate = Gate::new();
        assert_eq!(gate.seen(), None);
        assert_eq!(admit(&gate, 0), Ok(()));
        assert_eq!(admit(&gate, u64::MAX), Ok(()));
        assert_eq!(admit(&gate, u64::MAX), Ok(()));
        let stale = admit(&gate, u64::MAX - 1).unwrap_err();
        assert!(
            stale
                .to_string()
                .contains("18446744073709551614 is lower than")
        );
    }

    #[test]
    fn stale_fences_do_no_work() {
        let gate = Gate::new();
        assert_eq!(run(&gate, 2, || "done"), Ok("done"));
        let mut touched = false;
        assert!(run(&gate, 1, || touched = true).is_err());
        assert!(!touched);
    }

    #[test]
    fn a_panic_inside_the_gate_leaves_it_unchanged() {
        let gate = Gate::new();
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            run(&gate, 5, || panic!("work went wrong"))
        }));
        assert!(caught.is_err());
        assert!(admit(&gate, 4).is_err());
        assert_eq!(admit(&gate, 5), Ok(()));
    }

    #[test]
    fn work_inside_follows_the_order_of_fences() {
        let (gate, last) = (Gate::new(), AtomicU64::new(0));
        thread::scope(|scope| {
            for first in 0..4 {
                let (gate, last) = (&gate, &last);
                scope.spawn(move || {
                    for fence in (first..4000).step_by(4) {
                        let _ = run(gate, fence, || {
                            let before = last.swap(fence, Ordering::Relaxed);
                            assert!(before <= fence, "{fence} wrote after {before}");
                        });
                    }
                });
            }
        });
        assert_eq!(gate.seen(), Some(Fence::from_number(3999)));
    }

    proptest! {
        #[test]
        fn a_fence_is_admitted_if_none_was_higher(fences in prop::collection::vec(0..20u64, 0..40)) {
            let gate = Gate::new();
            let mut highest = None;
            for fence in fences {
                let admitted = admit(&gate, fence).is_ok();
                prop_assert_eq!(admitted, highest <= Some(fence));
                highest = highest.max(Some(fence));
                prop_assert_eq!(gate.seen().map(Fence::number), highest);
            }
        }
    }
}
