//! What makes a link reliable: numbered frames, kept until they are acknowledged, and taken in order.
//! No I/O and no clock.

use std::collections::VecDeque;

use super::frame::{DATA_HEADER_BYTES, PAYLOAD_BYTES_MAX, data_header};

/// Memory that a sender keeps when all was acknowledged.
const KEPT_BYTES: usize = 64 << 10;

/// The sender's side: frames from the first that is not acknowledged to the last that was pushed.
///
/// Invariant: `first <= unsent <= next`, `unsent <= untold <= next`; `records` has the encoded frames
/// `first..next`, `sizes` their sizes, and `unsent_at` is where frame `unsent` begins.
#[derive(Debug)]
pub struct SendWindow {
    records: VecDeque<u8>,
    sizes: VecDeque<u32>,
    bytes_max: usize,
    frames_max: usize,
    first: u64,
    next: u64,
    /// The first frame that was not given to this connection.
    unsent: u64,
    unsent_at: usize,
    /// The first frame that was given to no connection at all.
    untold: u64,
    resent: u64,
}

/// A frame that does not fit. Nothing has changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "a frame of {frame_bytes} bytes does not fit (at most {PAYLOAD_BYTES_MAX}): {buffered_frames} frames \
     with {buffered_bytes} bytes wait for the peer, where {frames_max} and {bytes_max} are allowed; \
     the peer is down, cut off or too slow"
)]
pub struct Full {
    /// The frame's size.
    pub frame_bytes: usize,
    /// Bytes that wait for an acknowledgement.
    pub buffered_bytes: usize,
    /// Frames that wait for an acknowledgement.
    pub buffered_frames: usize,
    /// The limit of bytes.
    pub bytes_max: usize,
    /// The limit of frames.
    pub frames_max: usize,
}

/// What a receiver says that cannot be true. Nothing has changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum WindowError {
    /// An acknowledgement of frames that this connection did not carry.
    #[error("it acknowledged frame {up_to}, and {sent} is the last that was sent")]
    NeverSent {
        /// The number that was acknowledged.
        up_to: u64,
        /// The last frame that was sent.
        sent: u64,
    },
    /// It expects a frame that it had acknowledged.
    #[error("it expects frame {next}, and had acknowledged everything before {first}")]
    Forgotten {
        /// The number that it expects.
        next: u64,
        /// The first frame that is still here.
        first: u64,
    },
    /// A frame came before its predecessors.
    #[error("frame {number} came, and {next} was the next")]
    Gap {
        /// The number that came.
        number: u64,
        /// The number that was expected.
        next: u64,
    },
}

impl SendWindow {
    /// An empty window that holds up to so many bytes (headers included) and frames.
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

    /// How many frames were acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.first - 1
    }

    /// Takes a frame, to be sent.
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

    /// Appends to `out` the records to be written next: as many as fit into `bytes`, and at least one
    /// if there is one. Returns how many.
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

    /// The receiver has everything up to this number.
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

    /// A new connection, on which the receiver expects this number: what follows is sent again.
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

    /// Whether everything that was pushed is acknowledged.
    pub fn is_empty(&self) -> bool {
        self.sizes.is_empty()
    }

    /// Frames that wait for an acknowledgement.
    pub fn buffered_frames(&self) -> usize {
        self.sizes.len()
    }

    /// Bytes that wait for an acknowledgement.
    pub fn buffered_bytes(&self) -> usize {
        self.records.len()
    }

    /// How many frames were pushed.
    pub fn pushed(&self) -> u64 {
        self.next - 1
    }

    /// How many frames were given to a connection, each counted once.
    pub fn sent(&self) -> u64 {
        self.untold - 1
    }

    /// How many were given to another connection again, each time counted.
    pub fn resent(&self) -> u64 {
        self.resent
    }
}

/// The receiver's side: which frame comes next.
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
    /// Whether this frame is new. A gap is refused.
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

    /// The number that is expected next.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// How many frames were accepted.
    pub fn received(&self) -> u64 {
        self.next - 1
    }

    /// How many were dropped because they had come before.
    pub fn duplicates(&self) -> u64 {
        self.duplicates
    }
}
