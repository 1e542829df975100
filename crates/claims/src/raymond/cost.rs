//! §5: the number of messages.

use soloist_algorithms::shape::Tree;
use soloist_algorithms::{Kind, NodeId, Shape};
use soloist_lab::replicate::Estimate;
use soloist_lab::simulate::Random;

use super::claim;
use crate::exact::is_exactly;
use crate::pairs::{is_cheaper, more_messages};
use crate::tools::{Run, examined_again, finding, highest, is_close, is_less, is_within, largest};
use crate::{Claim, Finding, Verdict};

pub(super) fn claims() -> Vec<Claim> {
    vec![
        claim(
            "§5",
            "an entry costs at most 2D messages, D the tree's diameter",
            twice_the_diameter,
        ),
        claim(
            "§5",
            "on a line, all nodes alike, about 2N/3 messages: fewer than the N of Suzuki and Kasami",
            line,
        ),
        claim(
            "§5",
            "on a line, from end to end, 2(N-1): as many as Ricart and Agrawala, more than Suzuki and Kasami",
            line_from_end_to_end,
        ),
        claim(
            "§5",
            "the diameter of a radiating star of valency K is 2⌈log of (N-1)(K-2)/K + 1 to the base K-1⌉",
            star_diameter,
        ),
        claim(
            "§5",
            "in a radiating star the mean distance approaches the diameter as N grows, without reaching it",
            mean_distance,
        ),
        claim("§5", "trees with a high fanout are preferable", high_fanout),
        claim(
            "§5",
            "trees constructed at random typically have a diameter of O(log N)",
            random_trees,
        ),
        claim(
            "abstract, §5",
            "typically O(log N) messages under light demand",
            logarithmic,
        ),
        claim(
            "§5",
            "in most situations fewer messages than Ricart-Agrawala, Suzuki-Kasami and Maekawa",
            fewer_than_others,
        ),
        claim(
            "§5.1",
            "saturated, 4(N-1)/N messages per entry whatever the tree: approximately four",
            saturated,
        ),
        claim(
            "§5.1",
            "the more nodes request, the fewer messages an entry costs",
            fewer_under_demand,
        ),
    ]
}

fn tree(form: &str, nodes: usize) -> Tree {
    Tree::parse(form, nodes).expect("a tree")
}

/// Number of nodes of a complete radiating star: every nonleaf has this valency, and all leaves are
/// at one level.
fn complete_star(valency: usize, levels: u32) -> usize {
    1 + (0..levels)
        .map(|level| valency * (valency - 1).pow(level))
        .sum::<usize>()
}

fn light(nodes: usize, form: &str) -> Run {
    Run::of("raymond", nodes).shape(form).load("light")
}

/// The most expensive of 200 single entries of random nodes, with the token at the last node, and
/// its cost.
fn costliest(nodes: usize, form: &str) -> (Run, f64) {
    let alone = |seed| light(nodes, form).entries(1).home(nodes - 1).seed(seed);
    // Each run has one entry, so its mean is the cost of that entry.
    let costs = (0..200).map(|seed| (alone(seed), alone(seed).cost()));
    let costliest = costs.reduce(|one, other| if other.1 > one.1 { other } else { one });
    costliest.expect("there are 200")
}

fn twice_the_diameter() -> Finding {
    let (mut holds, mut reached) = (true, Vec::new());
    for (nodes, form) in [
        (10, "star:3"),
        (22, "star:3"),
        (12, "line"),
        (30, "star:29"),
    ] {
        let bound = 2.0 * tree(form, nodes).diameter() as f64;
        let (_, most) = costliest(nodes, form);
        let busy = ["think:10", "heavy", "burst"].map(|load| {
            let run = Run::of("raymond", nodes).shape(form);
            run.entries(500).load(load).messages()
        });
        holds &= most <= bound && highest(&busy) <= bound;
        reached.push(format!("{most} of {bound} on {form} of {nodes}"));
    }
    finding(
        holds,
        format!(
            "the most of 200 entries one at a time: {}; never more on average under other loads",
            reached.join(", ")
        ),
        costliest(12, "line").0.command(),
    )
}

