//! One connection of a session, from its welcome to its end.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::extract::ws::{Message, WebSocket};
use futures_util::SinkExt;
use futures_util::future::{BoxFuture, FutureExt};
use futures_util::stream::{FuturesUnordered, StreamExt};
use soloist_api::LockName;
use soloist_api::session::{
    ClientMessage, Closed, ClusterAnswer, Code, Done, Failure, LockAnswer, LockOrder, LocksAnswer,
    NodeMessage,
};
use tokio::time::timeout;

use super::super::events::Watching;
use super::super::progress::Written;
use super::super::{Api, cluster, lengths};
use super::attempts::Attempts;
use super::{CLOSE_WITHIN, WRITE_WITHIN, closed, stopping};
use crate::Moment;
use crate::node::follow::Following;
use crate::node::listing::{Listing, Looks};
use crate::node::sessions::Outgoing;
use soloist_core::locks::Remaining;
use soloist_core::sessions::{ConnectionId, SessionId};

/// Maximum number of messages that are handled before their answers are written.
const BATCH_MAX: usize = 256;

/// Maximum number of queries at a time.
const JOBS_MAX: usize = 64;

/// Maximum number of queries that wait for others. Beyond that, queries are refused. The client's
/// messages are read all the same: pings and releases must not wait for queries.
const QUERIES_WAITING_MAX: usize = 1024;

/// A query that is being answered.
type Job = BoxFuture<'static, NodeMessage>;

pub(super) struct SessionConnection {
    api: Api,
    id: ConnectionId,
    session: SessionId,
    /// Messages of the lock table. They go before all others.
    outgoing: Arc<Outgoing>,
    /// The ones to write next.
    urgent: VecDeque<NodeMessage>,
    /// Answers to queries, and events.
    later: VecDeque<NodeMessage>,
    jobs: FuturesUnordered<Job>,
    /// Queries that wait for a job to end.
    queries: VecDeque<Job>,
    attempts: Attempts,
    events: Option<Watch>,
    following: Option<Following>,
    listing: Option<Listing>,
    /// The looks of this listing, of earlier ones and of queries.
    looks: Looks,
    written: Written,
}

impl Drop for SessionConnection {
    fn drop(&mut self) {
        let shared = &self.api.node.shared;
        if let Some(mut core) = shared.living() {
            core.cut_session(shared, self.session, self.id);
        }
    }
}

impl SessionConnection {
    pub(super) fn new(
        api: Api,
        id: ConnectionId,
        session: SessionId,
        outgoing: Arc<Outgoing>,
        written: Written,
    ) -> Self {
        SessionConnection {
            attempts: Attempts::new(api.clone(), session),
            api,
            id,
            session,
            outgoing,
            urgent: VecDeque::new(),
            later: VecDeque::new(),
            jobs: FuturesUnordered::new(),
            queries: VecDeque::new(),
            events: None,
            following: None,
            listing: None,
            looks: Looks::default(),
            written,
        }
    }

