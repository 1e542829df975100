//! Messages between a node and a keeper.
//!
//! After the [hello](soloist_transport::hello), the keeper sends `Welcome` if it leads. From then
//! on both sides send at any time. Frames are those of the keepers' own protocol, see
//! [`crate::keepers::rpc`].

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};

use crate::keepers::KeeperNode;
use crate::keepers::rpc::{self, FRAME_BYTES_MAX, FrameError};
use soloist_api::NodeName;
use soloist_core::Incarnation;
use soloist_core::cluster_identity::ClusterIdentity;
use soloist_core::epochs::message::{ToKeepers, ToMember};
use soloist_core::epochs::roster::Member;
use soloist_core::keepers::{LeaderDecision, StoreClaim};

/// Messages from a node.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum FromNode {
    /// A message of a member, or of a node that wants to join.
    Message {
        from: Member,
        /// Milliseconds on the node's own clock when it sent this. Only the rate of that clock
        /// matters.
        clock: u64,
        /// Number of holds on the node. They are lost if it dies.
        holds: u32,
        message: ToKeepers,
    },
    /// A query or command of an operator.
    Question {
        number: u64,
        question: LeaderQuestion,
    },
    /// The store of this node's keeper, if it has one. Sent first on every connection, and again
    /// when it changes.
    Store(Option<StoreClaim>),
    /// This node did not become keeper `id`, for this reason.
    Declined { id: u64, reason: String },
}

/// Messages from a keeper.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum FromKeeper {
    /// This keeper leads. Sent again when the list of keepers changes.
    Welcome {
        keepers: Vec<KeeperNode>,
        cluster: ClusterIdentity,
        /// The epoch that was begun last.
        epoch: u64,
    },
    /// This keeper does not lead, or no longer does. The connection closes.
    Elsewhere {
        leader: Option<KeeperNode>,
        /// Whether the sender has a store, or took part in a cluster before.
        has_past: bool,
    },
    /// The connection closes, for this reason.
    Refused(String),
    /// To this incarnation of a node.
    Message {
        incarnation: Incarnation,
        message: ToMember,
    },
    /// The node's clock does not run at the same rate as the leader's.
    Clock {
        percent: i64,
    },
    Reply {
        number: u64,
        reply: Reply,
    },
    /// The node becomes keeper `decision.id`: it creates a store and answers with `Store`.
    Appoint(LeaderDecision),
    /// Store `decision.id` no longer counts: the node sets it aside and answers with `Store`.
    SetAside(LeaderDecision),
}

/// Queries and commands of operators.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum LeaderQuestion {
    /// Report the state of the cluster.
    Cluster,
    /// Make this member a keeper.
    Promote(NodeName),
    /// Make this keeper an ordinary node.
    Demote(NodeName),
    /// Report everything that only the leader knows.
    Overview,
}

/// Replies to a [`LeaderQuestion`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum Reply {
    Cluster(ClusterView),
    /// Success.
    Done,
    /// Failure, for this reason.
    Refused(String),
    /// The keeper to be removed is this one, which leads. It hands leadership over: ask the next
    /// leader.
    HandsOver(NodeName),
    Overview(LeaderView),
}

/// What only the leader knows.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct LeaderView {
    pub cluster: ClusterView,
    /// Other keepers whose stores have followed the leader lately, whether their nodes are members
    /// or not.
    pub followers: Vec<NodeName>,
    /// Nodes that want to join.
    pub joining: Vec<NodeName>,
    /// Nodes whose clocks run at another rate, and by how many percent they run too fast.
    pub clocks: Vec<(NodeName, i64)>,
}

/// The cluster, as the leader sees it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct ClusterView {
    pub leader: NodeName,
    pub keepers: Vec<KeeperNode>,
    /// The epoch that was begun last.
    pub epoch: u64,
    /// Whether that epoch is not installed yet.
    pub is_changing: bool,
    /// Members, each with the time left of its lease in milliseconds.
    pub members: Vec<(Member, u64)>,
}

pub(super) async fn write(
    stream: &mut (impl AsyncWrite + Unpin),
    value: &impl Serialize,
) -> std::io::Result<()> {
    let frame = rpc::frame(0, value).map_err(std::io::Error::other)?;
    stream.write_all(&frame).await?;
    stream.flush().await
}

/// Reads the next frame, or returns `None` at the end of the stream. The input is not trusted.
pub(super) async fn read<T: DeserializeOwned>(
    stream: &mut (impl AsyncRead + Unpin),
) -> Result<Option<T>, FrameError> {
    let Some((bytes, _)) = rpc::read_head(stream, FRAME_BYTES_MAX).await? else {
        return Ok(None);
    };
    let content = rpc::read_content(stream, bytes).await?;
    rpc::decode(&content).map(Some)
}
