//! A session's WebSocket.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use futures_util::{Sink, SinkExt, Stream as _, StreamExt};
use hyper::Request;
use hyper::header::{
    AUTHORIZATION, CONNECTION, HOST, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use soloist_api::ErrorKind;
use soloist_api::session::{ClientMessage, Closed, Code, Hello, NodeMessage, Numbered, Welcome};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Error as WsError, Message};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

use crate::dial::{Dialer, Stream};
use crate::http::authorization;
use crate::{ClientError, Moment};

/// Size of the read buffer. Tungstenite's default is 128 KiB.
const READ_BUFFER: usize = 8 << 10;

/// Maximum size of a node's message. A `welcome` lists all holds of a session.
const MESSAGE_BYTES_MAX: usize = 64 << 20;

/// An open connection of a session.
pub(super) struct Socket {
    pub(super) stream: WebSocketStream<Stream>,
    /// Messages that wait for room in the connection's buffer.
    outgoing: VecDeque<Message>,
}

/// Why a session was not started or resumed.
pub(super) enum Refusal {
    /// The node answered the hello with `closed`.
    Closed(Closed),
    /// The node cannot be reached, or does not speak the protocol.
    Error(ClientError),
}

impl From<ClientError> for Refusal {
    fn from(error: ClientError) -> Self {
        Refusal::Error(error)
    }
}

/// Opens a connection and sends the hello. Returns when the hello was sent, and the answer.
pub(super) async fn open(
    dialer: &Dialer,
    fresh: Option<Stream>,
    hello: Hello,
    limit: Duration,
) -> Result<(Socket, Moment, Welcome), Refusal> {
    let greet = async {
        let stream = match fresh {
            Some(stream) => stream,
            None => dialer.open().await?,
        };
        let mut socket = upgrade(dialer, stream).await?;
        let sent = Moment::now();
        let hello = text(&ClientMessage::Hello(hello));
        let written = socket.stream.send(hello).await;
        written.map_err(|error| dialer.broken(error))?;
        Ok((sent, socket.welcome(dialer).await?, socket))
    };
    match timeout(limit, greet).await {
        Ok(Ok((sent, welcome, socket))) => Ok((socket, sent, welcome)),
        Ok(Err(refusal)) => Err(refusal),
        Err(_) => Err(Refusal::Error(ClientError::Silent {
            address: dialer.address.to_string(),
            after: limit,
        })),
    }
}

/// Asks the node for a session over this connection.
pub(super) async fn upgrade(dialer: &Dialer, stream: Stream) -> Result<Socket, ClientError> {
    let host = dialer.host();
    let mut request = Request::builder()
        .uri(format!("ws://{host}/v1/session"))
        .header(HOST, host)
        .header(CONNECTION, "Upgrade")
        .header(UPGRADE, "websocket")
        .header(SEC_WEBSOCKET_VERSION, "13")
        .header(SEC_WEBSOCKET_KEY, generate_key());
    if let Some(token) = dialer.token.as_ref().and_then(authorization) {
        request = request.header(AUTHORIZATION, token);
    }
    let request = request.body(()).map_err(|error| dialer.broken(error))?;
    let config = WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER)
        .max_message_size(Some(MESSAGE_BYTES_MAX))
        .max_frame_size(Some(MESSAGE_BYTES_MAX));
    match client_async_with_config(request, stream, Some(config)).await {
        Ok((stream, _)) => Ok(Socket {
            stream,
            outgoing: VecDeque::new(),
        }),
        Err(WsError::Http(response)) => {
            let status = response.status();
            let body = response.body().as_deref().unwrap_or_default();
            Err(match serde_json::from_slice::<soloist_api::Error>(body) {
                Ok(error) => ClientError::refused(status.as_u16(), error.error, error.detail),
                Err(_) => dialer.garbled(format!("status {status} instead of a session")),
            })
        }
        Err(error @ WsError::Io(_)) => Err(dialer.broken(error)),
        Err(error) => Err(dialer.garbled(error.to_string())),
    }
}

impl Socket {
    async fn welcome(&mut self, dialer: &Dialer) -> Result<Welcome, Refusal> {
        loop {
            let message = self.stream.next().await;
            match self.read(message) {
                Ok(None) => {}
                Ok(Some(NodeMessage::Welcome(welcome))) => return Ok(welcome),
                Ok(Some(NodeMessage::Closed(closed))) => return Err(Refusal::Closed(closed)),
                Ok(Some(_)) => {
                    return Err(dialer.garbled("the first message is not a welcome").into());
                }
                Err(error) => return Err(error.with(dialer).into()),
            }
        }
    }

