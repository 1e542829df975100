//! Steps per second of scenarios, replayed as text and as data for the player:
//! `cargo bench -p soloist-lab --bench play`.

use std::fmt::Write as _;
use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use soloist_lab::{play, scenario};

/// Raymond's algorithm with 15 nodes that enter one after the other.
fn rounds(entries: usize) -> String {
    let mut text = "algorithm raymond\nnodes 15\n\n".to_owned();
    for entry in 0..entries {
        let node = entry * 7 % 15;
        let _ = write!(text, "> request {node}\n> run\n> release {node}\n");
    }
    text
}

fn replay(criterion: &mut Criterion) {
    let text = rounds(850);
    let run = play::run(&text, 0).unwrap();
    let mut group = criterion.benchmark_group(format!("{} steps", run.count));
    group
        .sample_size(10)
        .throughput(Throughput::Elements(run.count as u64));
    group.bench_function("as text", |bencher| {
        bencher.iter(|| scenario::replay(black_box(&text)).unwrap());
    });
    group.bench_function("as data", |bencher| {
        bencher.iter(|| play::run(black_box(&text), 0).unwrap());
    });
    group.finish();
}

criterion_group!(benches, replay);
criterion_main!(benches);
