//! etcd: the lock service of three servers.
//!
//! The client sends JSON to etcd's gateway, over one HTTP/1.1 connection. The gateway passes each
//! request on to the gRPC service in the same process, which costs CPU time that a gRPC client
//! would not cause. A lock is a key in the replicated and synced log, so the log takes most of the
//! time.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use rustix::process::Signal;
use serde_json::{Value, json};
use soloist_bench::{Client, Failure, System, Usage};
use tempfile::TempDir;

use crate::Contender;
use crate::server::{Server, find, version};

/// Number of servers.
const SERVERS: usize = 3;

/// Time to live of a client's lease: longer than any run.
const TTL_SECONDS: u32 = 600;

/// The program of an installation.
pub(crate) struct Etcd(PathBuf);

impl Etcd {
    pub(crate) fn installed() -> Option<Self> {
        find("etcd", &[]).map(Etcd)
    }
}

impl Contender for Etcd {
    type System = Running;

    fn title(&self) -> Result<String> {
        let version = version(&self.0)?;
        let number = version.rsplit(' ').next().unwrap_or_default();
        Ok(format!("etcd {number}, {SERVERS} servers"))
    }

    fn start(&self) -> Result<Running> {
        let folder = tempfile::tempdir().context("cannot create a folder for etcd")?;
        let ports = free_ports(2 * SERVERS).context("no free ports")?;
        let (clients, peers) = ports.split_at(SERVERS);
        let url = |port: &u16| format!("http://127.0.0.1:{port}");
        let listed = peers.iter().enumerate();
        let listed = listed.map(|(number, port)| format!("e{number}={}", url(port)));
        let cluster = listed.collect::<Vec<_>>().join(",");
        let mut running = Running {
            servers: Vec::new(),
            ports: clients.to_vec(),
            _folder: folder,
        };
        let folder = running._folder.path();
        for (number, (client, peer)) in clients.iter().zip(peers).enumerate() {
            let name = format!("e{number}");
            let mut command = Command::new(&self.0);
            command.current_dir(folder);
            for (option, value) in [
                ("--name", name.clone()),
                ("--data-dir", name.clone()),
                ("--listen-client-urls", url(client)),
                ("--advertise-client-urls", url(client)),
                ("--listen-peer-urls", url(peer)),
                ("--initial-advertise-peer-urls", url(peer)),
                ("--initial-cluster", cluster.clone()),
                ("--log-level", "error".to_owned()),
            ] {
                command.args([option, &value]);
            }
            let log = folder.join(format!("{name}.log"));
            running
                .servers
                .push(Server::start(command, Signal::KILL, log)?);
        }
        for (server, port) in running.servers.iter_mut().zip(clients) {
            server.ready(|| Session::open(*port).is_ok())?;
        }
        Ok(running)
    }
}

/// Ports that are free now.
fn free_ports(count: usize) -> io::Result<Vec<u16>> {
    let listeners = (0..count).map(|_| TcpListener::bind("127.0.0.1:0"));
    let listeners: Vec<_> = listeners.collect::<io::Result<_>>()?;
    let ports = listeners
        .iter()
        .map(|listener| Ok(listener.local_addr()?.port()));
    ports.collect()
}

/// Running servers.
pub(crate) struct Running {
    // Before the folder, so that the servers are stopped first.
    servers: Vec<Server>,
    ports: Vec<u16>,
    _folder: TempDir,
}

impl System for Running {
    type Client = Session;

    fn servers(&self) -> usize {
        self.servers.len()
    }

    async fn connect(&self, server: usize) -> Result<Session, Failure> {
        Ok(Session::open(self.ports[server])?)
    }

    fn usage(&self) -> io::Result<Usage> {
        let mut sum = Usage::default();
        for server in &self.servers {
            sum += server.usage()?;
        }
        Ok(sum)
    }
}

/// A connection, and a lease that its locks belong to. Its reads and writes block its thread.
pub(crate) struct Session {
    stream: BufReader<TcpStream>,
    lease: Value,
    /// Number of releases that were not answered yet.
    unanswered: usize,
    /// The key of the lock that is held.
    held: Value,
}

impl Session {
    fn open(port: u16) -> io::Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        let mut session = Session {
            stream: BufReader::new(stream),
            lease: Value::Null,
            unanswered: 0,
            held: Value::Null,
        };
        session.send("lease/grant", &json!({ "TTL": TTL_SECONDS }))?;
        session.lease = session.answer()?["ID"].take();
        Ok(session)
    }

    fn send(&mut self, path: &str, body: &Value) -> io::Result<()> {
        let body = body.to_string();
        let request = format!(
            "POST /v3/{path} HTTP/1.1\r\nhost: etcd\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        self.stream.get_mut().write_all(request.as_bytes())
    }

    fn answer(&mut self) -> io::Result<Value> {
        let status = self.line()?;
        let mut length = None;
        loop {
            let line = self.line()?.to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse().ok();
            }
        }
        let length = length.ok_or_else(|| io::Error::other("no length in etcd's answer"))?;
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        if status.split(' ').nth(1) != Some("200") {
            let text = format!("etcd: {status}: {}", String::from_utf8_lossy(&body));
            return Err(io::Error::other(text));
        }
        Ok(serde_json::from_slice(&body)?)
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        match self.stream.read_line(&mut line)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(line.trim_end().to_owned()),
        }
    }

    /// Waits until all releases were answered.
    fn settled(&mut self) -> io::Result<()> {
        while self.unanswered > 0 {
            self.answer()?;
            self.unanswered -= 1;
        }
        Ok(())
    }
}

impl Client for Session {
    async fn acquire(&mut self, lock: &str) -> Result<(), Failure> {
        let body = json!({ "name": base64(lock.as_bytes()), "lease": self.lease });
        self.send("lock/lock", &body)?;
        self.settled()?;
        self.held = self.answer()?["key"].take();
        Ok(())
    }

    async fn release(&mut self, is_awaited: bool) -> Result<(), Failure> {
        let body = json!({ "key": self.held });
        self.send("lock/unlock", &body)?;
        self.unanswered += 1;
        match is_awaited {
            true => Ok(self.settled()?),
            false => Ok(()),
        }
    }

    async fn settle(&mut self) -> Result<(), Failure> {
        Ok(self.settled()?)
    }
}

/// Bytes as etcd's JSON has them.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let byte = |index: usize| u32::from(chunk.get(index).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..4 {
            match digit <= chunk.len() {
                true => text.push(char::from(DIGITS[(bits >> (18 - 6 * digit) & 63) as usize])),
                false => text.push('='),
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::base64;

    #[test]
    fn base64_is_padded() {
        for (text, encoded) in [("", ""), ("a", "YQ=="), ("ab", "YWI="), ("abc", "YWJj")] {
            assert_eq!(base64(text.as_bytes()), encoded);
        }
    }
}
