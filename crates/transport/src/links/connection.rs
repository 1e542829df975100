//! The parts of a connection that are the same on both sides.

use std::future::Future;
use std::io;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::timeout;

use super::frame::{Decoder, FrameError, RECORD_BYTES_MAX, Record};
use super::shared::End;
use crate::{ConnectionError, Stream, farewell, late};

impl From<ConnectionError> for End {
    fn from(error: ConnectionError) -> Self {
        match error {
            ConnectionError::Failed(reason) => End::Failed(reason),
            ConnectionError::Refused(refusal) if refusal.is_early() => End::Later(refusal.reason),
            ConnectionError::Refused(refusal) => End::Refused(refusal.reason),
            ConnectionError::Hostile(reason) => End::Hostile(reason),
        }
    }
}

/// Sends a last record, such as the reason of a refusal, and closes the connection.
pub(super) async fn close_with(stream: Stream, last: Record<'_>) {
    let mut bytes = Vec::new();
    last.encode(&mut bytes);
    let (reader, writer) = tokio::io::split(stream);
    farewell(reader, writer, &bytes).await;
}

/// Reads the first record and passes it to `found`.
pub(super) async fn read_first<T>(
    stream: &mut (impl AsyncRead + Unpin + ?Sized),
    name: &str,
    found: impl FnOnce(Record<'_>) -> Result<T, End>,
) -> Result<(T, Decoder), End> {
    let mut decoder = Decoder::new(RECORD_BYTES_MAX);
    loop {
        if let Some(record) = decoder.records().next() {
            let record = record.map_err(|error| foreign(name, &error))?;
            let value = found(record)?;
            return Ok((value, decoder));
        }
        match stream.read_buf(decoder.space()).await {
            Ok(0) => return Err(closed_by(name)),
            Ok(_) => {}
            Err(error) => return Err(broken(name, &error)),
        }
    }
}

/// The end of a connection that the peer closed without sending Goodbye or Refused.
pub(super) fn closed_by(name: &str) -> End {
    crate::closed_by(name).into()
}

/// The end of a connection after the peer's Goodbye.
pub(super) fn left(name: &str) -> End {
    End::Goodbye(format!("{name} is stopping"))
}

/// The end of a connection after a failed read or write.
pub(super) fn broken(name: &str, error: &io::Error) -> End {
    crate::broken(name, error).into()
}

pub(super) fn foreign(name: &str, error: &FrameError) -> End {
    End::Hostile(format!("{name} sent {error}"))
}

/// Runs a handshake with a timeout.
pub(super) async fn in_time<T, E: From<ConnectionError>>(
    limit: Duration,
    name: &str,
    handshake: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    let done = timeout(limit, handshake).await;
    done.unwrap_or_else(|_| Err(late(name, limit).into()))
}
