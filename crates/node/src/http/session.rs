//! `/v1/session`: a WebSocket over which a client holds locks. The messages are those of
//! [`soloist_api::session`], and [`soloist_core::sessions`] decides what they do.

mod attempts;
mod connection;
pub(super) mod left;
mod process;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::Extension;
use axum::extract::State;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::http::HeaderMap;
use axum::response::Response;
use futures_util::SinkExt;
use soloist_api::check_owner;
use soloist_api::session::{
    ClientMessage, Closed, Code, Hello, MESSAGE_BYTES_MAX, NodeMessage, Resume,
};
use tokio::time::timeout;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::error::Failure;
use super::locks::ANONYMOUS;
use super::progress::Written;
use super::request::Who;
use super::{Api, origin};
use crate::node::sessions::{NewSession, Outgoing, ResumedSession};
use crate::node::shared::Shared;
use crate::node::state::NodeState;
use connection::SessionConnection;
use soloist_core::locks::Client;
use soloist_core::sessions::{ConnectionId, SessionId};
use soloist_transport::Stranger;

/// Timeout for the client's hello.
const HELLO_WITHIN: Duration = Duration::from_secs(10);

/// A client that reads nothing for this long, although there is something to read, is cut.
const WRITE_WITHIN: Duration = Duration::from_secs(5);

/// How long to wait for a client to close its side, so that it reads the last message.
const CLOSE_WITHIN: Duration = Duration::from_secs(1);

/// Size of a connection's read buffer, in bytes. Tungstenite's default takes 128 KiB for each
/// session.
const READ_BUFFER: usize = 4 << 10;

/// What a listener knows about a connection, for as long as the connection lasts. It outlives the
/// HTTP connection that it was upgraded from.
pub(super) struct Line {
    pub kind: LineKind,
    /// The process at the other end of a Unix socket, if the system told it.
    pub process: Option<i32>,
    /// Keeps the connection's slot.
    pub stranger: Arc<Stranger>,
    /// What was written to it.
    pub written: Written,
    /// The API waits for this before it has stopped.
    pub _task: TaskTrackerToken,
}

/// The kind of listener.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum LineKind {
    Unix,
    Tcp,
    Tls,
}

/// Numbers the connections of an API.
#[derive(Default)]
pub(super) struct ConnectionIds(AtomicU64);

impl ConnectionIds {
    fn next(&self) -> ConnectionId {
        ConnectionId(self.0.fetch_add(1, Ordering::Relaxed))
    }
}

