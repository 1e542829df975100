//! What the clients of a small cluster observe of their one lock, and whether it is allowed.

use soloist_api::{Fence, Moment, NodeName};
use soloist_core::locks::{HoldId, LockEvent};

use super::describe;

/// What went wrong.
pub type Violation = String;

/// The observations, by node number.
#[derive(Clone, Hash, Debug)]
pub struct Witness {
    holds: Vec<Option<HoldId>>,
    /// Until when a client relies on the lock that it got on this node, whatever happens to the
    /// node: until it releases the lock, or until the promised time has passed.
    promised: Vec<Option<Moment>>,
    waiting: Vec<u8>,
    fence: Option<Fence>,
    /// Whether its hold may be lost because the node may be taken for dead.
    may_lose: Vec<bool>,
}

impl Witness {
    /// Nothing was observed. `is_gentle` is whether no hold may be lost without a fault.
    pub fn new(nodes: usize, is_gentle: bool) -> Self {
        Witness {
            holds: vec![None; nodes],
            promised: vec![None; nodes],
            waiting: vec![0; nodes],
            fence: None,
            may_lose: vec![!is_gentle; nodes],
        }
    }

    /// The hold of the client on this node.
    pub fn hold(&self, node: usize) -> Option<HoldId> {
        self.holds[node]
    }

    /// Whether no client waits or is inside on this node.
    pub fn is_idle(&self, node: usize) -> bool {
        self.waiting[node] == 0 && self.holds[node].is_none()
    }

    /// Whether all requests have been served.
    pub fn is_content(&self) -> bool {
        self.waiting.iter().all(|waiting| *waiting == 0)
    }

    /// A client makes a request.
    pub fn asks(&mut self, node: usize) {
        self.waiting[node] += 1;
    }

    /// The node crashes, with its clients.
    pub fn crashes(&mut self, node: usize) {
        self.holds[node] = None;
        self.waiting[node] = 0;
    }

    /// From now on, its hold may be lost.
    pub fn may_lose(&mut self, node: usize) {
        self.may_lose[node] = true;
    }

    /// Records a promise to the client on this node.
    pub fn promise(&mut self, node: usize, until: Moment) {
        self.promised[node] = self.promised[node].max(Some(until));
    }

    /// Forgets promises that have passed: they no longer make a difference.
    pub fn forget(&mut self, now: Moment) {
        for promised in &mut self.promised {
            *promised = promised.filter(|until| *until > now);
        }
    }

    /// Checks an event. `has_lease` is whether the node may grant the lock.
    pub fn sees(
        &mut self,
        node: usize,
        event: &LockEvent,
        has_lease: bool,
        now: Moment,
        name: &NodeName,
    ) -> Result<(), Violation> {
        match event {
            LockEvent::Granted { grant, .. } => {
                self.waiting[node] -= 1;
                if !has_lease {
                    return Err(format!("{name} enters without a lease"));
                }
                if self.promised[node] > Some(now) {
                    return Err(format!(
                        "{name} grants the lock while another client there relies on it"
                    ));
                }
                if let Some(before) = self.fence.filter(|fence| *fence >= grant.fence) {
                    let (before, after) = (describe::fence(before), describe::fence(grant.fence));
                    return Err(format!("{name} enters with fence {after} after {before}"));
                }
                self.fence = Some(grant.fence);
                self.holds[node] = Some(grant.hold);
            }
            LockEvent::Ended { end, .. } => {
                self.holds[node] = None;
                if !end.is_loss() {
                    self.promised[node] = None;
                }
                if end.is_loss() && !self.may_lose[node] {
                    return Err(format!("{name} loses the lock, and no fault has hit it"));
                }
            }
            LockEvent::Denied { .. } | LockEvent::Cancelled { .. } => self.waiting[node] -= 1,
            LockEvent::Waiting { .. } => {}
        }
        Ok(())
    }

    /// Checks that at most one client is inside.
    pub fn look(&self, now: Moment, names: &[NodeName]) -> Result<(), Violation> {
        let is_inside = |promised: &Option<Moment>| *promised > Some(now);
        let inside = self.promised.iter().filter(|promised| is_inside(promised));
        if inside.count() < 2 {
            return Ok(());
        }
        let inside = names.iter().zip(&self.promised);
        let inside = inside.filter(|(_, promised)| is_inside(promised));
        let inside: Vec<_> = inside.map(|(name, _)| name.as_str()).collect();
        Err(format!("{} are inside", inside.join(" and ")))
    }

    /// Whether a client of this node waits.
    pub fn waits(&self, node: usize) -> bool {
        self.waiting[node] > 0
    }
}
