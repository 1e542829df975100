//! What can go wrong between a client and its node.

use std::fmt;
use std::time::Duration;

use soloist_api::ErrorKind;

use crate::TargetError;

/// A call to a node failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The target cannot be used as it is.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// No node answers.
    #[error(
        "no node can be reached: {}; is a node running? try `soloist up` or `soloist node`, or name it with SOLOIST_API",
        list(.0)
    )]
    Unreachable(Vec<Attempt>),
    /// More than one node may be meant.
    #[error(
        "there is a node at {place} and another at {other}: say which one is meant with --api or SOLOIST_API, \
         such as --api {place}"
    )]
    Ambiguous {
        /// One that answers.
        place: String,
        /// Another one.
        other: String,
    },
    /// The connection broke. Whether the request was served is not known.
    #[error("the connection to {place} broke: {source}")]
    Broken {
        /// Which node.
        place: String,
        /// How.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// No answer in time. Whether the request was served is not known.
    #[error("no answer from {place} within {after:?}")]
    Silent {
        /// Which node.
        place: String,
        /// How long the client waited.
        after: Duration,
    },
    /// The answer is none that a node gives.
    #[error("{place} does not answer as a node of Soloist: {what}")]
    Garbled {
        /// Who answered.
        place: String,
        /// What is wrong.
        what: String,
    },
    /// The node refuses.
    #[error("{detail}")]
    Refused {
        /// The status of the answer.
        status: u16,
        /// What, for programs.
        kind: ErrorKind,
        /// What, for people.
        detail: String,
        /// Why a hold ended, if that is what is wrong.
        reason: Option<String>,
        /// How long ago it ended, if the node knows.
        ended_ago: Option<Duration>,
    },
}

impl ClientError {
    /// Whether another attempt, or another node, may succeed where this one did not answer.
    pub fn is_unavailable(&self) -> bool {
        match self {
            ClientError::Unreachable(_)
            | ClientError::Broken { .. }
            | ClientError::Silent { .. } => true,
            ClientError::Refused { kind, .. } => *kind == ErrorKind::Stopping,
            ClientError::Target(_)
            | ClientError::Ambiguous { .. }
            | ClientError::Garbled { .. } => false,
        }
    }
}

/// A place where no node answered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Attempt {
    /// Where.
    pub place: String,
    /// What happened.
    pub problem: String,
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.problem)
    }
}

fn list(attempts: &[Attempt]) -> String {
    let each: Vec<String> = attempts.iter().map(Attempt::to_string).collect();
    each.join(", ")
}
