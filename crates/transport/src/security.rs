//! How connections are protected.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::TcpStream;

use crate::error::ConnectionError;
use crate::hello::{Code, Refusal};
use crate::identity::Identity;

/// How connections are protected.
#[derive(Clone, Debug)]
pub enum Security {
    /// Unprotected: allowed only between loopback addresses.
    Plain,
    /// TLS in which both sides present a certificate.
    Tls {
        /// For connections that peers open. It must request a certificate.
        server: Arc<rustls::ServerConfig>,
        /// For connections that this node opens.
        client: Arc<rustls::ClientConfig>,
    },
}

impl Security {
    /// TLS with this node's certificate.
    pub fn tls(identity: &Identity) -> Self {
        Security::Tls {
            server: identity.server_config(),
            client: identity.client_config(),
        }
    }

    /// Returns whether a socket with this address may be used.
    pub fn allows(&self, address: SocketAddr) -> bool {
        matches!(self, Security::Tls { .. }) || address.ip().to_canonical().is_loopback()
    }

    /// Prepares a TCP connection, or rejects it if one of its addresses may not be used.
    pub(crate) fn admit(&self, tcp: &TcpStream) -> Result<(), ConnectionError> {
        for address in [tcp.local_addr(), tcp.peer_addr()] {
            let address = address.map_err(|error| ConnectionError::Failed(error.to_string()))?;
            if !self.allows(address) {
                return Err(off_loopback(address));
            }
        }
        tcp.set_nodelay(true)
            .map_err(|error| ConnectionError::Failed(format!("cannot set TCP_NODELAY: {error}")))
    }
}

pub(crate) fn off_loopback(address: SocketAddr) -> ConnectionError {
    let reason = format!(
        "{address} is not a loopback address, and there is no TLS; give the nodes certificates"
    );
    ConnectionError::Refused(Refusal::new(Code::NotServed, reason))
}
