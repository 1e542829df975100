//! Notifies a service manager, as systemd expects it of a service with `Type=notify`.

use std::env;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// The node serves its clients.
pub(crate) const READY: &str = "READY=1";
/// The node has begun to stop.
pub(crate) const STOPPING: &str = "STOPPING=1";

/// Sends a state to the service manager, if there is one.
pub(crate) fn notify(state: &str) {
    if let Err(error) = send(state) {
        tracing::warn!("cannot notify the service manager: {error}");
    }
}

fn send(state: &str) -> io::Result<()> {
    let Some(socket) = env::var_os("NOTIFY_SOCKET") else {
        return Ok(());
    };
    let address = match socket.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(&socket)?,
    };
    UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address)?;
    Ok(())
}
