//! Raymond 1989: messages against the number of nodes and against demand, and both strategies.

use soloist_algorithms::Kind;
use soloist_algorithms::Shape;
use soloist_algorithms::shape::Tree;
use soloist_lab::report::{Axis, Chart, Look, Panel, Point, Series};

use super::curve::{
    ENTRIES, Measured, by_chance, by_demand, chart, counted, demand_axis, estimates, formula,
    joined, level, listed, measured, messages, method, never_rises, points,
};
use super::{Item, Part, Reproduced};
use crate::Verdict;
use crate::exact::is_exactly;
use crate::raymond::{distances_on_a_line, star_formula};
use crate::tools::{Run, is_close, is_less};

pub(super) fn items() -> Vec<Item> {
    let item = |part, labels, title, measure| measured(Kind::Raymond, part, labels, title, measure);
    vec![
        item(
            Part::Figure,
            &["5"],
            "messages on a straight line, one request at a time",
            line,
        ),
        item(
            Part::Figure,
            &["6"],
            "messages on radiating stars, one request at a time, and twice their diameters",
            stars,
        ),
        item(
            Part::Equation,
            &["5-distance"],
            "mean distance of two nodes on a line, against the number of nodes",
            distance,
        ),
        item(
            Part::Equation,
            &["5-diameter"],
            "diameter of a radiating star, against the number of nodes",
            diameter,
        ),
        item(
            Part::Equation,
            &["5.1", "5"],
            "messages against demand on a line, a binary tree and a star",
            demand,
        ),
        item(
            Part::Equation,
            &["6.1"],
            "share of the REQUESTs that piggybacking saves, against the valency",
            piggyback,
        ),
        item(
            Part::Equation,
            &["6.1-demand"],
            "share of the REQUESTs that piggybacking saves, against demand",
            piggyback_by_demand,
        ),
        item(
            Part::Equation,
            &["6.2"],
            "response time of the greedy strategy, against demand",
            greedy,
        ),
        item(
            Part::Equation,
            &["6.2-fairness"],
            "how unevenly the greedy strategy serves the nodes, against demand",
            greedy_fairness,
        ),
    ]
}

const NAME: &str = "raymond";

fn light(nodes: usize, form: &str) -> Run {
    let run = Run::of(NAME, nodes).shape(form).load("light");
    run.entries(ENTRIES)
}

/// All messages take equally long, and nodes stay inside for two delays. So each node waits again
/// before the privilege returns, which is what the paper calls saturated. Whole rounds of all nodes
/// are measured, because the rounds are alike and parts of them are not.
fn saturated(algorithm: &str, nodes: usize, form: &str) -> Run {
    let run = Run::of(algorithm, nodes).shape(form).delay("constant");
    let rounds = ENTRIES.div_ceil(nodes as u64);
    run.hold("2").entries(rounds * nodes as u64)
}

fn verdict(so: bool) -> Verdict {
    Verdict::of(so, so)
}

fn line() -> Reproduced {
    let sizes = [4.0, 8.0, 16.0, 32.0, 64.0, 128.0];
    let found = messages(sizes.map(|n| (n, light(n as usize, "line"))));
    // A node that has the privilege sends no REQUEST: the mean is over all pairs, also of a node
    // with itself.
    let exact = |n: f64| 2.0 * (n * n - 1.0) / (3.0 * n);
    let is_exact = |m: &Measured| is_exactly(m.estimate, exact(m.x));
    let so = found.iter().all(|m| is_exact(m) && m.estimate.high() < m.x);
    let text = format!(
        "{}; the mean over all pairs of nodes, 2(N²-1)/3N, is {}in each interval",
        listed(&found),
        if found.iter().all(is_exact) {
            ""
        } else {
            "not "
        }
    );
    let series = vec![
        formula("2(N-1), end to end", &sizes, |n| 2.0 * (n - 1.0)),
        formula("N, Suzuki-Kasami", &sizes, |n| n),
        formula("2N/3, on average", &sizes, |n| 2.0 * n / 3.0),
        points("measured", &found),
    ];
    let caption = format!("Line, light load, exponential delays. {}", method());
    let axes = (Axis::new("nodes"), Axis::new("messages per entry"));
    let title = "Raymond 1989, Fig. 5: messages on a straight line";
    let chart = chart(title, axes.0, axes.1, series, caption);
    by_chance(chart, verdict(so), text, &light(64, "line"))
}

