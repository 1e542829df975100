//! Nodes with links on loopback, what their handlers saw, and connections made by hand.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use soloist_node::links::frame::{Decoder, RECORD_BYTES_MAX, Record};
use soloist_node::links::{Handler, Limits, LinkChange, Links, Peer, Settings};
use soloist_node::transport::hello::{PREFACE, VERSIONS};
use soloist_node::transport::{Code, Endpoint, Hello, Purpose, Reply, Security};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Far more than any of the tests needs; it only ends one that would hang.
const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until something is so.
pub async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "waited in vain until {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Short times, so that tests are quick.
pub fn quick() -> Limits {
    Limits {
        retry_max: Duration::from_millis(50),
        ..Limits::default()
    }
}

/// A handler that writes down what it is told.
#[derive(Default)]
pub struct Seen {
    frames: Mutex<Vec<(u64, Vec<u8>)>>,
    changes: Mutex<Vec<(String, LinkChange)>>,
    /// A frame that is not accepted, and why.
    pub unwanted: Mutex<Option<(Vec<u8>, String)>>,
    gate: Mutex<()>,
    waiting: AtomicBool,
}

/// Keeps a handler waiting until it is dropped.
pub struct Gate {
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
    fn receive(&self, from: u64, frames: &mut dyn Iterator<Item = &[u8]>) -> Result<(), String> {
        self.waiting.store(true, Ordering::Relaxed);
        if self.gate.try_lock().is_err() {
            // A thread that just blocked might be the one that reads for all others.
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
    /// From now on the handler waits. The lock is held by a thread: a test's own may not, over an await.
    pub fn shut(self: &Arc<Self>) -> Gate {
        let (open, opened) = mpsc::channel();
        let (tell, shut) = mpsc::channel();
        let seen = self.clone();
        let keeper = std::thread::spawn(move || {
            let _shut = seen.gate.lock().unwrap();
            tell.send(()).unwrap();
            // It ends when the gate is dropped.
            let _ = opened.recv();
        });
        shut.recv().unwrap();
        Gate {
            open: Some(open),
            keeper: Some(keeper),
        }
    }

    /// Whether a call of the handler is there, at a gate.
    pub fn is_waiting(&self) -> bool {
        self.waiting.load(Ordering::Relaxed)
    }

    pub fn frames(&self) -> Vec<(u64, Vec<u8>)> {
        self.frames.lock().unwrap().clone()
    }

    pub fn count(&self) -> usize {
        self.frames.lock().unwrap().len()
    }

    pub fn changes(&self) -> Vec<(String, LinkChange)> {
        self.changes.lock().unwrap().clone()
    }

    pub fn was_refused(&self, peer: &str, text: &str) -> bool {
        self.changes().iter().any(|(of, change)| match change {
            LinkChange::Refused { reason } => of == peer && reason.contains(text),
            _ => false,
        })
    }

    pub fn said_goodbye(&self, peer: &str) -> bool {
        self.changes()
            .contains(&(peer.to_owned(), LinkChange::Goodbye))
    }

    pub fn went_down(&self, peer: &str, text: &str) -> bool {
        self.changes().iter().any(|(of, change)| match change {
            LinkChange::Down { reason } => of == peer && reason.contains(text),
            _ => false,
        })
    }
}

pub struct Node {
    pub links: Links,
    pub seen: Arc<Seen>,
    pub address: String,
}

pub async fn listener() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    (listener, address)
}

/// A list where nobody comes or goes; ids are places.
pub fn roster(peers: &[(&str, &str)]) -> Vec<Peer> {
    let peers = (0..).zip(peers).map(|(id, (name, address))| Peer {
        id,
        name: (*name).to_owned(),
        address: (*address).to_owned(),
        incarnation: None,
    });
    peers.collect()
}

/// One life of a node, which is also its id.
pub fn member(name: &str, life: u64, address: &str) -> Peer {
    Peer {
        id: life,
        name: name.to_owned(),
        address: address.to_owned(),
        incarnation: Some(life),
    }
}

pub fn settings(me: &str) -> Settings {
    Settings {
        endpoint: Endpoint::new(me.parse().unwrap(), Security::Plain),
        fingerprint: [7; 32],
        limits: quick(),
    }
}

/// A node without peers.
pub fn lone(settings: Settings, listener: TcpListener) -> Node {
    let address = listener.local_addr().unwrap().to_string();
    let seen = Arc::new(Seen::default());
    let links = Links::start(settings, listener, seen.clone()).unwrap();
    Node {
        links,
        seen,
        address,
    }
}

/// A node with these peers, in the life of its own that its name says.
pub fn start(settings: Settings, peers: Vec<Peer>, listener: TcpListener) -> Node {
    let life = settings.endpoint.name.as_str().bytes().map(u64::from).sum();
    let node = lone(settings, listener);
    node.links.set_peers(life, peers).unwrap();
    node
}

/// Nodes a and b (0 and 1 in both rosters), with settings changed as the test wants.
pub async fn pair(change: impl Fn(&mut Settings)) -> (Node, Node) {
    let ((at_a, a), (at_b, b)) = (listener().await, listener().await);
    let peers = roster(&[("a", &a), ("b", &b)]);
    let [a, b] = [("a", at_a), ("b", at_b)].map(|(me, listener)| {
        let mut settings = settings(me);
        change(&mut settings);
        start(settings, peers.clone(), listener)
    });
    (a, b)
}

/// A Hello as this life of the node `from` would send it, to this life of the node `to`.
pub fn hello_of((from, life): (&str, u64), (to, meant): (&str, u64)) -> Hello {
    Hello {
        purpose: Purpose::Link {
            fingerprint: [7; 32],
            incarnation: life,
            to_incarnation: Some(meant),
        },
        ..hello(from, to)
    }
}

/// A Hello as the node `from` would send it.
pub fn hello(from: &str, to: &str) -> Hello {
    Hello {
        versions: VERSIONS,
        from: from.parse().unwrap(),
        to: to.parse().unwrap(),
        cluster: None,
        purpose: Purpose::Link {
            fingerprint: [7; 32],
            incarnation: 99,
            to_incarnation: None,
        },
    }
}

/// A hello, and these records right behind it.
pub fn greeting(hello: &Hello, records: &[Record<'_>]) -> Vec<u8> {
    [hello.encode(), encoded(records)].concat()
}

pub fn encoded(records: &[Record<'_>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for record in records {
        record.encode(&mut bytes);
    }
    bytes
}

/// A connection whose other end is a test.
pub struct Wire {
    pub tcp: TcpStream,
    /// Whether the next that comes is a reply to a hello.
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

    /// The next connection that somebody opens, and its hello, which is answered with Welcome.
    pub async fn accepted(listener: &TcpListener) -> (Self, String) {
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

    pub async fn to(node: &Node) -> Self {
        Self::new(TcpStream::connect(&node.address).await.unwrap(), true)
    }

    /// What a length of two bytes announces.
    async fn read_short(&mut self) -> std::io::Result<Vec<u8>> {
        let length = self.tcp.read_u16_le().await?;
        let mut content = vec![0; length.into()];
        self.tcp.read_exact(&mut content).await?;
        Ok(content)
    }

    pub async fn send(&mut self, bytes: &[u8]) {
        self.tcp.write_all(bytes).await.unwrap();
    }

    /// The next record, as `Debug` writes it; none when the connection is closed. A Welcome to a
    /// hello is skipped, another reply is given as a record is.
    pub async fn next(&mut self) -> Option<String> {
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
        let patient = tokio::time::timeout(PATIENCE, reading).await;
        patient.expect("waited in vain for a record")
    }

    /// Waits until the other end closes.
    pub async fn closed(&mut self) {
        while self.next().await.is_some() {}
    }
}
