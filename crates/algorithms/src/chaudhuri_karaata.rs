//! Chaudhuri and Karaata 1998, *An O(n^1/3) algorithm for distributed mutual exclusion*,
//! Journal of Systems Architecture 45.
//!
//! **Channels**: fifo (Assumption A2). With the repair below nothing depends on it: the search
//! holds in any order too, so no message is refused for having overtaken another.
//! **Cost**, with c = n^1/3: alone from (i,j,k), with the token in plane w, exactly
//! 3(i+j) + 2|k-w| messages an entry, at most 8(c-1). Saturated 3(c-1) + 4(c-1)/c³, if the token's
//! round along the heads and back serves everybody once; the paper's own count of the moves between
//! planes, 2(c-1)/c² an entry, is never less. It is no bound while some plane's queue runs empty.
//!
//! Nodes form a [`Mesh`]. The head (0,0,k) of each plane has a token that is green (the plane is
//! privileged, nobody is inside), yellow (privileged, a node of the plane has the PERMIT) or red
//! (another plane is privileged). Who wants in asks its head; a head with a red token first has to
//! get the privilege along the line of heads.
//!
//! **Invariants**: I1 and I2, at most one green or yellow token in the world, counting the one that
//! travels in a PERMIT between heads. At each head: a green token means an empty queue; a red one
//! that the head has asked exactly while its queue is not empty. A queue never holds more than the
//! nodes of the plane and the two neighbouring heads (Theorem 4 (ii), restated; with fifo channels
//! one less).
//!
//! **Errata**: by the letter of procedures P1-P4 (variant `as-published`)
//! - C1: a REQUEST of a plane goes to all heads, also beyond the privileged one, and PERMIT deletes
//!   it only on its own way back. A head that keeps the stale copy obeys it when it gets the token next,
//!   gives the token away and strands its own plane.
//! - C2: a head that gives the token away with requests of its own plane queued asks for nothing;
//!   they wait for ever.
//! - C3: each request that reaches a red head is flooded anew, and stale copies pile up: queues
//!   outgrow Theorem 4, without bound.
//!
//! The lab's search and scenarios show each in its smallest case.
//!
//! Repair, with the same three messages: the line of heads is Raymond's tree. A red head knows the
//! neighbouring head `towards` the token and whether it has `asked` it; it asks once, in its own
//! name; a queue holds own-plane nodes and neighbouring heads; the token goes one plane at a time,
//! the direction follows it, and if something is still queued a REQUEST follows at once.
//!
//! Corrected in both: `(i - i, j, k)` is `(i - 1, j, k)`; sends beyond the mesh's edge are none;
//! RELEASE goes hop by hop, as section 2.2 says. The links number n - 1 (a spanning tree), not
//! 13(n^1/3 - 1), which is right for n = 27 only.

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::shape::Mesh;
use crate::{
    Algorithm, Channels, Config, Info, Message, NodeId, NodeSet, Outbox, Phase, Place, Start,
    Variant, Violation,
};

/// Requests of a plane as printed: to all heads, anew for each node that asks, and never again for
/// those that are left when the token goes.
pub const AS_PUBLISHED: Variant = Variant {
    bit: 0,
    name: "as-published",
    about: "procedures P1-P4 by the letter: requests between planes get lost, nodes wait for ever",
    excludes: &[],
};

type Out = Outbox<ChaudhuriKaraataMessage>;

/// One node's part.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ChaudhuriKaraata {
    place: Place<Mesh>,
    /// Inside is the paper's `mutex = TRUE`.
    phase: Phase,
    /// What only the head of a plane has; apart, so that a million other nodes stay small.
    head: Option<Box<Head>>,
}

/// The head's part: token and queue of node (0,0,k).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Head {
    place: Place<Mesh>,
    as_published: bool,
    token: Token,
    /// Q: nodes of this plane, and heads of neighbouring planes (as published: of any plane).
    queue: VecDeque<NodeId>,
    /// What is in the queue, to refuse it a second time without a search: a bit a node of the plane,
    /// then one for the head below and one for the head above.
    queued: NodeSet,
}

