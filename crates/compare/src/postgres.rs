//! PostgreSQL: session-level advisory locks of one server.
//!
//! The client speaks the frontend/backend protocol, version 3, over the server's Unix socket, with
//! prepared statements: an operation is one write, without parsing or planning on the server.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::chown;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use rustix::process::{Signal, geteuid};
use soloist_bench::{Client, Failure, System, Usage};
use tempfile::TempDir;

use crate::Contender;
use crate::server::{Server, find, version};

/// The programs of an installation.
pub(crate) struct Postgres {
    initdb: PathBuf,
    postgres: PathBuf,
}

impl Postgres {
    pub(crate) fn installed() -> Option<Self> {
        // Debian keeps the programs out of `PATH`, in a folder for each version.
        let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten();
        let mut folders: Vec<_> = versions
            .flatten()
            .map(|version| version.path().join("bin"))
            .collect();
        folders.sort();
        folders.reverse();
        Some(Postgres {
            initdb: find("initdb", &folders)?,
            postgres: find("postgres", &folders)?,
        })
    }
}

impl Contender for Postgres {
    type System = Running;

    fn title(&self) -> Result<String> {
        let version = version(&self.postgres)?;
        let number = version.split_whitespace().nth(2).unwrap_or_default();
        Ok(format!("PostgreSQL {number}, one server"))
    }

    fn start(&self) -> Result<Running> {
        let folder = tempfile::tempdir().context("cannot create a folder for PostgreSQL")?;
        let user = unprivileged()?;
        let run = |program: &PathBuf| {
            let mut command = Command::new(program);
            command.current_dir(folder.path()).args(["-D", "data"]);
            if let Some((user, group)) = user {
                command.uid(user).gid(group);
            }
            command
        };
        if let Some((user, group)) = user {
            chown(folder.path(), Some(user), Some(group))?;
        }
        let mut initdb = run(&self.initdb);
        initdb.args(["-U", USER, "-A", "trust", "--locale=C", "--no-sync"]);
        let made = initdb.output().context("cannot run `initdb`")?;
        let errors = String::from_utf8_lossy(&made.stderr);
        ensure!(made.status.success(), "`initdb` failed: {errors}");
        let mut postgres = run(&self.postgres);
        postgres
            .args(["-c", "listen_addresses=", "-k"])
            .arg(folder.path());
        // SIGQUIT: "immediate shutdown".
        let server = Server::start(postgres, Signal::QUIT, folder.path().join("log"))?;
        let mut running = Running {
            socket: folder.path().join(".s.PGSQL.5432"),
            server,
            _folder: folder,
        };
        let socket = running.socket.clone();
        running.server.ready(|| Session::open(&socket).is_ok())?;
        Ok(running)
    }
}

/// The database's superuser.
const USER: &str = "bench";

/// If this is root, which PostgreSQL refuses to run as: another user, and its group.
fn unprivileged() -> Result<Option<(u32, u32)>> {
    if !geteuid().is_root() {
        return Ok(None);
    }
    let users = fs::read_to_string("/etc/passwd").context("cannot read /etc/passwd")?;
    let find = |name: &str| {
        let mut lines = users
            .lines()
            .map(|line| line.split(':').collect::<Vec<_>>());
        let line = lines.find(|fields| fields.len() > 3 && fields[0] == name)?;
        Some((line[2].parse().ok()?, line[3].parse().ok()?))
    };
    let found = find("postgres").or_else(|| find("nobody"));
    found
        .context("PostgreSQL does not run as root, and there is no user postgres: create it")
        .map(Some)
}

/// A running server.
pub(crate) struct Running {
    // Before the folder, so that the server is stopped first.
    server: Server,
    socket: PathBuf,
    _folder: TempDir,
}

impl System for Running {
    type Client = Session;

    fn servers(&self) -> usize {
        1
    }

    async fn connect(&self, _server: usize) -> Result<Session, Failure> {
        Ok(Session::open(&self.socket)?)
    }

    fn usage(&self) -> io::Result<Usage> {
        self.server.usage()
    }
}

