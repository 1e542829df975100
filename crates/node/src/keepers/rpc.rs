//! The wire format between keepers.
//!
//! After the [hello](soloist_transport::hello), requests go one way and answers the other. Each is
//! a frame: a length (4 bytes, little endian, counting what follows), the request's number (8
//! bytes, little endian), and postcard. Answers come in any order, each with its request's number.

use std::io;

use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, InstallSnapshotRequest, InstallSnapshotResponse,
    VoteRequest, VoteResponse,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt};

use super::types::{LogId, Types, Vote};
use soloist_transport::shown;

/// Maximum length of a command to the roster, in bytes.
pub const COMMAND_BYTES_MAX: usize = 16 << 20;
/// Maximum length of a frame in bytes, not counting the length field: an entry with the longest
/// command, the entries before it, and their metadata.
pub const FRAME_BYTES_MAX: usize = COMMAND_BYTES_MAX + (2 << 20);
/// Maximum length of a snapshot in bytes: the roster has the content of a few commands.
pub const SNAPSHOT_BYTES_MAX: u64 = 3 * COMMAND_BYTES_MAX as u64;

/// The number of frames that do not belong to a request.
pub(super) const NO_REQUEST: u64 = 0;
const NUMBER_BYTES: usize = 8;
/// Maximum log index, far from where arithmetic on it could overflow.
const INDEX_MAX: u64 = u64::MAX >> 1;
/// Maximum distance of a term beyond this keeper's own. A disconnected keeper may advance by a
/// million terms within days, but never by this many. A keeper that accepted a term near `u64::MAX`
/// could never be elected again.
const TERMS_AHEAD_MAX: u64 = 1 << 32;

/// From the keeper that dialled. Raft requests are made in the name of the keeper in their vote.
#[derive(Serialize, Deserialize)]
pub(super) enum Request {
    /// From a leader: log entries, or none as a heartbeat.
    Append(AppendEntriesRequest<Types>),
    /// From a candidate.
    Vote(VoteRequest<u64>),
    /// From a leader: a chunk of its snapshot.
    Snapshot(InstallSnapshotRequest<Types>),
    /// From a keeper that may stand for election: asks whether the receiver would vote for it. Its
    /// log ends at `last_log`.
    PreVote { last_log: Option<LogId> },
}

/// From the keeper that was dialled.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum RpcAnswer {
    /// The connection closes, for this reason.
    Refused(String),
    /// This keeper has stopped, for this reason.
    Stopped(String),
    /// To `Append`.
    Append(AppendEntriesResponse<u64>),
    /// To `Vote`.
    Vote(VoteResponse<u64>),
    /// To `Snapshot`.
    Snapshot(InstallSnapshotResponse<u64>),
    /// To `PreVote`.
    PreVote(bool),
    /// To `Snapshot`: an earlier chunk is missing.
    Mismatch(openraft::error::SnapshotMismatch),
}

impl RpcAnswer {
    pub(super) fn refused(reason: &str) -> Self {
        RpcAnswer::Refused(shown(reason))
    }
}

/// Input that no keeper sends, or an I/O error.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FrameError {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("a frame of {bytes} bytes (allowed: {NUMBER_BYTES} to {limit})")]
    Length { bytes: usize, limit: usize },
    #[error("a frame that cannot be decoded: {0}")]
    Content(String),
}

pub(crate) fn encode(value: &impl Serialize) -> Result<Vec<u8>, postcard::Error> {
    postcard::to_allocvec(value)
}

pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, FrameError> {
    match postcard::take_from_bytes(bytes) {
        Ok((value, [])) => Ok(value),
        Ok((_, rest)) => Err(FrameError::Content(format!("{} extra bytes", rest.len()))),
        Err(error) => Err(FrameError::Content(error.to_string())),
    }
}

/// The header of a frame.
pub(super) fn head(number: u64, content: &[u8]) -> [u8; 12] {
    let length = u32::try_from(NUMBER_BYTES + content.len()).expect("frames are limited");
    let mut head = [0; 12];
    head[..4].copy_from_slice(&length.to_le_bytes());
    head[4..].copy_from_slice(&number.to_le_bytes());
    head
}

