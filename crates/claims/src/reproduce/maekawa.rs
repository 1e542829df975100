//! Maekawa 1985: the sets, their size, and the number of messages.

use soloist_algorithms::shape::Quorums;
use soloist_algorithms::{Kind, Shape};
use soloist_lab::report::{Axis, Chart, Look, Panel, Point, Series};

use super::curve::{
    ENTRIES, by_chance, by_demand, chart, counted, demand_axis, estimates, formula, joined, level,
    listed, measured, messages, method, points,
};
use super::{Content, Item, Part, Reproduced};
use crate::Verdict;
use crate::comparison::Table;
use crate::maekawa::{
    figure_1, k_bound, plane, sets_of_figure_1, worst_on_figure_1c, worst_per_root,
};
use crate::tools::Run;

pub(super) fn items() -> Vec<Item> {
    let item = |part, labels, title, make| measured(Kind::Maekawa, part, labels, title, make);
    vec![
        item(
            Part::Figure,
            &["1", "1a", "1b", "1c", "1d"],
            "the sets for K = 2 to 5, and whether they have the properties (a) to (d)",
            sets,
        ),
        item(
            Part::Equation,
            &["abstract"],
            "c against demand: messages per entry, divided by K-1",
            c_by_demand,
        ),
        item(
            Part::Equation,
            &["1"],
            "messages of a request alone, against the number of nodes",
            alone,
        ),
        item(
            Part::Equation,
            &["3-count"],
            "number of sets with K members, each node in D of them",
            number_of_sets,
        ),
        item(
            Part::Equation,
            &["3"],
            "size of the sets, against the number of nodes",
            size_of_sets,
        ),
    ]
}

const NAME: &str = "maekawa";

fn sets() -> Reproduced {
    let rows = sets_of_figure_1().into_iter().zip(["1a", "1b", "1c", "1d"]);
    let rows = rows.map(|(sets, figure)| {
        let listed = sets
            .iter()
            .map(|set| format!("{{{}}}", set.replace(' ', ", ")));
        let k = sets[0].split(' ').count();
        vec![
            figure.to_owned(),
            k.to_string(),
            sets.len().to_string(),
            listed.collect::<Vec<_>>().join(" "),
        ]
    });
    Reproduced {
        finding: figure_1(),
        seeds: None,
        content: Content::Table(Table {
            title: "Maekawa 1985, Fig. 1: sets of nodes that meet in one node each".to_owned(),
            note: "The sets S_1 to S_N, with the paper's numbers.".to_owned(),
            head: ["figure", "K", "N", "sets"].map(str::to_owned).to_vec(),
            rows: rows.collect(),
        }),
    }
}

fn c_by_demand() -> Reproduced {
    let mut within = true;
    let mut texts = Vec::new();
    let mut panel = |order: usize, worst: Option<f64>| {
        let nodes = plane(order);
        let run = || Run::of(NAME, nodes).entries(ENTRIES);
        // A node's message to itself is not counted, so K - 1 stands for √N.
        let found = estimates(by_demand(run), |m| m.messages_per_entry / order as f64);
        within &= found
            .iter()
            .all(|m| m.estimate.low() >= 2.999 && m.estimate.high() <= 5.0);
        texts.push(format!(
            "N = {nodes}: {} alone, {} under heavy load",
            found[0].estimate,
            found[found.len() - 1].estimate
        ));
        let mut series = vec![
            level("6, proved here", 6.0),
            level("5, claimed at most", 5.0),
            level("4", 4.0),
            level("3, claimed at least", 3.0),
            joined("measured", &found),
        ];
        if let Some(worst) = worst {
            let place = (found.len() - 1) as f64;
            let point = [Point::new(place, worst / order as f64)];
            series.push(Series::new("worst run found", Look::Points, point));
        }
        Panel {
            title: format!("{nodes} nodes, K = {}", order + 1),
            series,
        }
    };
    let panels = vec![panel(3, Some(worst_on_figure_1c())), panel(7, None)];
    let worst = worst_per_root();
    let chart = Chart {
        title: "Maekawa 1985, abstract: messages per entry, divided by K-1".to_owned(),
        x: demand_axis(),
        y: Axis::linear("c = messages / (K-1)"),
        panels,
        caption: format!(
            "Projective planes, exponential delays, repaired rules. {}",
            method()
        ),
    };
    let verdict = match within && worst <= 5.0 {
        true => Verdict::Holds,
        false => Verdict::Fails,
    };
    let text = format!(
        "{}: on average within 3 and 5. As a bound it fails: a run on the plane of 307 nodes has {worst:.2}√N per entry",
        texts.join("; ")
    );
    by_chance(chart, verdict, text, &Run::of(NAME, 57).entries(ENTRIES))
}

