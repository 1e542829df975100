//! Suzuki and Kasami 1985, *A distributed mutual exclusion algorithm*, ACM TOCS 3(4).
//!
//! **Channels**: any order. **Cost**: N messages per entry (N-1 REQUESTs and the PRIVILEGE), none
//! if the node already has the token; synchronisation delay T. The PRIVILEGE has length O(N).
//!
//! A node that wants to enter and does not have the token sends a request to all others. The token
//! carries LN, the number of each node's latest satisfied request, and Q, the queue of nodes that
//! wait for it. `RN[j] = LN[j] + 1` means that j has a request that is not satisfied. On release a
//! node appends all such nodes to Q and passes the token to the first.
//!
//! **Invariants**: a node that is inside has the token, and a node that waits does not. While the
//! token rests, Q is empty and no known request is unsatisfied. At the token, `RN[j] <= LN[j] + 1`:
//! a node requests again only after it was served.
//!
//! **Proved** for any number of nodes: mutual exclusion (theorem `suzuki_kasami_mutual_exclusion`
//! in `proofs/SuzukiKasami.v`).
//!
//! **Forgetting**: not sound once a node has seen or made a REQUEST. RN is the only record of
//! waiting nodes at the node that receives the token next, and a node's own number must be the
//! successor of its number in LN. So a node is quiescent only if it has seen nothing yet, or if it
//! started with the token and has only ever entered with that.
//!
//! **Deviations**: numbers start at 0 (no request yet), so the first request has number 1. On
//! release the nodes are examined in cyclic order starting after this node, so that low numbers are
//! not preferred. A token that contradicts what this node has seen is refused, because it may be a
//! second one.

use std::collections::VecDeque;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::mutant::Mutant;
use crate::shape::Complete;
use crate::{
    Algorithm, Channels, Config, Field, FieldKind, Fields, Info, Message, NodeId, NodeSet, Outbox,
    PHASE, Phase, Place, RequestId, Role, Value, Violation,
};

/// State of one node.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct SuzukiKasami {
    place: Place<Complete>,
    phase: Phase,
    /// RN: the highest request number seen from each node.
    rn: Box<[u64]>,
    token: Option<Token>,
    /// The nodes in the token's queue while the token is here, for membership tests in constant
    /// time.
    queued: NodeSet,
}

/// The token. Its fields are moved with it, never copied.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Token {
    /// LN: the number of each node's latest satisfied request.
    pub ln: Box<[u64]>,
    /// Q: the nodes that get the token next, in order.
    pub queue: VecDeque<NodeId>,
}

/// Messages between nodes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum SuzukiKasamiMessage {
    /// From a node without the token to all others: requests the critical section. Carries the
    /// request's number: how many requests this node has made. The receiver records it and, if the
    /// token rests there, sends the token.
    Request(u64),
    /// The token. The receiver enters.
    Privilege(Token),
}

use SuzukiKasamiMessage::{Privilege, Request};

impl Message for SuzukiKasamiMessage {
    const KINDS: &'static [&'static str] = &["REQUEST", "PRIVILEGE"];

    fn kind(&self) -> usize {
        match self {
            Request(_) => 0,
            Privilege(_) => 1,
        }
    }

    fn is_token(&self) -> bool {
        matches!(self, Privilege(_))
    }

    fn named(&self, name: &dyn Fn(NodeId) -> String) -> String {
        match self {
            Request(number) => format!("REQUEST {number}"),
            Privilege(Token { ln, queue }) => {
                let queue: Vec<String> = queue.iter().copied().map(name).collect();
                format!("PRIVILEGE LN={ln:?} Q=[{}]", queue.join(", "))
            }
        }
    }

    fn examples() -> Vec<Self> {
        let token = |ln: &[u64], queue: &[u32]| {
            Privilege(Token {
                ln: ln.into(),
                queue: queue.iter().map(|&node| NodeId::new(node)).collect(),
            })
        };
        vec![
            Request(1),
            Request(u64::MAX),
            token(&[0, 0], &[]),
            token(&[3, 300, 0], &[2, 1]),
        ]
    }
}