/// Sizes of complete radiating stars of a valency.
fn complete(valency: usize, levels: std::ops::RangeInclusive<u32>) -> Vec<f64> {
    let size = |levels: u32| {
        let level = |level| valency * (valency - 1).pow(level);
        1 + (0..levels).map(level).sum::<usize>()
    };
    levels.map(|levels| size(levels) as f64).collect()
}

fn stars() -> Reproduced {
    let mut so = true;
    let mut texts = Vec::new();
    let mut panel = |valency: usize, sizes: Vec<f64>| {
        let form = format!("star:{valency}");
        let bound = |n: f64| {
            let tree = Tree::parse(&form, n as usize).expect("a tree");
            2.0 * tree.diameter() as f64
        };
        let found = messages(sizes.iter().map(|&n| (n, light(n as usize, &form))));
        let shares: Vec<_> = found.iter().map(|m| m.estimate.mean / bound(m.x)).collect();
        so &= shares.is_sorted() && found.iter().all(|m| m.estimate.high() < bound(m.x));
        let share = shares.last().copied().unwrap_or_default();
        texts.push(format!(
            "valency {valency}: {}, up to {share:.2} of 2D",
            listed(&found)
        ));
        Panel {
            title: format!("valency {valency}"),
            series: vec![formula("2D", &sizes, bound), points("measured", &found)],
        }
    };
    let panels = vec![panel(3, complete(3, 1..=7)), panel(6, complete(6, 1..=4))];
    let chart = Chart {
        title: "Raymond 1989, Fig. 6: messages on radiating stars".to_owned(),
        x: Axis::new("nodes"),
        y: Axis::from_zero("messages per entry"),
        panels,
        caption: format!(
            "Complete radiating stars, light load, exponential delays. {}",
            method()
        ),
    };
    let text = format!(
        "{}; below 2D everywhere, and nearer to it as N grows",
        texts.join("; ")
    );
    by_chance(chart, verdict(so), text, &light(94, "star:3"))
}

fn distance() -> Reproduced {
    let sizes = [2_i64, 5, 10, 20, 50, 100, 200];
    let xs = sizes.map(|n| n as f64);
    let claimed = |n: f64| (n + 1.0) / 3.0;
    let mean = |n: i64| distances_on_a_line(n) as f64 / (n * (n - 1)) as f64;
    let counted_means = sizes.map(mean);
    let pairs = || xs.iter().copied().zip(counted_means);
    let exact = pairs().all(|(n, mean)| is_close(mean, claimed(n), 1e-12));
    let means = pairs().map(|(n, mean)| Point::new(n, mean));
    let series = vec![
        formula("(N+1)/3, claimed", &xs, claimed),
        Series::new("counted", Look::Points, means),
    ];
    let title = "Raymond 1989, §5: mean distance on a line";
    let caption = "All pairs of different nodes. Counted, not measured.";
    let axes = (Axis::new("nodes"), Axis::new("mean distance"));
    let chart = chart(title, axes.0, axes.1, series, caption.to_owned());
    let text = format!(
        "N = 2 to 200: {}, {}(N+1)/3",
        counted_means.map(|mean| format!("{mean:.2}")).join(", "),
        if exact { "exactly " } else { "not " }
    );
    let command = "soloist lab reproduce --paper raymond --equation 5-distance";
    counted(chart, verdict(exact), text, command.to_owned())
}

/// Judged by complete stars, as in Fig. 6. Of others, the formula is an upper bound.
fn diameter() -> Reproduced {
    let (mut complete_ones, mut above, mut below, mut checked) = (true, 0, 0, 0);
    let mut panel = |valency: usize| {
        let form = format!("star:{valency}");
        let built = |n: usize| Tree::parse(&form, n).expect("a tree").diameter();
        let sizes: Vec<usize> = (2..=200).collect();
        checked += sizes.len();
        above += sizes
            .iter()
            .filter(|&&n| built(n) < star_formula(valency, n))
            .count();
        below += sizes
            .iter()
            .filter(|&&n| built(n) > star_formula(valency, n))
            .count();
        complete_ones &= complete(valency, 1..=3).iter().all(|n| {
            let n = *n as usize;
            built(n) == star_formula(valency, n)
        });
        let xs: Vec<f64> = sizes.iter().map(|&n| n as f64).collect();
        let points = sizes.iter().map(|&n| Point::new(n as f64, built(n) as f64));
        Panel {
            title: format!("valency {valency}"),
            series: vec![
                formula("formula", &xs, |n| star_formula(valency, n as usize) as f64),
                Series::new("counted", Look::Curve, points),
            ],
        }
    };
    let panels = vec![panel(3), panel(6)];
    let chart = Chart {
        title: "Raymond 1989, §5: diameter of a radiating star".to_owned(),
        x: Axis::linear("nodes"),
        y: Axis::from_zero("diameter"),
        panels,
        caption: "Radiating stars of every size from 2 to 200. Counted, not measured.".to_owned(),
    };
    let text = format!(
        "complete stars of valency 3 and 6 have the diameter of the formula: {complete_ones}; of {checked} stars of all sizes, {above} have a smaller \
         one and {below} a larger one"
    );
    let so = complete_ones && below == 0;
    counted(chart, verdict(so), text, light(46, "star:3").command())
}

