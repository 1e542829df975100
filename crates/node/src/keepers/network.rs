//! Implements openraft's network traits.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use openraft::AnyError;
use openraft::error::{
    Fatal, InstallSnapshotError, NetworkError, PayloadTooLarge, RPCError, RaftError, RemoteError,
    Timeout, Unreachable,
};
use openraft::network::{Backoff, RPCOption, RPCTypes, RaftNetwork, RaftNetworkFactory};
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, InstallSnapshotRequest, InstallSnapshotResponse,
    VoteRequest, VoteResponse,
};
use tokio_util::sync::CancellationToken;

use super::peer::{CallError, Entries, Peer, Times};
use super::pre_vote::PreVote;
use super::rpc::{self, FRAME_BYTES_MAX, Request, RpcAnswer};
use super::settings::Settings;
use super::successor::Successor;
use super::types::{KeeperNode, LogId, Types};
use soloist_transport::Purpose;

/// Connections to the other keepers, one each, shared by everything in Raft. Clones share them.
#[derive(Clone)]
pub(super) struct Network(Arc<Inner>);

struct Inner {
    me: u64,
    settings: Settings,
    successor: Successor,
    stop: CancellationToken,
    peers: Mutex<HashMap<u64, (KeeperNode, Arc<Peer>)>>,
}

impl std::fmt::Debug for Network {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Network")
    }
}

/// Raft's client for one keeper.
pub(super) struct Client {
    me: u64,
    id: u64,
    keeper: KeeperNode,
    retry: Duration,
    peer: Arc<Peer>,
}

type CallResult<T, E = openraft::error::Infallible> =
    Result<T, RPCError<u64, KeeperNode, RaftError<u64, E>>>;

impl Network {
    pub(super) fn new(
        me: u64,
        settings: Settings,
        successor: Successor,
        stop: CancellationToken,
    ) -> Self {
        Network(Arc::new(Inner {
            me,
            settings,
            successor,
            stop,
            peers: Mutex::default(),
        }))
    }

    /// Returns whether another keeper would vote for this one, whose log ends at `last_log`.
    /// `false` if it does not answer.
    pub(super) async fn pre_vote(
        &self,
        id: u64,
        keeper: &KeeperNode,
        last_log: Option<LogId>,
        limit: Duration,
    ) -> bool {
        let Ok(content) = rpc::encode(&Request::PreVote { last_log }) else {
            return false;
        };
        let answer = self.0.peer(id, keeper).call(content, None, limit).await;
        let answer = answer.ok().and_then(|bytes| rpc::decode(&bytes).ok());
        matches!(answer, Some(RpcAnswer::PreVote(true)))
    }

    /// Returns whether another keeper has accepted an append of this one within this time.
    pub(super) fn is_followed_by(&self, id: u64, within: Duration) -> bool {
        let peers = self.0.peers.lock();
        let peers = peers.unwrap_or_else(PoisonError::into_inner);
        let followed = peers.get(&id).and_then(|(_, peer)| peer.followed());
        followed.is_some_and(|at| at.elapsed() < within)
    }
}

impl Inner {
    fn peer(&self, id: u64, keeper: &KeeperNode) -> Arc<Peer> {
        let mut peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        match peers.get(&id) {
            Some((known, peer)) if known == keeper => peer.clone(),
            // The keeper has moved, or is new. An old connection ends when it is no longer used.
            _ => {
                let times = Times {
                    retry_max: self.settings.elections.timeout,
                    silence_max: self.settings.elections.connection_silence_max(),
                };
                let purpose = Purpose::Keeper {
                    from_id: self.me,
                    to_id: id,
                };
                let peer = Arc::new(Peer::start(
                    self.settings.endpoint.clone(),
                    purpose,
                    keeper.clone(),
                    times,
                    self.successor.clone(),
                    self.stop.clone(),
                ));
                peers.insert(id, (keeper.clone(), peer.clone()));
                peer
            }
        }
    }
}

impl RaftNetworkFactory<Types> for Network {
    type Network = Client;

    async fn new_client(&mut self, id: u64, keeper: &KeeperNode) -> Client {
        Client {
            me: self.0.me,
            id,
            keeper: keeper.clone(),
            retry: self.0.settings.elections.heartbeat_every(),
            peer: self.0.peer(id, keeper),
        }
    }
}

impl Client {
    async fn ask<E: std::error::Error>(
        &self,
        kind: RPCTypes,
        request: &Request,
        entries: Option<Entries>,
        limit: Duration,
    ) -> CallResult<RpcAnswer, E> {
        let content = rpc::encode(request).map_err(|error| NetworkError::new(&error))?;
        if content.len() + 8 > FRAME_BYTES_MAX {
            return Err(too_long(request, content.len()));
        }
        let answer = self.peer.call(content, entries, limit).await;
        let answer = answer.map_err(|error| self.failed(kind, error, limit))?;
        match rpc::decode(&answer) {
            Ok(RpcAnswer::Stopped(reason)) => {
                let stopped = AnyError::error(format!("{} has stopped: {reason}", self.keeper));
                Err(Unreachable::new(&stopped).into())
            }
            Ok(answer) => Ok(answer),
            Err(error) => Err(NetworkError::new(&error).into()),
        }
    }

