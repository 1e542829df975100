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
    /// Nobody can be taken for dead, so that no hold may be lost.
    is_gentle: bool,
}

impl Witness {
    pub fn new(nodes: usize, is_gentle: bool) -> Self {
        Witness {
            holds: vec![None; nodes],
            waiting: vec![0; nodes],
            fence: None,
            is_gentle,
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

    /// `relies` tells whether a node may rely on its holds.
    pub fn sees(
        &mut self,
        node: usize,
        happening: &Happening,
        relies: impl Fn(usize) -> bool,
    ) -> Result<(), Violation> {
        match happening {
            Happening::Granted { grant, .. } => {
                self.waiting[node] -= 1;
                let mut holders =
                    (0..self.holds.len()).filter(|&other| self.holds[other].is_some());
                if let Some(other) = holders.find(|&other| relies(other)) {
                    return Err(format!("node {node} enters while node {other} is inside"));
                }
                if self.fence >= Some(grant.fence) {
                    return Err(format!("fence {} after {:?}", grant.fence, self.fence));
                }
                self.fence = Some(grant.fence);
                self.holds[node] = Some(grant.hold);
            }
            Happening::Ended { end, .. } => {
                self.holds[node] = None;
                if end.is_loss() && self.is_gentle {
                    return Err(format!(
                        "node {node} loses its hold, and nothing was wrong with it"
                    ));
                }
            }
            Happening::Waiting { .. } | Happening::Denied { .. } => {}
        }
        Ok(())
    }
}
