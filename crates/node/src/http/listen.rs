//! Accepts the API's connections: TLS, timeouts, and limits that no client can evade.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::http::Request;
use hyper::body::Incoming;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rustix::net::sockopt;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, BufReader};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::auth::Token;
use super::progress::{Counted, Written};
use super::session::{Line, LineKind};
use crate::config::ApiTcp;
use soloist_core::locks::Client;
use soloist_transport::Throttle;
use soloist_transport::identity::{IdentityError, api_server, client_name};
use soloist_transport::{Stranger, Strangers, Turns, lengthen_queue};

/// Timeout for the first bytes of a connection, and for the first after its TLS handshake. Clients
/// speak first, and immediately.
const FIRST_BYTES_WITHIN: Duration = Duration::from_secs(1);
/// Size of the buffer for them.
const FIRST_BYTES_MAX: usize = 512;

/// Timeout of a TLS handshake.
const HANDSHAKE_WITHIN: Duration = Duration::from_secs(10);

/// Timeout for a request's head, and for an idle connection.
const HEAD_WITHIN: Duration = Duration::from_secs(60);

/// Size of a connection's buffer in bytes; also the maximum size of a request's head.
const BUFFER_MAX: usize = 64 << 10;

/// Pause after a failed accept, for example because the process is out of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// TCP keepalive: detect a dead client within about 30 s.
const PROBE_AFTER: Duration = Duration::from_secs(15);
const PROBE_EVERY: Duration = Duration::from_secs(5);
const PROBES: u32 = 3;
const SILENCE_MAX: Duration = Duration::from_secs(30);

/// Why the API cannot be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ApiError {
    /// The configuration asks for the dashboard, and this program does not contain it.
    #[error("api.ui needs the dashboard's page, which this program does not have: remove it")]
    NoPage,
    /// The socket's path is too long for the system.
    #[error(
        "the path of the API's socket, {}, has {length} bytes (maximum: {max}): choose a shorter \
         one",
        path.display()
    )]
    SocketPath {
        /// The path.
        path: PathBuf,
        /// Its length.
        length: usize,
        /// The maximum length.
        max: usize,
    },
    /// Another process answers on the socket.
    #[error("another process uses the API's socket {}: stop it, or choose another path", .0.display())]
    SocketInUse(PathBuf),
    /// The path exists and is not a socket.
    #[error("{} exists and is not a socket: remove it, or choose another path for the API's \
             socket", .0.display())]
    NotASocket(PathBuf),
    /// The socket's group is unknown.
    #[error("socket_group {0:?} is not in /etc/group: create the group, or use its number")]
    SocketGroup(String),
    /// The socket cannot be created.
    #[error("cannot listen on the API's socket {}: {source}; check that its folder exists and is \
             writable, and that the node's user is in socket_group", path.display())]
    Socket {
        /// The path.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The TCP address cannot be listened on.
    #[error(
        "the API cannot listen on {address}: {source}; choose a free port and an address of this \
         machine"
    )]
    Tcp {
        /// The address.
        address: String,
        /// The cause.
        source: io::Error,
    },
    /// Other machines could use the API without authentication.
    #[error(
        "the API cannot listen on {address}, which other machines can reach, because {missing} \
         not set: set it, or listen on 127.0.0.1"
    )]
    Unprotected {
        /// The address.
        address: String,
        /// The missing setting.
        missing: &'static str,
    },
    /// The token's file cannot be read.
    #[error("cannot read the API's token from {file}: {source}")]
    TokenUnreadable {
        /// The file.
        file: String,
        /// The cause.
        source: io::Error,
    },
    /// Other users may read the token.
    #[error("other users can read the API's token {file} (mode {mode:03o}): chmod 600 {file}")]
    TokenExposed {
        /// The file.
        file: String,
        /// Its mode.
        mode: u32,
    },
    /// The file's content is not a valid token.
    #[error(
        "the API's token in {file} is invalid: {problem}; use one line of 32 or more letters and \
         digits"
    )]
    TokenUnusable {
        /// The file.
        file: String,
        /// The cause.
        problem: String,
    },
    /// The API's certificate cannot be used.
    #[error(transparent)]
    Certificate(#[from] IdentityError),
}

/// A listening TCP socket, and the authentication that it requires.
pub(super) struct OpenTcp {
    pub listener: TcpListener,
    pub address: SocketAddr,
    pub tls: Option<TlsAcceptor>,
    pub token: Option<Token>,
    /// Whether clients must present a certificate.
    pub certificate: bool,
}

