//! Chaudhuri and Karaata 1998, *An O(n^1/3) algorithm for distributed mutual exclusion*,
//! Journal of Systems Architecture 45.
//!
//! **Channels**: fifo (Assumption A2). With the repair below nothing depends on it: the search
//! finds no violation in any order, so no message is refused for having overtaken another.
//! **Cost**, with c = n^1/3: for a single request from (i,j,k), with the token in plane w, exactly
//! 3(i+j) + 2|k-w| messages per entry, at most 8(c-1). Saturated: 3(c-1) + 4(c-1)/c³, if the
//! token's round along the heads and back serves every node once. The paper's own count of the
//! moves between planes, 2(c-1)/c² per entry, is never less. Neither is a bound while some plane's
//! queue is empty.
//!
//! Nodes form a [`Mesh`]. The head (0,0,k) of each plane has a token that is green (the plane is
//! privileged, no node is inside), yellow (privileged, a node of the plane has the PERMIT) or red
//! (another plane is privileged). A node sends its request to its head. A head with a red token
//! must first get the privilege along the line of heads.
//!
//! **Invariants**: I1 and I2, at most one green or yellow token in the cluster, including one that
//! travels in a PERMIT between heads. At each head, a green token implies an empty queue, and a red
//! token implies that the head has asked exactly while its queue is not empty. A queue never holds
//! more than the nodes of the plane and the two neighbouring heads (Theorem 4 (ii), restated; with
//! fifo channels one less).
//!
//! **Proved** for any number of nodes: mutual exclusion as printed and as repaired, on any shape
//! (theorem `chaudhuri_karaata_mutual_exclusion` in `proofs/ChaudhuriKaraata.v`).
//!
//! **Errata**: procedures P1-P4 as printed (variant `as-published`) have three faults:
//! - C1: a REQUEST of a plane goes to all heads, also beyond the privileged one, and PERMIT deletes
//!   it only on its own way back. A head that keeps the stale copy follows it when it next gets the
//!   token, gives the token away and strands its own plane.
//! - C2: a head that gives the token away while requests of its own plane are queued does not ask
//!   for it again; they wait forever.
//! - C3: each request that reaches a red head is flooded again, and stale copies accumulate: queues
//!   exceed Theorem 4, without bound.
//!
//! The lab's search and scenarios show each in its smallest case.
//!
//! Repair, with the same three messages: the line of heads works as in Raymond's tree. A red head
//! knows the neighbouring head `towards` the token and whether it has `asked` it. It asks once, in
//! its own name. A queue holds nodes of the head's own plane and neighbouring heads. The token
//! moves one plane at a time, the sender's `towards` follows it, and if the sender's queue is not
//! empty a REQUEST follows immediately.
//!
//! A smaller repair keeps the REQUESTs to all planes (`repair-1` and `repair-2` with
//! `as-published`). With it nobody waits forever in any search, and queues keep to Theorem 4. But
//! stale requests still move the token, and the bound of Theorem 2 is lost, which is why it is not
//! the default.
//!
//! Corrected in both variants: `(i - i, j, k)` is `(i - 1, j, k)`; nothing is sent beyond the
//! mesh's edge; RELEASE goes hop by hop, as section 2.2 says. The number of links is n - 1 (a
//! spanning tree), not 13(n^1/3 - 1), which is right only for n = 27 and n = 1.

mod fields;
mod head;
mod invariants;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::mutant::Mutant;
use crate::shape::Mesh;
use crate::{
    Algorithm, Channels, Config, Fields, Info, Message, NodeId, Outbox, Phase, Place, Snapshot,
    Variant, Violation,
};

use head::{Head, OFF_THE_WAY, Token};

/// Requests between planes as printed: to all heads, again for each node that requests, and never
/// repeated for requests that are still queued when the token leaves.
pub const AS_PUBLISHED: Variant = Variant::new(
    0,
    "as-published",
    "procedures P1-P4 as printed: requests between planes get lost, nodes wait forever",
)
.faulty();

