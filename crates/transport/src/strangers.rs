//! Limits a listener's connections, and chooses which one to close when the limit is reached.
//!
//! An unauthenticated connection, a *stranger*, costs a socket, and anybody can open one. Beyond
//! the limit the oldest silent stranger is closed, or the oldest stranger if none is silent. A new
//! connection that speaks immediately is therefore served however many others are silent. If new
//! connections were rejected instead, a few hundred silent ones would keep everybody out.

use std::collections::{BTreeMap, HashSet};
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::net::{RecvFlags, recv};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

/// Number of connections that may be closing while others already have their slots.
const CLOSING_MAX: usize = 64;

/// The connection slots of one listener.
#[derive(Debug)]
pub struct Strangers {
    limit: usize,
    /// One permit per slot, plus some for connections that are closing.
    sockets: Arc<Semaphore>,
    places: Mutex<Places>,
}

/// The connections that have a slot, by number, in order of arrival.
#[derive(Debug, Default)]
struct Places {
    next: u64,
    /// Strangers that have sent nothing.
    silent: BTreeMap<u64, CancellationToken>,
    /// Strangers that have sent something.
    speaking: BTreeMap<u64, CancellationToken>,
    /// Authenticated connections.
    recognized: HashSet<u64>,
}

impl Places {
    fn taken(&self) -> usize {
        self.silent.len() + self.speaking.len() + self.recognized.len()
    }

    /// Closes the oldest stranger, silent ones first. Returns whether there was any.
    fn close_oldest(&mut self) -> bool {
        let silent = self.silent.pop_first();
        let oldest = silent.or_else(|| self.speaking.pop_first());
        oldest.is_some_and(|(_, closed)| {
            closed.cancel();
            true
        })
    }

    /// Removes a stranger. Returns `None` if it was closed before.
    fn remove_stranger(&mut self, number: u64) -> Option<CancellationToken> {
        let silent = self.silent.remove(&number);
        silent.or_else(|| self.speaking.remove(&number))
    }
}

impl Strangers {
    /// Creates a listener's slots, all of them free.
    pub fn new(limit: usize) -> Arc<Self> {
        let closing = limit.div_ceil(8).min(CLOSING_MAX);
        Arc::new(Strangers {
            limit,
            sockets: Arc::new(Semaphore::new(limit + closing)),
            places: Mutex::default(),
        })
    }

    fn places(&self) -> MutexGuard<'_, Places> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a slot for one more connection. If all are taken, the oldest stranger is closed; if
    /// there is no stranger, returns `None`.
    ///
    /// This waits only while many connections are closing, not for the one that was displaced:
    /// otherwise connections would be accepted no faster than others are closed.
    pub async fn admit(self: &Arc<Self>, socket: impl AsFd) -> Option<Stranger> {
        let open = Arc::clone(&self.sockets).acquire_owned().await;
        let open = open.expect("it is never closed");
        let closed = CancellationToken::new();
        let mut places = self.places();
        let displaces = places.taken() >= self.limit;
        if displaces && !places.close_oldest() {
            return None;
        }
        let number = places.next;
        places.next += 1;
        // Checked here, because more connections may arrive before its task runs.
        if has_spoken(socket) {
            places.speaking.insert(number, closed.clone());
        } else {
            places.silent.insert(number, closed.clone());
        }
        drop(places);
        Some(Stranger {
            strangers: Arc::clone(self),
            number,
            closed,
            displaces,
            _open: open,
        })
    }
}

/// Returns whether there is something to read.
fn has_spoken(socket: impl AsFd) -> bool {
    let peeked = recv(socket, &mut [0; 1], RecvFlags::PEEK | RecvFlags::DONTWAIT);
    matches!(peeked, Ok((_, 1)))
}

/// The slot of one connection. Dropping it frees the slot.
#[derive(Debug)]
pub struct Stranger {
    strangers: Arc<Strangers>,
    number: u64,
    closed: CancellationToken,
    displaces: bool,
    _open: OwnedSemaphorePermit,
}

