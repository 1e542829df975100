//! Table 1, row by row. A cell is read as the text reads it: one request alone for the best and the
//! worst case, all nodes requesting again at once for heavy demand.

use soloist_algorithms::Kind;

use super::cost::most_with_fast_token;
use super::{NAME, SIDES};
use crate::exact::is_exactly;
use crate::maekawa::worst_on_figure_1d;
use crate::single::{Range, known};
use crate::tools::{Run, examined_again, finding, is_within};
use crate::{Finding, Verdict};

/// A cost that divided by its claimed order grows at most by this factor from the smallest to the
/// largest size is consistent with the order.
const GROWTH_MAX: f64 = 1.1;

fn heavy(name: &str, nodes: usize) -> Run {
    Run::of(name, nodes).entries(1000)
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
    let alone = SIDES.map(|side| known(NAME, side * side));
    let claimed = SIDES.map(|side| 3 * (side as u64 + 1));
    let best = SIDES.map(|side| heavy(NAME, side * side).messages());
    let listed = |values: [u64; 3]| values.map(|value| value.to_string()).join(", ");
    let within = alone
        .iter()
        .zip(claimed)
        .all(|(own, claimed)| own.most <= claimed);
    let found = format!(
        "N = 9, 25, 64, counted for a request from every node with the token at every node, equal delays: at most {} messages, claimed {}; with \
         other delays up to {}, because the token may pass before the alert. Best: {} under heavy demand, below 3, and {} for a request \
         alone, above it",
        listed(alone.map(|own| own.most)),
        listed(claimed),
        listed(SIDES.map(most_with_fast_token)),
        best.map(|best| best.to_string()).join(", "),
        listed(alone.map(|own| own.least))
    );
    finding(
        within && best.iter().all(|best| is_exactly(*best, 3.0)),
        found,
        examined_again(Kind::Neamatollahi, "Table 1"),
    )
}

/// The cell for light demand, which is neither what §5.1 derives nor what is counted.
pub(super) fn own_light_cell() -> Finding {
    let alone = SIDES.map(|side| known(NAME, side * side));
    let claimed = SIDES.map(|side| Range {
        least: 2 * (side as u64 + 1),
        most: 3 * (side as u64 + 1),
    });
    let listed = |ranges: [Range; 3]| {
        let text = |range: Range| format!("{} to {}", range.least, range.most);
        ranges.map(text).join(", ")
    };
    let both = || alone.iter().zip(&claimed);
    let so = both().all(|(own, claimed)| own.least >= claimed.least && own.most <= claimed.most);
    let below = both().map(|(own, claimed)| claimed.least.saturating_sub(own.least).to_string());
    let above = both().map(|(own, claimed)| own.most.saturating_sub(claimed.most).to_string());
    let found = format!(
        "N = 9, 25, 64, counted for a request from every node with the token at every node, equal delays: {} messages, claimed {}: {} below the \
         cell and {} above it",
        listed(alone),
        listed(claimed),
        below.collect::<Vec<_>>().join(", "),
        above.collect::<Vec<_>>().join(", ")
    );
    finding(so, found, examined_again(Kind::Neamatollahi, "Table 1"))
}

pub(super) fn le_lann() -> Finding {
    let nodes = 64;
    let Range { least, most } = known("le-lann", nodes);
    let mean = Run::of("le-lann", nodes)
        .load("light")
        .entries(3000)
        .messages();
    let heavy = heavy("le-lann", nodes);
    let saturated = heavy.messages();
    let n = nodes as f64;
    let so = least == 1
        && most <= nodes as u64
        && is_within(mean, n / 2.0, 0.05)
        && is_within(saturated, 1.0, 0.01);
    finding(
        so,
        format!(
            "N = 64: a request alone, from every node with the token at every node, costs {least} to {most}; {mean} on average, {saturated} under \
             heavy demand; moves of the token while no node requests are not counted"
        ),
        heavy.steady_command(),
    )
}

/// A row whose algorithm has a token: the best case is 0, because a node that has it asks no other.
fn token(name: &str, best: u64, worst: u64, heavy_claimed: Option<f64>, place: &str) -> Finding {
    let nodes = 64;
    let Range { least, most } = known(name, nodes);
    let heavy = heavy(name, nodes);
    let saturated = heavy.messages();
    let is_heavy = heavy_claimed.is_none_or(|claimed| is_within(saturated, claimed, 0.1));
    finding(
        least == best && most <= worst && is_heavy,
        format!(
            "N = 64, equal delays: a request alone costs {least} to {most} messages{place}, claimed {best} to {worst}; {saturated} under heavy \
             demand. A node that has the token enters without a message"
        ),
        examined_again(Kind::Neamatollahi, "Table 1"),
    )
}

pub(super) fn suzuki_kasami() -> Finding {
    token("suzuki-kasami", 64, 64, Some(64.0), "")
}

