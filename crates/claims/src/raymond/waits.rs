//! §6.2: how long leaves and nonleaves wait with the greedy strategy.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use soloist_algorithms::raymond::{GREEDY, Raymond, RaymondMessage};
use soloist_algorithms::shape::Tree;
use soloist_algorithms::{Effect, Kind, NodeId, Outbox, Shape, Start, VariantSet};
use soloist_lab::world::{Event, World};

use super::claim;
use crate::tools::examined_again;
use crate::{Claim, Finding, Verdict};

pub(super) fn claims() -> Vec<Claim> {
    vec![claim(
        "§6.2",
        "greedy: in Fig. 7, saturated, a leaf waits three times as long as a nonleaf",
        greedy_waits,
    )]
}

/// Every message takes one delay, and a node stays inside for two.
const INSIDE: u64 = 2;
const ENTRIES: u32 = 20_000;

/// What happens at a moment, in the order in which it was caused.
type Moment = Reverse<(u64, u64, NodeId, Option<(NodeId, RaymondMessage)>)>;

/// A saturated tree: each node requests again as soon as it leaves.
struct Saturated {
    world: World<Raymond>,
    out: Outbox<RaymondMessage>,
    agenda: BinaryHeap<Moment>,
    caused: u64,
    now: u64,
    /// Since when each node waits.
    since: Vec<u64>,
    /// Time waited and number of entries of each node.
    waited: Vec<(u64, u32)>,
}

impl Saturated {
    fn happen(&mut self, node: NodeId, event: Event<RaymondMessage>) {
        let applied = self.world.apply(event, &mut self.out);
        applied.expect("nothing breaks");
        for effect in self.out.drain() {
            let (moment, at, what) = match effect {
                Effect::Send { to, message } => (self.now + 1, to, Some((node, message))),
                Effect::Enter => {
                    let (waited, entries) = &mut self.waited[node.index()];
                    *waited += self.now - self.since[node.index()];
                    *entries += 1;
                    (self.now + INSIDE, node, None)
                }
            };
            self.caused += 1;
            self.agenda.push(Reverse((moment, self.caused, at, what)));
        }
    }

    fn request(&mut self, node: NodeId) {
        self.since[node.index()] = self.now;
        self.happen(node, Event::Request(node));
    }

    /// Mean waits of leaves and of nonleaves.
    fn run(tree: &Arc<Tree>, variants: VariantSet) -> [f64; 2] {
        let nodes = tree.nodes();
        let mut run = Saturated {
            world: World::new(tree, Start::idle(NodeId::new(0)), variants),
            out: Outbox::new(),
            agenda: BinaryHeap::new(),
            caused: 0,
            now: 0,
            since: vec![0; nodes],
            waited: vec![(0, 0); nodes],
        };
        NodeId::all(nodes).for_each(|node| run.request(node));
        while run.waited.iter().map(|(_, entries)| entries).sum::<u32>() < ENTRIES {
            let Reverse((moment, _, node, what)) = run.agenda.pop().expect("a saturated tree");
            run.now = moment;
            match what {
                Some((from, message)) => {
                    let to = node;
                    run.happen(node, Event::Deliver { from, to, message });
                }
                None => {
                    run.happen(node, Event::Release(node));
                    run.request(node);
                }
            }
        }
        [true, false].map(|leaves| {
            let is_meant = |node: &NodeId| (tree.neighbours(*node).len() == 1) == leaves;
            let meant = NodeId::all(nodes).filter(is_meant);
            let (waited, entries) = meant.fold((0, 0), |(waited, entries), node| {
                let (time, number) = run.waited[node.index()];
                (waited + time, entries + number)
            });
            waited as f64 / f64::from(entries)
        })
    }
}

fn greedy_waits() -> Finding {
    let tree = Arc::new(Tree::parse("star:3", 10).expect("a tree"));
    let [leaf, nonleaf] = Saturated::run(&tree, VariantSet::default().with(GREEDY));
    let [fair_leaf, fair_nonleaf] = Saturated::run(&tree, VariantSet::default());
    let inside = INSIDE as f64;
    Finding::open(
        Verdict::DependsOnReading,
        format!(
            "constant delays, two delays inside, one run of {ENTRIES} entries without chance: from request to entry, which is how the paper \
             describes the delay, a leaf waits {leaf:.2} delays on average and a nonleaf {nonleaf:.2}, {:.2} times as long; from request to release, \
             {:.2} times. A leaf has a third of the turns in the same time, and the time inside is part of both. Without greedy {fair_leaf:.2} and \
             {fair_nonleaf:.2}",
            leaf / nonleaf,
            (leaf + inside) / (nonleaf + inside),
        ),
        "whether the delay includes the time inside",
        examined_again(Kind::Raymond, "§6.2"),
    )
}
