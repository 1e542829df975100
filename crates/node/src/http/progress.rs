//! Whether a client reads what is written to it.

use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::timeout;

/// Number of looks at a connection before it counts as stuck.
const LOOKS: u32 = 5;

/// Number of bytes that a connection has taken. One whose buffers are full takes more only when the
/// client reads.
#[derive(Clone, Default)]
pub(super) struct Written(Arc<AtomicU64>);

impl Written {
    fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Runs `writing`, however long it takes. Returns `None` if the connection takes nothing for
    /// `limit`.
    pub(super) async fn unless_stuck<T>(
        &self,
        limit: Duration,
        writing: impl Future<Output = T>,
    ) -> Option<T> {
        let mut writing = pin!(writing);
        let mut silence = Silence {
            written: self.count(),
            since: Instant::now(),
        };
        loop {
            if let Ok(written) = timeout(limit / LOOKS, writing.as_mut()).await {
                return Some(written);
            }
            if silence.length(self.count(), Instant::now()) >= limit {
                return None;
            }
        }
    }
}

/// Since when a connection has taken nothing.
struct Silence {
    written: u64,
    since: Instant,
}

impl Silence {
    fn length(&mut self, written: u64, now: Instant) -> Duration {
        if self.written != written {
            *self = Silence {
                written,
                since: now,
            };
        }
        now.saturating_duration_since(self.since)
    }
}

/// A connection whose written bytes are counted.
pub(super) struct Counted<S> {
    stream: S,
    written: Written,
}

impl<S> Counted<S> {
    pub(super) fn new(stream: S, written: Written) -> Self {
        Counted { stream, written }
    }

    fn count(&self, written: io::Result<usize>) -> Poll<io::Result<usize>> {
        if let Ok(bytes) = written {
            self.written.0.fetch_add(bytes as u64, Ordering::Relaxed);
        }
        Poll::Ready(written)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Counted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Counted<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write(context, bytes));
        self.count(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write_vectored(context, pieces));
        self.count(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[test]
    fn silence_lasts_until_the_connection_takes_something() {
        let begin = Instant::now();
        let at = |seconds| begin + Duration::from_secs(seconds);
        let mut silence = Silence {
            written: 10,
            since: begin,
        };
        assert_eq!(silence.length(10, at(4)), Duration::from_secs(4));
        assert_eq!(silence.length(11, at(5)), Duration::ZERO);
        assert_eq!(silence.length(11, at(9)), Duration::from_secs(4));
        assert_eq!(silence.length(11, at(10)), Duration::from_secs(5));
    }

    #[tokio::test]
    async fn a_connection_is_stuck_while_nobody_reads() {
        let (node, mut client) = tokio::io::duplex(100);
        let written = Written::default();
        let mut node = Counted::new(node, written.clone());
        let stuck = written.unless_stuck(Duration::from_millis(20), node.write_all(&[0; 101]));
        assert!(stuck.await.is_none());
        assert_eq!(written.count(), 100);
        let writing = written.unless_stuck(Duration::from_secs(60), node.write_all(&[0; 1000]));
        let mut read = [0; 1100];
        let (done, _) = tokio::join!(writing, client.read_exact(&mut read));
        assert!(done.unwrap().is_ok());
        assert_eq!(written.count(), 1100);
    }
}