pub(super) fn raymond() -> Finding {
    let place = ", the most from end to end of a line";
    token("raymond", 2, 126, Some(4.0), place)
}

pub(super) fn naimi_trehel() -> Finding {
    let place = ", the most after all nodes but one have requested at once, which turns the tree into a path";
    token("naimi-trehel", 2, 64, None, place)
}

pub(super) fn permissions() -> Finding {
    let nodes = 64;
    let exact = |name, each: u64| {
        let cost = each * (nodes as u64 - 1);
        let alone = known(name, nodes);
        (alone.least, alone.most) == (cost, cost) && heavy(name, nodes).cost() == cost as f64
    };
    finding(
        exact("lamport", 3) && exact("ricart-agrawala", 2),
        "N = 64, a request alone from every node, and heavy demand: exactly 3(N-1) = 189 and 2(N-1) = 126".to_owned(),
        heavy("ricart-agrawala", nodes).command(),
    )
}

pub(super) fn maekawa() -> Finding {
    let nodes = 21;
    let root = (nodes as f64).sqrt() - 1.0;
    let least = known("maekawa", nodes).least as f64;
    let heavy = heavy("maekawa", nodes);
    let saturated = heavy.messages();
    let worst = worst_on_figure_1d();
    let so = least <= 3.0 * root && saturated.high() <= 5.0 * root && worst <= 5.0 * root;
    finding(
        so,
        format!(
            "N = 21, K = 5, √N-1 = {root:.2}: {least} messages alone, which is 3(K-1) and {:.2}(√N-1); {saturated} under heavy demand, \
             ({})(√N-1). K-1 is above √N-1. A worst run has {worst:.1}, {:.2}(√N-1): see Maekawa's own claims",
            least / root,
            saturated.times(1.0 / root),
            worst / root
        ),
        heavy.steady_command(),
    )
}

pub(super) fn orders() -> Finding {
    let sizes = [64, 256, 1024];
    let cost = |name: &str| {
        let run = |nodes| Run::of(name, nodes).load("light").entries(1000).messages();
        sizes
            .map(|nodes| run(nodes).times(1.0 / (nodes as f64).log2()).to_string())
            .join(", ")
    };
    let found = format!(
        "messages divided by log2 N, one request at a time, N = 64, 256, 1024: Raymond {}, Naimi-Trehel {}: consistent with O(log N) for N = 64..1024",
        cost("raymond"),
        cost("naimi-trehel")
    );
    Finding::open(
        Verdict::NotDecided,
        found,
        "proofs; a measurement cannot show an order of growth",
        Run::of("naimi-trehel", 1024)
            .load("light")
            .entries(1000)
            .steady_command(),
    )
}

/// A bound as a function of the number of nodes.
type Growth = fn(f64) -> f64;

/// The orders of the waiting times that Table 1 has.
const WAITS: [(&str, &str, Growth); 7] = [
    ("le-lann", "O(N)", |n| n),
    ("suzuki-kasami", "O(1)", |_| 1.0),
    ("raymond", "O(N)", |n| n),
    ("naimi-trehel", "O(N)", |n| n),
    ("lamport", "O(1)", |_| 1.0),
    ("ricart-agrawala", "O(1)", |_| 1.0),
    ("maekawa", "O(1)", |_| 1.0),
];

pub(super) fn waits() -> Finding {
    let sizes = [16_usize, 64, 256];
    let run = |name, nodes| {
        let run = Run::of(name, nodes).load("light").delay("constant");
        run.entries(1000)
    };
    let mut grown = Vec::new();
    let texts = WAITS.map(|(name, order, of)| {
        let waits = sizes.map(|nodes| {
            let wait = run(name, nodes).measure(|measures| measures.response_time.mean);
            wait.times(1.0 / of(nodes as f64))
        });
        if waits[2].low() / waits[0].high() > GROWTH_MAX {
            grown.push(name);
        }
        format!("{name} {order} {}", waits.map(|w| w.to_string()).join(", "))
    });
    let found = format!(
        "waiting time divided by the order, one request at a time, equal delays, N = 16, 64, 256: {}: {}",
        texts.join("; "),
        match grown.as_slice() {
            [] => "all consistent with their orders for N = 16..256".to_owned(),
            grown => format!("not so {}", grown.join(", ")),
        }
    );
    let evidence = run("raymond", 256).steady_command();
    if !grown.is_empty() {
        return Finding::new(Verdict::Fails, found, evidence);
    }
    Finding::open(
        Verdict::NotDecided,
        found,
        "proofs; a measurement cannot show an order of growth",
        evidence,
    )
}

pub(super) fn not_at_hand() -> Finding {
    Finding::open(
        Verdict::NotDecided,
        "not examined: we do not have these papers".to_owned(),
        "the papers",
        examined_again(Kind::Neamatollahi, "Table 1"),
    )
}
