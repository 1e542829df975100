//! Claims of Neamatollahi et al. 2017.

mod correctness;
mod cost;
mod crowd;
mod table_1;

pub(super) use correctness::as_told;
pub(super) use cost::{alone, most_with_fast_token};
pub(super) use crowd::{crowd_in_a_row, crowd_of_all_rows, most_of_all_rows_with_fast_token};

use std::sync::Arc;

use soloist_algorithms::shape::Torus;
use soloist_algorithms::{Kind, Shape};

use super::{Claim, Finding};

const NAME: &str = "neamatollahi";

pub(super) fn claims() -> Vec<Claim> {
    let claim = |section, claimed, examine: fn() -> Finding| Claim {
        paper: Kind::Neamatollahi,
        section,
        claimed,
        examine,
    };
    vec![
        claim(
            "Abstract, §6",
            "a requester waits less than on a token ring, and the more so the more nodes there are",
            cost::waits_less_than_on_a_ring,
        ),
        claim(
            "§2",
            "messages may overtake each other",
            correctness::in_any_order,
        ),
        claim(
            "§3",
            "an idle token goes down each column back to where it began, then one to the right, through all columns",
            correctness::idle_round,
        ),
        claim(
            "§3.1, PCL_1",
            "a node's queue has at most two requests",
            correctness::queue_of_two,
        ),
        claim(
            "§3.1, PCL_1 and PCL_2",
            "with all nodes requesting there is at most one REQUEST message for an entry",
            cost::one_request_each,
        ),
        claim(
            "§3.1, PCL_3",
            "changing the column gives all nodes about the same work: under heavy demand",
            cost::equal_work_heavy,
        ),
        claim(
            "§3.1, PCL_3",
            "changing the column gives all nodes about the same work: one request at a time",
            cost::equal_work_light,
        ),
        claim(
            "§3.1, Fig. 1",
            "a request goes round its row; the token meets the row, goes round it to the right, and continues down from where it met it",
            correctness::figure_1,
        ),
        claim(
            "§3.4, Fig. 3",
            "the walk-through of 25 nodes happens as told",
            correctness::walk_through,
        ),
        claim(
            "§4.1",
            "there is exactly one token at any time",
            correctness::one_token,
        ),
        claim("Theorem 1", "mutual exclusion", correctness::safety),
        claim(
            "Theorem 2",
            "no deadlock: every request can be answered",
            correctness::no_deadlock,
        ),
        claim(
            "Theorem 2",
            "no starvation: a row's new requests do not keep the token from others",
            correctness::no_starvation,
        ),
        claim(
            "§5.1",
            "one request at a time takes 2√N + 1 to 3√N + 1 messages",
            cost::light_demand,
        ),
        claim(
            "§5.1",
            "that is fewer than Lamport, Maekawa, Ricart-Agrawala, Suzuki-Kasami, Naimi-Trehel, Le Lann and Raymond need",
            cost::light_rivals,
        ),
        claim(
            "§5.2",
            "with all nodes requesting all the time at most (2N + √N + 1)/N messages for an entry, below 3",
            cost::heavy_demand,
        ),
        claim(
            "§5.2",
            "that is far fewer than Lamport, Maekawa, Ricart-Agrawala, Suzuki-Kasami, Naimi-Trehel and Raymond need",
            cost::heavy_rivals,
        ),
        claim(
            "§5.3",
            "√N requests at once in one row take about 3 messages each, (3√N + 1)/√N at most",
            crowd::medium_best,
        ),
        claim(
            "§5.3",
            "√N requests at once in different rows take (2N + √N + 1)/√N messages each",
            crowd::medium_counted,
        ),
        claim(
            "§5.3",
            "√N requests at once in different rows take at most 3√N messages each",
            crowd::medium_worst,
        ),
        claim(
            "§5.3",
            "that is fewer than Lamport, Ricart-Agrawala, Suzuki-Kasami and Le Lann need",
            crowd::medium_rivals,
        ),
        claim(
            "§1.2",
            "3 to 3√N messages under medium demand, as in §5.3",
            crowd::medium_range,
        ),
        claim(
            "§2",
            "a process knows only its neighbours to the right and below",
            table_1::two_neighbours,
        ),
        claim(
            "Table 1",
            "its own row: worst case 3(√N+1), where §5.1 has 3√N+1; best case 3",
            table_1::own_row,
        ),
        claim(
            "Table 1",
            "its own cell for light demand: 2(√N+1) to 3(√N+1), where §5.1 has 2√N+1 to 3√N+1",
            table_1::own_light_cell,
        ),
        claim(
            "Table 1",
            "Le Lann: worst case N, average N/2, best case and heavy demand 1",
            table_1::le_lann,
        ),
        claim(
            "Table 1",
            "Suzuki-Kasami: N in every case",
            table_1::suzuki_kasami,
        ),
        claim(
            "Table 1",
            "Raymond: worst case 2(N-1), best case 2, heavy demand 4",
            table_1::raymond,
        ),
        claim(
            "Table 1",
            "Naimi-Trehel: worst case N, best case 2",
            table_1::naimi_trehel,
        ),
        claim(
            "Table 1",
            "Lamport 3(N-1), Ricart-Agrawala 2(N-1), in every case",
            table_1::permissions,
        ),
        claim(
            "Table 1",
            "Maekawa: 5(√N-1) in the worst case and under heavy demand, 3(√N-1) at best",
            table_1::maekawa,
        ),
        claim(
            "Table 1",
            "Raymond's and Naimi-Trehel's average and light cases are O(log N)",
            table_1::orders,
        ),
        claim(
            "Table 1",
            "average waiting times: Suzuki-Kasami, Lamport, Ricart-Agrawala and Maekawa O(1), Le Lann, Raymond and Naimi-Trehel O(N)",
            table_1::waits,
        ),
        claim(
            "Table 1",
            "Razzaque et al. N, and O(N) waiting time; Paydar et al. 4√N and 1; Taheri et al. 2√N and √N, and O(√N) waiting time",
            table_1::not_at_hand,
        ),
        claim(
            "Table 1",
            "the average waiting time is O(√N) (taken for one request at a time; with all nodes requesting it cannot be)",
            cost::waiting_time,
        ),
    ]
}

/// Sides of the tori that are measured: N = 9, 25 and 64.
const SIDES: [usize; 3] = [3, 5, 8];

fn listed(values: [f64; 3]) -> String {
    values.map(|value| format!("{value:.3}")).join(", ")
}

fn square(side: usize) -> Arc<Torus> {
    Arc::new(Torus::default_for(side * side))
}
