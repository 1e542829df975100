//! Links between nodes: frames of bytes, each once and in order, over connections that may break at any time.
//!
//! A link goes one way, from this node to a peer: this node dials, frames go out, acknowledgements come back.
//! The other way is the peer's own link. A link opens with the first frame to its peer, and stays.
//!
//! A frame is kept until it is acknowledged. When a connection breaks, the next one begins where the receiver
//! stands. So nothing is lost or doubled as long as both processes live. A process that was restarted has
//! lost what it knew, and is refused until the other side begins anew with it ([`Links::forget`]).
//!
//! - `frame`: bytes on the wire. `window`: numbers, acknowledgements, resending. Both without I/O.
//! - `dial`: a link's task. `accept`: the listener's and its handshakes. `receive`: an incoming connection.
//!   `connection`: TCP, TLS and records, as both sides use them.
//! - `shared`: what those tasks share. `settings`, `status`: what goes in and what can be seen.
//!
//! Invariants: no lock is held while the handler is called or something is awaited. For each peer one
//! connection at a time gives frames to the handler.

mod accept;
mod backoff;
mod connection;
mod dial;
pub mod frame;
mod receive;
mod settings;
mod shared;
mod status;
pub mod window;

use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::time::timeout;
use tokio_util::sync::DropGuard;

pub use settings::{Limits, LinksError, Peer, Security, Settings};
pub use status::{Counters, LinkStatus, Refusal};
pub use window::Full;

use shared::{Shared, lock};
use status::count;

/// How long tasks may take to end when all is said.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// What links report to. Called from their tasks: it must not block, or all tasks of the runtime may stand still.
pub trait Handler: Send + Sync + 'static {
    /// All frames of one read, in order, at once. `from` is the peer's place in the roster.
    ///
    /// Each frame is given once, over all connections. An error closes the connection with this reason
    /// and counts as hostile; frames that were not taken from the iterator by then come again.
    fn receive(&self, from: usize, frames: &mut dyn Iterator<Item = &[u8]>) -> Result<(), String>;

    /// The link to a peer changed, or a connection from it was refused.
    fn link_changed(&self, peer: usize, change: LinkChange);
}

/// What happened to the link to a peer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LinkChange {
    /// It is open.
    Up,
    /// It could not be opened, or it broke. It will be tried again.
    Down {
        /// Why.
        reason: String,
    },
    /// One of the two nodes refused the connection, to the peer or from it. It will be tried again.
    Refused {
        /// Why, and which of them.
        reason: String,
    },
    /// A frame did not fit into the peer's buffer and was not taken.
    Full,
}

/// A node's links. Cheap to clone; the last clone that is dropped stops them.
#[derive(Clone)]
pub struct Links {
    shared: Arc<Shared>,
    _stop: Arc<DropGuard>,
}

impl Links {
    /// Begins to listen, and to send what [`Links::send`] is given.
    pub fn start(
        settings: Settings,
        listener: TcpListener,
        handler: Arc<dyn Handler>,
    ) -> Result<Links, LinksError> {
        let places = settings.check()?;
        let address = listener.local_addr()?;
        if !settings.security.allows(address) {
            return Err(LinksError::PlainOffLoopback(address));
        }
        let runtime = Handle::try_current().map_err(|_| LinksError::NoRuntime)?;
        let shared = Arc::new(Shared::new(settings, places, handler));
        let tasks = &shared.tasks;
        tasks.spawn_on(accept::listen(shared.clone(), listener), &runtime);
        tasks.spawn_on(tell_fulls(shared.clone()), &runtime);
        for index in 0..shared.peers.len() {
            if Some(index) != shared.me {
                tasks.spawn_on(dial::keep_link(shared.clone(), index), &runtime);
            }
        }
        tasks.close();
        Ok(Links {
            _stop: Arc::new(shared.stop.clone().drop_guard()),
            shared,
        })
    }

