//! The abstract, §1 and §4.1: number of messages, and other costs.

use soloist_algorithms::lodha_kshemkalyani::LodhaKshemkalyaniMessage;
use soloist_algorithms::machine::encoded_len;
use soloist_algorithms::ricart_agrawala::RicartAgrawalaMessage;
use soloist_algorithms::{NodeId, RequestId, VariantSet};

use super::watch::{Cost, Watched};
use crate::Finding;
use crate::tools::{Run, finding, largest, scenario};

/// Cost of each request in many random runs, with the number of concurrent requests and whether one
/// of them has a lower priority.
fn costs() -> Vec<(u32, Cost, u32, bool)> {
    let mut costs = Vec::new();
    for run in Watched::runs(VariantSet::default()) {
        assert!(run.well, "a node waits forever");
        for (&request, &cost) in &run.costs {
            let concurrent = run.concurrent(request).count() as u32;
            let later = run.concurrent(request).any(|other| other > request);
            costs.push((run.nodes, cost, concurrent, later));
        }
    }
    costs
}

const RUNS: &str = "random runs of 2 to 9 nodes, four requests each";

fn evidence() -> String {
    Run::of("lodha-kshemkalyani", 9).load("think:3").command()
}

pub(super) fn bounds() -> Finding {
    let costs = costs();
    let shares = costs.iter();
    let shares = shares.map(|(n, cost, ..)| f64::from(cost.sum()) / f64::from(n - 1));
    let (least, most) = (
        shares.clone().fold(f64::INFINITY, f64::min),
        largest(shares),
    );
    finding(
        least >= 1.0 && most <= 2.0,
        format!(
            "{} requests in {RUNS}: from {least:.2}(N-1) to {most:.2}(N-1)",
            costs.len()
        ),
        evidence(),
    )
}

pub(super) fn short_formula() -> Finding {
    let costs = costs();
    let exceeds =
        |(n, cost, concurrent, _): &&(u32, Cost, u32, bool)| cost.sum() != 2 * (n - 1) - concurrent;
    let wrong: Vec<_> = costs.iter().filter(exceeds).collect();
    let by_one = wrong.iter().filter(|(n, cost, concurrent, later)| {
        *later && cost.sum() == 2 * (n - 1) - concurrent + 1
    });
    let by_one = by_one.count();
    finding(
        wrong.is_empty(),
        format!(
            "{} of {} requests in {RUNS} cost something else: {by_one} of them one more, the FLUSH that is due whenever a \
             concurrent request comes later. §4.1 counts it; and so the paper's own example takes 8 messages, not 6",
            wrong.len(),
            costs.len()
        ),
        scenario("lodha-kshemkalyani-fig3"),
    )
}

pub(super) fn exact_formula() -> Finding {
    let costs = costs();
    let is_exact = |(n, cost, concurrent, later): &(u32, Cost, u32, bool)| {
        let expected = Cost {
            requests: n - 1,
            replies: n - 1 - concurrent,
            flushes: u32::from(*later),
        };
        *cost == expected
    };
    let exact = costs.iter().filter(|cost| is_exact(cost)).count();
    finding(
        exact == costs.len(),
        format!(
            "exactly so for {exact} of {} requests in {RUNS}",
            costs.len()
        ),
        evidence(),
    )
}

pub(super) fn all_concurrent() -> Finding {
    let (mut holds, mut text) = (true, String::new());
    for nodes in [2, 3, 10, 30] {
        let run = Run::of("lodha-kshemkalyani", nodes).load("burst");
        let report = run.delay("constant").report();
        let n = nodes as u64;
        holds &= report.is_well() && report.measures.messages == n * n - 1;
        text = format!("{} with 30 nodes", report.measures.messages);
    }
    finding(
        holds,
        format!(
            "all ask at once, constant delays, 2, 3, 10 and 30 nodes: N²-1 messages in all, {text}"
        ),
        Run::of("lodha-kshemkalyani", 30)
            .load("burst")
            .delay("constant")
            .command(),
    )
}

