//! One connection, as far as both of its sides do the same: TCP, TLS, records.

use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use rustls::pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::frame::{Decoder, FrameError, HELLO_BYTES_MAX, Record};
use super::settings::Security;
use super::shared::End;

/// How long a closed connection may take to hand over its last words.
const FAREWELL: Duration = Duration::from_millis(500);
/// What is read and dropped meanwhile: closing over unread bytes would destroy those words.
const FAREWELL_BYTES: u64 = 4 << 20;

/// What bytes come from and go to.
pub trait Io: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}
/// A connection, with TLS or without.
pub type Stream = Box<dyn Io>;

fn is_loopback(ip: IpAddr) -> bool {
    ip.to_canonical().is_loopback()
}

impl Security {
    /// Whether a socket with this address may be used.
    pub(super) fn allows(&self, address: SocketAddr) -> bool {
        matches!(self, Security::Tls { .. }) || is_loopback(address.ip())
    }

    fn allow(&self, tcp: &TcpStream) -> Result<(), End> {
        for address in [tcp.local_addr(), tcp.peer_addr()] {
            let address = address.map_err(|error| End::Failed(error.to_string()))?;
            if !self.allows(address) {
                return Err(off_loopback(address));
            }
        }
        Ok(())
    }
}

fn off_loopback(address: SocketAddr) -> End {
    End::Refused(format!(
        "without TLS only loopback addresses are allowed, and {address} is none; \
         give the nodes certificates"
    ))
}

/// Dials a peer: the first of its addresses that answers. One that swallows everything does not take the time of all.
pub(super) async fn dial(
    security: &Security,
    name: &str,
    address: &str,
    within: Duration,
) -> Result<Stream, End> {
    let failed =
        |error: io::Error| End::Failed(format!("cannot reach {name} at {address}: {error}"));
    let addresses = tokio::net::lookup_host(address).await.map_err(failed)?;
    let mut last = failed(io::Error::other("the name has no address"));
    let addresses: Vec<_> = addresses.collect();
    let each = within / (addresses.len() as u32 + 1);
    let late = || io::Error::new(io::ErrorKind::TimedOut, format!("no answer in {each:?}"));
    for address in addresses {
        if !security.allows(address) {
            last = off_loopback(address);
            continue;
        }
        let connected = timeout(each, TcpStream::connect(address)).await;
        match connected.unwrap_or_else(|_| Err(late())) {
            Ok(tcp) => return secure(security, name, tcp).await,
            Err(error) => last = failed(error),
        }
    }
    Err(last)
}

async fn secure(security: &Security, name: &str, tcp: TcpStream) -> Result<Stream, End> {
    security.allow(&tcp)?;
    set_nodelay(&tcp)?;
    let Security::Tls { client, .. } = security else {
        return Ok(Box::new(tcp));
    };
    let expected = ServerName::try_from(name.to_owned()).expect("names are checked at the start");
    let connecting = TlsConnector::from(client.clone()).connect(expected, tcp);
    match connecting.into_fallible().await {
        Ok(stream) => Ok(Box::new(stream)),
        Err((error, tcp)) => {
            drain(tcp).await;
            Err(tls_failed(
                &format!("TLS with {name} failed: {error}"),
                &error,
            ))
        }
    }
}

fn set_nodelay(tcp: &TcpStream) -> Result<(), End> {
    tcp.set_nodelay(true)
        .map_err(|error| End::Failed(format!("cannot set TCP_NODELAY: {error}")))
}

/// Takes an incoming connection: the stream, and the certificates that the peer showed.
pub(super) async fn take(
    security: &Security,
    tcp: TcpStream,
) -> Result<(Stream, Option<Vec<CertificateDer<'static>>>), End> {
    security.allow(&tcp)?;
    set_nodelay(&tcp)?;
    let Security::Tls { server, .. } = security else {
        return Ok((Box::new(tcp), None));
    };
    let accepting = TlsAcceptor::from(server.clone()).accept(tcp);
    match accepting.into_fallible().await {
        Ok(stream) => {
            let shown = stream.get_ref().1.peer_certificates().unwrap_or_default();
            let shown = shown.to_vec();
            Ok((Box::new(stream), Some(shown)))
        }
        Err((error, tcp)) => {
            drain(tcp).await;
            Err(tls_failed(&format!("TLS failed: {error}"), &error))
        }
    }
}

