//! Claims of Chaudhuri and Karaata 1998. Throughout, c is n^1/3, and c - 1 is the most steps along
//! an edge of the mesh.

mod correctness;
mod cost;

pub(super) use correctness::{queue_length, queue_outcomes};
pub(super) use cost::{bytes_of_a_message, costs_alone, most_alone};
use soloist_algorithms::chaudhuri_karaata::AS_PUBLISHED;
use soloist_algorithms::{Kind, VariantSet};

use super::{Claim, Finding};

pub(super) fn claims() -> Vec<Claim> {
    let claim = |section, claimed, examine: fn() -> Finding| Claim {
        paper: Kind::ChaudhuriKaraata,
        section,
        claimed,
        examine,
    };
    vec![
        claim(
            "Abstract",
            "the first algorithm that needs fewer than O(√n) messages",
            cost::first_below_the_root,
        ),
        claim(
            "§1",
            "Lamport needs 3(n-1) messages, Ricart-Agrawala 2(n-1), Carvalho-Roucairol 0 to 2(n-1), Suzuki-Kasami n",
            cost::others,
        ),
        claim(
            "§2",
            "13(c-1) links are enough for messages between all n nodes",
            cost::links,
        ),
        claim(
            "§2",
            "it works for any p x q x r mesh",
            correctness::any_mesh,
        ),
        claim(
            "§2.1, I1 and I2, Lemma 2",
            "there is never more than one green or yellow token, so at most one privileged plane",
            correctness::one_privileged_plane,
        ),
        claim(
            "§2.1, A2",
            "messages have to arrive in the order sent (an assumption)",
            correctness::order_needed,
        ),
        claim(
            "§2.1, Fig. 3",
            "a head's token goes from red to green, from green to yellow or red, from yellow to green",
            correctness::colours,
        ),
        claim(
            "Lemma 1",
            "a node that is inside is in the privileged plane",
            correctness::inside_the_privileged_plane,
        ),
        claim("Lemma 3", "mutual exclusion", correctness::mutual_exclusion),
        claim("Lemma 4", "no deadlock", correctness::no_deadlock),
        claim("Lemma 5", "no starvation", correctness::no_starvation),
        claim(
            "Theorem 1",
            "the algorithm is correct: Lemmas 3 to 5 together",
            correctness::correct,
        ),
        claim(
            "§4",
            "within the privileged plane at most 6(c-1) messages for an entry",
            cost::within_the_plane,
        ),
        claim(
            "§4",
            "to make another plane privileged takes at most 2(c-1) messages more",
            cost::between_planes,
        ),
        claim(
            "Theorem 2",
            "at most 8(c-1) messages for an entry",
            cost::worst_case,
        ),
        claim(
            "Theorem 3",
            "all c² nodes of a plane together need 3c²(c-1) messages within it",
            cost::whole_plane,
        ),
        claim(
            "Theorem 3",
            "under heavy demand (3c²(c-1) + 2(c-1))/c² messages for an entry, about 3(c-1)",
            cost::heavy_demand,
        ),
        claim(
            "Theorem 4 (i)",
            "a message has O(log n) bits: its type and a node's number",
            cost::message_length,
        ),
        claim(
            "Theorem 4 (ii)",
            "a queue has at most c(c+1) entries",
            correctness::queue_length,
        ),
        claim(
            "§1",
            "Helary et al. need n to 2e + n - 1 messages; Chaudhuri 3.5√n and about 4, or 3√n and √n",
            cost::not_at_hand,
        ),
        claim(
            "§5",
            "the algorithm is symmetrical: all processes are identical",
            cost::symmetrical,
        ),
        claim(
            "§5",
            "the algorithm exhibits fully distributed control",
            cost::distributed_control,
        ),
        claim(
            "§5",
            "it outperforms all existing algorithms, light (8c) and heavy (3c)",
            cost::outperforms,
        ),
    ]
}

fn as_published() -> VariantSet {
    VariantSet::default().with(AS_PUBLISHED)
}