    /// Sends a frame to a peer of the roster. Never blocks; may be called from any thread, and from within
    /// the handler. A frame that does not fit is not sent, then or later.
    ///
    /// # Panics
    /// If `to` is not in the roster, or is this node itself.
    pub fn send(&self, to: usize, frame: &[u8]) -> Result<(), Full> {
        assert!(Some(to) != self.shared.me, "a node sends nothing to itself");
        let outgoing = &self.shared.peers[to].outgoing;
        let mut state = lock(&outgoing.state);
        if let Err(full) = state.window.push(frame) {
            state.full_untold |= !state.full;
            state.full = true;
            drop(state);
            count(&self.shared.totals.full);
            self.shared.fulls.notify_one();
            return Err(full);
        }
        state.full = false;
        let wake = std::mem::take(&mut state.waiting);
        drop(state);
        if wake {
            outgoing.wake.notify_one();
        }
        Ok(())
    }

    /// Sends a frame that may as well be lost, unless frames that may not need the room. Tells whether it was taken.
    ///
    /// # Panics
    /// As [`send`](Links::send).
    pub fn send_if_room(&self, to: usize, frame: &[u8]) -> bool {
        let is_busy = {
            let state = lock(&self.shared.peers[to].outgoing.state);
            let limits = self.shared.limits();
            state.window.buffered_bytes() > limits.buffer_bytes / 4
                || state.window.buffered_frames() > limits.buffer_frames / 4
        };
        !is_busy && self.send(to, frame).is_ok()
    }

    /// Begins anew with a peer, in both directions: what it was sent and what it sent before is forgotten,
    /// and another incarnation of it is welcome. The peer must begin anew as well, by the same call or by
    /// a restart; until then its connections are refused.
    ///
    /// A frame that the handler is working on meanwhile is finished.
    ///
    /// # Panics
    /// If `peer` is not in the roster.
    pub fn forget(&self, peer: usize) {
        let state = &self.shared.peers[peer];
        lock(&state.incoming.state).forget();
        lock(&state.outgoing.state).forget(self.shared.limits());
        self.shared.drained.notify_one();
    }

    /// The links with each peer, in the order of the roster.
    pub fn status(&self) -> Vec<LinkStatus> {
        let peers = 0..self.shared.peers.len();
        peers.map(|peer| self.shared.status(peer)).collect()
    }

    /// Totals over all peers, since the start.
    pub fn counters(&self) -> Counters {
        self.shared.totals.counters(self.status().iter())
    }

    /// The last incoming connections that were refused or closed because of what came over them.
    pub fn refusals(&self) -> Vec<Refusal> {
        self.shared.notes.refusals()
    }

    /// Sends what is buffered and waits up to `within` for it to be acknowledged; then says goodbye and
    /// stops all tasks.
    pub async fn close(&self, within: Duration) {
        let drained = async {
            while !self.is_drained() {
                self.shared.drained.notified().await;
            }
        };
        tokio::select! {
            _ = timeout(within, drained) => {}
            // Somebody else closes them too.
            () = self.shared.stop.cancelled() => {}
        }
        self.shared.stop.cancel();
        // A handler that blocks must not keep the node from stopping.
        let _ = timeout(LAST_WORDS, self.shared.tasks.wait()).await;
    }

    fn is_drained(&self) -> bool {
        let mut peers = self.shared.peers.iter();
        peers.all(|peer| lock(&peer.outgoing.state).window.is_empty())
    }
}

/// Tells the handler of full buffers: `send` must not, its caller may hold what the handler needs.
async fn tell_fulls(shared: Arc<Shared>) {
    loop {
        tokio::select! {
            biased;
            () = shared.stop.cancelled() => return,
            () = shared.fulls.notified() => {}
        }
        for (index, peer) in shared.peers.iter().enumerate() {
            let untold = std::mem::take(&mut lock(&peer.outgoing.state).full_untold);
            if untold {
                shared.handler.link_changed(index, LinkChange::Full);
            }
        }
    }
}
