//! Runs as text: a script and the full transcript of what the nodes do.
//!
//! A scenario starts with a head, one `key value` per line, followed by steps, each after `> `. The
//! lines under a step are its transcript. [`replay`] rewrites them, so a scenario is correct if
//! replaying it changes nothing. Lines that start with `#` are comments.
//!
//! | head | |
//! |---|---|
//! | `algorithm NAME` | required |
//! | `variant A,B` | |
//! | `names A B C` or `nodes N` | one is required; the names stand for nodes 0, 1, 2... |
//! | `shape FORM` or `listing LINE; LINE` | the shape; a listing uses node numbers |
//! | `home A`, `inside A` | where the token starts; which node starts inside |
//! | `channels fifo\|any` | whether messages may overtake each other |
//!
//! | step | |
//! |---|---|
//! | `start` | shows what the nodes did when they started, if anything |
//! | `request A`, `release A` | |
//! | `deliver A B [KIND\|MESSAGE]` | delivers the oldest (such) message from A to B |
//! | `run` | delivers everything in the order sent, until no message is in flight |
//! | `show A` | shows A's state |
//! | `forget all [A CLOCK]` | re-creates all nodes; all must be idle, with no message in flight |
//! | `forget A [CLOCK]` | re-creates A, which must be quiescent (`is_at_rest`) |
//! | `crash A` | A fails and loses its state; it is back but has not restarted yet |
//! | `restart A`, `settled A` | its waits are over; recovery goes on |
//! | `lose A B [KIND\|MESSAGE]` | the oldest (such) message from A to B is lost; B has crashed |
//!
//! A re-created node keeps its clock, unless a clock is given for A.
//!
//! ```
//! let text = "algorithm central\nnodes 2\n\n> request 1\n1 -> 0 REQUEST\n> run\n0 -> 1 GRANT\n1 enters\n";
//! assert_eq!(soloist_lab::scenario::replay(text).unwrap(), text);
//! ```

use std::collections::{HashSet, VecDeque};
use std::fmt::Write as _;
use std::sync::Arc;

use soloist_algorithms::kind::Visitor;
use soloist_algorithms::shape::check_nodes;
use soloist_algorithms::{
    Algorithm, Channels, Choice, Config, Effect, Message, NameError, NodeId, Outbox, Phase, Place,
    ShapeError, Start,
};
use soloist_core::rules::RuleError;

use crate::network::Envelope;
use crate::script;
pub use crate::script::{Difference, first_difference};
use crate::shape_spec::ShapeSpec;
use crate::world::{self, Event, Fault, World};

/// Why a text is not a valid scenario.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScenarioError {
    /// A line that cannot be parsed or executed.
    #[error("line {line}: {reason}")]
    Line {
        /// The line's number, from 1.
        line: usize,
        /// What is wrong.
        reason: String,
    },
    /// The head lacks the algorithm or the number of nodes.
    #[error("the head of a scenario needs '{0}'")]
    Missing(&'static str),
    /// More nodes than fit into memory with this algorithm.
    #[error("{algorithm} supports at most {most} nodes in memory, not {nodes}")]
    TooManyNodes {
        /// The algorithm.
        algorithm: &'static str,
        /// The number of nodes given.
        nodes: usize,
        /// The maximum.
        most: usize,
    },
    /// An unknown name.
    #[error(transparent)]
    Name(#[from] NameError),
    /// An invalid shape.
    #[error(transparent)]
    Shape(#[from] ShapeError),
    /// Rules that a node would not take.
    #[error(transparent)]
    Rule(#[from] RuleError),
}

/// Runs a scenario and returns its text with the actual transcript under each step.
pub fn replay(text: &str) -> Result<String, ScenarioError> {
    let head = Head::read(text)?;
    head.choice.kind.visit(Replay { text, head: &head })
}

struct Replay<'a> {
    text: &'a str,
    head: &'a Head,
}

impl Visitor for Replay<'_> {
    type Output = Result<String, ScenarioError>;

    fn visit<A: Algorithm>(self) -> Self::Output {
        let mut stage = Stage::<A>::new(self.head)?;
        script::play(self.text, |step| {
            stage.step(step)?;
            Ok(std::mem::take(&mut stage.transcript))
        })
    }
}

/// The parsed head of a scenario.
struct Head {
    choice: Choice,
    names: Vec<String>,
    shape: ShapeSpec,
    start: Start,
    channels: Channels,
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

    fn read(text: &str) -> Result<Self, ScenarioError> {
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
        let mut known = HashSet::new();
        if let Some(twice) = names.iter().find(|name| !known.insert(*name)) {
            return Err(bad("names", &format!("'{twice}' is listed twice")));
        }
        let node = |key: &str| match value(key) {
            None => Ok(None),
            Some(name) => find(&names, name)
                .map(Some)
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
        })
    }
}

