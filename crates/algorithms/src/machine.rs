//! Algorithms chosen at run time: bytes in, bytes out.
//!
//! One generic adapter turns any [`Algorithm`] into a trait object. It is for callers that carry
//! messages over a network and learn only from their configuration which algorithm runs.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use crate::kind::Visitor;
use crate::{
    Algorithm, Choice, Config, Effect, Message, NodeId, Outbox, Phase, Place, Shape, ShapeError,
    Start, VariantSet, Violation,
};

/// A cluster whose algorithm and shape were chosen at run time. Creates the nodes' state machines.
pub trait Cluster: Send + Sync {
    /// Number of nodes.
    fn nodes(&self) -> usize;

    /// The nodes that `me` may send to or receive from: see [`Algorithm::peers`].
    fn peers(&self, me: NodeId) -> Vec<NodeId>;

    /// The state machine of node `me` for a lock that begins with `start`. If its requests have
    /// numbers, they are above `clock`.
    ///
    /// A machine that is [quiescent](Machine::is_at_rest) may be forgotten: dropped, and recreated
    /// with an idle start, the same home, and its [clock](Machine::clock) or a later one. A node
    /// can therefore keep a single clock, the highest of all its machines.
    fn machine(&self, me: NodeId, start: Start, clock: u64) -> Box<dyn Machine>;
}

/// One node's state machine for one lock, with encoded messages. Follows [`Algorithm`] event by
/// event.
pub trait Machine: Send {
    /// See [`Algorithm::start`].
    fn start(&mut self, out: &mut ByteOutbox);
    /// See [`Algorithm::request`].
    fn request(&mut self, out: &mut ByteOutbox) -> Result<(), Violation>;
    /// See [`Algorithm::receive`]. Any bytes are safe: those that are not a message are refused.
    fn receive(
        &mut self,
        from: NodeId,
        bytes: &[u8],
        out: &mut ByteOutbox,
    ) -> Result<(), Violation>;
    /// See [`Algorithm::release`].
    fn release(&mut self, out: &mut ByteOutbox) -> Result<(), Violation>;
    /// See [`Algorithm::phase`].
    fn phase(&self) -> Phase;
    /// See [`Algorithm::has_token`].
    fn has_token(&self) -> bool;
    /// See [`Algorithm::clock`].
    fn clock(&self) -> u64;
    /// See [`Algorithm::is_at_rest`]. Always false while the node waits or is inside; otherwise
    /// costs at most as much as creating a new machine.
    fn is_at_rest(&self) -> bool;
    /// See [`Algorithm::rests_alone`].
    fn rests_alone(&self) -> bool;
    /// Clones the machine, for a search.
    fn copy(&self) -> Box<dyn Machine>;
    /// Hashes everything that determines future behaviour.
    fn digest(&self, hasher: &mut dyn Hasher);
}

impl Clone for Box<dyn Machine> {
    fn clone(&self) -> Self {
        self.copy()
    }
}

impl Hash for dyn Machine {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.digest(hasher);
    }
}

/// The effects of one transition, with encoded messages. Reused like [`Outbox`].
#[derive(Clone, Default, Debug)]
pub struct ByteOutbox {
    bytes: Vec<u8>,
    sends: Vec<ByteSend>,
    entered: bool,
}

#[derive(Clone, Copy, Debug)]
struct ByteSend {
    to: NodeId,
    name: &'static str,
    end: usize,
}

/// A message to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outgoing<'a> {
    /// The receiver.
    pub to: NodeId,
    /// The kind of message, for statistics.
    pub name: &'static str,
    /// The encoded message.
    pub bytes: &'a [u8],
}

impl ByteOutbox {
    /// An empty outbox.
    pub fn new() -> Self {
        Self::default()
    }

    /// The messages, in the order in which they were sent.
    pub fn sends(&self) -> impl Iterator<Item = Outgoing<'_>> {
        let begins = std::iter::once(0).chain(self.sends.iter().map(|send| send.end));
        self.sends.iter().zip(begins).map(|(send, begin)| Outgoing {
            to: send.to,
            name: send.name,
            bytes: &self.bytes[begin..send.end],
        })
    }

    /// Whether the node enters its critical section.
    pub fn entered(&self) -> bool {
        self.entered
    }

    /// Removes the effects but keeps the allocated memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.sends.clear();
        self.entered = false;
    }

    fn take<M: Message>(&mut self, out: &mut Outbox<M>) {
        for effect in out.drain() {
            match effect {
                Effect::Enter => self.entered = true,
                Effect::Send { to, message } => {
                    encode(&message, &mut self.bytes);
                    self.sends.push(ByteSend {
                        to,
                        name: message.name(),
                        end: self.bytes.len(),
                    });
                }
            }
        }
    }
}

/// Appends the encoding of a message.
pub fn encode<M: Message>(message: &M, bytes: &mut Vec<u8>) {
    let taken = std::mem::take(bytes);
    *bytes =
        postcard::to_extend(message, taken).expect("messages have no part that cannot be encoded");
}

/// Length of a message's encoding in bytes.
pub fn encoded_len<M: Message>(message: &M) -> usize {
    postcard::experimental::serialized_size(message)
        .expect("messages have no part that cannot be encoded")
}

