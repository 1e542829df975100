//! No allocation per event in the steady state: twice the entries cause no more allocations.

use soloist_algorithms::Choice;
use soloist_lab::simulate::{Setup, simulate};

/// Allowance for a longer run: a queue or a table may reach a new peak and grow.
const PEAKS_MAX: u64 = 40;

fn allocations(choice: Choice, load: &str, entries: u64) -> u64 {
    let setup = Setup {
        load: load.parse().unwrap(),
        entries,
        ..Setup::new(choice, 12)
    };
    let counted = allocation_counter::measure(|| {
        let report = simulate(&setup, &mut |_| ()).unwrap();
        assert!(report.is_well());
    });
    counted.count_total
}

#[test]
fn the_steady_state_allocates_nothing() {
    let resting = ["neamatollahi", "le-lann"].map(|name| Choice::parse(name, "resting").unwrap());
    let raymond = Choice::parse("raymond", "piggyback,greedy").unwrap();
    for choice in Choice::all().chain(resting).chain([raymond]) {
        for load in ["light", "heavy", "think:20"] {
            let short = allocations(choice, load, 5_000);
            let long = allocations(choice, load, 10_000);
            assert!(
                long <= short + PEAKS_MAX,
                "{} under {load} load: {short} allocations for 5,000 entries, {long} for 10,000",
                choice.name
            );
        }
    }
}
