//! Links between nodes: deliver frames of bytes exactly once and in order, over connections that
//! may break at any time.
//!
//! A link is unidirectional, from this node to a peer: this node dials, frames go out,
//! acknowledgements come back. The opposite direction is the peer's own link. A link opens when the
//! first frame is sent to its peer, and stays open.
//!
//! So two nodes that send each other frames have two connections. One for both directions would
//! save no write of frames: those that are ready for a peer leave in one write already. It would
//! save acknowledgements, but they are rare: one for [`Limits::ack_frames`], and of a link with
//! less traffic one per [`Limits::ack_delay`]. `docs/comparison.md` has the figures.
//!
//! A frame is kept until it is acknowledged. When a connection breaks, the next one resumes at the
//! frame that the receiver expects. No frame is lost or duplicated within one incarnation of the
//! sender and one incarnation of the receiver.
//!
//! The list of peers can change at any time ([`Links::set_peers`]). Each incarnation of a node is a
//! peer of its own. Nodes learn of changes at slightly different moments: a connection that comes
//! too early or too late is refused with "later", and the dialling node retries.
//!
//! Other protocols share the port. The [hello](crate::hello) names the purpose of a
//! connection ([`Handler::serve`]).
//!
//! - `frame`: wire format. `window`: frame numbers, acknowledgements, resending. Neither does I/O.
//! - `dial`: the task of a link. `accept`: the listener and its handshakes. `receive`: an incoming
//!   connection. `connection`: helpers for records that both sides use.
//! - `peer`: one incarnation of a peer. `roster`: the list of peers. `shared`: state shared by all
//!   tasks. `settings`, `status`: input, and what can be observed.
//!
//! Invariants: no lock is held while the handler is called or across an await. For each incarnation
//! of a peer, one connection at a time passes frames to the handler. The state of a pair of
//! incarnations is in one place (`PeerState`), which is never reused for another pair.

mod accept;
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

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::time::timeout;
use tokio_util::sync::DropGuard;

pub use settings::{Limits, LinksError, Peer, SendError, Settings};
pub use status::{Counters, LinkStatus, RefusedFrom};
pub use window::Full;

use peer::PeerState;
use shared::{Shared, lock};
use status::count;

use crate::{Arrival, Code, Declined, Refusal, lengthen_queue};
use soloist_core::Incarnation;

/// Timeout for the tasks to end after they were told to stop.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// A future that serves a connection that is not a link, until it ends.
pub type Serving = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Receives what the links report. It is called from their tasks and must not block: a blocked
/// handler can stall every task of the runtime.
pub trait Handler: Send + Sync + 'static {
    /// Receives all frames of one read, in order, in one call. `from` is the peer's incarnation.
    ///
    /// Each frame is delivered once, across all connections. An error closes the connection with
    /// this reason and counts as hostile; frames not yet taken from the iterator are delivered
    /// again.
    ///
    /// While the list of peers is replaced, a call for a peer of the earlier list may be in
    /// progress or imminent: one such call may still arrive after [`Links::set_peers`] has
    /// returned.
    fn receive(
        &self,
        from: Incarnation,
        frames: &mut dyn Iterator<Item = &[u8]>,
    ) -> Result<(), String>;

    /// Called when the link to this peer changed, or a connection from it was refused.
    fn link_changed(&self, peer: &str, change: LinkChange);

    /// Serves an incoming connection that is not a link. The returned future runs until it ends, or
    /// is dropped when the links stop. A declined connection is closed and counted as refused.
    fn serve(&self, arrival: Arrival) -> Result<Serving, Declined> {
        let purpose = arrival.hello.purpose.name();
        let reason = format!("this node does not accept {purpose} connections");
        Err(arrival.decline(Refusal::new(Code::NotServed, reason)))
    }
}

/// A change of the link to a peer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LinkChange {
    /// The link is open.
    Up,
    /// The link could not be opened, or it broke. It will be retried.
    Down {
        /// The reason.
        reason: String,
    },
    /// One of the two nodes refused a connection, in either direction. It will be retried.
    Refused {
        /// The reason, and which node refused.
        reason: String,
    },
    /// The peer stops, or no longer has links with this node. The link will be retried; failures to
    /// reach the peer are not reported.
    Goodbye,
    /// A frame did not fit into the peer's buffer and was dropped.
    Full,
}

