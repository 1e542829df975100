//! Listening sockets.

use std::io;
use std::os::fd::AsFd;

use tokio::task::yield_now;

/// Number of connections that may wait to be accepted. The kernel's own limit,
/// `net.core.somaxconn`, is usually 4096.
pub const BACKLOG: u32 = 4096;

/// Number of connections accepted in a row. Each one also causes work in other tasks. If a listener
/// accepted a long queue in one go, every step of every other task would wait for tens of
/// milliseconds. Keepers that wait for each other like that depose their leader.
const ACCEPTED_IN_A_ROW: u32 = 8;

/// Yields to other tasks after every few connections.
#[derive(Debug, Default)]
pub struct Turns {
    taken: u32,
}

impl Turns {
    /// Called after each accepted connection.
    pub async fn take(&mut self) {
        self.taken += 1;
        if self.taken >= ACCEPTED_IN_A_ROW {
            self.taken = 0;
            yield_now().await;
        }
    }
}

/// Lengthens the accept queue of a listening socket.
///
/// The standard library and tokio leave it at 128. When it is full, the kernel drops incoming
/// connections. A client retransmits its SYN after 1, 3 and 7 s, so a few hundred connections at
/// once would keep everybody else out for seconds.
pub fn lengthen_queue(listener: impl AsFd) -> io::Result<()> {
    rustix::net::listen(listener, BACKLOG as i32)?;
    Ok(())
}
