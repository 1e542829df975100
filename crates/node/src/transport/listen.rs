//! Listening sockets.

use std::io;
use std::os::fd::AsFd;

use tokio::task::yield_now;

/// Number of connections that may wait to be accepted. The kernel's own limit,
/// `net.core.somaxconn`, is 4096 as a rule.
pub(crate) const BACKLOG: u32 = 4096;

/// Number of connections accepted in a row. Each one is work for others, too: while a listener takes
/// a long queue in one go, everything else in the process waits for tens of milliseconds, at every
/// step that it makes. Keepers that wait for each other like that depose their leader.
const ACCEPTED_IN_A_ROW: u32 = 8;

/// Lets other tasks have their turn after each few connections.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    taken: u32,
}

impl Turns {
    /// A connection was accepted.
    pub(crate) async fn take(&mut self) {
        self.taken += 1;
        if self.taken >= ACCEPTED_IN_A_ROW {
            self.taken = 0;
            yield_now().await;
        }
    }
}

/// Lengthens the queue of a socket that listens already.
///
/// The standard library and tokio leave it at 128. When it is full, the kernel drops what arrives:
/// a client repeats its SYN after 1, 3 and 7 s, so a few hundred connections at once would keep
/// everybody else out for seconds.
pub(crate) fn lengthen_queue(listener: impl AsFd) -> io::Result<()> {
    rustix::net::listen(listener, BACKLOG as i32)?;
    Ok(())
}
