//! What the tasks of a node's links share.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::frame::Hello;
use super::settings::{Limits, Settings};
use super::status::{LinkStatus, Notes, Totals};
use super::window::{ReceiveWindow, SendWindow};
use super::{Handler, LinkChange};

/// A panic elsewhere must not stop the other links: no state is left half changed.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) struct Shared {
    pub settings: Settings,
    pub places: HashMap<String, usize>,
    /// This node's own place, if it is in the roster.
    pub me: Option<usize>,
    pub peers: Vec<PeerState>,
    pub handler: Arc<dyn Handler>,
    pub totals: Totals,
    pub notes: Notes,
    pub stop: CancellationToken,
    pub tasks: TaskTracker,
    /// Some peer's buffer was found full.
    pub fulls: Notify,
    /// Some peer has acknowledged everything.
    pub drained: Notify,
}

impl Shared {
    pub fn new(
        settings: Settings,
        places: HashMap<String, usize>,
        handler: Arc<dyn Handler>,
    ) -> Self {
        let peers = settings.peers.iter();
        let peers = peers.map(|_| PeerState::new(&settings.limits)).collect();
        Self {
            me: places.get(&settings.me).copied(),
            settings,
            places,
            peers,
            handler,
            totals: Totals::default(),
            notes: Notes::new(),
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
            fulls: Notify::new(),
            drained: Notify::new(),
        }
    }

    pub fn limits(&self) -> &Limits {
        &self.settings.limits
    }

    pub fn name(&self, peer: usize) -> &str {
        &self.settings.peers[peer].name
    }

    pub fn status(&self, peer: usize) -> LinkStatus {
        let incoming = lock(&self.peers[peer].incoming.state).status();
        let outgoing = lock(&self.peers[peer].outgoing.state);
        let past = &outgoing.past;
        LinkStatus {
            name: self.name(peer).to_owned(),
            out_up: outgoing.up,
            frames_sent: past.frames_sent + outgoing.window.sent(),
            frames_resent: past.frames_resent + outgoing.window.resent(),
            bytes_sent: outgoing.bytes,
            writes: outgoing.writes,
            buffered_frames: outgoing.window.buffered_frames(),
            buffered_bytes: outgoing.window.buffered_bytes(),
            last_error: outgoing.last_error.clone().or(incoming.last_error),
            ..incoming
        }
    }
}

pub(super) struct PeerState {
    pub outgoing: Outgoing,
    pub incoming: Incoming,
}