pub(super) fn one_after_the_other() -> Finding {
    let alone = |nodes| {
        Run::of("lodha-kshemkalyani", nodes)
            .load("light")
            .entries(500)
    };
    let costs = [2, 3, 10, 30].map(|nodes| (nodes, alone(nodes).messages()));
    let worst = costs.iter().all(|&(n, cost)| cost == 2.0 * (n - 1) as f64);
    finding(
        worst,
        format!(
            "one request at a time: {} with 10 nodes, {} with 30",
            costs[2].1, costs[3].1
        ),
        alone(30).command(),
    )
}

const LOADS: [&str; 4] = ["light", "think:30", "heavy", "burst"];

fn messages(algorithm: &str, nodes: usize, load: &str) -> f64 {
    // A burst has its own number of entries.
    let run = Run::of(algorithm, nodes).entries(2000).load(load);
    run.messages()
}

pub(super) fn predecessors() -> Finding {
    let always = |algorithm, factor: usize| {
        let is_so =
            |nodes: usize, load| messages(algorithm, nodes, load) == (factor * (nodes - 1)) as f64;
        [2, 5, 16]
            .iter()
            .all(|&nodes| LOADS.iter().all(|load| is_so(nodes, load)))
    };
    let (ricart, lamport) = (always("ricart-agrawala", 2), always("lamport", 3));
    finding(
        ricart && lamport,
        format!(
            "2, 5 and 16 nodes under {} load: {}",
            LOADS.join(", "),
            if ricart && lamport {
                "exactly"
            } else {
                "not always"
            }
        ),
        Run::of("ricart-agrawala", 16).command(),
    )
}

pub(super) fn improves() -> Finding {
    let nodes = 30;
    let costs = LOADS.map(|load| messages("lodha-kshemkalyani", nodes, load));
    let theirs = 2.0 * (nodes - 1) as f64;
    let text = LOADS.iter().zip(costs);
    let text: Vec<_> = text
        .map(|(load, cost)| format!("{load} {cost:.2}"))
        .collect();
    finding(
        costs.iter().all(|&cost| cost <= theirs) && costs[2] < theirs,
        format!(
            "{nodes} nodes, messages an entry against {theirs}: {}; so {:.0} % less where all ask at once, but {:.1} % where \
             all ask again and again",
            text.join(", "),
            100.0 * (1.0 - costs[3] / theirs),
            100.0 * (1.0 - costs[2] / theirs)
        ),
        Run::of("lodha-kshemkalyani", nodes).entries(2000).command(),
    )
}

/// Counts the fields that Fig. 2 gives the messages. Ours have more, for repairs and variants.
pub(super) fn overhead() -> Finding {
    let reply = |satisfied| LodhaKshemkalyaniMessage::Reply {
        satisfied,
        highest: 0,
        errands: Vec::new(),
    };
    let named = encoded_len(&reply(Some(RequestId::new(1000, NodeId::new(9)))));
    let more = named - encoded_len(&reply(None));
    let whole = encoded_len(&RicartAgrawalaMessage::Reply);
    let light = |algorithm| {
        let run = Run::of(algorithm, 30).entries(2000).load("light");
        run.report().measures.bytes_per_entry
    };
    let [theirs, lamport, ours] = ["ricart-agrawala", "lamport", "lodha-kshemkalyani"].map(light);
    let printed = theirs + (29 * more) as f64;
    finding(
        printed <= theirs,
        format!(
            "messages are longer: REPLY and FLUSH name a request, which takes {more} bytes, where a REPLY of Ricart and \
             Agrawala's takes {whole} in all. With 30 nodes under light load, {printed:.0} bytes an entry against {theirs:.0} \
             ({ours:.0} with what repairs and variants add here). A queue of requests instead of N bits, and FIFO \
             channels, come on top. Over Lamport's it has none: {lamport:.0} bytes, a queue, FIFO"
        ),
        "soloist lab compare --algorithms lodha-kshemkalyani,ricart-agrawala,lamport --nodes 30 --load light --entries 2000"
            .to_owned(),
    )
}
