//! Opening a connection to another node.

use std::io;
use std::time::Duration;

use rustls::pki_types::{CertificateDer, ServerName};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::accept::certified_name;
use super::endpoint::Endpoint;
use super::error::{ConnectionError, broken, late, shown, tls_failed};
use super::farewell::{drain, write};
use super::hello::{
    Code, HELLO_BYTES_MAX, Hello, HelloError, Party, Purpose, Refusal, Reply, VERSIONS,
    check_cluster,
};
use super::security::{Security, off_loopback};
use super::{Io, Stream};
use soloist_api::NodeName;
use soloist_core::cluster_identity::ClusterIdentity;

/// A connection whose hello was answered with Welcome.
pub struct Dialled {
    /// The stream, on which the protocol continues.
    pub stream: Stream,
    /// The version that both nodes use.
    pub version: u16,
    /// The other node's cluster, or `None` if it belongs to none yet.
    pub cluster: Option<ClusterIdentity>,
}

impl Endpoint {
    /// Dials a node and sends the hello. The time is divided among the node's addresses, so that
    /// one that drops all packets does not use up the time of the others.
    pub async fn dial(
        &self,
        to: &NodeName,
        address: &str,
        purpose: Purpose,
        within: Duration,
    ) -> Result<Dialled, ConnectionError> {
        let address = self.address_of(to, address);
        let dialling = async {
            let tcp = self.connect(to, address, within).await?;
            let stream = self.secure(to, tcp).await?;
            self.say_hello(stream, to, purpose).await
        };
        let dialled = timeout(within, dialling).await;
        dialled.unwrap_or_else(|_| Err(late(to.as_str(), within)))
    }

    /// Opens a TCP connection to one of a node's addresses.
    pub(crate) async fn connect(
        &self,
        to: &NodeName,
        address: &str,
        within: Duration,
    ) -> Result<TcpStream, ConnectionError> {
        let failed = |error: io::Error| {
            ConnectionError::Failed(format!("cannot reach {to} at {address}: {error}"))
        };
        let found = tokio::net::lookup_host(address).await.map_err(failed)?;
        let addresses: Vec<_> = found.collect();
        let mut last = failed(io::Error::other("the name has no address"));
        let each = within / (addresses.len() as u32 + 1);
        let silent = || io::Error::new(io::ErrorKind::TimedOut, format!("no answer in {each:?}"));
        for address in addresses {
            if !self.security.allows(address) {
                last = off_loopback(address);
                continue;
            }
            let connected = timeout(each, TcpStream::connect(address)).await;
            match connected.unwrap_or_else(|_| Err(silent())) {
                Ok(tcp) => {
                    self.security.admit(&tcp)?;
                    return Ok(tcp);
                }
                Err(error) => last = failed(error),
            }
        }
        Err(last)
    }

    /// Starts TLS with a node on an open connection.
    pub(crate) async fn secure(
        &self,
        to: &NodeName,
        stream: impl Io + 'static,
    ) -> Result<Stream, ConnectionError> {
        let Security::Tls { client, .. } = &self.security else {
            return Ok(Box::new(stream));
        };
        let expected = ServerName::try_from(to.to_string()).expect("a node's name is a DNS label");
        let connecting = TlsConnector::from(client.clone()).connect(expected, stream);
        match connecting.into_fallible().await {
            Ok(stream) => {
                let shown = stream.get_ref().1.peer_certificates().unwrap_or_default();
                check_certificate(to, shown)?;
                Ok(Box::new(stream))
            }
            Err((error, stream)) => {
                let (reader, writer) = tokio::io::split(stream);
                drain(reader, writer).await;
                let reason = format!("TLS with {to} failed: {error}");
                Err(tls_failed(reason, &error))
            }
        }
    }

    /// Sends the hello on an open connection.
    pub async fn say_hello(
        &self,
        mut stream: Stream,
        to: &NodeName,
        purpose: Purpose,
    ) -> Result<Dialled, ConnectionError> {
        let hello = self.hello(to, purpose);
        // If the write fails, the read returns the reason: the peer may have refused the
        // certificate.
        let wrote = write(&mut stream, &hello.encode()).await;
        let reply = read_reply(&mut stream, to).await?;
        wrote.map_err(|error| broken(to.as_str(), &error))?;
        let (version, cluster) = check_reply(&hello, reply)?;
        Ok(Dialled {
            stream,
            version,
            cluster,
        })
    }
}

/// Checks that the peer's certificate has this name and no other. TLS has only checked that the
/// name is among those in the certificate.
fn check_certificate(to: &NodeName, shown: &[CertificateDer<'_>]) -> Result<(), Refusal> {
    let problem = match certified_name(shown) {
        Ok(name) if name == *to => return Ok(()),
        Ok(name) => format!("it is that of node {name}"),
        Err(refusal) => refusal.reason,
    };
    let reason = format!("the certificate that {to} showed is not accepted: {problem}");
    Err(Refusal::new(Code::Name, reason))
}

async fn read_reply(stream: &mut impl Io, to: &NodeName) -> Result<Reply, ConnectionError> {
    let broke = |error: io::Error| broken(to.as_str(), &error);
    let foreign = |error: HelloError| ConnectionError::hello(to.as_str(), &error);
    let length = stream.read_u16_le().await.map_err(broke)?;
    let bytes = usize::from(length);
    if bytes > HELLO_BYTES_MAX {
        let what = "reply";
        return Err(foreign(HelloError::TooLong { what, bytes }));
    }
    let mut content = vec![0; bytes];
    stream.read_exact(&mut content).await.map_err(broke)?;
    Reply::decode(&content).map_err(foreign)
}

/// Returns the version and the other node's cluster, if this node may talk to that cluster.
fn check_reply(
    hello: &Hello,
    reply: Reply,
) -> Result<(u16, Option<ClusterIdentity>), ConnectionError> {
    let to = &hello.to;
    match reply {
        Reply::Refused(refusal) => {
            let reason = format!("{to} refused: {}", shown(&refusal.reason));
            Err(Refusal { reason, ..refusal }.into())
        }
        Reply::Welcome { version, .. } if !VERSIONS.contains(version) => {
            Err(ConnectionError::Hostile(format!(
                "{to} chose version {version} of the protocol, and this node speaks {VERSIONS}"
            )))
        }
        Reply::Welcome { version, cluster } => {
            let from = Party {
                name: &hello.from,
                cluster: hello.cluster,
            };
            let to = Party { name: to, cluster };
            check_cluster(&hello.purpose, from, to)?;
            Ok((version, cluster))
        }
    }
}
