//! The side of a keeper that is asked.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::dial::Stream;
use super::gate::Gate;
use super::network::answer;
use super::rpc::{
    self, Answer, FRAME_BYTES_MAX, FrameError, Hello, NO_REQUEST, PREFACE, Request, VERSION,
};
use super::types::Raft;
use crate::config::NodeName;

/// A handshake must be done after so long.
const HELLO_TIME: Duration = Duration::from_secs(5);
/// How long a closed connection may take to hand over its last words, and what is read and dropped meanwhile.
const FAREWELL_TIME: Duration = Duration::from_millis(500);
const FAREWELL_BYTES: u64 = 4 << 20;
/// So many requests of one connection are worked on at once, and no more of their bytes are in memory
/// than the longest frame has.
const REQUESTS_MAX: usize = 16;

/// Why a connection from another keeper ended.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ServeEnd {
    /// The other side closed it.
    #[error("the other side closed the connection")]
    Closed,
    /// It broke.
    #[error("the connection broke: {0}")]
    Broken(String),
    /// The same keeper opened another one.
    #[error("the same keeper opened another connection")]
    Replaced,
    /// This keeper stops.
    #[error("this keeper stops")]
    Stopping,
    /// Bytes that no keeper sends, or a peer that speaks in another one's name. It was told why.
    #[error("refused: {0}")]
    Refused(String),
}

impl From<FrameError> for ServeEnd {
    fn from(error: FrameError) -> Self {
        match error {
            FrameError::Io(error) => ServeEnd::Broken(error.to_string()),
            error => ServeEnd::Refused(error.to_string()),
        }
    }
}

/// The connections that other keepers have opened, one each.
#[derive(Clone, Debug)]
pub(super) struct Served {
    me: NodeName,
    gate: Gate,
    stop: CancellationToken,
    connections: Arc<Mutex<HashMap<NodeName, CancellationToken>>>,
}

impl Served {
    pub(super) fn new(me: NodeName, gate: Gate, stop: CancellationToken) -> Self {
        Served {
            me,
            gate,
            stop,
            connections: Arc::default(),
        }
    }

    /// Answers a keeper until the connection ends.
    pub(super) async fn serve(
        &self,
        stream: impl Stream,
        peer: Option<NodeName>,
        raft: &Raft,
    ) -> ServeEnd {
        let (mut reader, mut writer) = tokio::io::split(stream);
        let end = tokio::select! {
            biased;
            () = self.stop.cancelled() => ServeEnd::Stopping,
            end = self.greet_and_answer(&mut reader, &mut writer, peer, raft) => end,
        };
        if let ServeEnd::Refused(reason) = &end {
            tracing::warn!("a connection from a keeper was refused: {reason}");
            // Nothing depends on it: the connection is over in any case.
            let _ = timeout(FAREWELL_TIME, farewell(reader, writer, reason)).await;
        }
        end
    }

    async fn greet_and_answer<R, W>(
        &self,
        reader: &mut R,
        writer: &mut W,
        peer: Option<NodeName>,
        raft: &Raft,
    ) -> ServeEnd
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        let greeting = timeout(HELLO_TIME, self.greet(reader, peer));
        let (peer, sender) = match greeting.await {
            Ok(Ok(peer)) => peer,
            Ok(Err(end)) => return end,
            Err(_) => return ServeEnd::Refused(format!("no Hello after {HELLO_TIME:?}")),
        };
        let replaced = self.stop.child_token();
        {
            // Both at once, or the one before could take the new one's entry with it when it ends.
            let mut connections = self.connections();
            if let Some(before) = connections.insert(peer.clone(), replaced.clone()) {
                before.cancel();
            }
        }
        let mut answering = Answering {
            sender,
            name: peer.clone(),
            gate: self.gate.clone(),
            raft: raft.clone(),
            space: Arc::new(Semaphore::new(FRAME_BYTES_MAX)),
            answers: JoinSet::new(),
        };
        tokio::select! {
            biased;
            () = replaced.cancelled() => ServeEnd::Replaced,
            end = answering.run(reader, writer) => {
                let mut connections = self.connections();
                // No other one has taken its place, or that would have been told first.
                if !replaced.is_cancelled() {
                    connections.remove(&peer);
                }
                match end {
                    ServeEnd::Refused(reason) => ServeEnd::Refused(format!("{peer}: {reason}")),
                    end => end,
                }
            }
        }
    }

    fn connections(&self) -> std::sync::MutexGuard<'_, HashMap<NodeName, CancellationToken>> {
        self.connections
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Who it is: its node and its id in Raft. A certificate says the node's name better than a Hello, but both must
    /// say the same.
    async fn greet(
        &self,
        reader: &mut (impl AsyncRead + Unpin),
        peer: Option<NodeName>,
    ) -> Result<(NodeName, u64), ServeEnd> {
        let mut preface = [0; PREFACE.len()];
        reader
            .read_exact(&mut preface)
            .await
            .map_err(FrameError::from)?;
        let refused = |reason: String| Err(ServeEnd::Refused(reason));
        if preface != PREFACE {
            return refused("bytes that do not come from a keeper".to_owned());
        }
        let hello: Hello = rpc::read_small(reader).await?;
        let Hello {
            version, from, to, ..
        } = hello;
        if version != VERSION {
            return refused(format!(
                "version {version} of the keepers' protocol, where this node speaks version {VERSION}; \
                 run the same release on all nodes"
            ));
        }
        if peer.as_ref().is_some_and(|peer| *peer != from) {
            let peer = peer.as_ref().map_or("", NodeName::as_str);
            return refused(format!("{peer} says that it is {from}"));
        }
        if to != self.me {
            let me = &self.me;
            return refused(format!("{from} looks for {to}, and this is {me}"));
        }
        let may_answer = self.gate.may_answer(hello.from_id, hello.to_id);
        may_answer.map_err(|reason| ServeEnd::Refused(format!("{from}: {reason}")))?;
        Ok((from, hello.from_id))
    }
}

