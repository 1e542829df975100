//! Opening a connection to another node.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use rustls::pki_types::{CertificateDer, ServerName};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::accept::certified_name;
use crate::endpoint::Endpoint;
use crate::error::{ConnectionError, broken, late, shown, tls_failed};
use crate::farewell::{drain, write};
use crate::hello::{
    Code, HELLO_BYTES_MAX, Hello, HelloError, Party, Purpose, Refusal, Reply, VERSIONS,
    check_cluster,
};
use crate::security::{Security, off_loopback};
use crate::{Io, Stream};
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

impl fmt::Debug for Dialled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dialled").finish_non_exhaustive()
    }
}

/// The addresses of one node that remain to be tried.
struct Attempts {
    addresses: std::vec::IntoIter<SocketAddr>,
    deadline: Instant,
    /// Why the last attempt failed.
    failure: ConnectionError,
}

impl Attempts {
    /// Returns the next address, and its share of the time, unless the time is over. All addresses
    /// have equal shares of the time that is left, so that one that swallows all packets leaves
    /// time for the others.
    fn next(&mut self) -> Option<(SocketAddr, Duration)> {
        let left = self.deadline.checked_duration_since(Instant::now())?;
        let share = left / self.addresses.len().max(1) as u32;
        Some((self.addresses.next()?, share))
    }

    /// Returns the outcome of an attempt if it ends the dial: the node connected, or refused. After
    /// another failure the next address is tried.
    fn outcome<T>(
        &mut self,
        attempt: Result<T, ConnectionError>,
    ) -> Option<Result<T, ConnectionError>> {
        match attempt {
            Ok(_) | Err(ConnectionError::Refused(_)) => Some(attempt),
            Err(failure) => {
                self.failure = failure;
                None
            }
        }
    }
}

impl Endpoint {
    /// Dials a node and sends the hello, at each of its addresses until one answers.
    pub async fn dial(
        &self,
        to: &NodeName,
        address: &str,
        purpose: Purpose,
        within: Duration,
    ) -> Result<Dialled, ConnectionError> {
        let mut attempts = self.attempts(to, address, within).await?;
        while let Some((address, share)) = attempts.next() {
            let attempt = self.dial_at(to, address, purpose.clone(), share).await;
            if let Some(outcome) = attempts.outcome(attempt) {
                return outcome;
            }
        }
        Err(attempts.failure)
    }

    /// Opens a TCP connection to one of a node's addresses.
    pub async fn connect(
        &self,
        to: &NodeName,
        address: &str,
        within: Duration,
    ) -> Result<TcpStream, ConnectionError> {
        let mut attempts = self.attempts(to, address, within).await?;
        while let Some((address, share)) = attempts.next() {
            let attempt = self.connect_at(to, address, share).await;
            if let Some(outcome) = attempts.outcome(attempt) {
                return outcome;
            }
        }
        Err(attempts.failure)
    }

    /// Looks up a node's addresses.
    async fn attempts(
        &self,
        to: &NodeName,
        address: &str,
        within: Duration,
    ) -> Result<Attempts, ConnectionError> {
        let deadline = Instant::now() + within;
        let failed = |error: io::Error| unreached(to, address, &error);
        let found: Vec<_> = match self.addresses_of(to) {
            Some(addresses) => addresses.to_vec(),
            None => {
                let found = timeout(within, tokio::net::lookup_host(address)).await;
                let found = found.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
                found.map_err(failed)?.collect()
            }
        };
        let is_allowed = |address: &SocketAddr| self.security.allows(*address);
        let (allowed, forbidden): (Vec<_>, Vec<_>) = found.into_iter().partition(is_allowed);
        let failure = match forbidden.first() {
            Some(forbidden) => off_loopback(*forbidden),
            None => failed(io::Error::other("the host name has no address")),
        };
        Ok(Attempts {
            addresses: allowed.into_iter(),
            deadline,
            failure,
        })
    }

    async fn dial_at(
        &self,
        to: &NodeName,
        address: SocketAddr,
        purpose: Purpose,
        within: Duration,
    ) -> Result<Dialled, ConnectionError> {
        let began = Instant::now();
        let tcp = self.connect_at(to, address, within).await?;
        let handshake = async {
            let stream = self.secure(to, tcp).await?;
            self.send_hello(stream, to, purpose).await
        };
        let left = within.saturating_sub(began.elapsed());
        let done = timeout(left, handshake).await;
        done.unwrap_or_else(|_| Err(late(to.as_str(), within)))
    }

    async fn connect_at(
        &self,
        to: &NodeName,
        address: SocketAddr,
        within: Duration,
    ) -> Result<TcpStream, ConnectionError> {
        let silent = || {
            io::Error::new(
                io::ErrorKind::TimedOut,
                format!("no answer within {within:.1?}"),
            )
        };
        let connected = timeout(within, TcpStream::connect(address)).await;
        let connected = connected.unwrap_or_else(|_| Err(silent()));
        let tcp = connected.map_err(|error| unreached(to, address, &error))?;
        self.security.admit(&tcp)?;
        Ok(tcp)
    }

    /// Starts TLS with a node on an open connection.
    pub async fn secure(
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
    pub async fn send_hello(
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

fn unreached(to: &NodeName, address: impl fmt::Display, error: &io::Error) -> ConnectionError {
    ConnectionError::Failed(format!("cannot reach {to} at {address}: {error}"))
}

/// Checks that the peer's certificate has this name and no other. TLS has only checked that the
/// name is among those in the certificate.
fn check_certificate(to: &NodeName, shown: &[CertificateDer<'_>]) -> Result<(), Refusal> {
    let problem = match certified_name(shown) {
        Ok(name) if name == *to => return Ok(()),
        Ok(name) => format!("it is for node {name}"),
        Err(refusal) => refusal.reason,
    };
    let reason = format!("the certificate of {to} is not accepted: {problem}");
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
                "{to} chose protocol version {version}, but this node supports {VERSIONS}"
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