/// Two repairs that keep the printed REQUESTs to all planes. Together they restore liveness and
/// Theorem 4 (ii), but not the bound of Theorem 2: stale requests still move the token to planes
/// that do not need it.
pub const REPAIRS: [Variant; 2] = [
    Variant::repair(
        1,
        "repair-1",
        "with as-published: a head that gives the token away asks for it again if its plane needs it",
    ),
    Variant::repair(
        2,
        "repair-2",
        "with as-published: a plane asks once until the token comes, and is queued once",
    ),
];

type Out = Outbox<ChaudhuriKaraataMessage>;

/// State of one node.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ChaudhuriKaraata {
    place: Place<Mesh>,
    /// Inside is the paper's `mutex = TRUE`.
    phase: Phase,
    /// The state that only the head of a plane has. Boxed, so that a million other nodes stay
    /// small.
    head: Option<Box<Head>>,
}

/// Messages between nodes. Each carries a node, as in section 2.2.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum ChaudhuriKaraataMessage {
    /// The node requests the privilege. Within a plane: from the requester, hop by hop to its head,
    /// which grants or enqueues it. Between planes: from a head with a red token to the
    /// neighbouring head towards the token, always in the sender's own name.
    Request(NodeId),
    /// Within a plane, from the head hop by hop to this node, which may enter. The head's token is
    /// yellow until the RELEASE.
    Permit(NodeId),
    /// Between planes, to this head: its token becomes green, and the sender's is red. Also called
    /// PERMIT.
    Interchange(NodeId),
    /// The node has left. Hop by hop to its head, whose token becomes green again.
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

    fn named(&self, name: &dyn Fn(NodeId) -> String) -> String {
        let token = if self.is_token() { " (token)" } else { "" };
        format!("{} {}{token}", self.name(), name(self.node()))
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
        f.write_str(&self.named(&|node| node.to_string()))
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
        variants: &[AS_PUBLISHED, REPAIRS[0], REPAIRS[1]],
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
            // P2 and P4, the last two branches: forwarded to the head.
            (Request(origin) | Release(origin), None) => {
                if place.shape.towards_member(place.me, origin) != Some(from) {
                    return Err(refuse(OFF_THE_WAY));
                }
                let stops =
                    matches!(message, Release(_)) && Mutant::ChaudhuriKaraataReleaseStops.planted();
                if !stops {
                    self.pass_up(message, out);
                }
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

    fn peers(place: &Place<Mesh>) -> Vec<NodeId> {
        let Place { me, shape } = place;
        let is_beside = |peer: &NodeId| {
            let on_the_way =
                shape.towards_head(*me) == Some(*peer) || shape.towards_head(*peer) == Some(*me);
            on_the_way || (shape.is_head(*me) && shape.heads_beside(*me).contains(&Some(*peer)))
        };
        place.peers().filter(is_beside).collect()
    }

    fn fields(&self, fields: &mut dyn Fields) {
        self.name_fields(fields);
    }

    fn phase(&self) -> Phase {
        self.phase
    }

    fn has_token(&self) -> bool {
        let token = self.head.as_deref().map(|head| head.token);
        matches!(token, Some(Token::Green | Token::Yellow { .. }))
    }

    fn cluster_invariant(cluster: &dyn Snapshot<Self>) -> Result<(), &'static str> {
        invariants::one_privileged_plane(cluster)
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

impl ChaudhuriKaraata {
    fn pass_up(&self, message: ChaudhuriKaraataMessage, out: &mut Out) {
        if let Some(next) = self.place.shape.towards_head(self.place.me) {
            out.send(next, message);
        }
    }

    /// P3, at a node that is not a head. Returns the reason if the message is refused.
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
                return Err("this node has not requested");
            }
            self.phase = Phase::Inside;
            out.enter();
        } else {
            let next = shape.towards_member(*me, member).ok_or(OFF_THE_WAY)?;
            out.send(next, Permit(member));
        }
        Ok(())
    }

    /// Enters if this is a head that granted itself: `mutex := TRUE` in P1 and in grant_permission.
    fn enter_if_granted(&mut self, out: &mut Out) {
        let granted = self.place.me;
        let token = self.head.as_deref().map(|head| head.token);
        if self.phase == Phase::Waiting && token == Some(Token::Yellow { granted }) {
            self.phase = Phase::Inside;
            out.enter();
        }
    }
}