/// A complete frame.
pub(crate) fn frame(number: u64, value: &impl Serialize) -> Result<Vec<u8>, postcard::Error> {
    let content = encode(value)?;
    let mut bytes = Vec::with_capacity(12 + content.len());
    bytes.extend_from_slice(&head(number, &content));
    bytes.extend_from_slice(&content);
    Ok(bytes)
}

/// Reads the length of the next frame's content and its number, or returns `None` at the end of the
/// stream.
pub(crate) async fn read_head(
    stream: &mut (impl AsyncRead + Unpin),
    limit: usize,
) -> Result<Option<(usize, u64)>, FrameError> {
    let mut length = [0; 4];
    if stream.read(&mut length[..1]).await? == 0 {
        return Ok(None);
    }
    stream.read_exact(&mut length[1..]).await?;
    let bytes = u32::from_le_bytes(length) as usize;
    if !(NUMBER_BYTES..=limit).contains(&bytes) {
        return Err(FrameError::Length { bytes, limit });
    }
    let number = stream.read_u64_le().await?;
    Ok(Some((bytes - NUMBER_BYTES, number)))
}

/// Reads a frame's content. Memory is allocated as bytes arrive, not as they are announced.
pub(crate) async fn read_content(
    stream: &mut (impl AsyncRead + Unpin),
    bytes: usize,
) -> Result<Vec<u8>, FrameError> {
    let mut content = Vec::with_capacity(bytes.min(16 << 10));
    let read = stream.take(bytes as u64).read_to_end(&mut content).await?;
    if read < bytes {
        return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
    }
    Ok(content)
}

impl Request {
    /// The vote of a Raft request, or `None` if the request is not for Raft.
    fn vote(&self) -> Option<&Vote> {
        match self {
            Request::Append(request) => Some(&request.vote),
            Request::Vote(request) => Some(&request.vote),
            Request::Snapshot(request) => Some(&request.vote),
            Request::PreVote { .. } => None,
        }
    }

    /// Checks that `sender` may send this to a keeper in term `term`, and that Raft can process it:
    /// Raft relies on what is checked here without checking it.
    pub(super) fn check(&self, sender: u64, term: u64) -> Result<(), String> {
        let Some(vote) = self.vote() else {
            return Ok(());
        };
        let speaker = vote.leader_id.node_id;
        if speaker != sender {
            return Err(format!(
                "keeper {sender:016x} sent a request in the name of keeper {speaker:016x}"
            ));
        }
        let asked = vote.leader_id.term;
        if asked.saturating_sub(term) > TERMS_AHEAD_MAX {
            return Err(format!(
                "the term {asked}, but this keeper is in term {term}: terms more than \
                 {TERMS_AHEAD_MAX} ahead are refused"
            ));
        }
        let limits = Limits { term: asked };
        match self {
            Request::Append(request) => limits.check_append(request),
            Request::Vote(request) => limits.log_id(request.last_log_id),
            Request::Snapshot(request) => limits.check_snapshot(request),
            Request::PreVote { .. } => Ok(()),
        }
    }
}

/// Limits on the log ids in a request.
struct Limits {
    /// The term of the keeper that sent the request. No entry of its log has a later one.
    term: u64,
}

impl Limits {
    fn log_id(&self, id: Option<LogId>) -> Result<(), String> {
        let Some(id) = id else { return Ok(()) };
        let (term, index) = (id.leader_id.term, id.index);
        if term > self.term {
            let asked = self.term;
            return Err(format!(
                "an entry of term {term} in a request of term {asked}"
            ));
        }
        if index > INDEX_MAX {
            return Err(format!("the index {index} (maximum: {INDEX_MAX})"));
        }
        Ok(())
    }