/// Decodes a message. Returns `None` unless the bytes are exactly one message.
pub fn decode<M: Message>(bytes: &[u8]) -> Option<M> {
    match postcard::take_from_bytes(bytes) {
        Ok((message, [])) => Some(message),
        _ => None,
    }
}

impl Choice {
    /// A cluster of this algorithm, with the shape that `form` names or the default shape.
    ///
    /// ```
    /// use soloist_algorithms::{ByteOutbox, Choice, NodeId, Start};
    ///
    /// let cluster = Choice::parse("ricart-agrawala", "").unwrap().cluster(None, 2).unwrap();
    /// let mut node = cluster.machine(NodeId::new(0), Start::idle(NodeId::new(0)), 0);
    /// let mut out = ByteOutbox::new();
    /// node.request(&mut out).unwrap();
    /// assert_eq!(out.sends().next().unwrap().bytes, [0, 1]); // REQUEST number 1
    /// ```
    pub fn cluster(self, form: Option<&str>, nodes: usize) -> Result<Box<dyn Cluster>, ShapeError> {
        struct Make<'a>(Option<&'a str>, usize, VariantSet);
        impl Visitor for Make<'_> {
            type Output = Result<Box<dyn Cluster>, ShapeError>;
            fn visit<A: Algorithm>(self) -> Self::Output {
                let Make(form, nodes, variants) = self;
                crate::shape::check_nodes(nodes)?;
                let shape = match form {
                    Some(form) => A::Shape::parse(form, nodes)?,
                    None => A::Shape::default_for(nodes),
                };
                Ok(Box::new(ClusterOf::<A> {
                    shape: Arc::new(shape),
                    variants,
                }))
            }
        }
        self.kind.visit(Make(form, nodes, self.variants))
    }
}

impl Choice {
    /// The text of an encoded message, or `None` if the bytes are not a message of this algorithm.
    ///
    /// ```
    /// use soloist_algorithms::Choice;
    ///
    /// let choice = Choice::parse("ricart-agrawala", "").unwrap();
    /// assert_eq!(choice.describe_message(&[0, 1]).unwrap(), "REQUEST 1");
    /// assert_eq!(choice.describe_message(&[7]), None);
    /// ```
    pub fn describe_message(self, bytes: &[u8]) -> Option<String> {
        struct Describe<'a>(&'a [u8]);
        impl Visitor for Describe<'_> {
            type Output = Option<String>;
            fn visit<A: Algorithm>(self) -> Self::Output {
                decode::<A::Message>(self.0).map(|message| message.to_string())
            }
        }
        self.kind.visit(Describe(bytes))
    }
}

struct ClusterOf<A: Algorithm> {
    shape: Arc<A::Shape>,
    variants: VariantSet,
}

impl<A: Algorithm> ClusterOf<A> {
    fn place(&self, me: NodeId) -> Place<A::Shape> {
        let shape = Arc::clone(&self.shape);
        Place { me, shape }
    }
}

impl<A: Algorithm> Cluster for ClusterOf<A> {
    fn nodes(&self) -> usize {
        self.shape.nodes()
    }

    fn peers(&self, me: NodeId) -> Vec<NodeId> {
        A::peers(&self.place(me))
    }

    fn machine(&self, me: NodeId, start: Start, clock: u64) -> Box<dyn Machine> {
        let config = Config {
            place: self.place(me),
            start,
            variants: self.variants,
        };
        let mut node = A::new(&config);
        node.set_clock(clock);
        let out = Outbox::new();
        Box::new(MachineOf { node, config, out })
    }
}

struct MachineOf<A: Algorithm> {
    node: A,
    config: Config<A::Shape>,
    out: Outbox<A::Message>,
}

impl<A: Algorithm> Machine for MachineOf<A> {
    fn start(&mut self, out: &mut ByteOutbox) {
        self.node.start(&mut self.out);
        out.take(&mut self.out);
    }

    fn request(&mut self, out: &mut ByteOutbox) -> Result<(), Violation> {
        self.node.request(&mut self.out)?;
        out.take(&mut self.out);
        Ok(())
    }

    fn receive(
        &mut self,
        from: NodeId,
        bytes: &[u8],
        out: &mut ByteOutbox,
    ) -> Result<(), Violation> {
        let length = bytes.len();
        let message = decode(bytes).ok_or(Violation::Undecodable { from, length })?;
        self.node.receive(from, message, &mut self.out)?;
        out.take(&mut self.out);
        Ok(())
    }

    fn release(&mut self, out: &mut ByteOutbox) -> Result<(), Violation> {
        self.node.release(&mut self.out)?;
        out.take(&mut self.out);
        Ok(())
    }

    fn phase(&self) -> Phase {
        self.node.phase()
    }

    fn has_token(&self) -> bool {
        self.node.has_token()
    }

    fn clock(&self) -> u64 {
        self.node.clock()
    }

    fn is_at_rest(&self) -> bool {
        self.node.is_at_rest(&self.config)
    }

    fn rests_alone(&self) -> bool {
        A::rests_alone(self.config.variants, self.config.start)
    }

    fn copy(&self) -> Box<dyn Machine> {
        Box::new(MachineOf {
            node: self.node.clone(),
            config: self.config.clone(),
            out: Outbox::new(),
        })
    }

    fn digest(&self, mut hasher: &mut dyn Hasher) {
        self.node.hash(&mut hasher);
    }
}
