//! The sending side of a link. Dials the peer and reconnects for as long as it is in the list.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::time::{Instant, interval, sleep, timeout};

use super::LinkChange;
use super::connection::{broken, close_with, closed_by, foreign, in_time, left, read_first};
use super::frame::{Decoder, Record};
use super::peer::{Outgoing, PeerState};
use super::settings::Limits;
use super::shared::{End, Shared, lock};
use super::status::count;
use crate::{Backoff, Purpose, Stream, shown, write};
use soloist_api::NodeName;
use soloist_core::Incarnation;

/// Time for a writer to finish its write and send Goodbye.
const GOODBYE: Duration = Duration::from_millis(500);

/// Longest pause after the peer answered "later", unless `retry_min` is longer. The peer is up, and
/// members learn of changes within moments of each other.
const LATER_MAX: Duration = Duration::from_millis(250);

/// Task of one link. It waits for the first frame, so a peer that is never sent anything is never
/// dialled.
pub(super) async fn keep_link(shared: Arc<Shared>, peer: Arc<PeerState>) {
    let gone = peer.gone.clone();
    let mut link = Link {
        pauses: Pauses::new(shared.limits()),
        told: None,
        shared,
        peer,
    };
    loop {
        tokio::select! {
            biased;
            () = gone.cancelled() => return,
            () = first_frame(&link.peer.outgoing) => {}
        }
        // Boxed, so that the many links that are never used stay small.
        let end = Box::pin(link.connect_once()).await;
        if gone.is_cancelled() {
            return;
        }
        let pause = link.pauses.next(&end);
        link.ended(end);
        tokio::select! {
            biased;
            () = gone.cancelled() => return,
            () = sleep(pause) => {}
        }
    }
}

/// Pauses before the next dial.
struct Pauses {
    backoff: Backoff,
    later: Backoff,
}

impl Pauses {
    fn new(limits: &Limits) -> Self {
        let (min, max) = (limits.retry_min, limits.retry_max);
        Self {
            backoff: Backoff::new(min, max),
            later: Backoff::new(min, max.min(LATER_MAX).max(min)),
        }
    }

    fn next(&mut self, end: &End) -> Duration {
        let (counts, other) = match end {
            End::Later(_) => (&mut self.later, &mut self.backoff),
            _ => (&mut self.backoff, &mut self.later),
        };
        other.reset();
        counts.next(rand::random())
    }

    fn reset(&mut self) {
        self.backoff.reset();
        self.later.reset();
    }
}

/// Waits until a frame was pushed.
async fn first_frame(outgoing: &Outgoing) {
    loop {
        {
            let mut state = lock(&outgoing.state);
            if state.window.pushed() > 0 {
                return;
            }
            state.waiting = true;
        }
        outgoing.wake.notified().await;
    }
}

struct Link {
    shared: Arc<Shared>,
    peer: Arc<PeerState>,
    pauses: Pauses,
    /// Last change reported to the handler. Only changes are reported, not every retry.
    told: Option<LinkChange>,
}

/// A connection after its handshake.
struct Open {
    reader: ReadHalf<Stream>,
    writer: WriteHalf<Stream>,
    decoder: Decoder,
}

impl Link {
    fn outgoing(&self) -> &Outgoing {
        &self.peer.outgoing
    }

    fn name(&self) -> &str {
        &self.peer.name
    }

    /// Reports a change to the handler, unless it knows. Returns whether it was reported.
    fn tell(&mut self, change: LinkChange) -> bool {
        let known = match (&self.told, &change) {
            // A retry that fails for another reason is not a change. Neither is failing to reach a
            // peer that said goodbye.
            (Some(LinkChange::Down { .. } | LinkChange::Goodbye), LinkChange::Down { .. }) => true,
            (told, change) => told.as_ref() == Some(change),
        };
        if !known {
            let handler = &self.shared.handler;
            handler.link_changed(self.name(), change.clone());
            self.told = Some(change);
        }
        !known
    }

