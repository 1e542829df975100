//! The adapter from bytes to algorithms behaves exactly like the algorithms themselves.

use std::collections::VecDeque;
use std::sync::Arc;

use soloist_algorithms::kind::Visitor;
use soloist_algorithms::machine::{decode, encode};
use soloist_algorithms::{
    Algorithm, ByteOutbox, Choice, Config, Machine, NodeId, Outbox, Phase, Place, Shape, Start,
    Violation,
};

/// Far more deliveries than any algorithm needs for nine nodes to enter once.
const DELIVERIES_MAX: usize = 10_000;

/// The same cluster twice, once of algorithms and once of machines, in lockstep. Messages arrive in
/// the order in which they were sent, across all channels.
struct Pair<A: Algorithm> {
    nodes: Vec<A>,
    machines: Vec<Box<dyn Machine>>,
    peers: Vec<Vec<NodeId>>,
    under_way: VecDeque<(NodeId, NodeId, Vec<u8>)>,
    entries: Vec<usize>,
    out: Outbox<A::Message>,
    bytes_out: ByteOutbox,
}

impl<A: Algorithm> Pair<A> {
    fn new(choice: Choice, nodes: usize, start: Start) -> Self {
        let shape = Arc::new(A::Shape::default_for(nodes));
        let cluster = choice.cluster(None, nodes).unwrap();
        assert_eq!(cluster.nodes(), nodes);
        let config = |me| Config {
            place: Place {
                me,
                shape: Arc::clone(&shape),
            },
            start,
            variants: choice.variants,
        };
        let mut pair = Pair {
            nodes: NodeId::all(nodes).map(|me| A::new(&config(me))).collect(),
            machines: NodeId::all(nodes)
                .map(|me| cluster.machine(me, start, 0))
                .collect(),
            peers: NodeId::all(nodes).map(|me| cluster.peers(me)).collect(),
            under_way: VecDeque::new(),
            entries: vec![0; nodes],
            out: Outbox::new(),
            bytes_out: ByteOutbox::new(),
        };
        // A node that starts inside has entered once.
        if let Some(inside) = start.inside {
            pair.entries[inside.index()] = 1;
        }
        for node in NodeId::all(nodes) {
            pair.nodes[node.index()].start(&mut pair.out);
            pair.machines[node.index()].start(&mut pair.bytes_out);
            pair.compare(node);
        }
        pair
    }

    fn request(&mut self, node: NodeId) {
        let result = self.nodes[node.index()].request(&mut self.out);
        let of_machine = self.machines[node.index()].request(&mut self.bytes_out);
        assert_eq!(result, Ok(()));
        assert_eq!(of_machine, Ok(()));
        self.compare(node);
    }

    fn release(&mut self, node: NodeId) {
        let result = self.nodes[node.index()].release(&mut self.out);
        let of_machine = self.machines[node.index()].release(&mut self.bytes_out);
        assert_eq!(result, Ok(()));
        assert_eq!(of_machine, Ok(()));
        self.compare(node);
    }

    fn deliver(&mut self) {
        let (from, to, bytes) = self
            .under_way
            .pop_front()
            .expect("a node waits, no node is inside and no message is in flight");
        let message = decode(&bytes).expect("the bytes of a message");
        let result = self.nodes[to.index()].receive(from, message, &mut self.out);
        let of_machine = self.machines[to.index()].receive(from, &bytes, &mut self.bytes_out);
        assert_eq!(result, Ok(()));
        assert_eq!(of_machine, Ok(()));
        self.compare(to);
    }

    /// Asserts that both behaved the same, and puts their messages in flight.
    fn compare(&mut self, node: NodeId) {
        let phase = self.nodes[node.index()].phase();
        assert_eq!(phase, self.machines[node.index()].phase());
        assert_eq!(self.out.entered(), self.bytes_out.entered());
        self.entries[node.index()] += usize::from(self.out.entered());
        assert_eq!(self.out.sends().count(), self.bytes_out.sends().count());
        for ((to, message), outgoing) in self.out.sends().zip(self.bytes_out.sends()) {
            let mut bytes = Vec::new();
            encode(message, &mut bytes);
            assert_eq!((to, bytes.as_slice()), (outgoing.to, outgoing.bytes));
            assert_eq!(soloist_algorithms::Message::name(message), outgoing.name);
            assert!(self.peers[node.index()].contains(&to), "{node} to {to}");
            assert!(self.peers[to.index()].contains(&node), "{node} to {to}");
            self.under_way.push_back((node, to, bytes));
        }
        self.out.clear();
        self.bytes_out.clear();
    }

    fn inside(&self) -> Option<NodeId> {
        let is_inside = |node: &NodeId| self.nodes[node.index()].phase() == Phase::Inside;
        let mut inside = NodeId::all(self.nodes.len()).filter(is_inside);
        let one = inside.next();
        assert_eq!(inside.next(), None, "two nodes inside");
        one
    }

