//! Floors: the cost of a one-byte round trip between two tasks on this machine, without Soloist.

use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;
use soloist_bench::{Measured, Samples};
use soloist_node::identity::{Authority, Identity};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio_rustls::{TlsAcceptor, TlsConnector};

const WHAT: &str = "round trip";

pub(super) async fn tcp(rounds: usize) -> Result<Measured> {
    let (near, far) = connected().await?;
    ping_pong("tcp", rounds, near, far).await
}

pub(super) async fn tls(rounds: usize) -> Result<Measured> {
    let (near, far) = connected().await?;
    let authority = Authority::new("floor")?;
    let identity = |name: &str| -> Result<Identity> {
        let issued = authority.issue(&name.parse()?, &[])?;
        let ca = authority.certificate();
        Ok(Identity::from_pem(ca, &issued.certificate, &issued.key)?)
    };
    let server = TlsAcceptor::from(identity("far")?.server_config());
    let client = TlsConnector::from(Arc::clone(&identity("near")?.client_config()));
    let name = "far".try_into()?;
    let (near, far) = tokio::try_join!(client.connect(name, near), server.accept(far))?;
    ping_pong("tls", rounds, near, far).await
}

pub(super) async fn unix(rounds: usize) -> Result<Measured> {
    let (near, far) = UnixStream::pair()?;
    ping_pong("unix", rounds, near, far).await
}

async fn connected() -> Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let near = TcpStream::connect(listener.local_addr()?);
    let (near, far) = tokio::join!(near, listener.accept());
    let (near, far) = (near?, far?.0);
    near.set_nodelay(true)?;
    far.set_nodelay(true)?;
    Ok((near, far))
}

async fn ping_pong(
    name: &'static str,
    rounds: usize,
    mut near: impl AsyncRead + AsyncWrite + Unpin,
    mut far: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
) -> Result<Measured> {
    let echo = tokio::spawn(async move {
        let mut byte = [0];
        while far.read_exact(&mut byte).await.is_ok() {
            far.write_all(&byte).await?;
            far.flush().await?;
        }
        anyhow::Ok(())
    });
    let mut samples = Samples::default();
    let begin = Instant::now();
    for _ in 0..rounds {
        let sent = Instant::now();
        near.write_all(&[7]).await?;
        near.flush().await?;
        near.read_exact(&mut [0]).await?;
        samples.add(sent.elapsed());
    }
    let seconds = begin.elapsed().as_secs_f64();
    drop(near);
    echo.await??;
    Ok(Measured::new(name, WHAT, seconds, &samples))
}
