//! The sending side of a link: dials the peer, and keeps at it for as long as the node lives.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::time::{Instant, interval, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::LinkChange;
use super::backoff::Backoff;
use super::connection::{
    Stream, broken, dial, foreign, in_time, quoted, read_hello, refuse, write,
};
use super::frame::{Decoder, Hello, RECORD_BYTES_MAX, Record};
use super::shared::{End, Outgoing, Shared, lock};
use super::status::count;

/// How long a writer may take to finish its write and say goodbye.
const GOODBYE: Duration = Duration::from_millis(500);

/// A link's task. It begins with the first frame, so a peer that is never sent anything is never dialled.
pub(super) async fn keep_link(shared: Arc<Shared>, peer: usize) {
    let mut link = Link {
        backoff: Backoff::new(shared.limits().retry_min, shared.limits().retry_max),
        told: None,
        shared,
        peer,
    };
    let stop = link.shared.stop.clone();
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = first_frame(&link.shared.peers[peer].outgoing) => {}
        }
        // Boxed, so that the many links that were never needed stay small.
        let end = Box::pin(link.connect_once()).await;
        link.ended(end);
        let pause = link.backoff.next(rand::random());
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = sleep(pause) => {}
        }
    }
}

/// Waits until the link was given a frame since it began anew.
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
    peer: usize,
    backoff: Backoff,
    /// What the handler was told last: it is told changes, not every try.
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
        &self.shared.peers[self.peer].outgoing
    }

    fn name(&self) -> &str {
        self.shared.name(self.peer)
    }

    fn tell(&mut self, change: LinkChange) {
        let known = match (&self.told, &change) {
            // That the next try fails in another way is no change.
            (Some(LinkChange::Down { .. }), LinkChange::Down { .. }) => true,
            (told, change) => told.as_ref() == Some(change),
        };
        if !known {
            self.shared.handler.link_changed(self.peer, change.clone());
            self.told = Some(change);
        }
    }

    /// Dials, and sends until the connection ends.
    async fn connect_once(&mut self) -> End {
        count(&self.shared.totals.dialled);
        let token = CancellationToken::new();
        let stream = {
            let mut state = lock(&self.outgoing().state);
            state.connection = token.clone();
            state.stream
        };
        let limit = self.shared.limits().handshake;
        let open = tokio::select! {
            biased;
            () = self.shared.stop.cancelled() => return End::Ours,
            () = token.cancelled() => return End::Ours,
            open = in_time(limit, self.name(), self.handshake(stream, &token)) => open,
        };
        match open {
            Err(end) => end,
            Ok(open) => {
                self.backoff.reset();
                self.tell(LinkChange::Up);
                self.run(open, token).await
            }
        }
    }

    async fn handshake(&self, stream: u64, token: &CancellationToken) -> Result<Open, End> {
        let settings = &self.shared.settings;
        let name = self.name();
        let address = &settings.peers[self.peer].address;
        let mut connection =
            dial(&settings.security, name, address, settings.limits.handshake).await?;
        let mut bytes = Vec::new();
        let hello = Hello {
            incarnation: settings.incarnation,
            stream,
            epoch: settings.epoch,
            fingerprint: settings.fingerprint,
            from: settings.me.clone(),
            to: name.to_owned(),
        };
        Record::Hello(hello).encode(&mut bytes);
        // If this fails, the read tells why: the peer may have refused the certificate meanwhile.
        let wrote = write(&mut connection, &bytes).await;
        let answer = read_hello(&mut connection, name, |record| match record {
            Record::Welcome { incarnation, next } => Ok((incarnation, next)),
            Record::Refused { reason } => Err(refused_by(name, reason)),
            other => Err(unexpected(name, &other)),
        });
        let ((incarnation, next), mut decoder) = answer.await?;
        wrote.map_err(|error| broken(name, &error))?;
        let begun = {
            let mut state = lock(&self.outgoing().state);
            if token.is_cancelled() {
                return Err(End::Ours);
            }
            let begun = state.begin(name, incarnation, next);
            state.up = begun.is_ok();
            if begun.is_ok() {
                state.last_error = None;
            }
            begun
        };
        if let Err(reason) = begun {
            refuse(connection, &reason).await;
            return Err(End::Refused(reason));
        }
        decoder.set_limit(RECORD_BYTES_MAX);
        let (reader, writer) = tokio::io::split(connection);
        Ok(Open {
            reader,
            writer,
            decoder,
        })
    }

    async fn run(&self, mut open: Open, token: CancellationToken) -> End {
        let mut reading = std::pin::pin!(self.read(&mut open.reader, &mut open.decoder, &token));
        let stopped = async {
            self.shared.stop.cancelled().await;
            sleep(GOODBYE).await;
        };
        let end = tokio::select! {
            biased;
            () = token.cancelled() => End::Ours,
            end = &mut reading => end,
            end = self.write(&mut open.writer, &token) => match end {
                // The peer may have said why before it closed.
                End::Failed(_) => timeout(GOODBYE, reading).await.unwrap_or(end),
                _ => end,
            },
            () = stopped => End::Ours,
        };
        lock(&self.outgoing().state).up = false;
        end
    }

    /// Writes what is there to be sent, all of it at once; a Ping when there was nothing for a while.
    async fn write(&self, writer: &mut WriteHalf<Stream>, token: &CancellationToken) -> End {
        let limits = self.shared.limits();
        let mut probe = interval(limits.probe_every);
        let mut stopped = std::pin::pin!(self.shared.stop.cancelled());
        let mut idle = false;
        let mut bytes = Vec::new();
        loop {
            bytes.clear();
            {
                let mut state = lock(&self.outgoing().state);
                if token.is_cancelled() {
                    return End::Ours;
                }
                state.window.take(limits.write_bytes, &mut bytes);
                state.bytes += bytes.len() as u64;
                state.waiting = bytes.is_empty();
                state.writes += u64::from(!bytes.is_empty());
            }
            let mut last = false;
            if bytes.is_empty() {
                tokio::select! {
                    biased;
                    () = self.outgoing().wake.notified() => continue,
                    () = &mut stopped => {
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
                // The connection ends here either way.
                let _ = writer.shutdown().await;
                return End::Ours;
            }
        }
    }

    /// Reads acknowledgements, until there is something else.
    async fn read(
        &self,
        reader: &mut ReadHalf<Stream>,
        decoder: &mut Decoder,
        token: &CancellationToken,
    ) -> End {
        let limits = self.shared.limits();
        let mut watch = interval(limits.probe_every);
        let mut heard = Instant::now();
        loop {
            for record in decoder.records() {
                let taken = match record {
                    Ok(record) => self.take(record, token),
                    Err(error) => Err(foreign(self.name(), &error)),
                };
                if let Err(end) = taken {
                    return end;
                }
            }
            tokio::select! {
                // What has arrived counts, also if this task was late to look.
                biased;
                read = reader.read_buf(decoder.space()) => match read {
                    Ok(0) => return End::Failed(format!("{} closed the connection", self.name())),
                    Ok(_) => heard = Instant::now(),
                    Err(error) => return broken(self.name(), &error),
                },
                _ = watch.tick() => if heard.elapsed() > limits.silence_max {
                    let silence = heard.elapsed().as_secs_f64();
                    let name = self.name();
                    return End::Failed(format!("no sign of life from {name} for {silence:.1} s"));
                }
            }
        }
    }

    fn take(&self, record: Record<'_>, token: &CancellationToken) -> Result<(), End> {
        let name = self.name();
        match record {
            Record::Ack { up_to } => {
                let mut state = lock(&self.outgoing().state);
                if token.is_cancelled() {
                    return Err(End::Ours);
                }
                let acknowledged = state.window.acknowledge(up_to);
                acknowledged.map_err(|error| End::Hostile(format!("{name}: {error}")))?;
                if state.window.is_empty() {
                    self.shared.drained.notify_one();
                }
                Ok(())
            }
            Record::Refused { reason } => Err(refused_by(name, reason)),
            Record::Goodbye => Err(End::Failed(format!("{name} said goodbye"))),
            other => Err(unexpected(name, &other)),
        }
    }

    /// Counts and tells how a connection ended.
    fn ended(&mut self, end: End) {
        match &end {
            End::Ours => {
                self.told = None;
                return;
            }
            End::Refused(_) => count(&self.shared.totals.refused_by_peers),
            End::Hostile(_) => count(&self.shared.totals.hostile),
            End::Failed(_) => {}
        }
        let (End::Failed(reason) | End::Refused(reason) | End::Hostile(reason)) = &end else {
            return;
        };
        let news = lock(&self.outgoing().state)
            .last_error
            .replace(reason.clone());
        if news.as_ref() != Some(reason) {
            let name = self.name();
            self.shared.notes.log(&format!("link to {name}: {reason}"));
        }
        if let Some(change) = end.change() {
            self.tell(change);
        }
    }
}

fn refused_by(name: &str, reason: &str) -> End {
    End::Refused(format!("{name} refused: {}", quoted(reason)))
}

fn unexpected(name: &str, record: &Record<'_>) -> End {
    let kind = match record {
        Record::Hello(_) => "a Hello",
        Record::Welcome { .. } => "a Welcome",
        Record::Refused { .. } => "a Refused",
        Record::Data { .. } => "a frame",
        Record::Ack { .. } => "an Ack",
        Record::Ping => "a Ping",
        Record::Goodbye => "a Goodbye",
    };
    End::Hostile(format!("{name} sent {kind}, which was not its turn"))
}
