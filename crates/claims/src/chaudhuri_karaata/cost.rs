//! Number and length of messages, links, and comparisons with other algorithms.

use std::sync::Arc;

use soloist_algorithms::chaudhuri_karaata::ChaudhuriKaraata;
use soloist_algorithms::shape::Mesh;
use soloist_algorithms::{NodeId, Shape, VariantSet};

use super::as_published;
use crate::share::busiest;
use crate::tools::{Run, finding, largest};
use crate::watch::cost_at_once;
use crate::{Finding, Verdict};

const NAME: &str = "chaudhuri-karaata";
const PUBLISHED: &str = "chaudhuri-karaata+as-published";

pub(super) fn first_below_the_root() -> Finding {
    let run = |name: &str, nodes| Run::of(name, nodes).load("light").entries(3000);
    let costs = |name: &str| [64, 1000].map(|nodes| run(name, nodes).messages());
    let growth = |costs: [f64; 2]| costs[1] / costs[0];
    let (mesh, raymond) = (costs(NAME), costs("raymond"));
    let root = growth([64_f64.sqrt(), 1000_f64.sqrt()]);
    let found = format!(
        "one at a time, from n = 64 to 1000, √n grows {root:.2}-fold; the mesh from {:.1} to {:.1}, {:.2}-fold, but Raymond's \
         tree of 1989 from {:.1} to {:.1}, {:.2}-fold",
        mesh[0],
        mesh[1],
        growth(mesh),
        raymond[0],
        raymond[1],
        growth(raymond)
    );
    let first = growth(mesh) < root && growth(raymond) >= root;
    finding(first, found, run("raymond", 1000).command())
}

pub(super) fn others() -> Finding {
    let nodes = 27;
    let cost = |name: &str, load: &str| Run::of(name, nodes).load(load).entries(2000);
    let peers = (nodes - 1) as f64;
    let lamport = cost("lamport", "heavy").messages();
    let ricart = cost("ricart-agrawala", "heavy").messages();
    let carvalho = ["light", "heavy"].map(|load| cost("carvalho-roucairol", load).messages());
    let suzuki = ["light", "heavy"].map(|load| cost("suzuki-kasami", load).messages());
    let so = lamport == 3.0 * peers
        && ricart == 2.0 * peers
        && carvalho.iter().all(|&c| c <= 2.0 * peers)
        && suzuki.iter().all(|&c| c <= nodes as f64);
    let found = format!(
        "n = 27: {lamport} = 3(n-1) and {ricart} = 2(n-1) exactly; Carvalho-Roucairol {:.1} light and {:.1} heavy; \
         Suzuki-Kasami {:.1} and {:.1}, since the node with the token sends nothing",
        carvalho[0], carvalho[1], suzuki[0], suzuki[1]
    );
    finding(so, found, cost("suzuki-kasami", "light").command())
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
        "{found}; repaired, from (i,j,k) with the token d planes away, 3(i+j) + 2d in {} of {} cases at n = 64, {:.1} on average",
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
    Finding::new(verdict, found, mean.command())
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
        "all nodes of one plane ask at once, c = 2, 3, 4, 8: {} messages in all, claimed {}",
        counted.map(|(m, _)| m.to_string()).join(", "),
        counted.map(|(_, c)| c.to_string()).join(", ")
    );
    let run = Run::of(NAME, 9).shape("3x3x1").load("burst");
    finding(so, found, run.command())
}

