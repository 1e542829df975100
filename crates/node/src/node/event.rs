//! Event stream of a node.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use soloist_api::{EndReason, Event, EventKind, LockName};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use super::Node;
use soloist_core::locks::{Denial, LockEvent};

/// The events of a node from the time of subscription, in order.
#[derive(Debug)]
pub struct Events {
    node: Node,
    receiver: broadcast::Receiver<Event>,
}

impl Node {
    /// Subscribes to the events of this node from now on.
    pub fn events(&self) -> Events {
        Events {
            node: self.clone(),
            receiver: self.shared.events.subscribe(),
        }
    }
}

impl Events {
    /// Waits for the next event. Returns `None` when the node has stopped. A subscriber that falls
    /// behind gets [`EventKind::Missed`] in place of the events it missed. Cancel safe.
    pub async fn next(&mut self) -> Option<Event> {
        let shared = &self.node.shared;
        let received = tokio::select! {
            biased;
            received = self.receiver.recv() => received,
            () = shared.stopped.cancelled() => return None,
        };
        match received {
            Ok(event) => Some(event),
            Err(RecvError::Lagged(missed)) => Some(Event {
                missed: Some(missed),
                ..empty(EventKind::Missed, shared.name())
            }),
            Err(RecvError::Closed) => None,
        }
    }
}

/// Converts a lock event of this time, in milliseconds since 1970, for subscribers.
pub(super) fn of(event: &LockEvent, at_unix_ms: u64, node: &str) -> Event {
    let mut event = untimed(event, node);
    event.at_unix_ms = at_unix_ms;
    event
}

fn untimed(event: &LockEvent, node: &str) -> Event {
    match event {
        LockEvent::Waiting { lock, owner, .. } => Event {
            lock: lock.to_string(),
            owner: owner.to_string(),
            ..empty(EventKind::Waiting, node)
        },
        LockEvent::Granted {
            grant,
            owner,
            waited,
            ..
        } => Event {
            lock: grant.lock.to_string(),
            owner: owner.to_string(),
            fence: Some(grant.fence),
            after_us: Some(microseconds(*waited)),
            ..empty(EventKind::Acquired, node)
        },
        LockEvent::Ended {
            lock,
            owner,
            fence,
            end,
            held,
            ..
        } => {
            let kind = if end.is_loss() {
                EventKind::Lost
            } else {
                EventKind::Released
            };
            Event {
                lock: lock.to_string(),
                owner: owner.to_string(),
                fence: Some(*fence),
                after_us: Some(microseconds(*held)),
                reason: end.is_loss().then_some(*end),
                ..empty(kind, node)
            }
        }
        LockEvent::Denied {
            lock,
            owner,
            waited,
            denial,
            ..
        } => Event {
            reason: match denial {
                Denial::NotGranted => None,
                Denial::NodeStopped => Some(EndReason::NodeStopped),
                Denial::NotMember => Some(EndReason::EpochLost),
            },
            ..gave_up(lock, owner, *waited, node)
        },
        LockEvent::Cancelled {
            lock,
            owner,
            waited,
            ..
        } => gave_up(lock, owner, *waited, node),
    }
}

fn gave_up(lock: &LockName, owner: &str, waited: Duration, node: &str) -> Event {
    Event {
        lock: lock.to_string(),
        owner: owner.to_owned(),
        after_us: Some(microseconds(waited)),
        ..empty(EventKind::GaveUp, node)
    }
}

pub(super) fn empty(event: EventKind, node: &str) -> Event {
    Event {
        event,
        at_unix_ms: unix_ms(Duration::ZERO),
        node: node.to_owned(),
        lock: String::new(),
        owner: String::new(),
        fence: None,
        after_us: None,
        reason: None,
        missed: None,
        cursor: None,
    }
}

/// Returns the wall-clock time this long ago. It is for people, never for decisions.
pub(crate) fn unix_ms(ago: Duration) -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    milliseconds(now.unwrap_or_default().saturating_sub(ago))
}

/// Returns the wall-clock time in microseconds since 1970. Numbers that start from it are higher
/// than those of this node's earlier lives.
pub(crate) fn unix_us() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    microseconds(now.unwrap_or_default())
}

/// Returns whole milliseconds, saturating.
pub(crate) fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn microseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