    /// Ends the session with this number, and waits for the answer.
    pub(super) async fn end(mut self, n: u64) -> Result<(), Broken> {
        let end = ClientMessage::End(Numbered { n, seen: None });
        self.stream.send(text(&end)).await?;
        loop {
            let received = self.stream.next().await;
            match self.read(received)? {
                Some(NodeMessage::Done(done)) if done.n == n => return Ok(()),
                Some(NodeMessage::Closed(closed)) => return Err(Broken::Closed(closed)),
                _ => {}
            }
        }
    }

    /// Adds a message to those that are sent by [`poll_flush`](Socket::poll_flush).
    pub(super) fn push(&mut self, message: &ClientMessage) {
        self.outgoing.push_back(text(message));
    }

    /// Sends all messages, in one write if they fit the buffer.
    pub(super) fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Broken>> {
        let mut stream = Pin::new(&mut self.stream);
        while !self.outgoing.is_empty() {
            ready!(stream.as_mut().poll_ready(context))?;
            if let Some(message) = self.outgoing.pop_front() {
                stream.as_mut().start_send(message)?;
            }
        }
        stream.poll_flush(context).map_err(Broken::from)
    }

    /// Closes the connection, as far as that is possible without waiting. The node reads what was
    /// sent before.
    pub(super) fn close(mut self) {
        self.outgoing.push_back(Message::Close(None));
        let _ = self.poll_flush(&mut Context::from_waker(Waker::noop()));
    }

    /// Sets whether reads ask the kernel, see
    /// [`Connection::set_direct`](crate::direct::Connection::set_direct).
    pub(super) fn set_direct(&mut self, is_direct: bool) {
        self.stream.get_mut().set_direct(is_direct);
    }

    /// Reads the next message.
    pub(super) fn poll_read(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<NodeMessage, Broken>> {
        loop {
            let received = ready!(Pin::new(&mut self.stream).poll_next(context));
            if let Some(message) = self.read(received)? {
                return Poll::Ready(Ok(message));
            }
        }
    }

    /// Decodes a frame. `None` is a frame without a message.
    fn read(
        &self,
        received: Option<Result<Message, WsError>>,
    ) -> Result<Option<NodeMessage>, Broken> {
        match received {
            None | Some(Ok(Message::Close(_))) => Err(Broken::Ended),
            Some(Ok(Message::Text(text))) => match serde_json::from_str(text.as_str()) {
                Ok(message) => Ok(Some(message)),
                Err(error) => Err(Broken::Garbled(error.to_string())),
            },
            Some(Ok(_)) => Ok(None),
            Some(Err(error)) => Err(error.into()),
        }
    }
}

/// Why a connection can no longer be used.
#[derive(Debug)]
pub(super) enum Broken {
    /// The connection ended.
    Ended,
    /// The node closed it, and said why.
    Closed(Closed),
    Io(Box<WsError>),
    Garbled(String),
}

impl From<WsError> for Broken {
    fn from(error: WsError) -> Self {
        Broken::Io(Box::new(error))
    }
}

impl Broken {
    pub(super) fn with(self, dialer: &Dialer) -> ClientError {
        match self {
            Broken::Ended => dialer.broken("the node closed it"),
            Broken::Closed(closed) => closed_by(dialer, closed),
            Broken::Io(error) => dialer.broken(error),
            Broken::Garbled(what) => dialer.garbled(what),
        }
    }
}

/// The error for a `closed` of the node. After some of them the session can be resumed.
fn closed_by(dialer: &Dialer, closed: Closed) -> ClientError {
    match closed.code {
        Code::TooSlow => dialer.broken(closed.detail),
        code => refused(code, closed.detail),
    }
}

/// The error for a `closed` or an `error` of the node.
pub(crate) fn refused(code: Code, detail: String) -> ClientError {
    let (status, kind) = match code {
        Code::BadRequest => (400, ErrorKind::BadRequest),
        Code::TooMany => (429, ErrorKind::TooMany),
        Code::Stopping => (503, ErrorKind::Stopping),
        Code::Unavailable => (503, ErrorKind::Unavailable),
        Code::NotGranted => (409, ErrorKind::NotGranted),
        _ => (400, ErrorKind::Other),
    };
    ClientError::refused(status, kind, detail)
}

fn text(message: &ClientMessage) -> Message {
    let json = serde_json::to_string(message);
    Message::Text(json.expect("it has no part that cannot be encoded").into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Target;
    use crate::client::dialer;

    /// So that requests which wait keep their places.
    #[test]
    fn the_session_of_a_client_that_did_not_read_is_resumed() {
        let target = Target::socket("/nowhere");
        let dialer = dialer(&target, &target.addresses[0]).unwrap();
        let error = |code| {
            let detail = "why".to_owned();
            Broken::Closed(Closed { code, detail }).with(&dialer)
        };
        assert!(error(Code::TooSlow).is_unavailable());
        assert!(!error(Code::BadMessage).is_unavailable());
    }
}