async fn farewell(
    reader: impl AsyncRead + Unpin,
    mut writer: impl AsyncWrite + Unpin,
    reason: &str,
) -> Result<(), ServeEnd> {
    write(&mut writer, NO_REQUEST, &Answer::refused(reason)).await?;
    let broken = |error: std::io::Error| ServeEnd::Broken(error.to_string());
    writer.shutdown().await.map_err(broken)?;
    // Closing over unread bytes would destroy those words.
    let mut rest = reader.take(FAREWELL_BYTES);
    tokio::io::copy(&mut rest, &mut tokio::io::sink())
        .await
        .map_err(broken)?;
    Ok(())
}

async fn write(
    writer: &mut (impl AsyncWrite + Unpin),
    number: u64,
    answer: &Answer,
) -> Result<(), ServeEnd> {
    let frame = rpc::frame(number, answer).map_err(|error| ServeEnd::Broken(error.to_string()))?;
    let written = async {
        writer.write_all(&frame).await?;
        writer.flush().await
    };
    written
        .await
        .map_err(|error| ServeEnd::Broken(error.to_string()))
}

/// One connection's requests. Raft works on several at once: a long one must not keep it from hearing that the
/// leader lives.
struct Answering {
    sender: u64,
    name: NodeName,
    gate: Gate,
    raft: Raft,
    space: Arc<Semaphore>,
    answers: JoinSet<(u64, Answer, OwnedSemaphorePermit)>,
}

impl Answering {
    async fn run(
        &mut self,
        reader: &mut (impl AsyncRead + Unpin),
        writer: &mut (impl AsyncWrite + Unpin),
    ) -> ServeEnd {
        // Whoever is welcome has taken the place of those before.
        if let Err(end) = write(writer, NO_REQUEST, &Answer::Welcome).await {
            return end;
        }
        let space = self.space.clone();
        let (sender, name, gate) = (self.sender, self.name.clone(), self.gate.clone());
        let check = |request: &Request| gate.check(sender, &name, request);
        let (requests, mut incoming) = tokio::sync::mpsc::channel(1);
        let reading = async {
            loop {
                let request = match read(reader, check, &space).await {
                    Ok(Some(request)) => request,
                    Ok(None) => return ServeEnd::Closed,
                    Err(end) => return end,
                };
                if requests.send(request).await.is_err() {
                    return ServeEnd::Stopping;
                }
            }
        };
        let answering = async {
            loop {
                let done = tokio::select! {
                    Some((number, request, permit)) = incoming.recv() => {
                        let raft = self.raft.clone();
                        self.answers
                            .spawn(async move { (number, answer(&raft, request).await, permit) });
                        continue;
                    }
                    Some(done) = self.answers.join_next() => done,
                };
                let (number, answer, permit) = match done {
                    Ok(done) => done,
                    Err(error) => return ServeEnd::Broken(error.to_string()),
                };
                if let Err(end) = write(writer, number, &answer).await {
                    return end;
                }
                drop(permit);
            }
        };
        tokio::select! {
            end = reading => end,
            end = answering => end,
        }
    }
}

/// The next request, when there is room for it.
async fn read(
    reader: &mut (impl AsyncRead + Unpin),
    check: impl Fn(&Request) -> Result<(), String>,
    space: &Arc<Semaphore>,
) -> Result<Option<(u64, Request, OwnedSemaphorePermit)>, ServeEnd> {
    let Some((bytes, number)) = rpc::read_head(reader, FRAME_BYTES_MAX).await? else {
        return Ok(None);
    };
    if number == NO_REQUEST {
        return Err(ServeEnd::Refused("a request without a number".to_owned()));
    }
    let room = bytes.max(FRAME_BYTES_MAX / REQUESTS_MAX) as u32;
    let permit = space.clone().acquire_many_owned(room).await;
    let permit = permit.map_err(|_| ServeEnd::Stopping)?;
    let content = rpc::read_content(reader, bytes).await?;
    let request: Request = rpc::decode(&content)?;
    check(&request).map_err(ServeEnd::Refused)?;
    Ok(Some((number, request, permit)))
}
