//! Messages and waiting time under light and heavy demand, and how evenly nodes share the work.

use soloist_algorithms::neamatollahi::Neamatollahi;
use soloist_algorithms::{NodeId, VariantSet};

use super::{NAME, SIDES, listed, square};
use crate::share::{EQUAL, busiest};
use crate::tools::{Run, finding, is_close, largest};
use crate::watch::cost_at_once;
use crate::{Finding, Verdict};

pub(super) fn waits_less_than_on_a_ring() -> Finding {
    let run = |name, nodes| Run::of(name, nodes).load("light").entries(4000);
    let sizes = [16, 64, 256];
    let wait = |name, nodes| run(name, nodes).report().measures.response_time.mean;
    let torus = sizes.map(|nodes| wait(NAME, nodes));
    let ring = sizes.map(|nodes| wait("le-lann", nodes));
    let ratios = [0, 1, 2].map(|i| ring[i] / torus[i]);
    let so = ratios[0] > 1.0 && ratios.is_sorted();
    let found = format!(
        "N = 16, 64, 256, one request at a time: {} message delays on average; on Le Lann's ring {}",
        torus.map(|wait| format!("{wait:.1}")).join(", "),
        ring.map(|wait| format!("{wait:.1}")).join(", ")
    );
    finding(so, found, run(NAME, 64).command())
}

/// At the end of a run, nodes stop requesting, and the last REQUESTs are forwarded past them. The
/// surplus does not grow with the length of the run.
pub(super) fn one_request_each() -> Finding {
    let run = |nodes, entries| Run::of(NAME, nodes).entries(entries);
    let surplus = |entries| {
        SIDES.map(|side| {
            let measures = run(side * side, entries).report().measures;
            measures.messages_by_kind["REQUEST"].saturating_sub(measures.entries)
        })
    };
    let (short, long) = (surplus(1000), surplus(40_000));
    let so = short.iter().chain(&long).zip(SIDES.iter().cycle());
    let so = so
        .into_iter()
        .all(|(&surplus, &side)| surplus <= side as u64);
    let listed = |surplus: [u64; 3]| surplus.map(|surplus| surplus.to_string()).join(", ");
    let found = format!(
        "N = 9, 25, 64, heavy load: a REQUEST an entry, and at the end, when nodes stop asking, {} more in a run of 1,000 entries and {} in one \
         of 40,000",
        listed(short),
        listed(long)
    );
    finding(so, found, run(64, 40_000).command())
}

/// Whether the busiest node does about as much work as the mean under this load.
fn equal_work(load: &str) -> Finding {
    let run = |nodes: usize| Run::of(NAME, nodes).load(load).entries(30_000);
    let skew = [9, 64, 256].map(|nodes| busiest(&run(nodes).report().measures));
    let found = format!(
        "N = 9, 64, 256, {load} load: the busiest node receives {} times the mean (up to {EQUAL} is taken for about the same); the row \
         where columns are changed stays the same, and is passed once more a round",
        skew.map(|skew| format!("{skew:.2}")).join(", ")
    );
    finding(largest(skew) <= EQUAL, found, run(64).command())
}

pub(super) fn equal_work_light() -> Finding {
    equal_work("light")
}

pub(super) fn equal_work_heavy() -> Finding {
    equal_work("heavy")
}

/// Cost of a single request, for each position of the requester and of the token.
fn alone(side: usize) -> Vec<u64> {
    let torus = square(side);
    let nodes = side * side;
    let pairs =
        NodeId::all(nodes).flat_map(|home| NodeId::all(nodes).map(move |node| (home, node)));
    let cost = |(home, node)| {
        cost_at_once::<Neamatollahi>(&torus, VariantSet::default(), home, &[node])
            .expect("the repaired rules serve every request")
    };
    pairs.map(cost).collect()
}

pub(super) fn light_demand() -> Finding {
    let mut so = true;
    let mut lines = Vec::new();
    for side in SIDES {
        let costs = alone(side);
        let claimed = (2 * side as u64 + 1)..=(3 * side as u64 + 1);
        let outside = costs.iter().filter(|cost| !claimed.contains(cost)).count();
        so &= outside == 0;
        let mean = costs.iter().sum::<u64>() as f64 / costs.len() as f64;
        let (least, most) = (costs.iter().min(), costs.iter().max());
        lines.push(format!(
            "N = {}: {} to {}, mean {mean:.1}, claimed {} to {}, outside {:.0}%",
            side * side,
            least.expect("not empty"),
            most.expect("not empty"),
            claimed.start(),
            claimed.end(),
            100.0 * outside as f64 / costs.len() as f64
        ));
    }
    let run = |delay| Run::of(NAME, 64).load("light").delay(delay);
    let found = format!(
        "from every node, the token at every node, equal delays: {}; the token may pass the row before the alert has come to its column. \
         Simulated at N = 64: {:.1} on average with equal delays, {:.1} with exponential",
        lines.join("; "),
        run("constant").messages(),
        run("exponential").messages()
    );
    finding(so, found, run("constant").command())
}

