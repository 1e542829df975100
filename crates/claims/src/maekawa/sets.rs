//! The sets of nodes whose permission a request needs.

use soloist_algorithms::shape::Quorums;
use soloist_algorithms::{Kind, Shape};

use super::{NAME, ORDERS, plane};
use crate::tools::{Run, examined_again, finding, largest};
use crate::{Finding, Verdict};

/// The sets of Fig. 1, in the order of their nodes. Nodes have the paper's numbers, which start at
/// 1.
const FIG_1: [&str; 4] = [
    "1 2/2 3/1 3",
    "1 2 3/2 4 6/3 5 6/1 4 5/2 5 7/1 6 7/3 4 7",
    "1 2 3 4/2 5 8 11/3 6 8 13/4 6 10 11/1 5 6 7/2 6 9 12/2 7 10 13/1 8 9 10/3 7 9 11/3 5 10 12/1 11 12 13/4 7 8 12/\
     4 5 9 13",
    "1 2 3 4 5/2 6 10 14 18/3 7 10 16 21/4 7 13 14 20/5 7 12 17 18/1 6 7 8 9/2 7 11 15 19/2 8 12 16 20/2 9 13 17 21/\
     1 10 11 12 13/3 6 11 17 20/3 9 12 14 19/3 8 13 15 18/1 14 15 16 17/4 6 12 15 21/4 9 11 16 18/4 8 10 17 19/\
     1 18 19 20 21/5 6 13 16 19/5 9 10 15 20/5 8 11 14 21",
];

/// The files that have the sets of Fig. 1 as listings.
const FILES: [&str; 4] = [
    "contrib/maekawa-1985/fig1a.txt",
    "contrib/maekawa-1985/fig1b.txt",
    "contrib/maekawa-1985/fig1c.txt",
    "contrib/maekawa-1985/fig1d.txt",
];

/// The sets of one of Figs. 1a to 1d, with nodes counted from 0, and the file that has them.
pub(super) fn listing(figure: usize) -> (&'static str, String) {
    (FILES[figure], listing_of(FIG_1[figure]))
}

/// The sets of Figs. 1a to 1d, each as its members' numbers in the paper.
pub(crate) fn sets_of_figure_1() -> [Vec<&'static str>; 4] {
    FIG_1.map(|figure| figure.split('/').collect())
}

fn listing_of(figure: &str) -> String {
    let set = |(node, set): (usize, &str)| {
        let members = set.split(' ').map(|member| {
            let member: usize = member.parse().expect("a node's number");
            (member - 1).to_string()
        });
        format!("{node}: {}\n", members.collect::<Vec<_>>().join(" "))
    };
    figure.split('/').enumerate().map(set).collect()
}

/// Parses the sets of a figure. This also checks (a) that every two sets intersect, and (b) that
/// each node is in its own.
fn sets_of(figure: &str) -> Result<Quorums, String> {
    let listing = listing_of(figure);
    let nodes = figure.split('/').count();
    Quorums::from_listing(&listing, nodes).map_err(|error| error.to_string())
}

/// Returns whether properties (c) and (d) hold, with D = K as in §3.
fn is_even(quorums: &Quorums, k: usize) -> bool {
    [
        quorums.k_min(),
        quorums.k_max(),
        quorums.load_min(),
        quorums.load_max(),
    ] == [k; 4]
}

pub(crate) fn figure_1() -> Finding {
    let even = FIG_1.iter().zip(2..).map(|(figure, k)| {
        let sets = sets_of(figure)?;
        Ok::<_, String>(is_even(&sets, k) && sets.nodes() == k * (k - 1) + 1)
    });
    let even: Result<Vec<bool>, String> = even.collect();
    let found = match &even {
        Ok(even) => format!(
            "N = 3, 7, 13, 21: every two sets meet, each node is in its own set; all have K members, each node is in K sets: \
             {} of 4",
            even.iter().filter(|even| **even).count()
        ),
        Err(refused) => refused.clone(),
    };
    let so = even.is_ok_and(|even| even.iter().all(|even| *even));
    finding(so, found, QUORUM_TESTS.to_owned())
}

const QUORUM_TESTS: &str = "cargo test -p soloist-algorithms --test quorums";

pub(super) fn planes_exist() -> Finding {
    let orders = [
        2, 3, 4, 5, 7, 8, 9, 11, 13, 16, 17, 19, 23, 25, 27, 29, 31, 32,
    ];
    let made = orders.iter().filter(|&&order| {
        let quorums = Quorums::default_for(plane(order));
        is_even(&quorums, order + 1)
    });
    let made = made.count();
    let found = format!(
        "built and verified for {made} of the {} prime powers K-1 = 2 to 32, N = 7 to {}",
        orders.len(),
        plane(32)
    );
    finding(made == orders.len(), found, QUORUM_TESTS.to_owned())
}

