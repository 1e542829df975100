//! Events of a node or of all members, as they happen.

use std::fmt;
use std::sync::Arc;

use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::{Method, StatusCode};
use soloist_api::{ErrorKind, Event};

use crate::ClientError;
use crate::http::{Call, Http, HttpConnection};

/// Maximum length of an event.
const EVENT_BYTES_MAX: usize = 1 << 20;

/// Events of a node or of all members. Dropping it closes the connection.
pub struct Events {
    node: Arc<Http>,
    body: Incoming,
    /// Bytes that have arrived and were not returned yet.
    received: Vec<u8>,
    connection: HttpConnection,
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Events").finish_non_exhaustive()
    }
}

impl Events {
    pub(crate) async fn open(node: &Arc<Http>, path: &str) -> Result<Self, ClientError> {
        let call = Call {
            method: Method::GET,
            path,
        };
        let (connection, response) = node.start(&call).await?;
        if response.status() != StatusCode::OK {
            let status = response.status();
            let address = &node.dialer.address;
            let detail = format!("{address} refuses to send its events: status {status}");
            return Err(ClientError::refused(
                status.as_u16(),
                ErrorKind::Other,
                detail,
            ));
        }
        Ok(Events {
            node: Arc::clone(node),
            body: response.into_body(),
            received: Vec::new(),
            connection,
        })
    }

    /// Waits for the next event. Returns `None` when the node has ended the stream. Cancel safe: no
    /// event is lost.
    pub async fn next(&mut self) -> Result<Option<Event>, ClientError> {
        loop {
            if let Some(block) = take_block(&mut self.received) {
                match data_of(&block) {
                    // A comment, which keeps the connection alive.
                    None => continue,
                    Some(data) => {
                        let event = serde_json::from_str(&data);
                        return event
                            .map(Some)
                            .map_err(|error| self.garbled(&error.to_string()));
                    }
                }
            }
            if self.received.len() > EVENT_BYTES_MAX {
                return Err(self.garbled("an event longer than 1 MiB"));
            }
            match self.connection.drive(self.body.frame()).await {
                None => return Ok(None),
                Some(Err(error)) => return Err(self.node.dialer.broken(error)),
                Some(Ok(frame)) => {
                    if let Some(bytes) = frame.data_ref() {
                        self.received.extend_from_slice(bytes);
                    }
                }
            }
        }
    }

    fn garbled(&self, what: &str) -> ClientError {
        self.node.dialer.garbled(what)
    }
}

/// Removes the lines up to the first empty one, if it has arrived.
fn take_block(received: &mut Vec<u8>) -> Option<String> {
    let mut line_start = 0;
    for (index, &byte) in received.iter().enumerate() {
        if byte != b'\n' {
            continue;
        }
        if matches!(&received[line_start..index], b"" | b"\r") {
            let block: Vec<u8> = received.drain(..=index).collect();
            return Some(String::from_utf8_lossy(&block).into_owned());
        }
        line_start = index + 1;
    }
    None
}

/// Returns the data of an event's lines, or `None` for a comment.
fn data_of(block: &str) -> Option<String> {
    let lines = block.lines().filter_map(|line| line.strip_prefix("data:"));
    let data: Vec<&str> = lines
        .map(|data| data.strip_prefix(' ').unwrap_or(data))
        .collect();
    (!data.is_empty()).then(|| data.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_cut_at_empty_lines_however_they_arrive() {
        let stream = b":hello\n\nevent: lost\ndata: {\"a\":\ndata: 1}\n\ndata:x\r\n\r\nrest";
        let mut received = Vec::new();
        let mut found = Vec::new();
        for &byte in stream {
            received.push(byte);
            while let Some(block) = take_block(&mut received) {
                found.push(data_of(&block));
            }
        }
        assert_eq!(
            found,
            [None, Some("{\"a\":\n1}".to_owned()), Some("x".to_owned())]
        );
        assert_eq!(received, b"rest");
    }
}
