//! All reachable states of a small cluster, with the Rust handlers.

use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::hash::Hash;
use std::sync::Arc;

use soloist_algorithms::{
    Algorithm, Channels, Config, NodeId, Outbox, Phase, Place, Shape, Start, Variant, VariantSet,
    Violation,
};

use crate::Model;
use crate::text::fields;

/// A cluster, and how often its nodes request.
#[derive(Clone, Debug)]
pub struct Case {
    /// The shape, in the notation of the command line, or an edge list.
    pub shape: String,
    /// Number of nodes.
    pub nodes: usize,
    /// The variants in use.
    pub variants: Vec<Variant>,
    /// What channels may do.
    pub channels: Channels,
    /// How often each node may request, or `None` for always.
    pub requests: Option<Vec<u32>>,
    /// Where the token starts: each of these nodes, idle and inside.
    pub roots: Vec<usize>,
}

/// What was visited.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Totals {
    /// Distinct calls of a handler, and initial states of nodes.
    pub calls: usize,
    /// States of the cluster.
    pub states: usize,
    /// Steps between them.
    pub steps: usize,
}

/// The first difference between a Rust machine and its model.
#[derive(Debug)]
pub enum Difference {
    /// The model does not make this call, or not with this result.
    Call(String),
    /// Rust refuses what the model does.
    Refused(String),
    /// All calls are the same, but the model makes more.
    Totals {
        /// Visited with the Rust handlers.
        rust: Totals,
        /// Visited by the model.
        model: Totals,
    },
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Difference::Call(call) => write!(f, "not in the model: {call}"),
            Difference::Refused(reason) => write!(f, "refused: {reason}"),
            Difference::Totals { rust, model } => write!(f, "Rust {rust:?}, model {model:?}"),
        }
    }
}

impl Case {
    pub(crate) fn arguments(&self) -> Vec<String> {
        let join = |numbers: Vec<String>| numbers.join(",");
        let names = self.variants.iter().map(|v| v.name.to_owned()).collect();
        let left = self.left().iter().map(ToString::to_string).collect();
        let roots = self.roots.iter().map(ToString::to_string).collect();
        let channels = match self.channels {
            Channels::Fifo => "fifo",
            Channels::Any => "any",
        };
        vec![
            format!("nodes={}", self.nodes),
            format!("variants={}", join(names)),
            format!("channels={channels}"),
            format!("requests={}", join(left)),
            format!("roots={}", join(roots)),
        ]
    }

    /// How often each node may still request; -1 for always.
    fn left(&self) -> Vec<i64> {
        match &self.requests {
            Some(requests) => requests.iter().copied().map(i64::from).collect(),
            None => vec![-1; self.nodes],
        }
    }

    /// The shape of the cluster.
    pub fn shape<S: Shape>(&self) -> S {
        let shape = if self.shape.contains(char::is_whitespace) {
            S::from_listing(&self.shape, self.nodes)
        } else {
            S::parse(&self.shape, self.nodes)
        };
        shape.expect("a valid shape")
    }
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Packet<M> {
    from: usize,
    to: usize,
    message: M,
}

/// A state of the cluster. Channels that preserve order are lists, oldest first; others are sorted.
struct State<A: Algorithm> {
    nodes: Vec<A>,
    flight: Vec<Packet<A::Message>>,
    left: Vec<i64>,
}

impl<A: Algorithm> Clone for State<A> {
    fn clone(&self) -> Self {
        State {
            nodes: self.nodes.clone(),
            flight: self.flight.clone(),
            left: self.left.clone(),
        }
    }
}

impl<A: Algorithm> PartialEq for State<A> {
    fn eq(&self, other: &Self) -> bool {
        self.nodes == other.nodes && self.flight == other.flight && self.left == other.left
    }
}

impl<A: Algorithm> Eq for State<A> {}

impl<A: Algorithm> Hash for State<A> {
    fn hash<H: std::hash::Hasher>(&self, hasher: &mut H) {
        self.nodes.hash(hasher);
        self.flight.hash(hasher);
        self.left.hash(hasher);
    }
}

#[derive(Clone, PartialEq, Eq, Hash)]
enum Event<M> {
    Request,
    Release,
    From(usize, M),
}

struct Explorer<'a, A: Algorithm> {
    case: &'a Case,
    skip: &'a [&'a str],
    model: &'a Model,
    seen: HashSet<State<A>>,
    open: VecDeque<State<A>>,
    /// The calls that were looked up.
    calls: HashSet<(usize, A, Event<A::Message>)>,
    totals: Totals,
}

/// Visits the cluster of `case` with the Rust handlers, and looks up each call in the model.
/// `skip` names the fields of the state that are constant or derived from others.
pub fn compare<A: Algorithm>(
    case: &Case,
    skip: &[&str],
    model: &Model,
) -> Result<Totals, Difference> {
    let mut explorer = Explorer::<A> {
        case,
        skip,
        model,
        seen: HashSet::new(),
        open: VecDeque::new(),
        calls: HashSet::new(),
        totals: Totals::default(),
    };
    explorer.start()?;
    while let Some(state) = explorer.open.pop_front() {
        explorer.expand(&state)?;
    }
    let rust = explorer.totals;
    if rust == model.totals {
        Ok(rust)
    } else {
        let model = model.totals;
        Err(Difference::Totals { rust, model })
    }
}