    /// Dials, and sends until the connection ends.
    async fn connect_once(&mut self) -> End {
        count(&self.shared.totals.dialled);
        let limit = self.shared.limits().handshake;
        let open = tokio::select! {
            biased;
            () = self.peer.gone.cancelled() => return End::Ours,
            open = in_time(limit, self.name(), self.handshake()) => open,
        };
        match open {
            Err(end) => end,
            Ok(open) => {
                self.pauses.reset();
                self.tell(LinkChange::Up);
                self.run(open).await
            }
        }
    }

    async fn handshake(&self) -> Result<Open, End> {
        let settings = &self.shared.settings;
        let (name, address) = (self.name(), self.peer.address());
        let limit = settings.limits.handshake;
        let purpose = Purpose::Link {
            fingerprint: settings.fingerprint,
            incarnation: self.peer.mine,
            to_incarnation: Some(self.peer.incarnation),
        };
        let to: NodeName = name.parse().expect("names are checked when peers are set");
        let dialled = settings
            .endpoint
            .dial(&to, &address, purpose, limit)
            .await?;
        let mut connection = dialled.stream;
        let answer = read_first(&mut connection, name, |record| match record {
            Record::Welcome { incarnation, next } => Ok((incarnation, next)),
            Record::Refused { reason } => Err(refused_by(name, reason)),
            other => Err(unexpected(name, &other)),
        });
        let ((incarnation, next), decoder) = answer.await?;
        if let Err(end) = self.begin(incarnation, next) {
            if let End::Refused(reason) = &end {
                close_with(connection, Record::Refused { reason }).await;
            }
            return Err(end);
        }
        let (reader, writer) = tokio::io::split(connection);
        Ok(Open {
            reader,
            writer,
            decoder,
        })
    }

    /// Starts sending to the incarnation that sent Welcome, from the frame number that it expects
    /// next.
    fn begin(&self, incarnation: Incarnation, next: u64) -> Result<(), End> {
        let (name, expected) = (self.name(), self.peer.incarnation);
        if incarnation != expected {
            return Err(End::Hostile(format!(
                "{name} sent Welcome as incarnation {incarnation}, but incarnation {expected} was \
                 expected"
            )));
        }
        let mut state = lock(&self.outgoing().state);
        if state.retired {
            return Err(End::Ours);
        }
        state.begin(name, next).map_err(End::Refused)
    }

    async fn run(&self, mut open: Open) -> End {
        let mut reading = std::pin::pin!(self.read(&mut open.reader, &mut open.decoder));
        let gone = async {
            self.peer.gone.cancelled().await;
            sleep(GOODBYE).await;
        };
        let end = tokio::select! {
            biased;
            end = &mut reading => end,
            end = self.write(&mut open.writer) => match end {
                // The peer may have sent the reason before it closed.
                End::Failed(_) => timeout(GOODBYE, reading).await.unwrap_or(end),
                _ => end,
            },
            () = gone => End::Ours,
        };
        lock(&self.outgoing().state).up = false;
        end
    }

    /// Writes everything that is ready in one write. Sends a Ping after an idle interval.
    async fn write(&self, writer: &mut WriteHalf<Stream>) -> End {
        let limits = self.shared.limits();
        let mut probe = interval(limits.probe_every);
        let mut gone = std::pin::pin!(self.peer.gone.cancelled());
        let mut idle = false;
        let mut bytes = Vec::new();
        loop {
            bytes.clear();
            lock(&self.outgoing().state).take(limits.write_bytes, &mut bytes, &self.shared.totals);
            let mut last = false;
            if bytes.is_empty() {
                tokio::select! {
                    biased;
                    () = self.outgoing().wake.notified() => continue,
                    () = &mut gone => {
                        Record::Goodbye.encode(&mut bytes);
                        last = true;
                    }
                    _ = probe.tick() => {
                        if !std::mem::replace(&mut idle, true) {
                            continue;
                        }
                        bytes.shrink_to(256);
                        Record::Ping.encode(&mut bytes);
                    }
                }
            } else {
                idle = false;
            }
            if let Err(error) = write(writer, &bytes).await {
                return broken(self.name(), &error);
            }
            if last {
                // The connection ends here whether or not the shutdown succeeds.
                let _ = writer.shutdown().await;
                return End::Ours;
            }
        }
    }

