//! Number and length of messages, links, and comparisons with other algorithms.

use std::sync::Arc;

use soloist_algorithms::chaudhuri_karaata::ChaudhuriKaraata;
use soloist_algorithms::raymond::Raymond;
use soloist_algorithms::shape::{Mesh, Tree};
use soloist_algorithms::{Kind, NodeId, Shape, VariantSet};
use soloist_lab::replicate::{Estimate, Replicated};
use soloist_lab::search::{Aim, Bounds, ENDLESS, Worst, worst};

use super::as_published;
use crate::pairs::more_messages;
use crate::share::busiest;
use crate::tools::{Run, examined_again, finding, highest, largest};
use crate::watch::cost_at_once;
use crate::{Finding, Verdict};

const NAME: &str = "chaudhuri-karaata";
const PUBLISHED: &str = "chaudhuri-karaata+as-published";

/// Raymond's tree of 1989 needs fewer. That is proved by its bound of 2D on radiating stars, not by
/// measurements of several sizes.
pub(super) fn first_below_the_root() -> Finding {
    let sizes = [1e3, 1e6, 1e9];
    // 2D in a radiating star of valency 3: twice two times its levels.
    let bound = |n: f64| 4.0 * ((n + 2.0) / 3.0).log2().ceil();
    let is_diameter = [64, 1000, 10_000].iter().all(|&nodes| {
        let star = Tree::parse("star:3", nodes).expect("a tree");
        2.0 * star.diameter() as f64 <= bound(nodes as f64)
    });
    let star = Bounds {
        shape: Arc::new(Tree::parse("star:3", 4).expect("a tree")),
        ..Bounds::of::<Raymond>(&[ENDLESS; 4])
    };
    let searched = match worst::<Raymond>(&star, Aim::Messages, &mut |_| true) {
        Worst::Ratio {
            messages, entries, ..
        } => messages as f64 / entries as f64,
        other => panic!("{other:?}"),
    };
    let run = |name| Run::of(name, 1000).load("light").entries(1000);
    let (mesh, raymond) = (run(NAME).replicated(), run("raymond").replicated());
    let messages = |run: &Replicated| run.report.measures.messages_per_entry;
    let listed = |values: [f64; 3]| values.map(|value| format!("{value:.0}")).join(", ");
    let found = format!(
        "Raymond's tree of 1989 is earlier, and §1 names it: in a radiating star of valency 3 an entry costs at most 2D = 4⌈log2((n+2)/3)⌉, a \
         REQUEST and a PRIVILEGE for each edge of a path, which is {} for n = 1000, a million and a billion, where √n is {} and 8(c-1) is {}; the \
         worst of all interleavings of a star of 4 nodes is {searched}, which is 2D. Measured at n = 1000, one request at a time: {} for the mesh \
         and {} for the tree, {} fewer in pairs of runs with the same demand",
        listed(sizes.map(bound)),
        listed(sizes.map(f64::sqrt)),
        listed(sizes.map(|n| 8.0 * (n.cbrt() - 1.0))),
        messages(&mesh),
        messages(&raymond),
        more_messages(&mesh, &raymond)
    );
    let is_earlier = is_diameter && searched <= bound(4.0) && bound(sizes[2]) < sizes[2].sqrt();
    finding(
        !is_earlier,
        found,
        "soloist lab check --algorithm raymond --nodes 4 --shape star:3 --requests endless --most messages".to_owned(),
    )
}

pub(super) fn others() -> Finding {
    let nodes = 27;
    let cost = |name: &str, load: &str| Run::of(name, nodes).load(load).entries(1000);
    let peers = (nodes - 1) as f64;
    let lamport = cost("lamport", "heavy").cost();
    let ricart = cost("ricart-agrawala", "heavy").cost();
    let carvalho = ["light", "heavy"].map(|load| cost("carvalho-roucairol", load).messages());
    let suzuki = ["light", "heavy"].map(|load| cost("suzuki-kasami", load).messages());
    let so = lamport == 3.0 * peers
        && ricart == 2.0 * peers
        && highest(&carvalho) <= 2.0 * peers
        && highest(&suzuki) <= nodes as f64;
    let found = format!(
        "n = 27: {lamport} = 3(n-1) and {ricart} = 2(n-1) exactly; Carvalho-Roucairol {} light and {} heavy; \
         Suzuki-Kasami {} and {}, since the node with the token sends nothing",
        carvalho[0], carvalho[1], suzuki[0], suzuki[1]
    );
    finding(so, found, cost("suzuki-kasami", "light").steady_command())
}

