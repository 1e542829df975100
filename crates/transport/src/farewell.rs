//! Closing a connection so that the last message arrives.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

/// Time for a closed connection to deliver its last message.
const FAREWELL: Duration = Duration::from_millis(500);
/// Bytes read and discarded in that time. Closing a socket with unread bytes would reset the
/// connection and lose the message.
const FAREWELL_BYTES: u64 = 4 << 20;

/// Writes all bytes and flushes.
pub async fn write(
    stream: &mut (impl AsyncWrite + Unpin + ?Sized),
    bytes: &[u8],
) -> io::Result<()> {
    stream.write_all(bytes).await?;
    stream.flush().await
}

/// Sends these last bytes and closes the connection. A peer that does not read them in time does
/// not get them.
pub async fn farewell(
    reader: impl AsyncRead + Unpin,
    mut writer: impl AsyncWrite + Unpin,
    last: &[u8],
) {
    if let Ok(Ok(())) = timeout(FAREWELL, write(&mut writer, last)).await {
        drain(reader, writer).await;
    }
}

/// Closes the sending side, and reads until the other side has closed too.
pub(crate) async fn drain(reader: impl AsyncRead + Unpin, mut writer: impl AsyncWrite + Unpin) {
    let draining = async {
        writer.shutdown().await?;
        let mut rest = reader.take(FAREWELL_BYTES);
        tokio::io::copy(&mut rest, &mut tokio::io::sink()).await
    };
    // The connection is over whether or not this succeeds.
    let _ = timeout(FAREWELL, draining).await;
}