fn find(names: &[String], name: &str) -> Option<NodeId> {
    let index = names.iter().position(|known| known == name)?;
    Some(NodeId::from_index(index))
}

/// The cluster on which the steps are executed.
struct Stage<'a, A: Algorithm> {
    head: &'a Head,
    shape: Arc<A::Shape>,
    world: World<A>,
    /// Messages in flight, in the order sent.
    under_way: VecDeque<Envelope<A::Message>>,
    out: Outbox<A::Message>,
    incarnations: u64,
    transcript: String,
}

/// The steps of a scenario, as an error lists them.
const STEPS: [&str; 12] = [
    "start",
    "request NODE",
    "release NODE",
    "deliver FROM TO [MESSAGE]",
    "run",
    "show NODE",
    "forget NODE [CLOCK]",
    "forget all [NODE CLOCK]",
    "crash NODE",
    "restart NODE",
    "settled NODE",
    "lose FROM TO [MESSAGE]",
];

impl<'a, A: Algorithm> Stage<'a, A> {
    fn new(head: &'a Head) -> Result<Self, ScenarioError> {
        let nodes = head.names.len();
        if nodes > A::NODES_MAX {
            return Err(ScenarioError::TooManyNodes {
                algorithm: A::INFO.name,
                nodes,
                most: A::NODES_MAX,
            });
        }
        let shape = Arc::new(head.shape.build(nodes)?);
        let world = World::new(&shape, head.start, head.choice.variants);
        let mut stage = Stage {
            head,
            shape,
            world,
            under_way: VecDeque::new(),
            out: Outbox::new(),
            incarnations: 0,
            transcript: String::new(),
        };
        for node in NodeId::all(nodes) {
            let result = stage.world.start(node, &mut stage.out);
            stage.note(node, result);
        }
        Ok(stage)
    }

    fn step(&mut self, step: &str) -> Result<(), String> {
        let words: Vec<&str> = step.split_whitespace().collect();
        match words[..] {
            ["start"] => {} // all nodes have started; their effects appear under the first step
            ["request", who] => self.happen(self.node(who)?, Event::Request),
            ["release", who] => self.happen(self.node(who)?, Event::Release),
            ["deliver", from, to, ..] => {
                let place = self.find(self.node(from)?, self.node(to)?, &words[3..].join(" "))?;
                self.arrive(place);
            }
            ["lose", from, to, ..] => {
                let to = self.node(to)?;
                if !self.world.node(to).is_recovering() {
                    return Err(format!("{} is not down", self.name(to)));
                }
                let place = self.find(self.node(from)?, to, &words[3..].join(" "))?;
                self.under_way.remove(place);
            }
            ["run"] => self.run()?,
            ["show", who] => {
                let state = self.world.node(self.node(who)?).to_string();
                let _ = writeln!(self.transcript, "{who}: {state}");
            }
            ["forget", "all"] => self.forget_all(None)?,
            ["forget", "all", who, clock] => {
                self.forget_all(Some((self.node(who)?, parse_clock(clock)?)))?;
            }
            ["forget", who] => self.forget(self.node(who)?, None)?,
            ["forget", who, clock] => {
                self.forget(self.node(who)?, Some(parse_clock(clock)?))?;
            }
            ["crash", who] => self.crash(self.node(who)?)?,
            ["restart", who] => {
                let node = self.node(who)?;
                let result = self.world.start(node, &mut self.out);
                self.note(node, result);
            }
            ["settled", who] => {
                let node = self.node(who)?;
                let result = self.world.settled(node, &mut self.out);
                self.note(node, result);
            }
            _ => return Err(format!("'{step}' is not a step; use {}", STEPS.join(", "))),
        }
        Ok(())
    }

    fn node(&self, name: &str) -> Result<NodeId, String> {
        find(&self.head.names, name).ok_or_else(|| format!("no node '{name}'"))
    }

