//! The abstract, §1 and §4.1: number of messages, and other costs.

use soloist_algorithms::lodha_kshemkalyani::LodhaKshemkalyaniMessage;
use soloist_algorithms::machine::encoded_len;
use soloist_algorithms::ricart_agrawala::RicartAgrawalaMessage;
use soloist_algorithms::{NodeId, RequestId, VariantSet};
use soloist_lab::simulate::Measures;

use super::watch::{Cost, Watched};
use crate::Finding;
use crate::tools::{Run, finding, highest, largest, scenario};

/// What a request cost, and what was concurrent with it.
pub(crate) struct ConcurrentCost {
    pub(crate) messages: u32,
    /// Number of concurrent requests.
    pub(crate) concurrent: u32,
    /// Whether one of them has a lower priority.
    pub(crate) later: bool,
}

/// Cost of each request in random runs of this many nodes, with seeds from 0.
pub(crate) fn costs_by_concurrency(nodes: usize, runs: u64) -> Vec<ConcurrentCost> {
    let mut costs = Vec::new();
    for seed in 0..runs {
        let run = Watched::run(nodes, VariantSet::default(), seed);
        assert!(run.well, "a node waits forever");
        costs.extend(run.costs.iter().map(|(&request, cost)| ConcurrentCost {
            messages: cost.sum(),
            concurrent: run.concurrent(request).count() as u32,
            later: run.concurrent(request).any(|other| other > request),
        }));
    }
    costs
}

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
            "all nodes request at once, constant delays, 2, 3, 10 and 30 nodes: N²-1 messages in all, {text}"
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
    let costs = [2, 3, 10, 30].map(|nodes| (nodes, alone(nodes).cost()));
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

fn run(algorithm: &str, nodes: usize, load: &str) -> Run {
    // A burst has its own number of entries.
    match load {
        "burst" => Run::of(algorithm, nodes).load(load),
        _ => Run::of(algorithm, nodes).entries(1000).load(load),
    }
}

pub(super) fn predecessors() -> Finding {
    let always = |algorithm, factor: usize| {
        let is_so = |nodes: usize, load| {
            run(algorithm, nodes, load).cost() == (factor * (nodes - 1)) as f64
        };
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
    let costs = LOADS.map(|load| run("lodha-kshemkalyani", nodes, load).messages());
    let theirs = 2.0 * (nodes - 1) as f64;
    let text = LOADS.iter().zip(costs);
    let text: Vec<_> = text.map(|(load, cost)| format!("{load} {cost}")).collect();
    finding(
        highest(&costs) <= theirs && costs[2].high() < theirs,
        format!(
            "{nodes} nodes, messages per entry against {theirs}: {}; so {:.0} % fewer if all request at once, but {:.1} % if \
             all request again and again",
            text.join(", "),
            100.0 * (1.0 - costs[3].mean / theirs),
            100.0 * (1.0 - costs[2].mean / theirs)
        ),
        run("lodha-kshemkalyani", nodes, "heavy").steady_command(),
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
    let light = |algorithm| run(algorithm, 30, "light").replicated();
    let bytes = |measures: &Measures| measures.bytes_per_entry;
    // A request alone gets a REPLY from each other node, and no FLUSH.
    let with_names = |measures: &Measures| {
        let replies = measures.messages_by_kind["REPLY"] as f64 / measures.entries as f64;
        measures.bytes_per_entry + replies * more as f64
    };
    let ricart_agrawala = light("ricart-agrawala");
    let theirs = ricart_agrawala.estimate(bytes);
    let printed = ricart_agrawala.estimate(with_names);
    let [lamport, ours] = ["lamport", "lodha-kshemkalyani"].map(|name| light(name).estimate(bytes));
    finding(
        printed.low() <= theirs.high(),
        format!(
            "messages are longer: REPLY and FLUSH name a request, which takes {more} bytes, where a REPLY of Ricart and \
             Agrawala's takes {whole} in all. With 30 nodes under light load, {printed} bytes per entry against {theirs} \
             ({ours} with what repairs and variants add here). A queue of requests instead of N bits, and FIFO \
             channels, come on top. Over Lamport's it has none: {lamport} bytes, a queue, FIFO"
        ),
        "soloist lab compare --algorithms lodha-kshemkalyani,ricart-agrawala,lamport --nodes 30 --load light --entries 1000 --warm-up 500 --level 99.9%"
            .to_owned(),
    )
}
