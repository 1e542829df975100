//! The Rust machines do what the proved models do, in every state of small clusters; and each
//! planted fault makes a difference.
//!
//! One test covers everything, because a fault is planted in the whole process.

use soloist_algorithms::carvalho_roucairol::{CarvalhoRoucairol, STAIRCASE};
use soloist_algorithms::chaudhuri_karaata::{self, ChaudhuriKaraata};
use soloist_algorithms::lamport::{Lamport, SPARE_ACKS};
use soloist_algorithms::le_lann::{self, LeLann};
use soloist_algorithms::lodha_kshemkalyani::{CLOCK_EVERYWHERE, LodhaKshemkalyani};
use soloist_algorithms::maekawa::Maekawa;
use soloist_algorithms::naimi_trehel::NaimiTrehel;
use soloist_algorithms::neamatollahi::{self, Neamatollahi};
use soloist_algorithms::neilsen_mizuno::NeilsenMizuno;
use soloist_algorithms::raymond::{GREEDY, INITIALIZE, PIGGYBACK, Raymond};
use soloist_algorithms::ricart_agrawala::RicartAgrawala;
use soloist_algorithms::shape::{Mesh, Quorums, Ring, Torus, Tree};
use soloist_algorithms::suzuki_kasami::SuzukiKasami;
use soloist_algorithms::{Algorithm, Channels, Mutant, NodeId, Shape, Variant};
use soloist_proofs::{Case, Difference, Model, Totals, compare};

/// Faults in rules that no model has: recovery, `one-reply`, `late-reply`, and what a node keeps of a
/// lock that it forgets.
const OUTSIDE: [Mutant; 13] = [
    Mutant::RaymondAdviseNotQueued,
    Mutant::RaymondAdviseNotAsked,
    Mutant::RaymondAdviseOutdated,
    Mutant::RaymondSecondWaitSkipped,
    Mutant::RaymondDuplicates,
    Mutant::RaymondCountersIgnored,
    Mutant::MaekawaClockForgotten,
    Mutant::LamportClockForgotten,
    Mutant::CarvalhoRoucairolClockForgotten,
    Mutant::CarvalhoRoucairolGivenComesBack,
    Mutant::RicartAgrawalaClockForgotten,
    Mutant::LodhaKshemkalyaniErrandLost,
    Mutant::LodhaKshemkalyaniKeptNotQueued,
];

/// An algorithm in one cluster, with what its model does there.
struct Tied {
    name: &'static str,
    case: Case,
    model: Model,
    run: fn(&Case, &Model) -> Result<Totals, Difference>,
}

/// The fields of each machine's state that are constant, or derived from other fields.
trait Compared: Algorithm {
    const SKIP: &'static [&'static str];
    /// The shape and the start, as arguments of the model.
    fn tables(_shape: &Self::Shape) -> Vec<String> {
        Vec::new()
    }
}

impl Compared for Raymond {
    const SKIP: &'static [&'static str] = &["place", "variants", "received", "recovery"];
    fn tables(tree: &Tree) -> Vec<String> {
        let neighbours = NodeId::all(tree.nodes()).map(|node| join(tree.neighbours(node), "."));
        let neighbours = format!("neighbours={}", join(neighbours, ";"));
        vec![next_hops(tree), neighbours]
    }
}

impl Compared for NaimiTrehel {
    const SKIP: &'static [&'static str] = &["place"];
}

impl Compared for NeilsenMizuno {
    const SKIP: &'static [&'static str] = &["place"];
    fn tables(tree: &Tree) -> Vec<String> {
        vec![next_hops(tree)]
    }
}

impl Compared for SuzukiKasami {
    const SKIP: &'static [&'static str] = &["place", "queued"];
}

impl Compared for LeLann {
    const SKIP: &'static [&'static str] = &["place", "resting_place"];
    fn tables(ring: &Ring) -> Vec<String> {
        let right = NodeId::all(ring.nodes()).map(|node| ring.right(node));
        vec![format!("right={}", join(right, ","))]
    }
}