pub(super) fn links() -> Finding {
    let counted = [2_usize, 3, 4, 5].map(|c| {
        let mesh = Mesh::default_for(c.pow(3));
        let ends: usize = NodeId::all(mesh.nodes())
            .map(|node| mesh.neighbours(node).count())
            .sum();
        (c.pow(3), ends / 2, 13 * (c - 1))
    });
    let so = counted.iter().all(|(_, links, claimed)| links == claimed);
    let listed = counted.map(|(n, links, claimed)| format!("n = {n}: {links}, claimed {claimed}"));
    let found = format!(
        "the bold links are a spanning tree, n-1 of them, and no fewer connect n nodes: {}",
        listed.join("; ")
    );
    finding(so, found, Run::of(NAME, 64).command())
}

/// Cost of a single request, for each position of the requester and of the token. `None` if a
/// request is not served.
fn alone(mesh: &Arc<Mesh>, variants: VariantSet) -> Option<Vec<(NodeId, NodeId, u64)>> {
    let mut costs = Vec::new();
    for home in NodeId::all(mesh.nodes()) {
        for node in NodeId::all(mesh.nodes()) {
            let cost = cost_at_once::<ChaudhuriKaraata>(mesh, variants, home, &[node])?;
            costs.push((home, node, cost));
        }
    }
    Some(costs)
}

/// Costs of a single request in a mesh of c by c by c nodes, by the repaired rules.
pub(crate) fn costs_alone(c: usize) -> Option<Vec<u64>> {
    let costs = alone(&full_mesh(c, c, c), VariantSet::default())?;
    Some(costs.into_iter().map(|(_, _, cost)| cost).collect())
}

/// The most messages of a single request in a mesh of this many rows, columns and planes, by the
/// repaired rules.
pub(crate) fn most_alone(rows: usize, columns: usize, planes: usize) -> u64 {
    let costs = alone(&full_mesh(rows, columns, planes), VariantSet::default());
    let costs = costs.expect("the repaired rules serve every request");
    let costs = costs.iter().map(|(_, _, cost)| *cost);
    costs.max().expect("a mesh has nodes")
}

/// Mean length of a message in bytes, and the claimed maximum: the type takes one byte, and a
/// number of b bits at most ⌈b/7⌉ bytes.
pub(crate) fn bytes_of_a_message(nodes: usize) -> (f64, f64) {
    let measures = Run::of(NAME, nodes).entries(3000).report().measures;
    let bits = usize::BITS - (nodes - 1).leading_zeros();
    (
        measures.bytes_per_entry / measures.messages_per_entry,
        1.0 + f64::from(bits.div_ceil(7)),
    )
}

fn full_mesh(rows: usize, columns: usize, planes: usize) -> Arc<Mesh> {
    let form = format!("{rows}x{columns}x{planes}");
    let mesh = Mesh::parse(&form, rows * columns * planes);
    Arc::new(mesh.expect("a mesh with room for all"))
}

/// Compares the most messages of a single request, for each c, with `bound` times c - 1.
fn at_most(bound: u64, mesh: fn(usize) -> Arc<Mesh>) -> (Verdict, String) {
    let sizes = [2, 3, 4];
    let most = |variants| {
        sizes.map(|c| {
            let costs = alone(&mesh(c), variants).unwrap_or_default();
            costs.iter().map(|(_, _, cost)| *cost).max()
        })
    };
    let bounds = sizes.map(|c| bound * (c as u64 - 1));
    let within = |most: [Option<u64>; 3]| {
        let mut pairs = most.iter().zip(bounds);
        pairs.all(|(most, bound)| most.is_some_and(|most| most <= bound))
    };
    let (published, repaired) = (most(as_published()), most(VariantSet::default()));
    let listed = |most: [Option<u64>; 3]| {
        let text = |most: Option<u64>| most.map_or("not served".to_owned(), |m| m.to_string());
        most.map(text).join(", ")
    };
    let text = format!(
        "from every node, the token in every plane, c = 2, 3, 4: at most {} as printed and {} repaired, claimed {}",
        listed(published),
        listed(repaired),
        listed(bounds.map(Some))
    );
    (Verdict::of(within(published), within(repaired)), text)
}

