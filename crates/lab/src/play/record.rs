//! Records a run as steps that can be taken forwards and backwards.

use std::collections::VecDeque;
use std::sync::Arc;

use soloist_algorithms::{
    Algorithm, Config, Effect, Field, FieldKind, Message as _, NodeId, PHASE, Phase, Role, Shape,
    Value,
};

use super::layout::layout;
use super::ring::{Waits, is_circle, sentence};
use super::story::Told;
use super::types::{Change, Choice, Layout, Message, PlayFault, Question, State, Step};
use super::{MESSAGES_MAX, STEPS_MAX, VALUES_MAX, captions};
use crate::scenario::{Deed, Head, Posted, StageEvent, Witness};
use crate::search::{Bounds, Crashes, Enabled, Follower, Limits};
use crate::world::{Fault, World};

pub(super) const TOKEN: Field =
    Field::new("has token", FieldKind::Flag, "whether the token is here").role(Role::Token);
const FENCE: Field = Field::new(
    "fence",
    FieldKind::Number,
    "highest fence that the node knows",
)
.role(Role::Fence);

/// The phase of a node that has crashed, has not recovered yet, and does not wait.
pub(super) const DOWN: &str = "down";

/// Watches a scenario and records it.
pub(super) struct Recorder<'a> {
    head: &'a Head,
    /// Whether nodes crash or are forgotten in the scenario.
    crashes: bool,
    forgets: bool,
    pub comments: captions::Comments,
    /// The line of the next step.
    pub line: usize,
    time: Option<f64>,
    /// The lab's own fields come first. That of the phase replaces the algorithm's.
    pub fields: Vec<Field>,
    pub plan: Option<Layout>,
    pub rows: Vec<(usize, usize)>,
    pub start: Vec<State>,
    pub flight: Vec<Message>,
    pub start_fault: Option<PlayFault>,
    pub steps: Vec<Step>,
    /// The states of all nodes now.
    values: Vec<Vec<Value>>,
    fences: Vec<u64>,
    /// For each message, by id: the step that sent it, and the fence that it carries.
    sent: Vec<(Option<usize>, u64)>,
    in_flight: usize,
    /// Number of values that are recorded.
    recorded: usize,
    /// The rules of a search, unless the cluster is too large for one.
    pub follower: Option<Follower>,
    fault: Option<Fault>,
}

impl<'a> Recorder<'a> {
    pub(super) fn new(head: &'a Head, text: &str) -> Self {
        let has = |step: &str| text.lines().any(|line| line.starts_with(step));
        Recorder {
            head,
            crashes: has("> crash "),
            forgets: has("> forget "),
            comments: captions::Comments::default(),
            line: 1,
            time: None,
            fields: Vec::new(),
            plan: None,
            rows: Vec::new(),
            start: Vec::new(),
            flight: Vec::new(),
            start_fault: None,
            steps: Vec::new(),
            values: Vec::new(),
            fences: vec![0; head.names.len()],
            sent: Vec::new(),
            in_flight: 0,
            recorded: 0,
            follower: None,
            fault: None,
        }
    }

    /// What may happen next, as a search sees it.
    pub(super) fn choices<A: Algorithm>(
        &mut self,
        config: &Config<A::Shape>,
        under_way: &VecDeque<Posted<A::Message>>,
    ) -> Vec<Choice> {
        let name = |node| self.head.name(node).to_owned();
        let recovers = A::recovering(config, 1).is_some();
        let Some(follower) = &mut self.follower else {
            return Vec::new();
        };
        let choice = |enabled: Enabled| {
            let message = enabled.message.as_ref();
            let posted = message.and_then(|(from, to, text)| {
                under_way.iter().find(|posted| {
                    let envelope = &posted.envelope;
                    (envelope.from, envelope.to) == (*from, *to)
                        && envelope.message.to_string() == *text
                })
            });
            // A step has the numbers of nodes in the message, and its label their names.
            let named = posted.map(|posted| posted.envelope.message.named(&name));
            Choice {
                label: label(&enabled.text, named.as_deref()),
                text: enabled.text,
                node: enabled.node.index(),
                from: message.map(|(from, ..)| from.index()),
                message: posted.map(|posted| posted.id),
            }
        };
        let enabled = follower.enabled(recovers, &name);
        enabled.into_iter().map(choice).collect()
    }

