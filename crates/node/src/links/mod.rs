//! Links between nodes: frames of bytes, each once and in order, over connections that may break at any time.
//!
//! A link goes one way, from this node to a peer: this node dials, frames go out, acknowledgements come back.
//! The other way is the peer's own link. A link opens with the first frame to its peer, and stays.
//!
//! A frame is kept until it is acknowledged. When a connection breaks, the next one begins where the receiver
//! stands. So nothing is lost or doubled within one life of the sender and one life of the receiver.
//!
//! With whom there are links is a list that can change at any time ([`Links::set_peers`]). Each life of a node (its
//! incarnation) is somebody of its own. Nodes hear of changes at slightly different moments: who comes too early or too late
//! is told so, and tries again. Where a list names no incarnation, the first one that comes counts: a node that was restarted
//! has lost what it knew, and is refused.
//!
//! The port is shared with other protocols: the [hello](crate::transport::hello) says what a
//! connection is for ([`Handler::serve`]).
//!
//! - `frame`: bytes on the wire. `window`: numbers, acknowledgements, resending. Both without I/O.
//! - `dial`: a link's task. `accept`: the listener's and its handshakes. `receive`: an incoming connection.
//!   `connection`: records, as both sides use them.
//! - `peer`: one life of a peer. `roster`: the list of them. `shared`: what all tasks share.
//!   `settings`, `status`: what goes in and what can be seen.
//!
//! Invariants: no lock is held while the handler is called or something is awaited. For each life of a peer one
//! connection at a time gives frames to the handler. What belongs to a pair of lives is in one place (`PeerState`), which is
//! never used for another.

mod accept;
mod backoff;
mod connection;
mod dial;
pub mod frame;
mod peer;
mod receive;
mod roster;
mod settings;
mod shared;
mod status;
pub mod window;

use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::time::timeout;
use tokio_util::sync::DropGuard;

pub(crate) use backoff::Backoff;
pub use settings::{Limits, LinksError, Peer, Settings};
pub use status::{Counters, LinkStatus, RefusedFrom};
pub use window::Full;

use peer::PeerState;
use shared::{Shared, lock};
use status::count;

use crate::transport::{Arrival, Code, Declined, Refusal, lengthen_queue};

/// How long tasks may take to end when all is said.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// What serves a connection that is no link, until it ends.
pub type Serving = Pin<Box<dyn Future<Output = ()> + Send>>;

