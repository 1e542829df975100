//! A run as data: what a program needs to draw it, in JSON.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use soloist_algorithms::{Field, Value};

/// A run: the cluster at its start, and steps that can be taken forwards and backwards.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Run {
    /// The first sentence of the scenario's introduction, or what is played.
    pub title: String,
    /// The comments before the first step, if any.
    pub intro: Option<String>,
    /// The scenario.
    pub text: String,
    /// The algorithm's name.
    pub algorithm: &'static str,
    /// The variants in use, separated by commas.
    pub variant: String,
    /// The paper that describes the algorithm.
    pub paper: &'static str,
    /// The nodes' names.
    pub names: Vec<String>,
    /// Where to draw the nodes.
    pub plan: Layout,
    /// The nodes in the order of a space-time diagram, with their depth in a tree.
    pub rows: Vec<(usize, usize)>,
    /// The fields of a node's state.
    pub fields: Vec<Field>,
    /// Each node's state before the first step.
    pub start: Vec<State>,
    /// The messages in flight before the first step.
    pub flight: Vec<Message>,
    /// The fault of the first state, if it has one.
    pub fault: Option<PlayFault>,
    /// The index of the first of `steps`.
    pub from: usize,
    /// The steps.
    pub steps: Vec<Step>,
    /// Number of steps of the whole run.
    pub count: usize,
    /// What may happen next.
    pub may: Vec<Choice>,
    /// The comments after the last step, if any.
    pub closing: Option<String>,
    /// How the run ended, or `None` if it could go on.
    pub ended: Option<&'static str>,
}

impl Run {
    /// The last fault, if there is one.
    pub fn last_fault(&self) -> Option<PlayFault> {
        let faults = self.steps.iter().rev().find_map(|step| step.fault.clone());
        faults.or_else(|| self.fault.clone())
    }
}

/// Coordinates in units of the distance between two nodes.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Layout {
    /// The kind of picture: tree, line, radial, torus, mesh, quorums, ring or complete.
    pub kind: &'static str,
    /// Width of the box around all nodes.
    pub width: f64,
    /// Height of the box around all nodes.
    pub height: f64,
    /// The place of each node.
    pub nodes: Vec<(f64, f64)>,
    /// The links to draw.
    pub edges: Vec<(usize, usize)>,
    /// Ends of links that wrap around: a node, and the direction.
    pub stubs: Vec<(usize, f64, f64)>,
    /// The set of each node, in a quorum system.
    pub sets: Option<Vec<Vec<usize>>>,
}

/// A node's state: the value of each field, in the order of [`Run::fields`].
#[derive(Clone, PartialEq, Debug)]
pub struct State(pub Vec<(&'static str, Value)>);

impl Serialize for State {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

/// A message.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Message {
    /// How many messages were sent before it.
    pub id: usize,
    /// The sender.
    pub from: usize,
    /// The receiver.
    pub to: usize,
    /// The paper's name for it.
    pub label: &'static str,
    /// What it carries, as text; empty if it carries nothing.
    pub content: String,
    /// Whether it carries the token.
    pub token: bool,
}

/// A step. Its changes can be undone.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Step {
    /// The number of its line in the scenario.
    pub line: usize,
    /// What happened: request, deliver, release and so on.
    pub action: &'static str,
    /// Where it happened.
    pub node: usize,
    /// When it happened, in message delays. Without times in the scenario, its number from 1.
    pub time: f64,
    /// The step that sent the message, if there is one.
    pub cause: Option<usize>,
    /// The message that arrived or was lost.
    pub got: Option<usize>,
    /// The messages that were sent.
    pub sends: Vec<Message>,
    /// Whether the node entered.
    pub enter: bool,
    /// Whether the node left.
    pub leave: bool,
    /// What changed in the states of nodes.
    pub changes: Vec<Change>,
    /// What is wrong from here on, if this step broke something.
    pub fault: Option<PlayFault>,
    /// The comments before the step.
    pub caption: Option<String>,
    /// What the step did, in a sentence.
    pub told: String,
    /// A question to the viewer before the step.
    pub ask: Option<Question>,
}

/// A change of one field of one node.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Change {
    /// The node.
    pub node: usize,
    /// The field's name.
    pub field: &'static str,
    /// Its value before the step.
    pub before: Value,
    /// Its value after the step.
    pub after: Value,
}

/// A question to the viewer; the next step is the answer.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Question {
    /// The question.
    pub text: String,
}

/// A violated property.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct PlayFault {
    /// The property, as one word.
    pub kind: &'static str,
    /// What is wrong.
    pub text: String,
    /// The nodes involved: arrows with labels, such as the circle of a deadlock.
    pub ring: Vec<(usize, usize, &'static str)>,
}

/// Something that may happen next.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Choice {
    /// The step to append to the scenario.
    pub text: String,
    /// The step for people.
    pub label: String,
    /// Where it happens.
    pub node: usize,
    /// The sender of the message, if there is one.
    pub from: Option<usize>,
    /// The message, if there is one.
    pub message: Option<usize>,
}
