//! Addresses to listen on that nobody else takes between asking for one and using it.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU32, Ordering};

static ASKED: AtomicU32 = AtomicU32::new(0);

/// A free address. All of 127.0.0.0/8 is this machine: each process, and each call, has a host of its own there, where
/// neither other tests nor outgoing connections (which come from 127.0.0.1) take ports.
pub fn address() -> String {
    let process = std::process::id();
    let asked = ASKED.fetch_add(1, Ordering::Relaxed);
    let parts = [1 + process % 200, process / 200 % 250, 1 + asked % 250];
    let host = format!("127.{}.{}.{}", parts[0], parts[1], parts[2]);
    let listener = TcpListener::bind((host.as_str(), 0)).expect("a free port");
    listener.local_addr().expect("it is bound").to_string()
}
