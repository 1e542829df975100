//! Closing a connection so that the last message arrives.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

/// How long a closed connection may take to deliver its last message.
const FAREWELL: Duration = Duration::from_millis(500);
/// Bytes that are read and dropped meanwhile: closing over unread bytes would destroy the message.
const FAREWELL_BYTES: u64 = 4 << 20;

/// Writes everything.
pub(crate) async fn write(
    stream: &mut (impl AsyncWrite + Unpin + ?Sized),
    bytes: &[u8],
) -> io::Result<()> {
    stream.write_all(bytes).await?;
    stream.flush().await
}

/// Sends these last bytes and closes. A peer that does not read them in time does not get them.
pub(crate) async fn farewell(
    reader: impl AsyncRead + Unpin,
    mut writer: impl AsyncWrite + Unpin,
    last: &[u8],
) {
    if let Ok(Ok(())) = timeout(FAREWELL, write(&mut writer, last)).await {
        drain(reader, writer).await;
    }
}

/// Closes, and reads until the other side has closed, too.
pub(super) async fn drain(reader: impl AsyncRead + Unpin, mut writer: impl AsyncWrite + Unpin) {
    let draining = async {
        writer.shutdown().await?;
        let mut rest = reader.take(FAREWELL_BYTES);
        tokio::io::copy(&mut rest, &mut tokio::io::sink()).await
    };
    // Nothing depends on it: the connection is over in any case.
    let _ = timeout(FAREWELL, draining).await;
}
