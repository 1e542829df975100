//! The connection to another keeper: a single one, kept open, for all requests.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::rpc::{self, FRAME_BYTES_MAX, NO_REQUEST, RpcAnswer};
use super::successor::Successor;
use super::types::{KeeperNode, LogId, Vote};
use soloist_transport::Backoff;
use soloist_transport::{ConnectionError, Endpoint, Purpose, Stream, shown};

/// Timeout for connecting, including the handshake.
const DIAL_TIME: Duration = Duration::from_secs(5);
/// Limits of requests that wait to be sent, and of requests that wait for an answer.
const WAITING_MAX: usize = 64;
const UNANSWERED_MAX: usize = 1024;
/// Size of one write. Each completed write is a sign of life: the other side accepts bytes.
const WRITE_BYTES: usize = 64 << 10;
const RETRY_MIN: Duration = Duration::from_millis(10);

/// Why a request has no answer.
#[derive(Clone, Debug, thiserror::Error)]
pub(super) enum CallError {
    /// It was not sent. An immediate retry is pointless.
    #[error("{0}")]
    Unreachable(String),
    /// It may have been sent. The next request uses a new connection.
    #[error("{0}")]
    Broken(String),
    /// No answer came in time.
    #[error("no answer in time")]
    Late,
}

type Outcome = Result<Arc<[u8]>, CallError>;
type Reply = watch::Sender<Option<Outcome>>;
type Answered = watch::Receiver<Option<Outcome>>;

/// Identifies an append request with entries: requests with the same value have the same answer.
pub(super) type Entries = (Vote, Option<LogId>, LogId);

struct Call {
    content: Vec<u8>,
    reply: Reply,
}

/// Timeouts of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    /// The longest pause between dials.
    pub(super) retry_max: Duration,
    /// A connection on which requests stay unanswered for this long is closed.
    pub(super) silence_max: Duration,
}

/// Handle of the task that owns the connection.
#[derive(Debug)]
pub(super) struct Peer {
    calls: mpsc::Sender<Call>,
    /// The append request with entries that was sent last, until its answer is read. Raft may time
    /// out while a long frame is still being sent, and then sends the same request again. The
    /// answer to the first one serves both, even if it arrived in between.
    entries: Mutex<Option<(Entries, Answered)>>,
    /// When the other keeper accepted an append last.
    followed: Mutex<Option<Instant>>,
}

impl Peer {
    /// Starts the task. Its connections are opened for this purpose.
    pub(super) fn start(
        endpoint: Endpoint,
        purpose: Purpose,
        keeper: KeeperNode,
        times: Times,
        successor: Successor,
        stop: CancellationToken,
    ) -> Self {
        let (calls, inbox) = mpsc::channel(WAITING_MAX);
        let task = PeerTask {
            endpoint,
            purpose,
            keeper,
            times,
            successor,
            last_error: None,
        };
        tokio::spawn(async move {
            tokio::select! {
                () = stop.cancelled() => {}
                () = task.keep(inbox) => {}
            }
        });
        Peer {
            calls,
            entries: Mutex::default(),
            followed: Mutex::default(),
        }
    }

