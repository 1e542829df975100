//! What a step did, as a sentence.

use soloist_algorithms::{Field, FieldKind, RequestId, Role, Value};

use super::types::{Change, Message};
use crate::scenario::Head;

/// More receivers than this are counted, not named.
const NAMED_MAX: usize = 4;

/// Roles of the values that are worth a sentence, the most telling first.
const TOLD: [Option<Role>; 3] = [Some(Role::Queue), Some(Role::Pointer), None];

/// A step to tell.
pub(super) struct Told<'a> {
    pub head: &'a Head,
    pub fields: &'a [Field],
    pub action: &'static str,
    pub node: usize,
    /// The message that arrived or was lost.
    pub got: Option<&'a Message>,
    pub sends: &'a [Message],
    pub enter: bool,
    pub changes: &'a [Change],
}

impl Told<'_> {
    /// The step in a sentence.
    pub(super) fn sentence(&self) -> String {
        let opening = match self.got {
            Some(message) if self.action == "lose" => {
                let (from, to) = (self.name(message.from), self.name(message.to));
                let content = format!("{} {}", message.label, message.content);
                return format!("{from} → {to} {} is lost.", content.trim_end());
            }
            Some(message) => {
                let (me, from) = (self.name(self.node), self.name(message.from));
                format!("{me} gets {} from {from}", message.label)
            }
            None => format!("{} {}", self.name(self.node), verb(self.action)),
        };
        let mut acts = Vec::new();
        acts.extend(self.enter.then(|| "enters".to_owned()));
        acts.extend(self.sending());
        match &acts[..] {
            [] => self.with_change(&opening),
            [one] => format!("{opening} and {one}."),
            _ => format!("{opening}, {}.", listed(&acts)),
        }
    }

    fn name(&self, node: usize) -> &str {
        &self.head.names[node]
    }

    /// A step that neither sends nor enters.
    fn with_change(&self, opening: &str) -> String {
        let change = self.change();
        match (self.got, self.action) {
            (Some(_), _) => match change {
                Some(change) => format!("{opening}. {change}."),
                None => format!("{opening}, and nothing changes."),
            },
            (None, "request" | "release") => match change {
                Some(change) => format!("{opening} and sends nothing. {change}."),
                None => format!("{opening} and sends nothing."),
            },
            _ => format!("{opening}."),
        }
    }

    /// What was sent to whom. Messages to the same nodes are told together.
    fn sending(&self) -> Option<String> {
        let mut receivers: Vec<(&str, Vec<usize>)> = Vec::new();
        for Message { label, to, .. } in self.sends {
            match receivers.iter_mut().find(|(known, _)| known == label) {
                Some((_, nodes)) => nodes.push(*to),
                None => receivers.push((label, vec![*to])),
            }
        }
        let mut labels: Vec<(String, Vec<String>)> = Vec::new();
        for (label, to) in receivers {
            let whom = self.whom(&to);
            match labels.iter_mut().find(|(known, _)| *known == whom) {
                Some((_, labels)) => labels.push(label.to_owned()),
                None => labels.push((whom, vec![label.to_owned()])),
            }
        }
        let all = labels.iter();
        let all: Vec<String> = all
            .map(|(whom, what)| format!("{} to {whom}", listed(what)))
            .collect();
        (!all.is_empty()).then(|| format!("sends {}", listed(&all)))
    }

    fn whom(&self, nodes: &[usize]) -> String {
        let others = self.head.names.len() - 1;
        if nodes.len() == others && others > 1 {
            return "all others".to_owned();
        }
        if nodes.len() > NAMED_MAX {
            return format!("{} nodes", nodes.len());
        }
        let names = nodes.iter().map(|node| self.name(*node).to_owned());
        listed(&names.collect::<Vec<_>>())
    }

    /// The change that tells most, if something changed that a picture does not show by itself.
    fn change(&self) -> Option<String> {
        TOLD.iter().find_map(|role| {
            let mut fields = self.fields.iter().filter(|field| field.role == *role);
            let of = |field: &Field| self.changes.iter().find(|it| it.field == field.name);
            let (field, change) = fields.find_map(|field| Some((field, of(field)?)))?;
            let value = self.value(field, &change.after, change.node);
            Some(format!("{} is now {value}", field.name))
        })
    }

    /// A value of a node with the names of nodes.
    fn value(&self, field: &Field, value: &Value, me: usize) -> String {
        let named = |node: usize| match node == me {
            true => "self",
            false => self.name(node),
        };
        let request = |id: &RequestId| format!("({}, {})", id.sequence, self.name(id.node.index()));
        let brackets = |items: Vec<String>| match field.kind {
            FieldKind::Set => format!("{{{}}}", items.join(" ")),
            _ => format!("[{}]", items.join(" ")),
        };
        match value {
            Value::Nil(word) | Value::Text(word) => (*word).to_owned(),
            Value::Flag(flag) => flag.to_string(),
            Value::Number(number) => number.to_string(),
            Value::Numbers(numbers) => brackets(numbers.iter().map(u64::to_string).collect()),
            Value::Node(node) => named(node.index()).to_owned(),
            Value::Nodes(nodes) => {
                let nodes = nodes.iter().map(|node| named(node.index()).to_owned());
                brackets(nodes.collect())
            }
            Value::Request(id) => request(id),
            Value::Requests(ids) => brackets(ids.iter().map(request).collect()),
            _ => "none".to_owned(),
        }
    }
}

fn verb(action: &'static str) -> &'static str {
    match action {
        "request" => "requests",
        "release" => "leaves",
        "crash" => "crashes",
        "restart" => "restarts",
        "settled" => "has recovered",
        "forget" => "is forgotten and recreated",
        "forget-all" => "and all others are forgotten and recreated",
        other => other,
    }
}

/// "a, b and c"
fn listed(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}
