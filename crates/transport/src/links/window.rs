//! Sliding windows that make a link reliable: frames are numbered, kept until they are
//! acknowledged, and accepted in order. No I/O and no clock.

use std::collections::VecDeque;

use super::frame::{DATA_HEADER_BYTES, PAYLOAD_BYTES_MAX, data_header};

/// Memory that a sender keeps once everything is acknowledged.
const KEPT_BYTES: usize = 64 << 10;

/// The sender's side: the frames from the first unacknowledged to the last pushed.
///
/// Invariant: `first <= unsent <= next`, `unsent <= untold <= next`; `records` has the encoded
/// frames `first..next`, `sizes` their sizes, and `unsent_at` is where frame `unsent` begins.
#[derive(Debug)]
pub struct SendWindow {
    records: VecDeque<u8>,
    sizes: VecDeque<u32>,
    bytes_max: usize,
    frames_max: usize,
    first: u64,
    next: u64,
    /// First frame not yet sent on the current connection.
    unsent: u64,
    unsent_at: usize,
    /// First frame not yet sent on any connection.
    untold: u64,
    resent: u64,
}

/// A frame that does not fit. The window is unchanged.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "a frame of {frame_bytes} bytes (maximum: {PAYLOAD_BYTES_MAX}) does not fit: \
     {buffered_frames} frames with {buffered_bytes} bytes are waiting for the peer (maximum: \
     {frames_max} and {bytes_max}); the peer is down, cut off or too slow"
)]
pub struct Full {
    /// Size of the frame.
    pub frame_bytes: usize,
    /// Bytes waiting for acknowledgement.
    pub buffered_bytes: usize,
    /// Frames waiting for acknowledgement.
    pub buffered_frames: usize,
    /// Maximum number of bytes.
    pub bytes_max: usize,
    /// Maximum number of frames.
    pub frames_max: usize,
}

/// A frame number from the other side that cannot be right. The window is unchanged.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum WindowError {
    /// A frame was acknowledged, or counted as received, that was never sent.
    #[error("it acknowledged frame {up_to}, but the last frame sent was {sent}")]
    NeverSent {
        /// The number acknowledged.
        up_to: u64,
        /// The last frame sent.
        sent: u64,
    },
    /// The receiver expects a frame that it had already acknowledged.
    #[error("it expects frame {next}, but had acknowledged all frames before {first}")]
    Forgotten {
        /// The number expected.
        next: u64,
        /// The first frame still in the window.
        first: u64,
    },
    /// A frame arrived before its predecessors.
    #[error("received frame {number} instead of frame {next}")]
    Gap {
        /// The number that arrived.
        number: u64,
        /// The number expected.
        next: u64,
    },
}

impl SendWindow {
    /// Creates an empty window with limits on bytes (headers included) and frames.
    pub fn new(bytes_max: usize, frames_max: usize) -> Self {
        Self {
            records: VecDeque::new(),
            sizes: VecDeque::new(),
            bytes_max,
            frames_max,
            first: 1,
            next: 1,
            unsent: 1,
            unsent_at: 0,
            untold: 1,
            resent: 0,
        }
    }