fn line() -> Finding {
    let (mut holds, mut figures) = (true, Vec::new());
    for nodes in [10, 50, 100] {
        let n = nodes as f64;
        let exact = 2.0 * (n * n - 1.0) / (3.0 * n);
        let own = light(nodes, "line").replicated();
        let others = Run::of("suzuki-kasami", nodes).load("light").replicated();
        let [measured, theirs] = [&own, &others].map(|run| run.report.measures.messages_per_entry);
        holds &= is_exactly(measured, exact) && is_close(exact, 2.0 * n / 3.0, 0.02);
        holds &= is_cheaper(&own, &others);
        figures.push(format!(
            "{measured} against {theirs} with {nodes} nodes, {} fewer in pairs of runs (2N/3 = {:.1})",
            more_messages(&others, &own),
            2.0 * n / 3.0
        ));
    }
    finding(
        holds,
        format!(
            "{}; exactly 2(N²-1)/3N, because the node that has the privilege may request too",
            figures.join(", ")
        ),
        light(100, "line").steady_command(),
    )
}

fn line_from_end_to_end() -> Finding {
    let nodes = 12;
    let (run, most) = costliest(nodes, "line");
    let light = |algorithm| Run::of(algorithm, nodes).load("light").entries(500);
    let (ricart, suzuki) = (light("ricart-agrawala"), light("suzuki-kasami"));
    let (ricart, suzuki) = (ricart.cost(), suzuki.messages());
    finding(
        most == ricart && most > nodes as f64,
        format!(
            "12 nodes, the token at one end: at most {most} in 200 runs; Ricart and Agrawala {ricart}, Suzuki and Kasami \
             12, or none ({suzuki} on average)"
        ),
        run.command(),
    )
}

/// The paper's formula, without rounding errors of logarithms: twice the number of levels of the
/// smallest complete star that is large enough.
pub(crate) fn star_formula(valency: usize, nodes: usize) -> usize {
    let levels = (0..).find(|&levels| complete_star(valency, levels) >= nodes);
    2 * levels.expect("some star is large enough") as usize
}

fn star_diameter() -> Finding {
    let (mut complete, mut exact, mut above, mut below, mut checked) = (true, 0, 0, 0, 0);
    for valency in 3..=8 {
        for nodes in 2..=400 {
            let diameter = tree(&format!("star:{valency}"), nodes).diameter();
            let expected = star_formula(valency, nodes);
            checked += 1;
            exact += usize::from(diameter == expected);
            above += usize::from(diameter + 1 == expected);
            below += usize::from(diameter > expected);
        }
        complete &= (1..=3).all(|levels| {
            let nodes = complete_star(valency, levels);
            tree(&format!("star:{valency}"), nodes).diameter() == star_formula(valency, nodes)
        });
    }
    let (run, cost) = costliest(46, "star:3");
    finding(
        complete && below == 0 && exact + above == checked,
        format!(
            "judged by complete stars, as in Fig. 6: exact, K = 3 to 8. Of all N = 2 to 400 exact in {exact} of {checked} cases; an upper \
             bound in the others, one too many where the last level is in one branch only; valency 3, 46 nodes: the \
             farthest entry costs {cost} messages, twice {}",
            star_formula(3, 46)
        ),
        run.command(),
    )
}

fn mean_distance() -> Finding {
    let sizes = [2, 4, 6, 8].map(|levels| complete_star(3, levels));
    let shares = sizes.map(|nodes| {
        let bound = 2.0 * tree("star:3", nodes).diameter() as f64;
        light(nodes, "star:3").messages().times(1.0 / bound)
    });
    let text = sizes.iter().zip(shares);
    let text: Vec<_> = text.map(|(n, share)| format!("{share} with {n}")).collect();
    finding(
        shares.is_sorted_by(is_less) && shares[3].high() < 1.0,
        format!(
            "valency 3, one request at a time: share of 2D that an entry costs on average, by nodes: {}",
            text.join(", ")
        ),
        light(sizes[3], "star:3").steady_command(),
    )
}

fn high_fanout() -> Finding {
    let shapes = ["line", "star:3", "star:5", "star:10", "star:99"];
    let runs = shapes.map(|form| light(100, form).replicated());
    let costs = runs
        .iter()
        .map(|run| run.report.measures.messages_per_entry);
    let text = shapes.iter().zip(costs);
    let text: Vec<_> = text.map(|(form, cost)| format!("{form} {cost}")).collect();
    let saved = runs
        .windows(2)
        .map(|runs| more_messages(&runs[0], &runs[1]));
    let saved: Vec<_> = saved.collect();
    let differences: Vec<_> = saved.iter().map(Estimate::to_string).collect();
    finding(
        saved.iter().all(|saved| saved.low() > 0.0),
        format!(
            "100 nodes, one request at a time, messages per entry: {}. In pairs of runs with the same demand, each saves this much over the one \
             before it: {}",
            text.join(", "),
            differences.join(", ")
        ),
        light(100, "star:10").steady_command(),
    )
}

