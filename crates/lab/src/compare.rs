//! Many runs beside each other.

use rayon::prelude::*;

use crate::simulate::{Report, Setup, SimulateError, simulate};

/// Simulates each setup, on all cores, and returns the reports in the setups' order. `done` hears
/// of each that is finished.
pub fn compare(
    setups: &[Setup],
    done: &(dyn Fn(&Report) + Sync),
) -> Result<Vec<Report>, SimulateError> {
    setups
        .par_iter()
        .map(|setup| {
            let report = simulate(setup, &mut |_| ())?;
            done(&report);
            Ok(report)
        })
        .collect()
}
