//! Chaudhuri and Karaata 1998: links, and the number of messages against the size of the mesh.

use soloist_algorithms::shape::Mesh;
use soloist_algorithms::{Kind, NodeId, Shape};
use soloist_lab::report::{Axis, Chart, Look, Panel, Point, Series};

use super::curve::{
    ENTRIES, by_chance, chart, counted, formula, listed, measured, messages, method, points,
};
use super::{Content, Item, Part, Reproduced};
use crate::Verdict;
use crate::chaudhuri_karaata::{
    bytes_of_a_message, costs_alone, most_alone, queue_length, queue_outcomes,
};
use crate::comparison::Table;
use crate::tools::Run;

pub(super) fn items() -> Vec<Item> {
    let item =
        |part, labels, title, make| measured(Kind::ChaudhuriKaraata, part, labels, title, make);
    vec![
        item(
            Part::Figure,
            &["1"],
            "links that the algorithm uses, against the side of the mesh",
            links,
        ),
        item(
            Part::Equation,
            &["theorem-2", "2"],
            "mean and maximum of the messages of a request alone, against the side of the mesh",
            alone,
        ),
        item(
            Part::Equation,
            &["theorem-3", "3"],
            "messages under heavy demand, against the side of the mesh",
            heavy,
        ),
        item(
            Part::Equation,
            &["4"],
            "messages of a request alone, within a plane and between planes",
            parts,
        ),
        item(
            Part::Equation,
            &["theorem-4"],
            "length of a message, against the number of nodes",
            length,
        ),
        item(
            Part::Equation,
            &["theorem-4-queue"],
            "length of a queue, by both rules",
            queue,
        ),
    ]
}

const NAME: &str = "chaudhuri-karaata";
const PUBLISHED: &str = "chaudhuri-karaata+as-published";

fn side_axis() -> Axis {
    Axis::linear("side of the mesh, c (n = c³ nodes)")
}

fn links() -> Reproduced {
    let sides = [2_usize, 3, 4, 5, 6];
    let counted_links = sides.map(|c| {
        let mesh = Mesh::default_for(c.pow(3));
        let ends = NodeId::all(mesh.nodes()).map(|node| mesh.neighbours(node).count());
        ends.sum::<usize>() / 2
    });
    let xs = sides.map(|c| c as f64);
    let claimed = |c: f64| 13.0 * (c - 1.0);
    let built = xs.iter().zip(counted_links);
    let so = built.clone().all(|(c, links)| links as f64 == claimed(*c));
    let points = built.map(|(c, links)| Point::new(*c, links as f64));
    let series = vec![
        formula("13(c-1), claimed", &xs, claimed),
        Series::new("counted: n-1", Look::Points, points),
    ];
    let title = "Chaudhuri and Karaata 1998, Fig. 1 and §2: links that are used";
    let caption =
        "The bold links of Fig. 1, in meshes of c by c by c nodes. Counted, not measured.";
    let y = Axis::from_zero("links");
    let chart = chart(title, side_axis(), y, series, caption.to_owned());
    let text = format!(
        "c = 2 to 6: {} links, a spanning tree of n nodes; 13(c-1) is right for n = 27 only",
        counted_links.map(|links| links.to_string()).join(", ")
    );
    counted(
        chart,
        Verdict::of(so, so),
        text,
        Run::of(NAME, 27).command(),
    )
}

/// The mean and the maximum over all positions of the requester and of the token.
fn alone() -> Reproduced {
    let sides = [2_usize, 3, 4, 5];
    let costs = sides.map(|c| costs_alone(c).expect("the repaired rules serve every request"));
    let mean = |costs: &Vec<u64>| costs.iter().sum::<u64>() as f64 / costs.len() as f64;
    let most = costs
        .each_ref()
        .map(|costs| costs.iter().copied().max().unwrap_or(0) as f64);
    let means = costs.each_ref().map(mean);
    let xs = sides.map(|c| c as f64);
    let claimed = |c: f64| 8.0 * (c - 1.0);
    let within = xs.iter().zip(most).all(|(c, most)| most <= claimed(*c));
    let run = |c: usize| Run::of(NAME, c.pow(3)).load("light").entries(ENTRIES);
    let found = messages(sides.map(|c| (c as f64, run(c))));
    let counted_points = |values: [f64; 4]| {
        let pairs: Vec<_> = xs
            .iter()
            .zip(values)
            .map(|(x, y)| Point::new(*x, y))
            .collect();
        pairs
    };
    let series = vec![
        formula("8(c-1), claimed", &xs, claimed),
        Series::new("maximum, all positions", Look::Points, counted_points(most)),
        Series::new("mean, all positions", Look::Points, counted_points(means)),
        points("mean, simulated", &found),
    ];
    // Later requests meet what the first ones left behind.
    let printed = Run::of(PUBLISHED, 27).load("light").report();
    let title = "Chaudhuri and Karaata 1998, Theorem 2: messages of a request alone";
    let caption = format!(
        "Repaired rules. All positions: every requester with the token in every plane, one at a time, counted. Simulated: light load, \
         exponential delays. {}",
        method()
    );
    let y = Axis::from_zero("messages per entry");
    let chart = chart(title, side_axis(), y, series, caption);
    let text = format!(
        "c = 2 to 5: at most {}, claimed {}; on average {}, simulated {}. As printed, one request at a time at n = 27 ends after {} of {} \
         entries",
        most.map(|most| most.to_string()).join(", "),
        xs.map(|c| claimed(c).to_string()).join(", "),
        means.map(|mean| format!("{mean:.2}")).join(", "),
        listed(&found),
        printed.measures.entries,
        10_000
    );
    by_chance(
        chart,
        Verdict::of(within && printed.is_well(), within),
        text,
        &run(4),
    )
}

