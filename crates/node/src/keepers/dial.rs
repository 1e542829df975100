//! How a keeper reaches another one.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;

use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::types::KeeperNode;
use crate::links::Security;

/// Bytes both ways.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// A stream to a keeper, or why there is none.
pub type Dialling<'a> = Pin<Box<dyn Future<Output = io::Result<Box<dyn Stream>>> + Send + 'a>>;

/// How a keeper reaches another one. Whoever answers must be that one.
pub trait Dial: Send + Sync + 'static {
    /// Opens a connection.
    fn dial<'a>(&'a self, keeper: &'a KeeperNode) -> Dialling<'a>;
}

/// TCP: with TLS, the other side's certificate must have the keeper's name; without, only on this machine.
impl Dial for Security {
    fn dial<'a>(&'a self, keeper: &'a KeeperNode) -> Dialling<'a> {
        Box::pin(async move {
            let tcp = connect(self, keeper).await?;
            tcp.set_nodelay(true)?;
            let Security::Tls { client, .. } = self else {
                return Ok(Box::new(tcp) as Box<dyn Stream>);
            };
            let name = ServerName::try_from(keeper.name.to_string()).map_err(io::Error::other)?;
            let stream = TlsConnector::from(client.clone())
                .connect(name, tcp)
                .await?;
            Ok(Box::new(stream) as Box<dyn Stream>)
        })
    }
}

/// The first address that answers.
async fn connect(security: &Security, keeper: &KeeperNode) -> io::Result<TcpStream> {
    let mut last = io::Error::other("the name has no address");
    for address in tokio::net::lookup_host(keeper.address.to_string()).await? {
        if !allows(security, address) {
            last = io::Error::other(format!(
                "without TLS only loopback addresses are allowed, and {address} is none"
            ));
            continue;
        }
        match TcpStream::connect(address).await {
            Ok(tcp) => return Ok(tcp),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn allows(security: &Security, address: SocketAddr) -> bool {
    matches!(security, Security::Tls { .. }) || address.ip().to_canonical().is_loopback()
}