/// What links report to. Called from their tasks: it must not block, or all tasks of the runtime may stand still.
pub trait Handler: Send + Sync + 'static {
    /// All frames of one read, in order, at once. `from` is the peer's [id](Peer::id).
    ///
    /// Each frame is given once, over all connections. An error closes the connection with this reason
    /// and counts as hostile; frames that were not taken from the iterator by then come again.
    ///
    /// When a list of peers takes the place of another, a call for somebody of the earlier one (or for its earlier id) may be
    /// under way, or just about to come: it may come after [`Links::set_peers`] has returned, once.
    fn receive(&self, from: u64, frames: &mut dyn Iterator<Item = &[u8]>) -> Result<(), String>;

    /// The link to the peer of this name changed, or a connection from it was refused.
    fn link_changed(&self, peer: &str, change: LinkChange);

    /// Somebody opened a connection that is not a link. The future that is returned runs until it
    /// ends, or until the links stop: then it is dropped. A connection that is declined is closed
    /// and counted as refused.
    fn serve(&self, arrival: Arrival) -> Result<Serving, Declined> {
        let purpose = arrival.hello.purpose.name();
        let reason = format!("this node serves no {purpose} connections");
        Err(arrival.decline(Refusal::new(Code::NotServed, reason)))
    }
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
    /// The peer said that it stops, or has no links with this node any more. It will be tried again, and that it is not
    /// there is not told.
    Goodbye,
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
    /// Begins to listen. There are no peers yet: until [`set_peers`](Links::set_peers), whoever comes is told to try
    /// again.
    pub fn start(
        settings: Settings,
        listener: TcpListener,
        handler: Arc<dyn Handler>,
    ) -> Result<Links, LinksError> {
        settings.check()?;
        let address = listener.local_addr()?;
        if !settings.endpoint.security.allows(address) {
            return Err(LinksError::PlainOffLoopback(address));
        }
        lengthen_queue(&listener)?;
        let runtime = Handle::try_current().map_err(|_| LinksError::NoRuntime)?;
        let shared = Arc::new(Shared::new(settings, handler, runtime));
        let (tasks, runtime) = (&shared.tasks, &shared.runtime);
        tasks.spawn_on(accept::listen(shared.clone(), listener), runtime);
        tasks.spawn_on(tell_fulls(shared.clone()), runtime);
        tasks.close();
        Ok(Links {
            _stop: Arc::new(shared.stop.clone().drop_guard()),
            shared,
        })
    }

    /// From now on this node, in this life of its own, has links with these, in this order. This node itself may be among
    /// them, by name; it is never dialled.
    ///
    /// Whoever was in the list before, in the same life, while this node's own life is the same, is kept with all
    /// that is under way, also if its id or its address is another now. For all others everything under way is
    /// forgotten, and their connections are closed. A life that has left the list must not come back, nor a life of
    /// this node: the other side may still be where it was, and frames would be lost or doubled.
    ///
    /// Never blocks, and may be called from within the handler. After an error nothing has changed.
    pub fn set_peers(&self, incarnation: u64, peers: Vec<Peer>) -> Result<(), LinksError> {
        self.shared.settings.check_peers(&peers)?;
        self.shared.change_roster(incarnation, peers);
        Ok(())
    }

    /// Sends a frame to the peer at this place of the list. Never blocks; may be called from any thread, and from within
    /// the handler. A frame that does not fit is not sent, then or later.
    ///
    /// # Panics
    /// If `to` is not in the list, or is this node itself.
    pub fn send(&self, to: usize, frame: &[u8]) -> Result<(), Full> {
        let roster = self.shared.roster();
        assert!(Some(to) != roster.me, "a node sends nothing to itself");
        self.push(&roster.peers[to], frame, true)
    }

    fn push(&self, peer: &PeerState, frame: &[u8], is_needed: bool) -> Result<(), Full> {
        let outgoing = &peer.outgoing;
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
        if is_needed {
            state.needed = state.window.pushed();
        }
        let wake = std::mem::take(&mut state.waiting);
        drop(state);
        if wake {
            outgoing.wake.notify_one();
        }
        Ok(())
    }

    /// Sends a frame that may as well be lost to the peer with this id, unless frames that may not be lost need the room.
    /// Tells whether it was taken. It is not if there is no such peer now.
    pub fn send_if_room(&self, to: u64, frame: &[u8]) -> bool {
        let roster = self.shared.roster();
        let Some(peer) = roster.place_of(to).map(|place| &roster.peers[place]) else {
            return false;
        };
        let is_busy = {
            let state = lock(&peer.outgoing.state);
            let limits = self.shared.limits();
            state.window.buffered_bytes() > limits.buffer_bytes / 4
                || state.window.buffered_frames() > limits.buffer_frames / 4
        };
        !is_busy && self.push(peer, frame, false).is_ok()
    }

    /// The links with each peer, in the order of the list.
    pub fn status(&self) -> Vec<LinkStatus> {
        let roster = self.shared.roster().clone();
        roster.peers.iter().map(|peer| peer.status()).collect()
    }

    /// The ids of peers for which frames that may not be lost have waited for at least so long, and none was acknowledged. It
    /// counts from when this was first seen: so it must be asked for again and again.
    pub fn unreached(&self, least: Duration) -> Vec<u64> {
        let roster = self.shared.roster().clone();
        let now = Instant::now();
        let is_long = |since: Instant| now.duration_since(since) >= least;
        let peers = roster.peers.iter().filter(|peer| {
            let since = lock(&peer.outgoing.state).stands_still(now);
            since.is_some_and(is_long)
        });
        peers.map(|peer| peer.id()).collect()
    }

    /// Totals over all peers that there are and were, since the start.
    pub fn counters(&self) -> Counters {
        let roster = self.shared.roster().clone();
        let is_up = |peer: &&Arc<PeerState>| lock(&peer.outgoing.state).up;
        let links_up = roster.peers.iter().filter(is_up).count();
        self.shared.totals.counters(links_up as u64)
    }

    /// The last incoming connections that were refused or closed because of what came over them.
    pub fn refusals(&self) -> Vec<RefusedFrom> {
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
        let roster = self.shared.roster().clone();
        let mut peers = roster.peers.iter();
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
        let roster = shared.roster().clone();
        for peer in &roster.peers {
            let untold = std::mem::take(&mut lock(&peer.outgoing.state).full_untold);
            if untold {
                shared.handler.link_changed(&peer.name, LinkChange::Full);
            }
        }
    }
}
