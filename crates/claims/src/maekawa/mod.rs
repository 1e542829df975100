//! Claims of Maekawa 1985. The text available to us ends within section 6.2.

mod bound;
mod correctness;
mod cost;
mod sets;

pub(super) use bound::{worst_on_figure_1c, worst_on_figure_1d, worst_per_root};
pub(super) use sets::{figure_1, k_bound, sets_of_figure_1};
use soloist_algorithms::Kind;

use super::{Claim, Finding};

const NAME: &str = "maekawa";

pub(super) fn claims() -> Vec<Claim> {
    let claim = |section, claimed, examine: fn() -> Finding| Claim {
        paper: Kind::Maekawa,
        section,
        claimed,
        examine,
    };
    vec![
        claim(
            "Abstract",
            "c√N messages for an entry, c between 3 and 5",
            bound::between_three_and_five,
        ),
        claim(
            "Abstract",
            "the algorithm is symmetric and allows fully parallel operation",
            cost::symmetric,
        ),
        claim(
            "§1",
            "3√N messages for a request alone: √N each to request, to permit and to release",
            cost::three_roots,
        ),
        claim(
            "§1",
            "3√N is optimal for algorithms in which all nodes work equally",
            cost::optimal,
        ),
        claim(
            "§1",
            "messages between two nodes have to arrive in the order sent (an assumption)",
            correctness::order_needed,
        ),
        claim(
            "§1",
            "fewer messages than Ricart-Agrawala's 2(N-1), which sends a request to all nodes",
            cost::fewer_than_ricart_agrawala,
        ),
        claim(
            "§1",
            "majority voting needs N/2 permissions at best, so √N are fewer",
            cost::fewer_than_a_majority,
        ),
        claim(
            "§2 (c)",
            "each node sends and receives the same number of messages to enter",
            cost::equal_cost,
        ),
        claim(
            "§2 (d)",
            "each node bears the same responsibility, unlike in a centralized algorithm",
            cost::equal_responsibility,
        ),
        claim(
            "§2",
            "Ricart-Agrawala has (a) to (d) with K = D = N; a coordinator has (a) and (c) with K = 1, and not (d)",
            sets::all_or_one,
        ),
        claim(
            "§2",
            "majority voting can have (a) to (d), with K = D = N",
            sets::majorities,
        ),
        claim(
            "§2",
            "weighted votes have (a) but usually violate (c) and (d)",
            sets::weighted_votes,
        ),
        claim(
            "§3",
            "at most (D-1)K + 1 sets have (a), (b) and (d), and K = D",
            sets::counting,
        ),
        claim(
            "§3, Fig. 1",
            "the sets shown for K = 2 to 5 have the properties (a) to (d)",
            sets::figure_1,
        ),
        claim(
            "§3",
            "N = K(K-1) + 1 sets with all properties exist if K-1 is a power of a prime",
            sets::planes_exist,
        ),
        claim(
            "§3",
            "no smaller K is possible for a given N with all properties; K is √N with a fractional error",
            sets::smallest_sets,
        ),
        claim(
            "§3",
            "for other N, sets are made by the same method with (c) and (d) relaxed to some extent",
            sets::any_number_of_nodes,
        ),
        claim(
            "§5, Fig. 2",
            "nodes 7, 8 and 11 lock each other in a circle; a RELINQUISH opens it, and 7, 8, 11 enter in this order",
            correctness::circular_locking,
        ),
        claim(
            "§5",
            "a late request of node 3 locks node 13 before node 7, and node 3 succeeds",
            correctness::late_request,
        ),
        claim("§6.1", "mutual exclusion", correctness::mutual_exclusion),
        claim("§6.2", "no deadlock", correctness::no_deadlock),
        claim("§6.3", "no starvation", correctness::no_starvation),
        claim(
            "§7 and after",
            "how sets are made for any N, and all other claims of these sections",
            sets::the_rest,
        ),
    ]
}

/// Orders of the projective planes that are measured: N = q² + q + 1, K = q + 1.
const ORDERS: [usize; 4] = [2, 3, 5, 7];

pub(super) fn plane(order: usize) -> usize {
    order * order + order + 1
}