/// Compares the cost of the torus of 64 nodes with these algorithms under a load. Returns whether
/// the torus is cheapest, and a text.
fn cheaper_rivals(load: &str, rivals: &[&str]) -> (bool, String) {
    let cost = |name: &str| Run::of(name, 64).load(load).entries(5000).messages();
    let own = cost(NAME);
    let costs: Vec<(&str, f64)> = rivals.iter().map(|name| (*name, cost(name))).collect();
    let list = |cheaper: bool| {
        let chosen = costs.iter().filter(|(_, cost)| (*cost < own) == cheaper);
        let listed: Vec<_> = chosen
            .map(|(name, cost)| format!("{name} {cost:.1}"))
            .collect();
        match listed[..] {
            [] => "none".to_owned(),
            _ => listed.join(", "),
        }
    };
    let so = costs.iter().all(|(_, cost)| own < *cost);
    let text = format!(
        "N = 64, {load} load: {own:.2}; cheaper: {}; dearer: {}",
        list(true),
        list(false)
    );
    (so, text)
}

pub(super) fn light_rivals() -> Finding {
    let (so, found) = cheaper_rivals(
        "light",
        &[
            "lamport",
            "maekawa",
            "ricart-agrawala",
            "suzuki-kasami",
            "naimi-trehel",
            "le-lann",
            "raymond",
        ],
    );
    let evidence = "soloist lab compare --algorithms all --nodes 64 --load light";
    finding(so, found, evidence.to_owned())
}

pub(super) fn heavy_rivals() -> Finding {
    let (so, found) = cheaper_rivals(
        "heavy",
        &[
            "lamport",
            "maekawa",
            "ricart-agrawala",
            "suzuki-kasami",
            "naimi-trehel",
            "raymond",
        ],
    );
    let evidence = "soloist lab compare --algorithms all --nodes 64 --load heavy";
    finding(so, found, evidence.to_owned())
}

pub(super) fn heavy_demand() -> Finding {
    let run = |side: usize| Run::of(NAME, side * side).hold("2");
    let cost = SIDES.map(|side| run(side).messages());
    let bound = SIDES.map(|side| (2 * side * side + side + 1) as f64 / (side * side) as f64);
    let so = cost
        .iter()
        .zip(bound)
        .all(|(cost, bound)| *cost <= bound && bound <= 3.0);
    // A round of the row makes √N + 1 entries, because the node where it begins and ends enters
    // twice.
    let twice = SIDES.map(|side| 2.0 + 1.0 / (side * (side + 1)) as f64);
    let near = cost
        .iter()
        .zip(twice)
        .all(|(cost, twice)| is_close(*cost, twice, 0.001));
    let found = format!(
        "N = 9, 25, 64: {}, claimed at most {}; {} 2 + 1/(√N(√N + 1)) = {}, the count if the node where a round of the row begins and ends \
         enters twice",
        listed(cost),
        listed(bound),
        if near { "within 0.1% of" } else { "not" },
        listed(twice)
    );
    finding(so, found, run(8).command())
}

pub(super) fn waiting_time() -> Finding {
    let run = |nodes| Run::of(NAME, nodes).load("light").entries(4000);
    let sides = [4_usize, 8, 16, 32];
    let waits = sides.map(|side| run(side * side).report().measures.response_time.mean);
    let shares = [0, 1, 2, 3].map(|i| waits[i] / sides[i] as f64);
    let found = format!(
        "N = 16, 64, 256, 1024, one request at a time: {} message delays, that is {} times √N: consistent with it for these N",
        waits.map(|wait| format!("{wait:.1}")).join(", "),
        shares.map(|share| format!("{share:.2}")).join(", ")
    );
    let evidence = run(256).command();
    if shares[3] / shares[1] > 1.1 {
        return finding(false, found, evidence);
    }
    Finding::open(
        Verdict::NotDecided,
        found,
        "a proof; and what the average is taken over, because with all asking it grows with N",
        evidence,
    )
}