    /// When the other keeper accepted an append last.
    pub(super) fn followed(&self) -> Option<Instant> {
        *self.followed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn note_followed(&self) {
        let mut followed = self.followed.lock().unwrap_or_else(PoisonError::into_inner);
        *followed = Some(Instant::now());
    }

    /// Sends a request, and waits for the answer.
    pub(super) async fn call(
        &self,
        content: Vec<u8>,
        entries: Option<Entries>,
        limit: Duration,
    ) -> Outcome {
        let mut answer = self.begin(content, entries)?;
        let answered = timeout(limit, answer.wait_for(Option::is_some)).await;
        let outcome = match answered {
            Ok(Ok(outcome)) => outcome.clone().expect("`wait_for` saw an outcome"),
            Ok(Err(_)) => Err(CallError::Unreachable("this keeper is stopping".to_owned())),
            Err(_) => return Err(CallError::Late),
        };
        if entries.is_some() {
            // The answer was read. The same request may have another answer next time.
            let mut sent = self.sent();
            if sent.as_ref().map(|(sent, _)| *sent) == entries {
                *sent = None;
            }
        }
        outcome
    }

    fn sent(&self) -> MutexGuard<'_, Option<(Entries, Answered)>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self, content: Vec<u8>, entries: Option<Entries>) -> Result<Answered, CallError> {
        let mut sent = self.sent();
        if let (Some(entries), Some((before, answer))) = (entries, sent.as_ref())
            && entries == *before
            && !has_failed(answer)
        {
            return Ok(answer.clone());
        }
        let (reply, answer) = watch::channel(None);
        match self.calls.try_send(Call { content, reply }) {
            Ok(()) => {}
            Err(mpsc::error::TrySendError::Full(_)) => {
                let waiting = format!("{WAITING_MAX} requests are already queued");
                return Err(CallError::Unreachable(waiting));
            }
            Err(mpsc::error::TrySendError::Closed(_)) => {
                return Err(CallError::Unreachable("this keeper is stopping".to_owned()));
            }
        }
        if let Some(entries) = entries {
            *sent = Some((entries, answer.clone()));
        }
        Ok(answer)
    }
}

/// Returns whether no answer will come: the connection broke, or its task has ended.
fn has_failed(answer: &Answered) -> bool {
    match &*answer.borrow() {
        Some(outcome) => outcome.is_err(),
        None => answer.has_changed().is_err(),
    }
}

struct PeerTask {
    endpoint: Endpoint,
    purpose: Purpose,
    keeper: KeeperNode,
    times: Times,
    successor: Successor,
    last_error: Option<String>,
}

impl PeerTask {
    /// Dials when there is a request and no connection.
    async fn keep(mut self, mut calls: mpsc::Receiver<Call>) {
        let mut backoff = Backoff::new(RETRY_MIN, self.times.retry_max);
        let mut not_before = Instant::now();
        while let Some(call) = calls.recv().await {
            if call.reply.is_closed() {
                continue;
            }
            if Instant::now() < not_before {
                let reason = self.last_error.clone().unwrap_or_default();
                call.reply
                    .send_replace(Some(Err(CallError::Unreachable(reason))));
                continue;
            }
            match self.open().await {
                Ok(stream) => {
                    tracing::info!("connected to keeper {}", self.keeper);
                    backoff.reset();
                    self.last_error = None;
                    let reason = exchange(stream, call, &mut calls, self.times).await;
                    self.failed(reason);
                }
                Err(reason) => {
                    call.reply
                        .send_replace(Some(Err(CallError::Unreachable(reason.clone()))));
                    self.failed(reason);
                    not_before = Instant::now() + backoff.next(rand::random());
                }
            }
        }
    }

    /// Logs the problem, unless it is the same as before. Its consequences, such as a link that is
    /// down or a leader that is lost, are warned of where they are noticed.
    fn failed(&mut self, reason: String) {
        if self.last_error.as_ref() != Some(&reason) {
            tracing::info!("connection to keeper {} ended: {reason}", self.keeper);
        }
        self.last_error = Some(reason);
    }

    async fn open(&self) -> Result<Stream, String> {
        let KeeperNode { name, address } = &self.keeper;
        let purpose = self.purpose.clone();
        let address = address.to_string();
        let dialled = self.endpoint.dial(name, &address, purpose, DIAL_TIME).await;
        match dialled {
            Ok(dialled) => Ok(dialled.stream),
            Err(error) => {
                if let ConnectionError::Refused(refusal) = &error {
                    let mine = self.endpoint.cluster();
                    self.successor.note(mine, refusal.cluster);
                }
                Err(error.to_string())
            }
        }
    }
}

/// Unanswered requests, and the time of the other side's last sign of life.
struct Unanswered {
    replies: Mutex<HashMap<u64, Reply>>,
    began: Instant,
    sign_ms: AtomicU64,
}

impl Unanswered {
    fn replies(&self) -> MutexGuard<'_, HashMap<u64, Reply>> {
        self.replies.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sign_of_life(&self) {
        let now = self.began.elapsed().as_millis() as u64;
        self.sign_ms.store(now, Ordering::Relaxed);
    }

