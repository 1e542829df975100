//! A session's connection for a caller that speaks the protocol itself.

use std::fmt;
use std::sync::Arc;

use futures_util::{SinkExt, StreamExt};
use tokio_tungstenite::tungstenite::Message;

use super::socket::{self, Broken, Socket};
use crate::ClientError;
use crate::http::Http;

/// A connection to `/v1/session` of a node, authenticated like the [client](crate::Client) that
/// opened it. The caller writes and reads the messages of [sessions](soloist_api::session) as text,
/// beginning with `hello`. Dropping it closes the connection.
pub struct RawSession {
    node: Arc<Http>,
    socket: Socket,
}

impl fmt::Debug for RawSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawSession").finish_non_exhaustive()
    }
}

impl RawSession {
    pub(crate) async fn open(node: Arc<Http>) -> Result<Self, ClientError> {
        let stream = match node.take_fresh() {
            Some(stream) => stream,
            None => node.dialer.open().await?,
        };
        let socket = socket::upgrade(&node.dialer, stream).await?;
        Ok(RawSession { node, socket })
    }

    /// Sends a message.
    pub async fn send(&mut self, message: String) -> Result<(), ClientError> {
        let sent = self.socket.stream.send(Message::Text(message.into())).await;
        sent.map_err(|error| Broken::from(error).with(&self.node.dialer))
    }

    /// Waits for the next message. Returns `None` when the node has closed the connection. Cancel
    /// safe: no message is lost.
    pub async fn next(&mut self) -> Result<Option<String>, ClientError> {
        loop {
            match self.socket.stream.next().await {
                None | Some(Ok(Message::Close(_))) => return Ok(None),
                Some(Ok(Message::Text(text))) => return Ok(Some(text.to_string())),
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(Broken::from(error).with(&self.node.dialer)),
            }
        }
    }
}
