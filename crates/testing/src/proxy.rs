//! A TCP proxy that delays, cuts and refuses connections at random, from a seed.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;

/// A proxy that runs until the runtime ends.
#[derive(Debug)]
pub struct Proxy {
    /// Address that it listens on.
    pub address: String,
    /// Address that connections are forwarded to. If it is empty, every connection is closed.
    pub target: Arc<Mutex<String>>,
    /// Once set, the proxy injects no more faults.
    pub healed: Arc<AtomicBool>,
    /// Number of connections that were cut or refused.
    pub cuts: Arc<AtomicU64>,
}

/// How often the proxy injects which fault.
#[derive(Clone, Copy, Debug)]
pub struct Temper {
    /// Probability that the proxy starts to refuse connections, a few in a row.
    pub refuses: f64,
    /// Probability, per direction, that a connection is cut within its first bytes.
    pub early: f64,
    /// Otherwise, a connection is cut after at most this many bytes: to the target, and from it.
    pub bytes: (usize, usize),
    /// A connection is cut after at most this time.
    pub lifetime_ms: u64,
    /// Probability, per piece of data, that the connection is cut within it.
    pub cuts: f64,
    /// Probability that a piece of data is delayed, by up to 5 ms.
    pub delays: f64,
}

impl Temper {
    /// For links that always carry as many frames as possible.
    pub const FLOOD: Temper = Temper {
        refuses: 0.2,
        early: 0.25,
        bytes: (60_000, 3_000),
        lifetime_ms: 5_000,
        cuts: 0.0,
        delays: 0.05,
    };
}

impl Proxy {
    /// Starts a proxy to `target`. It refuses some connections, delays data, and cuts connections
    /// after some bytes or some time.
    pub async fn to(target: &str, seed: u64, temper: Temper) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxy = Proxy {
            address: listener.local_addr().unwrap().to_string(),
            target: Arc::new(Mutex::new(target.to_owned())),
            healed: Arc::default(),
            cuts: Arc::default(),
        };
        let target = proxy.target.clone();
        let (healed, cuts) = (proxy.healed.clone(), proxy.cuts.clone());
        tokio::spawn(carry_all(listener, target, seed, temper, healed, cuts));
        proxy
    }
}

async fn carry_all(
    listener: TcpListener,
    target: Arc<Mutex<String>>,
    seed: u64,
    temper: Temper,
    healed: Arc<AtomicBool>,
    cuts: Arc<AtomicU64>,
) {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut to_refuse = 0;
    while let Ok((from, _)) = listener.accept().await {
        if !healed.load(Ordering::Relaxed) {
            if to_refuse == 0 && random.random_bool(temper.refuses) {
                to_refuse = random.random_range(1..4);
            }
            if to_refuse > 0 {
                to_refuse -= 1;
                cuts.fetch_add(1, Ordering::Relaxed);
                continue;
            }
        }
        let to = target.lock().unwrap().clone();
        let Ok(to) = TcpStream::connect(to).await else {
            continue;
        };
        let seed = random.random();
        tokio::spawn(carry(from, to, seed, temper, healed.clone(), cuts.clone()));
    }
}

/// Starts a proxy that injects no faults.
pub async fn plain(target: &str) -> Proxy {
    let proxy = Proxy::to(target, 0, Temper::FLOOD).await;
    proxy.healed.store(true, Ordering::Relaxed);
    proxy
}

/// Starts a proxy at `address` that delivers everything this much later, in each direction.
pub async fn distant(address: &str, target: &str, delay: Duration) {
    let listener = TcpListener::bind(address).await.unwrap();
    let target = target.to_owned();
    tokio::spawn(async move {
        while let Ok((from, _)) = listener.accept().await {
            let Ok(to) = TcpStream::connect(&target).await else {
                continue;
            };
            let (from_read, from_write) = from.into_split();
            let (to_read, to_write) = to.into_split();
            tokio::spawn(copy_later(from_read, to_write, delay));
            tokio::spawn(copy_later(to_read, from_write, delay));
        }
    });
}

/// Copies one direction until it ends. Bytes that are under way do not hold up those behind them.
async fn copy_later(
    mut from: impl AsyncReadExt + Unpin,
    mut to: impl AsyncWriteExt + Unpin + Send + 'static,
    delay: Duration,
) {
    let (sender, mut under_way) = tokio::sync::mpsc::unbounded_channel::<(Instant, Vec<u8>)>();
    tokio::spawn(async move {
        while let Some((at, bytes)) = under_way.recv().await {
            tokio::time::sleep_until(at).await;
            if to.write_all(&bytes).await.is_err() {
                return;
            }
        }
    });
    let mut bytes = [0; 4096];
    while let Ok(read @ 1..) = from.read(&mut bytes).await {
        let arrival = (Instant::now() + delay, bytes[..read].to_vec());
        if sender.send(arrival).is_err() {
            return;
        }
    }
}

/// Forwards one connection until it ends or is cut.
async fn carry(
    from: TcpStream,
    to: TcpStream,
    seed: u64,
    temper: Temper,
    healed: Arc<AtomicBool>,
    cuts: Arc<AtomicU64>,
) {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let (from_read, from_write) = from.into_split();
    let (to_read, to_write) = to.into_split();
    let mut direction = |longest| {
        // Some connections are cut during the handshake, most of them later.
        let early = random.random_bool(temper.early);
        let bytes = random.random_range(0..if early { 100 } else { longest });
        (bytes, ChaCha8Rng::seed_from_u64(random.random()))
    };
    let there = direction(temper.bytes.0);
    let back = direction(temper.bytes.1);
    let lifetime = Duration::from_millis(random.random_range(0..temper.lifetime_ms));
    tokio::select! {
        () = copy(from_read, to_write, there, temper, healed.clone()) => {}
        () = copy(to_read, from_write, back, temper, healed.clone()) => {}
        () = end_of(lifetime, healed) => {}
    }
    cuts.fetch_add(1, Ordering::Relaxed);
}

/// Cuts the connection even if it is idle, unless the proxy is healed by then.
async fn end_of(lifetime: Duration, healed: Arc<AtomicBool>) {
    tokio::time::sleep(lifetime).await;
    if healed.load(Ordering::Relaxed) {
        std::future::pending().await
    }
}

async fn copy(
    mut from: impl AsyncReadExt + Unpin,
    mut to: impl AsyncWriteExt + Unpin,
    (mut left, mut random): (usize, ChaCha8Rng),
    temper: Temper,
    healed: Arc<AtomicBool>,
) {
    let mut bytes = [0; 4096];
    loop {
        let piece = random.random_range(1..bytes.len());
        let Ok(read @ 1..) = from.read(&mut bytes[..piece]).await else {
            return;
        };
        let whole = healed.load(Ordering::Relaxed);
        if !whole && random.random_bool(temper.cuts) {
            left = left.min(random.random_range(0..read));
        }
        let carried = if whole { read } else { read.min(left) };
        if !whole && random.random_bool(temper.delays) {
            tokio::time::sleep(Duration::from_millis(random.random_range(0..5))).await;
        }
        if to.write_all(&bytes[..carried]).await.is_err() || carried < read {
            return;
        }
        left = left.saturating_sub(read);
    }
}