    fn failed<E: std::error::Error>(
        &self,
        action: RPCTypes,
        error: CallError,
        timeout: Duration,
    ) -> RPCError<u64, KeeperNode, RaftError<u64, E>> {
        match error {
            CallError::Unreachable(_) => Unreachable::new(&error).into(),
            CallError::Broken(_) => NetworkError::new(&error).into(),
            CallError::Late => RPCError::Timeout(Timeout {
                action,
                id: self.me,
                target: self.id,
                timeout,
            }),
        }
    }
}

/// Asks Raft to send fewer entries, if there are several. A single one always fits, since commands
/// are limited.
fn too_long<E: std::error::Error>(
    request: &Request,
    bytes: usize,
) -> RPCError<u64, KeeperNode, RaftError<u64, E>> {
    match request {
        Request::Append(append) if append.entries.len() > 1 => {
            PayloadTooLarge::new_entries_hint(append.entries.len() as u64 / 2).into()
        }
        _ => {
            let problem = format!("a request of {bytes} bytes (maximum: {FRAME_BYTES_MAX})");
            Unreachable::new(&AnyError::error(problem)).into()
        }
    }
}

fn unasked<E: std::error::Error>() -> RPCError<u64, KeeperNode, RaftError<u64, E>> {
    NetworkError::new(&AnyError::error("unexpected kind of answer")).into()
}

impl RaftNetwork<Types> for Client {
    async fn append_entries(
        &mut self,
        request: AppendEntriesRequest<Types>,
        option: RPCOption,
    ) -> CallResult<AppendEntriesResponse<u64>> {
        // An append without entries is a heartbeat. It needs an answer of its own, because it may
        // be there to confirm that this keeper leads now.
        let entries = request.entries.last();
        let entries = entries.map(|last| (request.vote, request.prev_log_id, last.log_id));
        let request = Request::Append(request);
        let kind = RPCTypes::AppendEntries;
        match self.ask(kind, &request, entries, option.hard_ttl()).await? {
            RpcAnswer::Append(answer) => {
                if !matches!(answer, AppendEntriesResponse::HigherVote(_)) {
                    self.peer.note_followed();
                }
                Ok(answer)
            }
            _ => Err(unasked()),
        }
    }

    async fn install_snapshot(
        &mut self,
        request: InstallSnapshotRequest<Types>,
        option: RPCOption,
    ) -> CallResult<InstallSnapshotResponse<u64>, InstallSnapshotError> {
        let request = Request::Snapshot(request);
        let kind = RPCTypes::InstallSnapshot;
        match self.ask(kind, &request, None, option.hard_ttl()).await? {
            RpcAnswer::Snapshot(answer) => Ok(answer),
            RpcAnswer::Mismatch(mismatch) => {
                Err(RPCError::RemoteError(RemoteError::new_with_node(
                    self.id,
                    self.keeper.clone(),
                    RaftError::APIError(mismatch.into()),
                )))
            }
            _ => Err(unasked()),
        }
    }

    async fn vote(
        &mut self,
        request: VoteRequest<u64>,
        option: RPCOption,
    ) -> CallResult<VoteResponse<u64>> {
        let request = Request::Vote(request);
        match self
            .ask(RPCTypes::Vote, &request, None, option.hard_ttl())
            .await?
        {
            RpcAnswer::Vote(answer) => Ok(answer),
            _ => Err(unasked()),
        }
    }

    /// A constant interval: the connection itself backs off.
    fn backoff(&self) -> Backoff {
        Backoff::new(std::iter::repeat(self.retry))
    }
}

/// Passes a peer's request to Raft and returns Raft's answer.
pub(super) async fn answer(raft: &super::Raft, pre_vote: &PreVote, request: Request) -> RpcAnswer {
    let stopped = |fatal: &Fatal<u64>| RpcAnswer::Stopped(super::error::reason(fatal));
    match request {
        Request::PreVote { last_log } => RpcAnswer::PreVote(pre_vote.would_vote(last_log).await),
        Request::Append(request) => match raft.append_entries(request).await {
            Ok(answer) => RpcAnswer::Append(answer),
            Err(RaftError::Fatal(fatal)) => stopped(&fatal),
            Err(RaftError::APIError(never)) => match never {},
        },
        Request::Vote(request) => match raft.vote(request).await {
            Ok(answer) => RpcAnswer::Vote(answer),
            Err(RaftError::Fatal(fatal)) => stopped(&fatal),
            Err(RaftError::APIError(never)) => match never {},
        },
        Request::Snapshot(request) => match raft.install_snapshot(request).await {
            Ok(answer) => RpcAnswer::Snapshot(answer),
            Err(RaftError::Fatal(fatal)) => stopped(&fatal),
            Err(RaftError::APIError(InstallSnapshotError::SnapshotMismatch(mismatch))) => {
                RpcAnswer::Mismatch(mismatch)
            }
        },
    }
}
