//! Messages of an epoch that this node has not installed yet: others have, and links send nothing twice.

/// How many bytes are kept.
const BYTES_MAX: usize = 16 << 20;

/// Messages of later epochs, in the order in which they came.
#[derive(Clone, Default, Hash)]
pub(super) struct EarlyFrames {
    frames: Vec<(u64, u64, Vec<u8>)>,
    bytes: usize,
}

impl EarlyFrames {
    /// Keeps a member's message for an epoch. Tells whether there was room.
    pub fn add(&mut self, epoch: u64, incarnation: u64, bytes: &[u8]) -> bool {
        if self.bytes + bytes.len() > BYTES_MAX {
            return false;
        }
        self.bytes += bytes.len();
        self.frames.push((epoch, incarnation, bytes.to_vec()));
        true
    }

    /// The messages of an epoch, which begins now. Earlier ones are over.
    pub fn take(&mut self, epoch: u64) -> Vec<(u64, Vec<u8>)> {
        let (taken, left) = std::mem::take(&mut self.frames)
            .into_iter()
            .filter(|(of, ..)| *of >= epoch)
            .partition(|(of, ..)| *of == epoch);
        self.frames = left;
        self.bytes = self.frames.iter().map(|(.., bytes)| bytes.len()).sum();
        let taken: Vec<(u64, u64, Vec<u8>)> = taken;
        taken
            .into_iter()
            .map(|(_, from, bytes)| (from, bytes))
            .collect()
    }
}
