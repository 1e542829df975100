//! Connections waiting to be accepted.

use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// More than the standard library's backlog.
const AT_ONCE: usize = 1000;

/// Shorter than the second after which TCP resends a SYN that the kernel dropped.
const AT_ONCE_WITHIN: Duration = Duration::from_millis(900);

/// Opens many connections to a listener of this thread, and asserts that the kernel queues all of
/// them. The listener accepts none meanwhile because this function blocks its thread.
pub fn all_wait_in_the_queue(listener: SocketAddr) {
    soloist_transport::files::raise_limit();
    let limit = std::fs::read_to_string("/proc/sys/net/core/somaxconn").unwrap();
    let limit: usize = limit.trim().parse().unwrap();
    let mut waiting = Vec::new();
    for number in 0..AT_ONCE.min(limit) {
        let connected = TcpStream::connect_timeout(&listener, AT_ONCE_WITHIN);
        waiting.push(connected.unwrap_or_else(|error| panic!("connection {number}: {error}")));
    }
}