pub(super) fn within_the_plane() -> Finding {
    let (verdict, found) = at_most(6, |c| full_mesh(c, c, 1));
    Finding {
        verdict,
        found,
        evidence: Run::of(NAME, 9).shape("3x3x1").load("light").command(),
        decided_by: None,
    }
}

pub(super) fn between_planes() -> Finding {
    let (verdict, found) = at_most(2, |c| full_mesh(1, 1, c));
    Finding {
        verdict,
        found,
        evidence: Run::of(NAME, 4)
            .shape("1x1x4")
            .load("light")
            .home(3)
            .command(),
        decided_by: None,
    }
}

pub(super) fn worst_case() -> Finding {
    let (verdict, found) = at_most(8, |c| full_mesh(c, c, c));
    let mean = Run::of(NAME, 64).load("light");
    let mesh = full_mesh(4, 4, 4);
    let costs = alone(&mesh, VariantSet::default()).unwrap_or_default();
    let exact = costs.iter().filter(|(home, node, cost)| {
        let place = mesh.coordinates(*node);
        let planes = place.plane.abs_diff(mesh.plane(*home));
        *cost == (3 * (place.row + place.column) + 2 * planes) as u64
    });
    let found = format!(
        "{found}; repaired, from (i,j,k) with the token d planes away, 3(i+j) + 2d in {} of {} cases at n = 64, {} on average",
        exact.count(),
        costs.len(),
        mean.messages()
    );
    // Later requests meet what the first ones left behind.
    let printed = Run::of("chaudhuri-karaata+as-published", 27).load("light");
    let report = printed.report();
    let verdict = match verdict {
        Verdict::Holds if !report.is_well() => Verdict::HoldsAfterRepair,
        verdict => verdict,
    };
    let found = format!(
        "{found}; all of these from a fresh start. As printed, one request at a time at n = 27 ends after {} of {} entries: a stale REQUEST \
         takes the token away",
        report.measures.entries, 10_000
    );
    Finding::new(verdict, found, mean.steady_command())
}

pub(super) fn whole_plane() -> Finding {
    let counted = [2_u64, 3, 4, 8].map(|c| {
        let run = Run::of(NAME, (c * c) as usize).shape(&format!("{c}x{c}x1"));
        let report = run.load("burst").report();
        assert!(report.is_well(), "{report:#?}");
        (report.measures.messages, 3 * c * c * (c - 1))
    });
    let so = counted
        .iter()
        .all(|(measured, claimed)| measured == claimed);
    let found = format!(
        "all nodes of one plane request at once, c = 2, 3, 4, 8: {} messages in all, claimed {}",
        counted.map(|(m, _)| m.to_string()).join(", "),
        counted.map(|(_, c)| c.to_string()).join(", ")
    );
    let run = Run::of(NAME, 9).shape("3x3x1").load("burst");
    finding(so, found, run.command())
}

pub(super) fn heavy_demand() -> Finding {
    let sizes = [3_usize, 4, 5];
    let run = |name, c: usize| Run::of(name, c.pow(3)).entries(1000);
    let bound = |c: usize| {
        let (side, plane) = ((c - 1) as f64, (c * c) as f64);
        3.0 * side + 2.0 * side / plane
    };
    let measured = |name| {
        sizes.map(|c| {
            let run = run(name, c);
            run.report().is_well().then(|| run.messages())
        })
    };
    let (published, repaired) = (measured(PUBLISHED), measured(NAME));
    let within = |costs: [Option<Estimate>; 3]| {
        costs
            .iter()
            .zip(sizes)
            .all(|(cost, c)| cost.is_some_and(|cost| cost.high() <= bound(c)))
    };
    let listed = |costs: [Option<Estimate>; 3]| {
        costs
            .map(|cost| cost.map_or("never ends".to_owned(), |cost| cost.to_string()))
            .join(", ")
    };
    let found = format!(
        "n = 27, 64, 125, all nodes request all the time: as printed {}; repaired {}; claimed {}",
        listed(published),
        listed(repaired),
        sizes.map(|c| format!("{:.2}", bound(c))).join(", ")
    );
    Finding {
        verdict: Verdict::of(within(published), within(repaired)),
        found,
        evidence: run(NAME, 4).steady_command(),
        decided_by: None,
    }
}