impl Compared for ChaudhuriKaraata {
    const SKIP: &'static [&'static str] = &["place", "as_published", "repaired", "queued"];
    fn tables(mesh: &Mesh) -> Vec<String> {
        let nodes = || NodeId::all(mesh.nodes());
        let pairs = || nodes().flat_map(|me| nodes().map(move |other| (me, other)));
        // A hypothesis of the theorem.
        assert!(nodes().all(|me| mesh.towards_member(me, me).is_none()));
        let sides = nodes().map(|me| {
            let beside = mesh.is_head(me).then(|| mesh.heads_beside(me));
            join(beside.into_iter().flatten().flatten(), ".")
        });
        vec![
            optional(
                "head_towards",
                pairs().map(|(a, b)| mesh.head_towards(a, b)),
            ),
            optional(
                "towards_member",
                pairs().map(|(a, b)| mesh.towards_member(a, b)),
            ),
            optional("towards_head", nodes().map(|me| mesh.towards_head(me))),
            format!("sides={}", join(sides, ";")),
        ]
    }
}

impl Compared for Neamatollahi {
    const SKIP: &'static [&'static str] = &[
        "place",
        "variants",
        "home",
        "gate",
        "gate_above",
        "gate_below",
    ];
    fn tables(torus: &Torus) -> Vec<String> {
        let nodes = || NodeId::all(torus.nodes());
        let row = |node| torus.position(node).0;
        let in_row = |row_of: fn(&Torus, usize) -> usize| {
            let columns = move |node| {
                (0..torus.columns()).map(move |column| torus.at(row_of(torus, row(node)), column))
            };
            join(nodes().flat_map(columns), ",")
        };
        vec![
            format!("rows={}", torus.rows()),
            format!("columns={}", torus.columns()),
            format!("right={}", join(nodes().map(|node| torus.right(node)), ",")),
            format!(
                "position={}",
                join(nodes().map(|node| torus.position(node).1), ",")
            ),
            format!(
                "row_length={}",
                join(nodes().map(|node| torus.row_length(row(node))), ",")
            ),
            format!("in_row={}", in_row(|_, row| row)),
            format!("in_row_below={}", in_row(Torus::row_below)),
        ]
    }
}

impl Compared for RicartAgrawala {
    const SKIP: &'static [&'static str] = &["place", "as_published"];
}

impl Compared for CarvalhoRoucairol {
    const SKIP: &'static [&'static str] = &["place"];
}

impl Compared for Lamport {
    const SKIP: &'static [&'static str] = &["place", "spare_acks", "asking"];
}

impl Compared for LodhaKshemkalyani {
    const SKIP: &'static [&'static str] = &[
        "place",
        "repaired",
        "clock_everywhere",
        "one_reply",
        "errands",
        "entrusted",
        "late",
    ];
}

impl Compared for Maekawa {
    const SKIP: &'static [&'static str] = &[
        "place",
        "tells_displaced",
        "checks_lock",
        "puts_back_first",
        "failed_by",
        "locked_members",
    ];
    fn tables(quorums: &Quorums) -> Vec<String> {
        let sets = NodeId::all(quorums.nodes()).map(|node| join(quorums.set(node), "."));
        vec![format!("members={}", join(sets, ";"))]
    }
}

fn join(items: impl IntoIterator<Item: ToString>, between: &str) -> String {
    let texts: Vec<String> = items.into_iter().map(|item| item.to_string()).collect();
    texts.join(between)
}

/// A table in which -1 is none.
fn optional(name: &str, entries: impl Iterator<Item = Option<NodeId>>) -> String {
    let numbers = entries.map(|entry| entry.map_or("-1".to_owned(), |node| node.to_string()));
    format!("{name}={}", join(numbers, ","))
}

fn next_hops(tree: &Tree) -> String {
    let nodes = || NodeId::all(tree.nodes());
    let rows = nodes().flat_map(|me| nodes().map(move |root| tree.next_hop(me, root)));
    format!("next_hop={}", join(rows, ","))
}