pub(super) async fn open_tcp(config: &ApiTcp) -> Result<OpenTcp, ApiError> {
    let address = config.listen.to_string();
    let unprotected = |missing| ApiError::Unprotected {
        address: address.clone(),
        missing,
    };
    if let Some(missing) = config.unprotected() {
        return Err(unprotected(missing));
    }
    let token = config.token_file.as_deref().map(Token::load).transpose()?;
    let tls = match &config.tls {
        Some(tls) => {
            let client_ca = tls.client_ca.as_deref();
            let server = api_server(&tls.certificate, &tls.key, client_ca)?;
            Some(TlsAcceptor::from(Arc::new(server)))
        }
        None => None,
    };
    let failed = |source| ApiError::Tcp {
        address: address.clone(),
        source,
    };
    let listener = TcpListener::bind(&address).await.map_err(failed)?;
    lengthen_queue(&listener).map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    // A host name may resolve to any address.
    if tls.is_none() && !bound.ip().to_canonical().is_loopback() {
        return Err(unprotected("[api.tls] is"));
    }
    let client_ca = config.tls.as_ref().and_then(|tls| tls.client_ca.as_ref());
    Ok(OpenTcp {
        listener,
        address: bound,
        certificate: client_ca.is_some(),
        tls,
        token,
    })
}

/// State shared by the connections of one listener. Cheap to clone.
#[derive(Clone)]
pub(super) struct Door {
    router: Router,
    stopping: CancellationToken,
    cut: CancellationToken,
    tasks: TaskTracker,
    /// Connection slots. A connection on which no request was accepted yet may be displaced.
    strangers: Arc<Strangers>,
    connections_max: usize,
    /// Keeps clients that retry again and again from flooding the log.
    throttle: Arc<Throttle>,
    /// Whether clients must send a token.
    has_token: bool,
}

impl Door {
    pub(super) fn new(
        router: Router,
        stopping: &CancellationToken,
        cut: &CancellationToken,
        tasks: &TaskTracker,
        connections_max: usize,
        has_token: bool,
    ) -> Self {
        Door {
            router,
            stopping: stopping.clone(),
            cut: cut.clone(),
            tasks: tasks.clone(),
            strangers: Strangers::new(connections_max),
            connections_max,
            throttle: Arc::default(),
            has_token,
        }
    }

    /// Logs a line, unless the same line was logged within the last minute.
    fn warn(&self, line: &str) {
        if let Some(withheld) = self.throttle.admit("a client", line, Instant::now()) {
            tracing::warn!(withheld, "{line}");
        }
    }

    /// Returns a slot for one more connection. If all are taken, the oldest connection without an
    /// accepted request is closed. If there is none, the client is turned away.
    async fn place(&self, socket: impl AsFd) -> Option<Arc<Stranger>> {
        let place = self.strangers.admit(socket).await;
        if place.is_none() {
            self.warn(&format!(
                "refused a client: the API already has {} connections; raise the limit of open \
                 files (LimitNOFILE) if that is not enough",
                self.connections_max
            ));
        }
        place.map(Arc::new)
    }