impl PeerState {
    fn new(limits: &Limits) -> Self {
        Self {
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
}

/// The link to a peer.
pub(super) struct Outgoing {
    pub state: Mutex<OutState>,
    /// The link's task sleeps on this when there is nothing to send.
    pub wake: Notify,
}

pub(super) struct OutState {
    pub window: SendWindow,
    /// How often the link began anew.
    pub stream: u64,
    /// The incarnation that frames were sent to.
    pub receiver: Option<u64>,
    /// Whether the link's task must be woken for a new frame.
    pub waiting: bool,
    /// Whether the last frame did not fit.
    pub full: bool,
    /// Whether the handler has still to be told so.
    pub full_untold: bool,
    /// Cancelled, under this lock, when the link begins anew.
    pub connection: CancellationToken,
    pub up: bool,
    pub bytes: u64,
    pub writes: u64,
    pub last_error: Option<String>,
    /// What earlier windows counted.
    past: LinkStatus,
}

impl OutState {
    fn new(limits: &Limits) -> Self {
        Self {
            window: SendWindow::new(limits.buffer_bytes, limits.buffer_frames),
            stream: 1,
            receiver: None,
            waiting: false,
            full: false,
            full_untold: false,
            connection: CancellationToken::new(),
            up: false,
            bytes: 0,
            writes: 0,
            last_error: None,
            past: LinkStatus::default(),
        }
    }

    pub fn forget(&mut self, limits: &Limits) {
        self.past.frames_sent += self.window.sent();
        self.past.frames_resent += self.window.resent();
        self.window = SendWindow::new(limits.buffer_bytes, limits.buffer_frames);
        self.stream += 1;
        self.receiver = None;
        self.full = false;
        self.connection.cancel();
    }

    /// Begins to send on a connection to this incarnation, which expects this number next.
    pub fn begin(&mut self, name: &str, incarnation: u64, next: u64) -> Result<(), String> {
        let other = self.receiver.is_some_and(|known| known != incarnation);
        if other && self.window.sent() > 0 {
            return Err(restarted(name));
        }
        let rewound = self.window.rewind(next);
        rewound.map_err(|error| format!("node {name} lost what it had received: {error}"))?;
        self.receiver = Some(incarnation);
        Ok(())
    }
}

/// The link from a peer.
pub(super) struct Incoming {
    pub state: Mutex<InState>,
    /// Held by the one connection that may give frames to the handler. A later connection waits here
    /// until the earlier one is out of the handler, and only then reads how far it came.
    pub turn: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Default)]
pub(super) struct InState {
    /// The incarnation and the stream that the window belongs to.
    known: Option<(u64, u64)>,
    /// Those that it belonged to before it was forgotten: they may not come back.
    past: Option<(u64, u64)>,
    pub window: ReceiveWindow,
    /// How often the link began anew.
    pub generation: u64,
    pub connection: CancellationToken,
    pub up: bool,
    pub epoch: Option<u64>,
    pub bytes: u64,
    pub last_error: Option<String>,
    past_status: LinkStatus,
}

impl InState {
    pub fn forget(&mut self) {
        self.past_status.frames_received += self.window.received();
        self.past_status.duplicates += self.window.duplicates();
        self.window = ReceiveWindow::default();
        self.past = self.known.take().or(self.past);
        self.generation += 1;
        self.connection.cancel();
    }

    /// Whether this Hello goes on where the window stands.
    pub fn check(&self, hello: &Hello) -> Result<(), String> {
        let name = &hello.from;
        if self.past == Some((hello.incarnation, hello.stream)) {
            return Err(format!(
                "this node has begun its links with node {name} anew, and node {name} has not yet"
            ));
        }
        match self.known {
            Some((incarnation, _)) if incarnation != hello.incarnation && self.has_data() => {
                Err(restarted(name))
            }
            Some((_, stream)) if stream != hello.stream && self.has_data() => Err(format!(
                "node {name} has begun its links with this node anew, and this node has not yet"
            )),
            _ => Ok(()),
        }
    }

    /// Takes the Hello's sender for the peer.
    pub fn adopt(&mut self, hello: &Hello) {
        self.known = Some((hello.incarnation, hello.stream));
        self.epoch = Some(hello.epoch);
        self.last_error = None;
        self.up = true;
    }

    fn has_data(&self) -> bool {
        self.window.received() > 0
    }

    fn status(&self) -> LinkStatus {
        LinkStatus {
            in_up: self.up,
            epoch: self.epoch,
            frames_received: self.past_status.frames_received + self.window.received(),
            duplicates: self.past_status.duplicates + self.window.duplicates(),
            bytes_received: self.bytes,
            last_error: self.last_error.clone(),
            ..LinkStatus::default()
        }
    }
}

fn restarted(name: &str) -> String {
    format!(
        "node {name} has restarted and lost what it knew of its locks; \
         restart the other nodes as well, or let it join as a new member"
    )
}

/// Why a connection ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum End {
    /// It could not be made, or it broke.
    Failed(String),
    /// One of the two nodes does not want it.
    Refused(String),
    /// Something came over it that no correct peer sends.
    Hostile(String),
    /// This node wants it no more: it stops, begins anew, or has a newer connection.
    Ours,
}

impl End {
    /// What the handler is told of a link that ended so.
    pub fn change(self) -> Option<LinkChange> {
        match self {
            End::Failed(reason) | End::Hostile(reason) => Some(LinkChange::Down { reason }),
            End::Refused(reason) => Some(LinkChange::Refused { reason }),
            End::Ours => None,
        }
    }
}
