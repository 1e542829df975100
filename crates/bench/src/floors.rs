//! Floors: blocking round trips of one byte through other processes, without Soloist.
//!
//! The other process is `cat`, which reads and writes back at once.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command};
use std::time::Instant;

use crate::{Cores, Measured, Placement, Samples, workloads};

/// A byte through a Unix socket and back.
pub const UNIX: &str = "unix";
/// A byte through TCP and back.
pub const TCP: &str = "tcp";
/// A byte through two processes and back.
pub const HOPS: &str = "three hops";
pub(crate) const ALL: [&str; 3] = [UNIX, TCP, HOPS];

/// The three floors of a placement.
pub(crate) fn measure(
    cores: &Cores,
    placement: Placement,
    rounds: usize,
) -> io::Result<[Measured; 3]> {
    let floor = Floor {
        cores,
        placement,
        rounds,
    };
    Ok([floor.unix()?, floor.tcp()?, floor.hops()?])
}

struct Floor<'a> {
    cores: &'a Cores,
    placement: Placement,
    rounds: usize,
}

impl Floor<'_> {
    fn unix(&self) -> io::Result<Measured> {
        let (near, far) = UnixStream::pair()?;
        let input = far.try_clone()?;
        let echo = self.cat(input, far)?;
        self.ping_pong(UNIX, "blocking round trip", &near, &near, [echo])
    }

    fn tcp(&self) -> io::Result<Measured> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let near = TcpStream::connect(listener.local_addr()?)?;
        let (far, _) = listener.accept()?;
        near.set_nodelay(true)?;
        far.set_nodelay(true)?;
        let input = far.try_clone()?;
        let echo = self.cat(input, far)?;
        self.ping_pong(TCP, "blocking round trip", &near, &near, [echo])
    }

    /// As a lock is handed over: from a client to its node, to another node, and to that node's
    /// client.
    fn hops(&self) -> io::Result<Measured> {
        let (first, from_client) = UnixStream::pair()?;
        let (to_other, from_node) = UnixStream::pair()?;
        let (to_client, last) = UnixStream::pair()?;
        let node = self.cat(from_client, to_other)?;
        let other = self.cat(from_node, to_client)?;
        let what = "blocking way through two processes";
        self.ping_pong(HOPS, what, &first, &last, [node, other])
    }

    /// Starts a `cat` where servers run.
    fn cat(&self, input: impl Into<OwnedFd>, output: impl Into<OwnedFd>) -> io::Result<Cat> {
        self.cores.pin_as_server(self.placement)?;
        let cat = Command::new("cat")
            .stdin(input.into())
            .stdout(output.into())
            .spawn();
        self.cores.pin_as_client(self.placement)?;
        Ok(Cat(cat?))
    }

    fn ping_pong<const N: usize>(
        &self,
        name: &str,
        what: &'static str,
        mut to: impl Write,
        mut from: impl Read,
        _cats: [Cat; N],
    ) -> io::Result<Measured> {
        let mut samples = Samples::default();
        let begin = Instant::now();
        for _ in 0..self.rounds {
            let sent = Instant::now();
            to.write_all(&[7])?;
            from.read_exact(&mut [0])?;
            samples.add(sent.elapsed());
        }
        let seconds = begin.elapsed().as_secs_f64();
        let name = workloads::name(self.placement, name);
        Ok(Measured::new(name, what, seconds, &samples))
    }
}

/// A process that is killed on drop.
struct Cat(Child);

impl Drop for Cat {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