pub(super) fn heavy_demand() -> Finding {
    let sizes = [3_usize, 4, 5];
    let run = |name, c: usize| Run::of(name, c.pow(3)).entries(10_000);
    let bound = |c: usize| {
        let (side, plane) = ((c - 1) as f64, (c * c) as f64);
        3.0 * side + 2.0 * side / plane
    };
    let measured = |name| {
        sizes.map(|c| {
            let report = run(name, c).report();
            report
                .is_well()
                .then_some(report.measures.messages_per_entry)
        })
    };
    let (published, repaired) = (measured(PUBLISHED), measured(NAME));
    let within = |costs: [Option<f64>; 3]| {
        costs
            .iter()
            .zip(sizes)
            .all(|(cost, c)| cost.is_some_and(|cost| cost <= bound(c)))
    };
    let listed = |costs: [Option<f64>; 3]| {
        costs
            .map(|cost| cost.map_or("never ends".to_owned(), |cost| format!("{cost:.2}")))
            .join(", ")
    };
    let found = format!(
        "n = 27, 64, 125, all ask all the time: as printed {}; repaired {}; claimed {}",
        listed(published),
        listed(repaired),
        sizes.map(|c| format!("{:.2}", bound(c))).join(", ")
    );
    Finding {
        verdict: Verdict::of(within(published), within(repaired)),
        found,
        evidence: run(NAME, 4).command(),
        decided_by: None,
    }
}

pub(super) fn message_length() -> Finding {
    let sizes = [27_usize, 125, 1000, 8000];
    let bytes = sizes.map(|nodes| {
        let measures = Run::of(NAME, nodes).entries(3000).report().measures;
        measures.bytes_per_entry / measures.messages_per_entry
    });
    // The type takes one byte, and a number of b bits at most ⌈b/7⌉ bytes.
    let bound =
        |nodes: usize| 1.0 + f64::from((usize::BITS - (nodes - 1).leading_zeros()).div_ceil(7));
    let so = bytes
        .iter()
        .zip(sizes)
        .all(|(&bytes, nodes)| bytes <= bound(nodes));
    let found = format!(
        "encoded bytes of a message on average, n = 27, 125, 1000, 8000: {}; at most {}: a type and one number of \
         ⌈log2 n⌉ bits",
        bytes.map(|b| format!("{b:.2}")).join(", "),
        sizes.map(|nodes| bound(nodes).to_string()).join(", ")
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
    let cost = |name: &str, load: &str| {
        let run = Run::of(name, nodes).load(load).entries(3000);
        run.messages()
    };
    let own = ["light", "heavy"].map(|load| cost(NAME, load));
    let costs = rivals.map(|name| (name, ["light", "heavy"].map(|load| cost(name, load))));
    let cheaper = |load: usize| {
        let better = costs.iter().filter(|(_, cost)| cost[load] < own[load]);
        let listed: Vec<_> = better
            .map(|(name, c)| format!("{name} {:.1}", c[load]))
            .collect();
        listed
    };
    let (light, heavy) = (cheaper(0), cheaper(1));
    let text = |list: &[String]| match list {
        [] => "none is cheaper".to_owned(),
        _ => format!("cheaper: {}", list.join(", ")),
    };
    let found = format!(
        "n = 64, light {:.1}: {}; heavy {:.1}: {}; all others that §1 names and we have cost more ({:.1} for the dearest)",
        own[0],
        text(&light),
        own[1],
        text(&heavy),
        largest(costs.iter().map(|(_, cost)| cost[1])),
    );
    let evidence = "soloist lab compare --algorithms all --nodes 64 --load light,heavy".to_owned();
    finding(light.is_empty() && heavy.is_empty(), found, evidence)
}

pub(super) fn not_at_hand() -> Finding {
    Finding::open(
        Verdict::NotDecided,
        "not examined: these papers are not at hand".to_owned(),
        "the papers of Helary et al. and of Chaudhuri 1991 and 1995",
        Run::of(NAME, 27).command(),
    )
}

pub(super) fn symmetrical() -> Finding {
    let run = Run::of(NAME, 64);
    let skew = busiest(&run.report().measures);
    Finding::open(
        Verdict::DependsOnReading,
        format!(
            "no node controls the whole, and the line of heads has no end that is special; but a head keeps the queue of its plane, and under \
             heavy load at n = 64 the busiest node receives {skew:.1} times the mean"
        ),
        "a definition of symmetrical",
        run.command(),
    )
}
