//! Addresses to listen on that no other process takes before they are used.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU32, Ordering};

static ASKED: AtomicU32 = AtomicU32::new(0);

/// Returns a free address. All of 127.0.0.0/8 is this machine, so each process and each call uses a
/// host of its own there. Neither other tests nor outgoing connections (which come from 127.0.0.1)
/// take ports on it.
pub fn address() -> String {
    let process = std::process::id();
    let asked = ASKED.fetch_add(1, Ordering::Relaxed);
    let parts = [1 + process % 200, process / 200 % 250, 1 + asked % 250];
    let host = format!("127.{}.{}.{}", parts[0], parts[1], parts[2]);
    let listener = TcpListener::bind((host.as_str(), 0)).expect("a free port");
    listener.local_addr().expect("it is bound").to_string()
}
