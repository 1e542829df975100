//! §1 on the fairness of others, §3.2, Fig. 5, and the second improvement of §5.

use soloist_algorithms::carvalho_roucairol::{CarvalhoRoucairol, STAIRCASE};
use soloist_algorithms::lamport::Lamport;
use soloist_algorithms::lodha_kshemkalyani::{AS_PUBLISHED, LATE_REPLY, LodhaKshemkalyani};
use soloist_algorithms::ricart_agrawala::RicartAgrawala;
use soloist_algorithms::shape::Complete;
use soloist_algorithms::{Algorithm, NodeId, Phase, RequestId, Snapshot, Variant, VariantSet};
use soloist_lab::search::{Bounds, always};

use crate::tools::{Run, Search, Searched, finding, is_replayed, scenario};
use crate::{Finding, Verdict};

/// Runs in which a later request enters first.
const OUT_OF_ORDER: [&str; 2] = [
    include_str!("../../scenarios/singhal-dynamic-out-of-order.txt"),
    include_str!("../../scenarios/carvalho-roucairol-out-of-order.txt"),
];

const FIGURE_5: [&str; 4] = [
    include_str!("../../scenarios/lodha-kshemkalyani-fig5-scenario1.txt"),
    include_str!("../../scenarios/lodha-kshemkalyani-fig5-scenario2a.txt"),
    include_str!("../../scenarios/lodha-kshemkalyani-fig5-scenario2b.txt"),
    include_str!("../../scenarios/lodha-kshemkalyani-fig5-scenario2c.txt"),
];

/// Whether node 0 enters with a later number than the one that node 1 waits with.
fn enters_out_of_order(text: &str) -> bool {
    let number = |node: &str, phase: &str| {
        let start = format!("{node}: {phase} own=");
        let line = text.lines().find_map(|line| line.strip_prefix(&start))?;
        line.split(' ').next()?.parse::<u64>().ok()
    };
    let (inside, waiting) = (number("0", "inside"), number("1", "waiting"));
    is_replayed(text) && waiting.is_some() && inside > waiting
}

/// Whether no node is ever inside with a later request than one that waits.
fn is_in_order<A: Algorithm<Shape = Complete>>(
    requests: &[u8],
    variants: &[Variant],
    id: impl Fn(&A) -> RequestId,
) -> bool {
    let none = VariantSet::default();
    let bounds = Bounds {
        variants: variants.iter().fold(none, |set, v| set.with(*v)),
        ..Bounds::of::<A>(requests)
    };
    always::<A>(&bounds, |cluster| {
        let of = |phase| {
            let nodes = NodeId::all(cluster.len()).map(|node| cluster.node(node));
            nodes.filter(move |node| node.phase() == phase).map(&id)
        };
        of(Phase::Inside).all(|inside| of(Phase::Waiting).all(|waiting| inside < waiting))
    })
}

pub(super) fn others_are_unfair() -> Finding {
    let numbered = |id: Option<RequestId>| id.expect("requests have numbers");
    let fair = [&[3, 3][..], &[1; 3]].iter().all(|requests| {
        is_in_order::<Lamport>(requests, &[], |node| numbered(node.request_id()))
            && is_in_order::<RicartAgrawala>(requests, &[], |node| numbered(node.request_id()))
            && is_in_order::<LodhaKshemkalyani>(requests, &[], |node| node.my_request())
    });
    let unfair = [&[][..], &[STAIRCASE]].iter().all(|variants| {
        !is_in_order::<CarvalhoRoucairol>(&[2, 2], variants, CarvalhoRoucairol::my_request)
    });
    let replayed = OUT_OF_ORDER.map(enters_out_of_order) == [true; 2];
    finding(
        fair && unfair && replayed,
        format!(
            "every state of two nodes with three requests each and of three with one: never is a node inside with a later request than one \
             that waits, with Lamport's, Ricart and Agrawala's and this algorithm: {fair}. Two nodes with two requests each, Singhal's \
             dynamic algorithm and Carvalho and Roucairol's: there are such states: {unfair}; a replayed run of each shows one. A node that \
             has all permissions sends no requests"
        ),
        scenario("singhal-dynamic-out-of-order"),
    )
}

