//! A node's state as named values, in the paper's own names. Whatever shows a state derives from
//! it: transcripts, and programs that draw a run.

use std::collections::VecDeque;
use std::fmt;

use serde::{Serialize, Serializer};

use crate::{Algorithm, NodeId, NodeSet, Phase, RequestId};

/// A named part of a node's state.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Field {
    /// The paper's name.
    pub name: &'static str,
    /// The type of its values.
    pub kind: FieldKind,
    /// The part that it plays in any algorithm, if it plays one.
    pub role: Option<Role>,
    /// The part of the node that it belongs to, if a node has several: "as requester".
    pub group: Option<&'static str>,
    /// What it means, in a few words.
    pub help: &'static str,
    /// Whether transcripts call the node itself "self", as the paper does.
    #[serde(skip)]
    pub says_self: bool,
}

/// The type of a field's values.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum FieldKind {
    /// True or false.
    Flag,
    /// A whole number.
    Number,
    /// A number per node.
    Numbers,
    /// A node.
    Node,
    /// Nodes in order.
    Queue,
    /// Nodes without order.
    Set,
    /// A request.
    Request,
    /// Requests in order.
    Requests,
    /// A word.
    Text,
}

/// The part that a field plays in any algorithm, for programs that draw it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Role {
    /// Idle, waiting or inside.
    Phase,
    /// Whether the token is here.
    Token,
    /// The nodes that this node serves next.
    Queue,
    /// The number of the latest request, or a logical clock.
    Clock,
    /// A neighbour that requests or the token are sent to.
    Pointer,
    /// The nodes whose answer this node still needs.
    Needs,
    /// The nodes that have answered this node's request.
    Answered,
    /// The node that has this node's permission.
    Granted,
    /// The highest fence that the node knows.
    Fence,
}

