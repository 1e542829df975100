//! Quantiles of Student's t distribution.

use std::f64::consts::PI;

/// The t for which a variable with this many degrees of freedom lies between -t and t with
/// probability `level`.
///
/// Found by bisection, since the probability rises with t. The result is accurate to about ten
/// digits, and the same on every machine.
pub(super) fn two_sided_quantile(level: f64, freedom: u64) -> f64 {
    assert!(level > 0.0 && level < 1.0, "a level lies between 0 and 1");
    assert!(freedom >= 1, "two values are needed for an interval");
    let (mut low, mut high) = (0.0, 1.0);
    while probability(high, freedom) < level {
        low = high;
        high *= 2.0;
    }
    for _ in 0..60 {
        let middle = low + (high - low) / 2.0;
        if probability(middle, freedom) < level {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

/// The probability that a variable with this many degrees of freedom lies between -t and t.
///
/// For whole degrees of freedom this is a finite sum: Abramowitz and Stegun, Handbook of
/// Mathematical Functions, 26.7.3 (odd) and 26.7.4 (even).
fn probability(t: f64, freedom: u64) -> f64 {
    let angle = libm::atan(t / libm::sqrt(freedom as f64));
    let (sine, cosine) = (libm::sin(angle), libm::cos(angle));
    let odd = freedom % 2;
    // Each term is the one before, times cos² and a ratio of consecutive whole numbers.
    let mut term = if odd == 1 { cosine } else { 1.0 };
    let mut sum = 0.0;
    for step in 1..=freedom / 2 {
        sum += term;
        let ratio = (2 * step - 1 + odd) as f64 / (2 * step + odd) as f64;
        term *= ratio * cosine * cosine;
    }
    if odd == 1 {
        2.0 / PI * (angle + sine * sum)
    } else {
        sine * sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Printed tables, for instance NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2.
    #[test]
    fn quantiles_are_those_of_printed_tables() {
        for (level, freedom, expected) in [
            (0.95, 1, 12.706),
            (0.95, 2, 4.303),
            (0.95, 3, 3.182),
            (0.95, 4, 2.776),
            (0.95, 9, 2.262),
            (0.95, 10, 2.228),
            (0.95, 29, 2.045),
            (0.95, 100, 1.984),
            (0.99, 9, 3.250),
            (0.99, 30, 2.750),
            (0.999, 1, 636.619),
            (0.999, 2, 31.599),
            (0.999, 9, 4.781),
            (0.999, 19, 3.883),
            (0.999, 29, 3.659),
            (0.999, 120, 3.373),
        ] {
            let quantile = two_sided_quantile(level, freedom);
            assert!(
                (quantile - expected).abs() < 0.0006,
                "{level} with {freedom}: {quantile}, not {expected}"
            );
        }
    }

    /// One degree of freedom is Cauchy's distribution, and two have a closed form. Many approach
    /// the normal distribution.
    #[test]
    fn quantiles_agree_with_closed_forms() {
        for level in [0.5, 0.9, 0.95, 0.99, 0.999] {
            let cauchy = libm::tan(PI * level / 2.0);
            assert!((two_sided_quantile(level, 1) / cauchy - 1.0).abs() < 1e-9);
            let two = level * libm::sqrt(2.0 / (1.0 - level * level));
            assert!((two_sided_quantile(level, 2) / two - 1.0).abs() < 1e-9);
        }
        assert!((two_sided_quantile(0.95, 1_000_000) - 1.959_966).abs() < 1e-5);
        assert!((two_sided_quantile(0.95, 999_999) - 1.959_966).abs() < 1e-5);
    }
}
