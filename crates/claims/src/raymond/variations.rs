//! §6: the piggyback strategy and the greedy strategy.

use soloist_algorithms::raymond::{GREEDY, PIGGYBACK};
use soloist_lab::replicate::{Estimate, Plan};
use soloist_lab::search::ENDLESS;
use soloist_lab::simulate::Measures;

use super::claim;
use super::cost::saturated_run;
use super::rules::on_all_trees;
use crate::tools::{Run, Search, finding, is_within};
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
            "greedy: in Fig. 7, saturated, a nonleaf enters three times as often as a leaf; without it all nodes enter equally often",
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
fn saved(run: &Run) -> Estimate {
    run.measure(|measures| {
        let kinds = &measures.messages_by_kind;
        let together = kinds["PRIVILEGE+REQUEST"] as f64;
        together / (together + kinds["REQUEST"] as f64)
    })
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
    let holds = low[0].high() == 0.0
        && low[1].high() < 0.05
        && is_within(figure_7, 2.0 / 3.0, 0.02)
        && is_within(large[0], 3.0 / 4.0, 0.05)
        && is_within(large[1], 4.0 / 6.0, 0.05)
        && line.low() > 0.95;
    finding(
        holds,
        format!(
            "46 nodes one at a time: {}, thinking for 10,000 delays: {}, for 1,000 already {}; saturated, constant delays, two delays inside: \
             {figure_7} in Fig. 7, {} (3/4) and {} (2/3) in complete trees of valency 3 and 4, {line} on a line of 50",
            low[0], low[1], low[2], large[0], large[1]
        ),
        saturated_run("raymond+piggyback", 10, "star:3").steady_command(),
    )
}

fn piggyback_changes_nothing_else() -> Finding {
    let run = |algorithm, load| {
        let run = Run::of(algorithm, 46).delay("constant").load(load);
        run.entries(3000)
    };
    let measures: [fn(&Measures) -> Option<f64>; 3] = [
        |measures| Some(measures.response_time.mean),
        |measures| measures.sync_delay.mean_if_any(),
        |measures| Some(measures.fairness.jain),
    ];
    let mut same = true;
    let text = ["light", "think:100", "heavy"].map(|load| {
        let without = run("raymond", load).replicated();
        let with = run("raymond+piggyback", load).replicated();
        let [response, sync, jain] = measures.map(|measure| {
            let difference = with.difference_if_any(&without, measure);
            let Some(difference) = difference else {
                return "none".to_owned();
            };
            let means: Vec<_> = without.singles.iter().filter_map(measure).collect();
            let mean = means.iter().sum::<f64>() / means.len() as f64;
            let share = difference.low().abs().max(difference.high().abs());
            same &= share <= 0.02 * mean;
            difference.to_string()
        });
        format!("{load} {response}, {sync}, {jain}")
    });
    finding(
        same,
        format!(
            "46 nodes, constant delays; by how much piggybacking changes the mean response time, the mean synchronisation delay and Jain's \
             index, in pairs of runs with the same demand: {}; all less than 2 % of the mean (one at a time, no node waits when another leaves, so \
             there is no synchronisation delay)",
            text.join("; ")
        ),
        "soloist lab compare --algorithms raymond,raymond+piggyback --nodes 46 --delay constant --load light,think:100,heavy --entries 3000 --warm-up 500 \
         --level 99.9%"
            .to_owned(),
    )
}

fn both_strategies() -> Finding {
    let both = |search: Search<_>| search.variants(&[PIGGYBACK, GREEDY]);
    let (searched, command) = on_all_trees(2, both, Search::run);
    finding(
        searched.is_well(),
        format!(
            "every interleaving, two requests per node, all trees of 2 to 4 nodes: {}",
            searched.text()
        ),
        command,
    )
}

fn greedy_is_faster() -> Finding {
    let run = |algorithm| Run::of(algorithm, 46);
    let runs = ["raymond", "raymond+greedy"].map(|algorithm| run(algorithm).replicated());
    let response = |measures: &Measures| measures.response_time.mean;
    let delays = runs.each_ref().map(|run| run.estimate(response));
    let shorter = runs[0].difference(&runs[1], response);
    let throughput =
        |algorithm| run(algorithm).per_seed(|report| report.measures.entries as f64 / report.time);
    let [plain, greedy] = ["raymond", "raymond+greedy"].map(throughput);
    let more: Vec<_> = greedy.iter().zip(&plain).map(|(g, p)| g - p).collect();
    let more = Estimate::of(&more, Plan::VERDICT_LEVEL);
    let plain = Estimate::of(&plain, Plan::VERDICT_LEVEL);
    finding(
        shorter.low() > 0.0 && more.low() > 0.0,
        format!(
            "46 nodes under heavy load: mean response time {} with it and {} without, {shorter} less in pairs of runs with the same demand; {plain} \
             entries per message delay without it, and {more} more with it, in ten pairs of whole runs of 10,000 entries",
            delays[1], delays[0]
        ),
        run("raymond+greedy").steady_command(),
    )
}

/// If each of four nonleaves enters three times as often as each of six leaves, the Jain index is
/// 18²/(10·42).
fn greedy_is_unfair() -> Finding {
    let jain = |algorithm| {
        let run = saturated_run(algorithm, 10, "star:3");
        run.measure(|measures| measures.fairness.jain)
    };
    let (plain, greedy) = (jain("raymond"), jain("raymond+greedy"));
    let expected = 324.0 / 420.0;
    finding(
        is_within(greedy, expected, 0.01) && is_within(plain, 1.0, 0.001),
        format!(
            "constant delays, two delays inside: Jain's index of the entries {greedy}, where three times means \
             {expected:.3}; without greedy {plain}"
        ),
        saturated_run("raymond+greedy", 10, "star:3").steady_command(),
    )
}

fn greedy_starves_nobody() -> Finding {
    let greedy = |search: Search<_>| search.variants(&[GREEDY]);
    let (searched, command) = on_all_trees(ENDLESS, greedy, Search::run);
    finding(
        searched.is_well(),
        format!(
            "in every fair run, endless requests, all trees of 2 to 4 nodes, every request is served: {}",
            searched.text()
        ),
        command,
    )
}
