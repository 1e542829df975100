//! Connections that are no links: the port is shared.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustls::pki_types::ServerName;
use soloist_node::config::NodeName;
use soloist_node::identity::{Authority, Identity};
use soloist_node::links::{Handler, LinkChange, Links, Security, Serving, Settings, Stream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::certificates::identity;
use crate::net::{listener, lone, member, settings, until};

/// Gives back what it reads, to connections that begin rightly.
#[derive(Default)]
struct Mirror {
    asked: Mutex<Vec<([u8; 8], Option<NodeName>)>>,
    frames: AtomicUsize,
    served: Arc<AtomicUsize>,
    dropped: Arc<AtomicBool>,
}

/// Tells that what has it is gone.
struct Gone(Arc<AtomicBool>);

impl Drop for Gone {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Handler for Mirror {
    fn receive(&self, _: u64, frames: &mut dyn Iterator<Item = &[u8]>) -> Result<(), String> {
        self.frames.fetch_add(frames.count(), Ordering::Relaxed);
        Ok(())
    }

    fn link_changed(&self, _: &str, _: LinkChange) {}

    fn serve(
        &self,
        preface: [u8; 8],
        peer: Option<NodeName>,
        stream: Stream,
    ) -> Result<Serving, String> {
        self.asked.lock().unwrap().push((preface, peer));
        if preface != *b"SOLOECHO" {
            return Err(format!("no {} here", preface.escape_ascii()));
        }
        let (served, gone) = (self.served.clone(), Gone(self.dropped.clone()));
        Ok(Box::pin(async move {
            let _gone = gone;
            let (mut reader, mut writer) = tokio::io::split(stream);
            tokio::io::copy(&mut reader, &mut writer).await.unwrap();
            writer.shutdown().await.unwrap();
            served.fetch_add(1, Ordering::Relaxed);
        }))
    }
}

async fn mirror(settings: Settings) -> (Links, Arc<Mirror>, String) {
    let (listener, address) = listener().await;
    let mirror = Arc::new(Mirror::default());
    let links = Links::start(settings, listener, mirror.clone()).unwrap();
    (links, mirror, address)
}

/// Says this, and no more; gives what comes back.
async fn say(stream: impl tokio::io::AsyncRead + tokio::io::AsyncWrite, words: &[u8]) -> Vec<u8> {
    let (mut reader, mut writer) = tokio::io::split(stream);
    let mut heard = Vec::new();
    let saying = async {
        writer.write_all(words).await.unwrap();
        writer.shutdown().await.unwrap();
        // A connection that is not served may be gone before its words are read.
        let _ = reader.read_to_end(&mut heard).await;
    };
    tokio::time::timeout(Duration::from_secs(60), saying)
        .await
        .expect("waited in vain for an answer");
    heard
}

#[tokio::test]
async fn a_service_gets_all_bytes_from_the_first_on() {
    let (links, mirror, address) = mirror(settings("a")).await;
    let mut words = b"SOLOECHO".to_vec();
    words.extend((0..100_000u32).flat_map(u32::to_le_bytes));
    // In one piece, and in the smallest ones.
    let heard = say(TcpStream::connect(&address).await.unwrap(), &words).await;
    assert!(heard == words);
    let mut tcp = TcpStream::connect(&address).await.unwrap();
    tcp.set_nodelay(true).unwrap();
    for byte in b"SOLOECH" {
        tcp.write_all(&[*byte]).await.unwrap();
        tokio::task::yield_now().await;
    }
    assert_eq!(say(tcp, b"O!").await, b"SOLOECHO!");
    until("both were served", || {
        mirror.served.load(Ordering::Relaxed) == 2
    })
    .await;
    assert_eq!(
        *mirror.asked.lock().unwrap(),
        [(*b"SOLOECHO", None), (*b"SOLOECHO", None)]
    );
    let counters = links.counters();
    assert_eq!((counters.refused, counters.hostile), (0, 0));
}

#[tokio::test]
async fn what_is_not_served_is_closed_and_counted() {
    let (links, mirror, address) = mirror(settings("a")).await;
    let dial = || TcpStream::connect(&address);
    assert_eq!(say(dial().await.unwrap(), b"SOLOWHAT...").await, b"");
    until("it is refused", || links.counters().refused == 1).await;
    assert_eq!(links.refusals()[0].reason, "no SOLOWHAT here");
    assert_eq!(*mirror.asked.lock().unwrap(), [(*b"SOLOWHAT", None)]);
    // Nearly.
    for words in [&b"SOLIECHO"[..], b"ECHO", b"solo-echo", b"\0OLOECHO"] {
        let before = links.counters().hostile;
        say(dial().await.unwrap(), words).await;
        until("it is hostile", || links.counters().hostile == before + 1).await;
    }
    // Too little to tell.
    for words in [&b""[..], b"SOL", b"SOLOECH"] {
        assert_eq!(say(dial().await.unwrap(), words).await, b"");
    }
    assert_eq!(mirror.asked.lock().unwrap().len(), 1);
    assert_eq!((links.counters().refused, links.counters().hostile), (1, 4));
}

#[tokio::test]
async fn without_services_none_is_served() {
    let (at_a, address) = listener().await;
    let a = lone(settings("a"), at_a);
    let tcp = TcpStream::connect(&address).await.unwrap();
    assert_eq!(say(tcp, b"SOLOECHO").await, b"");
    until("it is refused", || a.links.counters().refused == 1).await;
    let reason = &a.links.refusals()[0].reason;
    assert_eq!(reason, "nothing here is served that begins with SOLOECHO");
}

async fn tls(me: &Identity, to: &str, address: &str) -> Stream {
    let connector = tokio_rustls::TlsConnector::from(me.client_config());
    let name = ServerName::try_from(to.to_owned()).unwrap();
    let tcp = TcpStream::connect(address).await.unwrap();
    Box::new(connector.connect(name, tcp).await.unwrap())
}

#[tokio::test]
async fn a_service_is_told_the_name_in_the_certificate() {
    let ca = Authority::new("orchestra").unwrap();
    let mut settings = settings("a");
    settings.security = Security::tls(&identity(&ca, "a"));
    let (links, mirror, address) = mirror(settings).await;
    // It needs not be anybody's peer.
    let stream = tls(&identity(&ca, "keeper-7"), "a", &address).await;
    let mut words = b"SOLOECHO".to_vec();
    words.resize(200_000, 7);
    assert!(say(stream, &words).await == words);
    let name: NodeName = "keeper-7".parse().unwrap();
    assert_eq!(*mirror.asked.lock().unwrap(), [(*b"SOLOECHO", Some(name))]);
    let stream = tls(&identity(&ca, "b"), "a", &address).await;
    assert_eq!(say(stream, b"SOLOWHAT").await, b"");
    until("it is refused", || links.counters().refused == 1).await;
}

#[tokio::test]
async fn links_and_services_share_the_port() {
    let (links, mirror, address) = mirror(settings("a")).await;
    let (at_b, b) = listener().await;
    links.set_peers(1, vec![member("b", 2, &b)]).unwrap();
    let b = lone(settings("b"), at_b);
    b.links
        .set_peers(2, vec![member("a", 1, &address)])
        .unwrap();
    for round in 1..=10 {
        b.links.send(0, b"x").unwrap();
        let tcp = TcpStream::connect(&address).await.unwrap();
        assert_eq!(say(tcp, b"SOLOECHO").await, b"SOLOECHO");
        until("a frame came", || {
            mirror.frames.load(Ordering::Relaxed) == round
        })
        .await;
    }
    assert_eq!(b.links.counters().dialled, 1);
}

#[tokio::test]
async fn a_service_needs_no_place_among_strangers() {
    let mut settings = settings("a");
    settings.limits.unauthenticated_max = 1;
    settings.limits.handshake = Duration::from_secs(30);
    let (links, _mirror, address) = mirror(settings).await;
    let mut open = Vec::new();
    for number in 1..=5 {
        let mut tcp = TcpStream::connect(&address).await.unwrap();
        tcp.write_all(b"SOLOECHO").await.unwrap();
        let mut heard = [0; 8];
        let reading = tcp.read_exact(&mut heard);
        let read = tokio::time::timeout(Duration::from_secs(60), reading).await;
        read.expect("it is served").unwrap();
        open.push(tcp);
        assert_eq!(links.counters().accepted, number);
    }
    assert_eq!(links.counters().turned_away, 0);
}

#[tokio::test]
async fn services_are_dropped_when_the_links_stop() {
    let (links, mirror, address) = mirror(settings("a")).await;
    let mut tcp = TcpStream::connect(&address).await.unwrap();
    tcp.write_all(b"SOLOECHO").await.unwrap();
    tcp.read_exact(&mut [0; 8]).await.unwrap();
    assert!(!mirror.dropped.load(Ordering::Relaxed));
    links.close(Duration::from_secs(5)).await;
    assert!(mirror.dropped.load(Ordering::Relaxed));
    assert_eq!(mirror.served.load(Ordering::Relaxed), 0);
    let read = tokio::time::timeout(Duration::from_secs(60), tcp.read(&mut [0; 8])).await;
    assert!(matches!(read.expect("it is closed"), Ok(0) | Err(_)));
}
