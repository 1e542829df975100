//! Messages of an epoch that other members have installed but this node has not. They are kept,
//! because links never resend.

use crate::Incarnation;

/// Maximum number of bytes to keep.
const BYTES_MAX: usize = 16 << 20;

/// Messages of the next epoch in order of arrival, each with the sender's incarnation.
#[derive(Clone, Default, Hash)]
pub(super) struct EarlyFrames {
    frames: Vec<(Incarnation, Vec<u8>)>,
    bytes: usize,
}

impl EarlyFrames {
    /// Keeps a message. Returns whether there was room.
    pub(super) fn add(&mut self, from: Incarnation, bytes: &[u8]) -> bool {
        let size = bytes.len() + size_of::<(Incarnation, Vec<u8>)>();
        if self.bytes + size > BYTES_MAX {
            return false;
        }
        self.bytes += size;
        self.frames.push((from, bytes.to_vec()));
        true
    }

    /// Takes all messages, once their epoch is installed.
    pub(super) fn take(&mut self) -> Vec<(Incarnation, Vec<u8>)> {
        std::mem::take(self).frames
    }
}
