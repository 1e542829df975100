//! Status, counters, refusals and log of the links.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::shared::lock;
use crate::throttle::Throttle;
use soloist_core::Incarnation;

/// Status of the two links with one peer: from this node to it, and from it to this node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LinkStatus {
    /// The peer's incarnation.
    pub incarnation: Incarnation,
    /// The peer's name.
    pub name: String,
    /// Whether the link to the peer is open.
    pub out_up: bool,
    /// Whether the link from the peer is open.
    pub in_up: bool,
    /// Frames sent, each counted once.
    pub frames_sent: u64,
    /// Frames sent again after a connection broke.
    pub frames_resent: u64,
    /// Frames received, each counted once.
    pub frames_received: u64,
    /// Frames received again and dropped.
    pub duplicates: u64,
    /// Bytes of frames written.
    pub bytes_sent: u64,
    /// Writes that carried them. Frames that are ready together share a write.
    pub writes: u64,
    /// Bytes read, excluding handshakes.
    pub bytes_received: u64,
    /// Frames waiting for the peer's acknowledgement.
    pub buffered_frames: usize,
    /// Bytes waiting for the peer's acknowledgement.
    pub buffered_bytes: usize,
    /// The last error, or `None` if the link has been fine since.
    pub last_error: Option<String>,
}

/// Totals over all current and former peers since the start.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counters {
    /// Links to peers that are currently open.
    pub links_up: u64,
    /// Dials by this node.
    pub dialled: u64,
    /// Incoming connections accepted.
    pub accepted: u64,
    /// Incoming connections that this node refused: wrong certificate, name, configuration,
    /// incarnation or service.
    pub refused: u64,
    /// Connections of this node that peers refused.
    pub refused_by_peers: u64,
    /// Connections closed because of what the peer sent.
    pub hostile: u64,
    /// Connections closed during their handshake, as the oldest of too many.
    pub turned_away: u64,
    /// Frames dropped because they did not fit into a peer's buffer.
    pub full: u64,
    /// As in [`LinkStatus`].
    pub frames_sent: u64,
    /// As in [`LinkStatus`].
    pub frames_resent: u64,
    /// As in [`LinkStatus`].
    pub frames_received: u64,
    /// As in [`LinkStatus`].
    pub duplicates: u64,
    /// As in [`LinkStatus`].
    pub bytes_sent: u64,
    /// As in [`LinkStatus`].
    pub writes: u64,
    /// As in [`LinkStatus`].
    pub bytes_received: u64,
}

/// An incoming connection that was refused, or closed because of what it sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RefusedFrom {
    /// Address of the peer.
    pub from: SocketAddr,
    /// The reason.
    pub reason: String,
}

#[derive(Default, Debug)]
pub(super) struct Totals {
    pub dialled: AtomicU64,
    pub accepted: AtomicU64,
    pub refused: AtomicU64,
    pub refused_by_peers: AtomicU64,
    pub hostile: AtomicU64,
    pub turned_away: AtomicU64,
    pub full: AtomicU64,
    pub frames_sent: AtomicU64,
    pub frames_resent: AtomicU64,
    pub frames_received: AtomicU64,
    pub duplicates: AtomicU64,
    pub bytes_sent: AtomicU64,
    pub writes: AtomicU64,
    pub bytes_received: AtomicU64,
}

pub(super) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

pub(super) fn add(counter: &AtomicU64, number: u64) {
    counter.fetch_add(number, Ordering::Relaxed);
}

impl Totals {
    pub(super) fn counters(&self, links_up: u64) -> Counters {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counters {
            links_up,
            dialled: read(&self.dialled),
            accepted: read(&self.accepted),
            refused: read(&self.refused),
            refused_by_peers: read(&self.refused_by_peers),
            hostile: read(&self.hostile),
            turned_away: read(&self.turned_away),
            full: read(&self.full),
            frames_sent: read(&self.frames_sent),
            frames_resent: read(&self.frames_resent),
            frames_received: read(&self.frames_received),
            duplicates: read(&self.duplicates),
            bytes_sent: read(&self.bytes_sent),
            writes: read(&self.writes),
            bytes_received: read(&self.bytes_received),
        }
    }
}

const REFUSALS_KEPT: usize = 32;
const LINES_A_SECOND: u32 = 10;

/// The last refusals, and a rate-limited log that a hostile peer cannot flood.
#[derive(Debug)]
pub(super) struct Notes {
    refusals: Mutex<VecDeque<RefusedFrom>>,
    second: Mutex<Second>,
    throttle: Throttle,
}

#[derive(Debug)]
struct Second {
    began: Instant,
    lines: u32,
    withheld: u64,
}

impl Notes {
    pub(super) fn new() -> Self {
        Self {
            refusals: Mutex::default(),
            second: Mutex::new(Second {
                began: Instant::now(),
                lines: 0,
                withheld: 0,
            }),
            throttle: Throttle::default(),
        }
    }

    pub(super) fn refusal(&self, from: SocketAddr, reason: &str) {
        let line = format!("connection from {from} closed: {reason}");
        self.about(&from.ip().to_string(), reason, &line);
        let mut refusals = lock(&self.refusals);
        if refusals.len() == REFUSALS_KEPT {
            refusals.pop_front();
        }
        refusals.push_back(RefusedFrom {
            from,
            reason: reason.to_owned(),
        });
    }

    pub(super) fn refusals(&self) -> Vec<RefusedFrom> {
        lock(&self.refusals).iter().cloned().collect()
    }

    /// Logs something expected, at debug level.
    pub(super) fn debug(&self, line: &str) {
        tracing::debug!(target: "soloist::links", "{line}");
    }

    /// Logs a line about a peer, unless the same reason was logged for it within the last minute.
    pub(super) fn about(&self, peer: &str, reason: &str, line: &str) {
        if self.throttle.admit(peer, reason, Instant::now()).is_some() {
            self.log(line);
        }
    }

    pub(super) fn log(&self, line: &str) {
        if let Some(withheld) = lock(&self.second).admit(Instant::now()) {
            tracing::warn!(target: "soloist::links", withheld, "{line}");
        }
    }
}

impl Second {
    /// Returns the number of lines withheld before this one, or `None` if this line must be
    /// withheld too.
    fn admit(&mut self, now: Instant) -> Option<u64> {
        if now.duration_since(self.began) >= Duration::from_secs(1) {
            self.began = now;
            self.lines = 0;
        }
        if self.lines == LINES_A_SECOND {
            self.withheld += 1;
            return None;
        }
        self.lines += 1;
        Some(std::mem::take(&mut self.withheld))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_lines_per_second_are_limited_and_the_rest_counted() {
        let began = Instant::now();
        let mut second = Second {
            began,
            lines: 0,
            withheld: 0,
        };
        let admitted = (0..100).filter(|_| second.admit(began).is_some());
        assert_eq!(admitted.count(), LINES_A_SECOND as usize);
        assert_eq!(second.admit(began + Duration::from_secs(1)), Some(90));
        assert_eq!(second.admit(began + Duration::from_secs(1)), Some(0));
    }
}
