//! What the clients of a small cluster observe of their one lock, and whether it is allowed.

use soloist_api::Fence;
use soloist_api::Moment;
use soloist_core::locks::{HoldId, LockEvent};

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
    pub fn new(nodes: usize, is_gentle: bool) -> Self {
        Witness {
            holds: vec![None; nodes],
            promised: vec![None; nodes],
            waiting: vec![0; nodes],
            fence: None,
            may_lose: vec![!is_gentle; nodes],
        }
    }

    pub fn hold(&self, node: usize) -> Option<HoldId> {
        self.holds[node]
    }

    pub fn is_idle(&self, node: usize) -> bool {
        self.waiting[node] == 0 && self.holds[node].is_none()
    }

    /// Whether all requests have been served.
    pub fn is_content(&self) -> bool {
        self.waiting.iter().all(|waiting| *waiting == 0)
    }

    pub fn asks(&mut self, node: usize) {
        self.waiting[node] += 1;
    }

    pub fn crashes(&mut self, node: usize) {
        self.holds[node] = None;
        self.waiting[node] = 0;
    }

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
    ) -> Result<(), Violation> {
        match event {
            LockEvent::Granted { grant, .. } => {
                self.waiting[node] -= 1;
                if !has_lease {
                    return Err(format!("node {node} enters without a lease"));
                }
                if self.promised[node] > Some(now) {
                    return Err(format!(
                        "node {node} lets somebody in, and somebody there relies on it"
                    ));
                }
                if self.fence >= Some(grant.fence) {
                    return Err(format!("fence {} after {:?}", grant.fence, self.fence));
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
                    return Err(format!(
                        "node {node} loses its hold, and nothing was wrong with it"
                    ));
                }
            }
            LockEvent::Denied { .. } => self.waiting[node] -= 1,
            LockEvent::Waiting { .. } => {}
        }
        Ok(())
    }

    /// Checks that at most one client is inside.
    pub fn look(&self, now: Moment) -> Result<(), Violation> {
        let nodes = 0..self.promised.len();
        let inside: Vec<_> = nodes
            .filter(|&node| self.promised[node] > Some(now))
            .collect();
        match inside.len() {
            0 | 1 => Ok(()),
            _ => Err(format!("nodes {inside:?} are inside")),
        }
    }
}
