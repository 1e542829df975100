//! The exchange of messages with the keepers' leader while the connection lasts.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::io::{ReadHalf, WriteHalf};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::io::InspectReader;

use super::Membership;
use super::leader_client::{LeaderClientTask, LeaderListener, ToLeader, WayToLeader};
use super::wire::{FromKeeper, FromNode, Reply, read, write};
use crate::Moment;
use crate::cluster_memory::ClusterMemory;
use soloist_core::Incarnation;
use soloist_core::cluster_identity::ClusterIdentity;
use soloist_core::epochs::message::{ToKeepers, ToMember};
use soloist_transport::Stream;

/// Capacity of the queue of epochs that are not on disk yet. The leader sends `Begin` again if it
/// is dropped.
const BEGINS_MAX: usize = 16;

impl LeaderClientTask {
    /// Exchanges messages until the connection ends or the leader stops answering.
    pub(super) async fn converse(
        &mut self,
        stream: Stream,
        cluster: ClusterIdentity,
        listener: &dyn LeaderListener,
    ) -> Ended {
        // These were sent while there was no connection.
        while self.messages.try_recv().is_ok() {}
        listener.found_leader();
        let (reader, writer) = tokio::io::split(stream);
        let open = Open {
            exchanged: Arc::clone(&self.exchanged),
            bytes: AtomicU64::new(0),
            state: Mutex::default(),
        };
        let way = self.way.clone();
        let membership = Arc::clone(&self.membership);
        let (begins, to_remember) = mpsc::channel(BEGINS_MAX);
        let hearing = Hearing {
            membership: &membership,
            listener,
            way: &way,
            cluster,
            begins,
        };
        tokio::select! {
            () = open.listen(reader, &hearing) => Ended::Closed,
            ended = self.speak(writer, &open) => ended,
            ended = remember_and_hear(&membership.memory, cluster, to_remember, listener) => ended,
        }
    }

    async fn speak(&mut self, mut writer: WriteHalf<Stream>, open: &Open) -> Ended {
        let limit = self.membership.answer_timeout();
        let (mut numbers, mut heard) = (0, 0);
        let mut stores = self.membership.stores.subscribe();
        stores.mark_changed();
        loop {
            let answer_by = open.state().answer_by;
            let silence = async {
                match answer_by {
                    Some(at) => sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            let message = tokio::select! {
                biased;
                message = self.messages.recv() => {
                    let Some(ToLeader { from, holds, message }) = message else {
                        return Ended::Closed;
                    };
                    open.expect_answer(&message, limit);
                    open.exchanged.fetch_add(1, Ordering::Relaxed);
                    let clock = Moment::now().since(Moment::default()).as_millis();
                    let clock = u64::try_from(clock).unwrap_or(u64::MAX);
                    let holds = u32::try_from(holds).unwrap_or(u32::MAX);
                    FromNode::Message { from, clock, holds, message }
                }
                asked = self.questions.recv() => {
                    let Some((question, sender)) = asked else { return Ended::Closed };
                    if sender.is_closed() {
                        continue;
                    }
                    numbers += 1;
                    open.state().questions.insert(numbers, sender);
                    FromNode::Question { number: numbers, question }
                }
                _ = stores.changed() => match stores.borrow_and_update().declined.clone() {
                    Some((id, reason)) => FromNode::Declined { id, reason },
                    None => FromNode::Store(self.membership.claim()),
                },
                () = silence => {
                    let bytes = open.bytes.load(Ordering::Relaxed);
                    let mut state = open.state();
                    // The answer may have arrived since, or be arriving.
                    if state.answer_by.is_some_and(|by| by <= Instant::now()) {
                        if bytes == heard {
                            tracing::debug!("the keepers' leader does not answer");
                            return Ended::Silent;
                        }
                        state.answer_by = Some(Instant::now() + limit);
                    }
                    heard = bytes;
                    continue;
                }
            };
            match timeout(limit, write(&mut writer, &message)).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) => return Ended::Closed,
                Err(_) => return Ended::Silent,
            }
        }
    }
}

/// Where messages from the leader go.
struct Hearing<'a> {
    membership: &'a Arc<Membership>,
    listener: &'a dyn LeaderListener,
    way: &'a watch::Sender<WayToLeader>,
    cluster: ClusterIdentity,
    begins: mpsc::Sender<(Incarnation, ToMember)>,
}

