//! Packed state: a cluster's state as a flat list of 32-bit words. One word of history, one per
//! node, and one per message in flight. Equal states are equal lists.

use soloist_algorithms::NodeId;

use super::{ENDLESS, Limits};

/// Number of distinct node states that fit into a word.
pub(crate) const LOCALS_MAX: usize = 1 << 22;
/// Number of distinct messages that fit into a word.
pub(crate) const MESSAGES_MAX: usize = 1 << 18;

/// Bits of a node's number in an envelope.
pub(crate) const NODE_BITS: u32 = 6;
/// Bits of the number of crashes in the history.
pub(crate) const CRASH_BITS: u32 = 4;

/// Index of the first node's word.
pub(crate) const NODES: usize = 1;

/// A state without its history: the words of the nodes, and of the messages in flight.
#[derive(Clone, Copy)]
pub(crate) struct PackedCluster<'s> {
    pub nodes: &'s [u32],
    pub envelopes: &'s [u32],
}

/// The last entry's request id (24 bits), the number of clock jumps (4 bits), and the number of
/// crashes (4 bits).
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct History(pub u32);

impl History {
    /// Number of jumps that can be counted.
    pub(super) const JUMPS_MAX: u8 = 15;

    pub(super) fn last(self) -> u32 {
        self.0 >> 8
    }

    pub(super) fn with_last(self, request: u32) -> Self {
        assert!(request < 1 << 24, "identities fit 24 bits");
        History(request << 8 | self.0 & 0xff)
    }

    pub(super) fn jumps(self) -> u8 {
        (self.0 >> CRASH_BITS & 0xf) as u8
    }

    pub(super) fn with_jump(self) -> Self {
        assert!(self.jumps() < Self::JUMPS_MAX, "jumps fit 4 bits");
        History(self.0 + (1 << CRASH_BITS))
    }

    pub(super) fn crashes(self) -> u8 {
        (self.0 & u32::from(Limits::CRASHES_MAX)) as u8
    }

    pub(super) fn with_crash(self) -> Self {
        assert!(self.crashes() < Limits::CRASHES_MAX, "crashes fit 4 bits");
        History(self.0 + 1)
    }
}

/// A node: the number of its state (22 bits), its remaining requests (8 bits), whether it has
/// restarted during recovery, and whether it knows the highest fence.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct PackedNode(pub u32);

impl PackedNode {
    pub(super) fn new(local: u32, left: u8) -> Self {
        PackedNode(local << 10 | u32::from(left) << 2)
    }

    pub(super) fn local(self) -> u32 {
        self.0 >> 10
    }

    pub(super) fn with_local(self, local: u32) -> Self {
        PackedNode(local << 10 | self.0 & 0x3ff)
    }

    pub(super) fn left(self) -> u8 {
        (self.0 >> 2) as u8
    }

    pub(super) fn with_left(self, left: u8) -> Self {
        PackedNode(self.0 & !(0xff << 2) | u32::from(left) << 2)
    }

    /// Uses up one request.
    pub(super) fn asked(self) -> Self {
        if self.left() == ENDLESS {
            self
        } else {
            PackedNode(self.0 - (1 << 2))
        }
    }

    pub(super) fn has_restarted(self) -> bool {
        self.0 & 2 != 0
    }

    pub(super) fn with_restarted(self, restarted: bool) -> Self {
        PackedNode(self.0 & !2 | u32::from(restarted) << 1)
    }

    pub(super) fn knows(self) -> bool {
        self.0 & 1 != 0
    }

    pub(super) fn with_knows(self, knows: bool) -> Self {
        PackedNode(self.0 & !1 | u32::from(knows))
    }
}

/// A message in flight: sender and receiver (6 bits each), its number (18 bits), whether advice was
/// sent after it on the same channel, and whether it carries the highest fence.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct PackedEnvelope(pub u32);

impl PackedEnvelope {
    pub(super) fn new(from: NodeId, to: NodeId, message: u32, knows: bool) -> Self {
        let channel = (from.index() as u32) << NODE_BITS | to.index() as u32;
        PackedEnvelope(channel << 20 | message << 2 | u32::from(knows))
    }

    pub(super) fn from(self) -> NodeId {
        NodeId::new(self.channel() >> NODE_BITS)
    }

    pub(super) fn to(self) -> NodeId {
        NodeId::new(self.channel() & (Limits::NODES_MAX - 1) as u32)
    }

    /// Sender and receiver.
    pub(super) fn channel(self) -> u32 {
        self.0 >> 20
    }

    pub(super) fn message(self) -> u32 {
        self.0 >> 2 & 0x3_ffff
    }

    /// Sender, receiver and message, without the flags.
    pub(super) fn bare(self) -> u32 {
        self.0 >> 2
    }

    pub(super) fn is_before_advice(self) -> bool {
        self.0 & 2 != 0
    }

    pub(super) fn before_advice(self) -> Self {
        PackedEnvelope(self.0 | 2)
    }

    pub(super) fn knows(self) -> bool {
        self.0 & 1 != 0
    }
}
