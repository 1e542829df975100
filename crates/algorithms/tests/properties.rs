//! Random runs of every algorithm. Among correct peers every node is served. Whatever a hostile
//! peer sends, a node neither panics nor breaks its own rules.
//!
//! Runs are reproducible. Set `PROPTEST_RNG_SEED` for other runs and `PROPTEST_CASES` for more.

use std::fmt::Write as _;
use std::sync::Arc;

use proptest::prelude::*;
use proptest::test_runner::{Config as RunnerConfig, RngSeed, TestCaseError, TestRunner};
use soloist_algorithms::kind::Visitor;
use soloist_algorithms::machine::{decode, encode};
use soloist_algorithms::{
    Algorithm, Channels, Config, Effect, Info, Kind, Message, NodeId, Outbox, Phase, Place, Shape,
    Start, VariantSet, Violation,
};

/// Far more deliveries than any algorithm needs to serve six waiting nodes.
const DRAIN_MAX: usize = 10_000;

/// The outer result is an error if a rule is broken, the inner one if the node refused the event.
type Checked<T = ()> = Result<T, TestCaseError>;
type Stepped = Checked<Result<(), Violation>>;
const DONE: Stepped = Ok(Ok(()));

/// A test case: a cluster and a sequence of steps. Numbers are taken modulo the number of choices.
#[derive(Clone, Debug)]
struct Case {
    nodes: usize,
    home: usize,
    inside: Option<usize>,
    /// The algorithm's variants that are enabled, without contradictory ones.
    variants: u16,
    steps: Vec<Step>,
}

#[derive(Clone, Debug)]
enum Step {
    /// A node requests, if it is idle.
    Request(usize),
    /// A node leaves, if it is inside.
    Release(usize),
    /// A message in flight arrives.
    Deliver(usize),
    /// A node requests or leaves, whether it may or not.
    Force { node: usize, release: bool },
    /// A message that was sent before arrives again, at another node, or with another sender.
    Replay {
        which: usize,
        from: Option<u32>,
        to: Option<usize>,
    },
    /// The same, with one byte changed.
    Mangle {
        which: usize,
        at: usize,
        byte: u8,
        to: Option<usize>,
    },
    /// Arbitrary bytes arrive from an arbitrary sender.
    Forge {
        from: u32,
        to: usize,
        bytes: Vec<u8>,
    },
    /// A node loses its state, if the algorithm supports recovery.
    Crash(usize),
}

fn correct_step() -> BoxedStrategy<Step> {
    prop_oneof![
        2 => any::<usize>().prop_map(Step::Request),
        2 => any::<usize>().prop_map(Step::Release),
        6 => any::<usize>().prop_map(Step::Deliver),
    ]
    .boxed()
}

fn hostile_step() -> BoxedStrategy<Step> {
    // Small numbers name nodes, some of them outside the cluster.
    let sender = || prop_oneof![9 => 0..8_u32, 1 => any::<u32>()];
    let byte = || prop_oneof![9 => 0..8_u8, 1 => any::<u8>()];
    let elsewhere = || prop::option::of(any::<usize>());
    prop_oneof![
        16 => correct_step(),
        1 => (any::<usize>(), any::<bool>())
            .prop_map(|(node, release)| Step::Force { node, release }),
        2 => (any::<usize>(), prop::option::of(sender()), elsewhere())
            .prop_map(|(which, from, to)| Step::Replay { which, from, to }),
        2 => (any::<usize>(), any::<usize>(), byte(), elsewhere())
            .prop_map(|(which, at, byte, to)| Step::Mangle { which, at, byte, to }),
        2 => (sender(), any::<usize>(), prop::collection::vec(byte(), 0..24))
            .prop_map(|(from, to, bytes)| Step::Forge { from, to, bytes }),
        1 => any::<usize>().prop_map(Step::Crash),
    ]
    .boxed()
}

fn case(step: BoxedStrategy<Step>) -> impl Strategy<Value = Case> {
    (
        1..=6_usize,
        any::<usize>(),
        prop::option::of(any::<usize>()),
        prop_oneof![Just(0), any::<u16>()],
        prop::collection::vec(step, 0..200),
    )
        .prop_map(|(nodes, home, inside, variants, steps)| Case {
            nodes,
            home: home % nodes,
            inside: inside.map(|inside| inside % nodes),
            variants,
            steps,
        })
}