pub(super) fn message_length() -> Finding {
    let sizes = [27_usize, 125, 1000, 8000];
    let lengths = sizes.map(bytes_of_a_message);
    let so = lengths.iter().all(|(bytes, bound)| bytes <= bound);
    let found = format!(
        "encoded bytes of a message on average, n = 27, 125, 1000, 8000: {}; at most {}: a type and one number of \
         ⌈log2 n⌉ bits",
        lengths.map(|(bytes, _)| format!("{bytes:.2}")).join(", "),
        lengths.map(|(_, bound)| bound.to_string()).join(", ")
    );
    finding(so, found, Run::of(NAME, 1000).entries(3000).command())
}

pub(super) fn outperforms() -> Finding {
    let nodes = 64;
    let rivals = [
        "lamport",
        "ricart-agrawala",
        "carvalho-roucairol",
        "suzuki-kasami",
        "maekawa",
        "raymond",
        "naimi-trehel",
    ];
    let loads = ["light", "heavy"];
    let runs =
        |name: &str| loads.map(|load| Run::of(name, nodes).load(load).entries(1000).replicated());
    let own_runs = runs(NAME);
    let rival_runs = rivals.map(|name| (name, runs(name)));
    let messages = |run: &Replicated| run.report.measures.messages_per_entry;
    let own = own_runs.each_ref().map(messages);
    let cheaper = |load: usize| {
        let compared = rival_runs
            .iter()
            .map(|(name, runs)| (name, more_messages(&runs[load], &own_runs[load])));
        let better = compared.filter(|(_, more)| more.low() <= 0.0);
        let listed: Vec<_> = better
            .map(|(name, more)| format!("{name} {more}"))
            .collect();
        listed
    };
    let (light, heavy) = (cheaper(0), cheaper(1));
    let text = |list: &[String]| match list {
        [] => "all others cost more".to_owned(),
        _ => format!("not more expensive: {}", list.join(", ")),
    };
    let found = format!(
        "n = 64, light {}: {}; heavy {}: {} (by how much more they cost, in pairs of runs with the same demand); all others that §1 names and we \
         have cost more (up to {:.1})",
        own[0],
        text(&light),
        own[1],
        text(&heavy),
        largest(rival_runs.iter().map(|(_, runs)| messages(&runs[1]).high())),
    );
    let evidence = "soloist lab compare --algorithms all --nodes 64 --load light,heavy --entries 1000 --warm-up 500 --level 99.9%".to_owned();
    finding(light.is_empty() && heavy.is_empty(), found, evidence)
}

pub(super) fn not_at_hand() -> Finding {
    Finding::open(
        Verdict::NotDecided,
        "not examined: we do not have these papers".to_owned(),
        "the papers of Helary et al. and of Chaudhuri 1991 and 1995",
        examined_again(Kind::ChaudhuriKaraata, "§1"),
    )
}

/// By the paper's own definition, which is about the text of the rules.
pub(super) fn symmetrical() -> Finding {
    finding(
        true,
        "by the definition that the sentence itself gives, that each node has an identical copy of the process: §2.3 prints one text for all \
         nodes, and one implementation of it runs at every node here. The definition says nothing about equal parts: the text branches on \
         i = j = 0, only heads have a token and a queue, and the next row measures what that means"
            .to_owned(),
        examined_again(Kind::ChaudhuriKaraata, "§5"),
    )
}

pub(super) fn distributed_control() -> Finding {
    let run = Run::of(NAME, 64).entries(10_000);
    let skew = run.measure(busiest);
    Finding::open(
        Verdict::DependsOnReading,
        format!(
            "no node controls the whole, and the line of heads has no special end. But a head keeps the queue of its plane, and under heavy load at \
             n = 64 the busiest node receives {skew} times the mean; by the definition in §1 of Maekawa 1985, equal responsibility and equal work, \
             control is not fully distributed"
        ),
        "a definition of fully distributed control",
        run.steady_command(),
    )
}
