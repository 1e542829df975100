//! Gates in memory.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Stale, check};

/// A gate for one resource, in memory. Its state is lost when the process ends; see
/// [`FileGate`](super::FileGate) for a persistent gate.
///
/// ```
/// use soloist_client::gate::{Gate, Stale};
///
/// let gate = Gate::new();
/// assert_eq!(gate.admit(7), Ok(()));
/// assert_eq!(gate.admit(7), Ok(())); // the same holder again
/// assert_eq!(gate.admit(8), Ok(()));
/// assert_eq!(gate.admit(7), Err(Stale { seen: 8, given: 7 }));
/// ```
#[derive(Debug, Default)]
pub struct Gate {
    seen: Mutex<Option<u64>>,
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
    pub fn admit(&self, fence: u64) -> Result<(), Stale> {
        self.run(fence, || ())
    }

    /// Admits `fence` and runs `work` before any other fence is admitted. Does not run `work` if
    /// the fence is rejected.
    pub fn run<R>(&self, fence: u64, work: impl FnOnce() -> R) -> Result<R, Stale> {
        let mut seen = self.lock();
        check(*seen, fence)?;
        *seen = Some(fence);
        Ok(work())
    }

    /// The highest fence admitted so far, or `None` if there was none.
    pub fn seen(&self) -> Option<u64> {
        *self.lock()
    }

    /// Ignores poisoning: if `work` panicked, its fence was admitted all the same.
    fn lock(&self) -> MutexGuard<'_, Option<u64>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The gates of many resources, by key. A gate is created when its key is first used, and kept
/// forever: a new gate in its place would admit stale holders.
///
/// ```
/// use soloist_client::gate::Gates;
///
/// let gates = Gates::new();
/// gates.of("accounts/7").admit(12).unwrap();
/// gates.of("accounts/8").admit(3).unwrap();
/// assert!(gates.of("accounts/7").admit(11).is_err());
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

    #[test]
    fn zero_and_the_highest_are_fences() {
        let gate = Gate::new();
        assert_eq!(gate.seen(), None);
        assert_eq!(gate.admit(0), Ok(()));
        assert_eq!(gate.admit(u64::MAX), Ok(()));
        assert_eq!(gate.admit(u64::MAX), Ok(()));
        let stale = gate.admit(u64::MAX - 1).unwrap_err();
        assert!(
            stale
                .to_string()
                .contains("18446744073709551614 is lower than")
        );
    }

    #[test]
    fn work_is_not_done_for_the_stale() {
        let gate = Gate::new();
        assert_eq!(gate.run(2, || "done"), Ok("done"));
        let mut touched = false;
        assert!(gate.run(1, || touched = true).is_err());
        assert!(!touched);
    }

    #[test]
    fn a_panic_inside_does_not_open_or_shut_the_gate() {
        let gate = Gate::new();
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            gate.run(5, || panic!("work went wrong"))
        }));
        assert!(caught.is_err());
        assert!(gate.admit(4).is_err());
        assert_eq!(gate.admit(5), Ok(()));
    }

    #[test]
    fn what_is_done_inside_is_in_order_of_fences() {
        let (gate, last) = (Gate::new(), AtomicU64::new(0));
        thread::scope(|scope| {
            for first in 0..4 {
                let (gate, last) = (&gate, &last);
                scope.spawn(move || {
                    for fence in (first..4000).step_by(4) {
                        let _ = gate.run(fence, || {
                            let before = last.swap(fence, Ordering::Relaxed);
                            assert!(before <= fence, "{fence} wrote after {before}");
                        });
                    }
                });
            }
        });
        assert_eq!(gate.seen(), Some(3999));
    }

    proptest! {
        #[test]
        fn a_fence_is_admitted_if_none_was_higher(fences in prop::collection::vec(0..20u64, 0..40)) {
            let gate = Gate::new();
            let mut highest = None;
            for fence in fences {
                let admitted = gate.admit(fence).is_ok();
                prop_assert_eq!(admitted, highest <= Some(fence));
                highest = highest.max(Some(fence));
                prop_assert_eq!(gate.seen(), highest);
            }
        }
    }
}
