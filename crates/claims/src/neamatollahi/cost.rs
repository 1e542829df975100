//! Messages and waiting time under light and heavy demand, and how evenly nodes share the work.

use soloist_algorithms::neamatollahi::Neamatollahi;
use soloist_algorithms::{NodeId, VariantSet};
use soloist_lab::replicate::Estimate;
use soloist_lab::simulate::Measures;

use super::{NAME, SIDES, listed, square};
use crate::pairs::more_messages;
use crate::share::busiest;
use crate::tools::{Run, finding, is_less, is_within};
use crate::watch::{cost_at_once, cost_with_fast_token};
use crate::{Finding, Verdict};

pub(super) fn waits_less_than_on_a_ring() -> Finding {
    let run = |name, nodes| Run::of(name, nodes).load("light").entries(1000);
    let sizes = [16, 64, 256];
    let [torus, ring] = [NAME, "le-lann"].map(|name| sizes.map(|n| run(name, n).replicated()));
    let response = |measures: &Measures| measures.response_time.mean;
    let less = [0, 1, 2].map(|i| ring[i].difference(&torus[i], response));
    let shorter = less.iter().all(|less| less.low() > 0.0);
    let [torus, ring] = [torus, ring].map(|runs| runs.map(|run| run.estimate(response)));
    let ratios = [0, 1, 2].map(|i| ring[i].mean / torus[i].mean);
    let so = shorter && ratios.is_sorted();
    let listed = |waits: [Estimate; 3]| waits.map(|wait| wait.to_string()).join(", ");
    let found = format!(
        "N = 16, 64, 256, one request at a time: {} message delays on average; on Le Lann's ring {}; {} less in pairs of runs with the same demand",
        listed(torus),
        listed(ring),
        listed(less)
    );
    finding(so, found, run(NAME, 64).steady_command())
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
        "N = 9, 25, 64, heavy load: one REQUEST per entry, and at the end, when nodes stop requesting, {} more in a run of 1,000 entries and {} in one \
         of 40,000",
        listed(short),
        listed(long)
    );
    finding(so, found, run(64, 40_000).command())
}

/// How much more than the mean the busiest node receives. The paper does not say what "about the
/// same" is.
fn equal_work(load: &str) -> Finding {
    let run = |nodes: usize| Run::of(NAME, nodes).load(load).entries(10_000);
    let skew = [9, 64, 256].map(|nodes| run(nodes).measure(busiest));
    let trend = match (is_less(&skew[0], &skew[2]), is_less(&skew[2], &skew[0])) {
        (true, _) => "it grows with N",
        (_, true) => "it falls with N",
        _ => "it neither grows nor falls beyond its intervals",
    };
    let found = format!(
        "N = 9, 64, 256, {load} load: the busiest node receives {} times the mean; {trend}. The row where columns are changed stays the same, \
         and is passed once more per round",
        skew.map(|skew| skew.to_string()).join(", ")
    );
    Finding::open(
        Verdict::DependsOnReading,
        found,
        "how far from equal \"about the same\" reaches",
        run(64).steady_command(),
    )
}

pub(super) fn equal_work_light() -> Finding {
    equal_work("light")
}

pub(super) fn equal_work_heavy() -> Finding {
    equal_work("heavy")
}

