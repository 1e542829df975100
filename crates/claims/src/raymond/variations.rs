//! §6: the piggyback strategy and the greedy strategy.

use soloist_algorithms::raymond::{GREEDY, PIGGYBACK};
use soloist_lab::search::ENDLESS;

use super::claim;
use super::cost::saturated_run;
use super::rules::on_all_trees;
use crate::tools::{Run, Search, finding, is_close};
use crate::{Claim, Finding};

pub(super) fn claims() -> Vec<Claim> {
    vec![
        claim(
            "§6.1",
            "piggybacking saves next to nothing under low demand; saturated, the nonleaves' share of all valencies: 2/3 \
             of the REQUESTs in Fig. 7, about K/2(K-1) in large complete trees, almost all on a line",
            piggyback,
        ),
        claim(
            "§6.1",
            "piggybacking has no other impact on the algorithm or its performance",
            piggyback_changes_nothing_else,
        ),
        claim(
            "§6",
            "both strategies can be applied together",
            both_strategies,
        ),
        claim(
            "§6.2",
            "greedy: under heavy demand the mean delay falls and there are more entries in the same time",
            greedy_is_faster,
        ),
        claim(
            "§6.2",
            "greedy: in Fig. 7, saturated, a nonleaf enters three times as often as a leaf; without it all enter alike",
            greedy_is_unfair,
        ),
        claim(
            "§6.2",
            "greedy keeps the algorithm free of starvation",
            greedy_starves_nobody,
        ),
    ]
}

/// Share of the REQUESTs that travel with a PRIVILEGE.
fn saved(run: &Run) -> f64 {
    let kinds = run.report().measures.messages_by_kind;
    let together = kinds["PRIVILEGE+REQUEST"] as f64;
    together / (together + kinds["REQUEST"] as f64)
}

fn piggyback() -> Finding {
    let saturated = |nodes, form| saved(&saturated_run("raymond+piggyback", nodes, form));
    // One request at a time, then increasing demand. The paper gives no figure for low demand: the
    // first two are judged, and the third is shown for comparison.
    let demand = ["light", "think:10000", "think:1000"];
    let low = demand.map(|load| saved(&Run::of("raymond+piggyback", 46).load(load)));
    let figure_7 = saturated(10, "star:3");
    // Complete stars of 766 and 485 nodes.
    let large = [saturated(766, "star:3"), saturated(485, "star:4")];
    let line = saturated(50, "line");
    let holds = low[0] == 0.0
        && low[1] < 0.05
        && is_close(figure_7, 2.0 / 3.0, 0.02)
        && is_close(large[0], 3.0 / 4.0, 0.05)
        && is_close(large[1], 4.0 / 6.0, 0.05)
        && line > 0.95;
    finding(
        holds,
        format!(
            "46 nodes one at a time: {:.3}, thinking for 10,000 delays: {:.3}, for 1,000 already {:.3}; saturated, constant delays, two delays inside: \
             {figure_7:.3} in Fig. 7, {:.3} (3/4) and {:.3} (2/3) in complete trees of valency 3 and 4, {line:.3} on a line of 50",
            low[0], low[1], low[2], large[0], large[1]
        ),
        saturated_run("raymond+piggyback", 10, "star:3").command(),
    )
}

fn piggyback_changes_nothing_else() -> Finding {
    let run = |algorithm, load| {
        let run = Run::of(algorithm, 46).delay("constant").load(load);
        let measures = run.report().measures;
        let jain = measures.fairness.jain;
        [measures.response_time.mean, measures.sync_delay.mean, jain]
    };
    let loads = ["light", "think:100", "heavy"];
    let pairs = loads.map(|load| (run("raymond", load), run("raymond+piggyback", load)));
    let same = |(one, other): &([f64; 3], [f64; 3])| {
        one.iter().zip(other).all(|(a, b)| is_close(*a, *b, 0.02))
    };
    let text = loads.iter().zip(&pairs).map(|(load, (without, with))| {
        format!(
            "{load} {:.2} and {:.2}, {:.2} and {:.2}",
            without[0], with[0], without[1], with[1]
        )
    });
    let text: Vec<_> = text.collect();
    finding(
        pairs.iter().all(same),
        format!(
            "46 nodes, constant delays; mean response time without and with, then mean synchronisation delay: {}; all \
             within 2 %, as is Jain's index",
            text.join("; ")
        ),
        Run::of("raymond+piggyback", 46).delay("constant").command(),
    )
}

fn both_strategies() -> Finding {
    let both = |search: Search<_>| search.variants(&[PIGGYBACK, GREEDY]);
    let (searched, command) = on_all_trees(2, both, Search::run);
    finding(
        searched.is_well(),
        format!(
            "every interleaving, two requests a node, all trees of 2 to 4 nodes: {}",
            searched.text()
        ),
        command,
    )
}

fn greedy_is_faster() -> Finding {
    let report = |algorithm| Run::of(algorithm, 46).report();
    let (plain, greedy) = (report("raymond"), report("raymond+greedy"));
    let delays = [&plain, &greedy].map(|report| report.measures.response_time.mean);
    let entries = [&plain, &greedy].map(|report| report.measures.entries as f64 / report.time);
    finding(
        delays[1] < delays[0] && entries[1] > entries[0],
        format!(
            "46 nodes under heavy load: mean response time {:.2} with it and {:.2} without; {:.3} and {:.3} entries in a \
             message delay",
            delays[1], delays[0], entries[1], entries[0]
        ),
        Run::of("raymond+greedy", 46).command(),
    )
}

/// If each of four nonleaves enters three times as often as each of six leaves, the Jain index is
/// 18²/(10·42).
fn greedy_is_unfair() -> Finding {
    let jain = |algorithm| {
        let run = saturated_run(algorithm, 10, "star:3");
        run.report().measures.fairness.jain
    };
    let (plain, greedy) = (jain("raymond"), jain("raymond+greedy"));
    let expected = 324.0 / 420.0;
    finding(
        is_close(greedy, expected, 0.01) && is_close(plain, 1.0, 0.001),
        format!(
            "constant delays, two delays inside: Jain's index of the entries {greedy:.3}, where three times means \
             {expected:.3}; without greedy {plain:.3}"
        ),
        saturated_run("raymond+greedy", 10, "star:3").command(),
    )
}

fn greedy_starves_nobody() -> Finding {
    let greedy = |search: Search<_>| search.variants(&[GREEDY]);
    let (searched, command) = on_all_trees(ENDLESS, greedy, Search::run);
    finding(
        searched.is_well(),
        format!(
            "in every fair run, requests without end, all trees of 2 to 4 nodes, everybody who asks enters: {}",
            searched.text()
        ),
        command,
    )
}