/// Open a session
///
/// A WebSocket over which a client holds any number of locks. Its messages are not part of this
/// description.
#[cfg_attr(feature = "schema", utoipa::path(
    get, path = "/v1/session", tag = "locks",
    responses(
        (status = 101, description = "A WebSocket"),
        (status = 400, description = "Not a WebSocket", body = soloist_api::Error),
        (status = 403, description = "A foreign web page, or an unknown host", body = soloist_api::Error),
        (status = 429, description = "Too many requests wait on this node", body = soloist_api::Error),
    ),
))]
pub(super) async fn session(
    State(api): State<Api>,
    Who(client): Who,
    Extension(line): Extension<Arc<Line>>,
    headers: HeaderMap,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, Failure> {
    origin::check_host(&headers, line.kind, &api.node.shared.config)?;
    origin::check_page(&headers)?;
    let upgrade = upgrade.map_err(|error| {
        Failure::bad_request(format!(
            "this path takes a WebSocket: {}",
            error.body_text()
        ))
    })?;
    let upgrade = upgrade
        .max_message_size(MESSAGE_BYTES_MAX)
        .max_frame_size(MESSAGE_BYTES_MAX)
        .read_buffer_size(READ_BUFFER)
        .write_buffer_size(MESSAGE_BYTES_MAX);
    // Checked here, so that a client without a place gets an HTTP error.
    drop(api.long.place(&client)?);
    Ok(upgrade.on_upgrade(move |socket| async move {
        let stopping = api.cut.clone();
        tokio::select! {
            () = stopping.cancelled() => {}
            () = serve(&api, socket, client, &line) => {}
        }
    }))
}

async fn serve(api: &Api, mut socket: WebSocket, client: Client, line: &Arc<Line>) {
    let Ok(_one_of_many) = api.long.place(&client) else {
        let detail = "too many connections wait on this node's API: try again later";
        return close(&mut socket, closed(Code::TooMany, detail)).await;
    };
    let end = match greet(api, &mut socket, client, line).await {
        Ok(connection) => connection.converse(&mut socket).await,
        Err(end) => end,
    };
    if let Some(end) = end {
        api.node.shared.metrics.count_session_closed(end.code);
        close(&mut socket, end).await;
    }
}

/// Reads the client's hello, and starts or resumes its session.
async fn greet(
    api: &Api,
    socket: &mut WebSocket,
    client: Client,
    line: &Arc<Line>,
) -> Result<SessionConnection, Option<Closed>> {
    let first = tokio::select! {
        first = timeout(HELLO_WITHIN, socket.recv()) => first,
        () = api.stopping.cancelled() => return Err(Some(stopping())),
    };
    let first = first.map_err(|_| Some(closed(Code::Hello, "no hello came in time")))?;
    let hello = match connection::read(first)? {
        Some(ClientMessage::Hello(hello)) => hello,
        _ => {
            return Err(Some(closed(
                Code::Hello,
                "the first message must be `hello`",
            )));
        }
    };
    let process = process::watched(&hello, line).map_err(Some)?;
    let shared = &api.node.shared;
    let id = api.connections.next();
    let outgoing = Arc::new(Outgoing::default());
    let principal = client.clone();
    let session = {
        let mut core = shared.living().ok_or_else(|| Some(stopping()))?;
        let session = match &hello.resume {
            Some(resume) => resumed(&mut core, shared, client, resume, id, &outgoing),
            None => opened(&mut core, shared, client, &hello, id, &outgoing),
        };
        let session = session.map_err(Some)?;
        let process = process.map(|process| process.watch(shared, session, id));
        core.watch_process(session, id, process);
        session
    };
    if let Some(left) = hello.left {
        // A client has one time to live.
        let ttl = hello.ttl_ms.map(Duration::from_millis);
        let ttl = ttl.unwrap_or(shared.config.ttl.default);
        tokio::spawn(left::end(api.clone(), principal, left, ttl));
    }
    let written = line.written.clone();
    Ok(SessionConnection::new(
        api.clone(),
        id,
        session,
        outgoing,
        written,
    ))
}

fn opened(
    core: &mut NodeState,
    shared: &Shared,
    client: Client,
    hello: &Hello,
    id: ConnectionId,
    outgoing: &Arc<Outgoing>,
) -> Result<SessionId, Closed> {
    let owner = hello.name.as_deref().unwrap_or(ANONYMOUS);
    check_owner(owner).map_err(|error| closed(Code::BadRequest, error))?;
    let ttl_default = shared.config.ttl.default;
    let new = NewSession {
        client,
        owner: owner.into(),
        ttl: hello.ttl_ms.map_or(ttl_default, Duration::from_millis),
    };
    let opened = core.open_session(shared, new, id, outgoing);
    opened.map_err(|error| closed(error.session_code(), error))
}

fn resumed(
    core: &mut NodeState,
    shared: &Shared,
    client: Client,
    resume: &Resume,
    id: ConnectionId,
    outgoing: &Arc<Outgoing>,
) -> Result<SessionId, Closed> {
    let unknown = |error: &dyn ToString| closed(Code::NoSuchSession, error.to_string());
    let session = resume.session.parse();
    let session: SessionId = session.map_err(|error| unknown(&error))?;
    let secret = resume.secret.0.parse().map_err(|error| unknown(&error))?;
    let resumption = ResumedSession {
        client,
        session,
        secret,
        seen: resume.seen,
    };
    let resumed = core.resume_session(shared, &resumption, id, outgoing);
    resumed.map_err(|error| unknown(&error))?;
    shared.metrics.count_session_resumed();
    Ok(session)
}

fn closed(code: Code, detail: impl ToString) -> Closed {
    Closed {
        code,
        detail: detail.to_string(),
    }
}

fn stopping() -> Closed {
    closed(Code::Stopping, "this node stops: use another one")
}

/// Sends the last message, and closes the connection so that the client can read it.
async fn close(socket: &mut WebSocket, end: Closed) {
    tracing::debug!("a session's connection is closed: {}", end.detail);
    let last = connection::text(&NodeMessage::Closed(end));
    let farewell = async {
        socket.feed(last).await?;
        socket.send(Message::Close(None)).await?;
        while let Some(Ok(_)) = socket.recv().await {}
        Ok::<_, axum::Error>(())
    };
    let _ = timeout(CLOSE_WITHIN, farewell).await;
}