    /// All nodes request at once, and each leaves as soon as it is inside.
    fn everybody_enters_once(mut self) {
        for node in NodeId::all(self.nodes.len()) {
            if self.nodes[node.index()].phase() == Phase::Idle {
                self.request(node);
            }
        }
        for _ in 0..DELIVERIES_MAX {
            if let Some(inside) = self.inside() {
                self.release(inside);
            }
            if self.entries.iter().all(|&entries| entries == 1) && self.inside().is_none() {
                return;
            }
            if self.inside().is_none() {
                self.deliver();
            }
        }
        panic!("entries so far: {:?}", self.entries);
    }
}

struct EverybodyEntersOnce(Choice, usize, Start);

impl Visitor for EverybodyEntersOnce {
    type Output = ();
    fn visit<A: Algorithm>(self) {
        let EverybodyEntersOnce(choice, nodes, start) = self;
        println!("{} of {nodes} nodes, {start:?}", choice.name);
        Pair::<A>::new(choice, nodes, start).everybody_enters_once();
    }
}

#[test]
fn bytes_and_types_do_the_same() {
    for choice in Choice::all() {
        for nodes in 1..=9 {
            let (first, last) = (NodeId::new(0), NodeId::from_index(nodes - 1));
            for start in [
                Start::idle(first),
                Start::idle(last),
                Start::inside(first),
                Start {
                    home: first,
                    inside: Some(last),
                },
            ] {
                choice.kind.visit(EverybodyEntersOnce(choice, nodes, start));
            }
        }
    }
}

/// After a request, an idle node keeps only its clock, and the recreated machine continues from
/// there.
#[test]
fn an_idle_part_leaves_its_clock() {
    let cluster = Choice::parse("ra", "").unwrap().cluster(None, 2).unwrap();
    let (me, peer) = (NodeId::new(0), NodeId::new(1));
    let mut out = ByteOutbox::new();
    let mut part = cluster.machine(me, Start::idle(peer), 6);
    assert!(part.is_at_rest());
    part.request(&mut out).unwrap();
    assert_eq!(out.sends().next().unwrap().bytes, [0, 7]); // REQUEST number 7
    assert!(!part.is_at_rest());
    part.receive(peer, &[1], &mut out).unwrap(); // REPLY
    assert_eq!(part.phase(), Phase::Inside);
    assert!(!part.is_at_rest());
    part.release(&mut out).unwrap();
    assert!(part.is_at_rest());
    out.clear();
    let mut fresh = cluster.machine(me, Start::idle(peer), part.clock());
    fresh.request(&mut out).unwrap();
    assert_eq!(out.sends().next().unwrap().bytes, [0, 8]);
}

/// A new machine is quiescent unless `start` sends something or the node is inside.
#[test]
fn a_new_part_is_idle() {
    for choice in Choice::all() {
        let name = choice.name;
        let cluster = choice.cluster(None, 4).unwrap();
        let home = NodeId::new(1);
        for me in NodeId::all(4) {
            let mut out = ByteOutbox::new();
            let mut part = cluster.machine(me, Start::idle(home), 3);
            part.start(&mut out);
            let sets_out = out.sends().count() > 0;
            assert_eq!(part.is_at_rest(), !sets_out, "{name} at {me}");
            let inside = cluster.machine(me, Start::inside(me), 3);
            assert!(!inside.is_at_rest(), "{name} at {me}");
        }
    }
}

/// Links are needed only between these nodes.
#[test]
fn peers_are_those_of_the_shape() {
    let peers = |algorithm: &str, form: &str, nodes: usize, me: u32| {
        let cluster = Choice::parse(algorithm, "")
            .unwrap()
            .cluster(Some(form), nodes);
        let peers = cluster.unwrap().peers(NodeId::new(me));
        peers.into_iter().map(NodeId::index).collect::<Vec<_>>()
    };
    assert_eq!(peers("raymond", "line", 5, 2), [1, 3]);
    assert_eq!(peers("neilsen-mizuno", "line", 5, 2), [0, 1, 3, 4]);
    assert_eq!(peers("maekawa", "grid", 9, 4), [1, 3, 5, 7]);
    assert_eq!(peers("chaudhuri-karaata", "1x1x3", 3, 1), [0, 2]);
}

/// Bytes that are not a message change nothing, and the error reports their length.
#[test]
fn bytes_that_are_not_a_message_are_refused() {
    for choice in Choice::all() {
        let cluster = choice.cluster(None, 2).unwrap();
        let mut machine = cluster.machine(NodeId::new(0), Start::idle(NodeId::new(0)), 0);
        let mut out = ByteOutbox::new();
        let from = NodeId::new(1);
        for bytes in [&[] as &[u8], &[0xff], &[0xff; 100]] {
            let length = bytes.len();
            let refused = machine.receive(from, bytes, &mut out);
            assert_eq!(
                refused,
                Err(Violation::Undecodable { from, length }),
                "{}",
                choice.name
            );
            assert_eq!(machine.phase(), Phase::Idle);
            assert_eq!(out.sends().count(), 0);
            assert!(!out.entered());
        }
    }
}