/// The variants in the mask, without those that contradict an earlier one.
fn variants(info: &Info, mask: u16) -> VariantSet {
    let mut set = VariantSet::default();
    for variant in info.variants.iter().filter(|v| mask & (1 << v.bit) != 0) {
        let fits = |other: &soloist_algorithms::Variant| {
            !other.excludes.contains(&variant.name) && !variant.excludes.contains(&other.name)
        };
        if set.of(info).all(fits) {
            set = set.with(*variant);
        }
    }
    set
}

/// Whether the variants include rules that are known to be faulty.
fn is_faulty(info: &Info, variants: VariantSet) -> bool {
    variants.of(info).any(|variant| variant.is_faulty)
}

/// An event at one node.
enum Event<M> {
    Request,
    Release,
    Receive(NodeId, M),
}

#[derive(Clone)]
struct Envelope<M> {
    from: NodeId,
    to: NodeId,
    message: M,
}

struct Cluster<A: Algorithm> {
    configs: Vec<Config<A::Shape>>,
    nodes: Vec<A>,
    under_way: Vec<Envelope<A::Message>>,
    /// Every message ever sent.
    sent: Vec<Envelope<A::Message>>,
    out: Outbox<A::Message>,
    faulty: bool,
    incarnations: u64,
}

impl<A: Algorithm> Cluster<A> {
    fn new(case: &Case) -> Checked<Self> {
        let shape = Arc::new(A::Shape::default_for(case.nodes));
        let variants = variants(&A::INFO, case.variants);
        let config = |me| Config {
            place: Place {
                me,
                shape: Arc::clone(&shape),
            },
            start: Start {
                home: NodeId::from_index(case.home),
                inside: case.inside.map(NodeId::from_index),
            },
            variants,
        };
        let configs: Vec<_> = NodeId::all(case.nodes).map(config).collect();
        let mut cluster = Cluster {
            nodes: configs.iter().map(A::new).collect(),
            configs,
            under_way: Vec::new(),
            sent: Vec::new(),
            out: Outbox::new(),
            faulty: is_faulty(&A::INFO, variants),
            incarnations: 0,
        };
        for node in NodeId::all(case.nodes) {
            cluster.start(node)?;
        }
        Ok(cluster)
    }

    fn start(&mut self, node: NodeId) -> Checked {
        let before = self.nodes[node.index()].phase();
        self.nodes[node.index()].start(&mut self.out);
        prop_assert_eq!(self.nodes[node.index()].phase(), before);
        prop_assert!(!self.out.entered(), "starting is not an entry");
        self.check_invariant(node)?;
        self.post(node)
    }

    /// The node to which a step's number refers.
    fn pick(&self, number: usize) -> NodeId {
        NodeId::from_index(number % self.nodes.len())
    }

    fn phase(&self, node: NodeId) -> Phase {
        self.nodes[node.index()].phase()
    }

    /// Executes a step. The inner result reports whether the node refused it.
    fn step(&mut self, step: &Step) -> Stepped {
        match *step {
            Step::Request(number) => match self.pick(number) {
                node if self.phase(node) == Phase::Idle => self.happen(node, Event::Request),
                _ => DONE,
            },
            Step::Release(number) => match self.pick(number) {
                node if self.phase(node) == Phase::Inside => self.happen(node, Event::Release),
                _ => DONE,
            },
            Step::Deliver(number) => match number.checked_rem(self.under_way.len()) {
                Some(place) => self.deliver(place),
                None => DONE,
            },
            Step::Force { node, release } => {
                let event = if release {
                    Event::Release
                } else {
                    Event::Request
                };
                self.happen(self.pick(node), event)
            }
            Step::Replay { which, from, to } => {
                let Some(envelope) = self.once_sent(which, to) else {
                    return DONE;
                };
                let from = from.map_or(envelope.from, NodeId::new);
                self.happen(envelope.to, Event::Receive(from, envelope.message))
            }
            Step::Mangle {
                which,
                at,
                byte,
                to,
            } => {
                let Some(envelope) = self.once_sent(which, to) else {
                    return DONE;
                };
                let mut bytes = Vec::new();
                encode(&envelope.message, &mut bytes);
                let at = at % bytes.len();
                bytes[at] = byte;
                self.receive_bytes(envelope.from, envelope.to, &bytes)
            }
            Step::Forge {
                from,
                to,
                ref bytes,
            } => self.receive_bytes(NodeId::new(from), self.pick(to), bytes),
            Step::Crash(number) => self.crash(self.pick(number)).map(Ok),
        }
    }

