use soloist_algorithms::lodha_kshemkalyani::{
    AS_PUBLISHED, CLOCK_EVERYWHERE, LATE_REPLY, LodhaKshemkalyani, LodhaKshemkalyaniMessage,
    ONE_REPLY,
};
use soloist_algorithms::shape::Complete;
use soloist_algorithms::{Channels, NodeId, RequestId, Start, Variant, VariantSet};
use soloist_lab::search::{Bounds, Limits, Outcome, search};
use soloist_lab::world::Fault;

use crate::watched::{Ordered, Seen, watch_all, watch_random};
use crate::{deadlocks, holds, holds_from_any_start};

type Fair = LodhaKshemkalyani;

fn with(requests: &[u8], variants: &[Variant]) -> Bounds<Complete> {
    let none = VariantSet::default();
    Bounds {
        variants: variants
            .iter()
            .fold(none, |set, variant| set.with(*variant)),
        ..Bounds::of::<Fair>(requests)
    }
}

impl Ordered for Fair {
    fn own(&self) -> RequestId {
        self.my_request()
    }

    fn made_by(_: NodeId, message: &LodhaKshemkalyaniMessage) -> Option<RequestId> {
        match message {
            LodhaKshemkalyaniMessage::Request { request, .. } => Some(*request),
            _ => None,
        }
    }
}

#[test]
fn holds_alone_in_pairs_and_among_three() {
    holds::<Fair>(&Bounds::of::<Fair>(&[3]));
    holds::<Fair>(&Bounds::of::<Fair>(&[3, 3]));
    holds::<Fair>(&Bounds::of::<Fair>(&[2, 2, 2]));
}

#[test]
fn holds_with_an_idle_fourth() {
    holds::<Fair>(&Bounds::of::<Fair>(&[1, 1, 1, 0]));
}

#[test]
fn holds_for_every_node_that_starts_inside() {
    holds_from_any_start::<Fair>(&[2]);
    holds_from_any_start::<Fair>(&[2, 2]);
    holds_from_any_start::<Fair>(&[2, 1, 1]);
}

/// The second improvement of §5, where nodes know whether they will request again.
fn foreseeing(requests: &[u8], variants: &[Variant]) -> Bounds<Complete> {
    let mut bounds = with(requests, variants);
    bounds.limits.known_requests = true;
    bounds
}

#[test]
fn holds_with_late_replies_if_nodes_know_their_requests() {
    holds::<Fair>(&foreseeing(&[3, 3], &[LATE_REPLY]));
    holds::<Fair>(&foreseeing(&[2, 2, 1], &[LATE_REPLY]));
    holds::<Fair>(&foreseeing(&[2, 2], &[LATE_REPLY, CLOCK_EVERYWHERE]));
}

/// A node that believes that it will request again, and does not, leaves the other waiting.
#[test]
fn late_replies_deadlock_if_the_next_request_never_comes() {
    deadlocks(search::<Fair>(&with(&[1, 1], &[LATE_REPLY])));
    holds::<Fair>(&foreseeing(&[1, 1], &[LATE_REPLY]));
}

/// §5, the third improvement.
#[test]
fn holds_with_the_clock_on_all_messages() {
    holds::<Fair>(&with(&[2, 2, 2], &[CLOCK_EVERYWHERE]));
}

/// §5, the first improvement.
#[test]
fn holds_with_one_reply_at_an_exit() {
    holds::<Fair>(&with(&[2, 2, 2], &[ONE_REPLY]));
    holds::<Fair>(&with(&[1, 1, 1, 0], &[ONE_REPLY]));
    for node in NodeId::all(3) {
        holds::<Fair>(&Bounds {
            start: Start::inside(node),
            ..with(&[2, 1, 1], &[ONE_REPLY, CLOCK_EVERYWHERE])
        });
    }
}

