//! A TCP proxy that breaks what goes through it, as a seed says.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

pub struct Proxy {
    pub address: String,
    /// Where it leads; to nowhere, if this is empty.
    pub target: Arc<Mutex<String>>,
    /// From now on nothing is broken any more.
    pub healed: Arc<AtomicBool>,
    /// How many connections were cut or refused.
    pub cuts: Arc<AtomicU64>,
}

/// How bad it is.
#[derive(Clone, Copy)]
pub struct Temper {
    /// How likely it begins to refuse connections, a few in a row.
    pub refuses: f64,
    /// How likely a connection is cut in its first bytes, in each direction.
    pub early: f64,
    /// After how many bytes it is cut otherwise, at most: there and back.
    pub bytes: (usize, usize),
    /// After what time it is cut, at most.
    pub lifetime_ms: u64,
    /// How likely it is cut within a piece.
    pub cuts: f64,
    /// How likely a piece is delayed, by up to 5 ms.
    pub delays: f64,
}

impl Temper {
    /// For as many frames as go through.
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
    /// Leads to `target`. Refuses some connections, delays what it carries, cuts after some bytes or some time.
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

/// A proxy that breaks nothing.
pub async fn plain(target: &str) -> Proxy {
    let proxy = Proxy::to(target, 0, Temper::FLOOD).await;
    proxy.healed.store(true, Ordering::Relaxed);
    proxy
}

/// Carries one connection until it ends, or to the byte where it is cut.
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
        // Some are cut in the handshake, most later.
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

/// Also what is silent is cut, unless it is healed by then.
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
