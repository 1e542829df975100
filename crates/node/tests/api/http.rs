//! HTTP client for tests, which can also misbehave. Uses one connection per request.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsConnector;

pub(crate) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// Address of a node's API.
#[derive(Clone)]
pub(crate) enum Http {
    Unix(PathBuf),
    Tcp(SocketAddr),
    Tls(SocketAddr, Arc<rustls::ClientConfig>, String),
}

/// Response of the API.
#[derive(Debug)]
pub(crate) struct Answer {
    pub status: StatusCode,
    pub headers: hyper::HeaderMap,
    pub body: Bytes,
}

impl Answer {
    #[track_caller]
    pub(crate) fn json<T: DeserializeOwned>(&self) -> T {
        let read = serde_json::from_slice(&self.body);
        read.unwrap_or_else(|error| panic!("{error} in {self:?}"))
    }

    /// Asserts status 200 and decodes the body.
    #[track_caller]
    pub(crate) fn ok<T: DeserializeOwned>(&self) -> T {
        assert_eq!(self.status, 200, "{self:?}");
        self.json()
    }

    /// Asserts the status and decodes the error.
    #[track_caller]
    pub(crate) fn error(&self, status: u16) -> soloist_api::Error {
        assert_eq!(self.status.as_u16(), status, "{self:?}");
        assert_eq!(self.headers["content-type"], "application/json");
        self.json()
    }
}

impl Http {
    pub(crate) async fn connect(&self) -> std::io::Result<Box<dyn Stream>> {
        Ok(match self {
            Http::Unix(path) => Box::new(UnixStream::connect(path).await?),
            Http::Tcp(address) => Box::new(TcpStream::connect(address).await?),
            Http::Tls(address, config, name) => {
                let stream = TcpStream::connect(address).await?;
                let name = rustls::pki_types::ServerName::try_from(name.clone()).unwrap();
                let connector = TlsConnector::from(Arc::clone(config));
                Box::new(connector.connect(name, stream).await?)
            }
        })
    }

    /// Sends a request and returns once the response's head was received.
    pub(crate) async fn open(
        &self,
        request: Request<Full<Bytes>>,
    ) -> hyper::Result<Response<Incoming>> {
        let stream = TokioIo::new(self.connect().await.unwrap());
        let (mut sender, connection) = http1::handshake(stream).await?;
        tokio::spawn(connection);
        sender.send_request(request).await
    }

    pub(crate) async fn send(&self, request: Request<Full<Bytes>>) -> Answer {
        let (head, body) = self.open(request).await.unwrap().into_parts();
        Answer {
            status: head.status,
            headers: head.headers,
            body: body.collect().await.unwrap().to_bytes(),
        }
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(request(Method::GET, path, None)).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        self.send(request(Method::DELETE, path, None)).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Answer {
        self.send(request(Method::POST, path, Some(body))).await
    }
}

pub(crate) fn request(method: Method, path: &str, body: Option<Value>) -> Request<Full<Bytes>> {
    let mut request = Request::builder()
        .method(method)
        .uri(path)
        .header("host", "node");
    if body.is_some() {
        request = request.header("content-type", "application/json");
    }
    let body = body.map(|body| body.to_string()).unwrap_or_default();
    request.body(Full::from(body)).unwrap()
}

/// Memory of this process, in bytes.
pub(crate) fn resident() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let kib = line.unwrap().split_whitespace().nth(1).unwrap();
    kib.parse::<f64>().unwrap() * 1024.0
}
