//! Table 1, row by row. A cell is read as the text reads it: one request alone for the best and the
//! worst case, all nodes asking again at once for heavy demand.

use super::{NAME, SIDES};
use crate::maekawa::worst_on_figure_1d;
use crate::tools::{Run, finding, largest};
use crate::{Finding, Verdict};

/// The least and the most messages of 100 single entries of random nodes.
fn single(name: &str, nodes: usize) -> (f64, f64) {
    let one = |seed| {
        Run::of(name, nodes)
            .load("light")
            .entries(1)
            .seed(seed)
            .messages()
    };
    let costs: Vec<f64> = (1..=100).map(one).collect();
    (-largest(costs.iter().map(|cost| -cost)), largest(costs))
}

fn heavy(name: &str, nodes: usize) -> Run {
    Run::of(name, nodes).entries(5000)
}

pub(super) fn two_neighbours() -> Finding {
    let run = Run::of(NAME, 25);
    finding(
        run.report().is_well(),
        "a node refuses what comes from elsewhere: 10,000 entries at N = 25 without a refusal. (In a ragged torus the next column is not \
         always the right neighbour; here N is a square)"
            .to_owned(),
        run.command(),
    )
}

pub(super) fn own_row() -> Finding {
    let run = |side: usize| Run::of(NAME, side * side).load("light").delay("constant");
    let worst = SIDES.map(|side| {
        let one = |seed| run(side).entries(1).seed(seed).messages();
        largest((1..=200).map(one))
    });
    let claimed = SIDES.map(|side| 3.0 * (side as f64 + 1.0));
    let best = SIDES.map(|side| heavy(NAME, side * side).messages());
    let listed = |values: [f64; 3]| values.map(|value| value.to_string()).join(", ");
    let within = worst
        .iter()
        .zip(claimed)
        .all(|(worst, claimed)| *worst <= claimed);
    let found = format!(
        "N = 9, 25, 64, equal delays, 200 single entries: at most {} messages, claimed {}; with other delays there is no bound, because the \
         token may pass before the alert. Best: {} under heavy demand, below 3",
        listed(worst),
        listed(claimed),
        best.map(|best| format!("{best:.2}")).join(", ")
    );
    finding(
        within && largest(best.map(|b| -b)) <= -3.0,
        found,
        run(8).command(),
    )
}

pub(super) fn le_lann() -> Finding {
    let nodes = 64;
    let (least, most) = single("le-lann", nodes);
    let mean = Run::of("le-lann", nodes)
        .load("light")
        .entries(5000)
        .messages();
    let heavy = heavy("le-lann", nodes);
    let saturated = heavy.messages();
    let n = nodes as f64;
    let so = most <= n && (mean / (n / 2.0) - 1.0).abs() < 0.05 && (saturated - 1.0).abs() < 0.01;
    finding(
        so,
        format!(
            "N = 64: single entries {least} to {most}, {mean:.1} on average, {saturated:.2} under heavy demand; moves of the token while \
             nobody asks are not counted"
        ),
        heavy.command(),
    )
}

/// A row whose algorithm has a token: the best case is 0, because a node that has it asks nobody.
fn token(name: &str, best: f64, worst: f64, heavy_claimed: Option<f64>) -> Finding {
    let nodes = 64;
    let (least, most) = single(name, nodes);
    let heavy = heavy(name, nodes);
    let saturated = heavy.messages();
    let is_heavy = heavy_claimed.is_none_or(|claimed| (saturated - claimed).abs() < 0.1 * claimed);
    finding(
        least >= best && most <= worst && is_heavy,
        format!(
            "N = 64, 100 single entries: {least} to {most} messages, claimed {best} to {worst}; {saturated:.2} under heavy demand. A node \
             that has the token enters without a message"
        ),
        heavy.command(),
    )
}

pub(super) fn suzuki_kasami() -> Finding {
    token("suzuki-kasami", 64.0, 64.0, Some(64.0))
}

pub(super) fn raymond() -> Finding {
    token("raymond", 2.0, 126.0, Some(4.0))
}

pub(super) fn naimi_trehel() -> Finding {
    token("naimi-trehel", 2.0, 64.0, None)
}

pub(super) fn permissions() -> Finding {
    let nodes = 64;
    let exact = |name, each: usize| {
        let cost = (each * (nodes - 1)) as f64;
        single(name, nodes) == (cost, cost) && heavy(name, nodes).messages() == cost
    };
    finding(
        exact("lamport", 3) && exact("ricart-agrawala", 2),
        "N = 64, single entries and heavy demand: exactly 3(N-1) = 189 and 2(N-1) = 126".to_owned(),
        heavy("ricart-agrawala", nodes).command(),
    )
}

pub(super) fn maekawa() -> Finding {
    let nodes = 21;
    let root = (nodes as f64).sqrt() - 1.0;
    let (least, _) = single("maekawa", nodes);
    let heavy = heavy("maekawa", nodes);
    let saturated = heavy.messages();
    let worst = worst_on_figure_1d();
    let so = least <= 3.0 * root && saturated <= 5.0 * root && worst <= 5.0 * root;
    finding(
        so,
        format!(
            "N = 21, K = 5, √N-1 = {root:.2}: {least} messages alone, which is 3(K-1) and {:.2}(√N-1); {saturated:.1} under heavy demand, \
             {:.2}(√N-1). K-1 is above √N-1. A worst run has {worst:.1}, {:.2}(√N-1): see Maekawa's own claims",
            least / root,
            saturated / root,
            worst / root
        ),
        heavy.command(),
    )
}

pub(super) fn orders() -> Finding {
    let sizes = [64, 256, 1024];
    let cost = |name: &str| {
        let run = |nodes| Run::of(name, nodes).load("light").entries(2000).messages();
        sizes
            .map(|nodes| format!("{:.2}", run(nodes) / (nodes as f64).log2()))
            .join(", ")
    };
    let found = format!(
        "messages by log2 N, one request at a time, N = 64, 256, 1024: Raymond {}, Naimi-Trehel {}: consistent with it for these N. Waiting \
         times are in the comparison table below",
        cost("raymond"),
        cost("naimi-trehel")
    );
    Finding::open(
        Verdict::NotDecided,
        found,
        "proofs; a measurement cannot show an order of growth",
        Run::of("naimi-trehel", 1024)
            .load("light")
            .entries(2000)
            .command(),
    )
}

pub(super) fn not_at_hand() -> Finding {
    Finding::open(
        Verdict::NotDecided,
        "not examined: these papers are not at hand".to_owned(),
        "the papers",
        Run::of(NAME, 64).command(),
    )
}
