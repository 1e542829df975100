//! What links are made of, and their limits.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::time::Duration;

use super::frame::DATA_HEADER_BYTES;
use crate::transport::Endpoint;
use soloist_api::{NodeName, NodeNameError};

/// What a node's links need to know.
#[derive(Clone, Debug)]
pub struct Settings {
    /// This node, as it shows itself to others.
    pub endpoint: Endpoint,
    /// What all nodes' configurations must agree on, as a hash.
    pub fingerprint: [u8; 32],
    /// Sizes and times.
    pub limits: Limits,
}

/// Somebody this node has links with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Peer {
    /// What the handler calls it.
    pub id: u64,
    /// Its name, which its certificate must have.
    pub name: String,
    /// `host:port`, resolved at each dial.
    pub address: String,
    /// Which of its lives; none: whichever comes first, until the end.
    pub incarnation: Option<u64>,
}

/// Sizes and times.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Bytes that wait for one peer's acknowledgement.
    pub buffer_bytes: usize,
    /// Frames that wait for one peer's acknowledgement.
    pub buffer_frames: usize,
    /// What is ready leaves in one write of up to so many bytes.
    pub write_bytes: usize,
    /// An acknowledgement leaves after so many frames,
    pub ack_frames: usize,
    /// or so many bytes,
    pub ack_bytes: usize,
    /// or so long after the first of them.
    pub ack_delay: Duration,
    /// The first bytes of an incoming connection must arrive within this time.
    pub first_bytes: Duration,
    /// A handshake must be done after so long.
    pub handshake: Duration,
    /// An idle connection is probed so often.
    pub probe_every: Duration,
    /// A connection without a sign of life for so long is closed.
    pub silence_max: Duration,
    /// The shortest pause between dials.
    pub retry_min: Duration,
    /// The longest pause between dials.
    pub retry_max: Duration,
    /// Incoming connections whose handshake is not done. The oldest is closed when another comes.
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
            ack_delay: Duration::from_millis(20),
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

/// Why links cannot start, or cannot have these peers.
#[derive(Debug, thiserror::Error)]
pub enum LinksError {
    /// A name that no node can have.
    #[error(transparent)]
    Name(#[from] NodeNameError),
    /// Two nodes with one name.
    #[error("two nodes are called {0:?}; give each its own name")]
    SameName(String),
    /// Two nodes with one id.
    #[error("two nodes have the id {0}; give each its own")]
    SameId(u64),
    /// Limits that contradict each other.
    #[error("{0}")]
    Limits(String),
    /// Plain TCP towards other machines.
    #[error(
        "without TLS only a loopback address is allowed, and this node listens on {0}; \
         give it a certificate, or listen on 127.0.0.1 or [::1]"
    )]
    PlainOffLoopback(SocketAddr),
    /// The listener does not know its address.
    #[error("the listening socket cannot be used: {0}")]
    Listener(#[from] std::io::Error),
    /// Started outside of a tokio runtime.
    #[error("links must be started inside a tokio runtime")]
    NoRuntime,
}

impl Settings {
    pub(super) fn check(&self) -> Result<(), LinksError> {
        self.limits.check()
    }

    pub(super) fn check_peers(&self, peers: &[Peer]) -> Result<(), LinksError> {
        let (mut names, mut ids) = (HashSet::new(), HashSet::new());
        for peer in peers {
            peer.name.parse::<NodeName>()?;
            if !names.insert(&peer.name) {
                return Err(LinksError::SameName(peer.name.clone()));
            }
            if !ids.insert(peer.id) {
                return Err(LinksError::SameId(peer.id));
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
            Some((_, rule)) => Err(LinksError::Limits(format!("{rule}; they are {self:?}"))),
            None => Ok(()),
        }
    }
}