/// All trees of two to five nodes, up to the names of nodes.
const TREES: [(usize, &str); 7] = [
    (2, "0 1\n"),
    (3, "0 1\n1 2\n"),
    (4, "0 1\n1 2\n2 3\n"),
    (4, "0 1\n0 2\n0 3\n"),
    (5, "0 1\n1 2\n2 3\n3 4\n"),
    (5, "0 1\n0 2\n0 3\n0 4\n"),
    (5, "0 1\n1 2\n1 3\n3 4\n"),
];

fn tied<A: Compared>(case: Case) -> Tied {
    let tables = A::tables(&case.shape::<A::Shape>());
    Tied {
        name: A::INFO.name,
        model: Model::run(A::INFO.name, &case, &tables),
        case,
        run: |case, model| compare::<A>(case, A::SKIP, model),
    }
}

/// Nodes that request again and again; the token starts at each node in turn.
fn endless<A: Compared>(variants: &[Variant], shape: &str, nodes: usize) -> Case {
    Case {
        shape: shape.to_owned(),
        nodes,
        variants: variants.to_vec(),
        channels: A::INFO.channels,
        requests: None,
        roots: (0..nodes).collect(),
    }
}

/// Nodes that request a number of times each, because numbers grow with each request.
fn counted<A: Compared>(variants: &[Variant], shape: &str, requests: &[u32]) -> Case {
    Case {
        requests: Some(requests.to_vec()),
        ..endless::<A>(variants, shape, requests.len())
    }
}

fn all() -> Vec<Tied> {
    let mut all = Vec::new();
    for (nodes, tree) in TREES {
        for variants in [&[][..], &[GREEDY], &[PIGGYBACK], &[GREEDY, PIGGYBACK]] {
            all.push(tied::<Raymond>(endless::<Raymond>(variants, tree, nodes)));
        }
        let case = endless::<Raymond>(&[INITIALIZE], tree, nodes);
        all.push(tied::<Raymond>(case));
        let case = endless::<NeilsenMizuno>(&[], tree, nodes);
        all.push(tied::<NeilsenMizuno>(case));
    }
    for nodes in 1..=4 {
        let case = endless::<NaimiTrehel>(&[], "complete", nodes);
        all.push(tied::<NaimiTrehel>(case));
        all.push(tied::<LeLann>(endless::<LeLann>(&[], "ring", nodes)));
        for root in 0..nodes {
            // A slow REQUEST may meet the token again and again, so requests are bounded.
            let requests = &[2, 2, 1, 1][..nodes];
            let case = counted::<LeLann>(&[le_lann::RESTING], "ring", requests);
            // The resting place is a parameter of the model.
            all.push(tied::<LeLann>(Case {
                roots: vec![root],
                ..case
            }));
        }
    }
    for requests in [&[2, 2][..], &[2, 1, 1], &[1, 1, 0, 0]] {
        let case = counted::<SuzukiKasami>(&[], "complete", requests);
        all.push(tied::<SuzukiKasami>(case));
    }
    for (torus, nodes) in [
        ("1x1", 1),
        ("1x3", 3),
        ("2x1", 2),
        ("2x2", 3),
        ("2x2", 4),
        ("3x1", 3),
    ] {
        for variants in [&[][..], &[neamatollahi::AS_PUBLISHED]] {
            let case = counted::<Neamatollahi>(variants, torus, &[1, 1, 1, 0][..nodes]);
            all.push(tied::<Neamatollahi>(case));
        }
        for root in 0..nodes {
            let case =
                counted::<Neamatollahi>(&[neamatollahi::RESTING], torus, &[2, 1, 1, 1][..nodes]);
            all.push(tied::<Neamatollahi>(Case {
                roots: vec![root],
                ..case
            }));
        }
    }
    for (mesh, nodes) in [("3x1x1", 3), ("1x1x3", 3), ("2x1x2", 4), ("2x2x1", 4)] {
        let case = endless::<ChaudhuriKaraata>(&[], mesh, nodes);
        all.push(tied::<ChaudhuriKaraata>(case));
    }
    // As printed, requests of planes are flooded without bound.
    let case =
        counted::<ChaudhuriKaraata>(&[chaudhuri_karaata::AS_PUBLISHED], "2x1x2", &[1, 1, 1, 1]);
    all.push(tied::<ChaudhuriKaraata>(case));
    for requests in [&[1][..], &[2, 2], &[2, 1, 1]] {
        let case = counted::<RicartAgrawala>(&[], "complete", requests);
        all.push(tied::<RicartAgrawala>(case));
        for variants in [&[][..], &[STAIRCASE]] {
            let case = counted::<CarvalhoRoucairol>(variants, "complete", requests);
            all.push(tied::<CarvalhoRoucairol>(case));
        }
    }
    for requests in [&[1][..], &[2, 2], &[1, 1, 1]] {
        for variants in [&[][..], &[SPARE_ACKS]] {
            let case = counted::<Lamport>(variants, "complete", requests);
            all.push(tied::<Lamport>(case));
        }
    }
    for requests in [&[1][..], &[2, 2], &[2, 1, 1]] {
        for variants in [&[][..], &[CLOCK_EVERYWHERE]] {
            let case = counted::<LodhaKshemkalyani>(variants, "complete", requests);
            all.push(tied::<LodhaKshemkalyani>(case));
        }
    }
    for (quorums, requests, channels) in [
        ("grid", &[1, 1, 1][..], Channels::Any),
        ("grid", &[1, 1, 2], Channels::Fifo),
        ("singer", &[2, 1, 1], Channels::Fifo),
        ("grid", &[1, 1, 1, 0], Channels::Fifo),
        ("grid", &[0, 1, 1, 1], Channels::Fifo),
    ] {
        let case = counted::<Maekawa>(&[], quorums, requests);
        all.push(tied::<Maekawa>(Case { channels, ..case }));
    }
    all
}

