//! The head of a plane: its token, its queue, and the line of heads.

use std::cmp::Ordering;
use std::collections::VecDeque;

use super::ChaudhuriKaraataMessage::{Interchange, Permit, Request};
use super::{AS_PUBLISHED, Out, REPAIRS};
use crate::mutant::Mutant;
use crate::shape::Mesh;
use crate::{Config, NodeId, NodeSet, Place, Start};

/// State of a head: the token and queue of node (0,0,k).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Head {
    place: Place<Mesh>,
    pub(super) as_published: bool,
    /// Which of [`REPAIRS`] are in force with `as_published`.
    repaired: [bool; 2],
    pub(super) token: Token,
    /// Q: nodes of this plane, and heads of neighbouring planes (with `as-published`: of any
    /// plane).
    pub(super) queue: VecDeque<NodeId>,
    /// The content of the queue, to refuse duplicates without a search: one bit per node of the
    /// plane, then one for the head below and one for the head above.
    queued: NodeSet,
}

/// The token of a head, by its colour.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Token {
    /// Another plane is privileged.
    Red {
        /// The neighbouring head in the direction of the token (not used with `as-published`).
        towards: NodeId,
        /// Whether it was asked for the token and has not sent it yet (with `as-published`: used
        /// only with `repair-2`).
        asked: bool,
    },
    /// The plane is privileged and no node is inside.
    Green,
    /// The plane is privileged, and a node of it is inside or about to be.
    Yellow {
        /// That node.
        granted: NodeId,
    },
}

/// The reason for refusing a message that the sender cannot have received or created.
pub(super) const OFF_THE_WAY: &str = "the sender is not next to this node on the message's way";

impl Head {
    pub(super) fn new(config: &Config<Mesh>) -> Self {
        let Place { me, shape } = &config.place;
        Head {
            place: config.place.clone(),
            as_published: config.variants.has(AS_PUBLISHED),
            repaired: REPAIRS.map(|repair| config.variants.has(repair)),
            token: Token::first(*me, shape, config.start),
            queue: VecDeque::new(),
            queued: NodeSet::new(shape.plane_len(shape.plane(*me)) + 2),
        }
    }

    /// P1 of the head itself, and P2 at a head.
    pub(super) fn on_request(&mut self, origin: NodeId, out: &mut Out) {
        let is_known = self.repaired[1] && self.queue.contains(&origin);
        if !is_known {
            self.enqueue(origin);
        }
        if self.as_published {
            self.spread(origin, out);
        } else {
            self.ask_once(out);
        }
        let is_yellow = matches!(self.token, Token::Yellow { .. });
        let grants_twice = is_yellow && Mutant::ChaudhuriKaraataGrantsWhileYellow.planted();
        if self.token == Token::Green || grants_twice {
            self.grant_next(out);
        }
    }

    /// The repaired rule between planes: a head with a red token requests it once, in its own name,
    /// from the neighbouring head in the token's direction.
    fn ask_once(&mut self, out: &mut Out) {
        if let Token::Red { towards, asked } = &mut self.token
            && (!*asked || Mutant::ChaudhuriKaraataAsksEachTime.planted())
        {
            *asked = true;
            out.send(*towards, Request(self.place.me));
        }
    }

    /// The published rule between planes, in P1 and P2. Another head's request is forwarded to the
    /// next plane whatever the token's colour here (C1). A request of this plane at a red head is
    /// sent to both sides, each time (C3). Search tests:
    /// as_published_a_stale_request_strands_a_plane and as_published_queues_outgrow_theorem_4.
    fn spread(&mut self, origin: NodeId, out: &mut Out) {
        let once = self.repaired[1];
        let Place { me, shape } = &self.place;
        let sides = shape.heads_beside(*me).into_iter().flatten();
        match shape.head_towards(*me, origin) {
            Some(came_from) => {
                for next in sides.filter(|side| *side != came_from) {
                    out.send(next, Request(origin));
                }
            }
            None => {
                if let Token::Red { asked, .. } = &mut self.token
                    && !*asked
                {
                    *asked = once;
                    for side in sides {
                        out.send(side, Request(*me));
                    }
                }
            }
        }
    }

