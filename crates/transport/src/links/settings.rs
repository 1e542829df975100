//! Settings and limits of links.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::time::Duration;

use super::frame::DATA_HEADER_BYTES;
use super::window::Full;
use crate::Endpoint;
use soloist_api::{NodeName, NodeNameError};
use soloist_core::Incarnation;

/// Settings of a node's links.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Name and credentials of this node.
    pub endpoint: Endpoint,
    /// Hash of what all nodes' configurations must agree on.
    pub fingerprint: [u8; 32],
    /// Sizes and timeouts.
    pub limits: Limits,
}

/// A node that this node has links with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Peer {
    /// Name of the peer, which its certificate must have.
    pub name: String,
    /// `host:port`, resolved at each dial.
    pub address: String,
    /// Incarnation of the peer, by which frames are sent and received.
    pub incarnation: Incarnation,
}

/// Sizes and timeouts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Maximum number of bytes per peer that wait for acknowledgement.
    pub buffer_bytes: usize,
    /// Maximum number of frames per peer that wait for acknowledgement.
    pub buffer_frames: usize,
    /// Maximum size of one write; frames that are ready together are written together.
    pub write_bytes: usize,
    /// An acknowledgement is sent after this many frames.
    pub ack_frames: usize,
    /// An acknowledgement is sent after this many bytes.
    pub ack_bytes: usize,
    /// An acknowledgement is sent at the latest this long after the first unacknowledged frame. If
    /// this is short, links with little traffic spend more on acknowledgements than on frames.
    /// Nothing waits for them: a sender keeps at most `ack_frames` frames for longer.
    pub ack_delay: Duration,
    /// Timeout for the first byte of an incoming connection.
    pub first_bytes: Duration,
    /// Timeout of a handshake.
    pub handshake: Duration,
    /// Interval at which an idle connection is probed.
    pub probe_every: Duration,
    /// A connection that was silent for longer than this is closed.
    pub silence_max: Duration,
    /// Shortest pause between dials.
    pub retry_min: Duration,
    /// Longest pause between dials.
    pub retry_max: Duration,
    /// Maximum number of incoming connections in their handshake. Another one displaces the oldest.
    pub unauthenticated_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            buffer_bytes: 16 << 20,
            buffer_frames: 1 << 18,
            write_bytes: 64 << 10,
            ack_frames: 64,
            ack_bytes: 64 << 10,
            ack_delay: Duration::from_millis(250),
            first_bytes: Duration::from_secs(1),
            handshake: Duration::from_secs(5),
            probe_every: Duration::from_secs(1),
            silence_max: Duration::from_secs(5),
            retry_min: Duration::from_millis(20),
            retry_max: Duration::from_secs(2),
            unauthenticated_max: 256,
        }
    }
}

/// Why links cannot start, or cannot take these peers.
#[derive(Debug, thiserror::Error)]
pub enum LinksError {
    /// Invalid node name.
    #[error(transparent)]
    Name(#[from] NodeNameError),
    /// Two nodes have the same name.
    #[error("two nodes have the name {0:?}; give each its own")]
    SameName(String),
    /// Two nodes have the same incarnation.
    #[error("two nodes have the incarnation {0}; give each its own")]
    SameIncarnation(Incarnation),
    /// The limits contradict each other.
    #[error("{0}")]
    Limits(String),
    /// Plain TCP on an address that is not loopback.
    #[error(
        "this node listens on {0} without TLS, which only a loopback address allows; give it a \
         certificate, or listen on 127.0.0.1 or [::1]"
    )]
    PlainOffLoopback(SocketAddr),
    /// The listening socket cannot be used.
    #[error("the listening socket cannot be used: {0}")]
    Listener(#[from] std::io::Error),
    /// Links were started outside a tokio runtime.
    #[error("links must be started inside a tokio runtime")]
    NoRuntime,
}

/// Why a frame was not sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SendError {
    /// It does not fit into the peer's buffer.
    #[error(transparent)]
    Full(#[from] Full),
    /// No peer has this incarnation, or it is this node's own.
    #[error("no peer has the incarnation {0}")]
    NotAPeer(Incarnation),
}

impl Settings {
    pub(super) fn check(&self) -> Result<(), LinksError> {
        self.limits.check()
    }

    pub(super) fn check_peers(&self, peers: &[Peer]) -> Result<(), LinksError> {
        let (mut names, mut incarnations) = (HashSet::new(), HashSet::new());
        for peer in peers {
            peer.name.parse::<NodeName>()?;
            if !names.insert(&peer.name) {
                return Err(LinksError::SameName(peer.name.clone()));
            }
            if !incarnations.insert(peer.incarnation) {
                return Err(LinksError::SameIncarnation(peer.incarnation));
            }
        }
        Ok(())
    }
}

impl Limits {
    fn check(&self) -> Result<(), LinksError> {
        let rules = [
            (
                self.buffer_bytes > DATA_HEADER_BYTES && self.buffer_frames > 0,
                "buffer_bytes and buffer_frames must have room for a frame",
            ),
            (
                self.ack_frames > 0 && self.ack_bytes > 0,
                "ack_frames and ack_bytes must be at least 1",
            ),
            (
                !self.probe_every.is_zero() && self.probe_every < self.silence_max,
                "probe_every must be longer than 0 and shorter than silence_max",
            ),
            (
                !self.retry_min.is_zero() && self.retry_min <= self.retry_max,
                "retry_min must be longer than 0 and no longer than retry_max",
            ),
            (
                !self.handshake.is_zero()
                    && !self.first_bytes.is_zero()
                    && self.unauthenticated_max > 0,
                "handshake, first_bytes and unauthenticated_max must be more than 0",
            ),
        ];
        match rules.iter().find(|(kept, _)| !kept) {
            Some((_, rule)) => Err(LinksError::Limits(format!(
                "{rule}; the settings are {self:?}"
            ))),
            None => Ok(()),
        }
    }
}
