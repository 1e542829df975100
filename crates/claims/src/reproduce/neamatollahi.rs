//! Neamatollahi et al. 2017: messages under light, heavy and medium demand.

use soloist_algorithms::Kind;
use soloist_lab::report::{Axis, Look, Panel, Point, Series};

use super::curve::{
    ENTRIES, by_chance, chart, counted, formula, listed, measured, messages, method, points,
};
use super::table_1;
use super::{Item, Part, Reproduced};
use crate::Verdict;
use crate::neamatollahi::{
    alone, crowd_in_a_row, crowd_of_all_rows, most_of_all_rows_with_fast_token,
};
use crate::tools::Run;

pub(super) fn items() -> Vec<Item> {
    let item = |part, labels, title, make| measured(Kind::Neamatollahi, part, labels, title, make);
    vec![
        item(
            Part::Table,
            &["1"],
            "messages and waiting time of eight algorithms",
            table_1::table_1,
        ),
        item(
            Part::Equation,
            &["5.1"],
            "how many messages a request alone takes, with 64 nodes",
            light,
        ),
        item(
            Part::Equation,
            &["5.2"],
            "messages under heavy demand, against the number of nodes",
            heavy,
        ),
        item(
            Part::Equation,
            &["5.3"],
            "messages when √N nodes request at once, against the number of nodes",
            medium,
        ),
    ]
}

const NAME: &str = "neamatollahi";

/// The cost of a single request, for each position of the requester and of the token.
fn light() -> Reproduced {
    let side = 8_u64;
    let costs = alone(side as usize);
    let (least, most) = (costs.iter().min(), costs.iter().max());
    let (least, most) = (*least.expect("not empty"), *most.expect("not empty"));
    let share = |cost: u64| {
        let same = costs.iter().filter(|one| **one == cost).count();
        100.0 * same as f64 / costs.len() as f64
    };
    let bars: Vec<_> = (least..=most)
        .map(|cost| Point::new(cost as f64, share(cost)))
        .collect();
    let top = bars.iter().map(|point| point.y).fold(0.0, f64::max);
    let (low, high) = (2 * side + 1, 3 * side + 1);
    let outside = costs
        .iter()
        .filter(|cost| !(low..=high).contains(cost))
        .count();
    let outside = 100.0 * outside as f64 / costs.len() as f64;
    let bound = |name: &str, at: u64| Series::claimed(name, [(at as f64, 0.0), (at as f64, top)]);
    let series = vec![
        Series::new("requests", Look::Bars, bars),
        bound("2√N+1, claimed least", low),
        bound("3√N+1, claimed most", high),
    ];
    let title = "Neamatollahi et al. 2017, §5.1: messages of a request alone, N = 64";
    let caption = "Every requester with the token at every node, equal delays, repaired rules: 4096 requests, counted.";
    let (x, y) = (
        Axis::linear("messages"),
        Axis::from_zero("share of the requests (%)"),
    );
    let chart = chart(title, x, y, series, caption.to_owned());
    let text = format!(
        "N = 64: {least} to {most} messages, claimed {low} to {high}; {outside:.0} % of the requests are outside"
    );
    let verdict = Verdict::of(outside == 0.0, outside == 0.0);
    let run = Run::of(NAME, 64).load("light").delay("constant");
    counted(chart, verdict, text, run.command())
}

