//! Log lines of a node. They are written by a separate task, because everything else waits while
//! the node's state is locked.

use std::time::Duration;

use tokio::sync::mpsc;

use soloist_api::LockName;
use soloist_api::NodeName;
use soloist_core::epochs::message::ToMember;

/// A log line.
pub(crate) enum Notice {
    /// This node became a member of another epoch.
    Epoch { epoch: u64, members: usize },
    /// Its lease expired, and these locks were lost with it.
    Lapsed { lost: Vec<LockName> },
    /// Another node of the same name is a live member.
    NameTaken,
    /// More than half of this epoch's fencing tokens are used up for a lock.
    FencesHalfUsed { epoch: u64, lock: LockName },
    /// It may not join, because it and these members would not reach each other.
    Barred { apart_from: Vec<NodeName> },
    /// It does not answer the leader fast enough to join.
    TooSlow { took: Duration, limit: Duration },
    /// It has disturbed the members and must wait before it may join.
    HeldOff { left: Duration },
}

/// Maximum number of locks or members named in a line.
const NAMED: usize = 8;

impl Notice {
    /// Returns the notice for a message that refuses this node, or `None` for any other message.
    pub(crate) fn of_refusal(message: &ToMember) -> Option<Self> {
        match message {
            ToMember::NameTaken => Some(Notice::NameTaken),
            ToMember::Barred { apart_from } => Some(Notice::Barred {
                apart_from: apart_from.clone(),
            }),
            &ToMember::TooSlow { took, limit } => Some(Notice::TooSlow { took, limit }),
            &ToMember::HeldOff { left } => Some(Notice::HeldOff { left }),
            _ => None,
        }
    }

    fn log(self) {
        match self {
            Notice::Epoch { epoch, members } => {
                tracing::info!(epoch, members, "joined the epoch");
            }
            Notice::Lapsed { lost } => {
                let named: Vec<_> = lost.iter().take(NAMED).map(LockName::as_str).collect();
                tracing::warn!(
                    holds = lost.len(),
                    locks = named.join(", "),
                    "the lease expired, because this node was cut off from the keepers or \
                     suspended: all holds are lost; rejoining"
                );
            }
            Notice::FencesHalfUsed { epoch, lock } => tracing::warn!(
                epoch,
                lock = lock.as_str(),
                "half of the fences of this epoch are used up: when all are, locks pause for a \
                 change of epoch"
            ),
            Notice::NameTaken => tracing::warn!(
                "another running member has this node's name: this node can join when the other \
                 one is gone; give each node its own name and certificate"
            ),
            Notice::TooSlow { took, limit } => tracing::warn!(
                ?took,
                ?limit,
                "this node cannot join, because the round trip to the keepers' leader takes too \
                 long; check the network and the load, or set a longer lease"
            ),
            Notice::HeldOff { left } => tracing::warn!(
                ?left,
                "this node did not report in time, or joined and left too often: it must wait \
                 before it may join"
            ),
            Notice::Barred { apart_from } => {
                let named: Vec<_> = apart_from
                    .iter()
                    .take(NAMED)
                    .map(NodeName::as_str)
                    .collect();
                tracing::warn!(
                    members = named.join(", "),
                    "this node and these members cannot reach each other: it must wait before it \
                     may join, so that locks continue; check the network between them"
                );
            }
        }
    }
}

/// Queue of notices to be logged.
pub(crate) struct Notices {
    sender: mpsc::UnboundedSender<Notice>,
}

impl Notices {
    /// Creates the queue and the task that logs its notices.
    pub(crate) fn new() -> (Self, impl Future<Output = ()> + Send + use<>) {
        let (sender, mut notices) = mpsc::unbounded_channel::<Notice>();
        let log = async move {
            while let Some(notice) = notices.recv().await {
                notice.log();
            }
        };
        (Notices { sender }, log)
    }

    pub(crate) fn push(&self, notice: Notice) {
        let _ = self.sender.send(notice);
    }
}
