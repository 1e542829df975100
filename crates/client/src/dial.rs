//! Opens connections to a node.

use std::io;
use std::time::Duration;

use soloist_api::compiled_here;
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;

use crate::direct::{Connection, Direct};
use crate::error::{Attempt, ClientError};
use crate::target::{ApiAddress, Token};
use crate::tls::Tls;

/// Timeout for opening a connection.
const OPEN_MAX: Duration = Duration::from_secs(5);

/// A node whose machine vanished without a word is given up after about half a minute.
const KEEPALIVE_AFTER: Duration = Duration::from_secs(15);
const KEEPALIVE_EVERY: Duration = Duration::from_secs(5);
const KEEPALIVE_TIMES: u32 = 3;
const SILENCE_MAX: Duration = Duration::from_secs(30);

/// An open connection: a Unix socket, TCP or TLS.
pub(crate) type Stream = Box<dyn Connection>;

/// A node, and how to connect to it.
pub(crate) struct Dialer {
    pub address: ApiAddress,
    pub tls: Option<Tls>,
    pub token: Option<Token>,
}

impl Dialer {
    /// Opens a connection.
    pub(crate) fn open(&self) -> impl Future<Output = Result<Stream, ClientError>> + Send {
        compiled_here(self.open_in_time())
    }

    async fn open_in_time(&self) -> Result<Stream, ClientError> {
        let late = || io::Error::new(io::ErrorKind::TimedOut, "no answer in 5 s");
        let opened = timeout(OPEN_MAX, self.open_without_end()).await;
        opened.unwrap_or_else(|_| Err(late())).map_err(|error| {
            let problem = match error.kind() {
                io::ErrorKind::NotFound => "no such socket".to_owned(),
                io::ErrorKind::ConnectionRefused => "connection refused".to_owned(),
                _ => error.to_string(),
            };
            ClientError::Unreachable(vec![Attempt {
                address: self.address.to_string(),
                problem,
            }])
        })
    }

    async fn open_without_end(&self) -> io::Result<Stream> {
        match &self.address {
            ApiAddress::Unix { socket, .. } => {
                let stream = UnixStream::connect(socket).await?;
                Ok(Box::new(Direct::new(stream)))
            }
            ApiAddress::Tcp { host, port, .. } => {
                let stream = TcpStream::connect((host.as_str(), *port)).await?;
                keep_alive(&stream)?;
                let stream = Direct::new(stream);
                match &self.tls {
                    None => Ok(Box::new(stream)),
                    Some(tls) => {
                        let stream = tls.connector.connect(tls.name.clone(), stream);
                        Ok(Box::new(stream.await?))
                    }
                }
            }
        }
    }

    /// The header `Host`.
    pub(crate) fn host(&self) -> String {
        match &self.address {
            ApiAddress::Unix { .. } => "localhost".to_owned(),
            ApiAddress::Tcp { host, port, .. } if host.contains(':') => format!("[{host}]:{port}"),
            ApiAddress::Tcp { host, port, .. } => format!("{host}:{port}"),
        }
    }

    pub(crate) fn broken(
        &self,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> ClientError {
        ClientError::Broken {
            address: self.address.to_string(),
            source: source.into(),
        }
    }

    pub(crate) fn garbled(&self, what: impl Into<String>) -> ClientError {
        ClientError::Garbled {
            address: self.address.to_string(),
            what: what.into(),
        }
    }
}

fn keep_alive(stream: &TcpStream) -> io::Result<()> {
    use rustix::net::sockopt;
    stream.set_nodelay(true)?;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, KEEPALIVE_AFTER)?;
    sockopt::set_tcp_keepintvl(stream, KEEPALIVE_EVERY)?;
    sockopt::set_tcp_keepcnt(stream, KEEPALIVE_TIMES)?;
    // While sent data is not acknowledged, no probes are sent. In milliseconds.
    sockopt::set_tcp_user_timeout(stream, SILENCE_MAX.as_millis() as u32)?;
    Ok(())
}
