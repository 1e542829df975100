//! Errors of calls to a node.

use std::fmt;
use std::time::Duration;

use soloist_api::{EndReason, ErrorKind};

use crate::TargetError;

/// Why a call to a node failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The target is invalid.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The thread of a [blocking client](crate::blocking) cannot be started.
    #[error("cannot start the client's thread: {0}")]
    Thread(std::io::Error),
    /// No node answered.
    #[error(
        "no node can be reached ({}): start one with `soloist up` or `soloist node`, \
         or set SOLOIST_API to the address of one",
        list(.0)
    )]
    Unreachable(Vec<Attempt>),
    /// The target does not name a node, and there is more than one.
    #[error(
        "there is a node at {address} and another at {other}: choose one with --api or SOLOIST_API, \
         such as --api {address}"
    )]
    Ambiguous {
        /// A node that answers.
        address: String,
        /// Another node, which may not answer.
        other: String,
    },
    /// The connection broke. The node may or may not have processed the request.
    #[error("the connection to {address} broke: {source}")]
    Broken {
        /// Address of the node.
        address: String,
        /// Cause.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The request timed out. The node may or may not have processed it.
    #[error("no answer from {address} within {after:?}")]
    Silent {
        /// Address of the node.
        address: String,
        /// The timeout.
        after: Duration,
    },
    /// The response is not one that a Soloist node sends.
    #[error("invalid response from {address}, which may not be a Soloist node: {what}")]
    Garbled {
        /// Address that answered.
        address: String,
        /// What is wrong with the response.
        what: String,
    },
    /// The node answered with an error.
    #[error("{detail}")]
    Refused {
        /// HTTP status of the response.
        status: u16,
        /// Kind of error, for programs.
        kind: ErrorKind,
        /// Description of the error, for people.
        detail: String,
        /// Why the hold ended, if that is the error.
        reason: Option<EndReason>,
        /// How long ago the hold ended, if the node knows.
        ended_ago: Option<Duration>,
    },
}

impl ClientError {
    pub(crate) fn refused(status: u16, kind: ErrorKind, detail: String) -> Self {
        ClientError::Refused {
            status,
            kind,
            detail,
            reason: None,
            ended_ago: None,
        }
    }

    /// The same error, for another caller.
    pub(crate) fn copy(&self) -> Self {
        match self {
            ClientError::Unreachable(attempts) => ClientError::Unreachable(attempts.clone()),
            ClientError::Broken { address, source } => ClientError::Broken {
                address: address.clone(),
                source: source.to_string().into(),
            },
            ClientError::Silent { address, after } => ClientError::Silent {
                address: address.clone(),
                after: *after,
            },
            ClientError::Garbled { address, what } => ClientError::Garbled {
                address: address.clone(),
                what: what.clone(),
            },
            ClientError::Refused {
                status,
                kind,
                detail,
                ..
            } => ClientError::refused(*status, *kind, detail.clone()),
            // Connecting reports these, before there is a session.
            ClientError::Target(_) | ClientError::Thread(_) | ClientError::Ambiguous { .. } => {
                ClientError::Broken {
                    address: String::new(),
                    source: self.to_string().into(),
                }
            }
        }
    }

    /// Returns whether the node answered that it cannot serve requests, because it is not a member
    /// of the cluster.
    pub(crate) fn is_outside(&self) -> bool {
        matches!(self, ClientError::Refused { kind, .. } if *kind == ErrorKind::Unavailable)
    }

    /// Returns whether the node did not answer or is stopping, so that a retry, or another node,
    /// may succeed.
    pub fn is_unavailable(&self) -> bool {
        match self {
            ClientError::Unreachable(_)
            | ClientError::Broken { .. }
            | ClientError::Silent { .. } => true,
            ClientError::Refused { kind, .. } => *kind == ErrorKind::Stopping,
            ClientError::Target(_)
            | ClientError::Thread(_)
            | ClientError::Ambiguous { .. }
            | ClientError::Garbled { .. } => false,
        }
    }
}

/// A failed attempt to connect to a node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Attempt {
    /// Address that was tried.
    pub address: String,
    /// Why it failed.
    pub problem: String,
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.address, self.problem)
    }
}

fn list(attempts: &[Attempt]) -> String {
    let each: Vec<String> = attempts.iter().map(Attempt::to_string).collect();
    each.join(", ")
}
