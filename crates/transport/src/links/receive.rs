//! An incoming connection after its handshake: frames in, acknowledgements out.

use std::io;
use std::sync::Arc;

use tokio::io::AsyncReadExt;
use tokio::sync::OwnedMutexGuard;
use tokio::time::{Instant, interval, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::connection::{broken, closed_by, foreign, left};
use super::frame::{Decoder, Record, Records};
use super::peer::PeerState;
use super::settings::Limits;
use super::shared::{End, Shared, lock};
use super::window::ReceiveWindow;
use crate::{Arrival, ConnectionError, Stream, shown, write};

/// The one connection of a peer that may pass frames to the handler.
pub(super) struct Receiving {
    pub shared: Arc<Shared>,
    pub peer: Arc<PeerState>,
    /// Set by `welcome`, and taken when the connection ends.
    pub stream: Option<Stream>,
    pub decoder: Decoder,
    /// Cancelled when a later connection takes over, when the peer leaves the list, and when all
    /// links stop.
    pub token: CancellationToken,
    pub inbox: Inbox,
    /// Released last, after the window was stored.
    pub _turn: OwnedMutexGuard<()>,
}

/// Progress of this connection. It owns the window while it has the turn, so no lock is held while
/// the handler runs, and none is taken per frame.
pub(super) struct Inbox {
    pub window: ReceiveWindow,
    pub bytes: u64,
    pub unacknowledged: Unacknowledged,
}

#[derive(Default)]
pub(super) struct Unacknowledged {
    frames: usize,
    bytes: usize,
    /// The peer sent a Ping, or the delay for an acknowledgement is over.
    pinged: bool,
}

impl Unacknowledged {
    fn is_due(&self, limits: &Limits) -> bool {
        self.pinged || self.frames >= limits.ack_frames || self.bytes >= limits.ack_bytes
    }
}

/// Stores the window even if the handler panics, so that a frame already delivered is not delivered
/// again.
impl Drop for Receiving {
    fn drop(&mut self) {
        self.store(false);
    }
}

impl Receiving {
    fn name(&self) -> &str {
        &self.peer.name
    }

    fn stream(&mut self) -> &mut Stream {
        self.stream.as_mut().expect("the stream is taken last")
    }

    /// Stores the progress of the connection in the peer's state.
    fn store(&mut self, up: bool) {
        let bytes = std::mem::take(&mut self.inbox.bytes);
        let mut state = lock(&self.peer.incoming.state);
        state.advance(self.inbox.window, bytes, &self.shared.totals);
        state.up = up;
    }

    pub(super) async fn welcome(mut self, arrival: Arrival) -> Result<Self, ConnectionError> {
        let mut bytes = Vec::new();
        Record::Welcome {
            incarnation: self.peer.mine,
            next: self.inbox.window.next(),
        }
        .encode(&mut bytes);
        match arrival.welcome(&bytes).await {
            Ok(stream) => {
                self.stream = Some(stream);
                Ok(self)
            }
            Err(error) => Err(crate::broken(self.name(), &error)),
        }
    }

    /// Receives until the connection ends. Returns the stream, so that the caller can send a last
    /// record.
    pub(super) async fn run(mut self) -> (End, Option<Stream>) {
        let end = self.receive().await;
        let stream = self.stream.take();
        (end, stream)
    }

    async fn receive(&mut self) -> End {
        let shared = self.shared.clone();
        let token = self.token.clone();
        // Created once: each `cancelled()` takes a lock that all connections share.
        let mut cancelled = std::pin::pin!(token.cancelled());
        let limits = shared.limits();
        let mut watch = interval(limits.probe_every);
        let mut heard = Instant::now();
        let mut ack_timer = std::pin::pin!(sleep(limits.ack_delay));
        loop {
            // The dialling node may have sent frames directly after what was read so far.
            let mut end = self.hand_over();
            if self.inbox.unacknowledged.is_due(limits) {
                tokio::select! {
                    biased;
                    written = self.acknowledge(limits) => if let Err(error) = written {
                        end.get_or_insert(broken(self.name(), &error));
                    },
                    // The Ack may be half written, so no Goodbye can follow it.
                    () = &mut cancelled => return End::Ours,
                }
            } else if self.inbox.unacknowledged.frames > 0 && ack_timer.is_elapsed() {
                ack_timer.as_mut().reset(Instant::now() + limits.ack_delay);
            }
            if let Some(end) = end {
                return end;
            }
            let waiting = self.inbox.unacknowledged.frames > 0;
            let stream = self.stream.as_mut().expect("the stream is taken last");
            tokio::select! {
                biased;
                () = &mut cancelled => return self.send_goodbye().await,
                read = stream.read_buf(self.decoder.space()) => match read {
                    Ok(0) => return closed_by(self.name()),
                    Ok(bytes) => {
                        heard = Instant::now();
                        self.inbox.bytes += bytes as u64;
                    }
                    Err(error) => return broken(self.name(), &error),
                },
                () = &mut ack_timer, if waiting => self.inbox.unacknowledged.pinged = true,
                _ = watch.tick() => if heard.elapsed() > limits.silence_max {
                    let silence = heard.elapsed().as_secs_f64();
                    let name = self.name();
                    return End::Failed(format!("{name} was silent for {silence:.1} s"));
                }
            }
        }
    }

    /// Passes all frames that have arrived to the handler, in one call.
    fn hand_over(&mut self) -> Option<End> {
        if self.token.is_cancelled() {
            return None;
        }
        let name = &self.peer.name;
        let mut batch = Batch {
            records: self.decoder.records(),
            inbox: &mut self.inbox,
            name,
            first: None,
            end: None,
        };
        batch.first = batch.next();
        if batch.first.is_none() {
            let end = batch.end;
            self.store(true);
            return end;
        }
        let handled = self
            .shared
            .handler
            .receive(self.peer.incarnation, &mut batch);
        if handled.is_ok() {
            // A handler that returns `Ok` has taken all frames.
            batch.by_ref().for_each(drop);
        }
        let end = match handled {
            Ok(()) => batch.end,
            Err(reason) => Some(End::Hostile(format!("{name}: {reason}"))),
        };
        self.store(true);
        end
    }

    async fn acknowledge(&mut self, limits: &Limits) -> io::Result<()> {
        self.inbox.unacknowledged = Unacknowledged::default();
        let mut bytes = Vec::with_capacity(16);
        let up_to = self.inbox.window.received();
        Record::Ack { up_to }.encode(&mut bytes);
        // A peer that does not read acknowledgements would otherwise block this write, and with it
        // the reading of its own frames.
        timeout(limits.silence_max, write(self.stream(), &bytes)).await?
    }

    /// Sends Goodbye, unless a newer connection takes over.
    async fn send_goodbye(&mut self) -> End {
        if !self.peer.gone.is_cancelled() {
            return End::Ours;
        }
        let mut bytes = Vec::new();
        let up_to = self.inbox.window.received();
        Record::Ack { up_to }.encode(&mut bytes);
        Record::Goodbye.encode(&mut bytes);
        let limit = self.shared.limits().probe_every;
        // The connection ends whether or not the peer receives this.
        let _ = timeout(limit, write(self.stream(), &bytes)).await;
        End::Ours
    }
}

/// Iterates over the new frames of a read, and handles other records on the way.
struct Batch<'a> {
    records: Records<'a>,
    inbox: &'a mut Inbox,
    name: &'a str,
    /// The first frame. It is looked up first because the handler is called only if there is one.
    first: Option<&'a [u8]>,
    end: Option<End>,
}

