//! Other protocols that share the port with links.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustls::pki_types::ServerName;
use soloist_core::Incarnation;
use soloist_transport::hello::{PREFACE, VERSIONS};
use soloist_transport::identity::{Authority, Identity};
use soloist_transport::links::{Handler, LinkChange, Links, Serving, Settings};
use soloist_transport::{
    Arrival, Code, Declined, Hello, Purpose, Refusal, Reply, Security, Stream,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::certificates::identity;
use crate::net::{hello, listener, lone, member, settings, until};

/// Serves keepers by sending back what it reads.
#[derive(Default)]
struct Mirror {
    asked: Mutex<Vec<Hello>>,
    frames: AtomicUsize,
    served: Arc<AtomicUsize>,
    dropped: Arc<AtomicBool>,
}

/// Records that its owner was dropped.
struct Gone(Arc<AtomicBool>);

impl Drop for Gone {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Handler for Mirror {
    fn receive(
        &self,
        _: Incarnation,
        frames: &mut dyn Iterator<Item = &[u8]>,
    ) -> Result<(), String> {
        self.frames.fetch_add(frames.count(), Ordering::Relaxed);
        Ok(())
    }

    fn link_changed(&self, _: &str, _: LinkChange) {}

    fn serve(&self, arrival: Arrival) -> Result<Serving, Declined> {
        self.asked.lock().unwrap().push(arrival.hello.clone());
        if !matches!(arrival.hello.purpose, Purpose::Keeper { .. }) {
            let purpose = arrival.hello.purpose.name();
            let refusal = Refusal::new(Code::NotServed, format!("no {purpose} here"));
            return Err(arrival.decline(refusal));
        }
        let (served, gone) = (self.served.clone(), Gone(self.dropped.clone()));
        Ok(Box::pin(async move {
            let _gone = gone;
            let stream = arrival.welcome(&[]).await.unwrap();
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

/// Sends these bytes, shuts down writing, and returns what it reads.
async fn say(stream: impl tokio::io::AsyncRead + tokio::io::AsyncWrite, words: &[u8]) -> Vec<u8> {
    let (mut reader, mut writer) = tokio::io::split(stream);
    let mut heard = Vec::new();
    let sending = async {
        writer.write_all(words).await.unwrap();
        writer.shutdown().await.unwrap();
        // A connection that is not served may be closed before its bytes are read.
        let _ = reader.read_to_end(&mut heard).await;
    };
    tokio::time::timeout(Duration::from_secs(60), sending)
        .await
        .expect("no answer arrived");
    heard
}

fn keeper(from: &str) -> Hello {
    let purpose = Purpose::Keeper {
        from_id: 1,
        to_id: 2,
    };
    Hello {
        purpose,
        ..hello(from, "a")
    }
}

fn member_hello(from: &str) -> Hello {
    let fingerprint = [7; 32];
    Hello {
        purpose: Purpose::Member { fingerprint },
        ..hello(from, "a")
    }
}

/// The expected response if these bytes follow an accepted hello.
fn echo(words: &[u8]) -> Vec<u8> {
    let (version, cluster) = (VERSIONS.lowest, None);
    [&Reply::Welcome { version, cluster }.encode(), words].concat()
}

/// Decodes the response to a refused hello.
fn refused(heard: &[u8]) -> Refusal {
    match Reply::decode(&heard[2..]).unwrap() {
        Reply::Refused(refusal) => refusal,
        welcome => panic!("{welcome:?}"),
    }
}

#[tokio::test]
async fn a_service_gets_all_bytes_after_the_hello() {
    let (links, mirror, address) = mirror(settings("a")).await;
    let words: Vec<u8> = (0..100_000u32).flat_map(u32::to_le_bytes).collect();
    // In one piece, and byte by byte.
    let all = [keeper("b").encode(), words.clone()].concat();
    let heard = say(TcpStream::connect(&address).await.unwrap(), &all).await;
    assert!(heard == echo(&words));
    let mut tcp = TcpStream::connect(&address).await.unwrap();
    tcp.set_nodelay(true).unwrap();
    for byte in keeper("b").encode() {
        tcp.write_all(&[byte]).await.unwrap();
        tokio::task::yield_now().await;
    }
    assert_eq!(say(tcp, b"!").await, echo(b"!"));
    until("both were served", || {
        mirror.served.load(Ordering::Relaxed) == 2
    })
    .await;
    assert_eq!(*mirror.asked.lock().unwrap(), [keeper("b"), keeper("b")]);
    let counters = links.counters();
    assert_eq!((counters.refused, counters.hostile), (0, 0));
}

#[tokio::test]
async fn connections_without_a_service_are_closed_and_counted() {
    let (links, mirror, address) = mirror(settings("a")).await;
    let dial = || TcpStream::connect(&address);
    let heard = say(dial().await.unwrap(), &member_hello("b").encode()).await;
    let refusal = refused(&heard);
    assert_eq!(refusal.code, Code::NotServed);
    assert_eq!(refusal.reason, "no membership here");
    until("it is refused", || links.counters().refused == 1).await;
    assert_eq!(links.refusals()[0].reason, "no membership here");
    assert_eq!(*mirror.asked.lock().unwrap(), [member_hello("b")]);
    // Prefaces that are nearly right.
    for words in [&b"SOLIECHO"[..], b"ECHO", b"solo-echo", b"\0OLOECHO"] {
        let before = links.counters().hostile;
        say(dial().await.unwrap(), words).await;
        until("it is hostile", || links.counters().hostile == before + 1).await;
    }
    // Too few bytes to decide.
    for words in [&b""[..], &PREFACE[..3], &PREFACE] {
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
    let heard = say(tcp, &keeper("b").encode()).await;
    assert_eq!(refused(&heard).code, Code::NotServed);
    until("it is refused", || a.links.counters().refused == 1).await;
    let reason = &a.links.refusals()[0].reason;
    assert_eq!(reason, "this node does not accept keeper connections");
}

async fn tls(me: &Identity, to: &str, address: &str) -> Stream {
    let connector = tokio_rustls::TlsConnector::from(me.client_config());
    let name = ServerName::try_from(to.to_owned()).unwrap();
    let tcp = TcpStream::connect(address).await.unwrap();
    Box::new(connector.connect(name, tcp).await.unwrap())
}

#[tokio::test]
async fn a_service_may_rely_on_the_name_in_the_hello() {
    let ca = Authority::new("orchestra").unwrap();
    let mut settings = settings("a");
    settings.endpoint.security = Security::tls(&identity(&ca, "a"));
    let (links, mirror, address) = mirror(settings).await;
    // It need not be a peer.
    let stream = tls(&identity(&ca, "keeper-7"), "a", &address).await;
    let words = vec![7; 200_000];
    let all = [keeper("keeper-7").encode(), words.clone()].concat();
    assert!(say(stream, &all).await == echo(&words));
    assert_eq!(*mirror.asked.lock().unwrap(), [keeper("keeper-7")]);
    let stream = tls(&identity(&ca, "b"), "a", &address).await;
    let refusal = refused(&say(stream, &keeper("c").encode()).await);
    assert_eq!(refusal.code, Code::Name);
    let text = "its hello names node c, but its certificate is for node b";
    assert!(refusal.reason.contains(text), "{}", refusal.reason);
    until("it is refused", || links.counters().refused == 1).await;
}

#[tokio::test]
async fn links_and_services_share_the_port() {
    let (links, mirror, address) = mirror(settings("a")).await;
    let (at_b, b) = listener().await;
    links
        .set_peers(Incarnation(1), vec![member("b", 2, &b)])
        .unwrap();
    let b = lone(settings("b"), at_b);
    b.links
        .set_peers(Incarnation(2), vec![member("a", 1, &address)])
        .unwrap();
    for round in 1..=10 {
        b.links.send(Incarnation(1), b"x").unwrap();
        let tcp = TcpStream::connect(&address).await.unwrap();
        assert_eq!(say(tcp, &keeper("b").encode()).await, echo(b""));
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
        tcp.write_all(&keeper("b").encode()).await.unwrap();
        let mut heard = [0; 5];
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
    tcp.write_all(&keeper("b").encode()).await.unwrap();
    tcp.read_exact(&mut [0; 5]).await.unwrap();
    assert!(!mirror.dropped.load(Ordering::Relaxed));
    links.close(Duration::from_secs(5)).await;
    assert!(mirror.dropped.load(Ordering::Relaxed));
    assert_eq!(mirror.served.load(Ordering::Relaxed), 0);
    let read = tokio::time::timeout(Duration::from_secs(60), tcp.read(&mut [0; 8])).await;
    assert!(matches!(read.expect("it is closed"), Ok(0) | Err(_)));
}
