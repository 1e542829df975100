//! Clients of a node: they request locks, hold them for a while, and release them or forget to.

use std::collections::HashMap;
use std::time::Duration;

use rand::RngExt;
use soloist_api::LockName;
use soloist_core::locks::{HoldId, LockEvent, LockRequest, Ticket};

use crate::epochs::world::World;

/// The clients of one node.
#[derive(Default, Debug)]
pub struct Clients {
    /// Their requests that have not been answered.
    pub waiting: HashMap<Ticket, LockName>,
    /// Their holds, in the order in which they began.
    pub holds: Vec<HoldId>,
    /// Number of grants.
    pub served: usize,
    /// Number of holds that were lost.
    pub lost: usize,
    /// If set, they make no new requests.
    pub calm: bool,
}

impl Clients {
    /// The node crashed.
    pub fn crash(&mut self) {
        self.waiting.clear();
        self.holds.clear();
    }

    /// Records an event of the lock table.
    pub fn note(&mut self, event: &LockEvent) {
        match event {
            LockEvent::Granted { ticket, grant, .. } => {
                self.waiting.remove(ticket);
                self.holds.push(grant.hold);
                self.served += 1;
            }
            LockEvent::Denied { ticket, .. } | LockEvent::Cancelled { ticket, .. } => {
                self.waiting.remove(ticket);
            }
            LockEvent::Ended { hold, end, .. } => {
                self.holds.retain(|other| other != hold);
                self.lost += usize::from(end.is_loss());
            }
            LockEvent::Waiting { ticket, lock, .. } => {
                self.waiting.insert(*ticket, lock.clone());
            }
        }
    }
}

/// Lets a client of a node act.
pub fn act(world: &mut World, node: usize) {
    world.think(node);
    let Some(participant) = &world.nodes[node].participant else {
        return;
    };
    let is_draining = participant.is_draining();
    let held = world.nodes[node].clients.holds.first().copied();
    if let Some(hold) = held.filter(|_| world.rng.random_bool(0.7)) {
        world.with(node, |participant, now, out| {
            let _ = participant.release(now, hold, out);
        });
        return;
    }
    let clients = &world.nodes[node].clients;
    if clients.calm || clients.waiting.len() > 3 || is_draining {
        return;
    }
    let lock = ["a", "b/c", "d"][world.rng.random_range(0..3)];
    let lock = LockName::new(lock).unwrap();
    let ttl = (world.rng.random_bool(0.3)).then_some(Duration::from_secs(2));
    let seconds = world.rng.random_range(1..10);
    let gives_up = world.rng.random_bool(0.2);
    world.with(node, |participant, now, out| {
        let until = gives_up.then(|| now + Duration::from_secs(seconds));
        let ask = LockRequest {
            ttl,
            until,
            ..LockRequest::new("somebody")
        };
        let table = participant.table_mut(now, out);
        table.acquire(now, &lock, ask, &mut out.locks).unwrap();
    });
}
