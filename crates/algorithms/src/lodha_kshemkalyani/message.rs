//! Messages between nodes.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Message, NodeId, RequestId};

/// Messages between nodes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum LodhaKshemkalyaniMessage {
    /// From a node to all others: requests the critical section. An idle receiver replies. At a
    /// receiver with a concurrent request, it counts as an answer: the receiver may enter if its
    /// own request is earlier, and otherwise learns through a chain of FLUSHes and REPLYs that this
    /// request is satisfied.
    Request {
        /// The request.
        request: RequestId,
        /// The sender's request that was satisfied last. Never sent with `as-published`.
        satisfied: Option<RequestId>,
        /// With `one-reply`: the number of a request of the receiver that the sender had already
        /// received when it made this one. The two requests are then not concurrent, although the
        /// answer is still in flight.
        had_yours: Option<u64>,
    },
    /// The answer of an idle node, or of a node that has left to a requester whose REQUEST came
    /// after its answer to the sender's own request. All requests up to the one named are
    /// satisfied.
    Reply {
        /// The sender's request that was satisfied last, or `None` if there was none.
        satisfied: Option<RequestId>,
        /// With `clock-everywhere`: the highest sequence number that the sender has seen. Otherwise
        /// 0.
        highest: u64,
        /// With `one-reply`: answers for the receiver, and answers that it has to carry to others.
        errands: Vec<Errand>,
    },
    /// From a node that has left, to the node with the next concurrent request. All requests up to
    /// the one named are satisfied.
    Flush {
        /// The sender's request, for which it has just left the critical section.
        satisfied: RequestId,
        /// As in REPLY.
        highest: u64,
        /// As in REPLY.
        errands: Vec<Errand>,
    },
}

/// The answer of one node to a request, carried by another node (`one-reply`). Ordered by request,
/// because nodes with earlier requests carry answers to later ones.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Errand {
    /// The request that is answered.
    pub request: RequestId,
    /// The node that answers it.
    pub answers: NodeId,
}

use LodhaKshemkalyaniMessage::{Flush, Reply, Request};

impl Message for LodhaKshemkalyaniMessage {
    const KINDS: &'static [&'static str] = &["REQUEST", "REPLY", "FLUSH"];

    fn kind(&self) -> usize {
        match self {
            Request { .. } => 0,
            Reply { .. } => 1,
            Flush { .. } => 2,
        }
    }

    fn named(&self, name: &dyn Fn(NodeId) -> String) -> String {
        let mut text = self.name().to_owned();
        match self {
            Request {
                request,
                satisfied,
                had_yours,
            } => {
                text += &format!(" {}", request.named(name));
                if let Some(satisfied) = satisfied {
                    text += &format!(" after {}", satisfied.named(name));
                }
                if let Some(number) = had_yours {
                    text += &format!(" had your {number}");
                }
            }
            Reply {
                satisfied,
                highest,
                errands,
            } => {
                if let Some(satisfied) = satisfied {
                    text += &format!(" {}", satisfied.named(name));
                }
                text += &extras(*highest, errands, name);
            }
            Flush {
                satisfied,
                highest,
                errands,
            } => {
                text += &format!(" {}", satisfied.named(name));
                text += &extras(*highest, errands, name);
            }
        }
        text
    }

    fn examples() -> Vec<Self> {
        let first = RequestId::new(1, NodeId::new(2));
        let second = RequestId::new(300, NodeId::new(2));
        let errand = Errand {
            request: RequestId::new(301, NodeId::new(4)),
            answers: NodeId::new(2),
        };
        vec![
            Request {
                request: first,
                satisfied: None,
                had_yours: None,
            },
            Request {
                request: second,
                satisfied: Some(first),
                had_yours: Some(7),
            },
            Reply {
                satisfied: None,
                highest: 0,
                errands: vec![],
            },
            Reply {
                satisfied: Some(second),
                highest: u64::MAX,
                errands: vec![errand],
            },
            Flush {
                satisfied: first,
                highest: 2,
                errands: vec![],
            },
        ]
    }
}

impl fmt::Display for LodhaKshemkalyaniMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.named(&|node| node.to_string()))
    }
}

fn extras(highest: u64, errands: &[Errand], name: &dyn Fn(NodeId) -> String) -> String {
    let mut text = match highest {
        0 => String::new(),
        highest => format!(" highest {highest}"),
    };
    for Errand { request, answers } in errands {
        text += &format!(", {} answers {}", name(*answers), request.named(name));
    }
    text
}