    /// Serves the connection. Returns why it is to be closed, or `None` if the client is gone.
    pub(super) async fn converse(mut self, socket: &mut WebSocket) -> Option<Closed> {
        let end = self.serve(socket).await.err().flatten()?;
        if end.code == Code::TooSlow {
            return Some(end);
        }
        // What was told before, also what may wait: no later message would bring it.
        self.outgoing.flush();
        match self.write(socket).await {
            Err(Some(end)) => Some(end),
            Ok(()) | Err(None) => Some(end),
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
                // Before further messages, of which there may always be one.
                Some(answer) = self.jobs.next(), if !self.jobs.is_empty() => {
                    self.later.push_back(answer);
                    self.jobs.extend(self.queries.pop_front());
                }
                received = socket.recv() => {
                    self.handle(read(received)?)?;
                    self.handle_more(socket)?;
                }
                event = next_event(&mut self.events) => match event {
                    Some(event) => self.later.push_back(event),
                    None => self.events = None,
                },
                news = next_news(&mut self.following) => self.later.extend(news),
                listed = next_rows(&mut self.listing) => self.later.push_back(listed),
            }
        }
    }

    /// Handles messages that have arrived already, so that their answers leave in one write.
    fn handle_more(&mut self, socket: &mut WebSocket) -> Result<(), Option<Closed>> {
        for _ in 1..BATCH_MAX {
            match socket.recv().now_or_never() {
                Some(received) => self.handle(read(received)?)?,
                None => break,
            }
        }
        Ok(())
    }

    /// Handles what the client sent before it closed the connection. A client that exits does not
    /// wait for the answers to its last messages.
    async fn handle_rest(&mut self, socket: &mut WebSocket) {
        let rest = async {
            while let Ok(message) = read(socket.recv().await) {
                if self.handle(message).is_err() {
                    return;
                }
                // Nobody reads the answers.
                self.later.clear();
                self.outgoing.clear();
            }
        };
        let _ = timeout(CLOSE_WITHIN, rest).await;
    }

    fn handle(&mut self, message: Option<ClientMessage>) -> Result<(), Option<Closed>> {
        let Some(message) = message else {
            return Ok(());
        };
        let shared = &self.api.node.shared;
        // Before the request exists: it must not count as its own predecessor.
        let asked = Moment::now();
        if let ClientMessage::Cancel(cancel) = &message {
            self.attempts.decided(cancel.request);
        }
        let remaining = {
            let mut core = shared.living().ok_or_else(|| Some(stopping()))?;
            core.receive_from_session(shared, self.session, self.id, message)
        };
        match remaining {
            Remaining::Nothing => {}
            Remaining::Answer(query) => self.answer(query),
            Remaining::Try(n, lock) => self.attempts.look_for_others(n, lock, asked),
        }
        Ok(())
    }

    fn answer(&mut self, query: ClientMessage) {
        if self.queries.len() >= QUERIES_WAITING_MAX {
            let n = query.n().unwrap_or_default();
            let detail = format!(
                "{} queries wait for an answer: wait for some of the answers, then ask again",
                JOBS_MAX + QUERIES_WAITING_MAX
            );
            return self.later.push_back(refused(n, Code::TooMany, detail));
        }
        let api = self.api.clone();
        let done = |n| NodeMessage::Done(Done { n, seq: None });
        let job: Job = match query {
            ClientMessage::Lock(query) => match LockName::new(&query.lock) {
                Ok(name) => Box::pin(async move {
                    let (lock, recent) =
                        tokio::join!(api.node.lock_info(&name), api.node.recent_events_of(&name));
                    let n = query.n;
                    NodeMessage::Lock(LockAnswer { n, lock, recent })
                }),
                Err(error) => return self.later.push_back(bad_request(query.n, &error)),
            },
            ClientMessage::Locks(query) => {
                let prefix = query.prefix.unwrap_or_default();
                let checked = lengths::check("prefix", Some(&prefix));
                let checked = checked.and(lengths::check("cursor", query.after.as_deref()));
                if let Err(error) = checked {
                    return self.later.push_back(bad_request(query.n, &error));
                }
                let n = query.n;
                let looks = self.looks.clone();
                Box::pin(async move {
                    let (page, total) = match query.sort {
                        Some(LockOrder::Wait) => {
                            let look = looks.look(&api.node, prefix, Duration::ZERO);
                            let Ok(found) = look.await else {
                                let detail = "this node failed to look at the locks: try again";
                                return refused(n, Code::Unavailable, detail.to_owned());
                            };
                            (found.page.clone(), Some(found.total))
                        }
                        None => (api.node.lock_list_with(&prefix, query.after).await, None),
                    };
                    NodeMessage::Locks(LocksAnswer { n, page, total })
                })
            }
            ClientMessage::Cluster(query) => Box::pin(async move {
                let cluster = cluster::cluster(State(api)).await.0;
                NodeMessage::Cluster(ClusterAnswer {
                    n: query.n,
                    cluster,
                })
            }),
            ClientMessage::Watch(watch) => {
                let prefix = watch.prefix.unwrap_or_default();
                let after = watch.after.as_deref();
                match Watching::start(&api.node, watch.all, prefix, after) {
                    Ok(events) => {
                        let answer = Some(done(watch.n));
                        self.events = Some(Watch { events, answer });
                    }
                    Err(error) => self.later.push_back(bad_request(watch.n, &error)),
                }
                return;
            }
            ClientMessage::Unwatch(unwatch) => {
                self.events = None;
                return self.later.push_back(done(unwatch.n));
            }
            ClientMessage::List(query) => {
                if let Err(error) = lengths::check("prefix", query.prefix.as_deref()) {
                    return self.later.push_back(bad_request(query.n, &error));
                }
                self.later.push_back(done(query.n));
                let before = self.listing.take();
                self.listing = Listing::begin(&api.node, query, before, &self.looks);
                return;
            }
            ClientMessage::Follow(follow) => {
                self.following = Some(api.node.follow());
                return self.later.push_back(done(follow.n));
            }
            ClientMessage::Unfollow(unfollow) => {
                self.following = None;
                return self.later.push_back(done(unfollow.n));
            }
            // The table answers all others.
            _ => return,
        };
        if self.jobs.len() < JOBS_MAX {
            self.jobs.push(job);
        } else {
            self.queries.push_back(job);
        }
    }

    /// Writes everything that is ready.
    async fn write(&mut self, socket: &mut WebSocket) -> Result<(), Option<Closed>> {
        loop {
            let writes_anyway = !self.later.is_empty();
            let are_more = self.outgoing.take(&mut self.urgent, writes_anyway);
            self.write_some(socket, !are_more).await?;
            if !are_more {
                return Ok(());
            }
        }
    }

    /// Writes the urgent messages, and the others if `is_last` is set: in one write if they fit the
    /// buffer.
    async fn write_some(
        &mut self,
        socket: &mut WebSocket,
        is_last: bool,
    ) -> Result<(), Option<Closed>> {
        let later = if is_last { self.later.len() } else { 0 };
        if self.urgent.is_empty() && later == 0 {
            return Ok(());
        }
        let mut end = None;
        let writing = async {
            for message in self.urgent.drain(..).chain(self.later.drain(..later)) {
                match &message {
                    NodeMessage::Granted(granted) => self.attempts.decided(granted.n),
                    NodeMessage::Error(failure) => self.attempts.decided(failure.n),
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
        match self.written.unless_stuck(WRITE_WITHIN, writing).await {
            Some(Ok(())) => match end {
                Some(_) => Err(end),
                None => Ok(()),
            },
            Some(Err(error)) => {
                tracing::debug!("a session's connection ended: {error}");
                self.handle_rest(socket).await;
                Err(None)
            }
            None => {
                let detail = "the client does not read its messages";
                Err(Some(closed(Code::TooSlow, detail)))
            }
        }
    }
}

/// What a client watches.
struct Watch {
    events: Watching,
    /// The answer to `watch`, until the events have begun.
    answer: Option<NodeMessage>,
}

/// Waits for an event, or forever if the client does not watch. The first message is the answer to
/// `watch`.
async fn next_event(watch: &mut Option<Watch>) -> Option<NodeMessage> {
    let Some(watch) = watch else {
        return std::future::pending().await;
    };
    if watch.answer.is_some() {
        watch.events.begin().await;
        return watch.answer.take();
    }
    watch.events.next().await.map(NodeMessage::Event)
}

/// Waits for news of the cluster, or forever if the client does not follow.
async fn next_news(following: &mut Option<Following>) -> Vec<NodeMessage> {
    match following {
        Some(following) => following.next().await,
        None => std::future::pending().await,
    }
}

/// Waits for rows of the list of locks, or forever if the client has none in view.
async fn next_rows(listing: &mut Option<Listing>) -> NodeMessage {
    match listing {
        Some(listing) => NodeMessage::Listed(listing.next().await),
        None => std::future::pending().await,
    }
}

fn bad_request(n: u64, error: &dyn ToString) -> NodeMessage {
    refused(n, Code::BadRequest, error.to_string())
}

fn refused(n: u64, code: Code, detail: String) -> NodeMessage {
    NodeMessage::Error(Failure {
        n,
        seq: None,
        code,
        detail,
        reason: None,
    })
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
