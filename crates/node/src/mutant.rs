//! Faults that a test plants in one node. They show the effects of a panic.

#[cfg(feature = "mutants")]
use std::sync::atomic::{AtomicUsize, Ordering};

soloist_algorithms::mutants! {
    "node" {
        PanicInState: "a node panics while it handles a request for a lock",
        PanicInLeader: "the leader's task panics while it handles an event",
    }
}

/// The fault that is planted in a node, if any. Always none without the feature `mutants`.
#[derive(Default)]
pub(crate) struct Planted {
    /// Its index plus one, or 0 if there is none.
    #[cfg(feature = "mutants")]
    number: AtomicUsize,
}

#[cfg(feature = "mutants")]
impl Planted {
    /// The fault that SOLOIST_MUTANT names, for tests of the executable.
    pub(crate) fn from_env() -> Self {
        let planted = Planted::default();
        let name = std::env::var("SOLOIST_MUTANT").unwrap_or_default();
        if let Some(mutant) = Mutant::ALL.iter().find(|mutant| mutant.name() == name) {
            planted.plant(*mutant);
        }
        planted
    }

    pub(crate) fn plant(&self, mutant: Mutant) {
        self.number.store(mutant as usize + 1, Ordering::SeqCst);
    }

    /// Panics if this fault is planted.
    pub(crate) fn panic_if(&self, mutant: Mutant) {
        let planted = self.number.load(Ordering::Relaxed);
        assert!(planted != mutant as usize + 1, "a planted fault");
    }
}

#[cfg(not(feature = "mutants"))]
impl Planted {
    pub(crate) const fn from_env() -> Self {
        Planted {}
    }

    pub(crate) const fn panic_if(&self, _: Mutant) {}
}