    /// Reads acknowledgements until another record arrives or the connection ends.
    async fn read(&self, reader: &mut ReadHalf<Stream>, decoder: &mut Decoder) -> End {
        let limits = self.shared.limits();
        let mut watch = interval(limits.probe_every);
        let mut heard = Instant::now();
        loop {
            for record in decoder.records() {
                let taken = match record {
                    Ok(record) => self.take(record),
                    Err(error) => Err(foreign(self.name(), &error)),
                };
                if let Err(end) = taken {
                    return end;
                }
            }
            tokio::select! {
                // Bytes that have arrived count even if this task was late to read them.
                biased;
                read = reader.read_buf(decoder.space()) => match read {
                    Ok(0) => return closed_by(self.name()),
                    Ok(_) => heard = Instant::now(),
                    Err(error) => return broken(self.name(), &error),
                },
                _ = watch.tick() => if heard.elapsed() > limits.silence_max {
                    let silence = heard.elapsed().as_secs_f64();
                    let name = self.name();
                    return End::Failed(format!("{name} was silent for {silence:.1} s"));
                }
            }
        }
    }

    fn take(&self, record: Record<'_>) -> Result<(), End> {
        let name = self.name();
        match record {
            Record::Ack { up_to } => {
                let mut state = lock(&self.outgoing().state);
                if state.retired {
                    // It acknowledges frames that were already dropped.
                    return Ok(());
                }
                let acknowledged = state.window.acknowledge(up_to);
                acknowledged.map_err(|error| End::Hostile(format!("{name}: {error}")))?;
                if state.window.is_empty() {
                    self.shared.drained.notify_one();
                }
                Ok(())
            }
            Record::Refused { reason } => Err(refused_by(name, reason)),
            Record::Goodbye => Err(left(name)),
            other => Err(unexpected(name, &other)),
        }
    }

    /// Counts how a connection ended, and reports the change to the handler, which logs it. What
    /// the handler is not told is logged here.
    fn ended(&mut self, end: End) {
        let (name, notes) = (&self.peer.name, &self.shared.notes);
        let reason = match &end {
            End::Ours => return,
            End::Later(reason) => {
                // The peer is up, so earlier errors no longer apply.
                lock(&self.outgoing().state).last_error = None;
                notes.debug(&format!("link to {name}: {reason}"));
                return;
            }
            End::Failed(reason)
            | End::Refused(reason)
            | End::Hostile(reason)
            | End::Goodbye(reason) => reason,
        };
        match &end {
            End::Refused(_) => count(&self.shared.totals.refused_by_peers),
            End::Hostile(_) => count(&self.shared.totals.hostile),
            _ => {}
        }
        let last = lock(&self.outgoing().state)
            .last_error
            .replace(reason.clone());
        let is_news = last.as_ref() != Some(reason);
        let is_refusal = matches!(end, End::Refused(_) | End::Hostile(_));
        let (name, reason) = (name.clone(), reason.clone());
        let is_told = end.change().is_some_and(|change| self.tell(change));
        if is_told || !is_news {
            return;
        }
        let line = format!("link to {name}: {reason}");
        let notes = &self.shared.notes;
        if is_refusal {
            notes.about(&name, &reason, &line);
        } else {
            // The handler knows that the link is down.
            notes.debug(&line);
        }
    }
}

fn refused_by(name: &str, reason: &str) -> End {
    End::Refused(format!("{name} refused: {}", shown(reason)))
}

fn unexpected(name: &str, record: &Record<'_>) -> End {
    let kind = match record {
        Record::Welcome { .. } => "a Welcome",
        Record::Refused { .. } => "a Refused",
        Record::Data { .. } => "a frame",
        Record::Ack { .. } => "an Ack",
        Record::Ping => "a Ping",
        Record::Goodbye => "a Goodbye",
    };
    End::Hostile(format!("{name} sent {kind} out of turn"))
}