    /// P3 at a head: "token := GREEN".
    pub(super) fn on_interchange(&mut self, to: NodeId, out: &mut Out) {
        if to == self.place.me {
            self.turn_green(out);
        } else if let Some(next) = self.place.shape.head_towards(self.place.me, to) {
            // As published, the token passes through red heads, and this deletes the request only
            // on the token's way (C1). "delete" is read as: the first one, if there are several.
            if let Some(first) = self.queue.iter().position(|entry| *entry == to) {
                self.queue.remove(first);
            }
            out.send(next, Interchange(to));
        }
    }

    /// The end of P1, P3 and P4: the token turns green and, if the queue is not empty, goes to the
    /// next entry.
    pub(super) fn turn_green(&mut self, out: &mut Out) {
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
        if !Mutant::ChaudhuriKaraataTokenKept.planted() {
            self.token = Token::Red { towards, asked };
        }
        out.send(towards, Interchange(next));
        // As published, nothing requests the token for the entries that are left in the queue (C2):
        // search test as_published_a_head_does_not_ask_again.
        let is_own = |entry: &NodeId| shape.head_towards(*me, *entry).is_none();
        let plane_waits = self.repaired[0] && self.queue.iter().any(is_own);
        let asks_back = !self.as_published && !Mutant::ChaudhuriKaraataDoesNotAskBack.planted();
        if asks_back && !self.queue.is_empty() {
            self.ask_once(out);
        }
        if plane_waits {
            self.spread(self.place.me, out);
        }
    }

    fn enqueue(&mut self, entry: NodeId) {
        self.queue.push_back(entry);
        if let Some(slot) = self.slot(entry) {
            self.queued.insert(slot);
        }
    }

    fn dequeue(&mut self) -> Option<NodeId> {
        let entry = if Mutant::ChaudhuriKaraataLifo.planted() {
            self.queue.pop_back()?
        } else {
            self.queue.pop_front()?
        };
        if let Some(slot) = self.slot(entry) {
            self.queued.remove(slot);
        }
        Some(entry)
    }

    pub(super) fn has_queued(&self, entry: NodeId) -> bool {
        self.slot(entry)
            .is_some_and(|slot| self.queued.contains(slot))
    }

    /// An entry's bit in `queued`. With `as-published`, entries of other planes have none, because
    /// one plane can be queued many times.
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

    pub(super) fn check_request(&self, from: NodeId, origin: NodeId) -> Result<(), &'static str> {
        let Place { me, shape } = &self.place;
        if self.has_queued(origin) {
            return Err("its previous request has not been granted");
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
            return Err("a head requests for itself");
        }
        // It can request the token back only with, or after, the token that this head asked it for.
        if self.token.is_red(from, false) {
            return Err("the token is on its side and was not requested");
        }
        Ok(())
    }

    pub(super) fn check_interchange(&self, from: NodeId, to: NodeId) -> Result<(), &'static str> {
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

    pub(super) fn check_release(&self, from: NodeId, member: NodeId) -> Result<(), &'static str> {
        if self.place.shape.towards_member(self.place.me, member) != Some(from) {
            return Err(OFF_THE_WAY);
        }
        if self.token != (Token::Yellow { granted: member }) {
            return Err("it was not granted the critical section");
        }
        Ok(())
    }

    pub(super) fn invariant(&self) -> Result<(), &'static str> {
        let shape = &self.place.shape;
        if self.token == Token::Green && !self.queue.is_empty() {
            return Err("a request is queued although the token is green");
        }
        // Theorem 4 (ii) counts the plane's nodes and one request per plane, c² + c.
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
                Err("a red head has requested the token exactly while a request is queued")
            }
            _ => Ok(()),
        }
    }
}

impl Token {
    /// Green at the head of the plane in which the token starts, or yellow if a node there is
    /// inside.
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