    fn silence(&self) -> Duration {
        let sign = Duration::from_millis(self.sign_ms.load(Ordering::Relaxed));
        self.began.elapsed().saturating_sub(sign)
    }
}

/// Sends requests and receives answers until the connection ends, and returns why it did.
async fn exchange(
    stream: Stream,
    first: Call,
    calls: &mut mpsc::Receiver<Call>,
    times: Times,
) -> String {
    let (mut reader, mut writer) = tokio::io::split(stream);
    let unanswered = Unanswered {
        replies: Mutex::default(),
        began: Instant::now(),
        sign_ms: AtomicU64::new(0),
    };
    let reason = tokio::select! {
        reason = take_answers(&mut reader, &unanswered) => reason,
        reason = send_requests(&mut writer, first, calls, &unanswered) => reason,
        reason = watch_silence(&unanswered, times.silence_max) => reason,
    };
    for (_, reply) in unanswered.replies().drain() {
        reply.send_replace(Some(Err(CallError::Broken(reason.clone()))));
    }
    reason
}

async fn send_requests(
    writer: &mut (impl AsyncWrite + Unpin),
    first: Call,
    calls: &mut mpsc::Receiver<Call>,
    unanswered: &Unanswered,
) -> String {
    let mut next = Some(first);
    let mut number = NO_REQUEST;
    while let Some(call) = next {
        // The caller may have stopped waiting.
        if !call.reply.is_closed() {
            number += 1;
            let left = {
                let mut replies = unanswered.replies();
                if replies.is_empty() {
                    // The other side had nothing to answer before this request.
                    unanswered.sign_of_life();
                }
                replies.insert(number, call.reply);
                replies.len()
            };
            if left > UNANSWERED_MAX {
                return format!("{left} requests are unanswered");
            }
            if let Err(error) = write(writer, number, &call.content, unanswered).await {
                return format!("it broke: {error}");
            }
        }
        next = calls.recv().await;
    }
    "it is no longer needed".to_owned()
}

async fn write(
    writer: &mut (impl AsyncWrite + Unpin),
    number: u64,
    content: &[u8],
    unanswered: &Unanswered,
) -> io::Result<()> {
    writer.write_all(&rpc::head(number, content)).await?;
    for part in content.chunks(WRITE_BYTES) {
        writer.write_all(part).await?;
        unanswered.sign_of_life();
    }
    writer.flush().await
}

const CLOSED: &str = "the other side closed it";

async fn take_answers(reader: &mut (impl AsyncRead + Unpin), unanswered: &Unanswered) -> String {
    loop {
        let answer = async {
            let Some((bytes, number)) = rpc::read_head(reader, FRAME_BYTES_MAX).await? else {
                return Ok(None);
            };
            let content = rpc::read_content(reader, bytes).await?;
            Ok::<_, rpc::FrameError>(Some((number, content)))
        };
        let (number, content) = match answer.await {
            Ok(Some(answer)) => answer,
            Ok(None) => return CLOSED.to_owned(),
            Err(rpc::FrameError::Io(error)) if error.kind() == io::ErrorKind::UnexpectedEof => {
                return CLOSED.to_owned();
            }
            Err(error) => return format!("it broke: {error}"),
        };
        unanswered.sign_of_life();
        if number == NO_REQUEST {
            return match rpc::decode(&content) {
                Ok(RpcAnswer::Refused(reason)) => format!("refused: {}", shown(&reason)),
                _ => "an answer without a request".to_owned(),
            };
        }
        let Some(reply) = unanswered.replies().remove(&number) else {
            return format!("an answer to request {number}, which is not pending");
        };
        reply.send_replace(Some(Ok(content.into())));
    }
}

async fn watch_silence(unanswered: &Unanswered, silence_max: Duration) -> String {
    loop {
        tokio::time::sleep(silence_max / 4).await;
        let silence = unanswered.silence();
        if silence > silence_max && !unanswered.replies().is_empty() {
            return format!("no answer for {silence:.1?}");
        }
    }
}
