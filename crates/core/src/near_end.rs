//! For tests: starts numbers near their maximum, since a cluster would take years to use them up.
//! This is for the whole process, so a test that does it must be the only one of its binary.

#[cfg(feature = "mutants")]
use std::sync::atomic::{AtomicU64, Ordering};

#[cfg(feature = "mutants")]
static FENCES: AtomicU64 = AtomicU64::new(0);
#[cfg(feature = "mutants")]
static EPOCHS: AtomicU64 = AtomicU64::new(0);

/// Makes each epoch that begins from now on in this process start with this many fences already
/// used.
#[cfg(feature = "mutants")]
pub fn skip_fences(number: u64) {
    FENCES.store(number, Ordering::Relaxed);
}

/// Makes each cluster that is created from now on in this process start with this many epochs
/// already used.
#[cfg(feature = "mutants")]
pub fn skip_epochs(number: u64) {
    EPOCHS.store(number, Ordering::Relaxed);
}

#[cfg(feature = "mutants")]
pub(crate) fn fences_skipped() -> u64 {
    FENCES.load(Ordering::Relaxed)
}

#[cfg(feature = "mutants")]
pub(crate) fn epochs_skipped() -> u64 {
    EPOCHS.load(Ordering::Relaxed)
}

#[cfg(not(feature = "mutants"))]
pub(crate) const fn fences_skipped() -> u64 {
    0
}

#[cfg(not(feature = "mutants"))]
pub(crate) const fn epochs_skipped() -> u64 {
    0
}
