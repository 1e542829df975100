//! A keeper's side of a connection from a node.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use super::leader_task::LeaderEvent;
use super::wire::{FromKeeper, FromNode, read, write};
use super::{LAST_WORDS, Membership};
use crate::keepers::rpc::FrameError;
use soloist_api::NodeName;
use soloist_transport::{Arrival, Code, Hello, Purpose, Refusal, shown};

/// A node that does not read for this long is disconnected.
const WRITE_TIME: Duration = Duration::from_secs(10);

/// Capacity of a connection's send queue. A node that falls this far behind is disconnected, and
/// reconnects.
const WAITING_MAX: usize = 256;

/// Why a connection ends.
enum End {
    /// The connection closed or broke.
    Closed,
    /// This keeper does not lead.
    Elsewhere,
    Refused(String),
}

impl From<FrameError> for End {
    fn from(error: FrameError) -> Self {
        match error {
            FrameError::Io(_) => End::Closed,
            error => End::Refused(error.to_string()),
        }
    }
}

impl Membership {
    /// Serves a node until the connection ends.
    pub(crate) async fn serve(&self, arrival: Arrival) {
        let _serving = self.serving.token();
        let name = arrival.hello.from.clone();
        if let Err(refusal) = self.check(&arrival.hello) {
            self.note_refusal(&name, &refusal.reason);
            return arrival.refuse(refusal).await;
        }
        let Ok(stream) = arrival.welcome(&[]).await else {
            return;
        };
        let (mut reader, mut writer) = tokio::io::split(stream);
        // Whether a message is partly written. Nothing else can be sent after a partial message.
        let is_writing = AtomicBool::new(false);
        let end = tokio::select! {
            () = self.stopped() => End::Elsewhere,
            end = self.attend(&mut reader, &mut writer, name.clone(), &is_writing) => end,
        };
        let last = match end {
            _ if is_writing.load(Ordering::Relaxed) => return,
            End::Closed => return,
            End::Elsewhere => self.elsewhere(),
            End::Refused(reason) => {
                self.note_refusal(&name, &reason);
                FromKeeper::Refused(shown(&reason))
            }
        };
        // Best effort: the connection ends in any case.
        let farewell = async {
            write(&mut writer, &last).await?;
            writer.shutdown().await
        };
        let _ = timeout(Duration::from_millis(500), farewell).await;
    }

    fn note_refusal(&self, node: &NodeName, reason: &str) {
        if let Some(withheld) = self.refused.note(node.as_str(), reason) {
            tracing::warn!(%node, reason, withheld, "this keeper refused a node");
        }
    }

    /// Returns a little after the node stops: the leader task ends first, and its last messages are
    /// sent.
    async fn stopped(&self) {
        self.stop.cancelled().await;
        sleep(LAST_WORDS).await;
    }

    /// Tells a node where the leader is. Ordinary members answer this too, because the
    /// configuration of the node that asks may list only former keepers.
    fn elsewhere(&self) -> FromKeeper {
        let view = self.keeper().map(|keeper| keeper.view());
        let leader = view.and_then(|view| view.leader);
        let leader = self.follows.borrow().clone().or(leader);
        FromKeeper::Elsewhere {
            leader: leader.filter(|leader| leader.name != self.me.name),
            has_past: self.keeper().is_some() || self.memory.get().is_some(),
        }
    }

    fn check(&self, hello: &Hello) -> Result<(), Refusal> {
        let (from, me) = (&hello.from, &self.me.name);
        match hello.purpose {
            Purpose::Member { fingerprint } if fingerprint == self.fingerprint => Ok(()),
            Purpose::Member { .. } => Err(Refusal::new(
                Code::Configuration,
                format!(
                    "the configurations of nodes {from} and {me} differ; \
                     give all nodes the same lease, drift, algorithms and patterns"
                ),
            )),
            _ => Err(Refusal::new(
                Code::NotServed,
                format!(
                    "a {} connection of {from} was routed to the membership of {me}",
                    hello.purpose.name()
                ),
            )),
        }
    }

    /// Passes messages between the node and the leader task, while this keeper leads.
    async fn attend(
        &self,
        reader: &mut (impl tokio::io::AsyncRead + Unpin),
        writer: &mut (impl tokio::io::AsyncWrite + Unpin),
        name: NodeName,
        is_writing: &AtomicBool,
    ) -> End {
        let Some(leader) = self.leader_events.borrow().clone() else {
            return End::Elsewhere;
        };
        let (sender, mut outgoing) = mpsc::channel(WAITING_MAX);
        let opened = LeaderEvent::Opened {
            name: name.clone(),
            sender: sender.clone(),
        };
        if leader.send(opened).await.is_err() {
            return End::Elsewhere;
        }
        let connection = sender.downgrade();
        drop(sender);
        let reading = async {
            loop {
                let event = match read(reader).await {
                    Ok(Some(FromNode::Message {
                        from,
                        clock,
                        holds,
                        message,
                    })) if from.name == name => LeaderEvent::Message {
                        from,
                        clock,
                        holds,
                        message,
                    },
                    Ok(Some(FromNode::Message { from, .. })) => {
                        return End::Refused(format!("a message in the name of {}", from.name));
                    }
                    Ok(Some(FromNode::Question { number, question })) => LeaderEvent::Question {
                        connection: connection.clone(),
                        number,
                        question,
                    },
                    Ok(Some(FromNode::Store(claim))) => LeaderEvent::Store {
                        name: name.clone(),
                        connection: connection.clone(),
                        claim,
                    },
                    Ok(Some(FromNode::Declined { id, reason })) => LeaderEvent::Declined {
                        id,
                        reason: shown(&reason),
                    },
                    Ok(None) => return End::Closed,
                    Err(error) => return error.into(),
                };
                if leader.send(event).await.is_err() {
                    // The leader task has ended. Its last messages are still being written.
                    return std::future::pending().await;
                }
            }
        };
        let writing = async {
            while let Some(message) = outgoing.recv().await {
                is_writing.store(true, Ordering::Relaxed);
                match timeout(WRITE_TIME, write(writer, &message)).await {
                    Ok(Ok(())) => is_writing.store(false, Ordering::Relaxed),
                    _ => return End::Closed,
                }
            }
            // The leader task has ended, or it dropped this connection: the node has too many, or
            // does not read fast enough.
            End::Elsewhere
        };
        let end = tokio::select! {
            end = reading => end,
            end = writing => end,
        };
        let _ = leader.send(LeaderEvent::Closed { name, connection }).await;
        end
    }
}
