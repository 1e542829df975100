//! Accepting a connection from another node.

use std::fmt;
use std::io;

use rustls::pki_types::CertificateDer;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

use crate::endpoint::Endpoint;
use crate::error::{ConnectionError, broken, tls_failed};
use crate::farewell::{drain, farewell, write};
use crate::hello::{
    Code, HELLO_BYTES_MAX, Hello, HelloError, PREFACE, Party, Refusal, Reply, check_cluster,
};
use crate::identity::Identity;
use crate::security::Security;
use crate::{Io, Stream};
use soloist_api::NodeName;

/// A connection whose hello passed the checks that all protocols share. Its protocol answers with
/// Welcome or refuses it.
pub struct Arrival {
    /// The dialling node's hello.
    pub hello: Hello,
    /// The version that both nodes use.
    pub version: u16,
    endpoint: Endpoint,
    stream: Stream,
}

impl fmt::Debug for Arrival {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Arrival")
            .field("hello", &self.hello)
            .finish_non_exhaustive()
    }
}

/// A connection that this node rejects, and why. The other side has not been told yet.
pub struct Declined {
    /// The reason.
    pub error: ConnectionError,
    /// The connection, unless it is already closed.
    pub stream: Option<Stream>,
}

impl fmt::Debug for Declined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Declined")
            .field("error", &self.error)
            .finish_non_exhaustive()
    }
}

impl From<ConnectionError> for Declined {
    fn from(error: ConnectionError) -> Self {
        let stream = None;
        Declined { error, stream }
    }
}

impl Endpoint {
    /// Accepts an incoming connection. Returns the stream and the name in the peer's certificate,
    /// which is `None` only without TLS.
    pub async fn take(&self, tcp: TcpStream) -> Result<(Stream, Option<NodeName>), Declined> {
        self.security.admit(&tcp)?;
        let Security::Tls { server, .. } = &self.security else {
            return Ok((Box::new(tcp), None));
        };
        let accepting = TlsAcceptor::from(server.clone()).accept(tcp);
        match accepting.into_fallible().await {
            Ok(stream) => {
                let shown = stream.get_ref().1.peer_certificates().unwrap_or_default();
                let name = certified_name(shown);
                let stream: Stream = Box::new(stream);
                match name {
                    Ok(name) => Ok((stream, Some(name))),
                    Err(refusal) => Err(declined(refusal, stream)),
                }
            }
            Err((error, tcp)) => {
                let (reader, writer) = tokio::io::split(tcp);
                drain(reader, writer).await;
                Err(tls_failed(format!("TLS failed: {error}"), &error).into())
            }
        }
    }

    /// Reads a hello and checks it. `certified` is the name in the peer's certificate, `None` only
    /// without TLS; `peer` names the other side in log lines.
    pub async fn greet(
        &self,
        mut stream: Stream,
        certified: Option<&NodeName>,
        peer: &str,
    ) -> Result<Arrival, Declined> {
        let read = read_hello(&mut stream, peer).await;
        let checked = read.and_then(|(hello, version)| {
            self.check(&hello, certified)?;
            Ok((hello, version))
        });
        match checked {
            Ok((hello, version)) => Ok(Arrival {
                hello,
                version,
                endpoint: self.clone(),
                stream,
            }),
            Err(error) => Err(declined(error, stream)),
        }
    }

    fn check(&self, hello: &Hello, certified: Option<&NodeName>) -> Result<(), Refusal> {
        let Hello { from, to, .. } = hello;
        let wrong_name = |reason: String| Err(Refusal::new(Code::Name, reason));
        if let Some(certified) = certified.filter(|certified| *certified != from) {
            return wrong_name(format!(
                "its hello names node {from}, but its certificate is for node {certified}; a node \
                 must use its own certificate"
            ));
        }
        let me = &self.name;
        if to != me {
            return wrong_name(format!(
                "node {from} looks for node {to} at the address of node {me}; correct the address \
                 of {to} in the configuration of {from}"
            ));
        }
        let from = Party {
            name: from,
            cluster: hello.cluster,
        };
        check_cluster(&hello.purpose, from, self.party())
    }

    /// Sends the reason to the other side, if that is possible, and closes the connection.
    pub async fn dismiss(&self, declined: Declined) {
        let refusal = declined.error.refusal();
        if let (Some(stream), Some(refusal)) = (declined.stream, refusal) {
            let cluster = refusal.cluster.or_else(|| self.cluster());
            let reply = Reply::Refused(Refusal { cluster, ..refusal });
            let (reader, writer) = tokio::io::split(stream);
            farewell(reader, writer, &reply.encode()).await;
        }
    }
}

impl Arrival {
    /// Answers with Welcome, and sends the first bytes of the protocol in the same write.
    pub async fn welcome(mut self, first: &[u8]) -> io::Result<Stream> {
        let reply = Reply::Welcome {
            version: self.version,
            cluster: self.endpoint.cluster(),
        };
        let mut bytes = reply.encode();
        bytes.extend_from_slice(first);
        write(&mut self.stream, &bytes).await?;
        Ok(self.stream)
    }

    /// Rejects this connection. The caller that accepted it counts the refusal and tells the other
    /// side.
    pub fn decline(self, refusal: Refusal) -> Declined {
        declined(refusal, self.stream)
    }

    /// Sends the reason of the refusal and closes the connection.
    pub async fn refuse(self, refusal: Refusal) {
        let endpoint = self.endpoint.clone();
        endpoint.dismiss(self.decline(refusal)).await;
    }
}

fn declined(error: impl Into<ConnectionError>, stream: Stream) -> Declined {
    Declined {
        error: error.into(),
        stream: Some(stream),
    }
}

/// Returns the name of the node that presented these certificates, if they are a node's.
pub(crate) fn certified_name(shown: &[CertificateDer<'_>]) -> Result<NodeName, Refusal> {
    let refuse = |reason: String| Refusal::new(Code::Name, reason);
    let name = Identity::peer_name(shown).map_err(|error| refuse(error.to_string()))?;
    NodeName::try_from(name).map_err(|error| refuse(error.to_string()))
}

async fn read_hello(
    stream: &mut (impl Io + ?Sized),
    peer: &str,
) -> Result<(Hello, u16), ConnectionError> {
    let broke = |error: io::Error| broken(peer, &error);
    let foreign = |error: HelloError| ConnectionError::hello(peer, &error);
    let mut preface = [0; PREFACE.len()];
    // Reject a wrong preface at its first differing byte instead of waiting for the rest.
    let mut read = 0;
    while read < preface.len() {
        let bytes = stream.read(&mut preface[read..]).await.map_err(broke)?;
        if bytes == 0 {
            return Err(broke(io::ErrorKind::UnexpectedEof.into()));
        }
        read += bytes;
        if preface[..read] != PREFACE[..read] {
            return Err(foreign(HelloError::Preface(preface[..read].to_vec())));
        }
    }
    let bytes = usize::from(stream.read_u16_le().await.map_err(broke)?);
    if bytes > HELLO_BYTES_MAX {
        let what = "hello";
        return Err(foreign(HelloError::TooLong { what, bytes }));
    }
    let mut content = vec![0; bytes];
    stream.read_exact(&mut content).await.map_err(broke)?;
    Hello::decode(&content).map_err(foreign)
}