/// Cost of a single request, for each position of the requester and of the token.
pub(crate) fn alone(side: usize) -> Vec<u64> {
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

/// The most messages of a single request if the token is faster than all alerts.
pub(crate) fn most_with_fast_token(side: usize) -> u64 {
    let torus = square(side);
    let places = || NodeId::all(side * side);
    let pairs = places().flat_map(|home| places().map(move |node| (home, node)));
    let cost = |(home, node)| cost_with_fast_token::<Neamatollahi>(&torus, home, &[node]);
    let costs = pairs.map(|pair| cost(pair).expect("the repaired rules serve every request"));
    costs.max().expect("a torus has nodes")
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
    let fast = SIDES.map(most_with_fast_token);
    let bounds = SIDES.map(|side| (side * side + 3 * side) as u64);
    let within = fast.iter().zip(bounds).all(|(most, bound)| *most <= bound);
    let run = |delay| Run::of(NAME, 64).load("light").delay(delay);
    let found = format!(
        "from every node, the token at every node, equal delays: {}; the token may pass the row before the alert has come to its column. \
         If it is faster than all alerts, up to {} from a fresh start; never more than N + 3√N, since a round through all columns comes to the requester: {}. Simulated at N = 64: {} on average with equal delays, {} with exponential",
        lines.join("; "),
        fast.map(|most| most.to_string()).join(", "),
        within,
        run("constant").messages(),
        run("exponential").messages()
    );
    finding(so, found, run("constant").steady_command())
}

/// Compares the cost of the torus of 64 nodes with these algorithms under a load, in pairs of runs
/// with the same demand. Returns whether the torus is cheapest, and a text.
fn cheaper_rivals(load: &str, rivals: &[&str]) -> (bool, String) {
    let run = |name: &str| Run::of(name, 64).load(load).entries(1000).replicated();
    let own_run = run(NAME);
    let own = own_run.report.measures.messages_per_entry;
    let costs = rivals.iter().map(|name| {
        let more = more_messages(&run(name), &own_run);
        (*name, more, more.low() > 0.0)
    });
    let costs: Vec<(&str, Estimate, bool)> = costs.collect();
    let list = |dearer: bool| {
        let chosen = costs.iter().filter(|(.., is_dearer)| *is_dearer == dearer);
        let listed: Vec<_> = chosen
            .map(|(name, more, _)| format!("{name} {more}"))
            .collect();
        match listed[..] {
            [] => "none".to_owned(),
            _ => listed.join(", "),
        }
    };
    let so = costs.iter().all(|(.., is_dearer)| *is_dearer);
    let text = format!(
        "N = 64, {load} load: {own} messages; the others cost this much more, in pairs of runs with the same demand. Not more expensive: {}. \
         More expensive: {}",
        list(false),
        list(true)
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
    let evidence = "soloist lab compare --algorithms all --nodes 64 --load light --entries 1000 --warm-up 500 --level 99.9%";
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
    let evidence = "soloist lab compare --algorithms all --nodes 64 --load heavy --entries 1000 --warm-up 500 --level 99.9%";
    finding(so, found, evidence.to_owned())
}

pub(super) fn heavy_demand() -> Finding {
    let run = |side: usize| Run::of(NAME, side * side).hold("2");
    let cost = SIDES.map(|side| run(side).messages());
    let bound = SIDES.map(|side| (2 * side * side + side + 1) as f64 / (side * side) as f64);
    let so = cost
        .iter()
        .zip(bound)
        .all(|(cost, bound)| cost.high() <= bound && bound <= 3.0);
    // A round of the row makes √N + 1 entries, because the node where it begins and ends enters
    // twice.
    let twice = SIDES.map(|side| 2.0 + 1.0 / (side * (side + 1)) as f64);
    let near = cost
        .iter()
        .zip(twice)
        .all(|(cost, twice)| is_within(*cost, twice, 0.001));
    let found = format!(
        "N = 9, 25, 64: {}, claimed at most {}; {} 2 + 1/(√N(√N + 1)) = {}, the count if the node where a round of the row begins and ends \
         enters twice",
        cost.map(|cost| cost.to_string()).join(", "),
        listed(bound),
        if near { "within 0.1% of" } else { "not" },
        listed(twice)
    );
    finding(so, found, run(8).steady_command())
}

pub(super) fn waiting_time() -> Finding {
    // A longer warm-up would take long: the token moves all the time, and the nodes are many.
    let run = |nodes| {
        let run = Run::of(NAME, nodes).load("light");
        run.entries(1000).warm_up(500)
    };
    let sides = [4_usize, 8, 16, 32];
    let waits = sides.map(|side| {
        let run = run(side * side);
        run.measure(|measures| measures.response_time.mean)
    });
    let shares = [0, 1, 2, 3].map(|i| waits[i].times(1.0 / sides[i] as f64));
    let found = format!(
        "N = 16, 64, 256, 1024, one request at a time: {} message delays, that is {} times √N: consistent with it for these N",
        waits.map(|wait| wait.to_string()).join(", "),
        shares.map(|share| share.to_string()).join(", ")
    );
    let evidence = run(256).steady_command();
    if shares[3].low() / shares[1].high() > 1.1 {
        return finding(false, found, evidence);
    }
    Finding::open(
        Verdict::NotDecided,
        found,
        "a proof; and what the average is taken over, because it grows with N if all nodes request",
        evidence,
    )
}
