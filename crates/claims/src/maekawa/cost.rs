//! Number of messages, and how evenly nodes share them.

use std::sync::Arc;

use soloist_algorithms::maekawa::{AS_PUBLISHED, Maekawa};
use soloist_algorithms::shape::Quorums;
use soloist_algorithms::{Choice, Kind, Shape, VariantSet};
use soloist_lab::search::{Aim, Bounds, Worst, worst};
use soloist_lab::simulate::{Load, Report, Setup, simulate};

use super::{NAME, ORDERS, plane};
use crate::share::{EQUAL, busiest};
use crate::tools::{Run, finding, largest};
use crate::{Finding, Verdict};

pub(super) fn between_three_and_five() -> Finding {
    let loads = [
        "light",
        "think:200",
        "think:50",
        "think:10",
        "heavy",
        "burst",
    ];
    let run = |order, load| {
        let run = Run::of(NAME, plane(order)).load(load);
        if load == "burst" {
            run
        } else {
            run.entries(3000)
        }
    };
    // A node's message to itself is not counted, so K - 1 stands for √N.
    let c = |order: usize, load| run(order, load).messages() / order as f64;
    let by_load = loads.map(|load| ORDERS.map(|order| c(order, load)));
    let listed: Vec<_> = loads
        .iter()
        .zip(by_load)
        .map(|(load, c)| format!("{load} {:.2}", largest(c)))
        .collect();
    let worst = [as_published(), VariantSet::default()].map(worst_of_three);
    let found = format!(
        "N = 7, 13, 31, 57, c as messages for each of the K-1 others, the most by load: {}; in the worst of all interleavings of three \
         requests on a 2x2 grid, {:.2} as printed and {:.2} repaired, where the displaced are told",
        listed.join(", "),
        worst[0],
        worst[1]
    );
    let most = |worst| largest(by_load.into_iter().flatten().chain([worst]));
    let least = -largest(by_load.iter().flatten().map(|c| -c));
    let [published, repaired] = worst.map(|worst| least >= 3.0 && most(worst) <= 5.0);
    Finding {
        verdict: Verdict::of(published, repaired),
        found,
        evidence: run(5, "heavy").command(),
    }
}

/// The most messages, per entry and per other member of a set (there are two), when three nodes of
/// a 2x2 grid request once.
fn worst_of_three(variants: VariantSet) -> f64 {
    let bounds = Bounds {
        shape: Arc::new(Quorums::parse("grid", 4).expect("a grid for any N")),
        variants,
        ..Bounds::of::<Maekawa>(&[0, 1, 1, 1])
    };
    match worst::<Maekawa>(&bounds, Aim::Messages, &mut |_| true) {
        Worst::Most { most, .. } => most as f64 / (3.0 * 2.0),
        other => panic!("{other:?}"),
    }
}

pub(super) fn three_roots() -> Finding {
    let run = |order| Run::of(NAME, plane(order)).load("light").entries(1000);
    let reports = ORDERS.map(|order| run(order).report().measures);
    let exact = reports.iter().zip(ORDERS).all(|(measures, order)| {
        let each = measures.entries * order as u64;
        let kinds = &measures.messages_by_kind;
        measures.messages == 3 * each
            && ["REQUEST", "LOCKED", "RELEASE"]
                .iter()
                .all(|kind| kinds[kind] == each)
    });
    let found = format!(
        "N = 7, 13, 31, 57: {} messages, exactly 3(K-1), a third of each kind; 3√N is {}",
        reports
            .each_ref()
            .map(|m| m.messages_per_entry.to_string())
            .join(", "),
        ORDERS
            .map(|order| format!("{:.1}", 3.0 * (plane(order) as f64).sqrt()))
            .join(", ")
    );
    finding(exact, found, run(3).command())
}