/// The token of a head, by its colour.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Token {
    /// Another plane is privileged.
    Red {
        /// The neighbouring head on the way to the token (not used as published).
        towards: NodeId,
        /// Whether it was asked for the token, and has not sent it yet (not used as published).
        asked: bool,
    },
    /// The plane is privileged and nobody is inside.
    Green,
    /// The plane is privileged, and a node of it is inside or about to be.
    Yellow {
        /// That node.
        granted: NodeId,
    },
}

/// What nodes say to each other. Each carries a node, as in section 2.2.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum ChaudhuriKaraataMessage {
    /// This node wants the privilege. In a plane: from the node that wants in, hop by hop to its
    /// head, which grants it or puts it in its queue. Between planes: from a head whose token is
    /// red to the neighbouring head towards the token, always in the sender's own name.
    Request(NodeId),
    /// In a plane, from the head hop by hop down to this node: you may enter. The head's token is
    /// yellow until the RELEASE.
    Permit(NodeId),
    /// Between planes, to this head: your token is green now, mine is red. Called PERMIT as well.
    Interchange(NodeId),
    /// This node has left. Hop by hop to its head, whose token becomes green again.
    Release(NodeId),
}

use ChaudhuriKaraataMessage::{Interchange, Permit, Release, Request};

impl ChaudhuriKaraataMessage {
    fn node(self) -> NodeId {
        match self {
            Request(node) | Permit(node) | Interchange(node) | Release(node) => node,
        }
    }
}

impl Message for ChaudhuriKaraataMessage {
    const KINDS: &'static [&'static str] = &["REQUEST", "PERMIT", "RELEASE"];

    fn kind(&self) -> usize {
        match self {
            Request(_) => 0,
            Permit(_) | Interchange(_) => 1,
            Release(_) => 2,
        }
    }

    fn is_token(&self) -> bool {
        matches!(self, Interchange(_))
    }

    fn examples() -> Vec<Self> {
        let node = NodeId::new;
        vec![
            Request(node(4)),
            Permit(node(4)),
            Interchange(node(u32::MAX)),
            Release(node(4)),
        ]
    }
}

impl fmt::Display for ChaudhuriKaraataMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name(), self.node())?;
        if self.is_token() {
            f.write_str(" (token)")?;
        }
        Ok(())
    }
}

impl Algorithm for ChaudhuriKaraata {
    type Message = ChaudhuriKaraataMessage;
    type Shape = Mesh;

    const INFO: Info = Info {
        name: "chaudhuri-karaata",
        aliases: &["mesh"],
        paper: "Chaudhuri, Karaata 1998, An O(n^1/3) algorithm for distributed mutual exclusion",
        channels: Channels::Fifo,
        variants: &[AS_PUBLISHED],
        presets: &[],
    };

    fn new(config: &Config<Mesh>) -> Self {
        let me = config.place.me;
        let is_head = config.place.shape.is_head(me);
        ChaudhuriKaraata {
            place: config.place.clone(),
            phase: config.start.phase(me),
            head: is_head.then(|| Box::new(Head::new(config))),
        }
    }

    // Procedure P1, up to "wait for (mutex = TRUE)".
    fn request(&mut self, out: &mut Out) -> Result<(), Violation> {
        self.phase.may_request()?;
        self.phase = Phase::Waiting;
        let me = self.place.me;
        match self.head.as_deref_mut() {
            Some(head) => head.on_request(me, out),
            None => self.pass_up(Request(me), out),
        }
        self.enter_if_granted(out);
        Ok(())
    }

