//! One connection of a session, from its welcome to its end.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use axum::extract::State;
use axum::extract::ws::{Message, WebSocket};
use futures_util::SinkExt;
use futures_util::future::{BoxFuture, FutureExt};
use futures_util::stream::{FuturesUnordered, StreamExt};
use soloist_api::session::{
    ClientMessage, Closed, ClusterAnswer, Code, Done, Failure, LockAnswer, LocksAnswer, NodeMessage,
};
use soloist_api::{Event, LockName};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::super::{Api, cluster};
use super::{WRITE_WITHIN, closed, stopping};
use crate::Moment;
use crate::node::Events;
use crate::node::sessions::Outgoing;
use soloist_core::locks::{Remaining, TRY_MAX};
use soloist_core::sessions::{ConnectionId, SessionId};

/// Maximum number of messages that are handled before their answers are written.
const BATCH_MAX: usize = 256;

/// Maximum number of queries at a time. Beyond that, the client's messages are not read.
const JOBS_MAX: usize = 64;

/// A query, or a search for an obstacle to a request that may not wait.
type Job = BoxFuture<'static, Option<NodeMessage>>;

pub(super) struct Connection {
    api: Api,
    id: ConnectionId,
    session: SessionId,
    /// Messages of the lock table. They go before all others.
    outgoing: Arc<Outgoing>,
    urgent: VecDeque<NodeMessage>,
    /// Answers to queries, and events.
    later: VecDeque<NodeMessage>,
    jobs: FuturesUnordered<Job>,
    /// Ends the jobs of requests that may not wait, once they are decided.
    tries: HashMap<u64, CancellationToken>,
    events: Option<Events>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        let shared = &self.api.node.shared;
        if let Some(mut core) = shared.living() {
            core.cut_session(shared, self.session, self.id);
        }
    }
}

impl Connection {
    pub(super) fn new(
        api: Api,
        id: ConnectionId,
        session: SessionId,
        outgoing: Arc<Outgoing>,
    ) -> Self {
        Connection {
            api,
            id,
            session,
            outgoing,
            urgent: VecDeque::new(),
            later: VecDeque::new(),
            jobs: FuturesUnordered::new(),
            tries: HashMap::new(),
            events: None,
        }
    }

    /// Serves the connection. Returns why it is to be closed, or `None` if the client is gone.
    pub(super) async fn converse(mut self, socket: &mut WebSocket) -> Option<Closed> {
        match self.serve(socket).await {
            Ok(()) => None,
            Err(end) => end,
        }
    }

    async fn serve(&mut self, socket: &mut WebSocket) -> Result<(), Option<Closed>> {
        loop {
            self.write(socket).await?;
            let api = self.api.clone();
            tokio::select! {
                biased;
                () = api.stopping.cancelled() => return Err(Some(stopping())),
                () = self.outgoing.ready() => {}
                received = socket.recv(), if self.jobs.len() < JOBS_MAX => {
                    self.handle(read(received)?)?;
                    self.handle_more(socket)?;
                }
                Some(answer) = self.jobs.next(), if !self.jobs.is_empty() => {
                    self.later.extend(answer);
                }
                event = next_event(&mut self.events) => match event {
                    Some(event) => self.later.push_back(NodeMessage::Event(event)),
                    None => self.events = None,
                },
            }
        }
    }

    /// Handles messages that have arrived already, so that their answers leave in one write.
    fn handle_more(&mut self, socket: &mut WebSocket) -> Result<(), Option<Closed>> {
        for _ in 1..BATCH_MAX {
            if self.jobs.len() >= JOBS_MAX {
                break;
            }
            match socket.recv().now_or_never() {
                Some(received) => self.handle(read(received)?)?,
                None => break,
            }
        }
        Ok(())
    }

    fn handle(&mut self, message: Option<ClientMessage>) -> Result<(), Option<Closed>> {
        let Some(message) = message else {
            return Ok(());
        };
        let shared = &self.api.node.shared;
        let remaining = {
            let mut core = shared.living().ok_or_else(|| Some(stopping()))?;
            core.receive_from_session(shared, self.session, self.id, message)
        };
        match remaining {
            Remaining::Nothing => {}
            Remaining::Answer(query) => self.answer(query),
            Remaining::Try(n, lock) => self.look_for_others(n, lock),
        }
        Ok(())
    }

