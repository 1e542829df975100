//! Lodha and Kshemkalyani 2000: messages against the number of concurrent requests.

use std::collections::BTreeMap;

use soloist_algorithms::Kind;
use soloist_lab::report::{Axis, Look, Point, Series};

use super::curve::{
    ENTRIES, Measured, by_chance, by_demand, chart, counted, demand_axis, formula, joined, level,
    measured, messages, method,
};
use super::{Item, Part, Reproduced};
use crate::Verdict;
use crate::lodha_kshemkalyani::costs_by_concurrency;
use crate::tools::{Run, is_close};

pub(super) fn items() -> Vec<Item> {
    let item =
        |part, labels, title, make| measured(Kind::LodhaKshemkalyani, part, labels, title, make);
    vec![
        item(
            Part::Equation,
            &["4.1", "abstract"],
            "messages of a request, against the number of requests concurrent with it",
            concurrency,
        ),
        item(
            Part::Equation,
            &["1"],
            "messages against demand, beside Ricart-Agrawala and Lamport",
            demand,
        ),
    ]
}

const NAME: &str = "lodha-kshemkalyani";

/// Share of the messages that the ends of a measured window may add or take away.
const WINDOW_ENDS: f64 = 0.005;

/// Nodes of the random runs.
const NODES: usize = 9;
/// Number of random runs.
const RUNS: u64 = 400;

fn concurrency() -> Reproduced {
    let costs = costs_by_concurrency(NODES, RUNS);
    let peers = (NODES - 1) as f64;
    let without = |x: f64| 2.0 * peers - x;
    // Sum and number of the costs, by whether a concurrent request comes later and by x.
    let mut sums: BTreeMap<(bool, u32), (u64, u64)> = BTreeMap::new();
    let (mut exact, mut short) = (0, 0);
    for cost in &costs {
        let sum = sums.entry((cost.later, cost.concurrent)).or_default();
        *sum = (sum.0 + u64::from(cost.messages), sum.1 + 1);
        let claimed = without(f64::from(cost.concurrent));
        let messages = f64::from(cost.messages);
        exact += usize::from(messages == claimed + f64::from(u8::from(cost.later)));
        short += usize::from(messages == claimed);
    }
    let line = |name: &str, later: bool| {
        let own = sums.iter().filter(|((is_later, _), _)| *is_later == later);
        let points = own
            .map(|((_, x), (sum, count))| Point::new(f64::from(*x), *sum as f64 / *count as f64));
        Series::new(name, Look::Points, points)
    };
    let xs: Vec<f64> = (0..NODES).map(|x| x as f64).collect();
    let series = vec![
        formula("2(N-1)-x+1, §4.1 with a FLUSH", &xs, |x| without(x) + 1.0),
        formula("2(N-1)-x, abstract and §4.1 without", &xs, without),
        line("a concurrent request comes later", true),
        line("none comes later", false),
    ];
    let title = "Lodha and Kshemkalyani 2000, abstract and §4.1: messages by concurrency";
    let caption = format!(
        "{NODES} nodes, four requests each, {RUNS} random runs with seeds 0 to {}: {} requests. Points are means; all requests with the \
         same x cost the same. Repaired rules.",
        RUNS - 1,
        costs.len()
    );
    let (x, y) = (
        Axis::linear("x: concurrent requests"),
        Axis::from_zero("messages"),
    );
    let chart = chart(title, x, y, series, caption);
    let text = format!(
        "§4.1 is exact for {exact} of {} requests, the abstract's 2(N-1)-x for {short}: it leaves out the FLUSH that is due whenever a \
         concurrent request comes later",
        costs.len()
    );
    let so = short == costs.len();
    let command = Run::of(NAME, NODES).load("think:3").command();
    let reproduced = counted(chart, Verdict::of(so, so), text, command);
    Reproduced {
        seeds: Some(format!("0 to {}", RUNS - 1)),
        ..reproduced
    }
}

fn demand() -> Reproduced {
    let nodes = 20;
    let run = |name| Run::of(name, nodes).entries(ENTRIES);
    let names = [NAME, "ricart-agrawala", "lamport"];
    let found = names.map(|name| messages(by_demand(|| run(name))));
    let peers = (nodes - 1) as f64;
    // A window cut by entries may cut off a few messages of its first and last ones.
    let is_about = |found: &[Measured], cost: f64| {
        let mut means = found.iter().map(|m| m.estimate.mean);
        means.all(|mean| is_close(mean, cost, WINDOW_ENDS))
    };
    let own = &found[0];
    let most = 2.0 * peers * (1.0 + WINDOW_ENDS);
    let within = own
        .iter()
        .all(|m| (peers..=most).contains(&m.estimate.mean));
    let so = within && is_about(&found[1], 2.0 * peers) && is_about(&found[2], 3.0 * peers);
    let mut series = vec![
        level("3(N-1)", 3.0 * peers),
        level("2(N-1)", 2.0 * peers),
        level("N-1", peers),
    ];
    series.extend(
        names
            .iter()
            .zip(&found)
            .map(|(name, found)| joined(name, found)),
    );
    let title = "Lodha and Kshemkalyani 2000, §1: messages against demand";
    let caption = format!(
        "{nodes} nodes, exponential delays, repaired rules. {}",
        method()
    );
    let y = Axis::from_zero("messages per entry");
    let chart = chart(title, demand_axis(), y, series, caption);
    let text = format!(
        "within N-1 and 2(N-1) everywhere: {} alone, {} under heavy load; Ricart-Agrawala within 0.5 % of 2(N-1) = {} and Lamport \
         of 3(N-1) = {}, which are the ends of the windows",
        own[0].estimate,
        own[own.len() - 1].estimate,
        2.0 * peers,
        3.0 * peers
    );
    by_chance(chart, Verdict::of(so, so), text, &run(NAME))
}