/// A tree drawn uniformly from all N^(N-2) labelled trees, by its Prüfer code.
fn uniform_tree(nodes: usize, seed: u64) -> Tree {
    let mut random = Random::new(seed, 1);
    let code: Vec<_> = (2..nodes)
        .map(|_| random.below(nodes as u64) as usize)
        .collect();
    let mut degree = vec![1; nodes];
    code.iter().for_each(|&node| degree[node] += 1);
    let mut edges = String::new();
    for &node in &code {
        let leaf = degree
            .iter()
            .position(|&d| d == 1)
            .expect("a tree has leaves");
        edges.push_str(&format!("{leaf}-{node}\n"));
        degree[leaf] = 0;
        degree[node] -= 1;
    }
    let last: Vec<_> = (0..nodes).filter(|&node| degree[node] == 1).collect();
    edges.push_str(&format!("{}-{}\n", last[0], last[1]));
    Tree::from_listing(&edges, nodes).expect("a tree")
}

fn random_trees() -> Finding {
    let sizes = [64, 256, 1024];
    let mean = |of: &dyn Fn(u64) -> Tree| {
        let diameters = (0..20).map(|seed| of(seed).diameter());
        diameters.sum::<usize>() as f64 / 20.0
    };
    let grown = sizes.map(|nodes| mean(&|seed| tree(&format!("random:{seed}"), nodes)));
    let uniform = sizes.map(|nodes| mean(&|seed| uniform_tree(nodes, seed)));
    let factors = [uniform[1] / uniform[0], uniform[2] / uniform[1]];
    let found = format!(
        "mean diameter of 20 trees of 64, 256, 1,024 nodes: {:.1}, {:.1}, {:.1} where each node hangs on a random earlier one, which is \
         consistent with O(log N); but {:.1}, {:.1}, {:.1} where every labelled tree is as likely, about twice as much for four times the \
         nodes ({:.2}, {:.2}): the root of N",
        grown[0], grown[1], grown[2], uniform[0], uniform[1], uniform[2], factors[0], factors[1]
    );
    Finding::open(
        Verdict::DependsOnReading,
        found,
        "how the paper's random trees were drawn",
        light(256, "random:1").command(),
    )
}

fn logarithmic() -> Finding {
    let sizes = [2, 4, 6, 8].map(|levels| complete_star(3, levels));
    let costs = sizes.map(|nodes| light(nodes, "star:3").messages());
    let share = |i: usize| costs[i].high() / (sizes[i] as f64).log2();
    let grown = largest((0..4).map(share));
    let random = light(1000, "random:1").messages();
    let random = random.times(1.0 / 1000_f64.log2());
    let found = format!(
        "radiating stars of valency 3, {} nodes: {}, {}, {}, {} messages, at most {grown:.2} log2 N; a random tree of 1,000: \
         ({random}) log2 N: consistent with it for N = {} to {}",
        sizes.map(|nodes| nodes.to_string()).join(", "),
        costs[0],
        costs[1],
        costs[2],
        costs[3],
        sizes[0],
        sizes[3]
    );
    let evidence = light(sizes[3], "star:3").steady_command();
    // 2D is about 4 log2 N for valency 3.
    if grown > 4.0 || random.high() > 4.0 {
        return finding(false, found, evidence);
    }
    Finding::open(
        Verdict::NotDecided,
        found,
        "what a typical tree is; for radiating stars, 2D is a proof",
        evidence,
    )
}

