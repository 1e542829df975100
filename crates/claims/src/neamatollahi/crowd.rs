//! Medium demand: √N nodes request at once.

use std::sync::Arc;

use soloist_algorithms::kind::Visitor;
use soloist_algorithms::neamatollahi::Neamatollahi;
use soloist_algorithms::{Algorithm, Choice, Kind, NodeId, Shape, VariantSet};

use super::{NAME, SIDES, listed, square};
use crate::Finding;
use crate::tools::{Run, examined_again, finding, largest};
use crate::watch::{cost_at_once, cost_with_fast_token};

/// The fewest and the most messages per entry when each of these sets of nodes requests at once,
/// for each position of the token.
fn crowds(side: usize, sets: &[Vec<NodeId>]) -> (f64, f64) {
    let torus = square(side);
    ends(side, sets, |set, home| {
        cost_at_once::<Neamatollahi>(&torus, VariantSet::default(), home, set)
    })
}

/// The same, if the token is faster than all alerts.
fn crowds_with_fast_token(side: usize, sets: &[Vec<NodeId>]) -> (f64, f64) {
    let torus = square(side);
    ends(side, sets, |set, home| {
        cost_with_fast_token::<Neamatollahi>(&torus, home, set)
    })
}

fn ends(
    side: usize,
    sets: &[Vec<NodeId>],
    cost: impl Fn(&[NodeId], NodeId) -> Option<u64>,
) -> (f64, f64) {
    let cost = |set: &[NodeId], home| {
        let cost = cost(set, home).expect("the repaired rules serve every request");
        cost as f64 / set.len() as f64
    };
    let cost = &cost;
    let costs: Vec<f64> = sets
        .iter()
        .flat_map(|set| NodeId::all(side * side).map(move |home| cost(set, home)))
        .collect();
    (-largest(costs.iter().map(|cost| -cost)), largest(costs))
}

/// The fewest and the most messages per entry when all nodes of a row request at once.
pub(crate) fn crowd_in_a_row(side: usize) -> (f64, f64) {
    crowds(side, &rows(side))
}

/// The fewest and the most messages per entry when one node of each row requests at once.
pub(crate) fn crowd_of_all_rows(side: usize) -> (f64, f64) {
    crowds(side, &one_of_each_row(side))
}

/// The most messages per entry when one node of each row requests at once and the token is faster
/// than all alerts.
pub(crate) fn most_of_all_rows_with_fast_token(side: usize) -> f64 {
    crowds_with_fast_token(side, &one_of_each_row(side)).1
}

fn rows(side: usize) -> Vec<Vec<NodeId>> {
    let torus = square(side);
    let row = |row| (0..side).map(|column| torus.at(row, column)).collect();
    (0..side).map(row).collect()
}

/// Sets with one node of each row: columns, and diagonals of every slope.
fn one_of_each_row(side: usize) -> Vec<Vec<NodeId>> {
    let torus = square(side);
    let line = |first: usize, slope: usize| {
        let place = |row| torus.at(row, (first + slope * row) % side);
        (0..side).map(place).collect()
    };
    let slopes = |first| (0..side).map(move |slope| (first, slope));
    let lines = (0..side).flat_map(slopes);
    lines.map(|(first, slope)| line(first, slope)).collect()
}

/// The fewest and the most messages per entry when √N nodes request at once, for N = 9, 25 and 64.
fn medium(sets: fn(usize) -> Vec<Vec<NodeId>>) -> ([(f64, f64); 3], String) {
    let costs = SIDES.map(|side| crowds(side, &sets(side)));
    let text = format!(
        "N = 9, 25, 64, the token at every node, equal delays: {} messages each",
        costs
            .map(|(least, most)| format!("{least:.2} to {most:.2}"))
            .join(", "),
    );
    (costs, text)
}

fn is_within(costs: [(f64, f64); 3], bounds: [f64; 3]) -> bool {
    costs
        .iter()
        .zip(bounds)
        .all(|((_, most), bound)| *most <= bound)
}

pub(super) fn medium_best() -> Finding {
    let (costs, text) = medium(rows);
    let bounds = SIDES.map(|side| (3 * side + 1) as f64 / side as f64);
    let fast = SIDES.map(|side| crowds_with_fast_token(side, &rows(side)));
    let found = format!(
        "{text}, claimed at most {}; if the token is faster than all alerts, at most {}, because each node of the row has its own request",
        listed(bounds),
        mosts(fast)
    );
    finding(
        is_within(costs, bounds) && is_within(fast, bounds),
        found,
        Run::of(NAME, 25).load("burst").command(),
    )
}