/// A node's links. Cheap to clone; dropping the last clone stops them.
#[derive(Clone)]
pub struct Links {
    shared: Arc<Shared>,
    _stop: Arc<DropGuard>,
}

impl fmt::Debug for Links {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Links").finish_non_exhaustive()
    }
}

impl Links {
    /// Starts to listen. There are no peers until [`set_peers`](Links::set_peers): incoming
    /// connections are refused with "later".
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

    /// Replaces the list of peers, in this order, for this incarnation of this node. The list may
    /// include this node itself, by name; it is never dialled.
    ///
    /// A peer that was in the previous list with the same incarnation keeps everything in flight if
    /// this node's incarnation is unchanged too, even if the peer's address changed. For all
    /// others, everything in flight is dropped and their connections are closed. An incarnation
    /// that has left the list must not come back, and neither must an incarnation of this node: the
    /// other side may still have its old state, and frames would be lost or duplicated.
    ///
    /// Never blocks, and may be called from within the handler. After an error nothing has changed.
    pub fn set_peers(&self, incarnation: Incarnation, peers: Vec<Peer>) -> Result<(), LinksError> {
        self.shared.settings.check_peers(&peers)?;
        self.shared.change_roster(incarnation, peers);
        Ok(())
    }

    /// Sends a frame to the peer with this incarnation. Never blocks; may be called from any thread
    /// and from within the handler. After an error the frame is dropped.
    pub fn send(&self, to: Incarnation, frame: &[u8]) -> Result<(), SendError> {
        let roster = self.shared.roster();
        let peer = roster.peer(to).ok_or(SendError::NotAPeer(to))?;
        Ok(self.push(peer, frame, true)?)
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

    /// Sends a frame that may be lost to the peer with this incarnation, unless frames that must
    /// not be lost need the space. Returns whether the frame was accepted; it is not if there is no
    /// such peer.
    pub fn send_if_room(&self, to: Incarnation, frame: &[u8]) -> bool {
        let roster = self.shared.roster();
        let Some(peer) = roster.peer(to) else {
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

    /// Returns the status of the links with each peer, in the order of the list.
    pub fn status(&self) -> Vec<LinkStatus> {
        let roster = self.shared.roster().clone();
        roster.peers.iter().map(|peer| peer.status()).collect()
    }

    /// Returns the peers for which frames that must not be lost have been pending for at
    /// least this long without any acknowledgement. The time counts from the call that first saw
    /// them pending, so this must be called regularly.
    pub fn unreached(&self, least: Duration) -> Vec<Incarnation> {
        let roster = self.shared.roster().clone();
        let now = Instant::now();
        let is_long = |since: Instant| now.duration_since(since) >= least;
        let peers = roster.peers.iter().filter(|peer| {
            let since = lock(&peer.outgoing.state).stands_still(now);
            since.is_some_and(is_long)
        });
        peers.map(|peer| peer.incarnation).collect()
    }

    /// Returns totals over all current and former peers since the start.
    pub fn counters(&self) -> Counters {
        let roster = self.shared.roster().clone();
        let is_up = |peer: &&Arc<PeerState>| lock(&peer.outgoing.state).up;
        let links_up = roster.peers.iter().filter(is_up).count();
        self.shared.totals.counters(links_up as u64)
    }

    /// Returns the most recent incoming connections that were refused, or closed because of what
    /// they sent.
    pub fn refusals(&self) -> Vec<RefusedFrom> {
        self.shared.notes.refusals()
    }

    /// Sends what is buffered and waits up to `within` for acknowledgements. Then says goodbye and
    /// stops all tasks.
    pub async fn close(&self, within: Duration) {
        let drained = async {
            while !self.is_drained() {
                self.shared.drained.notified().await;
            }
        };
        tokio::select! {
            _ = timeout(within, drained) => {}
            // Another call is closing them too.
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

/// Reports full buffers to the handler. `send` must not do so itself: its caller may hold locks
/// that the handler needs.
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