impl<A: Algorithm> Explorer<'_, A> {
    fn start(&mut self) -> Result<(), Difference> {
        let shape = Arc::new(self.case.shape::<A::Shape>());
        let variants = self.case.variants.iter();
        let variants = variants.fold(VariantSet::default(), |set, one| set.with(*one));
        for &root in &self.case.roots {
            for held in [false, true] {
                let home = NodeId::from_index(root);
                let start = if held {
                    Start::inside(home)
                } else {
                    Start::idle(home)
                };
                let mut state = State {
                    nodes: Vec::new(),
                    flight: Vec::new(),
                    left: self.case.left(),
                };
                for me in NodeId::all(self.case.nodes) {
                    let shape = Arc::clone(&shape);
                    let place = Place { me, shape };
                    let mut node = A::new(&Config {
                        place,
                        start,
                        variants,
                    });
                    let mut out = Outbox::new();
                    node.start(&mut out);
                    let me = me.index();
                    let text = fields(&node, self.skip);
                    let sends = sends_text(&out);
                    self.look_up(&format!("start {root} {held} | {me} | {text} | {sends}"))?;
                    state.nodes.push(node);
                    send(&mut state, me, &out);
                }
                self.visit(state);
            }
        }
        Ok(())
    }

    fn look_up(&mut self, call: &str) -> Result<(), Difference> {
        if !self.model.lines.contains(call) {
            return Err(Difference::Call(call.to_owned()));
        }
        self.totals.calls += 1;
        Ok(())
    }

    fn visit(&mut self, mut state: State<A>) {
        match self.case.channels {
            Channels::Fifo => state.flight.sort_by_key(|packet| (packet.from, packet.to)),
            Channels::Any => state
                .flight
                .sort_by(|a, b| (a.from, a.to, &a.message).cmp(&(b.from, b.to, &b.message))),
        }
        if self.seen.insert(state.clone()) {
            self.totals.states += 1;
            self.open.push_back(state);
        }
    }

    fn expand(&mut self, state: &State<A>) -> Result<(), Difference> {
        for node in 0..self.case.nodes {
            if state.left[node] != 0 {
                let mut next = state.clone();
                next.left[node] -= i64::from(state.left[node] > 0);
                self.step(state, next, node, Event::Request)?;
            }
            self.step(state, state.clone(), node, Event::Release)?;
        }
        for (at, packet) in state.flight.iter().enumerate() {
            let is_same = |other: &Packet<A::Message>| match self.case.channels {
                Channels::Fifo => (other.from, other.to) == (packet.from, packet.to),
                Channels::Any => other == packet,
            };
            if !state.flight[..at].iter().any(is_same) {
                let mut next = state.clone();
                next.flight.remove(at);
                let event = Event::From(packet.from, packet.message.clone());
                self.step(state, next, packet.to, event)?;
            }
        }
        Ok(())
    }

    /// One call: `next` is `state` without what the event uses up.
    fn step(
        &mut self,
        state: &State<A>,
        mut next: State<A>,
        node: usize,
        event: Event<A::Message>,
    ) -> Result<(), Difference> {
        let mut out = Outbox::new();
        let machine = &mut next.nodes[node];
        let done = match &event {
            Event::Request => machine.request(&mut out),
            Event::Release => machine.release(&mut out),
            Event::From(from, message) => {
                machine.receive(NodeId::from_index(*from), message.clone(), &mut out)
            }
        };
        let before = &state.nodes[node];
        match (done, &event) {
            (Ok(()), _) => {}
            (Err(Violation::NotIdle(_) | Violation::NotInside(_)), _) => {
                assert!(
                    *before == next.nodes[node] && out.is_empty(),
                    "refused, yet changed"
                );
                return Ok(());
            }
            (Err(violation), _) => return Err(Difference::Refused(violation.to_string())),
        }
        self.totals.steps += 1;
        let after = &next.nodes[node];
        let enters = before.phase() != Phase::Inside && after.phase() == Phase::Inside;
        if self.calls.insert((node, before.clone(), event.clone())) {
            let what = match &event {
                Event::Request => "request".to_owned(),
                Event::Release => "release".to_owned(),
                Event::From(from, message) => format!("from {from}: {message:?}"),
            };
            let call = format!(
                "{node} | {} | {what} | {} | {}",
                fields(before, self.skip),
                fields(after, self.skip),
                sends_text(&out),
            );
            if out.entered() != enters {
                return Err(Difference::Call(format!("entry is not reported: {call}")));
            }
            self.look_up(&call)?;
        }
        send(&mut next, node, &out);
        self.visit(next);
        Ok(())
    }
}

fn send<A: Algorithm>(state: &mut State<A>, from: usize, out: &Outbox<A::Message>) {
    state.flight.extend(out.sends().map(|(to, message)| Packet {
        from,
        to: to.index(),
        message: message.clone(),
    }));
}

fn sends_text<M: fmt::Debug>(out: &Outbox<M>) -> String {
    let sends: Vec<String> = out
        .sends()
        .map(|(to, message)| format!("{to}: {message:?}"))
        .collect();
    sends.join("; ")
}
