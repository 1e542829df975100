//! A session with very many holds: its messages fit no buffer.

use std::time::Duration;

use serde_json::json;
use soloist_api::session::{NodeMessage, Welcome};
use soloist_core::epochs::lease::Lease;
use soloist_testing::served::Served;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixListener;
use tokio::time::sleep;
use tokio_tungstenite::tungstenite::Message;

use super::Socket;
use crate::http::Http;

const HOLDS: u64 = 20_000;

/// A node that drains ends no hold while a test runs.
const LEASE: Duration = Duration::from_secs(120);

/// Acquires all locks, and reads every grant.
async fn holding(http: &Http) -> (Socket, Welcome) {
    const AT_ONCE: u64 = 500;
    let (mut socket, welcome) = Socket::start(http).await;
    for first in (1..=HOLDS).step_by(AT_ONCE as usize) {
        let acquire = |n| {
            let lock = format!("lock {n}");
            let acquire = json!({ "acquire": { "n": n, "lock": lock, "seen": first - 1 } });
            Message::text(acquire.to_string())
        };
        let all = first..first + AT_ONCE;
        socket.send_at_once(all.clone().map(acquire)).await;
        for n in all {
            assert_eq!(socket.granted().await.n, n);
        }
    }
    (socket, welcome)
}

/// Reads the loss of each hold, in their order.
async fn all_lost(socket: &mut Socket) {
    for n in 1..=HOLDS {
        let NodeMessage::Lost(lost) = socket.next().await else {
            panic!("no loss of hold {n}");
        };
        assert_eq!((lost.hold, lost.seq), (n, HOLDS + n));
    }
}

/// Resumes the session, and reads what its client has not seen.
async fn resume(http: &Http, welcome: &Welcome) -> Socket {
    let mut socket = Socket::resume(http, welcome, HOLDS).await;
    let again = socket.welcome().await;
    assert_eq!(again.holds.len() as u64, HOLDS);
    assert_eq!(again.last_seq, 2 * HOLDS);
    all_lost(&mut socket).await;
    assert!(matches!(socket.next().await, NodeMessage::Stopping(_)));
    socket
}

/// Passes one connection on to a node. Its client reads slowly at first, for longer than a client
/// may read nothing, and less than a `welcome` in that time.
async fn slowly(node: Http, listener: UnixListener) {
    const PAUSES: u32 = 25;
    let (client, _) = listener.accept().await.unwrap();
    let node = node.connect().await.unwrap();
    let (mut from_node, mut to_node) = tokio::io::split(node);
    let (mut from_client, mut to_client) = client.into_split();
    let down = async {
        let (mut buffer, mut pauses) = (vec![0; 32 << 10], 0);
        loop {
            let read = from_node.read(&mut buffer).await.unwrap_or_default();
            if read == 0 || to_client.write_all(&buffer[..read]).await.is_err() {
                return;
            }
            if pauses < PAUSES {
                pauses += 1;
                sleep(Duration::from_millis(250)).await;
            }
        }
    };
    let up = tokio::io::copy(&mut from_client, &mut to_node);
    tokio::select! {
        () = down => {}
        _ = up => {}
    }
}

#[tokio::test]
async fn very_many_losses_are_told_again_however_slowly_the_client_reads() {
    let lease = Lease {
        length: LEASE,
        ..Lease::default()
    };
    let served = Served::start_with(1, lease).await;
    let http = Http::Unix(served.socket(0).to_owned());
    let (mut socket, welcome) = holding(&http).await;
    let node = served.cluster.nodes[0].clone();
    let stop = tokio::spawn(async move { node.stop(Duration::ZERO).await });
    assert!(matches!(socket.next().await, NodeMessage::Stopping(_)));
    all_lost(&mut socket).await;
    // The connection breaks before the client has reported that.
    drop(socket);
    drop(resume(&http, &welcome).await);
    let folder = TempDir::new().unwrap();
    let slow = folder.path().join("slow.sock");
    let proxy = tokio::spawn(slowly(http, UnixListener::bind(&slow).unwrap()));
    let mut socket = resume(&Http::Unix(slow), &welcome).await;
    let seen = 2 * HOLDS;
    let end = json!({ "end": { "n": HOLDS + 1, "seen": seen } });
    socket.send(end).await;
    assert_eq!(socket.done().await, HOLDS + 1);
    stop.await.unwrap();
    proxy.await.unwrap();
    served.stop().await;
}