fn demand() -> Reproduced {
    let nodes = 31;
    let full = 4.0 * (nodes - 1) as f64 / nodes as f64;
    let mut so = true;
    let mut texts = Vec::new();
    let mut panel = |form: &str, name: &str| {
        let constant = messages(by_demand(|| saturated(NAME, nodes, form)));
        let exponential = || Run::of(NAME, nodes).shape(form).entries(ENTRIES);
        let exponential = messages(by_demand(exponential));
        let most = 2.0 * Tree::parse(form, nodes).expect("a tree").diameter() as f64;
        let (first, last) = (
            &constant[0].estimate,
            &constant[constant.len() - 1].estimate,
        );
        so &= is_close(last.mean, full, 0.01) && first.high() < most;
        let falls = never_rises(&constant) && never_rises(&exponential) && !is_less(first, last);
        so &= falls;
        texts.push(format!(
            "{name}: {first} alone, {last} saturated, {} under heavy load with exponential delays, {} with demand",
            exponential[exponential.len() - 1].estimate,
            if falls { "never rising" } else { "rising" }
        ));
        Panel {
            title: format!("{name}, 2D = {most}"),
            series: vec![
                level("2D", most),
                level("4(N-1)/N", full),
                joined("constant delays, hold 2", &constant),
                joined("exponential delays, hold 1", &exponential),
            ],
        }
    };
    let panels = vec![
        panel("line", "line"),
        panel("kary:2", "binary tree"),
        panel("star:3", "radiating star of valency 3"),
        panel("star:30", "star"),
    ];
    let chart = Chart {
        title: "Raymond 1989, §5 and §5.1: messages against demand".to_owned(),
        x: demand_axis(),
        y: Axis::new("messages per entry"),
        panels,
        caption: format!("{nodes} nodes. {}", method()),
    };
    let text = format!("4(N-1)/N = {full:.3}; {}", texts.join("; "));
    by_chance(chart, verdict(so), text, &saturated(NAME, nodes, "kary:2"))
}

/// Share of the REQUESTs that travel with a PRIVILEGE.
fn saved(runs: impl IntoIterator<Item = (f64, Run)>) -> Vec<Measured> {
    estimates(runs, |measures| {
        let kinds = &measures.messages_by_kind;
        let together = kinds["PRIVILEGE+REQUEST"] as f64;
        let all = together + kinds["REQUEST"] as f64;
        if all == 0.0 { 0.0 } else { together / all }
    })
}

fn piggyback() -> Reproduced {
    // The largest complete tree of each valency that has at most 500 nodes; a line for valency 2.
    let trees = [(2, "line", 200), (3, "star:3", 382), (4, "star:4", 485)];
    let more = [(5, "star:5", 426), (6, "star:6", 187), (8, "star:8", 457)];
    let trees: Vec<(usize, &str, usize)> = trees.into_iter().chain(more).collect();
    let run = |form, nodes| saturated("raymond+piggyback", nodes, form);
    let found = saved(
        trees
            .iter()
            .map(|&(valency, form, n)| (valency as f64, run(form, n))),
    );
    let claimed = |k: f64| k / (2.0 * (k - 1.0));
    let so = found
        .iter()
        .all(|m| is_close(m.estimate.mean, claimed(m.x), 0.03));
    let xs: Vec<f64> = (0..=30).map(|step| 2.0 + 0.2 * f64::from(step)).collect();
    let series = vec![
        formula("K/2(K-1)", &xs, claimed),
        points("measured", &found),
    ];
    let title = "Raymond 1989, §6.1: REQUESTs that piggybacking saves";
    let caption = format!(
        "Saturated: constant delays, two delays inside. A line of 200 nodes, and complete trees of {} nodes. {}",
        trees[1..]
            .iter()
            .map(|(_, _, n)| n.to_string())
            .collect::<Vec<_>>()
            .join(", "),
        method()
    );
    let y = Axis::from_zero("share of the REQUESTs");
    let chart = chart(title, Axis::linear("valency K"), y, series, caption);
    let text = format!("by valency: {}; all within 3 % of K/2(K-1)", listed(&found));
    let text = if so {
        text
    } else {
        text.replace("; all", "; not all")
    };
    by_chance(chart, verdict(so), text, &run("star:3", 382))
}

