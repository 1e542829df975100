//! Sessions over real sockets.

mod hostile;
mod many;
mod memory;
mod moving;
mod python;
mod trying;

use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use hyper::header::HeaderValue;
use serde_json::{Value, json};
use soloist_api::session::{Closed, Code, Granted, NodeMessage, Welcome};
use soloist_api::{EndReason, LockInfo};
use soloist_node::http;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::cluster::{lonely, served, until};
use crate::http::{Http, Stream};
use crate::tcp::{Files, TOKEN, loopback, tls};

/// How long a message may take on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(20);

/// A connection of a session.
pub(crate) struct Socket {
    stream: WebSocketStream<Box<dyn Stream>>,
}

impl Socket {
    /// Opens a WebSocket with these additional headers.
    pub(crate) async fn open(http: &Http, headers: &[(&'static str, &str)]) -> Result<Self, Error> {
        Self::open_at(http, "/v1/session", headers).await
    }

    /// As [`open`](Self::open), at this path.
    pub(crate) async fn open_at(
        http: &Http,
        path: &str,
        headers: &[(&'static str, &str)],
    ) -> Result<Self, Error> {
        let mut request = format!("ws://localhost{path}").into_client_request()?;
        for (name, value) in headers {
            let value = HeaderValue::from_str(value).unwrap();
            request.headers_mut().insert(*name, value);
        }
        let stream = http.connect().await.unwrap();
        let (stream, _) = client_async(request, stream).await?;
        Ok(Socket { stream })
    }

    /// Opens a WebSocket and sends a hello.
    pub(crate) async fn hello(http: &Http, hello: Value) -> Self {
        let mut socket = Self::open(http, &[]).await.unwrap();
        socket.send(json!({ "hello": hello })).await;
        socket
    }

    /// Starts a session with a time to live that no test reaches.
    pub(crate) async fn start(http: &Http) -> (Self, Welcome) {
        let mut socket = Self::hello(http, json!({ "ttl_ms": 600_000 })).await;
        let welcome = socket.welcome().await;
        (socket, welcome)
    }

    /// Resumes a session.
    pub(crate) async fn resume(http: &Http, welcome: &Welcome, seen: u64) -> Self {
        let resume = json!({
            "session": welcome.session, "secret": welcome.secret, "seen": seen,
        });
        Self::hello(http, json!({ "resume": resume })).await
    }

    pub(crate) async fn send(&mut self, message: Value) {
        self.send_raw(Message::text(message.to_string())).await;
    }

    pub(crate) async fn send_raw(&mut self, message: Message) {
        self.try_send(message).await.unwrap();
    }

    /// Sends all messages in one write.
    pub(crate) async fn send_at_once(&mut self, messages: impl IntoIterator<Item = Message>) {
        for message in messages {
            self.stream.feed(message).await.unwrap();
        }
        self.stream.flush().await.unwrap();
    }

    pub(crate) async fn try_send(&mut self, message: Message) -> Result<(), Error> {
        self.stream.send(message).await
    }

    /// The next message, or `None` at the end of the connection.
    pub(crate) async fn try_next(&mut self) -> Option<NodeMessage> {
        let next = timeout(TIMEOUT, self.stream.next()).await;
        match next.expect("a message comes in time")? {
            Ok(Message::Text(text)) => Some(serde_json::from_str(&text).unwrap()),
            Ok(Message::Close(_)) | Err(_) => None,
            Ok(other) => panic!("{other:?}"),
        }
    }

    pub(crate) async fn next(&mut self) -> NodeMessage {
        self.try_next().await.expect("the connection is open")
    }

    pub(crate) async fn welcome(&mut self) -> Welcome {
        match self.next().await {
            NodeMessage::Welcome(welcome) => welcome,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) async fn granted(&mut self) -> Granted {
        match self.next().await {
            NodeMessage::Granted(granted) => granted,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) async fn done(&mut self) -> u64 {
        match self.next().await {
            NodeMessage::Done(done) => done.n,
            other => panic!("{other:?}"),
        }
    }

    /// The code and the detail of an error.
    pub(crate) async fn error(&mut self) -> (Code, String) {
        match self.next().await {
            NodeMessage::Error(failure) => (failure.code, failure.detail),
            other => panic!("{other:?}"),
        }
    }

    /// The last message of the connection, which then ends.
    pub(crate) async fn closed(&mut self) -> Closed {
        let last = self.next().await;
        assert_eq!(self.try_next().await, None, "after {last:?}");
        match last {
            NodeMessage::Closed(closed) => closed,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) async fn acquire(&mut self, n: u64, lock: &str) {
        self.send(json!({ "acquire": { "n": n, "lock": lock } }))
            .await;
    }

    pub(crate) async fn release(&mut self, n: u64, hold: u64) {
        self.send(json!({ "release": { "n": n, "hold": hold } }))
            .await;
    }
}

async fn cycle(mut socket: Socket) {
    socket.send(json!({ "hello": {} })).await;
    let welcome = socket.welcome().await;
    assert_eq!((welcome.handled, welcome.last_seq), (0, 0));
    assert!(welcome.ping_every_ms * 3 <= welcome.expires_in_ms);
    // A release need not be awaited: the next request follows it in order.
    socket.acquire(1, "a").await;
    socket.release(2, 1).await;
    socket.acquire(3, "a").await;
    let first = socket.granted().await;
    assert_eq!((first.n, first.seq, first.promise.after), (1, 1, 1));
    assert!(first.promise.valid_for_ms > 0);
    assert_eq!(socket.done().await, 2);
    let second = socket.granted().await;
    assert!(second.fence > first.fence);
    socket
        .send(json!({ "ping": { "n": 4, "seen": second.seq } }))
        .await;
    let NodeMessage::Pong(pong) = socket.next().await else {
        panic!("no pong");
    };
    assert_eq!((pong.n, pong.promise.after), (4, 4));
    socket.send(json!({ "end": { "n": 5 } })).await;
    assert_eq!(socket.done().await, 5);
    assert_eq!(socket.closed().await.code, Code::Ended);
}

#[tokio::test]
async fn sessions_are_served_on_all_listeners() {
    let files = Files::new();
    let api = files.api(loopback(Some(files.token()), Some(files.tls(false))));
    let node = lonely(api, Default::default()).await;
    let server = http::serve(&node).await.unwrap();
    cycle(
        Socket::open(&Http::Unix(server.socket().to_owned()), &[])
            .await
            .unwrap(),
    )
    .await;
    let over_tls = tls(server.addresses().tcp.unwrap(), files.stranger());
    let refused = Socket::open(&over_tls, &[])
        .await
        .err()
        .expect("a token is required");
    assert!(refused.to_string().contains("401"), "{refused}");
    let token = format!("Bearer {TOKEN}");
    cycle(
        Socket::open(&over_tls, &[("authorization", &token)])
            .await
            .unwrap(),
    )
    .await;
    server.stop().await;
    let files = Files::new();
    let node = lonely(files.api(loopback(None, None)), Default::default()).await;
    let server = http::serve(&node).await.unwrap();
    cycle(
        Socket::open(&Http::Tcp(server.addresses().tcp.unwrap()), &[])
            .await
            .unwrap(),
    )
    .await;
    server.stop().await;
}

/// The grant was written to a connection that the client never read.
#[tokio::test]
async fn a_grant_that_nobody_read_is_repeated_after_a_resume() {
    let served = served(1).await;
    let http = &served.https[0];
    let hold = http.hold("a").await;
    let (mut socket, welcome) = Socket::start(http).await;
    socket.acquire(1, "a").await;
    served.waiting("a", 1).await;
    drop(socket);
    assert_eq!(http.release(&hold).await.status, 204);
    until("the lock is granted to the session", async || {
        let lock: LockInfo = http.get("/v1/locks/a").await.ok();
        lock.holder.filter(|holder| holder.fence > hold.fence)
    })
    .await;
    let mut socket = Socket::resume(http, &welcome, 0).await;
    let again = socket.welcome().await;
    assert_eq!(
        (again.handled, again.last_seq, again.holds[0].hold),
        (1, 1, 1)
    );
    let granted = socket.granted().await;
    assert_eq!((granted.n, granted.promise.after), (1, 0));
    assert_eq!(granted.fence, again.holds[0].fence);
    // The same request once more has no second effect.
    socket.acquire(1, "a").await;
    assert_eq!(socket.granted().await, granted);
    socket.release(2, 1).await;
    assert_eq!(socket.done().await, 2);
    served.stop().await;
}

#[tokio::test]
async fn a_resume_cuts_the_connection_before() {
    let served = served(1).await;
    let http = &served.https[0];
    let (mut old, welcome) = Socket::start(http).await;
    let mut new = Socket::resume(http, &welcome, 0).await;
    new.welcome().await;
    assert_eq!(old.closed().await.code, Code::Resumed);
    new.acquire(1, "a").await;
    new.granted().await;
    let metrics = http.get("/metrics").await;
    let metrics = String::from_utf8_lossy(&metrics.body).into_owned();
    for line in [
        "soloist_sessions 1",
        "soloist_sessions_resumed_total 1",
        "soloist_session_connections_closed_total{code=\"resumed\"} 1",
    ] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
    served.stop().await;
}

#[tokio::test]
async fn a_silent_session_expires_with_its_holds_though_its_connection_is_open() {
    let served = served(1).await;
    let http = &served.https[0];
    let mut socket = Socket::hello(http, json!({ "ttl_ms": 300 })).await;
    socket.welcome().await;
    socket.acquire(1, "a").await;
    socket.granted().await;
    assert_eq!(socket.closed().await.code, Code::Expired);
    let hold = http.hold("a").await;
    assert_eq!(http.release(&hold).await.status, 204);
    served.stop().await;
}

/// The node is stopped while a session holds a lock: the hold lasts until the client releases it.
#[tokio::test]
async fn a_stopping_node_tells_its_sessions_and_waits_for_their_releases() {
    let served = served(1).await;
    let http = &served.https[0];
    let (mut socket, _) = Socket::start(http).await;
    socket.acquire(1, "a").await;
    socket.granted().await;
    socket.acquire(2, "a").await;
    served.waiting("a", 1).await;
    let node = served.cluster.nodes[0].clone();
    let stop = tokio::spawn(async move { node.stop(Duration::ZERO).await });
    assert_eq!(socket.error().await.0, Code::Stopping);
    let NodeMessage::Stopping(stopping) = socket.next().await else {
        panic!("not told that the node stops");
    };
    let NodeMessage::Lost(lost) = socket.next().await else {
        panic!("not told that the hold will end");
    };
    assert_eq!((lost.hold, lost.reason), (1, EndReason::NodeStopped));
    assert_eq!(lost.promise, stopping.promise);
    assert!(lost.promise.valid_for_ms > 0);
    assert!(!stop.is_finished(), "the hold is still certain");
    socket.release(3, 1).await;
    assert_eq!(socket.done().await, 3);
    timeout(TIMEOUT, stop).await.unwrap().unwrap();
    served.stop().await;
}

#[tokio::test]
async fn queries_and_events_share_the_connection() {
    let served = served(2).await;
    let (mut socket, welcome) = Socket::start(&served.https[0]).await;
    socket.send(json!({ "watch": { "n": 1 } })).await;
    assert_eq!(socket.done().await, 1);
    socket.acquire(2, "a").await;
    let mut kinds = Vec::new();
    for _ in 0..2 {
        kinds.push(match socket.next().await {
            NodeMessage::Granted(_) => "granted".to_owned(),
            NodeMessage::Event(event) if event.event.name() != "waiting" => event.lock,
            NodeMessage::Event(_) => continue,
            other => panic!("{other:?}"),
        });
    }
    assert!(kinds.contains(&"granted".to_owned()), "{kinds:?}");
    socket.send(json!({ "unwatch": { "n": 3 } })).await;
    while !matches!(socket.next().await, NodeMessage::Done(done) if done.n == 3) {}
    socket
        .send(json!({ "lock": { "n": 4, "lock": "a" } }))
        .await;
    let NodeMessage::Lock(answer) = socket.next().await else {
        panic!("no answer");
    };
    let holder = answer.lock.holder.expect("it is held");
    assert_eq!((answer.n, holder.node), (4, welcome.node));
    assert!(
        holder.expires_in_ms.is_some(),
        "it expires with its session"
    );
    socket.send(json!({ "locks": { "n": 5 } })).await;
    let NodeMessage::Locks(answer) = socket.next().await else {
        panic!("no answer");
    };
    assert_eq!((answer.n, answer.page.locks.len()), (5, 1));
    socket.send(json!({ "cluster": { "n": 6 } })).await;
    let NodeMessage::Cluster(answer) = socket.next().await else {
        panic!("no answer");
    };
    assert_eq!((answer.n, answer.cluster.nodes.len()), (6, 2));
    served.stop().await;
}

#[tokio::test]
async fn a_request_that_may_not_wait_never_queues_behind_others() {
    let served = served(2).await;
    let (mut here, _) = Socket::start(&served.https[0]).await;
    let (mut there, _) = Socket::start(&served.https[1]).await;
    let attempt = |n: u64| json!({ "acquire": { "n": n, "lock": "a", "wait_ms": 0 } });
    there.send(attempt(1)).await;
    there.granted().await;
    here.send(attempt(1)).await;
    assert_eq!(here.error().await.0, Code::NotGranted);
    there.release(2, 1).await;
    there.done().await;
    here.send(attempt(2)).await;
    assert_eq!(here.granted().await.n, 2);
    served.stop().await;
}

#[tokio::test]
async fn answers_that_may_wait_are_written_before_the_next_message_or_once_there_are_many() {
    let served = served(1).await;
    let (mut socket, _) = Socket::start(&served.https[0]).await;
    let later = |n: u64, hold: u64| json!({ "release": { "n": n, "hold": hold, "later": true } });
    socket.acquire(1, "a").await;
    assert_eq!(socket.granted().await.n, 1);
    socket.send(later(2, 1)).await;
    socket.send(json!({ "ping": { "n": 3 } })).await;
    assert_eq!(socket.done().await, 2);
    assert!(matches!(socket.next().await, NodeMessage::Pong(pong) if pong.n == 3));
    for n in 10..74 {
        socket.acquire(n, &format!("lock {n}")).await;
        assert_eq!(socket.granted().await.n, n);
    }
    for n in 110..174 {
        socket.send(later(n, n - 100)).await;
    }
    for n in 110..174 {
        assert_eq!(socket.done().await, n);
    }
    served.stop().await;
}

#[tokio::test]
async fn answers_that_may_wait_are_written_when_the_node_stops() {
    let served = served(1).await;
    let (mut socket, _) = Socket::start(&served.https[0]).await;
    socket.acquire(1, "a").await;
    assert_eq!(socket.granted().await.n, 1);
    let node = served.cluster.nodes[0].clone();
    let stop = tokio::spawn(async move { node.stop(Duration::ZERO).await });
    assert!(matches!(socket.next().await, NodeMessage::Stopping(_)));
    assert!(matches!(socket.next().await, NodeMessage::Lost(_)));
    let release = json!({ "release": { "n": 2, "hold": 1, "later": true } });
    socket.send(release).await;
    // The node was released, so it has handled the message.
    timeout(TIMEOUT, stop).await.unwrap().unwrap();
    let ending = async {
        assert_eq!(socket.done().await, 2);
        assert_eq!(socket.closed().await.code, Code::Stopping);
    };
    tokio::join!(served.stop(), ending);
}