impl Stranger {
    /// Returns whether another connection was closed for this one.
    pub fn displaces(&self) -> bool {
        self.displaces
    }

    /// Returns when this connection is displaced by another one: never, once it is authenticated.
    pub async fn closed(&self) {
        self.closed.cancelled().await;
    }

    /// Called when the connection has sent something.
    pub fn speaks(&self) {
        let mut places = self.strangers.places();
        if let Some(closed) = places.silent.remove(&self.number) {
            places.speaking.insert(self.number, closed);
        }
    }

    /// Called when the connection is authenticated.
    pub fn recognize(&self) {
        let mut places = self.strangers.places();
        if places.remove_stranger(self.number).is_some() {
            places.recognized.insert(self.number);
        }
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        let mut places = self.strangers.places();
        if places.remove_stranger(self.number).is_none() {
            places.recognized.remove(&self.number);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    use super::*;

    async fn admit(strangers: &Arc<Strangers>) -> Stranger {
        let (socket, _peer) = UnixStream::pair().unwrap();
        strangers.admit(&socket).await.expect("there is a place")
    }

    fn is_closed(stranger: &Stranger) -> bool {
        stranger.closed.is_cancelled()
    }

    #[tokio::test]
    async fn the_oldest_connection_is_displaced() {
        let strangers = Strangers::new(2);
        let first = admit(&strangers).await;
        let second = admit(&strangers).await;
        assert!(!second.displaces());
        let third = admit(&strangers).await;
        assert!(third.displaces() && is_closed(&first));
        assert!(!is_closed(&second) && !is_closed(&third));
        // A dropped connection has no slot, and a displaced one frees its slot only once.
        drop(third);
        drop(first);
        let fourth = admit(&strangers).await;
        assert!(!fourth.displaces());
        let fifth = admit(&strangers).await;
        assert!(fifth.displaces() && is_closed(&second) && !is_closed(&fourth));
    }

    #[tokio::test]
    async fn silent_connections_are_closed_first() {
        let strangers = Strangers::new(2);
        let speaking = admit(&strangers).await;
        speaking.speaks();
        let silent = admit(&strangers).await;
        let later = admit(&strangers).await;
        assert!(later.displaces() && is_closed(&silent));
        silent.speaks();
        drop(silent);
        later.speaks();
        let _last = admit(&strangers).await;
        assert!(is_closed(&speaking) && !is_closed(&later));
    }

    #[tokio::test]
    async fn a_connection_with_bytes_before_its_accept_is_not_silent() {
        let strangers = Strangers::new(2);
        let (socket, mut peer) = UnixStream::pair().unwrap();
        peer.write_all(b"x").unwrap();
        let speaking = strangers.admit(&socket).await.unwrap();
        let silent = admit(&strangers).await;
        let _last = admit(&strangers).await;
        assert!(is_closed(&silent) && !is_closed(&speaking));
    }

    #[tokio::test]
    async fn an_authenticated_connection_keeps_its_place() {
        let strangers = Strangers::new(2);
        let first = admit(&strangers).await;
        first.recognize();
        let second = admit(&strangers).await;
        let third = admit(&strangers).await;
        assert!(is_closed(&second) && !is_closed(&first));
        // It was displaced before.
        second.recognize();
        drop(second);
        third.recognize();
        let (socket, _peer) = UnixStream::pair().unwrap();
        assert!(
            strangers.admit(&socket).await.is_none(),
            "all are recognized"
        );
        drop(first);
        assert!(!admit(&strangers).await.displaces());
    }

    #[tokio::test]
    async fn a_new_connection_waits_only_while_many_are_closing() {
        let strangers = Strangers::new(16);
        let mut all = Vec::new();
        for _ in 0..18 {
            all.push(admit(&strangers).await);
        }
        let (socket, _peer) = UnixStream::pair().unwrap();
        let mut next = Box::pin(strangers.admit(&socket));
        assert!(
            futures_util::poll!(&mut next).is_pending(),
            "two are closing"
        );
        drop(all.remove(0));
        assert!(next.await.is_some());
    }
}
