//! One incarnation of a peer, with everything in flight between it and one incarnation of this
//! node.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::accept::LinkHello;
use super::settings::{Limits, Peer};
use super::shared::lock;
use super::status::{LinkStatus, Totals, add, count};
use super::window::{ReceiveWindow, SendWindow};

/// State of one pair of incarnations. It lives while the peer is in the list. Another incarnation
/// of either side gets a new one, so nothing of one incarnation can reach the next.
pub(super) struct PeerState {
    pub name: String,
    /// The peer's incarnation, or `None` to take the first that connects.
    pub life: Option<u64>,
    /// This node's incarnation.
    pub mine: u64,
    id: AtomicU64,
    address: Mutex<String>,
    /// Cancelled when the peer leaves the list, or when all links stop.
    pub gone: CancellationToken,
    pub outgoing: Outgoing,
    pub incoming: Incoming,
}

impl PeerState {
    pub fn new(peer: Peer, mine: u64, limits: &Limits, stop: &CancellationToken) -> Self {
        Self {
            name: peer.name,
            life: peer.incarnation,
            mine,
            id: AtomicU64::new(peer.id),
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

    pub fn id(&self) -> u64 {
        self.id.load(Ordering::Relaxed)
    }

    pub fn address(&self) -> String {
        lock(&self.address).clone()
    }

    /// Updates the id and address of the same incarnation.
    pub fn renew(&self, peer: Peer) {
        self.id.store(peer.id, Ordering::Relaxed);
        *lock(&self.address) = peer.address;
    }

    /// Called when the peer has left the list. Nothing is sent to it from now on.
    pub fn retire(&self) {
        let mut state = lock(&self.outgoing.state);
        state.retired = true;
        state.window = SendWindow::new(0, 0);
        drop(state);
        self.gone.cancel();
    }

    pub fn status(&self) -> LinkStatus {
        let incoming = lock(&self.incoming.state).status();
        let outgoing = lock(&self.outgoing.state);
        LinkStatus {
            id: self.id(),
            name: self.name.clone(),
            out_up: outgoing.up,
            frames_sent: outgoing.window.sent(),
            frames_resent: outgoing.window.resent(),
            bytes_sent: outgoing.bytes,
            writes: outgoing.writes,
            buffered_frames: outgoing.window.buffered_frames(),
            buffered_bytes: outgoing.window.buffered_bytes(),
            last_error: outgoing.last_error.clone().or(incoming.last_error),
            ..incoming
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
    /// The incarnation to which frames were sent.
    receiver: Option<u64>,
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
            receiver: None,
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

    /// Starts to send on a connection to this incarnation, which expects frame `next`.
    pub fn begin(&mut self, name: &str, incarnation: u64, next: u64) -> Result<(), String> {
        let other = self.receiver.is_some_and(|known| known != incarnation);
        if other && self.window.sent() > 0 {
            return Err(restarted(name));
        }
        let rewound = self.window.rewind(next);
        rewound
            .map_err(|error| format!("node {name} lost frames that it had received: {error}"))?;
        self.receiver = Some(incarnation);
        self.last_error = None;
        self.up = true;
        Ok(())
    }

    /// Returns since when frames that must not be lost have been pending without any
    /// acknowledgement, counted from the call that first saw them.
    pub fn stands_still(&mut self, now: Instant) -> Option<Instant> {
        let acknowledged = self.window.acknowledged();
        let before = self.seen.filter(|(before, _)| *before == acknowledged);
        let seen = before.unwrap_or((acknowledged, now));
        self.seen = (acknowledged < self.needed).then_some(seen);
        self.seen.map(|(_, since)| since)
    }

    /// Appends the bytes to write next, and counts them.
    pub fn take(&mut self, bytes_max: usize, out: &mut Vec<u8>, totals: &Totals) {
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
    /// The incarnation to which the window belongs.
    known: Option<u64>,
    pub window: ReceiveWindow,
    pub connection: CancellationToken,
    pub up: bool,
    bytes: u64,
    pub last_error: Option<String>,
}

impl InState {
    /// Checks that this hello continues the incarnation of the window.
    pub fn check(&self, hello: &LinkHello) -> Result<(), String> {
        match self.known {
            Some(known) if known != hello.incarnation && self.window.received() > 0 => {
                Err(restarted(hello.from.as_str()))
            }
            _ => Ok(()),
        }
    }

    /// Accepts the sender of this hello as the peer.
    pub fn adopt(&mut self, hello: &LinkHello) {
        self.known = Some(hello.incarnation);
        self.last_error = None;
        self.up = true;
    }

    /// Stores the progress of a connection: its window and the number of bytes read.
    pub fn advance(&mut self, window: ReceiveWindow, bytes: u64, totals: &Totals) {
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

    fn status(&self) -> LinkStatus {
        LinkStatus {
            in_up: self.up,
            frames_received: self.window.received(),
            duplicates: self.window.duplicates(),
            bytes_received: self.bytes,
            last_error: self.last_error.clone(),
            ..LinkStatus::default()
        }
    }
}

fn restarted(name: &str) -> String {
    format!(
        "node {name} restarted and lost the state of its locks; restart the other nodes as well, \
         or let it join as a new member"
    )
}
