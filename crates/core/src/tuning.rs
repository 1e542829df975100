//! What a test may change in a lock table, a participant or a leader: it plants a fault, or makes
//! steps and pieces small.
//!
//! This is a value, so tests in the same process do not disturb each other. Without the cargo
//! feature `mutants` it is empty, and its methods return constants.

use crate::mutant::Mutant;

/// Changes for tests. The default changes nothing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct Tuning {
    /// The planted fault.
    #[cfg(feature = "mutants")]
    pub planted: Option<Mutant>,
    /// How many locks begin an epoch in one step, so that tests with few locks take many steps.
    #[cfg(feature = "mutants")]
    pub begun_at_once: Option<usize>,
    /// The size of pieces, so that tests with few locks have many of them. Each has at least one
    /// row.
    #[cfg(feature = "mutants")]
    pub piece_bytes: Option<usize>,
}

#[cfg(feature = "mutants")]
impl Tuning {
    /// Plants this fault.
    pub fn plant(mutant: Mutant) -> Self {
        Tuning {
            planted: Some(mutant),
            ..Tuning::default()
        }
    }

    pub(crate) fn has(self, mutant: Mutant) -> bool {
        self.planted == Some(mutant)
    }

    pub(crate) fn begun_at_once(self, usual: usize) -> usize {
        self.begun_at_once.unwrap_or(usual)
    }

    pub(crate) fn piece_bytes(self, usual: usize) -> usize {
        self.piece_bytes.unwrap_or(usual)
    }
}

#[cfg(not(feature = "mutants"))]
impl Tuning {
    pub(crate) const fn has(self, _: Mutant) -> bool {
        false
    }

    pub(crate) const fn begun_at_once(self, usual: usize) -> usize {
        usual
    }

    pub(crate) const fn piece_bytes(self, usual: usize) -> usize {
        usual
    }
}
