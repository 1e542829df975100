//! What one request costs, from every node and with the token at every node.

use std::sync::Arc;

use soloist_algorithms::kind::Visitor;
use soloist_algorithms::naimi_trehel::NaimiTrehel;
use soloist_algorithms::{Algorithm, Choice, NodeId, Shape, VariantSet};

use crate::watch::{cost_after, cost_at_once};

/// The least and the most messages of a request alone, counted with equal delays.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Range {
    pub(crate) least: u64,
    pub(crate) most: u64,
}

struct Alone<'a> {
    nodes: usize,
    form: &'a str,
}

impl Visitor for Alone<'_> {
    type Output = Range;

    fn visit<A: Algorithm>(self) -> Range {
        let shape = match self.form {
            "" => A::Shape::default_for(self.nodes),
            form => A::Shape::parse(form, self.nodes).expect("a valid shape"),
        };
        let shape = Arc::new(shape);
        let places = || NodeId::all(self.nodes);
        let pairs = places().flat_map(|home| places().map(move |node| (home, node)));
        let costs = pairs.map(|(home, node)| {
            let cost = cost_at_once::<A>(&shape, VariantSet::default(), home, &[node]);
            cost.expect("the default rules serve every request")
        });
        let start = Range {
            least: u64::MAX,
            most: 0,
        };
        costs.fold(start, |range, cost| Range {
            least: range.least.min(cost),
            most: range.most.max(cost),
        })
    }
}

/// The costs of a request alone, from a fresh start. `form` is empty for the default shape.
pub(crate) fn alone(name: &str, nodes: usize, form: &str) -> Range {
    let choice = Choice::parse(name, "").expect("a known algorithm");
    choice.kind.visit(Alone { nodes, form })
}

/// The costs of a request alone in the best and the worst place known: for Raymond's algorithm also
/// on a line, for Naimi and Trehel's also after all nodes but one have requested at once, which
/// turns the tree into a path.
pub(crate) fn known(name: &str, nodes: usize) -> Range {
    let fresh = alone(name, nodes, "");
    let most = match name {
        "raymond" => alone(name, nodes, "line").most,
        "naimi-trehel" => {
            let shape = Arc::new(<NaimiTrehel as Algorithm>::Shape::default_for(nodes));
            let all: Vec<_> = NodeId::all(nodes).collect();
            let cost = cost_after::<NaimiTrehel>(&shape, all[0], &all[1..], all[1]);
            cost.expect("every request is served")
        }
        _ => fresh.most,
    };
    Range {
        most: fresh.most.max(most),
        ..fresh
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_places_are_found() {
        let range = |least, most| Range { least, most };
        assert_eq!(known("raymond", 10), range(0, 18));
        assert_eq!(known("naimi-trehel", 10), range(0, 9));
        assert_eq!(known("lamport", 10), range(27, 27));
        assert_eq!(alone("neamatollahi", 9, ""), range(7, 12));
    }
}
