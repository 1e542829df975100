//! What a node and a keeper say to each other.
//!
//! After the [hello](crate::transport::hello), the keeper says `Welcome` if it leads. From then on
//! both speak when they like. All are frames as the keepers' own, see [`crate::keepers::rpc`].

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};

use crate::keepers::rpc::{self, FRAME_BYTES_MAX, FrameError};
use crate::keepers::{KeeperNode, LeaderWord, StoreClaim};
use soloist_api::NodeName;
use soloist_core::cluster_identity::ClusterIdentity;
use soloist_core::epochs::message::{ToKeepers, ToMember};
use soloist_core::epochs::roster::Member;

/// From a node.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum FromNode {
    /// A member's word, or that of one that wants to be a member.
    Word {
        from: Member,
        /// When it was said, by the node's own clock, in milliseconds: only how fast it runs counts.
        clock: u64,
        word: ToKeepers,
    },
    /// Somebody wants to know or to change something.
    Question { number: u64, question: Question },
    /// The store of this node's keeper, if it has one. Sent first on every connection, and again
    /// when it changes.
    Store(Option<StoreClaim>),
    /// This node did not become keeper `id`, for this reason.
    Declined { id: u64, reason: String },
}

/// From a keeper.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum FromKeeper {
    /// This keeper leads; these are all of them. Said again when they change.
    Welcome {
        keepers: Vec<KeeperNode>,
        cluster: ClusterIdentity,
        /// The epoch that was begun last.
        epoch: u64,
    },
    /// This keeper does not lead, or not any more. The connection closes.
    Elsewhere {
        leader: Option<KeeperNode>,
        /// Whether it has a store, or took part in a cluster before.
        has_past: bool,
    },
    /// The connection closes, for this reason.
    Refused(String),
    /// To a node, in this life of it.
    Word {
        incarnation: u64,
        word: ToMember,
    },
    /// The node's clock does not run as the keepers' clocks do.
    Clock {
        percent: i64,
    },
    Reply {
        number: u64,
        reply: Reply,
    },
    /// The node is keeper `word.id` from now on: it makes a store, and answers with `Store`.
    Appoint(LeaderWord),
    /// Store `word.id` does not count any more: the node sets it aside, and answers with `Store`.
    SetAside(LeaderWord),
}

/// What the leader may be asked.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum Question {
    /// How is the cluster?
    Cluster,
    /// Make this member a keeper.
    Promote(NodeName),
    /// Make this keeper an ordinary node.
    Demote(NodeName),
}

/// What it replies.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum Reply {
    Cluster(ClusterView),
    /// It was done.
    Done,
    /// It was not done, for this reason.
    Refused(String),
    /// It would remove this node, which leads, from the keepers: it hands leadership over. Ask the next
    /// leader.
    HandsOver(NodeName),
}

/// The cluster, as the keepers' leader sees it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct ClusterView {
    pub leader: NodeName,
    pub keepers: Vec<KeeperNode>,
    /// The epoch that was begun last.
    pub epoch: u64,
    /// It is not installed yet.
    pub is_changing: bool,
    /// Members, each with how long it may rely on being one, in milliseconds.
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

/// The next frame; none at the end of the stream. The bytes may be anything.
pub(super) async fn read<T: DeserializeOwned>(
    stream: &mut (impl AsyncRead + Unpin),
) -> Result<Option<T>, FrameError> {
    let Some((bytes, _)) = rpc::read_head(stream, FRAME_BYTES_MAX).await? else {
        return Ok(None);
    };
    let content = rpc::read_content(stream, bytes).await?;
    rpc::decode(&content).map(Some)
}