    /// Returns the number of frames acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.first - 1
    }

    /// Enqueues a frame to be sent.
    pub fn push(&mut self, frame: &[u8]) -> Result<(), Full> {
        let size = DATA_HEADER_BYTES + frame.len();
        if frame.len() > PAYLOAD_BYTES_MAX
            || self.records.len() + size > self.bytes_max
            || self.sizes.len() >= self.frames_max
        {
            return Err(Full {
                frame_bytes: frame.len(),
                buffered_bytes: self.records.len(),
                buffered_frames: self.sizes.len(),
                bytes_max: self.bytes_max,
                frames_max: self.frames_max,
            });
        }
        self.records.extend(&data_header(self.next, frame.len()));
        self.records.extend(frame);
        self.sizes.push_back(size as u32);
        self.next += 1;
        Ok(())
    }

    /// Appends to `out` the records to write next: as many as fit into `bytes`, and at least one if
    /// any is ready. Returns their number.
    pub fn take(&mut self, bytes: usize, out: &mut Vec<u8>) -> usize {
        let mut end = self.unsent_at;
        let mut frames = 0;
        for &size in self.sizes.range((self.unsent - self.first) as usize..) {
            let size = size as usize;
            if frames > 0 && end - self.unsent_at + size > bytes {
                break;
            }
            end += size;
            frames += 1;
        }
        let (front, back) = self.records.as_slices();
        let middle = front.len();
        out.extend_from_slice(&front[self.unsent_at.min(middle)..end.min(middle)]);
        out.extend_from_slice(
            &back[self.unsent_at.saturating_sub(middle)..end.saturating_sub(middle)],
        );
        let again = self.untold.saturating_sub(self.unsent).min(frames);
        self.resent += again;
        self.unsent += frames;
        self.unsent_at = end;
        self.untold = self.untold.max(self.unsent);
        frames as usize
    }

    /// Drops all frames up to this number, which the receiver has acknowledged.
    pub fn acknowledge(&mut self, up_to: u64) -> Result<(), WindowError> {
        if up_to >= self.unsent {
            return Err(WindowError::NeverSent {
                up_to,
                sent: self.unsent - 1,
            });
        }
        self.forget_before(up_to + 1);
        Ok(())
    }

    /// Restarts at frame `next`, which the receiver expects on a new connection. Later frames are
    /// sent again.
    pub fn rewind(&mut self, next: u64) -> Result<(), WindowError> {
        if next > self.untold {
            return Err(WindowError::NeverSent {
                up_to: next - 1,
                sent: self.untold - 1,
            });
        }
        if next < self.first {
            return Err(WindowError::Forgotten {
                next,
                first: self.first,
            });
        }
        self.unsent = self.first;
        self.unsent_at = 0;
        self.forget_before(next);
        Ok(())
    }

    fn forget_before(&mut self, number: u64) {
        let frames = number.saturating_sub(self.first) as usize;
        let bytes: usize = self.sizes.drain(..frames).map(|size| size as usize).sum();
        self.records.drain(..bytes);
        self.first += frames as u64;
        self.unsent = self.unsent.max(self.first);
        self.unsent_at = self.unsent_at.saturating_sub(bytes);
        if self.records.is_empty() && self.records.capacity() > KEPT_BYTES {
            self.records.shrink_to(KEPT_BYTES);
            self.sizes.shrink_to(KEPT_BYTES / DATA_HEADER_BYTES);
        }
    }

    /// Returns whether every frame pushed has been acknowledged.
    pub fn is_empty(&self) -> bool {
        self.sizes.is_empty()
    }

    /// Returns the number of frames waiting for acknowledgement.
    pub fn buffered_frames(&self) -> usize {
        self.sizes.len()
    }

    /// Returns the number of bytes waiting for acknowledgement.
    pub fn buffered_bytes(&self) -> usize {
        self.records.len()
    }

    /// Returns the number of frames pushed.
    pub fn pushed(&self) -> u64 {
        self.next - 1
    }

    /// Returns the number of frames sent, each counted once.
    pub fn sent(&self) -> u64 {
        self.untold - 1
    }

    /// Returns how many times a frame was sent again.
    pub fn resent(&self) -> u64 {
        self.resent
    }
}

/// The receiver's side: the number of the next frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReceiveWindow {
    next: u64,
    duplicates: u64,
}

impl Default for ReceiveWindow {
    fn default() -> Self {
        Self {
            next: 1,
            duplicates: 0,
        }
    }
}

impl ReceiveWindow {
    /// Returns whether this frame is new, or an error if a frame is missing before it.
    pub fn accept(&mut self, number: u64) -> Result<bool, WindowError> {
        if number > self.next {
            return Err(WindowError::Gap {
                number,
                next: self.next,
            });
        }
        let new = number == self.next;
        self.next += u64::from(new);
        self.duplicates += u64::from(!new);
        Ok(new)
    }

    /// Returns the number of the next frame.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Returns the number of frames accepted.
    pub fn received(&self) -> u64 {
        self.next - 1
    }

    /// Returns the number of frames dropped as duplicates.
    pub fn duplicates(&self) -> u64 {
        self.duplicates
    }
}
