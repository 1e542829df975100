//! Number of messages, and how evenly nodes share them.

use soloist_algorithms::{Choice, Kind};
use soloist_lab::replicate::Replicated;

use super::{NAME, ORDERS, plane};
use crate::pairs::{is_cheaper, more_messages};
use crate::share::{EQUAL, busiest};
use crate::tools::{Run, examined_again, finding, highest, largest};
use crate::{Finding, Verdict};

/// Whether nodes have equal parts, as far as the words can be measured.
pub(super) fn symmetric() -> Finding {
    let run = Run::of(NAME, 31).entries(15_500);
    let skew = run.measure(busiest);
    Finding::open(
        Verdict::DependsOnReading,
        format!(
            "§4 says that each node executes an identical algorithm, and it does here; on a plane of 31 nodes the busiest receives {skew} times the \
             mean under heavy load. But requests are ordered by the nodes' numbers where sequence numbers are equal, and the paper defines \
             neither symmetric nor fully parallel: entries are serial in any case"
        ),
        "a definition of both terms",
        run.steady_command(),
    )
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

/// Measured entries per node where the busiest node is of interest.
const EACH: u64 = 500;

pub(super) fn optimal() -> Finding {
    let nodes = plane(7);
    let light = |name: &str| Run::of(name, nodes).load("light");
    let own = light(NAME).replicated();
    let mut cheaper = Vec::new();
    for choice in Choice::all().filter(|choice| choice.kind != Kind::Maekawa) {
        if !is_cheaper(&light(choice.name).replicated(), &own) {
            continue;
        }
        // Many entries of each node, so that the busiest is not so by chance.
        let other = light(choice.name).entries(EACH * nodes as u64).replicated();
        let single = |seed| light(choice.name).entries(1).seed(seed).cost();
        let singles: Vec<f64> = (0..40).map(single).collect();
        let least = -largest(singles.iter().map(|cost| -cost));
        cheaper.push(format!(
            "{} {} ({least} to {} each in 40 runs, busiest node {} times the mean)",
            choice.name,
            other.report.measures.messages_per_entry,
            largest(singles),
            other.estimate(busiest)
        ));
    }
    let found = format!(
        "N = {nodes}, one request at a time, {} messages; cheaper in pairs of runs with the same demand, and measured with {EACH} entries per \
         node: {}. Whether these count as algorithms in which all nodes work equally is a matter of definition, and the paper announces a proof that it does not print",
        own.report.measures.messages_per_entry,
        cheaper.join(", "),
    );
    Finding::open(
        Verdict::NotDecided,
        found,
        "a definition of equal work, and a proof of the lower bound for it; measurements cannot",
        examined_again(Kind::Maekawa, "§1"),
    )
}

pub(super) fn fewer_than_ricart_agrawala() -> Finding {
    let costs = ORDERS.map(|order| {
        let heavy = |name| {
            let run = Run::of(name, plane(order)).entries(1000);
            run.replicated()
        };
        let (own, other) = (heavy(NAME), heavy("ricart-agrawala"));
        let messages = |run: &Replicated| run.report.measures.messages_per_entry;
        [
            messages(&own),
            messages(&other),
            more_messages(&other, &own),
        ]
    });
    let listed = |place: usize| costs.map(|cost| cost[place].to_string()).join(", ");
    let found = format!(
        "N = 7, 13, 31, 57, heavy load: {} against {}; {} fewer in pairs of runs with the same demand",
        listed(0),
        listed(1),
        listed(2)
    );
    let so = costs.iter().all(|[_, _, fewer]| fewer.low() > 0.0);
    finding(so, found, Run::of(NAME, 57).entries(1000).steady_command())
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
    let costs: Vec<f64> = (0..100).map(|seed| run(seed).cost()).collect();
    let (least, most) = (-largest(costs.iter().map(|c| -c)), largest(costs));
    let found =
        format!("N = 13, 100 single entries of random nodes: {least} to {most} messages each");
    finding(least == most, found, run(0).command())
}

pub(super) fn equal_responsibility() -> Finding {
    let run = |name: &str, nodes: usize, load: &str| {
        let run = Run::of(name, nodes).load(load);
        run.entries(EACH * nodes as u64)
    };
    let skew = |name, load| run(name, 31, load).measure(busiest);
    let planes = [skew(NAME, "light"), skew(NAME, "heavy")];
    let central = skew("central", "light");
    let ragged =
        ["singer", "cyclic"].map(|form| run(NAME, 25, "light").shape(form).measure(busiest));
    let found = format!(
        "N = 31: the busiest node receives {} times the mean under light load, {} under heavy (up to {EQUAL} is taken for equal, because the \
         busiest of 31 is above the mean by chance alone); with a coordinator {central}. Where N is not a plane's, as N = 25, {} with a folded plane \
         and {} with cyclic sets",
        planes[0], planes[1], ragged[0], ragged[1]
    );
    let so = highest(&planes) <= EQUAL && central.low() > 2.0;
    finding(so, found, run(NAME, 31, "heavy").steady_command())
}