    fn receive(
        &mut self,
        from: NodeId,
        message: Self::Message,
        out: &mut Out,
    ) -> Result<(), Violation> {
        self.place.is_peer(from)?;
        let (node, nodes) = (message.node(), self.place.nodes());
        if node.index() >= nodes {
            return Err(Violation::NoSuchNode { node, nodes });
        }
        let refuse = |reason| Violation::unexpected(from, &message, reason);
        let place = &self.place;
        match (message, self.head.as_deref_mut()) {
            (Request(origin), Some(head)) => {
                head.check_request(from, origin).map_err(refuse)?;
                head.on_request(origin, out);
            }
            (Interchange(to), Some(head)) => {
                head.check_interchange(from, to).map_err(refuse)?;
                head.on_interchange(to, out);
            }
            (Release(member), Some(head)) => {
                head.check_release(from, member).map_err(refuse)?;
                head.turn_green(out); // P4
            }
            // P2 and P4, the last two branches: on to the head.
            (Request(origin) | Release(origin), None) => {
                if place.shape.towards_member(place.me, origin) != Some(from) {
                    return Err(refuse(OFF_THE_WAY));
                }
                self.pass_up(message, out);
            }
            (Permit(member), None) => self.on_permit(from, member, out).map_err(refuse)?,
            (Permit(_), Some(_)) => return Err(refuse("a head permits itself")),
            (Interchange(_), None) => return Err(refuse("only heads have tokens")),
        }
        self.enter_if_granted(out);
        Ok(())
    }

    // Procedure P1, from "Release critical section" on.
    fn release(&mut self, out: &mut Out) -> Result<(), Violation> {
        self.phase.may_release()?;
        self.phase = Phase::Idle;
        match self.head.as_deref_mut() {
            Some(head) => head.turn_green(out),
            None => self.pass_up(Release(self.place.me), out),
        }
        Ok(())
    }

    fn phase(&self) -> Phase {
        self.phase
    }

    fn has_token(&self) -> bool {
        let token = self.head.as_deref().map(|head| head.token);
        matches!(token, Some(Token::Green | Token::Yellow { .. }))
    }

    fn invariant(&self) -> Result<(), &'static str> {
        let Some(head) = self.head.as_deref() else {
            return Ok(());
        };
        let me = self.place.me;
        let granted_itself = matches!(head.token, Token::Yellow { granted } if granted == me);
        if granted_itself != (self.phase == Phase::Inside) {
            return Err("a head is inside exactly while it has granted itself");
        }
        if head.has_queued(me) != (self.phase == Phase::Waiting) {
            return Err("a head waits exactly while it is in its own queue");
        }
        head.invariant()
    }
}

/// Why a message is refused that a neighbour cannot have got or made.
const OFF_THE_WAY: &str = "the sender is not next to this node on the message's way";

impl ChaudhuriKaraata {
    fn pass_up(&self, message: ChaudhuriKaraataMessage, out: &mut Out) {
        if let Some(next) = self.place.shape.towards_head(self.place.me) {
            out.send(next, message);
        }
    }

    /// P3, at a node that is no head. An error says why it is refused.
    fn on_permit(
        &mut self,
        from: NodeId,
        member: NodeId,
        out: &mut Out,
    ) -> Result<(), &'static str> {
        let Place { me, shape } = &self.place;
        if shape.towards_head(*me) != Some(from) {
            return Err(OFF_THE_WAY);
        }
        if member == *me {
            if self.phase != Phase::Waiting {
                return Err("this node has not asked");
            }
            self.phase = Phase::Inside;
            out.enter();
        } else {
            let next = shape.towards_member(*me, member).ok_or(OFF_THE_WAY)?;
            out.send(next, Permit(member));
        }
        Ok(())
    }

    /// A head that granted itself enters: `mutex := TRUE` in P1 and in grant_permission.
    fn enter_if_granted(&mut self, out: &mut Out) {
        let granted = self.place.me;
        let token = self.head.as_deref().map(|head| head.token);
        if self.phase == Phase::Waiting && token == Some(Token::Yellow { granted }) {
            self.phase = Phase::Inside;
            out.enter();
        }
    }
}

impl Head {
    fn new(config: &Config<Mesh>) -> Self {
        let Place { me, shape } = &config.place;
        Head {
            place: config.place.clone(),
            as_published: config.variants.has(AS_PUBLISHED),
            token: Token::first(*me, shape, config.start),
            queue: VecDeque::new(),
            queued: NodeSet::new(shape.plane_len(shape.plane(*me)) + 2),
        }
    }

