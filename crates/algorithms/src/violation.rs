//! Input that an algorithm refuses.

use crate::{Message, NodeId, Phase};

/// Input that no correct caller or peer gives in this state. The state is unchanged.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Violation {
    /// A node number that is not in the cluster.
    #[error("no node {node}: the cluster has {nodes} nodes, numbered from 0")]
    NoSuchNode {
        /// The node number.
        node: NodeId,
        /// Number of nodes in the cluster.
        nodes: usize,
    },
    /// A message that claims to come from its receiver.
    #[error("a message from node {0} to itself")]
    FromSelf(NodeId),
    /// A message that no correct peer sends in this state.
    #[error("{message} from node {from} refused: {reason}")]
    Unexpected {
        /// The sender.
        from: NodeId,
        /// The kind of message.
        message: &'static str,
        /// Why no correct peer sends it.
        reason: &'static str,
    },
    /// Bytes that do not encode a message of this algorithm.
    #[error("{length} bytes from node {from} are not a message of this algorithm")]
    Undecodable {
        /// The sender.
        from: NodeId,
        /// Number of bytes received.
        length: usize,
    },
    /// A request while the node waits or is inside.
    #[error("a request while the node is {0}: a node has one request at a time")]
    NotIdle(Phase),
    /// A release while the node is not inside.
    #[error("a release while the node is {0}, not inside")]
    NotInside(Phase),
}

impl Violation {
    /// Builds [`Violation::Unexpected`] for this message.
    pub fn unexpected<M: Message>(from: NodeId, message: &M, reason: &'static str) -> Self {
        Violation::Unexpected {
            from,
            message: message.name(),
            reason,
        }
    }
}
