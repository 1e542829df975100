//! The listener. Accepts connections from peers and passes connections that are not links to the
//! handler.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};

use super::connection::{close_with, in_time};
use super::frame::{Decoder, RECORD_BYTES_MAX, Record};
use super::peer::PeerState;
use super::receive::{Inbox, Receiving, Unacknowledged};
use super::shared::{End, Shared, lock};
use super::status::count;
use super::{LinkChange, Serving};
use crate::{
    Arrival, Code, ConnectionError, Declined, Purpose, Refusal, Stranger, Strangers, Turns,
};
use soloist_api::NodeName;
use soloist_core::Incarnation;

/// Pause after a failed accept. When the system is out of sockets, an immediate retry would only
/// burn CPU.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Task that accepts incoming connections until the links stop.
pub(super) async fn listen(shared: Arc<Shared>, listener: TcpListener) {
    let strangers = Strangers::new(shared.limits().unauthenticated_max);
    let mut turns = Turns::default();
    loop {
        let accepted = tokio::select! {
            biased;
            () = shared.stop.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((tcp, from)) => {
                count(&shared.totals.accepted);
                let Some(stranger) = strangers.admit(&tcp).await else {
                    continue;
                };
                if stranger.displaces() {
                    count(&shared.totals.turned_away);
                    let limit = shared.limits().unauthenticated_max;
                    shared.notes.log(&format!(
                        "the oldest of {limit} connections in their handshake was closed to \
                         accept one from {from}; if these are not nodes, block them with a \
                         firewall"
                    ));
                }
                let serving = serve(shared.clone(), tcp, from, stranger);
                shared.tasks.spawn(serving);
                turns.take().await;
            }
            Err(error) => {
                shared
                    .notes
                    .log(&format!("cannot accept a connection: {error}"));
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn serve(shared: Arc<Shared>, tcp: TcpStream, from: SocketAddr, stranger: Stranger) {
    let name = from.to_string();
    let limit = shared.limits().handshake;
    let mut greeting = Greeting {
        shared: &shared,
        stranger: &stranger,
        peer: None,
    };
    let greeted = tokio::select! {
        biased;
        () = shared.stop.cancelled() => return,
        () = stranger.closed() => return,
        greeted = in_time(limit, &name, greeting.greet(tcp, &name)) => greeted,
    };
    let peer = greeting.peer;
    match greeted {
        Ok(Greeted::Link(receiving)) => {
            drop(stranger);
            // Boxed, so that connections that never complete their handshake do not pay for its
            // size.
            let (end, stream) = Box::pin(receiving.run()).await;
            note(&shared, peer, from, &end);
            if let (Some(stream), End::Refused(reason) | End::Hostile(reason)) = (stream, &end) {
                close_with(stream, Record::Refused { reason }).await;
            }
        }
        Ok(Greeted::Service(serving)) => {
            drop(stranger);
            tokio::select! {
                biased;
                () = shared.stop.cancelled() => {}
                () = serving => {}
            }
        }
        Ok(Greeted::Overtaken) => {}
        // It counts as unauthenticated until the refusal was delivered or it is displaced.
        Err(declined) => {
            note(&shared, peer, from, &declined.error.clone().into());
            tokio::select! {
                () = stranger.closed() => {}
                () = shared.settings.endpoint.dismiss(declined) => {}
            }
        }
    }
}

/// Counts and logs how an incoming connection ended, and reports refusals to the handler.
fn note(shared: &Shared, peer: Option<Arc<PeerState>>, from: SocketAddr, end: &End) {
    let reason = match end {
        End::Ours => return,
        End::Later(reason)
        | End::Failed(reason)
        | End::Goodbye(reason)
        | End::Refused(reason)
        | End::Hostile(reason) => reason,
    };
    let line = format!("connection from {from} closed: {reason}");
    match end {
        End::Refused(_) => count(&shared.totals.refused),
        End::Hostile(_) => count(&shared.totals.hostile),
        // The link to a known peer breaks too, which is reported there.
        End::Failed(_) if peer.is_some() => shared.notes.debug(&line),
        End::Failed(_) => shared.notes.about(&from.ip().to_string(), reason, &line),
        End::Goodbye(_) | End::Later(_) | End::Ours => shared.notes.debug(&line),
    }
    if matches!(end, End::Refused(_) | End::Hostile(_)) {
        shared.notes.refusal(from, reason);
    }
    if let Some(peer) = peer.filter(|_| !matches!(end, End::Later(_))) {
        let mut state = lock(&peer.incoming.state);
        let before = state.last_error.replace(reason.clone());
        drop(state);
        // Report a refusal once, not at every retry.
        if matches!(end, End::Refused(_)) && before.as_ref() != Some(reason) {
            let reason = reason.clone();
            let change = LinkChange::Refused { reason };
            shared.handler.link_changed(&peer.name, change);
        }
    }
}

/// Outcome of a handshake.
enum Greeted {
    Link(Receiving),
    Service(Serving),
    /// A newer connection from the same peer replaced this one during the handshake.
    Overtaken,
}

/// The fields of a link's hello.
pub(super) struct LinkHello {
    pub from: NodeName,
    pub fingerprint: [u8; 32],
    pub incarnation: Incarnation,
    pub to_incarnation: Option<Incarnation>,
}

/// A handshake in progress. It remembers the peer, so that a failure can be attributed to it.
struct Greeting<'a> {
    shared: &'a Arc<Shared>,
    stranger: &'a Stranger,
    peer: Option<Arc<PeerState>>,
}

impl Greeting<'_> {
    async fn greet(&mut self, tcp: TcpStream, from: &str) -> Result<Greeted, Declined> {
        first_bytes(&tcp, from, self.shared.limits().first_bytes).await?;
        self.stranger.speaks();
        let endpoint = &self.shared.settings.endpoint;
        let (stream, certified) = endpoint.take(tcp).await?;
        let arrival = endpoint.greet(stream, certified.as_ref(), from).await?;
        let Purpose::Link {
            fingerprint,
            incarnation,
            to_incarnation,
        } = arrival.hello.purpose
        else {
            return self.shared.handler.serve(arrival).map(Greeted::Service);
        };
        let hello = LinkHello {
            from: arrival.hello.from.clone(),
            fingerprint,
            incarnation,
            to_incarnation,
        };
        match self.check_hello(&hello) {
            Ok(peer) => self.admit(peer, arrival).await,
            Err(refusal) => Err(arrival.decline(refusal)),
        }
    }

    fn check_hello(&mut self, hello: &LinkHello) -> Result<Arc<PeerState>, Refusal> {
        let settings = &self.shared.settings;
        let (me, from) = (&settings.endpoint.name, &hello.from);
        if from == me {
            return Err(Refusal::new(
                Code::Name,
                format!("node {from} has the same name as this node; give each node its own name"),
            ));
        }
        let roster = self.shared.roster().clone();
        self.peer = roster.named(from.as_str()).cloned();
        if hello.fingerprint != settings.fingerprint {
            let (mine, theirs) = (short(&settings.fingerprint), short(&hello.fingerprint));
            let reason = format!(
                "the configurations differ: node {me} has fingerprint {mine}, node {from} has \
                 {theirs}; give all nodes the same lease, drift, algorithms and patterns"
            );
            return Err(Refusal::new(Code::Configuration, reason));
        }
        let peer = roster.admit(hello).cloned();
        peer.map_err(|reason| Refusal::new(Code::Later, reason))
    }

    /// Replaces an earlier connection from the same peer and sends Welcome.
    async fn admit(&mut self, peer: Arc<PeerState>, arrival: Arrival) -> Result<Greeted, Declined> {
        let incoming = &peer.incoming;
        let token = peer.gone.child_token();
        std::mem::replace(&mut lock(&incoming.state).connection, token.clone()).cancel();
        let turn = tokio::select! {
            biased;
            () = token.cancelled() => return overtaken(&peer, arrival),
            turn = incoming.turn.clone().lock_owned() => turn,
        };
        // The guard of the state must be released before the connection is declined.
        let window = {
            let mut state = lock(&incoming.state);
            (!token.is_cancelled()).then(|| state.open())
        };
        let Some(window) = window else {
            return overtaken(&peer, arrival);
        };
        let receiving = Receiving {
            shared: self.shared.clone(),
            peer,
            stream: None,
            decoder: Decoder::new(RECORD_BYTES_MAX),
            token,
            inbox: Inbox {
                window,
                bytes: 0,
                unacknowledged: Unacknowledged::default(),
            },
            _turn: turn,
        };
        Ok(Greeted::Link(receiving.welcome(arrival).await?))
    }
}

/// Waits until the first byte has arrived. The dialling side speaks first, and immediately.
async fn first_bytes(tcp: &TcpStream, from: &str, limit: Duration) -> Result<(), ConnectionError> {
    match timeout(limit, tcp.peek(&mut [0])).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) => Err(ConnectionError::Failed(error.to_string())),
        Err(_) => Err(ConnectionError::Failed(format!(
            "{from} sent nothing within {limit:?} of connecting"
        ))),
    }
}

/// Ends a handshake whose hello was valid but whose connection was replaced, or whose peer has left
/// the list since.
fn overtaken(peer: &PeerState, arrival: Arrival) -> Result<Greeted, Declined> {
    if !peer.gone.is_cancelled() {
        return Ok(Greeted::Overtaken);
    }
    let reason = format!("node {} is no longer a member", peer.name);
    Err(arrival.decline(Refusal::new(Code::Later, reason)))
}

/// Returns the first digits, enough to tell two configurations apart.
fn short(fingerprint: &[u8; 32]) -> String {
    let digits = fingerprint[..4].iter();
    digits.map(|byte| format!("{byte:02x}")).collect()
}
