//! Connections to one node: opened, kept for the next request, closed when whoever waits goes away.

use std::io;
use std::pin::{Pin, pin};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use soloist_api::compiled_here;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;

use crate::error::{Attempt, ClientError};
use crate::target::{Place, Token};
use crate::tls::Tls;

/// How long opening a connection may take.
const OPEN_MAX: Duration = Duration::from_secs(5);

/// How many connections are kept when nobody uses them.
const IDLE_MAX: usize = 8;

/// No answer is longer.
const ANSWER_BYTES_MAX: usize = 64 << 20;

/// A node of which others would not hear when its machine goes away is given up after about half a minute.
const KEEPALIVE_AFTER: Duration = Duration::from_secs(15);
const KEEPALIVE_EVERY: Duration = Duration::from_secs(5);
const KEEPALIVE_TIMES: u32 = 3;
const SILENCE_MAX: Duration = Duration::from_secs(30);

/// A node, and the connections to it that nobody uses.
pub(crate) struct Connections {
    pub place: Place,
    pub tls: Option<Tls>,
    pub token: Option<Token>,
    idle: Mutex<Vec<Line>>,
}

/// An open connection. It is used by one request at a time; dropping it closes it, also in the middle
/// of a request: that is how the node learns that somebody waits no more.
pub(crate) struct Line {
    sender: SendRequest<Full<Bytes>>,
    /// Moves the bytes while a request is under way, in the task that waits for the answer: a task of its own would
    /// double the switches between tasks, which are most of what a request costs. Nothing, when it has ended.
    driver: Option<Driver>,
}

type Driver = Pin<Box<dyn Future<Output = hyper::Result<()>> + Send>>;

impl Line {
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
            // Its errors are seen by the request that is under way.
            _ = moves => *driver = None,
            done = &mut work => return done,
        }
    }
    work.await
}

/// A request that can be sent more than once.
pub(crate) struct Call<'a> {
    pub method: Method,
    pub path: &'a str,
    /// JSON.
    pub body: Option<String>,
}

/// An answer, read to its end.
pub(crate) struct Answer {
    pub status: StatusCode,
    pub body: Bytes,
}

impl Connections {
    pub(crate) fn new(place: Place, tls: Option<Tls>, token: Option<Token>) -> Self {
        Connections {
            place,
            tls,
            token,
            idle: Mutex::default(),
        }
    }

    /// Sends a request and reads the answer. Its connection is closed if this is dropped.
    ///
    /// A connection that was kept may have been closed by the node meanwhile, which shows only in use: then
    /// `call` is asked for the request again, once, for a new connection.
    pub(crate) fn exchange<'a>(
        &'a self,
        call: &'a (dyn Fn() -> Call<'a> + Sync),
        patience: Option<Duration>,
    ) -> impl Future<Output = Result<Answer, ClientError>> + Send {
        compiled_here(self.exchange_within(call, patience))
    }

    async fn exchange_within<'a>(
        &self,
        call: &(dyn Fn() -> Call<'a> + Sync),
        patience: Option<Duration>,
    ) -> Result<Answer, ClientError> {
        let exchange = async {
            let (mut line, response) = self.start(call).await?;
            let answer = line.drive(self.read(response)).await?;
            self.keep(line);
            Ok(answer)
        };
        let result = match patience {
            None => exchange.await,
            Some(after) => timeout(after, exchange).await.unwrap_or_else(|_| {
                Err(ClientError::Silent {
                    place: self.place.to_string(),
                    after,
                })
            }),
        };
        // What broke one connection has likely broken the others.
        if result.is_err() {
            self.idle().clear();
        }
        result
    }

    /// Sends a request and waits for the head of the answer.
    pub(crate) async fn start<'a>(
        &self,
        call: &(dyn Fn() -> Call<'a> + Sync),
    ) -> Result<(Line, Response<Incoming>), ClientError> {
        if let Some(mut line) = self.reuse().await
            && let Ok(response) = line.send(self.request(call())?).await
        {
            return Ok((line, response));
        }
        let mut line = self.open().await?;
        let sent = line.send(self.request(call())?).await;
        let response = sent.map_err(|error| self.broken(error))?;
        Ok((line, response))
    }

    fn request(&self, call: Call<'_>) -> Result<Request<Full<Bytes>>, ClientError> {
        let host = match &self.place {
            Place::Unix { .. } => "localhost".to_owned(),
            Place::Tcp { host, port, .. } if host.contains(':') => format!("[{host}]:{port}"),
            Place::Tcp { host, port, .. } => format!("{host}:{port}"),
        };
        let mut request = Request::builder()
            .method(call.method)
            .uri(call.path)
            .header(HOST, host);
        if let Some(Token(token)) = &self.token {
            let value = HeaderValue::try_from(format!("Bearer {token}"));
            if let Ok(mut value) = value {
                value.set_sensitive(true);
                request = request.header(AUTHORIZATION, value);
            }
        }
        if call.body.is_some() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        let body = Full::new(Bytes::from(call.body.unwrap_or_default()));
        request.body(body).map_err(|error| self.broken(error))
    }

    async fn read(&self, response: Response<Incoming>) -> Result<Answer, ClientError> {
        let status = response.status();
        let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect();
        let body = body.await.map_err(|source| self.broken(source))?.to_bytes();
        Ok(Answer { status, body })
    }

    async fn reuse(&self) -> Option<Line> {
        loop {
            let mut line = self.idle().pop()?;
            if line.is_open().await {
                return Some(line);
            }
        }
    }

    pub(crate) fn keep(&self, line: Line) {
        let mut idle = self.idle();
        if idle.len() < IDLE_MAX && line.driver.is_some() {
            idle.push(line);
        }
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Line>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a new connection.
    pub(crate) async fn open(&self) -> Result<Line, ClientError> {
        let late = || io::Error::new(io::ErrorKind::TimedOut, "no answer in 5 s");
        let opened = timeout(OPEN_MAX, self.open_without_end()).await;
        opened.unwrap_or_else(|_| Err(late())).map_err(|error| {
            let problem = match error.kind() {
                io::ErrorKind::NotFound => "no such socket".to_owned(),
                io::ErrorKind::ConnectionRefused => "connection refused".to_owned(),
                _ => error.to_string(),
            };
            ClientError::Unreachable(vec![Attempt {
                place: self.place.to_string(),
                problem,
            }])
        })
    }

    async fn open_without_end(&self) -> io::Result<Line> {
        match &self.place {
            Place::Unix { socket, .. } => handshake(UnixStream::connect(socket).await?).await,
            Place::Tcp { host, port, .. } => {
                let stream = TcpStream::connect((host.as_str(), *port)).await?;
                keep_alive(&stream)?;
                match &self.tls {
                    None => handshake(stream).await,
                    Some(tls) => {
                        let stream = tls.connector.connect(tls.name.clone(), stream);
                        handshake(stream.await?).await
                    }
                }
            }
        }
    }

    pub(crate) fn broken(
        &self,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> ClientError {
        ClientError::Broken {
            place: self.place.to_string(),
            source: source.into(),
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
    // What was sent and is not acknowledged keeps probes from being sent. In milliseconds.
    sockopt::set_tcp_user_timeout(stream, SILENCE_MAX.as_millis() as u32)?;
    Ok(())
}

async fn handshake<S>(stream: S) -> io::Result<Line>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (sender, connection) = http1::handshake(TokioIo::new(stream))
        .await
        .map_err(io::Error::other)?;
    Ok(Line {
        sender,
        driver: Some(Box::pin(connection)),
    })
}