fn alone() -> Reproduced {
    let orders = [2, 3, 4, 5, 7, 8, 11];
    let run = |nodes| Run::of(NAME, nodes).load("light").entries(ENTRIES);
    let sizes = orders.map(|order| plane(order) as f64);
    let found = messages(sizes.map(|n| (n, run(n as usize))));
    let pairs = found.iter().zip(orders);
    let exact = pairs
        .clone()
        .all(|(m, order)| m.estimate.mean == 3.0 * order as f64);
    let exact = exact && found.iter().all(|m| m.estimate.half_width == 0.0);
    let series = vec![
        formula("2(N-1), Ricart-Agrawala", &sizes, |n| 2.0 * (n - 1.0)),
        formula("3√N", &sizes, |n| 3.0 * n.sqrt()),
        points("measured", &found),
    ];
    let title = "Maekawa 1985, §1: messages of a request alone";
    let caption = format!(
        "Projective planes, light load, exponential delays. {}",
        method()
    );
    let axes = (Axis::new("nodes"), Axis::new("messages per entry"));
    let chart = chart(title, axes.0, axes.1, series, caption);
    let text = format!(
        "{}: {}3(K-1), which is below 3√N because a node needs no message to itself",
        listed(&found),
        if exact { "exactly " } else { "not " }
    );
    by_chance(chart, Verdict::of(exact, exact), text, &run(57))
}

fn size_of_sets() -> Reproduced {
    let sizes: Vec<usize> = (2..=200).collect();
    let k = |nodes: usize| Quorums::default_for(nodes).k_max();
    let built: Vec<_> = sizes.iter().map(|&n| (n, k(n))).collect();
    let below = built.iter().filter(|(n, k)| *k < k_bound(*n)).count();
    let met = built.iter().filter(|(n, k)| *k == k_bound(*n)).count();
    let points = built.iter().map(|(n, k)| Point::new(*n as f64, *k as f64));
    let xs: Vec<f64> = sizes.iter().map(|&n| n as f64).collect();
    let series = vec![
        formula("least K with K(K-1)+1 ≥ N", &xs, |n| {
            k_bound(n as usize) as f64
        }),
        formula("√N", &xs, f64::sqrt),
        Series::new("largest set built", Look::Curve, points),
    ];
    let title = "Maekawa 1985, §3: size of the sets";
    let caption = "Sets from the next larger projective plane, its points folded together, for every N from 2 to 200. Counted, not measured.";
    let axes = (Axis::linear("nodes"), Axis::from_zero("K"));
    let chart = chart(title, axes.0, axes.1, series, caption.to_owned());
    let text = format!(
        "N = 2 to 200: {below} are below the bound, and {met} of {} meet it; planes always do",
        built.len()
    );
    let verdict = Verdict::of(below == 0, below == 0);
    let command = "cargo test -p soloist-algorithms --test quorums".to_owned();
    counted(chart, verdict, text, command)
}

fn number_of_sets() -> Reproduced {
    let orders = [2_usize, 3, 4, 5, 7, 8, 9, 11, 13];
    let built = orders.map(|order| {
        let sets = Quorums::default_for(plane(order));
        (sets.k_max(), sets.load_max(), sets.nodes())
    });
    let claimed = |k: f64, d: f64| (d - 1.0) * k + 1.0;
    let reached = built.iter().filter(|(k, d, sets)| *sets == (d - 1) * k + 1);
    let reached = reached.count();
    let xs = built.map(|(k, ..)| k as f64);
    let points = built.map(|(k, _, sets)| Point::new(k as f64, sets as f64));
    let series = vec![
        formula("(D-1)K+1, D = K", &xs, |k| claimed(k, k)),
        Series::new("projective planes", Look::Points, points),
    ];
    let title = "Maekawa 1985, §3: number of sets";
    let caption = "Planes of order 2 to 13, K = D = order + 1. Counted, not measured.";
    let axes = (Axis::linear("K"), Axis::from_zero("sets"));
    let chart = chart(title, axes.0, axes.1, series, caption.to_owned());
    let text = format!(
        "{reached} of {} planes have exactly (D-1)K+1 sets; that there are never more is a matter of counting, see claims.md",
        built.len()
    );
    let so = reached == built.len();
    let command = "soloist lab reproduce --paper maekawa --equation 3-count";
    counted(chart, Verdict::of(so, so), text, command.to_owned())
}