    fn answer(&mut self, query: ClientMessage) {
        let api = self.api.clone();
        let done = |n| NodeMessage::Done(Done { n, seq: None });
        let job: Job = match query {
            ClientMessage::Lock(query) => match LockName::new(&query.lock) {
                Ok(name) => Box::pin(async move {
                    let lock = api.node.lock_info(&name).await;
                    Some(NodeMessage::Lock(LockAnswer { n: query.n, lock }))
                }),
                Err(error) => {
                    let failure = Failure {
                        n: query.n,
                        seq: None,
                        code: Code::BadRequest,
                        detail: error.to_string(),
                        reason: None,
                    };
                    return self.later.push_back(NodeMessage::Error(failure));
                }
            },
            ClientMessage::Locks(query) => Box::pin(async move {
                let page = api.node.lock_list(query.after).await;
                Some(NodeMessage::Locks(LocksAnswer { n: query.n, page }))
            }),
            ClientMessage::Cluster(query) => Box::pin(async move {
                let cluster = cluster::cluster(State(api)).await.0;
                Some(NodeMessage::Cluster(ClusterAnswer {
                    n: query.n,
                    cluster,
                }))
            }),
            ClientMessage::Watch(watch) => {
                self.events = Some(api.node.events());
                return self.later.push_back(done(watch.n));
            }
            ClientMessage::Unwatch(unwatch) => {
                self.events = None;
                return self.later.push_back(done(unwatch.n));
            }
            // The table answers all others.
            _ => return,
        };
        self.jobs.push(job);
    }

    /// Denies a request that may not wait as soon as another one is found to be earlier.
    fn look_for_others(&mut self, n: u64, lock: LockName) {
        let (node, session) = (self.api.node.clone(), self.session);
        let decided = CancellationToken::new();
        self.tries.insert(n, decided.clone());
        let job = async move {
            let asked = Moment::now();
            tokio::select! {
                () = decided.cancelled() => {}
                found = timeout(TRY_MAX, node.somebody_before(&lock, asked)) => {
                    let shared = &node.shared;
                    if let (Ok(()), Some(mut core)) = (found, shared.living()) {
                        core.refuse_try(shared, session, n);
                    }
                }
            }
            None
        };
        self.jobs.push(Box::pin(job));
    }

    /// Writes everything that is ready, in one write if it fits the buffer.
    async fn write(&mut self, socket: &mut WebSocket) -> Result<(), Option<Closed>> {
        let is_full = self.outgoing.take(&mut self.urgent);
        if is_full {
            return Err(Some(too_slow()));
        }
        if self.urgent.is_empty() && self.later.is_empty() {
            return Ok(());
        }
        let mut end = None;
        let writing = async {
            for message in self.urgent.drain(..).chain(self.later.drain(..)) {
                match &message {
                    NodeMessage::Granted(granted) => decide(&mut self.tries, granted.n),
                    NodeMessage::Error(failure) => decide(&mut self.tries, failure.n),
                    _ => {}
                }
                if let NodeMessage::Closed(closed) = message {
                    end = Some(closed);
                    break;
                }
                socket.feed(text(&message)).await?;
            }
            socket.flush().await
        };
        match timeout(WRITE_WITHIN, writing).await {
            Ok(Ok(())) => match end {
                Some(_) => Err(end),
                None => Ok(()),
            },
            Ok(Err(error)) => {
                tracing::debug!("a session's connection ended: {error}");
                Err(None)
            }
            Err(_) => Err(Some(too_slow())),
        }
    }
}

fn too_slow() -> Closed {
    closed(Code::TooSlow, "the client does not read its messages")
}

fn decide(tries: &mut HashMap<u64, CancellationToken>, n: u64) {
    if let Some(decided) = tries.remove(&n) {
        decided.cancel();
    }
}

/// Waits for an event, or forever if the client does not watch.
async fn next_event(events: &mut Option<Events>) -> Option<Event> {
    match events {
        Some(events) => events.next().await,
        None => std::future::pending().await,
    }
}

/// Reads a message. `None` is a frame without one. The error is why the connection ends.
pub(super) fn read(
    received: Option<Result<Message, axum::Error>>,
) -> Result<Option<ClientMessage>, Option<Closed>> {
    let bad = |detail: String| Err(Some(closed(Code::BadMessage, detail)));
    match received {
        None | Some(Ok(Message::Close(_))) => Err(None),
        Some(Ok(Message::Text(text))) => match serde_json::from_str(text.as_str()) {
            Ok(message) => Ok(Some(message)),
            Err(error) => bad(format!("the message cannot be used: {error}")),
        },
        Some(Ok(Message::Binary(_))) => bad("messages are text frames, not binary".to_owned()),
        Some(Ok(Message::Ping(_) | Message::Pong(_))) => Ok(None),
        Some(Err(error)) => bad(format!("the frame cannot be used: {error}")),
    }
}

pub(super) fn text(message: &NodeMessage) -> Message {
    let json = serde_json::to_string(message);
    Message::Text(json.expect("it has no part that cannot be encoded").into())
}