impl fmt::Display for SuzukiKasamiMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.named(&|node| node.to_string()))
    }
}

const RN: Field = Field::new(
    "RN",
    FieldKind::Numbers,
    "highest request number seen of each node",
);
const LN: Field = Field::new(
    "LN",
    FieldKind::Numbers,
    "in the token: number of each node's latest satisfied request",
);
const Q: Field = Field::new(
    "Q",
    FieldKind::Queue,
    "in the token: nodes that get it next",
)
.role(Role::Queue);

impl Algorithm for SuzukiKasami {
    type Message = SuzukiKasamiMessage;
    type Shape = Complete;

    const INFO: Info = Info {
        name: "suzuki-kasami",
        aliases: &["sk"],
        paper: "Suzuki, Kasami 1985, A distributed mutual exclusion algorithm",
        channels: Channels::Any,
        variants: &[],
        presets: &[],
    };

    const NODES_MAX: usize = crate::algorithm::NODES_MAX_OF_BROADCAST;

    const COUNTS_REQUESTS: bool = true;

    fn new(config: &Config<Complete>) -> Self {
        let nodes = config.place.nodes();
        let me = config.place.me;
        let token = (config.start.token() == me).then(|| Token {
            ln: vec![0; nodes].into(),
            queue: VecDeque::new(),
        });
        SuzukiKasami {
            place: config.place.clone(),
            phase: config.start.phase(me),
            rn: vec![0; nodes].into(),
            token,
            queued: NodeSet::new(nodes),
        }
    }

    fn request(&mut self, out: &mut Outbox<Self::Message>) -> Result<(), Violation> {
        self.phase.may_request()?;
        if self.token.is_some() {
            self.enter(out);
            return Ok(());
        }
        self.phase = Phase::Waiting;
        let number = &mut self.rn[self.place.me.index()];
        *number += 1;
        for peer in self.place.peers() {
            out.send(peer, Request(*number));
        }
        Ok(())
    }

    fn receive(
        &mut self,
        from: NodeId,
        message: Self::Message,
        out: &mut Outbox<Self::Message>,
    ) -> Result<(), Violation> {
        self.place.is_peer(from)?;
        let checked = match &message {
            Request(number) => self.check_number(from, *number),
            Privilege(token) => self.check_token(from, token),
        };
        if let Err(reason) = checked {
            return Err(Violation::unexpected(from, &message, reason));
        }
        match message {
            Request(number) => self.on_request(from, number, out),
            Privilege(token) => {
                self.queued.extend(token.queue.iter().copied());
                self.token = Some(token);
                self.enter(out);
            }
        }
        Ok(())
    }

    fn release(&mut self, out: &mut Outbox<Self::Message>) -> Result<(), Violation> {
        self.phase.may_release()?;
        self.phase = Phase::Idle;
        let mut token = self.token.take().expect("a node inside has the token");
        let me = self.place.me.index();
        if !Mutant::SuzukiKasamiLnNotUpdated.planted() {
            token.ln[me] = self.rn[me];
        }
        for index in (me + 1..self.rn.len()).chain(0..me) {
            let node = NodeId::from_index(index);
            let asks = self.rn[index] == token.ln[index] + 1;
            if asks && (self.queued.insert(node) || Mutant::SuzukiKasamiQueuedTwice.planted()) {
                token.queue.push_back(node);
            }
        }
        let next = if Mutant::SuzukiKasamiLifo.planted() {
            token.queue.pop_back()
        } else {
            token.queue.pop_front()
        };
        match next {
            Some(first) => {
                self.queued.clear();
                out.send(first, Privilege(token));
            }
            None => self.token = Some(token),
        }
        Ok(())
    }

    fn fields(&self, fields: &mut dyn Fields) {
        fields.add(&PHASE, self.phase.into());
        fields.add(&RN, Value::Numbers(self.rn.to_vec()));
        let token = self.token.as_ref();
        let ln = token.map(|token| Value::Numbers(token.ln.to_vec()));
        fields.add(&LN, ln.unwrap_or(Value::Absent));
        let queue = token.map(|token| Value::from(&token.queue));
        fields.add(&Q, queue.unwrap_or(Value::Absent));
    }