    fn bounds<A: Algorithm>(&self, shape: &Arc<A::Shape>) -> Bounds<A::Shape> {
        let crashes = Crashes {
            most: if self.crashes { Limits::CRASHES_MAX } else { 0 },
            loses_messages: self.crashes,
            ..Crashes::default()
        };
        Bounds {
            shape: Arc::clone(shape),
            start: self.head.start,
            variants: self.head.choice.variants,
            requests: vec![0; self.head.names.len()],
            limits: Limits {
                crashes,
                forgets: self.forgets,
                ..Limits::new(self.head.channels)
            },
        }
    }

    fn values<A: Algorithm>(&self, node: NodeId, world: &World<A>) -> Vec<Value> {
        let state = world.node(node);
        let mut fields = Vec::new();
        state.fields(&mut fields);
        let own = fields.into_iter().filter(|(field, _)| !is_phase(field));
        let phase = match state.phase() {
            Phase::Idle if state.is_recovering() => Value::Text(DOWN),
            phase => phase.into(),
        };
        let mut values = vec![phase];
        if self.fields[1] == TOKEN {
            values.push(state.has_token().into());
        }
        values.push(self.fences[node.index()].into());
        values.extend(own.map(|(_, value)| value));
        assert_eq!(
            values.len(),
            self.fields.len(),
            "every state has the same fields"
        );
        values
    }

    fn messages<A: Algorithm>(
        &mut self,
        event: &StageEvent<'_, A>,
        step: Option<usize>,
    ) -> Result<Vec<Message>, String> {
        let me = event.node.index();
        let mut messages = Vec::new();
        let is_sent = |effect: &&Effect<A::Message>| matches!(effect, Effect::Send { .. });
        let count = self.sent.len() + event.effects.iter().filter(is_sent).count();
        if count > MESSAGES_MAX {
            return Err(format!(
                "the run has {count} messages by now, and the player keeps at most {MESSAGES_MAX}: \
                 use fewer nodes or fewer requests"
            ));
        }
        for effect in event.effects {
            match effect {
                Effect::Enter => self.fences[me] += 1,
                Effect::Send { to, message } => {
                    let id = event.first_id + messages.len();
                    let message = self.message(id, event.node, *to, message);
                    self.record(message.content.len() / 8)?;
                    messages.push(message);
                    self.sent.push((step, self.fences[me]));
                }
            }
        }
        self.in_flight += messages.len();
        Ok(messages)
    }

    /// The message that arrived or was lost, if there is one.
    fn arrived<M: soloist_algorithms::Message>(&self, deed: &Deed<'_, M>) -> Option<Message> {
        let (Deed::Deliver(posted) | Deed::Lose(posted)) = deed else {
            return None;
        };
        let envelope = &posted.envelope;
        Some(self.message(posted.id, envelope.from, envelope.to, &envelope.message))
    }

    fn message<M: soloist_algorithms::Message>(
        &self,
        id: usize,
        from: NodeId,
        to: NodeId,
        message: &M,
    ) -> Message {
        let text = message.named(&|node| self.head.name(node).to_owned());
        let content = text.strip_prefix(message.name()).unwrap_or(&text);
        Message {
            id,
            from: from.index(),
            to: to.index(),
            label: message.name(),
            content: content.trim().to_owned(),
            token: message.is_token(),
        }
    }

    /// Counts values that are recorded.
    fn record(&mut self, values: usize) -> Result<(), String> {
        self.recorded += values;
        match self.recorded <= VALUES_MAX {
            true => Ok(()),
            false => Err(format!(
                "the states and messages of the run have {} values by now, and the player keeps at \
                 most {VALUES_MAX}: use fewer nodes or fewer steps",
                self.recorded
            )),
        }
    }

    /// Puts the states of nodes up to date, and returns what changed.
    fn changes<A: Algorithm>(
        &mut self,
        nodes: impl Iterator<Item = NodeId>,
        world: &World<A>,
    ) -> Result<Vec<Change>, String> {
        let mut changes = Vec::new();
        for node in nodes {
            let after = self.values(node, world);
            let before = std::mem::replace(&mut self.values[node.index()], after.clone());
            let pairs = before.into_iter().zip(after).zip(&self.fields);
            let first = changes.len();
            changes.extend(pairs.filter_map(|((before, after), field)| {
                (before != after).then_some(Change {
                    node: node.index(),
                    field: field.name,
                    before,
                    after,
                })
            }));
            let new = changes[first..].iter();
            self.record(new.map(|it| size(&it.before) + size(&it.after)).sum())?;
        }
        Ok(changes)
    }

