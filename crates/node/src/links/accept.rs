//! The receiving side of a link: lets peers in, and hands their frames over.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::CertificateDer;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::LinkChange;
use super::connection::{Stream, in_time, quoted, read_hello, refuse, take};
use super::frame::{Decoder, Hello, RECORD_BYTES_MAX, Record};
use super::receive::{Inbox, Receiving, Unacknowledged};
use super::shared::{End, Shared, lock};
use super::status::count;
use crate::identity::Identity;

/// When the system has no more sockets to give, asking again at once would only burn time.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The listener's task.
pub(super) async fn listen(shared: Arc<Shared>, listener: TcpListener) {
    let places = Arc::new(Semaphore::new(shared.limits().unauthenticated_max));
    loop {
        let accepted = tokio::select! {
            biased;
            () = shared.stop.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        match (accepted, places.clone().try_acquire_owned()) {
            (Ok((tcp, from)), Ok(place)) => {
                count(&shared.totals.accepted);
                let serving = serve(shared.clone(), tcp, from, place);
                shared.tasks.spawn(serving);
            }
            (Ok((_, from)), Err(_)) => {
                count(&shared.totals.turned_away);
                let limit = shared.limits().unauthenticated_max;
                shared.notes.log(&format!(
                    "connection from {from} turned away: {limit} others are in their handshake"
                ));
            }
            (Err(error), _) => {
                shared
                    .notes
                    .log(&format!("cannot accept a connection: {error}"));
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn serve(shared: Arc<Shared>, tcp: TcpStream, from: SocketAddr, place: OwnedSemaphorePermit) {
    let name = from.to_string();
    let limit = shared.limits().handshake;
    let mut greeting = Greeting {
        shared: &shared,
        peer: None,
        stream: None,
    };
    let greeted = tokio::select! {
        biased;
        () = shared.stop.cancelled() => return,
        greeted = in_time(limit, &name, greeting.greet(tcp, &name)) => greeted,
    };
    let (peer, stream) = (greeting.peer, greeting.stream);
    match greeted {
        Ok(receiving) => {
            drop(place);
            // Boxed, so that it is not paid for by connections that do not come so far.
            let (end, stream) = Box::pin(receiving.run()).await;
            closed(&shared, peer, from, stream, end).await;
        }
        // It keeps its place until it is gone.
        Err(end) => closed(&shared, peer, from, stream, end).await,
    }
}

/// Counts and tells how a connection ended, also to the peer.
async fn closed(
    shared: &Shared,
    peer: Option<usize>,
    from: SocketAddr,
    stream: Option<Stream>,
    end: End,
) {
    let reason = match &end {
        End::Ours => return,
        End::Failed(reason) | End::Refused(reason) | End::Hostile(reason) => reason,
    };
    match &end {
        End::Refused(_) => count(&shared.totals.refused),
        End::Hostile(_) => count(&shared.totals.hostile),
        _ => {}
    }
    if let Some(peer) = peer {
        let mut state = lock(&shared.peers[peer].incoming.state);
        let last = state.last_error.replace(reason.clone());
        drop(state);
        // It is told once, not at every try.
        if matches!(end, End::Refused(_)) && last.as_ref() != Some(reason) {
            let reason = reason.clone();
            let change = LinkChange::Refused { reason };
            shared.handler.link_changed(peer, change);
        }
    }
    if matches!(end, End::Failed(_)) {
        shared
            .notes
            .log(&format!("connection from {from} closed: {reason}"));
        return;
    }
    shared.notes.refusal(from, reason);
    if let Some(stream) = stream {
        refuse(stream, reason).await;
    }
}

/// A handshake, with what is known so far if it fails.
struct Greeting<'a> {
    shared: &'a Arc<Shared>,
    peer: Option<usize>,
    stream: Option<Stream>,
}

impl Greeting<'_> {
    async fn greet(&mut self, tcp: TcpStream, from: &str) -> Result<Receiving, End> {
        let settings = &self.shared.settings;
        let (stream, shown) = take(&settings.security, tcp).await?;
        let stream = self.stream.insert(stream);
        let hello = read_hello(stream, from, |record| match record {
            Record::Hello(hello) => Ok(hello),
            _ => Err(End::Hostile(format!("{from} did not begin with a Hello"))),
        });
        let (hello, decoder) = hello.await?;
        if let Some(shown) = shown {
            check_certificate(&shown, &hello.from).map_err(End::Refused)?;
        }
        let peer = self.check_hello(&hello).map_err(End::Refused)?;
        self.peer = Some(peer);
        self.check_configuration(&hello).map_err(End::Refused)?;
        self.admit(peer, hello, decoder).await
    }

    fn check_hello(&self, hello: &Hello) -> Result<usize, String> {
        let (settings, from) = (&self.shared.settings, quoted(&hello.from));
        match self.shared.places.get(&hello.from) {
            Some(&peer) if hello.from != settings.me => Ok(peer),
            Some(_) => Err(format!(
                "node {from} calls itself as this node is called; give each node its own name"
            )),
            None => Err(format!(
                "node {from} is not in the roster of node {}; all nodes need the same roster",
                settings.me
            )),
        }
    }

    fn check_configuration(&self, hello: &Hello) -> Result<(), String> {
        let settings = &self.shared.settings;
        let (me, from) = (&settings.me, &hello.from);
        if hello.to != *me {
            let to = quoted(&hello.to);
            return Err(format!(
                "node {from} looks for node {to} at the address of node {me}; correct its roster"
            ));
        }
        if hello.fingerprint != settings.fingerprint {
            let (mine, theirs) = (short(&settings.fingerprint), short(&hello.fingerprint));
            return Err(format!(
                "the configurations differ: node {me} has fingerprint {mine}, node {from} has {theirs}; \
                 give all nodes the same roster, algorithms and patterns"
            ));
        }
        Ok(())
    }

    /// Takes the place of an earlier connection of the same peer, and says Welcome.
    async fn admit(
        &mut self,
        peer: usize,
        hello: Hello,
        mut decoder: Decoder,
    ) -> Result<Receiving, End> {
        let incoming = &self.shared.peers[peer].incoming;
        let token = CancellationToken::new();
        {
            let mut state = lock(&incoming.state);
            state.check(&hello).map_err(End::Refused)?;
            std::mem::replace(&mut state.connection, token.clone()).cancel();
        }
        let turn = tokio::select! {
            biased;
            () = token.cancelled() => return Err(End::Ours),
            turn = incoming.turn.clone().lock_owned() => turn,
        };
        let (window, generation) = {
            let mut state = lock(&incoming.state);
            if token.is_cancelled() {
                return Err(End::Ours);
            }
            state.check(&hello).map_err(End::Refused)?;
            state.adopt(&hello);
            (state.window, state.generation)
        };
        decoder.set_limit(RECORD_BYTES_MAX);
        let stream = self.stream.take().expect("the Hello came over it");
        let receiving = Receiving {
            shared: self.shared.clone(),
            peer,
            stream: Some(stream),
            decoder,
            token,
            inbox: Inbox {
                window,
                generation,
                bytes: 0,
                unacknowledged: Unacknowledged::default(),
            },
            _turn: turn,
        };
        receiving.welcome().await
    }
}

/// The certificate's own name counts, not any other that it may be good for.
fn check_certificate(shown: &[CertificateDer<'_>], claimed: &str) -> Result<(), String> {
    let certified = Identity::peer_name(shown).map_err(|error| error.to_string())?;
    if certified == claimed {
        return Ok(());
    }
    let claimed = quoted(claimed);
    Err(format!(
        "it calls itself {claimed}, and its certificate is that of node {certified}; \
         a node must use its own certificate"
    ))
}

/// The first digits, enough to tell two configurations apart.
fn short(fingerprint: &[u8; 32]) -> String {
    let digits = fingerprint[..4].iter();
    digits.map(|byte| format!("{byte:02x}")).collect()
}
