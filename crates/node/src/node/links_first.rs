//! Lets the links run while this process acquires and releases in a loop.
//!
//! An entry without messages takes about a microsecond, and tokio lets a task make 128 of them
//! before it looks for input. If the thread that looks is not running because the machine is busy,
//! no other thread looks, and a loop makes thousands of entries. Requests of other nodes would wait
//! in a socket meanwhile, or in a link that waits for the mutex of the node's state.

use std::io::{self, ErrorKind, Write};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use tokio::net::UnixStream;
use tokio::sync::Mutex;
use tokio::task::yield_now;

/// Number of requests of this process after which tokio may look for messages of other nodes. That
/// costs about as much as an entry without messages.
const REQUESTS_MAX: u32 = 16;

/// After this time, requests of this process wait until tokio has looked for messages. Another
/// thread may have to run for that.
const LOOK_EVERY: Duration = Duration::from_micros(250);

/// Maximum number of times that a request stands back while links pass on messages. Without this
/// limit, a flood of messages would keep this process out.
const YIELDS_MAX: usize = 64;

pub(crate) struct LinksFirst {
    /// Number of requests since the last yield.
    requests: AtomicU32,
    /// Number of links that pass messages on, or wait to do so.
    passing: AtomicU32,
    probe: Mutex<Probe>,
}

impl LinksFirst {
    /// Must be called in the runtime of the links.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(LinksFirst {
            requests: AtomicU32::new(0),
            passing: AtomicU32::new(0),
            probe: Mutex::new(Probe::new()?),
        })
    }

    /// Called before a request of this process.
    pub(crate) async fn stand_back(&self) {
        if self.requests.fetch_add(1, Ordering::Relaxed) >= REQUESTS_MAX {
            self.requests.store(0, Ordering::Relaxed);
            self.look().await;
        }
        for _ in 0..YIELDS_MAX {
            if self.passing.load(Ordering::Relaxed) == 0 {
                return;
            }
            yield_now().await;
        }
    }

    async fn look(&self) {
        let mut probe = self.probe.lock().await;
        if probe.answered.elapsed() >= LOOK_EVERY {
            probe.send_and_receive().await;
        } else {
            drop(probe);
            yield_now().await;
        }
    }

    /// Called by a link that has messages. Requests stand back until the result is dropped.
    pub(crate) fn pass(&self) -> Passing<'_> {
        self.passing.fetch_add(1, Ordering::Relaxed);
        Passing(self)
    }
}

/// A socket pair. What was sent is received once tokio has looked for input, and the messages that
/// came before it have been noticed as well.
struct Probe {
    sender: StdUnixStream,
    receiver: UnixStream,
    /// When a byte was last received.
    answered: Instant,
}

impl Probe {
    fn new() -> io::Result<Self> {
        let (sender, receiver) = StdUnixStream::pair()?;
        sender.set_nonblocking(true)?;
        receiver.set_nonblocking(true)?;
        Ok(Probe {
            sender,
            receiver: UnixStream::from_std(receiver)?,
            answered: Instant::now(),
        })
    }

    /// Cancel safe: a byte that is left behind is received next time.
    async fn send_and_receive(&mut self) {
        // If this fails, there is a byte already, or the runtime is shutting down.
        let _ = self.sender.write(&[0]);
        let mut is_received = false;
        while !is_received && self.receiver.readable().await.is_ok() {
            // Until `WouldBlock`, so that tokio has to look again for the next byte.
            is_received = loop {
                match self.receiver.try_read(&mut [0; 16]) {
                    Ok(1..) => is_received = true,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break is_received,
                    Ok(0) | Err(_) => break true,
                }
            };
        }
        self.answered = Instant::now();
    }
}

/// A link passes messages on.
pub(crate) struct Passing<'a>(&'a LinksFirst);

impl Drop for Passing<'_> {
    fn drop(&mut self) {
        self.0.passing.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::pin::{Pin, pin};

    use futures_util::FutureExt;
    use soloist_api::Locks;
    use soloist_core::Incarnation;
    use soloist_transport::links::Handler;

    use super::*;
    use crate::local::{LocalCluster, LocalSettings};

    fn is_pending(future: Pin<&mut impl Future>) -> bool {
        future.now_or_never().is_none()
    }

    #[tokio::test]
    async fn a_request_stands_back_while_a_link_passes_messages_on() {
        let links = LinksFirst::new().unwrap();
        let passing = links.pass();
        let mut request = pin!(links.stand_back());
        assert!(is_pending(request.as_mut()));
        assert!(is_pending(request.as_mut()));
        drop(passing);
        assert!(!is_pending(request));
    }

    #[tokio::test]
    async fn a_flood_of_messages_does_not_keep_requests_out() {
        let links = LinksFirst::new().unwrap();
        let _passing = links.pass();
        links.stand_back().await;
    }

    #[tokio::test]
    async fn a_loop_of_requests_yields_regularly() {
        let links = LinksFirst::new().unwrap();
        let mut at_once = 0;
        while !is_pending(pin!(links.stand_back())) {
            at_once += 1;
        }
        assert_eq!(at_once, REQUESTS_MAX);
    }

    #[tokio::test]
    async fn a_long_loop_of_requests_waits_until_tokio_has_looked_for_input() {
        let links = LinksFirst::new().unwrap();
        links.probe.lock().await.answered -= LOOK_EVERY;
        for _ in 0..REQUESTS_MAX {
            links.stand_back().await;
        }
        let mut request = pin!(links.stand_back());
        for _ in 0..1000 {
            assert!(is_pending(request.as_mut()), "tokio has not looked");
        }
        // The runtime has one thread, which looks now.
        yield_now().await;
        assert!(!is_pending(request));
        // A byte that was not waited for does not count as the next answer.
        links.probe.lock().await.send_and_receive().await;
        let mut again = links.probe.lock().await;
        assert!(is_pending(pin!(again.send_and_receive())));
    }

    #[tokio::test]
    async fn links_of_a_node_go_before_its_own_requests() {
        let folder = tempfile::tempdir().unwrap();
        let cluster = LocalCluster::start(LocalSettings::new(1, folder.path()));
        let cluster = cluster.await.unwrap();
        let node = &cluster.nodes[0];
        let lock = node.lock("a").unwrap();
        assert!(!is_pending(pin!(lock.acquire())), "it is free");
        let mut request = pin!(lock.acquire());
        // A link that has no frame looks for one while it passes frames on.
        let mut frames = std::iter::from_fn(|| {
            assert!(is_pending(request.as_mut()), "a link passes messages on");
            None
        });
        node.shared.receive(Incarnation(7), &mut frames).unwrap();
        assert!(!is_pending(request), "no link passes messages on");
        cluster.stop().await;
    }
}
