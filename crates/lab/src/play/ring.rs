//! Finds the nodes of a deadlock that wait for each other in a circle.

use std::collections::{BTreeMap, VecDeque};

use soloist_algorithms::{Field, NodeId, Phase, Role, Value};

/// An arrow with a label.
pub(super) type Arrow = (usize, usize, &'static str);

/// From a node to the one that has its permission.
const LOCKED_FOR: &str = "locked for";

/// The states of all nodes, as lists of fields and their values.
pub(super) struct Waits<'a> {
    pub fields: &'a [Field],
    pub values: &'a [Vec<Value>],
    /// The set of each node, in a quorum system.
    pub sets: Option<&'a [Vec<usize>]>,
}

/// A node in the circle. A node that has given its permission to another one stands for that
/// permission: what it waits for itself does not matter to those that need it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Requester(usize),
    Granter(usize),
}

impl Waits<'_> {
    /// A shortest circle of nodes that wait for each other. If there is none, the way from the
    /// first node that waits.
    pub(super) fn ring(&self) -> Vec<Arrow> {
        let nodes = 0..self.values.len();
        let waiting = nodes.filter(|&node| self.is_waiting(node));
        let circles = waiting.clone().filter_map(|node| self.circle(node));
        let shortest = circles.min_by_key(Vec::len);
        let way = |node| self.way(node);
        shortest.unwrap_or_else(|| waiting.into_iter().next().map_or(Vec::new(), way))
    }

    fn circle(&self, start: usize) -> Option<Vec<Arrow>> {
        let start = Part::Requester(start);
        let mut came_by: BTreeMap<Part, (Part, Arrow)> = BTreeMap::new();
        let mut queue = VecDeque::from([start]);
        while let Some(part) = queue.pop_front() {
            for (arrow, next) in self.arrows(part) {
                if next == start {
                    let mut ring = vec![arrow];
                    let mut at = part;
                    while let Some(&(before, arrow)) = came_by.get(&at) {
                        ring.push(arrow);
                        at = before;
                    }
                    ring.reverse();
                    return Some(ring);
                }
                came_by.entry(next).or_insert_with(|| {
                    queue.push_back(next);
                    (part, arrow)
                });
            }
        }
        None
    }

    fn way(&self, start: usize) -> Vec<Arrow> {
        let mut way: Vec<Arrow> = Vec::new();
        let mut part = Part::Requester(start);
        while let Some(&(arrow, next)) = self.arrows(part).first() {
            if way.contains(&arrow) {
                break;
            }
            way.push(arrow);
            part = next;
        }
        way
    }

    /// From a waiting node to those that it needs; from a node that has given its permission to
    /// the node that has it.
    fn arrows(&self, part: Part) -> Vec<(Arrow, Part)> {
        match part {
            Part::Requester(node) if self.is_waiting(node) => {
                let arrows = self.needs(node).into_iter();
                arrows.map(|arrow| (arrow, self.part(arrow.1))).collect()
            }
            Part::Requester(_) => Vec::new(),
            Part::Granter(node) => {
                let granted = self.granted(node).into_iter();
                let arrow = |to| ((node, to, LOCKED_FOR), Part::Requester(to));
                granted.map(arrow).collect()
            }
        }
    }

    /// What a node is to those that need it.
    fn part(&self, node: usize) -> Part {
        match self.granted(node) {
            Some(_) => Part::Granter(node),
            None => Part::Requester(node),
        }
    }

    /// The other node that has this node's permission.
    fn granted(&self, node: usize) -> Option<usize> {
        self.node_of(node, Role::Granted).filter(|&to| to != node)
    }

    fn needs(&self, node: usize) -> Vec<Arrow> {
        let mut needed: Vec<usize> = match self.value(node, Role::Needs) {
            Some(Value::Nodes(nodes)) => indices(nodes),
            _ => self.unanswered(node),
        };
        needed.retain(|&other| other != node);
        if !needed.is_empty() {
            return needed.into_iter().map(|to| (node, to, "needs")).collect();
        }
        let first = match self.value(node, Role::Queue) {
            Some(Value::Requests(all)) => all.first().map(|request| request.node.index()),
            Some(Value::Nodes(all)) => all.first().map(|first| first.index()),
            _ => None,
        };
        if let Some(first) = first.filter(|&first| first != node) {
            return vec![(node, first, "waits for")];
        }
        let pointer = self.node_of(node, Role::Pointer).filter(|&to| to != node);
        pointer
            .map(|to| vec![(node, to, "asked")])
            .unwrap_or_default()
    }

    /// The nodes whose answer is missing, if the algorithm names those that have answered.
    fn unanswered(&self, node: usize) -> Vec<usize> {
        let Some(Value::Nodes(answered)) = self.value(node, Role::Answered) else {
            return Vec::new();
        };
        let answered = indices(answered);
        let all = || (0..self.values.len()).collect();
        let mut needed: Vec<usize> = self.sets.map_or_else(all, |sets| sets[node].clone());
        needed.retain(|other| !answered.contains(other));
        needed
    }

    fn is_waiting(&self, node: usize) -> bool {
        let waiting = Value::from(Phase::Waiting);
        self.value(node, Role::Phase) == Some(&waiting)
    }

    fn node_of(&self, node: usize, role: Role) -> Option<usize> {
        match self.value(node, role)? {
            Value::Node(node) => Some(node.index()),
            Value::Request(request) => Some(request.node.index()),
            _ => None,
        }
    }

    fn value(&self, node: usize, role: Role) -> Option<&Value> {
        let place = self
            .fields
            .iter()
            .position(|field| field.role == Some(role))?;
        Some(&self.values[node][place])
    }
}

/// Returns whether each arrow begins where the one before it ends.
pub(super) fn is_circle(ring: &[Arrow]) -> bool {
    let next = ring.iter().cycle().skip(1);
    !ring.is_empty() && ring.iter().zip(next).all(|(arrow, next)| arrow.1 == next.0)
}

/// Puts a circle into words: "1 needs 0, which is locked for 2; 2 needs 3, which is locked for 1".
pub(super) fn sentence(ring: &[Arrow], names: &[String]) -> String {
    let mut text = String::new();
    for &(from, to, what) in ring {
        let (from, to) = (&names[from], &names[to]);
        text += &match what {
            LOCKED_FOR => format!(", which is {what} {to}"),
            _ if text.is_empty() => format!("{from} {what} {to}"),
            _ => format!("; {from} {what} {to}"),
        };
    }
    text
}

fn indices(nodes: &[NodeId]) -> Vec<usize> {
    nodes.iter().map(|node| node.index()).collect()
}
