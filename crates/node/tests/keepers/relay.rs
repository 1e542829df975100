//! A TCP relay to a keeper that can delay each direction.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// The directions that are delayed.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Held {
    /// Bytes to the keeper.
    pub to_it: bool,
    /// Bytes from the keeper.
    pub from_it: bool,
}

/// Forwards connections to a keeper. It stops when this is dropped.
pub(crate) struct Relay {
    pub address: SocketAddr,
    held: Arc<watch::Sender<Held>>,
    tasks: Arc<Mutex<JoinSet<()>>>,
    _accepting: JoinSet<()>,
}

impl Relay {
    pub(crate) async fn to(keeper: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let held = Arc::<watch::Sender<Held>>::default();
        let tasks = Arc::<Mutex<JoinSet<()>>>::default();
        let mut accepting = JoinSet::new();
        let (state, connections) = (Arc::clone(&held), Arc::clone(&tasks));
        accepting.spawn(async move {
            loop {
                let (from, _) = listener.accept().await.unwrap();
                let held = state.subscribe();
                let carried = carry(from, keeper, held);
                connections.lock().unwrap().spawn(carried);
            }
        });
        Relay {
            address,
            held,
            tasks,
            _accepting: accepting,
        }
    }

    pub(crate) fn hold(&self, held: Held) {
        self.held.send_replace(held);
    }

    /// Closes all connections, which loses the delayed bytes, and then stops delaying.
    pub(crate) async fn cut(&self) {
        let mut tasks = std::mem::take(&mut *self.tasks.lock().unwrap());
        tasks.shutdown().await;
        self.hold(Held::default());
    }
}

async fn carry(from: TcpStream, keeper: SocketAddr, held: watch::Receiver<Held>) {
    let Ok(to) = TcpStream::connect(keeper).await else {
        return;
    };
    let (asks, hears) = from.into_split();
    let (answers, takes) = to.into_split();
    let inward = copy(asks, takes, held.clone(), |held| held.to_it);
    let outward = copy(answers, hears, held, |held| held.from_it);
    tokio::join!(inward, outward);
}

async fn copy(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut held: watch::Receiver<Held>,
    is_held: impl Fn(&Held) -> bool,
) {
    let mut bytes = vec![0; 64 << 10];
    while let Ok(count @ 1..) = from.read(&mut bytes).await {
        if held.wait_for(|held| !is_held(held)).await.is_err() {
            return;
        }
        if to.write_all(&bytes[..count]).await.is_err() {
            return;
        }
    }
    let _ = to.shutdown().await;
}
