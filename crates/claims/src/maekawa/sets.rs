//! The sets of nodes whose permission a request needs.

use soloist_algorithms::Shape;
use soloist_algorithms::shape::Quorums;

use super::{NAME, ORDERS, plane};
use crate::Finding;
use crate::tools::{Run, finding, largest};

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

/// Parses the sets of a figure. This also checks (a) that every two sets intersect, and (b) that
/// each node is in its own.
fn sets_of(figure: &str) -> Result<Quorums, String> {
    let mut listing = String::new();
    for (node, set) in figure.split('/').enumerate() {
        let members = set.split(' ').map(|m| m.parse::<usize>());
        let members: Result<Vec<_>, _> = members.map(|m| m.map(|m| (m - 1).to_string())).collect();
        let members = members.map_err(|error| error.to_string())?;
        listing += &format!("{node}: {}\n", members.join(" "));
    }
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

pub(super) fn figure_1() -> Finding {
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
fn k_bound(nodes: usize) -> usize {
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
         average, {most:.2}√N at most; runs at N = 5, 20, 50 go well: {served}"
    );
    let run = Run::of(NAME, 50).entries(1000);
    finding(served && most < 2.0, found, run.command())
}