/// The smallest K that §3 allows: N <= K(K-1) + 1.
pub(crate) fn k_bound(nodes: usize) -> usize {
    (1..)
        .find(|k| k * (k - 1) + 1 >= nodes)
        .expect("squares grow")
}

pub(super) fn smallest_sets() -> Finding {
    let cyclic = |nodes| {
        Quorums::parse("cyclic", nodes)
            .expect("cyclic sets for any N")
            .k_max()
    };
    let sizes: Vec<_> = (1..=60)
        .map(|nodes| (nodes, cyclic(nodes), k_bound(nodes)))
        .collect();
    let below = sizes.iter().filter(|(_, k, bound)| k < bound).count();
    let met = sizes.iter().filter(|(_, k, bound)| k == bound).count();
    let exact = ORDERS
        .iter()
        .all(|&order| cyclic(plane(order)) == order + 1);
    let ratio = |order: usize| (order + 1) as f64 / (plane(order) as f64).sqrt();
    let found = format!(
        "of all cyclic systems for N up to 60 the best have the bound K(K-1) + 1 >= N {met} times, fewer {below} times; planes have it; \
         K/√N is {:.3} at N = 7, {:.3} at N = 57, {:.3} at N = 1057",
        ratio(2),
        ratio(7),
        ratio(32)
    );
    finding(below == 0 && exact, found, QUORUM_TESTS.to_owned())
}

pub(super) fn any_number_of_nodes() -> Finding {
    let ratio = |nodes: usize| {
        let quorums = Quorums::default_for(nodes);
        quorums.k_max() as f64 / (nodes as f64).sqrt()
    };
    let sizes = 20..=400;
    let ratios: Vec<f64> = sizes.clone().map(ratio).collect();
    let mean = ratios.iter().sum::<f64>() / ratios.len() as f64;
    let most = largest(ratios);
    let served = [5, 20, 50].iter().all(|&nodes| {
        let run = Run::of(NAME, nodes).entries(1000);
        run.report().is_well()
    });
    let found = format!(
        "the next larger plane with its points folded together, for every N from 20 to 400: the largest set has {mean:.2}√N members on \
         average, {most:.2}√N at most; runs at N = 5, 20, 50 end without a fault: {served}"
    );
    let run = Run::of(NAME, 50).entries(1000);
    finding(served && most < 2.0, found, run.command())
}

/// The properties (a) to (d) of a system of sets, and its K and D where (c) and (d) hold.
fn properties(sets: &[Vec<usize>]) -> ([bool; 4], Option<usize>, Option<usize>) {
    let nodes = sets.len();
    let meets = |one: &Vec<usize>, other: &Vec<usize>| one.iter().any(|m| other.contains(m));
    let loads: Vec<usize> = (0..nodes)
        .map(|node| sets.iter().filter(|set| set.contains(&node)).count())
        .collect();
    let k = sets.iter().all(|set| set.len() == sets[0].len());
    let d = loads.iter().all(|load| *load == loads[0]);
    let held = [
        sets.iter()
            .all(|one| sets.iter().all(|other| meets(one, other))),
        sets.iter()
            .enumerate()
            .all(|(node, set)| set.contains(&node)),
        k,
        d,
    ];
    (held, k.then(|| sets[0].len()), d.then(|| loads[0]))
}

/// Text for the properties of a system.
fn properties_text((held, k, d): ([bool; 4], Option<usize>, Option<usize>)) -> String {
    let names = ["(a)", "(b)", "(c)", "(d)"];
    let held: Vec<_> = names
        .iter()
        .zip(held)
        .filter(|(_, h)| *h)
        .map(|(n, _)| *n)
        .collect();
    let number =
        |name: &str, n: Option<usize>| n.map_or(String::new(), |n| format!(", {name} = {n}"));
    format!("{}{}{}", held.join(" "), number("K", k), number("D", d))
}

/// Nodes of the other systems that are examined.
const OTHERS: usize = 7;

pub(super) fn all_or_one() -> Finding {
    let all: Vec<Vec<usize>> = vec![(0..OTHERS).collect(); OTHERS];
    let coordinator = vec![vec![0]; OTHERS];
    let [all, coordinator] = [&all, &coordinator].map(|sets| properties(sets));
    let so = all == ([true; 4], Some(OTHERS), Some(OTHERS))
        && coordinator == ([true, false, true, false], Some(1), None);
    let found = format!(
        "counted for N = {OTHERS}: all nodes {}; one coordinator {}",
        properties_text(all),
        properties_text(coordinator)
    );
    finding(so, found, examined_again(Kind::Maekawa, "§2"))
}