pub(super) fn medium_counted() -> Finding {
    let (costs, text) = medium(one_of_each_row);
    let counted = SIDES.map(|side| (2 * side * side + side + 1) as f64 / side as f64);
    let excess = largest(
        costs
            .iter()
            .zip(counted)
            .map(|((_, most), counted)| most - counted),
    );
    let found = format!(
        "{text}, claimed {}: up to {excess:.3} too few, because the token may pass a row before its alert has come round",
        listed(counted)
    );
    finding(
        is_within(costs, counted),
        found,
        examined_again(Kind::Neamatollahi, "§5.3"),
    )
}

pub(super) fn medium_worst() -> Finding {
    let (costs, text) = medium(one_of_each_row);
    let bounds = SIDES.map(|side| 3.0 * side as f64);
    let fast = SIDES.map(|side| crowds_with_fast_token(side, &one_of_each_row(side)));
    let found = format!(
        "{text}, claimed at most {}. But §2 allows any delays: if the token is faster than all alerts, at most {}",
        listed(bounds),
        mosts(fast)
    );
    finding(
        is_within(costs, bounds) && is_within(fast, bounds),
        found,
        examined_again(Kind::Neamatollahi, "§5.3"),
    )
}

pub(super) fn medium_range() -> Finding {
    let (in_a_row, _) = medium(rows);
    let least = -largest(in_a_row.iter().map(|(least, _)| -least));
    let (equal, _) = medium(one_of_each_row);
    let fast = SIDES.map(|side| crowds_with_fast_token(side, &one_of_each_row(side)));
    let bounds = SIDES.map(|side| 3.0 * side as f64);
    let found = format!(
        "N = 9, 25, 64: from {least:.2} messages each, all in one row, to {} with equal delays and {} with a token that is faster than all alerts, \
         one in each row; 3√N is {}",
        mosts(equal),
        mosts(fast),
        listed(bounds)
    );
    finding(
        least >= 3.0 && is_within(equal, bounds) && is_within(fast, bounds),
        found,
        examined_again(Kind::Neamatollahi, "§1.2"),
    )
}

fn mosts(costs: [(f64, f64); 3]) -> String {
    costs.map(|(_, most)| format!("{most:.2}")).join(", ")
}

/// Messages per entry when these nodes request at once, on average over the token's start.
struct Crowd<'a> {
    nodes: usize,
    sets: &'a [Vec<NodeId>],
}

impl Visitor for Crowd<'_> {
    type Output = f64;

    fn visit<A: Algorithm>(self) -> f64 {
        let shape = Arc::new(A::Shape::default_for(self.nodes));
        let (mut messages, mut entries) = (0, 0);
        for set in self.sets {
            for home in NodeId::all(self.nodes).step_by(5) {
                let cost = cost_at_once::<A>(&shape, VariantSet::default(), home, set);
                messages += cost.expect("every request is served");
                entries += set.len();
            }
        }
        messages as f64 / entries as f64
    }
}

pub(super) fn medium_rivals() -> Finding {
    let side = 8;
    let cost = |name: &str, sets: &[Vec<NodeId>]| {
        let kind = Choice::parse(name, "").expect("a known algorithm").kind;
        let nodes = side * side;
        kind.visit(Crowd { nodes, sets })
    };
    let kinds_of_crowd = [rows(side), one_of_each_row(side)];
    let both = |name: &str| [0, 1].map(|kind| cost(name, &kinds_of_crowd[kind]));
    let own = both(NAME);
    let rivals = ["lamport", "ricart-agrawala", "suzuki-kasami", "le-lann"];
    let costs = rivals.map(|name| (name, both(name)));
    let so = costs
        .iter()
        .all(|(_, cost)| own[0] < cost[0] && own[1] < cost[1]);
    let pair = |cost: [f64; 2]| format!("{:.1} and {:.1}", cost[0], cost[1]);
    let found = format!(
        "N = 64, eight at once, in one row and one of each row, equal delays: {} messages each; {}",
        pair(own),
        costs
            .map(|(name, cost)| format!("{name} {}", pair(cost)))
            .join(", ")
    );
    finding(so, found, examined_again(Kind::Neamatollahi, "§5.3"))
}
