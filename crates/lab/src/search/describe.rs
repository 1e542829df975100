//! Actions and runs as steps of a scenario.

use soloist_algorithms::NodeId;

use super::graph::{Endless, Graph};
use super::interner::Interner;
use super::packed::PackedEnvelope;
use super::system::{Action, System};

impl System {
    /// The node at which an action happens.
    pub(super) fn node_of(&self, state: &[u32], action: Action) -> NodeId {
        match action {
            Action::Request(node)
            | Action::Release(node)
            | Action::Crash(node, _)
            | Action::Restart(node)
            | Action::Settled(node)
            | Action::Forget(node)
            | Action::ForgetAndJump(node) => node,
            Action::ForgetTogether(node) => node.unwrap_or(NodeId::new(0)),
            Action::Deliver(place) | Action::Lose(place) => {
                PackedEnvelope(state[self.envelopes + place]).to()
            }
        }
    }

    /// Formats an action as a step of a scenario, with these names of nodes.
    pub(super) fn describe(
        &self,
        interner: &Interner,
        state: &[u32],
        action: Action,
        name: &dyn Fn(NodeId) -> String,
    ) -> String {
        let me = name(self.node_of(state, action));
        match action {
            Action::Request(_) => format!("request {me}"),
            Action::Release(_) => format!("release {me}"),
            Action::Crash(_, incarnation) if self.limits.crashes.are_endless() => {
                format!("crash {me} {incarnation}")
            }
            Action::Crash(..) => format!("crash {me}"),
            Action::Restart(_) => format!("restart {me}"),
            Action::Settled(_) => format!("settled {me}"),
            Action::Forget(_) => format!("forget {me}"),
            Action::ForgetAndJump(node) => {
                let clock = interner.clock(self.word(state, node).local());
                format!("forget {me} {}", clock + 1)
            }
            Action::ForgetTogether(None) => "forget all".to_owned(),
            Action::ForgetTogether(Some(node)) => {
                let clock = interner.clock(self.word(state, node).local());
                format!("forget all {me} {}", clock + 1)
            }
            Action::Deliver(place) | Action::Lose(place) => {
                let envelope = PackedEnvelope(state[self.envelopes + place]);
                let mut message = interner.describe(envelope.message());
                if self.counts {
                    // Its kind only: counters in it are not those of a real run.
                    message.truncate(message.find(' ').unwrap_or(message.len()));
                }
                let verb = match action {
                    Action::Lose(_) => "lose",
                    _ => "deliver",
                };
                format!("{verb} {} {me} {message}", name(envelope.from()))
            }
        }
    }
}

impl Graph {
    /// An endless run as steps of a scenario: the path to the cycle, and the cycle.
    pub(super) fn describe_endless(&mut self, run: Endless) -> (Vec<String>, Vec<String>) {
        let way = run.way.len();
        let mut trace = self.describe(run.way.into_iter().chain(run.cycle));
        let cycle = trace.split_off(way);
        (trace, cycle)
    }

    /// Repeats the actions from the first state and formats them as steps of a scenario.
    pub(super) fn describe(&mut self, actions: impl IntoIterator<Item = Action>) -> Vec<String> {
        let mut state = self.state(0).to_vec();
        let mut lines = Vec::new();
        for action in actions {
            lines.push(
                self.system
                    .describe(&self.interner, &state, action, &*self.name),
            );
            let mut after = Vec::new();
            let _ = self.step(&state, action, &mut after);
            state = after;
        }
        lines
    }
}

/// The name of a node in scenarios that do not name their nodes: its number.
pub(super) fn number(node: NodeId) -> String {
    node.to_string()
}
