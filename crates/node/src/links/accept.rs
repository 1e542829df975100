//! The listener: lets peers in, and hands on connections that are no links.

use std::io::Cursor;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::CertificateDer;
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::sleep;

use super::connection::{Stream, in_time, quoted, read_bytes, read_hello, refuse, take};
use super::frame::{Decoder, Hello, MAGIC, RECORD_BYTES_MAX, Record};
use super::peer::PeerState;
use super::receive::{Inbox, Receiving, Unacknowledged};
use super::shared::{End, Shared, lock};
use super::status::count;
use super::{LinkChange, Serving};
use crate::config::NodeName;
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
        Ok(Greeted::Link(receiving)) => {
            drop(place);
            // Boxed, so that it is not paid for by connections that do not come so far.
            let (end, stream) = Box::pin(receiving.run()).await;
            closed(&shared, peer, from, stream, end).await;
        }
        Ok(Greeted::Service(serving)) => {
            drop(place);
            tokio::select! {
                biased;
                () = shared.stop.cancelled() => {}
                () = serving => {}
            }
        }
        // It keeps its place until it is gone.
        Err(end) => closed(&shared, peer, from, stream, end).await,
    }
}

/// Counts and tells how a connection ended, also to the peer.
async fn closed(
    shared: &Shared,
    peer: Option<Arc<PeerState>>,
    from: SocketAddr,
    stream: Option<Stream>,
    end: End,
) {
    let (reason, last) = match &end {
        End::Ours => return,
        End::Later(reason) => (reason, Some(Record::Later)),
        End::Failed(reason) | End::Goodbye(reason) => (reason, None),
        End::Refused(reason) | End::Hostile(reason) => (reason, Some(Record::Refused { reason })),
    };
    let line = format!("connection from {from} closed: {reason}");
    match &end {
        End::Refused(_) => count(&shared.totals.refused),
        End::Hostile(_) => count(&shared.totals.hostile),
        End::Failed(_) => shared.notes.log(&line),
        End::Goodbye(_) | End::Later(_) | End::Ours => shared.notes.debug(&line),
    }
    if matches!(end, End::Refused(_) | End::Hostile(_)) {
        shared.notes.refusal(from, reason);
    }
    if let Some(peer) = peer.filter(|_| !matches!(end, End::Later(_))) {
        let mut state = lock(&peer.incoming.state);
        let before = state.last_error.replace(reason.clone());
        drop(state);
        // It is told once, not at every try.
        if matches!(end, End::Refused(_)) && before.as_ref() != Some(reason) {
            let reason = reason.clone();
            let change = LinkChange::Refused { reason };
            shared.handler.link_changed(&peer.name, change);
        }
    }
    if let (Some(stream), Some(last)) = (stream, last) {
        refuse(stream, last).await;
    }
}

/// What came of a handshake.
enum Greeted {
    Link(Receiving),
    Service(Serving),
}

/// A handshake, with what is known so far if it fails.
struct Greeting<'a> {
    shared: &'a Arc<Shared>,
    peer: Option<Arc<PeerState>>,
    stream: Option<Stream>,
}

impl Greeting<'_> {
    async fn greet(&mut self, tcp: TcpStream, from: &str) -> Result<Greeted, End> {
        let (stream, shown) = take(&self.shared.settings.security, tcp).await?;
        let stream = self.stream.insert(stream);
        let certified = match shown {
            Some(shown) => Some(certified_name(&shown).map_err(End::Refused)?),
            None => None,
        };
        let begin: [u8; 4] = read_bytes(stream, from).await?;
        if begin == MAGIC {
            let rest: [u8; 4] = read_bytes(stream, from).await?;
            return self.hand_on(begin, rest, certified);
        }
        let hello = read_hello(stream, from, &begin, |record| match record {
            Record::Hello(hello) => Ok(hello),
            _ => Err(End::Hostile(format!("{from} did not begin with a Hello"))),
        });
        let (hello, decoder) = hello.await?;
        if let Some(certified) = certified {
            check_certificate(&certified, &hello.from).map_err(End::Refused)?;
        }
        let peer = self.check_hello(&hello)?;
        let receiving = self.admit(peer, hello, decoder).await?;
        Ok(Greeted::Link(receiving))
    }

    /// It is no link: the handler may know what to do with it.
    fn hand_on(
        &mut self,
        begin: [u8; 4],
        rest: [u8; 4],
        certified: Option<NodeName>,
    ) -> Result<Greeted, End> {
        let mut preface = [0; 8];
        preface[..4].copy_from_slice(&begin);
        preface[4..].copy_from_slice(&rest);
        let stream = self.stream.take().expect("the preface came over it");
        let (reader, writer) = tokio::io::split(stream);
        let reader = Cursor::new(preface).chain(reader);
        let stream = Box::new(tokio::io::join(reader, writer));
        let serving = self.shared.handler.serve(preface, certified, stream);
        serving.map(Greeted::Service).map_err(End::Refused)
    }

    fn check_hello(&mut self, hello: &Hello) -> Result<Arc<PeerState>, End> {
        let (me, from) = (&self.shared.settings.me, quoted(&hello.from));
        if hello.from == *me {
            return Err(End::Refused(format!(
                "node {from} calls itself as this node is called; give each node its own name"
            )));
        }
        let roster = self.shared.roster().clone();
        self.peer = roster.named(&hello.from).cloned();
        if self.peer.is_none() && roster.is_fixed {
            return Err(End::Refused(format!(
                "node {from} is not in the roster of node {me}; all nodes need the same roster"
            )));
        }
        self.check_configuration(hello).map_err(End::Refused)?;
        roster.admit(hello).cloned().map_err(End::Later)
    }

    fn check_configuration(&self, hello: &Hello) -> Result<(), String> {
        let settings = &self.shared.settings;
        let (me, from) = (&settings.me, quoted(&hello.from));
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
        peer: Arc<PeerState>,
        hello: Hello,
        mut decoder: Decoder,
    ) -> Result<Receiving, End> {
        let incoming = &peer.incoming;
        let token = peer.gone.child_token();
        {
            let mut state = lock(&incoming.state);
            state.check(&hello).map_err(End::Refused)?;
            std::mem::replace(&mut state.connection, token.clone()).cancel();
        }
        let turn = tokio::select! {
            biased;
            () = token.cancelled() => return Err(overtaken(&peer)),
            turn = incoming.turn.clone().lock_owned() => turn,
        };
        let window = {
            let mut state = lock(&incoming.state);
            if token.is_cancelled() {
                return Err(overtaken(&peer));
            }
            state.check(&hello).map_err(End::Refused)?;
            state.adopt(&hello);
            state.window
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
                bytes: 0,
                unacknowledged: Unacknowledged::default(),
            },
            _turn: turn,
        };
        receiving.welcome().await
    }
}

/// Why a connection does not come in, although its Hello was right when it was looked at.
fn overtaken(peer: &PeerState) -> End {
    match peer.gone.is_cancelled() {
        true => End::Later(format!("the list without node {} came", peer.name)),
        false => End::Ours,
    }
}

/// The certificate's own name counts, not any other that it may be good for.
fn certified_name(shown: &[CertificateDer<'_>]) -> Result<NodeName, String> {
    let name = Identity::peer_name(shown).map_err(|error| error.to_string())?;
    NodeName::try_from(name).map_err(|error| error.to_string())
}

fn check_certificate(certified: &NodeName, claimed: &str) -> Result<(), String> {
    if certified.as_str() == claimed {
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