/// A connection. Its reads and writes block its thread.
pub(crate) struct Session {
    stream: UnixStream,
    received: Vec<u8>,
    /// Number of operations that were not answered yet.
    unanswered: usize,
    /// The key of the lock that is held.
    held: i64,
}

impl Session {
    fn open(socket: &PathBuf) -> io::Result<Self> {
        let mut session = Session {
            stream: UnixStream::connect(socket)?,
            received: Vec::new(),
            unanswered: 1,
            held: 0,
        };
        let mut startup = 196_608_i32.to_be_bytes().to_vec();
        startup.extend(format!("user\0{USER}\0database\0postgres\0\0").bytes());
        let mut message = length(&startup).to_vec();
        message.extend(startup);
        session.stream.write_all(&message)?;
        session.answered()?;
        for (name, function) in [
            ("lock", "pg_advisory_lock"),
            ("unlock", "pg_advisory_unlock"),
        ] {
            const BIGINT: i32 = 20;
            let mut parse = format!("{name}\0select {function}($1)\0").into_bytes();
            parse.extend(1_i16.to_be_bytes());
            parse.extend(BIGINT.to_be_bytes());
            session.send(&[(b'P', &parse), (b'S', &[])])?;
            session.answered()?;
        }
        Ok(session)
    }

    /// Sends messages in one write. The last one must be a `Sync`.
    fn send(&mut self, messages: &[(u8, &[u8])]) -> io::Result<()> {
        let mut bytes = Vec::new();
        for (kind, content) in messages {
            bytes.push(*kind);
            bytes.extend(length(content));
            bytes.extend(*content);
        }
        self.unanswered += 1;
        self.stream.write_all(&bytes)
    }

    /// Calls a prepared statement, without waiting for the answer.
    fn call(&mut self, statement: &str, key: i64) -> io::Result<()> {
        // The unnamed portal, one parameter in binary, eight bytes, and results as text.
        let mut bind = format!("\0{statement}\0").into_bytes();
        for number in [1_i16, 1, 1] {
            bind.extend(number.to_be_bytes());
        }
        bind.extend(8_i32.to_be_bytes());
        bind.extend(key.to_be_bytes());
        bind.extend(0_i16.to_be_bytes());
        // The unnamed portal, all rows.
        self.send(&[(b'B', &bind), (b'E', &[0; 5]), (b'S', &[])])
    }

    /// Waits until all operations were answered.
    fn answered(&mut self) -> io::Result<()> {
        while self.unanswered > 0 {
            match self.message() {
                Some(b'Z') => self.unanswered -= 1,
                Some(b'E') => return Err(io::Error::other("PostgreSQL refused a statement")),
                Some(_) => {}
                None => self.read()?,
            }
        }
        Ok(())
    }

    /// Removes the next message, if all of it has arrived. Returns its kind.
    fn message(&mut self) -> Option<u8> {
        let [kind, length @ ..] = *self.received.first_chunk::<5>()?;
        let length = 1 + u32::from_be_bytes(length) as usize;
        if self.received.len() < length {
            return None;
        }
        self.received.drain(..length);
        Some(kind)
    }

    fn read(&mut self) -> io::Result<()> {
        let mut buffer = [0; 4096];
        match self.stream.read(&mut buffer)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            read => {
                self.received.extend(&buffer[..read]);
                Ok(())
            }
        }
    }
}

/// The length field of a message, which counts itself.
fn length(content: &[u8]) -> [u8; 4] {
    (content.len() as u32 + 4).to_be_bytes()
}

impl Client for Session {
    async fn acquire(&mut self, lock: &str) -> Result<(), Failure> {
        // FNV-1a: keys are numbers.
        let hash = lock.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
        });
        self.held = hash as i64;
        self.call("lock", self.held)?;
        Ok(self.answered()?)
    }

    async fn release(&mut self, is_awaited: bool) -> Result<(), Failure> {
        self.call("unlock", self.held)?;
        match is_awaited {
            true => Ok(self.answered()?),
            false => Ok(()),
        }
    }

    async fn settle(&mut self) -> Result<(), Failure> {
        Ok(self.answered()?)
    }
}