    fn once_sent(&self, which: usize, to: Option<usize>) -> Option<Envelope<A::Message>> {
        let which = which.checked_rem(self.sent.len())?;
        let mut envelope = self.sent[which].clone();
        if let Some(to) = to {
            envelope.to = self.pick(to);
        }
        Some(envelope)
    }

    /// Delivers the message at this index or, over fifo channels, the first of its channel.
    fn deliver(&mut self, place: usize) -> Stepped {
        let channel = (self.under_way[place].from, self.under_way[place].to);
        let same = |envelope: &Envelope<_>| (envelope.from, envelope.to) == channel;
        let place = match A::INFO.channels {
            Channels::Any => place,
            Channels::Fifo => self.under_way.iter().position(same).unwrap_or(place),
        };
        let Envelope { from, to, message } = self.under_way.remove(place);
        self.happen(to, Event::Receive(from, message))
    }

    fn receive_bytes(&mut self, from: NodeId, to: NodeId, bytes: &[u8]) -> Stepped {
        match decode(bytes) {
            Some(message) => {
                reads_back(&message)?;
                self.happen(to, Event::Receive(from, message))
            }
            None => DONE,
        }
    }

    fn crash(&mut self, node: NodeId) -> Checked {
        self.incarnations += 1;
        let config = &self.configs[node.index()];
        if let Some(recovering) = A::recovering(config, self.incarnations) {
            self.nodes[node.index()] = recovering;
            self.start(node)?;
        }
        Ok(())
    }

    /// Applies an event to a node, and checks all rules for a single event.
    fn happen(&mut self, node: NodeId, event: Event<A::Message>) -> Stepped {
        let state = &mut self.nodes[node.index()];
        let before = state.clone();
        let (what, result) = match event {
            Event::Request => ("request", state.request(&mut self.out)),
            Event::Release => ("release", state.release(&mut self.out)),
            Event::Receive(from, message) => {
                let stranger = from.index() >= self.configs.len() || from == node;
                let result = state.receive(from, message, &mut self.out);
                prop_assert!(!stranger || result.is_err(), "node {} is not a peer", from);
                ("receive", result)
            }
        };
        let after = &self.nodes[node.index()];
        if result.is_err() {
            prop_assert_eq!(after, &before, "refused, and changed by it");
            prop_assert!(self.out.is_empty(), "refused: {:?}", self.out.effects());
            prop_assert!(
                !is_due(what, before.phase()),
                "{} refused while {}",
                what,
                before.phase()
            );
            return Ok(result);
        }
        check_phases(what, before.phase(), after.phase())?;
        let entries = self
            .out
            .effects()
            .iter()
            .filter(|e| matches!(e, Effect::Enter));
        let entered = before.phase() != Phase::Inside && after.phase() == Phase::Inside;
        prop_assert_eq!(entries.count(), usize::from(entered), "{} says enter", what);
        self.check_invariant(node)?;
        self.post(node)?;
        Ok(result)
    }

    fn check_invariant(&self, node: NodeId) -> Checked {
        let state = &self.nodes[node.index()];
        let invariant = state.invariant();
        prop_assert!(
            invariant.is_ok() || self.faulty,
            "{:?}: node {} is {:?}",
            invariant,
            node,
            state
        );
        Ok(())
    }

    /// Puts a node's messages in flight.
    fn post(&mut self, from: NodeId) -> Checked {
        for effect in self.out.drain() {
            let Effect::Send { to, message } = effect else {
                continue;
            };
            prop_assert!(to != from, "{} to itself", message);
            prop_assert!(to.index() < self.nodes.len(), "{} to no node", message);
            reads_back(&message)?;
            let envelope = Envelope { from, to, message };
            self.sent.push(envelope.clone());
            self.under_way.push(envelope);
        }
        Ok(())
    }

    /// Checks that at most one node is inside, and that the number of tokens is unchanged.
    fn check_world(&self, tokens: usize) -> Checked {
        let inside = self.nodes.iter().filter(|n| n.phase() == Phase::Inside);
        prop_assert!(inside.count() <= 1, "two nodes inside");
        prop_assert_eq!(self.tokens(), tokens, "tokens at nodes and in flight");
        Ok(())
    }