    /// Judges a step by the properties of a search, or by those that need no search if the cluster
    /// is too large.
    fn judge<A: Algorithm>(
        &mut self,
        event: &StageEvent<'_, A>,
        world: &World<A>,
    ) -> Result<Option<Fault>, String> {
        if let Some(follower) = &mut self.follower {
            return follower.follow::<A>(event.node, &event.deed);
        }
        if event.fault.is_some() {
            return Ok(event.fault.cloned());
        }
        let node = event.node;
        if let Err(broken) = world.node(node).invariant() {
            return Ok(Some(Fault::Invariant { node, broken }));
        }
        let is_stuck = self.in_flight == 0 && world.inside() == 0;
        let waits = |(_, state): &(NodeId, &A)| state.phase() == Phase::Waiting;
        let waiting = is_stuck.then(|| world.iter().find(waits)).flatten();
        let recovers = || world.iter().any(|(_, state)| state.is_recovering());
        Ok(waiting
            .filter(|_| !recovers())
            .map(|(node, _)| Fault::Deadlock(node)))
    }

    /// Describes a fault, unless it was there before.
    fn new_fault(&mut self, fault: Option<Fault>) -> Option<PlayFault> {
        if fault == self.fault {
            return None;
        }
        self.fault.clone_from(&fault);
        fault.map(|fault| self.describe(&fault))
    }

    fn describe(&self, fault: &Fault) -> PlayFault {
        let name = |node| self.head.name(node).to_owned();
        let (kind, ring) = match fault {
            Fault::TwoInside { newcomer, other } => {
                let pair = (newcomer.index(), other.index(), "both inside");
                ("two-inside", vec![pair])
            }
            Fault::Deadlock(_) => {
                let plan = self.plan.as_ref();
                let waits = Waits {
                    fields: &self.fields,
                    values: &self.values,
                    sets: plan.and_then(|plan| plan.sets.as_deref()),
                };
                ("deadlock", waits.ring())
            }
            Fault::Refused { .. } => ("refused", Vec::new()),
            Fault::Endless => ("unrest", Vec::new()),
            Fault::Invariant { .. } | Fault::ClusterInvariant(_) => ("invariant", Vec::new()),
            Fault::Tokens(_) => ("tokens", Vec::new()),
            Fault::Order { .. } => ("order", Vec::new()),
            Fault::Fence(_) => ("fence", Vec::new()),
        };
        let text = match fault.is_deadlock() && is_circle(&ring) {
            true => format!("deadlock: {}", sentence(&ring, &self.head.names)),
            false => fault.text(&name),
        };
        PlayFault { kind, text, ring }
    }

    /// How the run ended, or `None` if it could go on without a new request.
    pub(super) fn ended(&self) -> Option<&'static str> {
        let idle = Value::from(Phase::Idle);
        if self.fault.as_ref().is_some_and(Fault::is_deadlock) {
            Some("deadlock")
        } else if self.in_flight == 0 && self.values.iter().all(|values| values[0] == idle) {
            Some("all requests are served")
        } else {
            None
        }
    }
}

