//! What the clients of a small cluster see of their one lock, and whether it may be.

use soloist_node::locks::{Fence, Happening, HoldId};

/// What went wrong.
pub type Violation = String;

/// Nodes by number.
#[derive(Clone, Hash, Debug)]
pub struct Witness {
    holds: Vec<Option<HoldId>>,
    waiting: Vec<u8>,
    fence: Option<Fence>,
    /// What it holds may be lost, because it may be taken for dead.
    may_lose: Vec<bool>,
}

impl Witness {
    pub fn new(nodes: usize, is_gentle: bool) -> Self {
        Witness {
            holds: vec![None; nodes],
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

    /// Whether everybody has been served.
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

    /// `relies` tells whether its holders may rely on what they hold.
    pub fn sees(
        &mut self,
        node: usize,
        happening: &Happening,
        relies: bool,
    ) -> Result<(), Violation> {
        match happening {
            Happening::Granted { grant, .. } => {
                self.waiting[node] -= 1;
                if !relies {
                    return Err(format!("node {node} enters without a lease"));
                }
                if self.fence >= Some(grant.fence) {
                    return Err(format!("fence {} after {:?}", grant.fence, self.fence));
                }
                self.fence = Some(grant.fence);
                self.holds[node] = Some(grant.hold);
            }
            Happening::Ended { end, .. } => {
                self.holds[node] = None;
                if end.is_loss() && !self.may_lose[node] {
                    return Err(format!(
                        "node {node} loses its hold, and nothing was wrong with it"
                    ));
                }
            }
            Happening::Waiting { .. } | Happening::Denied { .. } => {}
        }
        Ok(())
    }

    /// At most one is inside. `relies` tells whether a node's holders may rely on what they hold.
    pub fn look(&self, relies: impl Fn(usize) -> bool) -> Result<(), Violation> {
        let holders = (0..self.holds.len()).filter(|&node| self.holds[node].is_some());
        let inside: Vec<_> = holders.filter(|&node| relies(node)).collect();
        match inside.len() {
            0 | 1 => Ok(()),
            _ => Err(format!("nodes {inside:?} are inside")),
        }
    }
}