fn piggyback_by_demand() -> Reproduced {
    let run = || saturated("raymond+piggyback", 46, "star:3");
    let found = saved(by_demand(run));
    let tree = Tree::parse("star:3", 46).expect("a tree");
    let valencies = soloist_algorithms::NodeId::all(46).map(|node| tree.neighbours(node).len());
    let valencies: Vec<_> = valencies.collect();
    let all: usize = valencies.iter().sum();
    let inner: usize = valencies.iter().filter(|valency| **valency > 1).sum();
    let claimed = inner as f64 / all as f64;
    let (low, high) = (&found[0].estimate, &found[found.len() - 1].estimate);
    let so = low.mean < 0.01 && is_close(high.mean, claimed, 0.02);
    let series = vec![
        level("nonleaves' share", claimed),
        joined("measured", &found),
    ];
    let title = "Raymond 1989, §6.1: REQUESTs that piggybacking saves, by demand";
    let caption = format!(
        "46 nodes, complete tree of valency 3, constant delays, two delays inside. {}",
        method()
    );
    let y = Axis::from_zero("share of the REQUESTs");
    let chart = chart(title, demand_axis(), y, series, caption);
    let text = format!(
        "{low} one at a time, {high} saturated; the nonleaves' share of all valencies is {claimed:.3}"
    );
    by_chance(chart, verdict(so), text, &run())
}

const BOTH: [(&str, &str); 2] = [("raymond", "standard"), ("raymond+greedy", "greedy")];

fn greedy() -> Reproduced {
    let run = |algorithm| Run::of(algorithm, 46).shape("star:3").entries(ENTRIES);
    let found = BOTH.map(|(algorithm, _)| {
        estimates(by_demand(|| run(algorithm)), |measures| {
            measures.response_time.mean
        })
    });
    let last = found
        .each_ref()
        .map(|found| &found[found.len() - 1].estimate);
    let first = found.each_ref().map(|found| &found[0].estimate);
    let so = first[0].mean == first[1].mean && last[1].high() < last[0].low();
    let series = BOTH.iter().zip(&found);
    let series = series
        .map(|((_, name), found)| joined(name, found))
        .collect();
    let title = "Raymond 1989, §6.2: response time of the greedy strategy";
    let caption = format!(
        "46 nodes, complete tree of valency 3, exponential delays. {}",
        method()
    );
    let y = Axis::new("mean response time (message delays)");
    let chart = chart(title, demand_axis(), y, series, caption);
    let text = format!(
        "standard {} and greedy {} one at a time, {} and {} under heavy load",
        first[0], first[1], last[0], last[1]
    );
    by_chance(chart, verdict(so), text, &run("raymond+greedy"))
}

/// If each of four nonleaves enters three times as often as each of six leaves, Jain's index is
/// 18²/(10·42).
fn greedy_fairness() -> Reproduced {
    let run = |algorithm| saturated(algorithm, 10, "star:3");
    let found = BOTH.map(|(algorithm, _)| {
        estimates(by_demand(|| run(algorithm)), |measures| {
            measures.fairness.jain
        })
    });
    let last = found
        .each_ref()
        .map(|found| &found[found.len() - 1].estimate);
    let claimed = 324.0 / 420.0;
    let so = is_close(last[1].mean, claimed, 0.01) && is_close(last[0].mean, 1.0, 0.001);
    let mut series = vec![level("three to one", claimed)];
    series.extend(
        BOTH.iter()
            .zip(&found)
            .map(|((_, name), found)| joined(name, found)),
    );
    let title = "Raymond 1989, §6.2 and Fig. 7: fairness of the greedy strategy";
    let caption = format!(
        "The tree of Fig. 7 (10 nodes), constant delays, two delays inside. Jain's index is 1 if all nodes enter alike. {}",
        method()
    );
    let chart = chart(
        title,
        demand_axis(),
        Axis::linear("Jain's index"),
        series,
        caption,
    );
    let text = format!(
        "saturated: {} standard, {} greedy; three to one is {claimed:.4}",
        last[0], last[1]
    );
    by_chance(chart, verdict(so), text, &run("raymond+greedy"))
}
