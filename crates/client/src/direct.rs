//! Sockets that a spinning caller reads without the runtime.

use std::io::{self, IoSlice};
use std::os::fd::AsFd;
use std::pin::Pin;
use std::task::{Context, Poll};

use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::client::TlsStream;

/// An open connection.
pub(crate) trait Connection: AsyncRead + AsyncWrite + Send + Unpin {
    /// Sets whether a read asks the kernel instead of the runtime.
    ///
    /// The runtime knows that a socket is readable only after it has polled for events, so a task
    /// that does not yield would never see what arrives. A direct read sees it at once, but a
    /// direct read that finds nothing wakes nobody later: a normal read must have returned
    /// `Pending` before.
    fn set_direct(&mut self, is_direct: bool);
}

/// A socket with a switch, see [`Connection::set_direct`].
#[derive(Debug)]
pub(crate) struct Direct<S> {
    socket: S,
    is_direct: bool,
}

impl<S> Direct<S> {
    pub(crate) fn new(socket: S) -> Self {
        Direct {
            socket,
            is_direct: false,
        }
    }
}

impl<S: AsyncRead + AsyncWrite + AsFd + Send + Unpin> Connection for Direct<S> {
    fn set_direct(&mut self, is_direct: bool) {
        self.is_direct = is_direct;
    }
}

impl<S: Connection> Connection for TlsStream<S> {
    fn set_direct(&mut self, is_direct: bool) {
        self.get_mut().0.set_direct(is_direct);
    }
}

impl<S: AsyncRead + AsFd + Unpin> AsyncRead for Direct<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.is_direct {
            return Pin::new(&mut self.socket).poll_read(context, buffer);
        }
        match recv(
            &self.socket,
            buffer.initialize_unfilled(),
            RecvFlags::DONTWAIT,
        ) {
            Ok((received, _)) => {
                buffer.advance(received);
                Poll::Ready(Ok(()))
            }
            Err(Errno::AGAIN | Errno::INTR) => Poll::Pending,
            Err(error) => Poll::Ready(Err(error.into())),
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Direct<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }
}
