//! §1 on the fairness of others, Fig. 5, and what is left open.

use crate::tools::{Run, finding, is_replayed, scenario};
use crate::{Finding, Verdict};

/// Runs in which a later request enters first.
const OUT_OF_ORDER: [&str; 2] = [
    include_str!("../../scenarios/singhal-dynamic-out-of-order.txt"),
    include_str!("../../scenarios/carvalho-roucairol-out-of-order.txt"),
];

const FIGURE_5: [&str; 4] = [
    include_str!("../../scenarios/lodha-kshemkalyani-fig5-scenario1.txt"),
    include_str!("../../scenarios/lodha-kshemkalyani-fig5-scenario2a.txt"),
    include_str!("../../scenarios/lodha-kshemkalyani-fig5-scenario2b.txt"),
    include_str!("../../scenarios/lodha-kshemkalyani-fig5-scenario2c.txt"),
];

/// Whether node 0 enters with a later number than the one that node 1 waits with.
fn enters_out_of_order(text: &str) -> bool {
    let number = |node: &str, phase: &str| {
        let start = format!("{node}: {phase} own=");
        let line = text.lines().find_map(|line| line.strip_prefix(&start))?;
        line.split(' ').next()?.parse::<u64>().ok()
    };
    let (inside, waiting) = (number("0", "inside"), number("1", "waiting"));
    is_replayed(text) && waiting.is_some() && inside > waiting
}

pub(super) fn others_are_unfair() -> Finding {
    let unfair = OUT_OF_ORDER.map(enters_out_of_order);
    finding(
        unfair == [true; 2],
        "a run of two nodes of each shows it: a node enters with a later request while an earlier one waits, in Singhal's dynamic algorithm \
         and in Carvalho and Roucairol's, because a node that has all permissions asks nobody. That Lamport's and Ricart and Agrawala's \
         entries follow the order of requests is checked in every search of them"
            .to_owned(),
        scenario("singhal-dynamic-out-of-order"),
    )
}

pub(super) fn singhal() -> Finding {
    let nodes = 20;
    let run = |load| Run::of("singhal-dynamic", nodes).load(load);
    let loads = ["light", "think:10", "heavy"];
    let costs = loads.map(|load| run(load).messages());
    let most = 1.5 * (nodes - 1) as f64;
    let found = format!(
        "N = 20, where 3(N-1)/2 is {most}: {:.1} under light load, {:.1} with think:10, {:.1} under heavy load. The preset is the machine of \
         Carvalho and Roucairol with Singhal's start; his paper is not at hand",
        costs[0], costs[1], costs[2]
    );
    Finding::open(
        Verdict::NotDecided,
        found,
        "Singhal's paper: whether the bound is for another load, or the preset lacks a rule",
        run("heavy").command(),
    )
}

pub(super) fn figure_5() -> Finding {
    let told = FIGURE_5.iter().filter(|text| is_replayed(text)).count();
    finding(
        told == FIGURE_5.len(),
        format!("{told} of 4 scenarios replay as told, by the repaired rules"),
        scenario("lodha-kshemkalyani-fig5-scenario2a"),
    )
}

pub(super) fn knows_when_leaving() -> Finding {
    Finding::open(
        Verdict::NotDecided,
        "not examined as such. That entries follow the order of requests, which rests on it, is searched"
            .to_owned(),
        "a property of every state in which a node leaves, about all other nodes and the messages in flight",
        "soloist lab check --algorithm lodha-kshemkalyani --nodes 3 --requests 2".to_owned(),
    )
}

pub(super) fn next_request_answers() -> Finding {
    Finding::open(
        Verdict::NotDecided,
        "not built. It presupposes that a process knows that it will ask again; a process that does not ask again leaves the deferred \
         requests unanswered: with two nodes and one request each, the second waits forever"
            .to_owned(),
        "the variant, searched with the next request as a duty of each node that leaves deferred requests unanswered",
        "soloist lab check --algorithm lodha-kshemkalyani --nodes 2".to_owned(),
    )
}
