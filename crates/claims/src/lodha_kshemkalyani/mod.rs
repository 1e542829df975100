//! Claims of Lodha and Kshemkalyani 2000.

mod cost;
mod fairness;
mod rules;
mod watch;

pub(super) use cost::costs_by_concurrency;

use soloist_algorithms::Kind;

use super::{Claim, Finding};

pub(super) fn claims() -> Vec<Claim> {
    vec![
        claim(
            "abstract, §5",
            "an access to the critical section takes between N-1 and 2(N-1) messages",
            cost::bounds,
        ),
        claim(
            "§1, §5",
            "the exact number is 2(N-1)-x, where x other requests are made concurrently",
            cost::short_formula,
        ),
        claim(
            "abstract, §1",
            "it introduces no overhead over Ricart and Agrawala's algorithm",
            cost::overhead,
        ),
        claim(
            "§1, §5",
            "it improves upon Ricart and Agrawala's algorithm, the best of the fair ones so far",
            cost::improves,
        ),
        claim(
            "§1",
            "only Lamport's and Ricart and Agrawala's algorithms are fair; Singhal's dynamic one is not",
            fairness::others_are_unfair,
        ),
        claim(
            "§1",
            "Singhal's dynamic algorithm needs N-1 to 3(N-1)/2 messages",
            fairness::singhal,
        ),
        claim(
            "§2.1",
            "unlike Ricart and Agrawala's, it assumes FIFO channels",
            rules::fifo,
        ),
        claim(
            "§2.2, Fig. 1",
            "Ricart and Agrawala's rules, as the figure reviews them, ensure mutual exclusion",
            rules::figure_1,
        ),
        claim(
            "§2.2, §1",
            "Ricart and Agrawala's algorithm takes 2(N-1) messages and Lamport's 3(N-1), always",
            cost::predecessors,
        ),
        claim(
            "§3.2, §3.3.1",
            "a node's queue LRQ holds its own request and concurrent ones only, so at most N",
            rules::queue,
        ),
        claim(
            "§3.4.1, Fig. 3",
            "three concurrent requests cost 8 messages, where Ricart and Agrawala's cost 12",
            rules::figure_3,
        ),
        claim(
            "§3.2",
            "a node that leaves knows of each other node that it waits, does not request, or requests with a lower priority",
            fairness::knows_when_leaving,
        ),
        claim(
            "§3.4.2, Fig. 5",
            "the four scenarios of two requests, concurrent or not, happen as told",
            fairness::figure_5,
        ),
        claim(
            "§3.4.2, Fig. 6",
            "a REPLY stands for the replies of all requests before the one it names",
            rules::figure_6,
        ),
        claim(
            "§3.4.2, Fig. 7",
            "a node may get more than one FLUSH for a request, and enters after the last",
            rules::figure_7,
        ),
        claim(
            "§4.1",
            "N-1 REQUESTs, a REPLY from each whose request is not concurrent, and a FLUSH if a concurrent request has a \
             lower priority",
            cost::exact_formula,
        ),
        claim(
            "§4.1",
            "with all N requests concurrent, N messages each, and N-1 for the last",
            cost::all_concurrent,
        ),
        claim(
            "§4.1",
            "with all requests one after the other, 2(N-1) messages each: the worst case",
            cost::one_after_the_other,
        ),
        claim("Theorem 1", "mutual exclusion", rules::mutual_exclusion),
        claim(
            "Theorem 1, Definition 7",
            "fairness: nodes enter in the order of their requests' priorities, no two of which are alike",
            rules::order,
        ),
        claim(
            "Theorem 2",
            "liveness: every request is served",
            rules::liveness,
        ),
        claim(
            "§5",
            "it can be improved: a node that leaves may answer only the first of the deferred requests, which takes care of the \
             rest: fewer messages, but larger",
            rules::one_reply,
        ),
        claim(
            "§5",
            "it can be improved: a node that will request again soon may let its next REQUEST answer the deferred ones",
            fairness::next_request_answers,
        ),
        claim(
            "§5",
            "it can be improved: the highest sequence number seen may go with all messages",
            rules::clock_everywhere,
        ),
    ]
}

fn claim(section: &'static str, claimed: &'static str, examine: fn() -> Finding) -> Claim {
    Claim {
        paper: Kind::LodhaKshemkalyani,
        section,
        claimed,
        examine,
    }
}
