//! Errors of a keeper's operations.

use std::time::Duration;

use openraft::error::{
    ChangeMembershipError, CheckIsLeaderError, ClientWriteError, Fatal, ForwardToLeader, RaftError,
};

use super::rpc::COMMAND_BYTES_MAX;
use super::types::KeeperNode;
use soloist_api::NodeName;
use soloist_core::Term;

/// Why a keeper did not do what was requested.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum KeeperError {
    /// Another keeper leads, or none. Nothing has changed.
    #[error("this keeper is not the leader: {}", who_leads(.leader.as_ref()))]
    NotLeader {
        /// The leader, if this keeper knows one.
        leader: Option<KeeperNode>,
    },
    /// This keeper leads, but in another term than requested: it was deposed and elected again
    /// since. Nothing has changed.
    #[error("this keeper leads in term {found}: term {asked} is over")]
    OtherTerm {
        /// The requested term.
        asked: Term,
        /// The term in which it leads.
        found: Term,
    },
    /// A majority of the keepers did not answer. Nothing has changed.
    #[error("no majority of the keepers confirmed the leader within {waited:?}")]
    NoMajority {
        /// The timeout.
        waited: Duration,
    },
    /// The request was not completed in time. It may still be completed, or never.
    #[error(
        "the keepers did not agree within {waited:?}; they may still do so: look at the roster \
         when they answer again"
    )]
    Open {
        /// The timeout.
        waited: Duration,
    },
    /// The command is too long. Nothing has changed.
    #[error(
        "a command of {bytes} bytes (maximum: {COMMAND_BYTES_MAX}): the cluster has too many \
         members, or their names and addresses are too long"
    )]
    TooLong {
        /// Its length.
        bytes: usize,
    },
    /// The keeper has stopped.
    #[error("this keeper has stopped: {reason}")]
    Stopped {
        /// The reason.
        reason: String,
    },
    /// Another change of the keepers is under way. This request has changed nothing.
    #[error("another change of the keepers is in progress; try again when it is done")]
    Changing,
    /// The last keeper cannot be removed. Nothing has changed.
    #[error("{0} is the only keeper; promote another node first")]
    Last(NodeName),
    /// A leader does not remove itself from the keepers. Nothing has changed.
    #[error("{0} is the leader: it hands leadership over first; ask the next leader")]
    Leads(NodeName),
    /// The node is not a keeper. Nothing has changed.
    #[error("{0} is not a keeper")]
    NotAKeeper(NodeName),
    /// The id was demoted. Each promotion needs a fresh id. Nothing has changed.
    #[error("keeper {id:016x} was demoted: a node that is promoted again needs a fresh id")]
    Former {
        /// The id.
        id: u64,
    },
    /// The node is a keeper under another id. Nothing has changed.
    #[error("{name} is already a keeper, as {id:016x}; demote it first")]
    OtherId {
        /// The node.
        name: NodeName,
        /// The id of its keeper.
        id: u64,
    },
    /// The node to be promoted did not catch up in time. It is not a keeper.
    #[error(
        "{node} did not catch up within {waited:?} and is not a keeper; check that it runs and \
         can be reached, and promote it again"
    )]
    Behind {
        /// The node.
        node: KeeperNode,
        /// The timeout.
        waited: Duration,
    },
    /// The node to be promoted could not create a store. It is not a keeper.
    #[error("{node} did not become a keeper: {reason}")]
    Declined {
        /// The node.
        node: KeeperNode,
        /// The reason that it gave.
        reason: String,
    },
    /// The set of keepers is invalid.
    #[error("invalid keepers: {0}")]
    Keepers(String),
    /// The settings are invalid.
    #[error("invalid settings of a keeper: {0}")]
    Settings(String),
}

fn who_leads(leader: Option<&KeeperNode>) -> String {
    match leader {
        Some(leader) => format!("{leader} is"),
        None => "it knows of none; try again in a moment".to_owned(),
    }
}

impl KeeperError {
    pub(super) fn not_leader(forward: ForwardToLeader<u64, KeeperNode>) -> Self {
        KeeperError::NotLeader {
            leader: forward.leader_node,
        }
    }

    pub(super) fn fatal(fatal: &Fatal<u64>) -> Self {
        KeeperError::Stopped {
            reason: reason(fatal),
        }
    }

    pub(super) fn check(
        error: RaftError<u64, CheckIsLeaderError<u64, KeeperNode>>,
        waited: Duration,
    ) -> Self {
        match error {
            RaftError::APIError(CheckIsLeaderError::ForwardToLeader(to)) => Self::not_leader(to),
            RaftError::APIError(CheckIsLeaderError::QuorumNotEnough(_)) => {
                KeeperError::NoMajority { waited }
            }
            RaftError::Fatal(fatal) => Self::fatal(&fatal),
        }
    }

    pub(super) fn write(error: RaftError<u64, ClientWriteError<u64, KeeperNode>>) -> Self {
        use ChangeMembershipError::{EmptyMembership, InProgress, LearnerNotFound};
        match error {
            RaftError::APIError(ClientWriteError::ForwardToLeader(to)) => Self::not_leader(to),
            RaftError::APIError(ClientWriteError::ChangeMembershipError(error)) => match error {
                InProgress(_) => KeeperError::Changing,
                EmptyMembership(error) => KeeperError::Keepers(error.to_string()),
                LearnerNotFound(error) => KeeperError::Keepers(error.to_string()),
            },
            RaftError::Fatal(fatal) => Self::fatal(&fatal),
        }
    }
}

/// Why Raft has stopped.
pub(super) fn reason(fatal: &Fatal<u64>) -> String {
    match fatal {
        Fatal::StorageError(error) => error.to_string(),
        Fatal::Panicked => "Raft panicked; please report this".to_owned(),
        Fatal::Stopped => "it was shut down".to_owned(),
    }
}
