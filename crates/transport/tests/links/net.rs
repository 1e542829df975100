//! Nodes with links on loopback, handlers that record their calls, and connections driven by tests.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use soloist_core::Incarnation;
use soloist_testing::wait::within;
use soloist_transport::hello::{PREFACE, VERSIONS};
use soloist_transport::links::frame::{Decoder, RECORD_BYTES_MAX, Record};
use soloist_transport::links::{Handler, Limits, LinkChange, Links, Peer, Settings};
use soloist_transport::{Code, Endpoint, Hello, Purpose, Reply, Security};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Far longer than these tests take. It only ends a test that hangs.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Polls until the condition holds. Panics after [`TIMEOUT`].
pub(crate) async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    within(TIMEOUT, what, async || is_so()).await;
}

/// Limits with a short back-off, so that tests are fast.
pub(crate) fn quick() -> Limits {
    Limits {
        retry_max: Duration::from_millis(50),
        ..Limits::default()
    }
}

/// A handler that records its calls.
#[derive(Default)]
pub(crate) struct Seen {
    frames: Mutex<Vec<(Incarnation, Vec<u8>)>>,
    changes: Mutex<Vec<(String, LinkChange)>>,
    /// A frame to refuse, and the reason.
    pub unwanted: Mutex<Option<(Vec<u8>, String)>>,
    gate: Mutex<()>,
    waiting: AtomicBool,
}

/// Blocks a handler until this is dropped.
pub(crate) struct Gate {
    open: Option<mpsc::Sender<()>>,
    keeper: Option<JoinHandle<()>>,
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.open.take();
        self.keeper.take().unwrap().join().unwrap();
    }
}

impl Handler for Seen {
    fn receive(
        &self,
        from: Incarnation,
        frames: &mut dyn Iterator<Item = &[u8]>,
    ) -> Result<(), String> {
        self.waiting.store(true, Ordering::Relaxed);
        if self.gate.try_lock().is_err() {
            // Tell tokio that this thread blocks: it may be the one that reads for all others.
            tokio::task::block_in_place(|| drop(self.gate.lock().unwrap()));
        }
        self.waiting.store(false, Ordering::Relaxed);
        let unwanted = self.unwanted.lock().unwrap().clone();
        for frame in frames {
            match &unwanted {
                Some((bytes, reason)) if bytes == frame => return Err(reason.clone()),
                _ if frame == b"panic" => panic!("as the test wants"),
                _ => self.frames.lock().unwrap().push((from, frame.to_vec())),
            }
        }
        Ok(())
    }

    fn link_changed(&self, peer: &str, change: LinkChange) {
        let peer = peer.to_owned();
        self.changes.lock().unwrap().push((peer, change));
    }
}

impl Seen {
    /// Blocks the handler from now on. A thread holds the mutex, because a test must not hold it
    /// across an await.
    pub(crate) fn shut(self: &Arc<Self>) -> Gate {
        let (open, opened) = mpsc::channel();
        let (tell, shut) = mpsc::channel();
        let seen = self.clone();
        let keeper = std::thread::spawn(move || {
            let _shut = seen.gate.lock().unwrap();
            tell.send(()).unwrap();
            // Returns when the gate is dropped.
            let _ = opened.recv();
        });
        shut.recv().unwrap();
        Gate {
            open: Some(open),
            keeper: Some(keeper),
        }
    }

    /// Returns whether a call of the handler is waiting at the gate.
    pub(crate) fn is_waiting(&self) -> bool {
        self.waiting.load(Ordering::Relaxed)
    }

    pub(crate) fn frames(&self) -> Vec<(Incarnation, Vec<u8>)> {
        self.frames.lock().unwrap().clone()
    }

    pub(crate) fn count(&self) -> usize {
        self.frames.lock().unwrap().len()
    }

    pub(crate) fn changes(&self) -> Vec<(String, LinkChange)> {
        self.changes.lock().unwrap().clone()
    }

    pub(crate) fn was_refused(&self, peer: &str, text: &str) -> bool {
        self.changes().iter().any(|(of, change)| match change {
            LinkChange::Refused { reason } => of == peer && reason.contains(text),
            _ => false,
        })
    }

    pub(crate) fn said_goodbye(&self, peer: &str) -> bool {
        self.changes()
            .contains(&(peer.to_owned(), LinkChange::Goodbye))
    }

    pub(crate) fn went_down(&self, peer: &str, text: &str) -> bool {
        self.changes().iter().any(|(of, change)| match change {
            LinkChange::Down { reason } => of == peer && reason.contains(text),
            _ => false,
        })
    }
}

pub(crate) struct Node {
    pub links: Links,
    pub seen: Arc<Seen>,
    pub address: String,
}

pub(crate) async fn listener() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    (listener, address)
}

/// Incarnations of the nodes a, b and c, unless a test chooses others.
pub(crate) const A: Incarnation = Incarnation(97);
pub(crate) const B: Incarnation = Incarnation(98);
pub(crate) const C: Incarnation = Incarnation(99);

/// The incarnation of a node whose test chooses none.
pub(crate) fn only(name: &str) -> Incarnation {
    Incarnation(name.bytes().map(u64::from).sum())
}

/// A list of peers, each in its [`only`] incarnation.
pub(crate) fn roster(peers: &[(&str, &str)]) -> Vec<Peer> {
    let peers = peers.iter();
    let peers = peers.map(|(name, address)| member(name, only(name).0, address));
    peers.collect()
}