/// §2.1 assumes FIFO channels.
#[test]
fn fifo_is_necessary() {
    let outcome = search::<Fair>(&Bounds {
        limits: Limits::new(Channels::Any),
        ..Bounds::of::<Fair>(&[1, 1])
    });
    assert!(matches!(outcome, Outcome::Broken { .. }), "{outcome:#?}");
}

/// Fig. 2 misses that a FLUSH may arrive before a REQUEST that it makes obsolete.
#[test]
fn as_published_deadlocks_with_one_request_each() {
    let outcome = search::<Fair>(&with(&[1, 1, 1], &[AS_PUBLISHED]));
    let trace = deadlocks(outcome);
    let place = |step: &str| trace.iter().position(|known| known == step);
    assert!(
        place("deliver 1 2 FLUSH (1,1)") < place("deliver 0 2 REQUEST (1,0)"),
        "{trace:#?}"
    );
}

/// Fig. 2, RcvFlush step 1.
#[test]
fn as_published_lets_two_inside_with_two_requests_each() {
    let outcome = search::<Fair>(&with(&[2, 2, 2], &[AS_PUBLISHED]));
    let Outcome::Broken { fault, .. } = outcome else {
        panic!("{outcome:#?}");
    };
    assert!(matches!(fault, Fault::TwoInside { .. }), "{fault}");
}

/// With the rules as printed, five requests only deadlock.
#[test]
fn as_published_needs_six_requests_to_let_two_inside() {
    for requests in [[2, 2, 1], [2, 1, 2], [1, 2, 2]] {
        let outcome = search::<Fair>(&with(&requests, &[AS_PUBLISHED]));
        deadlocks(outcome);
    }
}

/// Theorem 1: entries follow the order of request ids (the observer rejects any other). §4.1: the
/// cost of each request.
#[test]
fn entries_are_in_order_and_cost_what_section_4_1_says() {
    watch_all::<Fair>(&Bounds::of::<Fair>(&[3, 3]), |seen| {
        costs_as_in_section_4_1(2, seen)
    });
    watch_all::<Fair>(&Bounds::of::<Fair>(&[2, 2, 2]), |seen| {
        costs_as_in_section_4_1(3, seen)
    });
}

#[test]
fn entries_are_in_order_and_cost_what_section_4_1_says_in_random_runs() {
    for seed in 0..300 {
        let nodes = 2 + seed as usize % 8;
        let seen = watch_random::<Fair>(&Bounds::of::<Fair>(&vec![4; nodes]), seed);
        costs_as_in_section_4_1(nodes as u32, &seen);
    }
}

/// §5, first improvement: fewer REPLYs, and never more messages in total.
#[test]
fn entries_are_in_order_and_cost_no_more_with_one_reply() {
    watch_all::<Fair>(&with(&[2, 2, 1], &[ONE_REPLY]), |_| {});
    let mut saved = 0;
    for seed in 0..300 {
        let nodes = 2 + seed as usize % 8;
        let seen = watch_random::<Fair>(&with(&vec![4; nodes], &[ONE_REPLY]), seed);
        let costs: u32 = seen.costs.values().flatten().sum();
        let requests = seen.costs.keys();
        let expected: u32 = requests
            .flat_map(|&r| expected(nodes as u32, &seen, r))
            .sum();
        assert!(costs <= expected, "seed {seed}: {costs} > {expected}");
        saved += expected - costs;
    }
    assert!(saved > 0, "one reply instead of several saves nothing");
}

fn costs_as_in_section_4_1(nodes: u32, seen: &Seen) {
    for (&request, &cost) in &seen.costs {
        assert_eq!(cost, expected(nodes, seen, request), "{request}");
    }
}

/// The expected numbers of REQUESTs, REPLYs and FLUSHes for one request.
fn expected(nodes: u32, seen: &Seen, request: RequestId) -> [u32; 3] {
    let concurrent = seen.concurrent(request).count() as u32;
    let flushes = seen.concurrent(request).any(|other| other > request);
    [nodes - 1, nodes - 1 - concurrent, u32::from(flushes)]
}