fn fewer_than_others() -> Finding {
    let others = ["ricart-agrawala", "suzuki-kasami", "maekawa"];
    let (mut fewer, mut more) = (0, Vec::new());
    for nodes in [4, 10, 22, 46, 94] {
        for load in ["light", "think:100", "think:10", "heavy"] {
            let cost = |algorithm| {
                let run = Run::of(algorithm, nodes).load(load);
                run.replicated()
            };
            let own = cost("raymond");
            match others.iter().all(|&other| is_cheaper(&own, &cost(other))) {
                true => fewer += 1,
                false => more.push(format!("{nodes} under {load}")),
            }
        }
    }
    let exceptions = match more.as_slice() {
        [] => String::new(),
        more => format!("; not with {}", more.join(", ")),
    };
    finding(
        fewer > more.len(),
        format!(
            "4, 10, 22, 46 and 94 nodes under light, think:100, think:10 and heavy load: fewest in {fewer} of {}{exceptions}",
            fewer + more.len()
        ),
        "soloist lab compare --algorithms raymond,ricart-agrawala,suzuki-kasami,maekawa --nodes 4,10,22,46,94 --load \
         light,think:100,think:10,heavy --entries 1000 --warm-up 500 --level 99.9%"
            .to_owned(),
    )
}

/// All messages take equally long, and nodes stay inside for longer. So each node is waiting again
/// before the privilege returns.
pub(super) fn saturated_run(algorithm: &str, nodes: usize, form: &str) -> Run {
    let run = Run::of(algorithm, nodes).shape(form);
    run.delay("constant").hold("2")
}

fn saturated() -> Finding {
    let (mut holds, mut figures) = (true, Vec::new());
    for (nodes, form) in [(10, "star:3"), (31, "kary:2"), (20, "line"), (9, "star:8")] {
        let expected = 4.0 * (nodes - 1) as f64 / nodes as f64;
        let measured = saturated_run("raymond", nodes, form).messages();
        holds &= is_within(measured, expected, 0.01);
        figures.push(format!("{measured} of {expected:.3} on {form} of {nodes}"));
    }
    let random = Run::of("raymond", 46).messages();
    finding(
        holds,
        format!(
            "constant delays, two delays inside: {}; exponential ones, one delay inside: {random} with 46 nodes",
            figures.join(", ")
        ),
        saturated_run("raymond", 31, "kary:2").steady_command(),
    )
}

/// The mean distance between two nodes of a star, each any of them, the same one too.
fn mean_distance_of_star(nodes: usize) -> f64 {
    let star = tree(&format!("star:{}", nodes - 1), nodes);
    let distance = |a: NodeId, b: NodeId| {
        let is_centre = |node: NodeId| star.neighbours(node).len() > 1;
        match a == b {
            true => 0,
            false if is_centre(a) || is_centre(b) => 1,
            false => 2,
        }
    };
    let pairs = NodeId::all(nodes).flat_map(|a| NodeId::all(nodes).map(move |b| distance(a, b)));
    pairs.sum::<usize>() as f64 / (nodes * nodes) as f64
}

fn fewer_under_demand() -> Finding {
    let loads = [
        "light",
        "think:1000",
        "think:300",
        "think:100",
        "think:30",
        "heavy",
    ];
    let costs = loads.map(|load| Run::of("raymond", 46).load(load).messages());
    let text = loads.iter().zip(costs);
    let text: Vec<_> = text.map(|(load, cost)| format!("{load} {cost}")).collect();
    let nodes = 31;
    let star = |load| {
        saturated_run("raymond", nodes, "star:30")
            .load(load)
            .messages()
    };
    let [alone, saturated] = ["light", "heavy"].map(star);
    let rises = is_less(&alone, &saturated) || costs.windows(2).any(|w| is_less(&w[0], &w[1]));
    let falls = costs.is_sorted_by(|one, other| is_less(other, one));
    let found = format!(
        "a star of {nodes} nodes, constant delays, two delays inside: {alone} messages per entry one request at a time, where the count over all \
         pairs of nodes gives {:.3}, and {saturated} saturated, which is 4(N-1)/N: {}. On a radiating star of valency 3 with 46 nodes: {}",
        2.0 * mean_distance_of_star(nodes),
        if rises { "more" } else { "not more" },
        text.join(", ")
    );
    let evidence = examined_again(Kind::Raymond, "§5.1");
    // Intervals that overlap neither refute the claim nor agree with it.
    if !rises && !falls {
        return Finding::open(
            Verdict::NotDecided,
            found,
            "more entries, because intervals of neighbouring loads overlap",
            evidence,
        );
    }
    Finding::new(
        match rises {
            true => Verdict::Fails,
            false => Verdict::Withstood,
        },
        found,
        evidence,
    )
}
