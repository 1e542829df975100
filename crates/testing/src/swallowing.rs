//! An address that swallows packets.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

/// Longer than a connection on this machine takes, and shorter than the second after which TCP
/// resends a SYN.
const CONNECTED_WITHIN: Duration = Duration::from_millis(500);

/// More than the shortest queue holds.
const QUEUED_MAX: usize = 16;

/// A listener whose queue is full: the kernel drops what others send in order to connect, and
/// answers nothing. A firewall that drops packets looks the same.
#[derive(Debug)]
pub struct Swallowing {
    listener: TcpListener,
    _queued: Vec<TcpStream>,
}

impl Swallowing {
    /// Takes a free port of this machine.
    pub fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        rustix::net::listen(&listener, 0).unwrap();
        let address = listener.local_addr().unwrap();
        let mut queued = Vec::new();
        while let Ok(connection) = TcpStream::connect_timeout(&address, CONNECTED_WITHIN) {
            queued.push(connection);
            assert!(queued.len() < QUEUED_MAX, "the queue is never full");
        }
        Swallowing {
            listener,
            _queued: queued,
        }
    }

    /// Returns the address.
    pub fn address(&self) -> SocketAddr {
        self.listener.local_addr().unwrap()
    }
}