    fn check_append(&self, request: &AppendEntriesRequest<Types>) -> Result<(), String> {
        self.log_id(request.prev_log_id)?;
        self.log_id(request.leader_commit)?;
        let mut last = request.prev_log_id;
        for entry in &request.entries {
            self.log_id(Some(entry.log_id))?;
            let expected = last.map_or(0, |last| last.index + 1);
            let found = entry.log_id.index;
            if found != expected {
                return Err(format!("the entry {found} instead of entry {expected}"));
            }
            if last.is_some_and(|last| last.leader_id > entry.log_id.leader_id) {
                return Err(format!(
                    "the entry {found} of an older leader than its predecessor"
                ));
            }
            last = Some(entry.log_id);
        }
        Ok(())
    }

    fn check_snapshot(&self, request: &InstallSnapshotRequest<Types>) -> Result<(), String> {
        self.log_id(request.meta.last_log_id)?;
        self.log_id(*request.meta.last_membership.log_id())?;
        let end = request.offset.saturating_add(request.data.len() as u64);
        if end > SNAPSHOT_BYTES_MAX {
            Err(format!(
                "a snapshot of {end} bytes (maximum: {SNAPSHOT_BYTES_MAX})"
            ))
        } else {
            Ok(())
        }
    }
}

/// What a keeper does with bytes from the network before Raft sees them, for `fuzz/`.
#[cfg(feature = "internals")]
pub mod fuzzing {
    use std::pin::pin;
    use std::task::{Context, Waker};

    use super::*;

    /// Reads frames until the bytes end or cannot be read, and returns the number and the content
    /// of each.
    pub fn frames(mut bytes: &[u8]) -> Vec<(u64, Vec<u8>)> {
        let mut found = Vec::new();
        let reading = async {
            while let Some((length, number)) = read_head(&mut bytes, FRAME_BYTES_MAX).await? {
                found.push((number, read_content(&mut bytes, length).await?));
            }
            Ok::<_, FrameError>(())
        };
        let read = pin!(reading).poll(&mut Context::from_waker(Waker::noop()));
        assert!(read.is_ready(), "a slice is always ready");
        found
    }

    /// Encodes a frame.
    pub fn frame(number: u64, content: &[u8]) -> Vec<u8> {
        [&head(number, content), content].concat()
    }

    /// Decodes a request and checks it as if keeper `sender` had sent it to one in this term.
    /// Returns it encoded again, unless it is refused.
    pub fn request(content: &[u8], sender: u64, term: u64) -> Option<Vec<u8>> {
        let request: Request = decode(content).ok()?;
        request.check(sender, term).ok()?;
        Some(encode(&request).expect("a request that was read can be written"))
    }

    /// Decodes an answer, and returns it encoded again.
    pub fn answer(content: &[u8]) -> Option<Vec<u8>> {
        let answer: RpcAnswer = decode(content).ok()?;
        Some(encode(&answer).expect("an answer that was read can be written"))
    }
}

#[cfg(test)]
mod tests {
    use openraft::{CommittedLeaderId, Entry, EntryPayload, Membership, SnapshotMeta};
    use openraft::{SnapshotSegmentId, StoredMembership};
    use soloist_core::Term;

    use super::*;
    use crate::golden::GoldenBytes;
    use crate::keepers::{KeeperNode, Proposal};

    fn log_id(index: u64) -> LogId {
        LogId::new(CommittedLeaderId::new(3, 0xab), index)
    }

    fn membership() -> Membership<u64, KeeperNode> {
        let node = |name: &str| KeeperNode {
            name: name.parse().unwrap(),
            address: "127.0.0.1:7401".parse().unwrap(),
        };
        let nodes = [(0xab, node("a")), (0xcd, node("b"))];
        Membership::new(vec![[0xab].into()], std::collections::BTreeMap::from(nodes))
    }

