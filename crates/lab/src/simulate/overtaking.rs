//! Counts how often a waiter was overtaken, in logarithmic time per entry.
//!
//! A waiter is overtaken by each entry whose request was made after the waiter's own request had
//! *arrived*, that is, after all messages that it sent on requesting were delivered. Counting from
//! the call of `request` would blame a fair algorithm for slow messages.

use soloist_algorithms::NodeId;

/// Counts overtaking. Requests get slots in the order made, and a Fenwick tree over the slots
/// counts those that still wait. When the slots run out, the waiting requests are compacted.
#[derive(Debug)]
pub(crate) struct Overtaking {
    nodes: Vec<Waiter>,
    /// Fenwick tree over the slots of waiting requests (index 0 unused).
    sums: Vec<u32>,
    owners: Vec<u32>,
    slots_used: u32,
    waiting: u32,
    entries: u64,
    most: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Waiter {
    slot: u32,
    arrived: bool,
    /// At the time of arrival: the slots in use, the waiting requests, and the entries so far.
    slots_before: u32,
    waiting_before: u32,
    entries_before: u64,
}

const NOBODY: u32 = u32::MAX;

impl Overtaking {
    /// Counters for a cluster of `nodes`.
    pub(crate) fn new(nodes: usize) -> Self {
        let slots = 2 * nodes + 2;
        Overtaking {
            nodes: vec![Waiter::default(); nodes],
            sums: vec![0; slots + 1],
            owners: vec![NOBODY; slots],
            slots_used: 0,
            waiting: 0,
            entries: 0,
            most: 0,
        }
    }

    /// The node requests.
    pub(crate) fn requested(&mut self, node: NodeId) {
        if self.slots_used as usize == self.owners.len() {
            self.move_together();
        }
        self.nodes[node.index()] = Waiter {
            slot: self.slots_used,
            ..Waiter::default()
        };
        self.owners[self.slots_used as usize] = node.index() as u32;
        self.add(self.slots_used, 1);
        self.slots_used += 1;
        self.waiting += 1;
    }

    /// All messages that the node sent on requesting have been delivered.
    pub(crate) fn arrived(&mut self, node: NodeId) {
        let waiter = &mut self.nodes[node.index()];
        waiter.arrived = true;
        waiter.slots_before = self.slots_used;
        waiter.waiting_before = self.waiting;
        waiter.entries_before = self.entries;
    }

    /// The node enters.
    pub(crate) fn entered(&mut self, node: NodeId) {
        let waiter = self.nodes[node.index()];
        if waiter.arrived {
            let entries_since = self.entries - waiter.entries_before;
            let earlier_still_waiting = self.waiting_in_first(waiter.slots_before);
            let earlier_entered = waiter.waiting_before - earlier_still_waiting;
            let overtaken = entries_since - u64::from(earlier_entered);
            self.most = self.most.max(overtaken);
        }
        self.owners[waiter.slot as usize] = NOBODY;
        self.add(waiter.slot, -1);
        self.waiting -= 1;
        self.entries += 1;
    }

    /// The maximum number of times that one waiter was overtaken.
    pub(crate) fn most(&self) -> u64 {
        self.most
    }

    /// Forgets the maximum, but not who waits.
    pub(crate) fn forget_most(&mut self) {
        self.most = 0;
    }

    fn add(&mut self, slot: u32, change: i32) {
        let mut index = slot as usize + 1;
        while index < self.sums.len() {
            self.sums[index] = self.sums[index].wrapping_add_signed(change);
            index += index & index.wrapping_neg();
        }
    }

    fn waiting_in_first(&self, slots: u32) -> u32 {
        let mut index = slots as usize;
        let mut sum = 0;
        while index > 0 {
            sum += self.sums[index];
            index &= index - 1;
        }
        sum
    }

    fn move_together(&mut self) {
        // A waiter's `slots_before` becomes the number of requests in those slots that still wait,
        // which is where they move to.
        for slot in 0..self.owners.len() {
            let owner = self.owners[slot];
            if owner != NOBODY {
                let slots_before = self.nodes[owner as usize].slots_before;
                self.nodes[owner as usize].slots_before = self.waiting_in_first(slots_before);
            }
        }
        let mut used = 0;
        for slot in 0..self.owners.len() {
            let owner = std::mem::replace(&mut self.owners[slot], NOBODY);
            if owner != NOBODY {
                self.owners[used] = owner;
                self.nodes[owner as usize].slot = used as u32;
                used += 1;
            }
        }
        self.sums.fill(0);
        for slot in 0..used as u32 {
            self.add(slot, 1);
        }
        self.slots_used = used as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(number: u32) -> NodeId {
        NodeId::new(number)
    }

    #[test]
    fn only_requests_made_after_the_arrival_overtake() {
        let mut overtaking = Overtaking::new(3);
        overtaking.requested(node(1));
        overtaking.requested(node(0));
        overtaking.requested(node(2));
        overtaking.arrived(node(0));
        overtaking.entered(node(2)); // requested before the arrival: does not count
        overtaking.entered(node(1));
        for _ in 0..5 {
            overtaking.requested(node(1));
            overtaking.entered(node(1));
        }
        overtaking.entered(node(0));
        assert_eq!(overtaking.most(), 5);
    }

    /// Compares with the definition itself, on random histories, across many compactions.
    #[test]
    fn agrees_with_the_definition() {
        use crate::simulate::Random;
        let nodes = 5;
        let mut random = Random::new(7, 0);
        let mut fast = Overtaking::new(nodes);
        // Per waiting node: (time of request, time of arrival, times overtaken).
        let mut slow: Vec<Option<(u64, Option<u64>, u64)>> = vec![None; nodes];
        let mut most = 0;
        for now in 1..20_000 {
            let index = random.below(nodes as u64) as usize;
            match slow[index] {
                None => {
                    slow[index] = Some((now, None, 0));
                    fast.requested(NodeId::from_index(index));
                }
                Some((at, None, _)) if random.below(2) == 0 => {
                    slow[index] = Some((at, Some(now), 0));
                    fast.arrived(NodeId::from_index(index));
                }
                Some((at, _, overtaken)) if random.below(3) == 0 => {
                    slow[index] = None;
                    most = most.max(overtaken);
                    for waiter in slow.iter_mut().flatten() {
                        waiter.2 += u64::from(waiter.1.is_some_and(|arrival| arrival < at));
                    }
                    fast.entered(NodeId::from_index(index));
                    assert_eq!(fast.most(), most, "at {now}");
                }
                Some(_) => {}
            }
        }
        assert!(most > 3, "the history must contain overtaking");
    }
}
