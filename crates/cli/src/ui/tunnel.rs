//! Carries the messages of the page's session to a node and back.
//!
//! The session has the caller's rights, and the page never acts. So only messages that show
//! something are carried: nobody can take or release a lock over this connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::extract::State;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::response::Response;
use serde_json::{Map, Value, json};
use soloist_client::api::session::{Code, Failure, MESSAGE_BYTES_MAX, NodeMessage};
use soloist_client::{Client, ClientError, RawSession, Target};

use crate::explain;

/// Code with which the page closes its connection because the node is silent.
const SILENT: u16 = 4000;

/// Kinds of messages that the page may send.
const CARRIED: [&str; 11] = [
    "hello", "ping", "follow", "unfollow", "watch", "unwatch", "lock", "locks", "list", "cluster",
    "end",
];

/// The nodes to look from, one at a time.
pub(super) struct Nodes {
    targets: Vec<Target>,
    /// The node that is tried first.
    first: AtomicUsize,
}

impl Nodes {
    pub(super) fn new(target: &Target) -> Self {
        Nodes {
            targets: target.nodes(),
            first: AtomicUsize::new(0),
        }
    }

    /// Connects to the first node that answers. Returns its number too.
    pub(super) async fn open(&self) -> Result<(usize, RawSession), ClientError> {
        let first = self.first.load(Ordering::Relaxed);
        let (mut tried, mut refused) = (Vec::new(), None);
        for offset in 0..self.targets.len() {
            let number = (first + offset) % self.targets.len();
            match connect(&self.targets[number]).await {
                Ok(session) => {
                    self.move_on(first, number);
                    return Ok((number, session));
                }
                Err(ClientError::Unreachable(attempts)) => tried.extend(attempts),
                Err(error) => refused = refused.or(Some(error)),
            }
        }
        Err(refused.unwrap_or(ClientError::Unreachable(tried)))
    }

    /// This node is lost: the next one is tried first. Other pages may have lost it too, and must
    /// not skip the next one.
    fn leave(&self, number: usize) {
        self.move_on(number, (number + 1) % self.targets.len());
    }

    /// Tries another node first, unless a page has moved on meanwhile.
    fn move_on(&self, from: usize, to: usize) {
        let ordering = Ordering::Relaxed;
        // If it fails, another page was here before.
        let _ = self.first.compare_exchange(from, to, ordering, ordering);
    }
}

async fn connect(target: &Target) -> Result<RawSession, ClientError> {
    Client::connect(target.clone()).await?.raw_session().await
}

/// `/v1/session`, as a node has it. A browser cannot read why a WebSocket was refused, so the page
/// gets the reason as the protocol's own last message.
pub(super) async fn session(
    State(nodes): State<Arc<Nodes>>,
    upgrade: WebSocketUpgrade,
) -> Response {
    let upgrade = upgrade.max_message_size(MESSAGE_BYTES_MAX);
    upgrade.on_upgrade(async move |mut page| {
        let ended = match nodes.open().await {
            Ok((number, node)) => {
                let carried = carry(&mut page, node).await;
                if carried.is_err() {
                    nodes.leave(number);
                }
                carried
            }
            Err(error) => Err(Some(error)),
        };
        if let Err(Some(error)) = ended {
            let detail = explain(&error.into());
            let last = json!({ "closed": { "code": "unavailable", "detail": detail } });
            let _ = page.send(Message::Text(last.to_string().into())).await;
        }
        let _ = page.send(Message::Close(None)).await;
    })
}

/// Carries messages until the page is closed, or the node is lost: then it fails, with the reason
/// unless the node has told the page itself.
async fn carry(page: &mut WebSocket, mut node: RawSession) -> Result<(), Option<ClientError>> {
    loop {
        tokio::select! {
            received = page.recv() => match received {
                Some(Ok(Message::Text(text))) => match refusal(&text) {
                    None => node.send(text.to_string()).await.map_err(Some)?,
                    Some(refusal) => {
                        let refusal = json!(refusal).to_string();
                        if page.send(Message::Text(refusal.into())).await.is_err() {
                            return Ok(());
                        }
                    }
                },
                Some(Ok(Message::Binary(_) | Message::Ping(_) | Message::Pong(_))) => {}
                Some(Ok(Message::Close(Some(frame)))) if frame.code == SILENT => return Err(None),
                Some(Ok(Message::Close(_)) | Err(_)) | None => return Ok(()),
            },
            received = node.next() => match received.map_err(Some)? {
                Some(text) => {
                    let sent = page.send(Message::Text(text.into())).await;
                    if sent.is_err() {
                        return Ok(());
                    }
                }
                None => return Err(None),
            },
        }
    }
}

/// The answer to a message that is not carried, or `None` if it is.
fn refusal(text: &str) -> Option<NodeMessage> {
    let message: Option<Map<String, Value>> = serde_json::from_str(text).ok();
    let mut parts = message.iter().flatten();
    let (kind, content) = match (parts.next(), parts.next()) {
        (Some((kind, content)), None) => (kind.as_str(), content),
        _ => ("", &Value::Null),
    };
    if CARRIED.contains(&kind) {
        return None;
    }
    Some(NodeMessage::Error(Failure {
        n: content["n"].as_u64().unwrap_or_default(),
        seq: None,
        code: Code::BadRequest,
        detail: format!(
            "the page may not send {kind:?}: it shows the cluster and never acts; use `soloist \
             lock`, or a session of your own"
        ),
        reason: None,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_messages_that_show_something_are_carried() {
        for text in [
            r#"{"hello":{"name":"soloist ui"}}"#,
            r#"{"watch":{"n":2,"all":true}}"#,
            r#" {"ping": {"n": 3}} "#,
        ] {
            assert_eq!(refusal(text), None, "{text}");
        }
        for (text, n) in [
            (r#"{"acquire":{"n":4,"lock":"a"}}"#, 4),
            (r#"{"release":{"n":5,"hold":4}}"#, 5),
            (r#"{"cancel":{"n":6,"request":4}}"#, 6),
            (r#"{"\u0061cquire":{"n":7,"lock":"a"}}"#, 7),
            (r#"{"ping":{"n":8},"acquire":{"n":9,"lock":"a"}}"#, 0),
            (r#"{"acquire":{"n":9,"lock":"a"},"ping":{"n":8}}"#, 0),
            (r#"["acquire"]"#, 0),
            (r#""ping""#, 0),
            ("{}", 0),
            ("acquire", 0),
        ] {
            let Some(NodeMessage::Error(failure)) = refusal(text) else {
                panic!("{text} is carried");
            };
            assert_eq!(failure.n, n, "{text}");
            assert!(failure.detail.contains("never acts"), "{}", failure.detail);
        }
    }

    #[test]
    fn two_pages_that_lose_a_node_move_on_to_the_next_one() {
        let nodes = Nodes::new(&Target::parse("/a.sock,/b.sock").expect("two nodes"));
        nodes.leave(0);
        nodes.leave(0);
        assert_eq!(nodes.first.load(Ordering::Relaxed), 1);
        nodes.leave(1);
        assert_eq!(nodes.first.load(Ordering::Relaxed), 0);
    }
}
