//! The head of a scenario.

use std::collections::HashMap;

use soloist_algorithms::shape::check_nodes;
use soloist_algorithms::{Channels, Choice, NodeId, Start};

use super::ScenarioError;
use crate::script;
use crate::shape_spec::ShapeSpec;

/// The parsed head of a scenario.
#[derive(Debug)]
pub(crate) struct Head {
    pub choice: Choice,
    pub names: Vec<String>,
    pub shape: ShapeSpec,
    pub start: Start,
    pub channels: Channels,
    numbers: HashMap<String, NodeId>,
}

impl Head {
    const KEYS: [&str; 9] = [
        "algorithm",
        "variant",
        "names",
        "nodes",
        "shape",
        "listing",
        "home",
        "inside",
        "channels",
    ];

    pub(crate) fn read(text: &str) -> Result<Self, ScenarioError> {
        let values = script::Head::read(text, &Self::KEYS)?;
        let value = |key: &str| values.value(key);
        let bad = |key: &str, what: &str| values.wrong(key, what);
        let algorithm = value("algorithm").ok_or(ScenarioError::Missing("algorithm"))?;
        let choice = Choice::parse(algorithm, value("variant").unwrap_or_default())?;
        let names: Vec<String> = match (value("names"), value("nodes")) {
            (Some(names), _) => names.split_whitespace().map(str::to_owned).collect(),
            (None, Some(nodes)) => {
                let nodes: usize = nodes.parse().map_err(|_| bad("nodes", "not a number"))?;
                check_nodes(nodes)?;
                (0..nodes).map(|node| node.to_string()).collect()
            }
            (None, None) => return Err(ScenarioError::Missing("nodes")),
        };
        let mut numbers = HashMap::new();
        for (node, name) in NodeId::all(names.len()).zip(&names) {
            if numbers.insert(name.clone(), node).is_some() {
                return Err(bad("names", &format!("'{name}' is listed twice")));
            }
        }
        let node = |key: &str| match value(key) {
            None => Ok(None),
            Some(name) => numbers
                .get(name)
                .map(|node| Some(*node))
                .ok_or_else(|| bad(key, "no such node")),
        };
        let start = Start {
            home: node("home")?.unwrap_or(NodeId::new(0)),
            inside: node("inside")?,
        };
        let channels = match value("channels") {
            Some(given) => given.parse().map_err(|reason| bad("channels", reason))?,
            None => choice.kind.info().channels,
        };
        let shape = match (value("shape"), value("listing")) {
            (Some(form), _) => ShapeSpec::Form(form.to_owned()),
            (None, Some(lines)) => ShapeSpec::Listing(lines.replace(';', "\n")),
            (None, None) => ShapeSpec::Default,
        };
        Ok(Head {
            choice,
            names,
            shape,
            start,
            channels,
            numbers,
        })
    }

    /// The node with this name.
    pub(crate) fn node(&self, name: &str) -> Result<NodeId, String> {
        let node = self.numbers.get(name).copied();
        node.ok_or_else(|| format!("no node '{name}'"))
    }

    /// The name of a node.
    pub(crate) fn name(&self, node: NodeId) -> &str {
        &self.names[node.index()]
    }
}
