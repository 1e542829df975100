//! Runs of consecutive seeds on all cores.

use std::ops::Range;

use rayon::prelude::*;

/// Calls `run` with the seeds from `first` on whose numbers are in this range, on all cores.
/// Returns the results in the order of the seeds, so they do not depend on the number of cores.
/// Calls `done` after each run.
pub(crate) fn run_each<T: Send>(
    first: u64,
    numbers: Range<u64>,
    done: &(dyn Fn() + Sync),
    run: impl Fn(u64) -> T + Sync,
) -> Vec<T> {
    let results = numbers.into_par_iter().map(|number| {
        let result = run(first.wrapping_add(number));
        done();
        result
    });
    results.collect()
}