    fn tokens(&self) -> usize {
        let here = self.nodes.iter().filter(|n| n.has_token()).count();
        let travelling = self.under_way.iter().filter(|l| l.message.is_token());
        here + travelling.count()
    }
}

/// Whether a caller may cause this event.
fn is_due(what: &str, phase: Phase) -> bool {
    matches!(
        (what, phase),
        ("request", Phase::Idle) | ("release", Phase::Inside)
    )
}

fn check_phases(what: &str, before: Phase, after: Phase) -> Checked {
    let allowed = match what {
        "request" => before == Phase::Idle && after != Phase::Idle,
        "release" => before == Phase::Inside && after == Phase::Idle,
        _ => before == after || (before, after) == (Phase::Waiting, Phase::Inside),
    };
    prop_assert!(allowed, "{} turns {} into {}", what, before, after);
    Ok(())
}

fn reads_back<M: Message>(message: &M) -> Checked {
    let mut bytes = Vec::new();
    encode(message, &mut bytes);
    let read = decode::<M>(&bytes);
    prop_assert_eq!(read.as_ref(), Some(message));
    prop_assert!(message.kind() < M::KINDS.len(), "{} has no name", message);
    Ok(())
}

struct AmongCorrectPeers<'a>(&'a Case);

impl Visitor for AmongCorrectPeers<'_> {
    type Output = Checked;

    fn visit<A: Algorithm>(self) -> Checked {
        let AmongCorrectPeers(case) = self;
        let mut cluster = Cluster::<A>::new(case)?;
        if cluster.faulty {
            return Ok(());
        }
        let tokens = cluster.tokens();
        prop_assert!(tokens <= 1, "{} tokens at the start", tokens);
        for step in &case.steps {
            let result = cluster.step(step)?;
            prop_assert!(result.is_ok(), "{:?}", result);
            cluster.check_world(tokens)?;
        }
        // No further requests are made: every waiting node must be served.
        for _ in 0..DRAIN_MAX {
            let all = || NodeId::all(case.nodes);
            let inside = all().find(|&node| cluster.phase(node) == Phase::Inside);
            let waits = all().any(|node| cluster.phase(node) == Phase::Waiting);
            let result = match inside {
                Some(node) => cluster.happen(node, Event::Release)?,
                None if !waits => return Ok(()),
                None if cluster.under_way.is_empty() => break,
                None => cluster.deliver(0)?,
            };
            prop_assert!(result.is_ok(), "{:?}", result);
            cluster.check_world(tokens)?;
        }
        Err(TestCaseError::fail("a node waits forever"))
    }
}

struct AmongHostilePeers<'a>(&'a Case);

impl Visitor for AmongHostilePeers<'_> {
    type Output = Checked;

    fn visit<A: Algorithm>(self) -> Checked {
        let mut cluster = Cluster::<A>::new(self.0)?;
        for step in &self.0.steps {
            // A refusal is fine: it was checked that it changed nothing.
            let _ = cluster.step(step)?;
        }
        Ok(())
    }
}

/// Runs a property for each algorithm, with the same cases.
fn for_all(step: fn() -> BoxedStrategy<Step>, property: impl Fn(Kind, &Case) -> Checked) {
    let mut broken = String::new();
    for &kind in Kind::ALL {
        let mut config = RunnerConfig {
            failure_persistence: None,
            ..RunnerConfig::default()
        };
        config.cases = config.cases.max(1_000);
        if config.rng_seed == RngSeed::Random {
            config.rng_seed = RngSeed::Fixed(1);
        }
        let result = TestRunner::new(config).run(&case(step()), |case| property(kind, &case));
        if let Err(error) = result {
            let _ = writeln!(broken, "{kind}: {error}");
        }
    }
    assert!(broken.is_empty(), "{broken}");
}

#[test]
fn correct_peers_are_understood_and_everybody_is_served() {
    for_all(correct_step, |kind, case| {
        kind.visit(AmongCorrectPeers(case))
    });
}

#[test]
fn hostile_peers_cannot_break_a_node() {
    for_all(hostile_step, |kind, case| {
        kind.visit(AmongHostilePeers(case))
    });
}