    fn name(&self, node: NodeId) -> &'a str {
        &self.head.names[node.index()]
    }

    fn happen(&mut self, node: NodeId, event: fn(NodeId) -> Event<A::Message>) {
        let result = self.world.apply(event(node), &mut self.out);
        self.note(node, result);
    }

    /// Returns the position of the oldest matching message. `given` is its kind, its full text, or
    /// empty to match any message.
    fn find(&self, from: NodeId, to: NodeId, given: &str) -> Result<usize, String> {
        let of_channel = |l: &Envelope<A::Message>| (l.from, l.to) == (from, to);
        let wanted = |l: &Envelope<A::Message>| {
            let is_it = || l.message.name() == given || l.message.to_string() == given;
            of_channel(l) && (given.is_empty() || is_it())
        };
        let place = self
            .under_way
            .iter()
            .position(wanted)
            .ok_or("no such message is in flight")?;
        if self.head.channels == Channels::Fifo
            && self.under_way.iter().position(of_channel) != Some(place)
        {
            return Err("an earlier message from there is in flight: channels are fifo".to_owned());
        }
        Ok(place)
    }

    fn run(&mut self) -> Result<(), String> {
        for _ in 0..10_000 {
            if self.under_way.is_empty() {
                return Ok(());
            }
            self.arrive(0);
        }
        Err("messages never stop; use 'deliver'".to_owned())
    }

    fn arrive(&mut self, place: usize) {
        let Envelope { from, to, message } = self
            .under_way
            .remove(place)
            .expect("the index is in the list");
        let event = Event::Deliver { from, to, message };
        let result = self.world.apply(event, &mut self.out);
        self.note(to, result);
    }

    fn config(&self, node: NodeId) -> Config<A::Shape> {
        Config {
            place: Place {
                me: node,
                shape: Arc::clone(&self.shape),
            },
            start: self.head.start,
            variants: self.head.choice.variants,
        }
    }

    fn forget(&mut self, node: NodeId, clock: Option<u64>) -> Result<(), String> {
        let config = self.config(node);
        let state = self.world.node(node);
        if !state.is_at_rest(&config) {
            return Err(format!(
                "{} is not idle enough to be forgotten",
                self.name(node)
            ));
        }
        let jump = jump(state.clock(), clock)?;
        self.world.forget(node, &config, jump);
        Ok(())
    }

    fn forget_all(&mut self, jumps: Option<(NodeId, u64)>) -> Result<(), String> {
        if !world::forgets_together::<A>(&self.config(NodeId::new(0))) {
            return Err(
                "nodes of this algorithm are forgotten one by one; use 'forget NODE'".to_owned(),
            );
        }
        let is_idle = |(_, state): (NodeId, &A)| state.phase() == Phase::Idle;
        if !self.under_way.is_empty() || !self.world.iter().all(is_idle) {
            return Err("a node waits or is inside, or a message is in flight".to_owned());
        }
        let nodes: Vec<_> = self.world.iter().map(|(node, _)| node).collect();
        for node in nodes {
            let clock = jumps
                .filter(|(who, _)| *who == node)
                .map(|(_, clock)| clock);
            let jump = jump(self.world.node(node).clock(), clock)?;
            let config = self.config(node);
            self.world.forget(node, &config, jump);
        }
        Ok(())
    }

    fn crash(&mut self, node: NodeId) -> Result<(), String> {
        self.incarnations += 1;
        let config = self.config(node);
        let state = A::recovering(&config, self.incarnations)
            .ok_or("this algorithm does not support crashes")?;
        self.world.crash(node, state);
        Ok(())
    }

    /// Writes a node's effects to the transcript and puts its messages in flight.
    fn note(&mut self, node: NodeId, result: Result<(), Fault>) {
        let me = self.name(node);
        for effect in self.out.drain() {
            match effect {
                Effect::Enter => {
                    let _ = writeln!(self.transcript, "{me} enters");
                }
                Effect::Send { to, message } => {
                    let peer = &self.head.names[to.index()];
                    let _ = writeln!(self.transcript, "{me} -> {peer} {message}");
                    self.under_way.push_back(Envelope {
                        from: node,
                        to,
                        message,
                    });
                }
            }
        }
        if let Err(fault) = result {
            let _ = writeln!(self.transcript, "FAULT {fault}");
        }
    }
}

fn parse_clock(text: &str) -> Result<u64, String> {
    text.parse()
        .map_err(|_| format!("invalid clock '{text}': use a whole number"))
}

/// How far a clock has to jump to reach the given value.
fn jump(now: u64, clock: Option<u64>) -> Result<u64, String> {
    let jump = clock.unwrap_or(now).checked_sub(now);
    jump.ok_or_else(|| format!("its clock is at {now} and cannot go back"))
}
