//! One incarnation of a peer, with everything in flight between it and one incarnation of this
//! node.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::settings::{Limits, Peer};
use super::shared::lock;
use super::status::{LinkStatus, Totals, add, count};
use super::window::{ReceiveWindow, SendWindow};
use soloist_core::Incarnation;

/// State of one pair of incarnations. It lives while the peer is in the list. Another incarnation
/// of either side gets a new one, so nothing of one incarnation can reach the next.
pub(super) struct PeerState {
    pub name: String,
    /// The peer's incarnation.
    pub incarnation: Incarnation,
    /// This node's incarnation.
    pub mine: Incarnation,
    address: Mutex<String>,
    /// Cancelled when the peer leaves the list, or when all links stop.
    pub gone: CancellationToken,
    pub outgoing: Outgoing,
    pub incoming: Incoming,
}

impl PeerState {
    pub(super) fn new(
        peer: Peer,
        mine: Incarnation,
        limits: &Limits,
        stop: &CancellationToken,
    ) -> Self {
        Self {
            name: peer.name,
            incarnation: peer.incarnation,
            mine,
            address: Mutex::new(peer.address),
            gone: stop.child_token(),
            outgoing: Outgoing {
                state: Mutex::new(OutState::new(limits)),
                wake: Notify::new(),
            },
            incoming: Incoming {
                state: Mutex::new(InState::default()),
                turn: Arc::default(),
            },
        }
    }

    pub(super) fn address(&self) -> String {
        lock(&self.address).clone()
    }

    pub(super) fn set_address(&self, address: String) {
        *lock(&self.address) = address;
    }

    /// Called when the peer has left the list. Nothing is sent to it from now on.
    pub(super) fn retire(&self) {
        let mut state = lock(&self.outgoing.state);
        state.retired = true;
        state.window = SendWindow::new(0, 0);
        drop(state);
        self.gone.cancel();
    }

    pub(super) fn status(&self) -> LinkStatus {
        let incoming = lock(&self.incoming.state);
        let outgoing = lock(&self.outgoing.state);
        LinkStatus {
            incarnation: self.incarnation,
            name: self.name.clone(),
            out_up: outgoing.up,
            in_up: incoming.up,
            frames_sent: outgoing.window.sent(),
            frames_resent: outgoing.window.resent(),
            frames_received: incoming.window.received(),
            duplicates: incoming.window.duplicates(),
            bytes_sent: outgoing.bytes,
            writes: outgoing.writes,
            bytes_received: incoming.bytes,
            buffered_frames: outgoing.window.buffered_frames(),
            buffered_bytes: outgoing.window.buffered_bytes(),
            last_error: (outgoing.last_error.as_ref())
                .or(incoming.last_error.as_ref())
                .cloned(),
        }
    }
}

/// The link to a peer.
pub(super) struct Outgoing {
    pub state: Mutex<OutState>,
    /// Wakes the link's task, which waits here while there is nothing to send.
    pub wake: Notify,
}

pub(super) struct OutState {
    pub window: SendWindow,
    /// The peer has left the list, and the window is no longer that of the connection.
    pub retired: bool,
    /// Whether the link's task must be woken for a new frame.
    pub waiting: bool,
    /// Number of the last frame that must not be lost.
    pub needed: u64,
    /// Progress at the last call of `stands_still`: the number acknowledged, and since when it has
    /// not changed.
    seen: Option<(u64, Instant)>,
    /// Whether the last frame did not fit.
    pub full: bool,
    /// Whether the handler has not been told yet that it did not fit.
    pub full_untold: bool,
    pub up: bool,
    bytes: u64,
    writes: u64,
    pub last_error: Option<String>,
}

impl OutState {
    fn new(limits: &Limits) -> Self {
        Self {
            window: SendWindow::new(limits.buffer_bytes, limits.buffer_frames),
            retired: false,
            waiting: false,
            needed: 0,
            seen: None,
            full: false,
            full_untold: false,
            up: false,
            bytes: 0,
            writes: 0,
            last_error: None,
        }
    }

    /// Starts to send on a connection to the peer, which expects frame `next`.
    pub(super) fn begin(&mut self, name: &str, next: u64) -> Result<(), String> {
        let rewound = self.window.rewind(next);
        rewound
            .map_err(|error| format!("node {name} lost frames that it had received: {error}"))?;
        self.last_error = None;
        self.up = true;
        Ok(())
    }

    /// Returns since when frames that must not be lost have been pending without any
    /// acknowledgement, counted from the call that first saw them.
    pub(super) fn stands_still(&mut self, now: Instant) -> Option<Instant> {
        let acknowledged = self.window.acknowledged();
        let before = self.seen.filter(|(before, _)| *before == acknowledged);
        let seen = before.unwrap_or((acknowledged, now));
        self.seen = (acknowledged < self.needed).then_some(seen);
        self.seen.map(|(_, since)| since)
    }

    /// Appends the bytes to write next, and counts them.
    pub(super) fn take(&mut self, bytes_max: usize, out: &mut Vec<u8>, totals: &Totals) {
        let before = (self.window.sent(), self.window.resent(), out.len());
        self.window.take(bytes_max, out);
        let bytes = (out.len() - before.2) as u64;
        self.waiting = bytes == 0;
        if bytes == 0 {
            return;
        }
        self.bytes += bytes;
        self.writes += 1;
        add(&totals.frames_sent, self.window.sent() - before.0);
        add(&totals.frames_resent, self.window.resent() - before.1);
        add(&totals.bytes_sent, bytes);
        count(&totals.writes);
    }
}

/// The link from a peer.
pub(super) struct Incoming {
    pub state: Mutex<InState>,
    /// Held by the one connection that may pass frames to the handler. A later connection waits
    /// here until the earlier one is out of the handler, and only then reads the window.
    pub turn: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Default)]
pub(super) struct InState {
    pub window: ReceiveWindow,
    pub connection: CancellationToken,
    pub up: bool,
    bytes: u64,
    pub last_error: Option<String>,
}

impl InState {
    /// Called when a connection opens. Returns the window in which it continues.
    pub(super) fn open(&mut self) -> ReceiveWindow {
        self.last_error = None;
        self.up = true;
        self.window
    }

    /// Stores the progress of a connection: its window and the number of bytes read.
    pub(super) fn advance(&mut self, window: ReceiveWindow, bytes: u64, totals: &Totals) {
        let before = std::mem::replace(&mut self.window, window);
        self.bytes += bytes;
        add(
            &totals.frames_received,
            window.received() - before.received(),
        );
        add(
            &totals.duplicates,
            window.duplicates() - before.duplicates(),
        );
        add(&totals.bytes_received, bytes);
    }
}
