//! HTTP requests to a node: queries, events, and changes of the keepers.

use std::pin::{Pin, pin};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{AUTHORIZATION, HOST, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use soloist_api::compiled_here;
use tokio::time::timeout;

use crate::dial::{Dialer, Stream};
use crate::error::ClientError;
use crate::target::Token;

/// Maximum number of idle connections that are kept.
const IDLE_MAX: usize = 8;

/// Maximum length of a response.
const ANSWER_BYTES_MAX: usize = 64 << 20;

/// A node, and idle connections to it.
pub(crate) struct Http {
    pub dialer: Dialer,
    /// A connection that was opened to find the node, and not used yet.
    fresh: Mutex<Option<Stream>>,
    idle: Mutex<Vec<HttpConnection>>,
}

/// An open connection. One request uses it at a time. Dropping it closes it, also in the middle of
/// a request.
pub(crate) struct HttpConnection {
    sender: SendRequest<Full<Bytes>>,
    /// Moves the bytes, in the task that waits for the response: a task of its own would double the
    /// switches between tasks. `None` when it has ended.
    driver: Option<Driver>,
}

type Driver = Pin<Box<dyn Future<Output = hyper::Result<()>> + Send>>;

impl HttpConnection {
    async fn over(stream: Stream) -> hyper::Result<Self> {
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        Ok(HttpConnection {
            sender,
            driver: Some(Box::pin(connection)),
        })
    }

    async fn send(&mut self, request: Request<Full<Bytes>>) -> hyper::Result<Response<Incoming>> {
        drive(&mut self.driver, self.sender.send_request(request)).await
    }

    /// Whether another request can be sent, as far as is known here.
    async fn is_open(&mut self) -> bool {
        let ready = drive(&mut self.driver, self.sender.ready()).await;
        ready.is_ok() && self.driver.is_some()
    }

    /// Waits for something that comes over this connection.
    pub(crate) async fn drive<T>(&mut self, work: impl Future<Output = T>) -> T {
        drive(&mut self.driver, work).await
    }
}

async fn drive<T>(driver: &mut Option<Driver>, work: impl Future<Output = T>) -> T {
    let mut work = pin!(work);
    if let Some(moves) = driver {
        tokio::select! {
            biased;
            // The request in progress sees its errors.
            _ = moves => *driver = None,
            done = &mut work => return done,
        }
    }
    work.await
}

/// A request. It can be sent more than once.
#[derive(Clone)]
pub(crate) struct Call<'a> {
    pub method: Method,
    pub path: &'a str,
}

/// A response with its whole body.
pub(crate) struct Answer {
    pub status: StatusCode,
    pub body: Bytes,
}

impl Http {
    /// A node without a connection yet.
    pub(crate) fn new(dialer: Dialer) -> Self {
        Http {
            dialer,
            fresh: Mutex::default(),
            idle: Mutex::default(),
        }
    }

    /// Connects to the node.
    pub(crate) async fn open(&self) -> Result<(), ClientError> {
        let stream = self.dialer.open().await?;
        *self.fresh() = Some(stream);
        Ok(())
    }

    fn fresh(&self) -> MutexGuard<'_, Option<Stream>> {
        self.fresh.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the connection that found the node, if it was not used yet.
    pub(crate) fn take_fresh(&self) -> Option<Stream> {
        self.fresh().take()
    }

    /// Sends a request and reads the response. Dropping this closes the connection.
    ///
    /// The node may have closed a kept connection, which is noticed only in use. The request is
    /// then sent again over a new connection.
    pub(crate) fn exchange<'a>(
        &'a self,
        call: Call<'a>,
        limit: Duration,
    ) -> impl Future<Output = Result<Answer, ClientError>> + Send {
        compiled_here(self.exchange_within(call, limit))
    }

    async fn exchange_within(
        &self,
        call: Call<'_>,
        limit: Duration,
    ) -> Result<Answer, ClientError> {
        let exchange = async {
            let (mut connection, response) = self.start(&call).await?;
            let answer = connection.drive(self.read(response)).await?;
            self.keep(connection);
            Ok(answer)
        };
        let result = timeout(limit, exchange).await.unwrap_or_else(|_| {
            Err(ClientError::Silent {
                address: self.dialer.address.to_string(),
                after: limit,
            })
        });
        // What broke one connection has likely broken the others.
        if result.is_err() {
            self.idle().clear();
        }
        result
    }

    /// Sends a request and waits for the head of the response.
    pub(crate) async fn start(
        &self,
        call: &Call<'_>,
    ) -> Result<(HttpConnection, Response<Incoming>), ClientError> {
        if let Some(mut connection) = self.reuse().await
            && let Ok(response) = connection.send(self.request(call)?).await
        {
            return Ok((connection, response));
        }
        let connection = HttpConnection::over(self.dialer.open().await?).await;
        let mut connection = connection.map_err(|error| self.dialer.broken(error))?;
        let sent = connection.send(self.request(call)?).await;
        let response = sent.map_err(|error| self.dialer.broken(error))?;
        Ok((connection, response))
    }

    fn request(&self, call: &Call<'_>) -> Result<Request<Full<Bytes>>, ClientError> {
        let mut request = Request::builder()
            .method(call.method.clone())
            .uri(call.path)
            .header(HOST, self.dialer.host());
        if let Some(token) = self.dialer.token.as_ref().and_then(authorization) {
            request = request.header(AUTHORIZATION, token);
        }
        let request = request.body(Full::default());
        request.map_err(|error| self.dialer.broken(error))
    }

    async fn read(&self, response: Response<Incoming>) -> Result<Answer, ClientError> {
        let status = response.status();
        let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect();
        let body = body.await.map_err(|source| self.dialer.broken(source))?;
        let body = body.to_bytes();
        Ok(Answer { status, body })
    }

    async fn reuse(&self) -> Option<HttpConnection> {
        if let Some(stream) = self.take_fresh()
            && let Ok(connection) = HttpConnection::over(stream).await
        {
            return Some(connection);
        }
        loop {
            let mut connection = self.idle().pop()?;
            if connection.is_open().await {
                return Some(connection);
            }
        }
    }

    fn keep(&self, connection: HttpConnection) {
        let mut idle = self.idle();
        if idle.len() < IDLE_MAX && connection.driver.is_some() {
            idle.push(connection);
        }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<HttpConnection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The header `Authorization`.
pub(crate) fn authorization(Token(token): &Token) -> Option<HeaderValue> {
    let mut value = HeaderValue::try_from(format!("Bearer {token}")).ok()?;
    value.set_sensitive(true);
    Some(value)
}