    /// P1 of the head itself, and P2 at a head.
    fn on_request(&mut self, origin: NodeId, out: &mut Out) {
        self.enqueue(origin);
        if self.as_published {
            self.spread(origin, out);
        } else {
            self.ask_once(out);
        }
        if self.token == Token::Green {
            self.grant_next(out);
        }
    }

    /// The repaired rule for other planes: a head with a red token asks for it in its own name,
    /// once, on the side where it is.
    fn ask_once(&mut self, out: &mut Out) {
        if let Token::Red { towards, asked } = &mut self.token
            && !*asked
        {
            *asked = true;
            out.send(*towards, Request(self.place.me));
        }
    }

    /// The published rule for other planes, in P1 and P2: another head's request goes on to the
    /// next plane whatever the token's colour here (C1); a request of this plane at a red head goes
    /// out to both sides, each time (C3). Search tests as_published_a_stale_request_strands_a_plane
    /// and as_published_queues_outgrow_theorem_4.
    fn spread(&self, origin: NodeId, out: &mut Out) {
        let Place { me, shape } = &self.place;
        let sides = shape.heads_beside(*me).into_iter().flatten();
        match shape.head_towards(*me, origin) {
            Some(came_from) => {
                for next in sides.filter(|side| *side != came_from) {
                    out.send(next, Request(origin));
                }
            }
            None if matches!(self.token, Token::Red { .. }) => {
                for side in sides {
                    out.send(side, Request(*me));
                }
            }
            None => {}
        }
    }

    /// P3 at a head: "token := GREEN".
    fn on_interchange(&mut self, to: NodeId, out: &mut Out) {
        if to == self.place.me {
            self.turn_green(out);
        } else if let Some(next) = self.place.shape.head_towards(self.place.me, to) {
            // As published the token passes through red heads, and this deletes the request only
            // on its way (C1). "delete" is read as: the first one, if there are several.
            if let Some(first) = self.queue.iter().position(|entry| *entry == to) {
                self.queue.remove(first);
            }
            out.send(next, Interchange(to));
        }
    }

    /// The end of P1, of P3 and P4: the token is green, and the next one's if somebody is queued.
    fn turn_green(&mut self, out: &mut Out) {
        self.token = Token::Green;
        self.grant_next(out);
    }

    /// "dequeue; grant_permission".
    fn grant_next(&mut self, out: &mut Out) {
        let Some(next) = self.dequeue() else {
            return;
        };
        let Place { me, shape } = &self.place;
        let Some(towards) = shape.head_towards(*me, next) else {
            self.token = Token::Yellow { granted: next };
            if let Some(hop) = shape.towards_member(*me, next) {
                out.send(hop, Permit(next));
            }
            return;
        };
        let asked = false;
        self.token = Token::Red { towards, asked };
        out.send(towards, Interchange(next));
        // As published nobody asks for those who are left in the queue (C2): search test
        // as_published_a_head_does_not_ask_again.
        if !self.as_published && !self.queue.is_empty() {
            self.ask_once(out);
        }
    }

    fn enqueue(&mut self, entry: NodeId) {
        self.queue.push_back(entry);
        if let Some(slot) = self.slot(entry) {
            self.queued.insert(slot);
        }
    }

    fn dequeue(&mut self) -> Option<NodeId> {
        let entry = self.queue.pop_front()?;
        if let Some(slot) = self.slot(entry) {
            self.queued.remove(slot);
        }
        Some(entry)
    }

    fn has_queued(&self, entry: NodeId) -> bool {
        self.slot(entry)
            .is_some_and(|slot| self.queued.contains(slot))
    }

    /// An entry's bit in `queued`. Other planes have none as published, where one of them can be
    /// queued many times.
    fn slot(&self, entry: NodeId) -> Option<NodeId> {
        let Place { me, shape } = &self.place;
        let members = shape.plane_len(shape.plane(*me));
        let index = match shape.plane(entry).cmp(&shape.plane(*me)) {
            Ordering::Equal => shape.index_in_plane(entry),
            _ if self.as_published => return None,
            Ordering::Less => members,
            Ordering::Greater => members + 1,
        };
        Some(NodeId::from_index(index))
    }