    /// Waits for the next connection. Returns `None` when the API stops.
    async fn next<S, A>(&self, mut accept: impl FnMut() -> A) -> Option<S>
    where
        A: Future<Output = io::Result<S>>,
    {
        loop {
            let accepted = tokio::select! {
                biased;
                () = self.stopping.cancelled() => return None,
                accepted = accept() => accepted,
            };
            match accepted {
                Ok(stream) => return Some(stream),
                Err(error) => {
                    self.warn(&format!("the API cannot accept a connection: {error}"));
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    fn line(&self, kind: LineKind, process: Option<i32>, stranger: &Arc<Stranger>) -> Line {
        Line {
            kind,
            process,
            stranger: Arc::clone(stranger),
            written: Written::default(),
            _task: self.tasks.token(),
        }
    }

    /// Serves the requests of a connection until it ends or becomes a session. If the client
    /// disconnects, its pending request is dropped.
    async fn converse<S>(&self, stream: S, client: Client, line: Line)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let stream = Counted::new(stream, line.written.clone());
        let mut stream = BufReader::with_capacity(FIRST_BYTES_MAX, stream);
        let first = tokio::time::timeout(FIRST_BYTES_WITHIN, stream.fill_buf());
        if !matches!(first.await, Ok(Ok([_, ..]))) {
            tracing::debug!("a client sent nothing within {FIRST_BYTES_WITHIN:?}");
            return;
        }
        let stranger = Arc::clone(&line.stranger);
        stranger.speaks();
        let mut http = hyper::server::conn::http1::Builder::new();
        http.timer(TokioTimer::new())
            .header_read_timeout(HEAD_WITHIN)
            .max_buf_size(BUFFER_MAX)
            .half_close(false);
        let (has_token, line) = (self.has_token, Arc::new(line));
        let router = TowerToHyperService::new(self.router.clone());
        let service = service_fn(move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(client.clone());
            request.extensions_mut().insert(Arc::clone(&line));
            if has_token {
                // The middleware checks the token later.
                request.extensions_mut().insert(stranger.clone());
            } else {
                stranger.recognize();
            }
            router.call(request)
        });
        let connection = http.serve_connection(TokioIo::new(stream), service);
        let mut connection = pin!(connection.with_upgrades());
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = self.stopping.cancelled() => {
                connection.as_mut().graceful_shutdown();
                tokio::select! {
                    ended = connection => ended,
                    () = self.cut.cancelled() => return,
                }
            }
        };
        if let Err(error) = ended {
            tracing::debug!("a client's connection ended: {error}");
        }
    }
}

pub(super) async fn unix(listener: UnixListener, door: Door) {
    let mut turns = Turns::default();
    while let Some((stream, _)) = door.next(|| listener.accept()).await {
        turns.take().await;
        let Some(stranger) = door.place(&stream).await else {
            continue;
        };
        let door = door.clone();
        door.tasks.clone().spawn(async move {
            let client = unix_user(&stream);
            let process = stream.peer_cred().ok().and_then(|peer| peer.pid());
            let line = door.line(LineKind::Unix, process, &stranger);
            tokio::select! {
                () = stranger.closed() => {}
                () = door.converse(stream, client, line) => {}
            }
        });
    }
}

pub(super) async fn tcp(listener: TcpListener, tls: Option<TlsAcceptor>, door: Door) {
    let mut turns = Turns::default();
    while let Some((stream, _)) = door.next(|| listener.accept()).await {
        turns.take().await;
        let Some(stranger) = door.place(&stream).await else {
            continue;
        };
        if let Err(error) = tune(&stream) {
            tracing::debug!("a client's connection ended: {error}");
            continue;
        }
        let (door, tls) = (door.clone(), tls.clone());
        door.tasks.clone().spawn(async move {
            tokio::select! {
                () = stranger.closed() => {}
                () = serve_tcp(&door, tls, stream, &stranger) => {}
            }
        });
    }
}

/// Identifies the client of a Unix socket.
fn unix_user(stream: &UnixStream) -> Client {
    match stream.peer_cred() {
        Ok(user) => Client::new(&format!("with Unix user id {}", user.uid())),
        Err(_) => Client::new("of the Unix socket"),
    }
}

/// Identifies a client by its certificate. If none is required, all clients with the token count as
/// one.
fn over_tls(stream: &tokio_rustls::server::TlsStream<TcpStream>) -> Client {
    let shown = stream.get_ref().1.peer_certificates();
    match shown.and_then(|chain| chain.first()) {
        Some(certificate) => {
            let name = client_name(certificate);
            Client::new(&format!("with certificate {name:?}"))
        }
        None => over_tcp(),
    }
}

/// The client that stands for all without a certificate. They share one token, if any.
fn over_tcp() -> Client {
    Client::new("of the TCP address, with the token")
}

async fn serve_tcp(
    door: &Door,
    tls: Option<TlsAcceptor>,
    stream: TcpStream,
    stranger: &Arc<Stranger>,
) {
    let Some(tls) = tls else {
        let line = door.line(LineKind::Tcp, None, stranger);
        return door.converse(stream, over_tcp(), line).await;
    };
    let mut first = [0];
    let first = tokio::time::timeout(FIRST_BYTES_WITHIN, stream.peek(&mut first));
    if !matches!(first.await, Ok(Ok(1))) {
        tracing::debug!("a client sent nothing within {FIRST_BYTES_WITHIN:?}");
        return;
    }
    stranger.speaks();
    if let Some(stream) = shake_hands(door, &tls, stream).await {
        let client = over_tls(&stream);
        let line = door.line(LineKind::Tls, None, stranger);
        door.converse(stream, client, line).await;
    }
}

async fn shake_hands(
    door: &Door,
    tls: &TlsAcceptor,
    stream: TcpStream,
) -> Option<tokio_rustls::server::TlsStream<TcpStream>> {
    let shaken = tokio::select! {
        shaken = tokio::time::timeout(HANDSHAKE_WITHIN, tls.accept(stream)) => shaken,
        () = door.stopping.cancelled() => return None,
    };
    match shaken {
        Ok(Ok(stream)) => return Some(stream),
        Ok(Err(error)) => tracing::debug!("a client's TLS handshake failed: {error}"),
        Err(_) => tracing::debug!("a client's TLS handshake took too long"),
    }
    None
}

/// Sets TCP_NODELAY for small answers, and keepalive to detect that the client's machine is gone.
fn tune(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, PROBE_AFTER)?;
    sockopt::set_tcp_keepintvl(stream, PROBE_EVERY)?;
    sockopt::set_tcp_keepcnt(stream, PROBES)?;
    // `TCP_USER_TIMEOUT` is in milliseconds.
    sockopt::set_tcp_user_timeout(stream, SILENCE_MAX.as_millis() as u32)?;
    Ok(())
}