/// The value of a field.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Value {
    /// The node has no such field now. Transcripts leave it out.
    Absent,
    /// No node, or no request, and the paper's word for that.
    Nil(&'static str),
    /// Of a [`FieldKind::Flag`].
    Flag(bool),
    /// Of a [`FieldKind::Number`].
    Number(i64),
    /// Of [`FieldKind::Numbers`].
    Numbers(Vec<u64>),
    /// Of a [`FieldKind::Node`].
    Node(NodeId),
    /// Of a [`FieldKind::Queue`] or a [`FieldKind::Set`].
    Nodes(Vec<NodeId>),
    /// Of a [`FieldKind::Request`].
    Request(RequestId),
    /// Of [`FieldKind::Requests`].
    Requests(Vec<RequestId>),
    /// Of a [`FieldKind::Text`].
    Text(&'static str),
}

/// Receives the fields of a node. See [`Algorithm::fields`].
pub trait Fields {
    /// Receives the next field.
    fn add(&mut self, field: &'static Field, value: Value);
}

impl Fields for Vec<(&'static Field, Value)> {
    fn add(&mut self, field: &'static Field, value: Value) {
        self.push((field, value));
    }
}

/// Idle, waiting or inside.
pub const PHASE: Field =
    Field::new("phase", FieldKind::Text, "idle, waiting or inside").role(Role::Phase);

impl Field {
    /// A field of this name and kind. `help` says what it means.
    pub const fn new(name: &'static str, kind: FieldKind, help: &'static str) -> Self {
        Field {
            name,
            kind,
            role: None,
            group: None,
            help,
            says_self: false,
        }
    }

    /// A value of this field as text: `name=value`, or a phase as a word.
    pub fn text(&self, value: &Value, me: NodeId, name: &dyn Fn(NodeId) -> String) -> String {
        let node = |node: NodeId| match self.says_self && node == me {
            true => "self".to_owned(),
            false => name(node),
        };
        let request = |r: &RequestId| r.named(&node);
        let join = |all: Vec<String>| all.join(", ");
        let text = match value {
            Value::Absent => String::new(),
            Value::Nil(word) | Value::Text(word) => (*word).to_owned(),
            Value::Flag(flag) => flag.to_string(),
            Value::Number(number) => number.to_string(),
            Value::Numbers(numbers) => format!("{numbers:?}"),
            Value::Node(one) => node(*one),
            Value::Nodes(nodes) => {
                let all = join(nodes.iter().copied().map(node).collect());
                match self.kind {
                    FieldKind::Set => format!("{{{all}}}"),
                    _ => format!("[{all}]"),
                }
            }
            Value::Request(one) => request(one),
            Value::Requests(all) => format!("[{}]", join(all.iter().map(request).collect())),
        };
        match self.role {
            Some(Role::Phase) => text,
            _ => format!("{}={text}", self.name),
        }
    }

    /// The same field, with a role.
    pub const fn role(mut self, role: Role) -> Self {
        self.role = Some(role);
        self
    }

    /// The same field, as part of a group.
    pub const fn group(mut self, group: &'static str) -> Self {
        self.group = Some(group);
        self
    }

    /// The same field, whose transcripts call the node itself "self".
    pub const fn says_self(mut self) -> Self {
        self.says_self = true;
        self
    }
}

impl Value {
    /// This node, or the paper's word for none.
    pub fn node_or(node: Option<NodeId>, nil: &'static str) -> Self {
        node.map_or(Value::Nil(nil), Value::Node)
    }

    /// This value, or [`Value::Absent`] unless the node has it now.
    pub fn only_if(self, present: bool) -> Self {
        if present { self } else { Value::Absent }
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Self {
        Value::Flag(flag)
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Value::Number(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl From<Phase> for Value {
    fn from(phase: Phase) -> Self {
        Value::Text(phase.name())
    }
}

impl From<&NodeSet> for Value {
    fn from(nodes: &NodeSet) -> Self {
        Value::Nodes(nodes.iter().collect())
    }
}

impl From<&VecDeque<NodeId>> for Value {
    fn from(nodes: &VecDeque<NodeId>) -> Self {
        Value::Nodes(nodes.iter().copied().collect())
    }
}

impl From<&VecDeque<RequestId>> for Value {
    fn from(requests: &VecDeque<RequestId>) -> Self {
        Value::Requests(requests.iter().copied().collect())
    }
}

/// Nodes are numbers, and no node is null.
impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::Absent | Value::Nil(_) => serializer.serialize_unit(),
            Value::Flag(flag) => flag.serialize(serializer),
            Value::Number(number) => number.serialize(serializer),
            Value::Numbers(numbers) => numbers.serialize(serializer),
            Value::Node(node) => node.serialize(serializer),
            Value::Nodes(nodes) => nodes.serialize(serializer),
            Value::Request(request) => request.serialize(serializer),
            Value::Requests(requests) => requests.serialize(serializer),
            Value::Text(text) => text.serialize(serializer),
        }
    }
}

/// A node's state as text: its phase, then `name=value` for each field that it has.
///
/// ```
/// use soloist_algorithms::central::Central;
/// use soloist_algorithms::{Algorithm, Config, NodeId, Shown};
///
/// let node = Central::new(&Config::first(3));
/// let names = ["A", "B", "C"];
/// let name = |node: NodeId| names[node.index()].to_owned();
/// let shown = Shown { state: &node, me: NodeId::new(0), name: &name };
/// assert_eq!(shown.to_string(), "idle granted=none queue=[]");
/// ```
pub struct Shown<'a, A> {
    /// The state.
    pub state: &'a A,
    /// The node that has it.
    pub me: NodeId,
    /// The name of each node.
    pub name: &'a dyn Fn(NodeId) -> String,
}

impl<A> fmt::Debug for Shown<'_, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shown")
            .field("me", &self.me)
            .finish_non_exhaustive()
    }
}

impl<A: Algorithm> fmt::Display for Shown<'_, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = Vec::new();
        self.state.fields(&mut fields);
        let present = fields
            .iter()
            .filter(|(_, value)| *value != Value::Absent)
            .map(|(field, value)| field.text(value, self.me, self.name));
        f.write_str(&present.collect::<Vec<_>>().join(" "))
    }
}