pub(super) fn optimal() -> Finding {
    let nodes = plane(7);
    let own = Run::of(NAME, nodes).load("light").messages();
    let single = |choice: Choice, seed| {
        let setup = Setup {
            load: Load::Light,
            entries: 1,
            seed,
            ..Setup::new(choice, nodes)
        };
        report(&setup).measures.messages
    };
    let mut cheaper = Vec::new();
    let mut equals = Vec::new();
    for choice in Choice::all().filter(|choice| choice.kind != Kind::Maekawa) {
        let setup = Setup {
            load: Load::Light,
            ..Setup::new(choice, nodes)
        };
        let measures = report(&setup).measures;
        if measures.messages_per_entry >= own {
            continue;
        }
        let singles: Vec<u64> = (0..40).map(|seed| single(choice, seed)).collect();
        let (least, most) = (singles.iter().min(), singles.iter().max());
        let skew = busiest(&measures);
        if least == most && skew <= EQUAL {
            equals.push(choice.name);
        }
        let name = choice.name;
        cheaper.push(format!(
            "{name} {:.1} (busiest node {skew:.1} times the mean)",
            measures.messages_per_entry
        ));
    }
    let found = format!(
        "N = 57, one request at a time, {own} messages; cheaper on average: {}; of these, with every request at the same cost and within a tenth \
         of the same work for all nodes: {}",
        cheaper.join(", "),
        if equals.is_empty() {
            "none".to_owned()
        } else {
            equals.join(", ")
        }
    );
    let evidence = "soloist lab compare --algorithms all --nodes 57 --load light";
    finding(equals.is_empty(), found, evidence.to_owned())
}

fn report(setup: &Setup) -> Report {
    simulate(setup, &mut |_| ()).expect("a run that can be simulated")
}

pub(super) fn fewer_than_ricart_agrawala() -> Finding {
    let costs = ORDERS.map(|order| {
        let nodes = plane(order);
        let heavy = |name| Run::of(name, nodes).entries(2000).messages();
        (heavy(NAME), heavy("ricart-agrawala"))
    });
    let found = format!(
        "N = 7, 13, 31, 57, heavy load: {} against {}",
        costs.map(|(own, _)| format!("{own:.1}")).join(", "),
        costs.map(|(_, other)| other.to_string()).join(", ")
    );
    let so = costs.iter().all(|(own, other)| own < other);
    finding(so, found, Run::of(NAME, 57).entries(2000).command())
}

pub(super) fn fewer_than_a_majority() -> Finding {
    let run = |order, form| {
        let run = Run::of(NAME, plane(order)).shape(form);
        run.load("light").entries(500)
    };
    let asked = |form| {
        ORDERS.map(|order| {
            let measures = run(order, form).report().measures;
            measures.messages_by_kind["REQUEST"] as f64 / measures.entries as f64
        })
    };
    let (planes, majorities) = (asked("singer"), asked("majority"));
    let halves = ORDERS.map(|order| (plane(order) / 2) as f64);
    let so = majorities == halves && planes.iter().zip(halves).all(|(few, half)| *few < half);
    let listed = |values: [f64; 4]| values.map(|value| value.to_string()).join(", ");
    let found = format!(
        "N = 7, 13, 31, 57: with majorities {} others are asked, exactly ⌊N/2⌋; with planes {}",
        listed(majorities),
        listed(planes)
    );
    finding(so, found, run(5, "majority").command())
}

pub(super) fn equal_cost() -> Finding {
    let run = |seed| {
        let run = Run::of(NAME, 13).load("light").entries(1);
        run.seed(seed)
    };
    let costs: Vec<f64> = (0..100).map(|seed| run(seed).messages()).collect();
    let (least, most) = (-largest(costs.iter().map(|c| -c)), largest(costs));
    let found =
        format!("N = 13, 100 single entries of random nodes: {least} to {most} messages each");
    finding(least == most, found, run(0).command())
}

pub(super) fn equal_responsibility() -> Finding {
    let run = |name: &str, nodes: usize, load: &str| {
        let run = Run::of(name, nodes).load(load);
        run.entries(500 * nodes as u64)
    };
    let skew = |name, load| busiest(&run(name, 31, load).report().measures);
    let planes = [skew(NAME, "light"), skew(NAME, "heavy")];
    let central = skew("central", "light");
    let ragged = ["singer", "cyclic"].map(|form| {
        let run = run(NAME, 25, "light").shape(form);
        busiest(&run.report().measures)
    });
    let found = format!(
        "N = 31: the busiest node receives {:.2} times the mean under light load, {:.2} under heavy; with a coordinator {central:.1}. \
         Where N is no plane's, as N = 25, {:.2} with a folded plane and {:.2} with cyclic sets",
        planes[0], planes[1], ragged[0], ragged[1]
    );
    let so = largest(planes) <= EQUAL && central > 2.0;
    finding(so, found, run(NAME, 31, "heavy").command())
}

fn as_published() -> VariantSet {
    VariantSet::default().with(AS_PUBLISHED)
}