/// Tells a certificate that one side does not accept from bytes that are no TLS, and both from a connection
/// that just broke.
fn tls_failed(reason: &str, error: &io::Error) -> End {
    use rustls::Error;
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
    let end = match inner {
        None => End::Failed,
        Some(
            Error::InvalidMessage(_)
            | Error::InappropriateMessage { .. }
            | Error::InappropriateHandshakeMessage { .. }
            | Error::PeerMisbehaved(_)
            | Error::PeerSentOversizedRecord
            | Error::DecryptError,
        ) => End::Hostile,
        Some(_) => End::Refused,
    };
    end(reason.to_owned())
}

/// Lets the other side read our last words before the connection is gone.
async fn drain(mut stream: impl AsyncRead + AsyncWrite + Unpin) {
    let draining = async {
        stream.shutdown().await?;
        let mut rest = stream.take(FAREWELL_BYTES);
        tokio::io::copy(&mut rest, &mut tokio::io::sink()).await
    };
    // Nothing depends on it: the connection is over in any case.
    let _ = timeout(FAREWELL, draining).await;
}

/// Says this record, such as why, and closes.
pub(super) async fn refuse(mut stream: Stream, last: Record<'_>) {
    let mut bytes = Vec::new();
    last.encode(&mut bytes);
    // A peer that takes no last words gets none.
    if let Ok(Ok(())) = timeout(FAREWELL, write(&mut stream, &bytes)).await {
        drain(stream).await;
    }
}

pub(super) async fn write(
    stream: &mut (impl AsyncWrite + Unpin + ?Sized),
    bytes: &[u8],
) -> io::Result<()> {
    stream.write_all(bytes).await?;
    stream.flush().await
}

/// The stream's next bytes, all of them.
pub(super) async fn read_bytes<const N: usize>(
    stream: &mut (impl AsyncRead + Unpin + ?Sized),
    name: &str,
) -> Result<[u8; N], End> {
    let mut bytes = [0; N];
    match stream.read_exact(&mut bytes).await {
        Ok(_) => Ok(bytes),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Err(closed_by(name)),
        Err(error) => Err(broken(name, &error)),
    }
}

/// Reads one record of the handshake and gives it to `found`. `begin` are its first bytes, if they were read already.
pub(super) async fn read_hello<T>(
    stream: &mut (impl AsyncRead + Unpin + ?Sized),
    name: &str,
    begin: &[u8],
    found: impl FnOnce(Record<'_>) -> Result<T, End>,
) -> Result<(T, Decoder), End> {
    let mut decoder = Decoder::new(HELLO_BYTES_MAX);
    decoder.space().extend_from_slice(begin);
    loop {
        if let Some(record) = decoder.records().next() {
            let record = record.map_err(|error| foreign(name, &error))?;
            let value = found(record)?;
            return Ok((value, decoder));
        }
        match stream.read_buf(decoder.space()).await {
            Ok(0) => return Err(closed_by(name)),
            Ok(_) => {}
            Err(error) => return Err(broken(name, &error)),
        }
    }
}

/// The peer closed the connection without a word.
pub(super) fn closed_by(name: &str) -> End {
    End::Failed(format!("{name} closed the connection"))
}

/// The peer said goodbye.
pub(super) fn left(name: &str) -> End {
    End::Goodbye(format!("{name} said goodbye"))
}

/// What a read or a write that failed means. With TLS, it may be the peer's verdict on our certificate.
pub(super) fn broken(name: &str, error: &io::Error) -> End {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
    match inner {
        Some(rustls::Error::AlertReceived(_)) => {
            End::Refused(format!("{name} refused this node's certificate: {error}"))
        }
        Some(error) => End::Hostile(format!("TLS with {name} broke: {error}")),
        None => End::Failed(format!("the connection with {name} broke: {error}")),
    }
}

pub(super) fn foreign(name: &str, error: &FrameError) -> End {
    match error {
        FrameError::Version(_) => End::Refused(format!("{name} sent {error}")),
        _ => End::Hostile(format!("{name} sent {error}")),
    }
}

/// A peer's own words, as far as a log can bear them.
pub(super) fn quoted(reason: &str) -> String {
    let clean = |c: char| if c.is_control() { ' ' } else { c };
    reason.chars().map(clean).collect()
}

/// Runs a handshake within its time limit.
pub(super) async fn in_time<T>(
    limit: Duration,
    name: &str,
    handshake: impl Future<Output = Result<T, End>>,
) -> Result<T, End> {
    timeout(limit, handshake).await.unwrap_or_else(|_| {
        let limit = limit.as_secs_f64();
        Err(End::Failed(format!(
            "the handshake with {name} was not done after {limit} s"
        )))
    })
}
