//! Whether a measurement confirms an exact value.

use soloist_lab::replicate::Estimate;

/// An interval that confirms an exact value reaches at most this share of its mean to either side.
const WIDTH_MAX: f64 = 0.05;

/// Returns whether the interval contains the exact value. Noise widens an interval, so a wide one
/// contains almost any value: panics if it is wider than [`WIDTH_MAX`] allows.
pub(crate) fn is_exactly(measured: Estimate, exact: f64) -> bool {
    let width = measured.relative_half_width();
    assert!(width <= WIDTH_MAX, "{measured}: measure more entries");
    measured.contains(exact)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_narrow_interval_confirms_what_it_contains() {
        let narrow = Estimate::of(&[3.0, 3.01, 2.99], 0.95);
        assert!(is_exactly(narrow, 3.0));
        assert!(!is_exactly(narrow, 3.1));
        assert!(is_exactly(Estimate::of(&[0.0, 0.0], 0.95), 0.0));
    }

    #[test]
    #[should_panic(expected = "measure more entries")]
    fn a_wide_interval_confirms_nothing() {
        is_exactly(Estimate::of(&[2.0, 3.0, 4.0], 0.95), 3.0);
    }
}