impl<'a> Iterator for Batch<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        while self.end.is_none() {
            let record = match self.records.next()? {
                Ok(record) => record,
                Err(error) => {
                    self.end = Some(foreign(self.name, &error));
                    return None;
                }
            };
            if let Some(payload) = self.note(record) {
                return Some(payload);
            }
        }
        None
    }
}

impl<'a> Batch<'a> {
    fn note(&mut self, record: Record<'a>) -> Option<&'a [u8]> {
        let name = self.name;
        match record {
            Record::Data { number, payload } => match self.inbox.window.accept(number) {
                Ok(new) => {
                    self.inbox.unacknowledged.frames += 1;
                    self.inbox.unacknowledged.bytes += payload.len();
                    return new.then_some(payload);
                }
                Err(error) => self.end = Some(End::Hostile(format!("{name}: {error}"))),
            },
            Record::Ping => self.inbox.unacknowledged.pinged = true,
            Record::Goodbye => self.end = Some(left(name)),
            Record::Refused { reason } => {
                let reason = shown(reason);
                self.end = Some(End::Failed(format!("{name} refused: {reason}")));
            }
            Record::Welcome { .. } | Record::Ack { .. } => {
                let reason = format!("{name} sent a record that only a receiver may send");
                self.end = Some(End::Hostile(reason));
            }
        }
        None
    }
}