#[test]
fn machines_are_their_models_and_every_planted_fault_differs() {
    if soloist_proofs::is_missing() {
        return;
    }
    let mut all = all();
    // Most faults show in small clusters.
    all.sort_by_key(|tied| tied.model.totals().steps);
    println!(
        "{:<20} {:>8} {:>8} {:>9} {:>9}",
        "algorithm", "clusters", "calls", "states", "steps"
    );
    for name in names(&all) {
        let (mut clusters, mut sum) = (0, Totals::default());
        for tied in all.iter().filter(|tied| tied.name == name) {
            let totals = (tied.run)(&tied.case, &tied.model)
                .unwrap_or_else(|difference| panic!("{name}, {:?}: {difference}", tied.case));
            clusters += 1;
            sum.calls += totals.calls;
            sum.states += totals.states;
            sum.steps += totals.steps;
        }
        let Totals {
            calls,
            states,
            steps,
        } = sum;
        println!("{name:<20} {clusters:>8} {calls:>8} {states:>9} {steps:>9}");
    }
    let names = names(&all);
    let planted = Mutant::ALL.iter().copied();
    for mutant in planted.filter(|m| names.contains(&m.part()) && !OUTSIDE.contains(m)) {
        Mutant::plant(Some(mutant));
        let of_it = all.iter().filter(|tied| tied.name == mutant.part());
        let difference = of_it
            .filter_map(|tied| (tied.run)(&tied.case, &tied.model).err())
            .next();
        Mutant::plant(None);
        let difference = difference.unwrap_or_else(|| panic!("{mutant:?} makes no difference"));
        println!("{}: {difference}", mutant.name());
    }
}

/// Each name once, in the order of the cases.
fn names(all: &[Tied]) -> Vec<&'static str> {
    let mut names: Vec<_> = all.iter().map(|tied| tied.name).collect();
    names.sort_unstable();
    names.dedup();
    names
}
