//! Whether a store has anything in it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether anything was ever agreed on, as far as a store knows. Its halves tell.
#[derive(Clone, Debug, Default)]
pub struct Used(Arc<AtomicBool>);

impl Used {
    /// Whether it was.
    pub fn is_so(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    pub(super) fn set(&self) {
        self.0.store(true, Ordering::Release);
    }
}
