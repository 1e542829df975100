//! Runs several simulations for comparison.

use rayon::prelude::*;

use crate::simulate::{Report, Setup, SimulateError, simulate};

/// Simulates all setups, on all cores, and returns the reports in the order of the setups. Calls
/// `done` with each report as it is finished.
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