fn heavy() -> Reproduced {
    let sides = [2_usize, 3, 4, 5, 6];
    let xs = sides.map(|c| c as f64);
    let run = |name, c: usize| Run::of(name, c.pow(3)).entries(ENTRIES);
    let found = messages(sides.map(|c| (c as f64, run(NAME, c))));
    let exact = |c: f64| 3.0 * (c - 1.0) + 2.0 * (c - 1.0) / (c * c);
    let within = found.iter().all(|m| m.estimate.high() <= exact(m.x));
    let printed = sides.map(|c| run(PUBLISHED, c).report());
    let is_well = printed.iter().all(|report| report.is_well());
    let series = vec![
        formula("3(c-1) + 2(c-1)/c², counted", &xs, exact),
        formula("3(c-1), claimed", &xs, |c| 3.0 * (c - 1.0)),
        points("measured", &found),
    ];
    let title = "Chaudhuri and Karaata 1998, Theorem 3: messages under heavy demand";
    let caption = format!(
        "Repaired rules, heavy load, exponential delays. {}",
        method()
    );
    let y = Axis::from_zero("messages per entry");
    let chart = chart(title, side_axis(), y, series, caption);
    let ended = printed.iter().filter(|report| !report.is_well()).count();
    let text = format!(
        "c = 2 to 6: {}; claimed about 3(c-1), and at most {} if a plane's moves are counted. As printed, {ended} of 5 runs leave a node \
         waiting",
        listed(&found),
        xs.map(|c| format!("{:.2}", exact(c))).join(", ")
    );
    by_chance(
        chart,
        Verdict::of(within && is_well, within),
        text,
        &run(NAME, 4),
    )
}

/// The two parts of the worst case of Theorem 2.
fn parts() -> Reproduced {
    let sides = [2_usize, 3, 4, 5];
    let xs = sides.map(|c| c as f64);
    let mut so = true;
    let mut texts = Vec::new();
    let mut panel = |title: &str, factor: f64, most: [u64; 4]| {
        so &= most
            .iter()
            .zip(xs)
            .all(|(most, c)| *most as f64 <= factor * (c - 1.0));
        texts.push(format!(
            "{title} at most {}, claimed {factor}(c-1)",
            most.map(|most| most.to_string()).join(", ")
        ));
        let points = xs
            .iter()
            .zip(most)
            .map(|(c, most)| Point::new(*c, most as f64));
        Panel {
            title: title.to_owned(),
            series: vec![
                formula(&format!("{factor}(c-1), claimed"), &xs, |c| {
                    factor * (c - 1.0)
                }),
                Series::new("maximum, all positions", Look::Points, points),
            ],
        }
    };
    let panels = vec![
        panel("within the plane", 6.0, sides.map(|c| most_alone(c, c, 1))),
        panel("between planes", 2.0, sides.map(|c| most_alone(1, 1, c))),
    ];
    let chart = Chart {
        title: "Chaudhuri and Karaata 1998, §4: the parts of the worst case".to_owned(),
        x: side_axis(),
        y: Axis::from_zero("messages"),
        panels,
        caption: "Meshes of c by c by 1 and of 1 by 1 by c nodes, every requester with the token at every node, repaired rules. Counted."
            .to_owned(),
    };
    let text = format!("c = 2 to 5: {}", texts.join("; "));
    let run = Run::of(NAME, 9).shape("3x3x1").load("light");
    counted(chart, Verdict::of(so, so), text, run.command())
}

fn length() -> Reproduced {
    let sizes = [8_usize, 27, 64, 125, 1000, 8000];
    let lengths = sizes.map(bytes_of_a_message);
    let xs = sizes.map(|n| n as f64);
    let so = lengths.iter().all(|(bytes, bound)| bytes <= bound);
    let line = |values: [f64; 6]| -> Vec<Point> {
        xs.iter()
            .zip(values)
            .map(|(x, y)| Point::new(*x, y))
            .collect()
    };
    let bounds = lengths.map(|(_, bound)| bound);
    let means = lengths.map(|(bytes, _)| bytes);
    let series = vec![
        Series::claimed(
            "a type and a number of log n bits",
            xs.iter().copied().zip(bounds),
        ),
        Series::new("mean, encoded", Look::Points, line(means)),
    ];
    let title = "Chaudhuri and Karaata 1998, Theorem 4 (i): length of a message";
    let caption = "Heavy load, one run of 3000 entries per size, repaired rules.";
    let axes = (Axis::new("nodes"), Axis::from_zero("bytes per message"));
    let chart = chart(title, axes.0, axes.1, series, caption.to_owned());
    let text = format!(
        "n = 8 to 8000: {} bytes on average, at most {}",
        means.map(|bytes| format!("{bytes:.2}")).join(", "),
        bounds.map(|bound| bound.to_string()).join(", ")
    );
    let run = Run::of(NAME, 1000).entries(3000);
    counted(chart, Verdict::of(so, so), text, run.command())
}

fn queue() -> Reproduced {
    let rules = ["as printed", "repaired"].into_iter().zip(queue_outcomes());
    let rows = rules.map(|(rules, outcome)| vec![rules.to_owned(), outcome]);
    Reproduced {
        finding: queue_length(),
        seeds: None,
        content: Content::Table(Table {
            title: "Chaudhuri and Karaata 1998, Theorem 4 (ii): length of a queue".to_owned(),
            note: "A search of the mesh 1x1x3, in which planes 1 and 2 request four times each. The theorem allows 4 entries there: one for the \
                   node of the plane, and one for each plane"
                .to_owned(),
            head: ["rules", "outcome"].map(str::to_owned).to_vec(),
            rows: rows.collect(),
        }),
    }
}