/// An incarnation of a node.
pub(crate) fn member(name: &str, incarnation: u64, address: &str) -> Peer {
    Peer {
        name: name.to_owned(),
        address: address.to_owned(),
        incarnation: Incarnation(incarnation),
    }
}

pub(crate) fn settings(me: &str) -> Settings {
    Settings {
        endpoint: Endpoint::new(me.parse().unwrap(), Security::Plain),
        fingerprint: [7; 32],
        limits: quick(),
    }
}

/// Starts a node without peers.
pub(crate) fn lone(settings: Settings, listener: TcpListener) -> Node {
    let address = listener.local_addr().unwrap().to_string();
    let seen = Arc::new(Seen::default());
    let links = Links::start(settings, listener, seen.clone()).unwrap();
    Node {
        links,
        seen,
        address,
    }
}

/// Starts a node in its [`only`] incarnation with these peers.
pub(crate) fn start(settings: Settings, peers: Vec<Peer>, listener: TcpListener) -> Node {
    let incarnation = only(settings.endpoint.name.as_str());
    let node = lone(settings, listener);
    node.links.set_peers(incarnation, peers).unwrap();
    node
}

/// Starts nodes [a](A) and [b](B) (0 and 1 in both lists of peers). `change` adapts their settings.
pub(crate) async fn pair(change: impl Fn(&mut Settings)) -> (Node, Node) {
    let ((at_a, a), (at_b, b)) = (listener().await, listener().await);
    let peers = roster(&[("a", &a), ("b", &b)]);
    let [a, b] = [("a", at_a), ("b", at_b)].map(|(me, listener)| {
        let mut settings = settings(me);
        change(&mut settings);
        start(settings, peers.clone(), listener)
    });
    (a, b)
}

/// The hello that this incarnation of `from` sends to this incarnation of `to`.
pub(crate) fn hello_of((from, incarnation): (&str, u64), (to, meant): (&str, u64)) -> Hello {
    Hello {
        purpose: Purpose::Link {
            fingerprint: [7; 32],
            incarnation: Incarnation(incarnation),
            to_incarnation: Some(Incarnation(meant)),
        },
        ..hello(from, to)
    }
}

/// The hello that the node `from` sends.
pub(crate) fn hello(from: &str, to: &str) -> Hello {
    Hello {
        versions: VERSIONS,
        from: from.parse().unwrap(),
        to: to.parse().unwrap(),
        cluster: None,
        purpose: Purpose::Link {
            fingerprint: [7; 32],
            incarnation: only(from),
            to_incarnation: None,
        },
    }
}

/// A hello, followed by these records.
pub(crate) fn greeting(hello: &Hello, records: &[Record<'_>]) -> Vec<u8> {
    [hello.encode(), encoded(records)].concat()
}

pub(crate) fn encoded(records: &[Record<'_>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for record in records {
        record.encode(&mut bytes);
    }
    bytes
}

/// A connection with the test at one end.
pub(crate) struct Wire {
    pub tcp: TcpStream,
    /// Whether the next bytes are the reply to a hello.
    is_greeting: bool,
    decoder: Decoder,
}

impl Wire {
    fn new(tcp: TcpStream, is_greeting: bool) -> Self {
        Self {
            tcp,
            is_greeting,
            decoder: Decoder::new(RECORD_BYTES_MAX),
        }
    }

    /// Accepts the next connection, answers its hello with Welcome, and returns both.
    pub(crate) async fn accepted(listener: &TcpListener) -> (Self, String) {
        let mut wire = Self::new(listener.accept().await.unwrap().0, false);
        let mut preface = [0; 8];
        wire.tcp.read_exact(&mut preface).await.unwrap();
        assert_eq!(preface, PREFACE);
        let content = wire.read_short().await.unwrap();
        let (hello, version) = Hello::decode(&content).unwrap();
        let cluster = None;
        wire.send(&Reply::Welcome { version, cluster }.encode())
            .await;
        (wire, format!("{hello:?}"))
    }

    pub(crate) async fn to(node: &Node) -> Self {
        Self::new(TcpStream::connect(&node.address).await.unwrap(), true)
    }

    /// Reads content with a length prefix of two bytes.
    async fn read_short(&mut self) -> std::io::Result<Vec<u8>> {
        let length = self.tcp.read_u16_le().await?;
        let mut content = vec![0; length.into()];
        self.tcp.read_exact(&mut content).await?;
        Ok(content)
    }

    pub(crate) async fn send(&mut self, bytes: &[u8]) {
        self.tcp.write_all(bytes).await.unwrap();
    }

    /// Returns the next record in its `Debug` form, or `None` when the connection is closed. A
    /// Welcome to the hello is skipped; any other reply is returned like a record.
    pub(crate) async fn next(&mut self) -> Option<String> {
        let reading = async {
            if std::mem::take(&mut self.is_greeting) {
                match Reply::decode(&self.read_short().await.ok()?).unwrap() {
                    Reply::Welcome { .. } => {}
                    Reply::Refused(refusal) if refusal.code == Code::Later => {
                        return Some("Later".to_owned());
                    }
                    refused => return Some(format!("{refused:?}")),
                }
            }
            loop {
                if let Some(record) = self.decoder.records().next() {
                    return Some(format!("{:?}", record.unwrap()));
                }
                match self.tcp.read_buf(self.decoder.space()).await {
                    Ok(0) | Err(_) => return None,
                    Ok(_) => {}
                }
            }
        };
        let patient = tokio::time::timeout(TIMEOUT, reading).await;
        patient.expect("no record arrived")
    }

    /// Waits until the other end closes the connection.
    pub(crate) async fn closed(&mut self) {
        while self.next().await.is_some() {}
    }
}