pub(super) fn majorities() -> Finding {
    let majority = |node: usize| {
        (0..=OTHERS / 2)
            .map(|step| (node + step) % OTHERS)
            .collect()
    };
    let majority: Vec<Vec<usize>> = (0..OTHERS).map(majority).collect();
    let majority = properties(&majority);
    assert_eq!(majority.0, [true; 4], "majorities have all properties");
    let found = format!(
        "if a set is whom a node must have permission from, majorities of N = {OTHERS} have {}, as §1 of the paper counts (N/2). If it is whom a \
         node may ask, that is all nodes, and K = D = N",
        properties_text(majority)
    );
    Finding::open(
        Verdict::DependsOnReading,
        found,
        "whether a set holds the nodes that a request is sent to, or those whose votes are enough",
        examined_again(Kind::Maekawa, "§2"),
    )
}

/// The sets of nodes with these numbers of votes: each node collects votes from itself on, in the
/// order of the nodes, until it has a majority of all votes.
fn weighted(votes: &[usize]) -> Vec<Vec<usize>> {
    let (nodes, total) = (votes.len(), votes.iter().sum::<usize>());
    let set = |node: usize| {
        let mut collected = 0;
        let order = (node..node + nodes).map(|place| place % nodes);
        let missing = order.take_while(|member| {
            let is_missing = 2 * collected <= total;
            collected += votes[*member];
            is_missing
        });
        missing.collect()
    };
    (0..nodes).map(set).collect()
}

/// All ways to give each of these nodes 1 to 3 votes, but not all the same number.
fn unequal_votes(nodes: u32) -> impl Iterator<Item = Vec<usize>> {
    let all = (0..3_usize.pow(nodes)).map(move |code| {
        let votes = (0..nodes).map(|node| 1 + code / 3_usize.pow(node) % 3);
        votes.collect::<Vec<_>>()
    });
    all.filter(|votes| votes.iter().any(|vote| *vote != votes[0]))
}

pub(super) fn weighted_votes() -> Finding {
    let counts = [4, 5, 6].map(|nodes| {
        let systems = unequal_votes(nodes).map(|votes| properties(&weighted(&votes)).0);
        let systems: Vec<_> = systems.collect();
        let count = |is_so: fn(&[bool; 4]) -> bool| systems.iter().filter(|s| is_so(s)).count();
        (
            systems.len(),
            count(|[a, ..]| *a),
            count(|[_, _, c, d]| !c && !d),
        )
    });
    let text = counts.map(|(all, meet, violate)| {
        assert_eq!(meet, all, "two majorities meet");
        format!("{violate} of {all}")
    });
    let so = counts.iter().all(|(all, _, violate)| 2 * violate > *all);
    let found = format!(
        "\"usually\" is taken for most: of all ways to give 4, 5 and 6 nodes one to three votes each, not all the same, {} violate (c) and (d), and \
         all have (a). Each node collects votes from itself on, in the order of the nodes, until it has a majority; the paper does not say how a \
         set is chosen",
        text.join(", ")
    );
    Finding::new(
        match so {
            true => Verdict::Withstood,
            false => Verdict::Fails,
        },
        found,
        examined_again(Kind::Maekawa, "§2"),
    )
}

/// Shown by counting; the planes reach the bound.
pub(super) fn counting() -> Finding {
    let reached = ORDERS.iter().filter(|&&order| {
        let quorums = Quorums::default_for(plane(order));
        let [k, d] = [quorums.k_max(), quorums.load_max()];
        quorums.nodes() == (d - 1) * k + 1
    });
    let reached = reached.count();
    let found = format!(
        "by counting: each of the K members of a set is in D-1 other sets, and every other set has one of them, so there are at most K(D-1) \
         others; and N sets of K members are N nodes in D sets each, so K = D. Planes of order 2, 3, 5, 7 reach the bound: {reached} of 4"
    );
    finding(reached == 4, found, examined_again(Kind::Maekawa, "§3"))
}

pub(super) fn the_rest() -> Finding {
    Finding::open(
        Verdict::NotDecided,
        "not examined: our copy of the paper ends in §6.2. Sets for any N are made here by other means: see the row on other N".to_owned(),
        "the text of these sections",
        examined_again(Kind::Maekawa, "§7 and after"),
    )
}
