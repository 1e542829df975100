//! Messages of an epoch that this node has not installed yet: others have, and links send nothing twice.

/// How many bytes are kept.
const BYTES_MAX: usize = 16 << 20;

/// Messages of the epoch that begins next, in the order in which they came: from which life of a node, and what.
#[derive(Clone, Default, Hash)]
pub(super) struct EarlyFrames {
    frames: Vec<(u64, Vec<u8>)>,
    bytes: usize,
}

impl EarlyFrames {
    /// Keeps a message. Tells whether there was room.
    pub fn add(&mut self, incarnation: u64, bytes: &[u8]) -> bool {
        let size = bytes.len() + size_of::<(u64, Vec<u8>)>();
        if self.bytes + size > BYTES_MAX {
            return false;
        }
        self.bytes += size;
        self.frames.push((incarnation, bytes.to_vec()));
        true
    }

    /// All of them: their epoch begins.
    pub fn take(&mut self) -> Vec<(u64, Vec<u8>)> {
        std::mem::take(self).frames
    }
}
