//! Events per second of the simulator: `cargo bench -p soloist-lab`.

use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use soloist_algorithms::Choice;
use soloist_lab::simulate::{Setup, simulate};

fn setup(algorithm: &str, nodes: usize, load: &str, entries: u64) -> Setup {
    Setup {
        load: load.parse().unwrap(),
        entries,
        ..Setup::new(Choice::parse(algorithm, "").unwrap(), nodes)
    }
}

/// Every algorithm under heavy load.
fn algorithms(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("heavy");
    group
        .sample_size(10)
        .measurement_time(Duration::from_secs(3));
    for choice in Choice::all() {
        let setup = setup(choice.name, 64, "heavy", 5_000);
        let events = simulate(&setup, &mut |_| ()).unwrap().events;
        group.throughput(Throughput::Elements(events));
        group.bench_function(choice.name, |bencher| {
            bencher.iter(|| simulate(black_box(&setup), &mut |_| ()).unwrap());
        });
    }
    group.finish();
}

/// The cost of an event as the cluster grows. Apart from the event queue's logarithm, it should
/// depend only on the machine's caches.
fn sizes(criterion: &mut Criterion) {
    for (algorithm, load) in [
        ("raymond", "heavy"),
        ("raymond", "light"),
        ("naimi-trehel", "light"),
    ] {
        let mut group = criterion.benchmark_group(format!("{algorithm}-{load}"));
        group
            .sample_size(10)
            .measurement_time(Duration::from_secs(3));
        for nodes in [15, 127, 1_023, 8_191, 65_535] {
            let setup = setup(algorithm, nodes, load, 200_000);
            let events = simulate(&setup, &mut |_| ()).unwrap().events;
            group.throughput(Throughput::Elements(events));
            group.bench_function(BenchmarkId::from_parameter(nodes), |bencher| {
                bencher.iter(|| simulate(black_box(&setup), &mut |_| ()).unwrap());
            });
        }
        group.finish();
    }
}

/// A million nodes, a million entries.
fn a_million(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("million");
    group.sample_size(10);
    for algorithm in ["raymond", "naimi-trehel"] {
        let setup = setup(algorithm, 1_000_000, "heavy", 1_000_000);
        group.bench_function(algorithm, |bencher| {
            bencher.iter(|| simulate(black_box(&setup), &mut |_| ()).unwrap());
        });
    }
    group.finish();
}

criterion_group!(benches, algorithms, sizes, a_million);
criterion_main!(benches);
