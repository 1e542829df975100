//! Tests of broken connections: a request that is sent again remains one request.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use soloist_client::{Client, Guard, Locks, Target};
use soloist_testing::http_get::metric;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::time::timeout;

use crate::{Nodes, held, soon, until, waiting};

/// Longer than any test may take.
const TTL: Duration = Duration::from_secs(600);

/// A proxy between a client and its node. It cuts the first few connections over which a grant
/// comes, and the client does not read it.
struct Cutter {
    folder: TempDir,
    left: Arc<AtomicUsize>,
}

impl Cutter {
    fn new(node: &Nodes, cuts: usize) -> Self {
        let folder = TempDir::new().unwrap();
        let listener = UnixListener::bind(folder.path().join("cut.sock")).unwrap();
        let left = Arc::new(AtomicUsize::new(cuts));
        let cutter = Cutter {
            folder,
            left: Arc::clone(&left),
        };
        let server = node.servers[0].as_ref().unwrap().socket().to_owned();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let node = UnixStream::connect(&server).await.unwrap();
                tokio::spawn(pass_on(client, node, Arc::clone(&left)));
            }
        });
        cutter
    }

    async fn client(&self) -> Client {
        let target = Target::socket(self.folder.path().join("cut.sock"));
        Client::builder().ttl(TTL).connect(target).await.unwrap()
    }
}

async fn pass_on(mut client: UnixStream, mut node: UnixStream, left: Arc<AtomicUsize>) {
    let (mut asked, mut answered) = ([0; 4096], [0; 4096]);
    loop {
        tokio::select! {
            read = client.read(&mut asked) => match read {
                Ok(length) if length > 0 => node.write_all(&asked[..length]).await.unwrap(),
                _ => return,
            },
            read = node.read(&mut answered) => match read {
                Ok(length) if length > 0 => {
                    let is_grant = String::from_utf8_lossy(&answered[..length]).contains("granted");
                    let cut = |left: usize| left.checked_sub(1);
                    let order = Ordering::SeqCst;
                    if is_grant && left.fetch_update(order, order, cut).is_ok() {
                        return;
                    }
                    let _ = client.write_all(&answered[..length]).await;
                }
                _ => return,
            },
        }
    }
}

#[tokio::test]
async fn a_grant_whose_answer_is_lost_is_granted_again_at_once() {
    let nodes = Nodes::start(1).await;
    for cuts in [1, 2, 3] {
        let cutter = Cutter::new(&nodes, cuts);
        let client = cutter.client().await;
        let lock = client.lock("a").unwrap();
        let guard = soon("the grant is repeated", lock.acquire()).await.unwrap();
        assert_eq!(cutter.left.load(Ordering::SeqCst), 0);
        guard.release().await.unwrap();
    }
}

#[tokio::test]
async fn a_grant_is_confirmed_soon_and_then_lives_for_its_time_to_live() {
    let nodes = Nodes::start(1).await;
    let client = nodes.client_with_ttl(0, TTL).await;
    let guard = held(&client, "a").await;
    until("it is confirmed", async || {
        // Ask the node, because the validity that the guard receives is also limited by the node's
        // lease.
        let info = client.lock_info("a").await.unwrap();
        info.holder.unwrap().expires_in_ms > Some(TTL.as_millis() as u64 / 2)
    })
    .await;
    guard.release().await.unwrap();
}

#[tokio::test]
async fn a_request_that_is_dropped_is_cancelled_at_once() {
    let nodes = Nodes::start(1).await;
    let (one, two) = (nodes.client(0).await, nodes.client_with_ttl(0, TTL).await);
    let guard = held(&one, "a").await;
    {
        let lock = two.lock("a").unwrap();
        let mut acquire = std::pin::pin!(lock.acquire());
        let waits = async {
            until("it waits", async || waiting(&one, "a").await == 1).await;
        };
        tokio::select! {
            _ = &mut acquire => panic!("it is held"),
            () = waits => {}
        }
    }
    guard.release().await.unwrap();
    let next = one.lock("a").unwrap();
    let next = next.acquire_within(Duration::from_secs(20));
    let next = soon("no other client holds it", next).await;
    next.unwrap().release().await.unwrap();
}

/// A proxy whose first connection takes everything and passes nothing on, once it `loses` messages.
/// Then it breaks.
async fn lose(listener: UnixListener, server: PathBuf, loses: Arc<AtomicBool>) {
    while let Ok((mut client, _)) = listener.accept().await {
        let mut node = UnixStream::connect(&server).await.unwrap();
        let loses = Arc::clone(&loses);
        tokio::spawn(async move {
            let (mut asked, mut answered) = ([0; 4096], [0; 4096]);
            loop {
                tokio::select! {
                    read = client.read(&mut asked) => {
                        let length = read.unwrap_or_default();
                        if loses.swap(false, Ordering::SeqCst) {
                            // Long enough for the client to write its last message.
                            let mut nowhere = tokio::io::sink();
                            let rest = tokio::io::copy(&mut client, &mut nowhere);
                            let _ = timeout(Duration::from_millis(300), rest).await;
                            return;
                        }
                        if length == 0 || node.write_all(&asked[..length]).await.is_err() {
                            return;
                        }
                    }
                    read = node.read(&mut answered) => {
                        let length = read.unwrap_or_default();
                        if length == 0 || client.write_all(&answered[..length]).await.is_err() {
                            return;
                        }
                    }
                }
            }
        });
    }
}

/// The program goes on after it has dropped its client.
#[tokio::test(flavor = "multi_thread")]
async fn a_release_that_was_lost_with_its_connection_is_sent_again_after_the_client_was_dropped() {
    let nodes = Nodes::start(1).await;
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("lose.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let loses = Arc::new(AtomicBool::new(false));
    let server = nodes.socket(0).to_owned();
    tokio::spawn(lose(listener, server, Arc::clone(&loses)));
    let client = Client::builder().ttl(TTL);
    let client = client.connect(Target::socket(path)).await.unwrap();
    let guard = held(&client, "a").await;
    loses.store(true, Ordering::SeqCst);
    drop(guard);
    drop(client);
    let observer = nodes.client(0).await;
    held(&observer, "a").await.release().await.unwrap();
    until("its session has ended", async || {
        metric(nodes.socket(0), "soloist_sessions") == 1.0
    })
    .await;
}
