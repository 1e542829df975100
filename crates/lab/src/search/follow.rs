//! Follows a run that somebody else chooses, step by step, with the rules and the properties of a
//! search.

use soloist_algorithms::{Algorithm, NodeId};

use super::bounds::Bounds;
use super::graph::Graph;
use super::interner::{Full, Interner};
use super::packed::{History, NODES, PackedEnvelope, PackedNode};
use super::plan::Plan;
use super::properties::View;
use super::system::{Action, Entry, Halt, System};
use super::{ENDLESS, Limit, Limits, Outcome, Watch, quiescence, starvation};
use crate::network::Envelope;
use crate::scenario::Deed;
use crate::world::Fault;

/// A state of a search that was reached by steps of somebody else's choice.
pub(crate) struct Follower {
    system: System,
    interner: Interner,
    state: Vec<u32>,
    after: Vec<u32>,
}

/// Something that may happen next.
pub(crate) struct Enabled {
    /// As a step of a scenario.
    pub text: String,
    pub node: NodeId,
    /// Sender, receiver and text of the message, if there is one.
    pub message: Option<(NodeId, NodeId, String)>,
}

/// How far to search from a state.
pub(crate) struct FromHere {
    pub states_max: usize,
    /// How often each node may request.
    pub requests: u8,
    /// How many crashes there may be.
    pub crashes: u8,
}

/// What a search from a state found.
pub(crate) enum Trouble {
    /// A fault, and a shortest way to it.
    Broken { trace: Vec<String> },
    /// A node waits forever, or messages continue forever although no node waits.
    Endless {
        node: Option<NodeId>,
        trace: Vec<String>,
        cycle: Vec<String>,
    },
    /// Nothing within `depth` steps; nothing at all if no limit was reached.
    Nothing {
        states: usize,
        depth: usize,
        limit: Option<Limit>,
    },
}

impl Follower {
    /// The cluster after all nodes have started, and the fault of that state, if any. Requests are
    /// without limit here.
    ///
    /// # Panics
    /// If there are more than [`Limits::NODES_MAX`] nodes.
    pub(crate) fn new<A: Algorithm>(
        bounds: &Bounds<A::Shape>,
    ) -> Result<(Self, Option<Fault>), String> {
        let endless = Bounds {
            requests: vec![ENDLESS; bounds.requests.len()],
            ..bounds.clone()
        };
        let plan = Plan::of::<A>(&endless);
        let mut interner = plan.interner();
        let (system, state, entry) = System::new(&plan, &mut interner).map_err(full)?;
        let follower = Follower {
            system,
            interner,
            state,
            after: Vec::new(),
        };
        let fault = follower.judge(entry);
        Ok((follower, fault))
    }

    /// Takes a step at `node`. Returns the fault of the step or of the state after it, if any. The
    /// error says why a search cannot take this step.
    pub(crate) fn follow<A: Algorithm>(
        &mut self,
        node: NodeId,
        deed: &Deed<'_, A::Message>,
    ) -> Result<Option<Fault>, String> {
        let action = match deed {
            Deed::Start => return Ok(None),
            Deed::Request => Action::Request(node),
            Deed::Release => Action::Release(node),
            Deed::Deliver(posted) => Action::Deliver(self.place_of::<A>(&posted.envelope)),
            Deed::Lose(posted) => Action::Lose(self.place_of::<A>(&posted.envelope)),
            Deed::Crash(incarnation) => self.crash(node, *incarnation)?,
            Deed::Restart => Action::Restart(node),
            Deed::Settled => Action::Settled(node),
            Deed::Forget(0) => Action::Forget(node),
            Deed::ForgetAll(None) => Action::ForgetTogether(None),
            Deed::Forget(1) => self.jump(Action::ForgetAndJump(node))?,
            Deed::ForgetAll(Some((node, 1))) => self.jump(Action::ForgetTogether(Some(*node)))?,
            Deed::Forget(_) | Deed::ForgetAll(Some(_)) => {
                return Err(
                    "a search advances a clock by 1; use a clock that is 1 later".to_owned(),
                );
            }
        };
        let entry = loop {
            let after = &mut self.after;
            match self.system.step(&self.interner, &self.state, action, after) {
                Ok(entry) => break Ok(entry),
                Err(Halt::Broken(fault)) => break Err(fault),
                Err(Halt::Unknown(cause)) => self.interner.learn(cause).map_err(full)?,
            }
        };
        std::mem::swap(&mut self.state, &mut self.after);
        Ok(match entry {
            Ok(entry) => self.judge(entry),
            Err(fault) => Some(fault),
        })
    }