fn heavy() -> Reproduced {
    let sides = [3.0, 4.0, 5.0, 6.0, 8.0, 10.0];
    let run = |side: f64| {
        Run::of(NAME, (side * side) as usize)
            .hold("2")
            .entries(ENTRIES)
    };
    let found = messages(sides.map(|side| (side * side, run(side))));
    let claimed = |n: f64| (2.0 * n + n.sqrt() + 1.0) / n;
    // The node where a round of a row begins and ends enters twice: √N + 1 entries per round.
    let exact = |n: f64| 2.0 + 1.0 / (n.sqrt() * (n.sqrt() + 1.0));
    let so = found.iter().all(|m| m.estimate.high() <= claimed(m.x));
    let near = found
        .iter()
        .all(|m| (m.estimate.mean - exact(m.x)).abs() < 0.005);
    let xs: Vec<f64> = (9..=100).map(f64::from).collect();
    let series = vec![
        formula("3, claimed at most", &xs, |_| 3.0),
        formula("(2N+√N+1)/N, claimed", &xs, claimed),
        formula("2+1/(√N(√N+1)), counted", &xs, exact),
        points("measured", &found),
    ];
    let title = "Neamatollahi et al. 2017, §5.2: messages under heavy demand";
    let caption = format!(
        "Square tori, heavy load, exponential delays, two delays inside, repaired rules. {}",
        method()
    );
    let y = Axis::linear("messages per entry");
    let chart = chart(title, Axis::linear("nodes"), y, series, caption);
    let text = format!(
        "{}: never above (2N+√N+1)/N; {}within 0.005 of 2+1/(√N(√N+1)), the count if the node where a round begins and ends enters twice",
        listed(&found),
        if near { "" } else { "not " }
    );
    by_chance(chart, Verdict::of(so, so), text, &run(8.0))
}

fn medium() -> Reproduced {
    let sides = [3_usize, 4, 5, 6, 8];
    let xs = sides.map(|side| (side * side) as f64);
    let row = sides.map(crowd_in_a_row);
    let rows = sides.map(crowd_of_all_rows);
    let root = |n: f64| n.sqrt();
    let best = |n: f64| (3.0 * root(n) + 1.0) / root(n);
    let worst = |n: f64| (2.0 * n + root(n) + 1.0) / root(n);
    let bound = |n: f64| 3.0 * root(n);
    let line = |name: &str, values: [f64; 5]| {
        let points = xs.iter().zip(values).map(|(x, y)| Point::new(*x, y));
        Series::new(name, Look::Points, points)
    };
    let ends = |title: &str, costs: [(f64, f64); 5], formulas: Vec<Series>| {
        let mut series = formulas;
        series.push(line("most", costs.map(|cost| cost.1)));
        series.push(line("least", costs.map(|cost| cost.0)));
        Panel {
            title: title.to_owned(),
            series,
        }
    };
    let panels = vec![
        ends(
            "all in one row",
            row,
            vec![formula("(3√N+1)/√N", &xs, best)],
        ),
        ends(
            "one in each row",
            rows,
            vec![
                formula("3√N", &xs, bound),
                formula("(2N+√N+1)/√N", &xs, worst),
            ],
        ),
    ];
    let is_within = |costs: [(f64, f64); 5], bound: &dyn Fn(f64) -> f64| {
        costs
            .iter()
            .zip(xs)
            .all(|((_, most), n)| *most <= bound(n) + 1e-9)
    };
    let (in_best, in_bound) = (is_within(row, &best), is_within(rows, &bound));
    let in_worst = is_within(rows, &worst);
    let title = "Neamatollahi et al. 2017, §5.3: √N nodes request at once";
    let caption = "Square tori, the token at every node, equal delays, repaired rules; one in each row: columns and diagonals of every \
                   slope. Counted.";
    let mut chart = chart(
        title,
        Axis::linear("nodes"),
        Axis::from_zero("messages per entry"),
        Vec::new(),
        caption.to_owned(),
    );
    chart.panels = panels;
    let yes = |so: bool| if so { "" } else { "not " };
    let fast = most_of_all_rows_with_fast_token(sides[0]);
    let text = format!(
        "in one row {}within (3√N+1)/√N; one in each row {}within 3√N and {}within the (2N+√N+1)/√N that the paper counts. If the token is faster \
         than all alerts, {fast:.2} messages for each of the {} entries at N = {}, one in each row, where 3√N is {}",
        yes(in_best),
        yes(in_bound),
        yes(in_worst),
        sides[0],
        xs[0],
        bound(xs[0])
    );
    let so = in_best && in_bound && in_worst && fast <= bound(xs[0]);
    counted(
        chart,
        Verdict::of(so, so),
        text,
        Run::of(NAME, 25).load("burst").command(),
    )
}