    fn requests() -> Vec<(&'static str, Request)> {
        // A new request goes into the list below.
        let _ = |request| match request {
            Request::Append(_)
            | Request::Vote(_)
            | Request::Snapshot(_)
            | Request::PreVote { .. } => {}
        };
        let lease = std::time::Duration::from_millis(3_150);
        let command = soloist_core::epochs::roster::Command::Lead { lease };
        let payloads = [
            EntryPayload::Blank,
            EntryPayload::Normal(Proposal {
                term: Term(3),
                command,
            }),
            EntryPayload::Membership(membership()),
        ];
        let entries = payloads.into_iter().zip(8..);
        let entry = |(payload, index)| Entry {
            log_id: log_id(index),
            payload,
        };
        let append = AppendEntriesRequest {
            vote: Vote::new_committed(4, 0xab),
            prev_log_id: Some(log_id(7)),
            entries: entries.map(entry).collect(),
            leader_commit: Some(log_id(6)),
        };
        let snapshot = InstallSnapshotRequest {
            vote: Vote::new_committed(4, 0xab),
            meta: SnapshotMeta {
                last_log_id: Some(log_id(7)),
                last_membership: StoredMembership::new(Some(log_id(1)), membership()),
                snapshot_id: "s".to_owned(),
            },
            offset: 300,
            data: vec![1, 2, 3],
            done: true,
        };
        let vote = VoteRequest::new(Vote::new(4, 0xab), Some(log_id(7)));
        let last_log = Some(log_id(7));
        vec![
            ("append", Request::Append(append)),
            ("vote", Request::Vote(vote)),
            ("snapshot", Request::Snapshot(snapshot)),
            ("pre-vote", Request::PreVote { last_log }),
        ]
    }

    fn answers() -> Vec<(&'static str, RpcAnswer)> {
        let _ = |answer| match answer {
            RpcAnswer::Refused(_)
            | RpcAnswer::Stopped(_)
            | RpcAnswer::Append(_)
            | RpcAnswer::Vote(_)
            | RpcAnswer::Snapshot(_)
            | RpcAnswer::PreVote(_)
            | RpcAnswer::Mismatch(_) => {}
        };
        let vote = Vote::new(4, 0xab);
        let segment = |offset| SnapshotSegmentId {
            id: "s".to_owned(),
            offset,
        };
        let mismatch = openraft::error::SnapshotMismatch {
            expect: segment(300),
            got: segment(0),
        };
        let append = [
            ("appended", AppendEntriesResponse::Success),
            (
                "appended in part",
                AppendEntriesResponse::PartialSuccess(Some(log_id(7))),
            ),
            ("append conflicts", AppendEntriesResponse::Conflict),
            (
                "append in an old term",
                AppendEntriesResponse::HigherVote(vote),
            ),
        ];
        let append = append.map(|(label, response)| (label, RpcAnswer::Append(response)));
        let voted = VoteResponse {
            vote,
            vote_granted: true,
            last_log_id: Some(log_id(7)),
        };
        let mut all = vec![
            ("refused", RpcAnswer::Refused("because".to_owned())),
            ("stopped", RpcAnswer::Stopped("because".to_owned())),
        ];
        all.extend(append);
        all.extend([
            ("voted", RpcAnswer::Vote(voted)),
            (
                "snapshot taken",
                RpcAnswer::Snapshot(InstallSnapshotResponse { vote }),
            ),
            ("pre-vote", RpcAnswer::PreVote(true)),
            ("snapshot mismatch", RpcAnswer::Mismatch(mismatch)),
        ]);
        all
    }

    #[test]
    fn requests_and_answers_have_golden_bytes() {
        let mut golden = GoldenBytes::default();
        for (label, request) in requests() {
            let bytes = encode(&request).unwrap();
            let again = encode(&decode::<Request>(&bytes).unwrap()).unwrap();
            assert_eq!(again, bytes, "{label}");
            golden.add_bytes(&format!("request: {label}"), &bytes);
        }
        for (label, answer) in answers() {
            golden.add(&format!("answer: {label}"), &answer);
        }
        golden.add_bytes("frame 300", &frame(300, &true).unwrap());
        golden.check("keepers.txt");
    }
}
