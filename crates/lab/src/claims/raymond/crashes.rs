//! Raymond 1989, §8: clusters in which nodes crash and recover by chance.

use std::sync::Arc;

use soloist_algorithms::raymond::Raymond;
use soloist_algorithms::shape::Tree;
use soloist_algorithms::{
    Algorithm, Channels, Config, Message, NodeId, Outbox, Place, Shape, Start, VariantSet,
};

use super::super::chance::Cluster;
use crate::world::Fault;

/// Runs with crashes, each with its own seed.
pub(super) struct Crashes {
    pub(super) variants: VariantSet,
    pub(super) channels: Channels,
    /// How many crashes a run has at most.
    pub(super) crashes: u64,
    /// Whether another node may crash while one is down; never a neighbour of it (§8.8). The one that is down
    /// always may (§8.7).
    pub(super) together: bool,
}

/// How runs with crashes ended.
#[derive(Default)]
pub(super) struct Ends {
    pub(super) runs: u64,
    pub(super) crashes: u64,
    /// Everybody was served.
    pub(super) well: u64,
    /// Somebody waits and nothing can happen any more.
    pub(super) waiting: u64,
    /// Two privileges, or two nodes inside.
    pub(super) doubled: u64,
    /// A message had to be refused.
    pub(super) refused: u64,
    /// Messages without end.
    pub(super) endless: u64,
}

impl Ends {
    pub(super) fn all_well(&self) -> bool {
        self.well == self.runs && self.crashes > 0
    }

    /// For people.
    pub(super) fn text(&self) -> String {
        if self.all_well() {
            return format!(
                "all {} runs with {} crashes end well",
                self.runs, self.crashes
            );
        }
        let faults = [
            (self.waiting, "somebody waits for ever"),
            (self.doubled, "there are two privileges"),
            (self.endless, "messages go on for ever"),
            (
                self.refused,
                "a node is sent what no correct neighbour sends",
            ),
        ];
        let faults = faults.iter().filter(|(count, _)| *count > 0);
        let faults: Vec<_> = faults.map(|(n, what)| format!("in {n} {what}")).collect();
        format!("of {} runs, {}", self.runs, faults.join(", "))
    }
}

enum End {
    Well,
    Waiting,
    Doubled,
    Refused,
    Endless,
}

/// Far more than any run takes that ends.
const STEPS_MAX: u32 = 20_000;

impl Crashes {
    /// Runs on random trees of two to seven nodes, two requests a node.
    pub(super) fn run(&self, runs: u64) -> Ends {
        let mut ends = Ends::default();
        for seed in 0..runs {
            let tree = Tree::parse(&format!("random:{seed}"), 2 + seed as usize % 6);
            let mut run = Run::new(self, tree.expect("a tree"), seed);
            let end = run.drive();
            ends.runs += 1;
            ends.crashes += run.crashed;
            *match end {
                End::Well => &mut ends.well,
                End::Waiting => &mut ends.waiting,
                End::Doubled => &mut ends.doubled,
                End::Refused => &mut ends.refused,
                End::Endless => &mut ends.endless,
            } += 1;
        }
        ends
    }
}

struct Run<'a> {
    plan: &'a Crashes,
    tree: Arc<Tree>,
    cluster: Cluster<Raymond>,
    crashed: u64,
    /// Who has not recovered, and whether it has restarted.
    down: Vec<(NodeId, bool)>,
}

impl<'a> Run<'a> {
    fn new(plan: &'a Crashes, tree: Tree, seed: u64) -> Self {
        let tree = Arc::new(tree);
        Run {
            cluster: Cluster::new(&tree, plan.variants, plan.channels, 2, seed),
            plan,
            tree,
            crashed: 0,
            down: Vec::new(),
        }
    }

    fn drive(&mut self) -> End {
        for _ in 0..STEPS_MAX {
            match self.step() {
                Ok(true) => {}
                Ok(false) if self.cluster.all_served() => return End::Well,
                Ok(false) => return End::Waiting,
                Err(Fault::TwoInside { .. }) => return End::Doubled,
                Err(Fault::Refused { .. }) => return End::Refused,
                Err(fault) => panic!("a node broke its own rules: {fault}"),
            }
            if self.privileges() > 1 {
                return End::Doubled;
            }
        }
        End::Endless
    }

    fn privileges(&self) -> usize {
        let here = self.cluster.world.iter().filter(|(_, n)| n.has_token());
        let letters = self.cluster.network.letters().iter();
        here.count() + letters.filter(|l| l.message.is_token()).count()
    }

    /// Something happens; not, if nothing can.
    fn step(&mut self) -> Result<bool, Fault> {
        // One step in eight, so that crashes fall into all parts of a run.
        if self.crashed < self.plan.crashes && self.cluster.random.below(8) == 0 {
            self.crash();
        }
        let down = self.down.clone();
        self.bring_back()?;
        let happened = self.cluster.step().transpose()?.is_some();
        let world = &self.cluster.world;
        self.down.retain(|down| world.node(down.0).is_recovering());
        Ok(happened || self.down != down)
    }

    fn crash(&mut self) {
        let may = |node: &NodeId| match self.plan.together {
            true => !(self.down.iter()).any(|down| self.tree.is_neighbour(down.0, *node)),
            false => self.down.iter().all(|down| down.0 == *node),
        };
        let nodes: Vec<_> = NodeId::all(self.tree.nodes()).filter(may).collect();
        let Some(node) = self.cluster.pick(&nodes) else {
            return;
        };
        self.crashed += 1;
        let config = Config {
            place: Place {
                me: node,
                shape: Arc::clone(&self.tree),
            },
            start: Start::idle(NodeId::new(0)),
            variants: self.plan.variants,
        };
        let state = Raymond::recovering(&config, self.crashed).expect("it knows recovery");
        self.cluster.world.crash(node, state);
        self.down.retain(|down| down.0 != node);
        self.down.push((node, false));
    }

    /// §8: who is down restarts when all that it had sent has arrived. With a second wait, it settles when
    /// nothing is under way to it.
    fn bring_back(&mut self) -> Result<(), Fault> {
        for place in 0..self.down.len() {
            let (node, restarted) = self.down[place];
            let letters = self.cluster.network.letters();
            let mut out = Outbox::new();
            if !restarted && letters.iter().all(|letter| letter.from != node) {
                self.down[place].1 = true;
                self.cluster.world.start(node, &mut out)?;
            } else if restarted && letters.iter().all(|letter| letter.to != node) {
                self.cluster.world.settled(node, &mut out)?;
            }
            self.cluster.post(node, &mut out);
        }
        Ok(())
    }
}