    fn phase(&self) -> Phase {
        self.phase
    }

    fn has_token(&self) -> bool {
        self.token.is_some()
    }

    fn invariant(&self) -> Result<(), &'static str> {
        let Some(token) = &self.token else {
            if self.phase == Phase::Inside {
                return Err("a node is inside without the token");
            }
            if !self.queued.is_empty() {
                return Err("a node without the token has a queue");
            }
            return Ok(());
        };
        if self.phase == Phase::Waiting {
            return Err("a node waits although it has the token");
        }
        if token.queue.len() != self.queued.len()
            || token.queue.iter().any(|&node| !self.queued.contains(node))
        {
            return Err("the set of queued nodes is not the queue");
        }
        let mut numbers = self.rn.iter().zip(&token.ln);
        if numbers.any(|(&seen, &satisfied)| seen > satisfied + 1) {
            return Err("a node requested again before it was served");
        }
        let mut numbers = self.rn.iter().zip(&token.ln);
        if self.phase == Phase::Idle
            && (!token.queue.is_empty() || numbers.any(|(&seen, &done)| seen == done + 1))
        {
            return Err("the token rests although a node requests it");
        }
        Ok(())
    }
}

impl SuzukiKasami {
    fn check_number(&self, from: NodeId, number: u64) -> Result<(), &'static str> {
        if !RequestId::is_sequence(number) {
            return Err("a number that no request has");
        }
        let served = self.token.as_ref().map(|token| token.ln[from.index()]);
        if served.is_some_and(|served| number > served + 1) {
            return Err("it requests again before it was served");
        }
        Ok(())
    }

    /// Refuses a token that cannot be the only token, or that is not sent to this node in its turn.
    /// Reads the token once, so the cost is linear in its length.
    fn check_token(&mut self, from: NodeId, token: &Token) -> Result<(), &'static str> {
        if self.phase != Phase::Waiting {
            return Err("this node has the token or has not requested it");
        }
        if token.ln.len() != self.rn.len() {
            return Err("LN is not as long as the cluster is large");
        }
        let is_number = |number: u64| number == 0 || RequestId::is_sequence(number);
        if !token.ln.iter().all(|&number| is_number(number)) {
            return Err("a number in LN that no request has");
        }
        let me = self.place.me.index();
        if token.ln[me] + 1 != self.rn[me] {
            return Err("this node's request is not the next one after LN");
        }
        let mut numbers = self.rn.iter().zip(&token.ln);
        if numbers.any(|(&seen, &satisfied)| seen > satisfied + 1) {
            return Err("LN is older than a request that was seen");
        }
        // The receiver was removed from Q, and the sender has just been served. `queued` is empty
        // before and after; it only serves to detect duplicates.
        let queued = &mut self.queued;
        let queue_is_sound = token
            .queue
            .iter()
            .all(|&node| self.place.is_peer(node).is_ok() && node != from && queued.insert(node));
        self.queued.clear();
        if !queue_is_sound {
            return Err("Q names a node that does not wait in it");
        }
        Ok(())
    }

    fn on_request(&mut self, from: NodeId, number: u64, out: &mut Outbox<SuzukiKasamiMessage>) {
        let seen = &mut self.rn[from.index()];
        // A request that was overtaken by a later one carries no new information.
        let is_old = number < *seen && !Mutant::SuzukiKasamiOldRequestCounts.planted();
        if !is_old {
            *seen = number;
        }
        let asks = |token: &mut Token| *seen == token.ln[from.index()] + 1;
        if self.phase == Phase::Idle
            && let Some(token) = self.token.take_if(asks)
        {
            if Mutant::SuzukiKasamiTokenKept.planted() {
                self.token = Some(token.clone());
            }
            out.send(from, Privilege(token));
        }
    }

    fn enter(&mut self, out: &mut Outbox<SuzukiKasamiMessage>) {
        self.phase = Phase::Inside;
        out.enter();
    }
}