/// Writes each epoch to disk before this node takes part in it. Other messages are not held up
/// meanwhile.
async fn remember_and_hear(
    memory: &Arc<ClusterMemory>,
    cluster: ClusterIdentity,
    mut begins: mpsc::Receiver<(Incarnation, ToMember)>,
    listener: &dyn LeaderListener,
) -> Ended {
    while let Some((incarnation, message)) = begins.recv().await {
        let ToMember::Begin(change) = &message else {
            continue;
        };
        match memory.remember(cluster, change.epoch).await {
            Ok(()) => listener.receive_from_leader(incarnation, message),
            Err(error) => tracing::error!("this node cannot join the next epoch: {error}"),
        }
    }
    std::future::pending().await
}

/// How a connection to the leader ended.
pub(super) enum Ended {
    Closed,
    /// The leader no longer answers.
    Silent,
}

/// A connection to the leader.
struct Open {
    exchanged: Arc<AtomicU64>,
    /// Bytes received. A long message is a sign of life before it is complete.
    bytes: AtomicU64,
    state: Mutex<OpenState>,
}

#[derive(Default)]
struct OpenState {
    questions: HashMap<u64, oneshot::Sender<Reply>>,
    /// When the leader's answer is due.
    answer_by: Option<Instant>,
}

impl Open {
    fn state(&self) -> MutexGuard<'_, OpenState> {
        self.state
            .lock()
            .expect("no thread panics while it has the mutex")
    }

    /// Sets a deadline for the answer to a renewal, which a leader sends at once. `Join` has none:
    /// the leader waits for other nodes that join.
    fn expect_answer(&self, message: &ToKeepers, limit: Duration) {
        if matches!(message, ToKeepers::Renew { .. }) {
            let mut state = self.state();
            state.answer_by = state.answer_by.or(Some(Instant::now() + limit));
        }
    }

    /// Receives messages until the connection ends.
    async fn listen(&self, reader: ReadHalf<Stream>, hearing: &Hearing<'_>) {
        let (membership, listener) = (hearing.membership, hearing.listener);
        let mut reader = InspectReader::new(reader, |bytes| {
            let bytes = bytes.len() as u64;
            self.bytes.fetch_add(bytes, Ordering::Relaxed);
        });
        loop {
            let message = match read(&mut reader).await {
                Ok(Some(message)) => message,
                Ok(None) => return,
                Err(error) => {
                    tracing::debug!("the connection to the keepers' leader broke: {error}");
                    return;
                }
            };
            match message {
                FromKeeper::Message {
                    incarnation,
                    message,
                } => {
                    self.exchanged.fetch_add(1, Ordering::Relaxed);
                    self.state().answer_by = None;
                    match message {
                        message @ ToMember::Begin(_) => {
                            // If the queue is full, this is dropped. The leader needs this node's
                            // report and sends it again.
                            let _ = hearing.begins.try_send((incarnation, message));
                        }
                        message => listener.receive_from_leader(incarnation, message),
                    }
                }
                FromKeeper::Reply { number, reply } => {
                    if let Some(sender) = self.state().questions.remove(&number) {
                        let _ = sender.send(reply);
                    }
                }
                FromKeeper::Clock { percent } => tracing::error!(
                    percent,
                    "this machine's clock runs at another rate than that of the keepers' leader: \
                     leases are not reliable, fences are; repair the clock"
                ),
                FromKeeper::Welcome {
                    keepers, cluster, ..
                } => {
                    if cluster != hearing.cluster {
                        return;
                    }
                    let told = Some(keepers);
                    hearing.way.send_modify(|way| way.keepers = told);
                    listener.found_leader();
                }
                FromKeeper::Appoint(decision) | FromKeeper::SetAside(decision)
                    if decision.cluster != hearing.cluster =>
                {
                    return;
                }
                FromKeeper::Appoint(decision) => {
                    tokio::spawn(Arc::clone(membership).appointed(decision));
                }
                FromKeeper::SetAside(decision) => {
                    tokio::spawn(Arc::clone(membership).dismissed(decision));
                }
                FromKeeper::Elsewhere { .. } | FromKeeper::Refused(_) => return,
            }
        }
    }
}