    fn check_request(&self, from: NodeId, origin: NodeId) -> Result<(), &'static str> {
        let Place { me, shape } = &self.place;
        if self.has_queued(origin) {
            return Err("it asked before and was not granted yet");
        }
        let Some(side) = shape.head_towards(*me, origin) else {
            let on_the_way = shape.towards_member(*me, origin) == Some(from);
            return on_the_way.then_some(()).ok_or(OFF_THE_WAY);
        };
        if from != side || !shape.is_head(origin) {
            return Err(OFF_THE_WAY);
        }
        if self.as_published {
            return Ok(());
        }
        if origin != from {
            return Err("a head asks in its own name");
        }
        // It can ask us back only with, or after, the token that we asked it for.
        if self.token.is_red(from, false) {
            return Err("the token is on its side and was not asked for");
        }
        Ok(())
    }

    fn check_interchange(&self, from: NodeId, to: NodeId) -> Result<(), &'static str> {
        let Place { me, shape } = &self.place;
        if !self.as_published {
            let expected = to == *me && self.token.is_red(from, true);
            return expected.then_some(()).ok_or("no token is expected from it");
        }
        let goes_back = shape.head_towards(*me, to) == Some(from);
        if !shape.heads_beside(*me).contains(&Some(from)) || !shape.is_head(to) || goes_back {
            return Err(OFF_THE_WAY);
        }
        if !matches!(self.token, Token::Red { .. }) {
            return Err("the token is here");
        }
        Ok(())
    }

    fn check_release(&self, from: NodeId, member: NodeId) -> Result<(), &'static str> {
        if self.place.shape.towards_member(self.place.me, member) != Some(from) {
            return Err(OFF_THE_WAY);
        }
        if self.token != (Token::Yellow { granted: member }) {
            return Err("it was not granted the critical section");
        }
        Ok(())
    }

    fn invariant(&self) -> Result<(), &'static str> {
        let shape = &self.place.shape;
        if self.token == Token::Green && !self.queue.is_empty() {
            return Err("somebody is queued although the token is green");
        }
        // Theorem 4 (ii) counts the plane's nodes and a request a plane, c² + c.
        let members = shape.plane_len(shape.plane(self.place.me));
        let others = if self.as_published { shape.planes() } else { 2 };
        if self.queue.len() > members + others {
            return Err("more is queued than Theorem 4 allows");
        }
        if self.as_published {
            return Ok(());
        }
        if self.queue.len() != self.queued.len() {
            return Err("something is queued twice");
        }
        match self.token {
            Token::Red { asked, .. } if asked == self.queue.is_empty() => {
                Err("a red head has asked exactly while somebody is queued")
            }
            _ => Ok(()),
        }
    }
}

impl Token {
    /// Green at the head of the plane where the token starts, yellow if a node there is inside.
    fn first(head: NodeId, shape: &Mesh, start: Start) -> Self {
        let asked = false;
        match (shape.head_towards(head, start.token()), start.inside) {
            (Some(towards), _) => Token::Red { towards, asked },
            (None, Some(granted)) => Token::Yellow { granted },
            (None, None) => Token::Green,
        }
    }

    fn is_red(self, towards: NodeId, asked: bool) -> bool {
        self == Token::Red { towards, asked }
    }
}

impl fmt::Display for ChaudhuriKaraata {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.phase)?;
        let Some(head) = self.head.as_deref() else {
            return Ok(());
        };
        match head.token {
            Token::Green => f.write_str(" token=GREEN")?,
            Token::Yellow { granted } => write!(f, " token=YELLOW granted={granted}")?,
            Token::Red { .. } if head.as_published => f.write_str(" token=RED")?,
            Token::Red { towards, asked } => {
                write!(f, " token=RED towards={towards} asked={asked}")?;
            }
        }
        write!(f, " Q={:?}", head.queue)
    }
}