impl<A: Algorithm> Witness<A> for Recorder<'_> {
    fn opened(&mut self, shape: &Arc<A::Shape>, world: &World<A>) -> Result<(), String> {
        let has_token = world.iter().any(|(_, state)| state.has_token());
        let mut own = Vec::new();
        world.node(NodeId::new(0)).fields(&mut own);
        self.fields.push(PHASE);
        if has_token || self.flight.iter().any(|message| message.token) {
            self.fields.push(TOKEN);
        }
        self.fields.push(FENCE);
        let own = own.into_iter().map(|(field, _)| *field);
        self.fields.extend(own.filter(|field| !is_phase(field)));
        if let Some(inside) = self.head.start.inside {
            self.fences[inside.index()] = 1;
        }
        for node in NodeId::all(world.len()) {
            let values = self.values(node, world);
            self.record(values.iter().map(size).sum())?;
            self.values.push(values);
        }
        let names = || self.fields.iter().map(|field| field.name);
        let state = |values: &Vec<Value>| State(names().zip(values.iter().cloned()).collect());
        self.start = self.values.iter().map(state).collect();
        let (plan, rows) = layout(&shape.plan(), world.len());
        (self.plan, self.rows) = (Some(plan), rows);
        if world.len() <= Limits::NODES_MAX {
            let (follower, fault) = Follower::new::<A>(&self.bounds::<A>(shape))?;
            self.follower = Some(follower);
            self.start_fault = self.new_fault(fault);
        }
        Ok(())
    }

    fn happened(&mut self, event: StageEvent<'_, A>, world: &World<A>) -> Result<(), String> {
        if let Deed::Start = event.deed {
            let messages = self.messages(&event, None)?;
            self.flight.extend(messages);
            return Ok(());
        }
        if self.steps.len() == STEPS_MAX {
            return Err(format!(
                "the run is longer than {STEPS_MAX} steps: use fewer requests"
            ));
        }
        let got = match event.deed {
            Deed::Deliver(posted) | Deed::Lose(posted) => Some(posted.id),
            _ => None,
        };
        let refused = matches!(event.fault, Some(Fault::Refused { .. }));
        if let Some(id) = got {
            self.in_flight -= 1;
            if matches!(event.deed, Deed::Deliver(_)) && !refused {
                let fence = &mut self.fences[event.node.index()];
                *fence = (*fence).max(self.sent[id].1);
            }
        }
        let number = self.steps.len();
        let sends = self.messages(&event, Some(number))?;
        let changes = match event.deed {
            Deed::ForgetAll(_) => self.changes(NodeId::all(world.len()), world)?,
            _ => self.changes(std::iter::once(event.node), world)?,
        };
        let fault = self.judge(&event, world)?;
        let fault = self.new_fault(fault);
        let (node, action) = (event.node.index(), action(&event.deed));
        let enter = event.effects.contains(&Effect::Enter);
        let arrived = self.arrived(&event.deed);
        let told = Told {
            head: self.head,
            fields: &self.fields,
            action,
            node,
            got: arrived.as_ref(),
            sends: &sends,
            enter,
            changes: &changes,
        };
        let told = told.sentence();
        self.record(told.len() / 8)?;
        self.steps.push(Step {
            line: self.line,
            action,
            node,
            time: self.time.unwrap_or((number + 1) as f64),
            cause: got.and_then(|id| self.sent[id].0),
            got,
            sends,
            enter,
            leave: matches!(event.deed, Deed::Release) && !refused,
            changes,
            fault,
            caption: self.comments.take_caption(),
            told,
            ask: self.comments.take_question().map(|text| Question { text }),
        });
        Ok(())
    }

    /// The states that a transcript of the run shows count too.
    fn shown(&mut self, node: NodeId, _: &World<A>) -> Result<(), String> {
        let values = &self.values[node.index()];
        self.record(values.iter().map(size).sum())
    }

    fn time(&mut self, time: f64) -> Result<(), String> {
        match self.time {
            Some(now) if time < now => Err(format!("it is {now} already: time cannot go back")),
            _ => {
                self.time = Some(time);
                Ok(())
            }
        }
    }
}

/// Number of values in one.
fn size(value: &Value) -> usize {
    match value {
        Value::Numbers(numbers) => 1 + numbers.len(),
        Value::Nodes(nodes) => 1 + nodes.len(),
        Value::Requests(requests) => 1 + requests.len(),
        _ => 1,
    }
}

fn is_phase(field: &Field) -> bool {
    field.role == Some(Role::Phase)
}

fn action<M>(deed: &Deed<'_, M>) -> &'static str {
    match deed {
        Deed::Start => "start",
        Deed::Request => "request",
        Deed::Release => "release",
        Deed::Deliver(_) => "deliver",
        Deed::Lose(_) => "lose",
        Deed::Crash(_) => "crash",
        Deed::Restart => "restart",
        Deed::Settled => "settled",
        Deed::Forget(_) => "forget",
        Deed::ForgetAll(_) => "forget-all",
    }
}

/// A step of a scenario for people: "A → B REQUEST arrives". The message is given with the names of
/// nodes.
fn label(step: &str, message: Option<&str>) -> String {
    let words: Vec<&str> = step.splitn(4, ' ').collect();
    match words[..] {
        ["deliver", from, to, text] => format!("{from} → {to} {} arrives", message.unwrap_or(text)),
        ["lose", from, to, text] => format!("{from} → {to} {} is lost", message.unwrap_or(text)),
        ["request", node] => format!("{node} requests"),
        ["release", node] => format!("{node} leaves"),
        ["crash", node] => format!("{node} crashes"),
        ["restart", node] => format!("{node} restarts"),
        ["settled", node] => format!("{node} settles"),
        _ => step.to_owned(),
    }
}
