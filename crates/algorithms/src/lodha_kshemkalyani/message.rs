//! What nodes say to each other.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Message, NodeId, RequestId};

/// What nodes say to each other.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum LodhaKshemkalyaniMessage {
    /// From a node that wants in, to all others. Who does not ask replies. To who asks
    /// concurrently it is an answer: go ahead if your request is before this one, or else hear later,
    /// by a chain of FLUSHes and REPLYs, that this one is satisfied.
    Request {
        /// The request.
        request: RequestId,
        /// The sender's request that was satisfied last (`as-published`: never told).
        satisfied: Option<RequestId>,
        /// With `one-reply`: the number of a request of the receiver's that the sender had when it made this
        /// one. So the two are not concurrent, although the answer is still under way.
        had_yours: Option<u64>,
    },
    /// The answer of a node that does not ask; or of one that has left, to who asked after it had
    /// itself answered. All requests up to the one named are satisfied.
    Reply {
        /// The sender's request that was satisfied last; none if it never had one.
        satisfied: Option<RequestId>,
        /// With `clock-everywhere`: the highest number that the sender has seen. 0 says nothing.
        highest: u64,
        /// With `one-reply`: answers to the receiver and to others that it is to carry on.
        errands: Vec<Errand>,
    },
    /// From a node that has left, to whose request is next of the concurrent ones. All requests up to the
    /// one named are satisfied.
    Flush {
        /// The request that the sender has just left for.
        satisfied: RequestId,
        /// As in REPLY.
        highest: u64,
        /// As in REPLY.
        errands: Vec<Errand>,
    },
}

/// The answer of one node to a request, in the hands of another (`one-reply`). Sorted by the
/// request, since who goes first carries it to who goes later.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Errand {
    /// The request that is answered.
    pub request: RequestId,
    /// Who answers it.
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
        f.write_str(self.name())?;
        match self {
            Request {
                request,
                satisfied,
                had_yours,
            } => {
                write!(f, " {request}")?;
                if let Some(satisfied) = satisfied {
                    write!(f, " after {satisfied}")?;
                }
                if let Some(number) = had_yours {
                    write!(f, " had your {number}")?;
                }
                Ok(())
            }
            Reply {
                satisfied,
                highest,
                errands,
            } => {
                if let Some(satisfied) = satisfied {
                    write!(f, " {satisfied}")?;
                }
                extras(f, *highest, errands)
            }
            Flush {
                satisfied,
                highest,
                errands,
            } => {
                write!(f, " {satisfied}")?;
                extras(f, *highest, errands)
            }
        }
    }
}

fn extras(f: &mut fmt::Formatter<'_>, highest: u64, errands: &[Errand]) -> fmt::Result {
    if highest > 0 {
        write!(f, " highest {highest}")?;
    }
    for errand in errands {
        write!(f, ", {} answers {}", errand.answers, errand.request)?;
    }
    Ok(())
}