pub(super) fn singhal() -> Finding {
    let nodes = 20;
    let run = |load| Run::of("singhal-dynamic", nodes).load(load);
    let loads = ["light", "think:10", "heavy"];
    let costs = loads.map(|load| run(load).messages());
    let most = 1.5 * (nodes - 1) as f64;
    let found = format!(
        "N = 20, where 3(N-1)/2 is {most}: {} under light load, {} with think:10, {} under heavy load. The preset is the machine of \
         Carvalho and Roucairol with Singhal's start; we do not have his paper",
        costs[0], costs[1], costs[2]
    );
    Finding::open(
        Verdict::NotDecided,
        found,
        "Singhal's paper: whether the bound is for another load, or the preset lacks a rule",
        run("heavy").steady_command(),
    )
}

pub(super) fn figure_5() -> Finding {
    let told = FIGURE_5.iter().filter(|text| is_replayed(text)).count();
    finding(
        told == FIGURE_5.len(),
        format!("{told} of 4 scenarios replay as told, by the repaired rules"),
        scenario("lodha-kshemkalyani-fig5-scenario2a"),
    )
}

/// What §3.2 says that a node knows when it leaves, of each other node: (1) those queued behind its
/// own request wait with that request; (2) and (3) all others do not request, or request later.
fn knows(cluster: &dyn Snapshot<LodhaKshemkalyani>) -> bool {
    let nodes = || NodeId::all(cluster.len());
    let is_inside = |node: &NodeId| cluster.node(*node).phase() == Phase::Inside;
    nodes().filter(is_inside).all(|leaving| {
        let leaving = cluster.node(leaving);
        let own = leaving.my_request();
        let others = nodes().filter(|node| *node != own.node);
        let mut others = others.map(|node| (node, cluster.node(node)));
        others.all(|(node, other)| {
            let queued = leaving.lrq().iter().find(|request| request.node == node);
            let waits = other.phase() == Phase::Waiting;
            match queued {
                Some(request) => waits && other.my_request() == *request && *request > own,
                None => other.phase() == Phase::Idle || waits && other.my_request() > own,
            }
        })
    })
}

pub(super) fn knows_when_leaving() -> Finding {
    let is_so = |variants| {
        let bounds = Bounds {
            variants,
            ..Bounds::of::<LodhaKshemkalyani>(&[2; 3])
        };
        always::<LodhaKshemkalyani>(&bounds, knows)
    };
    let none = VariantSet::default();
    let (published, repaired) = (is_so(none.with(AS_PUBLISHED)), is_so(none));
    Finding {
        verdict: Verdict::of(published, repaired),
        found: format!(
            "every state of three nodes with two requests each, of each other node while one is inside: those queued behind it wait with that \
             request, and the others do not request or request later; as printed: {published}, repaired: {repaired}"
        ),
        evidence: "soloist lab check --algorithm lodha-kshemkalyani --nodes 3 --requests 2"
            .to_owned(),
        decided_by: None,
    }
}

/// Nodes that know whether they will request again, and have to.
pub(super) fn next_request_answers() -> Finding {
    let search = |requests: &[u8]| {
        Search::<LodhaKshemkalyani>::of(requests)
            .variants(&[LATE_REPLY])
            .known_requests()
    };
    let [two, three] = [search(&[3, 3]), search(&[2, 2, 1])];
    let [pair, trio] = [two.run(), three.run()];
    let blind = Search::<LodhaKshemkalyani>::of(&[1, 1]).variants(&[LATE_REPLY]);
    let without = blind.run();
    finding(
        pair.is_well() && trio.is_well() && without == Searched::Deadlock,
        format!(
            "it presupposes that a process knows that it will request again. With that knowledge, and the next request as a duty, two nodes with \
             three requests each: {}; three with 2, 2 and 1: {}. Without it, two nodes with one request each (`{}`): {}, since the next \
             REQUEST never comes",
            pair.text(),
            trio.text(),
            blind.command(),
            without.text()
        ),
        three.command(),
    )
}