    /// What may happen next. Crashes are among it if `crashes` says so.
    pub(crate) fn enabled(
        &mut self,
        crashes: bool,
        name: &dyn Fn(NodeId) -> String,
    ) -> Vec<Enabled> {
        let mut actions = Vec::new();
        let crashed = History(self.state[0]).crashes();
        if crashes {
            self.system.limits.crashes.most = (crashed + 1).min(Limits::CRASHES_MAX);
        }
        let (interner, state) = (&self.interner, &self.state[..]);
        self.system.actions(interner, state, &mut actions);
        let enabled = actions.into_iter().map(|action| {
            let envelope = self.system.envelope(state, action);
            Enabled {
                text: self.system.describe(interner, state, action, name),
                node: self.system.node_of(state, action),
                message: envelope.map(|envelope: PackedEnvelope| {
                    let text = interner.describe(envelope.message());
                    (envelope.from(), envelope.to(), text)
                }),
            }
        });
        enabled.collect()
    }

    /// Searches all runs that continue from here, breadth-first, until the first fault. Each node
    /// may request this often from here on.
    pub(crate) fn trouble(
        mut self,
        from_here: &FromHere,
        name: Box<dyn Fn(NodeId) -> String>,
        watch: &mut Watch,
    ) -> Trouble {
        for word in &mut self.state[NODES..self.system.envelopes] {
            *word = PackedNode(*word).with_left(from_here.requests).0;
        }
        let crashed = History(self.state[0]).crashes();
        let limits = &mut self.system.limits;
        limits.states_max = from_here.states_max;
        limits.crashes.most = (crashed + from_here.crashes).min(Limits::CRASHES_MAX);
        let rules = (self.system, self.interner);
        let (mut graph, result) = Graph::explore_from(rules, &self.state, name, watch);
        let (states, depth) = (graph.len(), graph.depth);
        match result {
            Err(Outcome::Broken { trace, .. }) => Trouble::Broken { trace },
            Err(outcome) => Trouble::Nothing {
                states,
                depth,
                limit: match outcome {
                    Outcome::NotExhausted { limit, .. } => Some(limit),
                    _ => unreachable!("exploring ends with a fault or at a limit"),
                },
            },
            Ok(()) => endless(&mut graph).unwrap_or(Trouble::Nothing {
                states,
                depth,
                limit: None,
            }),
        }
    }

    fn judge(&self, entry: Entry) -> Option<Fault> {
        let view = View {
            system: &self.system,
            interner: &self.interner,
            state: &self.state,
            entry,
        };
        view.judge_step().and_then(|()| view.judge_state()).err()
    }

    /// The place of the first such message among those in flight.
    fn place_of<A: Algorithm>(&self, wanted: &Envelope<A::Message>) -> usize {
        let stepper = self.interner.stepper::<A>();
        let mut envelopes = self.system.envelopes(&self.state);
        let place = envelopes.position(|envelope| {
            (envelope.from(), envelope.to()) == (wanted.from, wanted.to)
                && *stepper.message(envelope.message()) == wanted.message
        });
        place.expect("the message is in flight")
    }

    /// Nothing is promised from the moment when neighbours are down together.
    fn crash(&mut self, node: NodeId, incarnation: u64) -> Result<Action, String> {
        let most = Limits::CRASHES_MAX;
        if History(self.state[0]).crashes() == most {
            return Err(format!("a search supports at most {most} crashes"));
        }
        let neighbour_down = self
            .system
            .neighbour_down(&self.interner, &self.state, node);
        self.system.limits.crashes.neighbours_too |= neighbour_down;
        let incarnation = u8::try_from(incarnation);
        let incarnation = incarnation.map_err(|_| "a search supports incarnations up to 255")?;
        Ok(Action::Crash(node, incarnation))
    }

    fn jump(&self, action: Action) -> Result<Action, String> {
        match History(self.state[0]).jumps() {
            History::JUMPS_MAX => Err("a search supports no more clock jumps".to_owned()),
            _ => Ok(action),
        }
    }
}

/// A run without end in which a node waits, or in which no node wants anything.
fn endless(graph: &mut Graph) -> Option<Trouble> {
    let (node, run) = match starvation::find(graph) {
        Some((node, run)) => (Some(node), run),
        None => (None, quiescence::find(graph)?),
    };
    let (trace, cycle) = graph.describe_endless(run);
    Some(Trouble::Endless { node, trace, cycle })
}

fn full(_: Full) -> String {
    Limit::Numbers.text().to_owned()
}
