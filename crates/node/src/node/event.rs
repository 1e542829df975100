//! Event stream of a node.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use soloist_api::{Event, EventKind};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use super::Node;
use soloist_core::locks::LockEvent;

/// The events of a node from the time of subscription, in order.
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

/// Converts a lock event for subscribers, or returns `None` if they are not told of it.
pub(super) fn of(event: &LockEvent, node: &str) -> Option<Event> {
    match event {
        LockEvent::Waiting { lock, owner, .. } => Some(Event {
            lock: lock.to_string(),
            owner: owner.to_string(),
            ..empty(EventKind::Waiting, node)
        }),
        LockEvent::Granted {
            grant,
            owner,
            waited,
            ..
        } => Some(Event {
            lock: grant.lock.to_string(),
            owner: owner.to_string(),
            fence: Some(grant.fence.number()),
            after_us: Some(microseconds(*waited)),
            ..empty(EventKind::Acquired, node)
        }),
        LockEvent::Ended {
            lock,
            owner,
            fence,
            end,
            held,
            ..
        } => {
            let kind = match end.is_loss() {
                true => EventKind::Lost,
                false => EventKind::Released,
            };
            Some(Event {
                lock: lock.to_string(),
                owner: owner.to_string(),
                fence: Some(fence.number()),
                after_us: Some(microseconds(*held)),
                reason: end.is_loss().then(|| end.name().to_owned()),
                ..empty(kind, node)
            })
        }
        LockEvent::Denied { .. } => None,
    }
}

fn empty(event: EventKind, node: &str) -> Event {
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
    }
}

/// Returns the wall-clock time this long ago. It is for people, never for decisions.
pub(crate) fn unix_ms(ago: Duration) -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    milliseconds(now.unwrap_or_default().saturating_sub(ago))
}

/// Returns whole milliseconds, saturating.
pub(crate) fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn microseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
