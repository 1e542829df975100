//! The server side of a keeper: answers requests of other keepers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::gate::Gate;
use super::network::answer;
use super::pre_vote::PreVote;
use super::rpc::{self, FRAME_BYTES_MAX, FrameError, NO_REQUEST, Request, RpcAnswer};
use super::types::Raft;
use soloist_api::NodeName;
use soloist_transport::Refusals;
use soloist_transport::{Arrival, Code, Hello, Purpose, Refusal, farewell};

/// Maximum number of requests of one connection that are processed at once. Together they take at
/// most as many bytes as the longest frame.
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
    #[error("this keeper is stopping")]
    Stopping,
    /// The peer sent invalid data, or spoke in another keeper's name. It was told why.
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
    gate: Gate,
    pre_vote: Arc<PreVote>,
    stop: CancellationToken,
    connections: Arc<Mutex<HashMap<NodeName, CancellationToken>>>,
    pub(super) refused: Arc<Refusals>,
}

impl Served {
    pub(super) fn new(gate: Gate, pre_vote: Arc<PreVote>, stop: CancellationToken) -> Self {
        Served {
            gate,
            pre_vote,
            stop,
            connections: Arc::default(),
            refused: Arc::default(),
        }
    }

    /// Answers a keeper until the connection ends.
    pub(super) async fn serve(&self, arrival: Arrival, raft: &Raft) -> ServeEnd {
        tokio::select! {
            biased;
            () = self.stop.cancelled() => ServeEnd::Stopping,
            end = self.greet_and_answer(arrival, raft) => end,
        }
    }

    async fn greet_and_answer(&self, arrival: Arrival, raft: &Raft) -> ServeEnd {
        let peer = arrival.hello.from.clone();
        let sender = match self.check(&arrival.hello) {
            Ok(sender) => sender,
            Err(refusal) => {
                let reason = refusal.reason.clone();
                if let Some(withheld) = self.refused.note(peer.as_str(), &reason) {
                    tracing::warn!(%peer, reason, withheld, "this keeper refused a keeper");
                }
                arrival.refuse(refusal).await;
                return ServeEnd::Refused(reason);
            }
        };
        let replaced = self.stop.child_token();
        {
            // Both under one lock: otherwise the old connection could remove the new one's entry
            // when it ends.
            let mut connections = self.connections();
            if let Some(before) = connections.insert(peer.clone(), replaced.clone()) {
                before.cancel();
            }
        }
        tokio::select! {
            biased;
            () = replaced.cancelled() => ServeEnd::Replaced,
            end = self.answer_all(arrival, sender, raft) => {
                let mut connections = self.connections();
                // If it was not replaced meanwhile, the entry is still its own.
                if !replaced.is_cancelled() {
                    connections.remove(&peer);
                }
                end
            }
        }
    }

    fn connections(&self) -> std::sync::MutexGuard<'_, HashMap<NodeName, CancellationToken>> {
        self.connections
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Welcomes the keeper, and answers requests until the connection ends.
    async fn answer_all(&self, arrival: Arrival, sender: u64, raft: &Raft) -> ServeEnd {
        let peer = arrival.hello.from.clone();
        let stream = match arrival.welcome(&[]).await {
            Ok(stream) => stream,
            Err(error) => return ServeEnd::Broken(error.to_string()),
        };
        let (mut reader, mut writer) = tokio::io::split(stream);
        let mut answering = Answering {
            sender,
            name: peer.clone(),
            gate: self.gate.clone(),
            pre_vote: Arc::clone(&self.pre_vote),
            raft: raft.clone(),
            space: Arc::new(Semaphore::new(FRAME_BYTES_MAX)),
            answers: JoinSet::new(),
        };
        let end = answering.run(&mut reader, &mut writer).await;
        let ServeEnd::Refused(reason) = end else {
            return end;
        };
        let reason = format!("{peer}: {reason}");
        tracing::warn!("a connection from a keeper was refused: {reason}");
        if let Ok(last) = rpc::frame(NO_REQUEST, &RpcAnswer::refused(&reason)) {
            farewell(reader, writer, &last).await;
        }
        ServeEnd::Refused(reason)
    }

    /// Returns the id of the keeper that dialled, if it may send requests to this one.
    fn check(&self, hello: &Hello) -> Result<u64, Refusal> {
        let (from, to) = (&hello.from, &hello.to);
        let Purpose::Keeper { from_id, to_id } = hello.purpose else {
            let purpose = hello.purpose.name();
            let reason = format!("a {purpose} connection was routed to keeper {to}");
            return Err(Refusal::new(Code::NotServed, reason));
        };
        match self.gate.may_answer(from_id, to_id) {
            Ok(()) => Ok(from_id),
            Err(reason) => Err(Refusal::new(Code::KeeperId, format!("{from}: {reason}"))),
        }
    }
}

async fn write(
    writer: &mut (impl AsyncWrite + Unpin),
    number: u64,
    answer: &RpcAnswer,
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

/// The requests of one connection. Several are processed at once, so that a long one does not delay
/// the leader's heartbeats.
struct Answering {
    sender: u64,
    name: NodeName,
    gate: Gate,
    pre_vote: Arc<PreVote>,
    raft: Raft,
    space: Arc<Semaphore>,
    answers: JoinSet<(u64, RpcAnswer, OwnedSemaphorePermit)>,
}

impl Answering {
    async fn run(
        &mut self,
        reader: &mut (impl AsyncRead + Unpin),
        writer: &mut (impl AsyncWrite + Unpin),
    ) -> ServeEnd {
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
                        let (raft, pre_vote) = (self.raft.clone(), Arc::clone(&self.pre_vote));
                        self.answers.spawn(async move {
                            (number, answer(&raft, &pre_vote, request).await, permit)
                        });
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

/// Reads the next request, once there is room for it in memory.
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
