//! Wire format of a link's records.
//!
//! A record is its length (4 bytes, little endian, counting what follows), its kind (1 byte) and
//! its content. Numbers are little endian. A record has at most [`RECORD_BYTES_MAX`] bytes. Records
//! follow the [hello](crate::hello) that starts every connection.

use bytes::{Buf, BytesMut};
use soloist_core::Incarnation;

/// Maximum size of a record in bytes, excluding the length prefix.
pub const RECORD_BYTES_MAX: usize = 1 << 20;
/// Maximum size of a frame in bytes.
pub const PAYLOAD_BYTES_MAX: usize = RECORD_BYTES_MAX - 9;
/// Bytes that a frame takes on the wire in addition to its payload.
pub const DATA_HEADER_BYTES: usize = 13;

/// Longer reasons are truncated.
const REASON_BYTES_MAX: usize = 1 << 10;
/// Space reserved before a read.
const READ_BYTES: usize = 16 << 10;

const WELCOME: u8 = 2;
const REFUSED: u8 = 3;
const DATA: u8 = 4;
const ACK: u8 = 5;
const PING: u8 = 6;
const GOODBYE: u8 = 7;

/// One record. The sender is the node that dialled; frames go from the sender to the receiver.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Record<'a> {
    /// First record from the receiver.
    Welcome {
        /// The receiver's incarnation.
        incarnation: Incarnation,
        /// Number of the next frame it expects; all earlier frames have arrived.
        next: u64,
    },
    /// From either side: it rejects the connection, which then closes.
    Refused {
        /// The reason, for a person to read.
        reason: &'a str,
    },
    /// From the sender: one frame.
    Data {
        /// Frames are numbered from 1, without gaps.
        number: u64,
        /// The frame.
        payload: &'a [u8],
    },
    /// From the receiver: all frames up to this number have arrived. Also the answer to a Ping.
    Ack {
        /// The number; 0 before the first frame.
        up_to: u64,
    },
    /// From the sender after it was idle for a while. The receiver answers with an Ack.
    Ping,
    /// From either side: its node stops, or no longer has links with the other. The connection
    /// closes.
    Goodbye,
}

/// Bytes that are not a valid record.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FrameError {
    /// The length exceeds the limit.
    #[error("a record of {bytes} bytes (maximum: {limit})")]
    TooLong {
        /// The length announced.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// A record without a kind.
    #[error("an empty record")]
    Empty,
    /// A kind that this version does not know.
    #[error("a record of unknown kind {0}: kinds are {WELCOME} to {GOODBYE}")]
    UnknownKind(u8),
    /// Content of the wrong size for its kind.
    #[error("a {kind} record with {bytes} bytes of content")]
    WrongSize {
        /// The kind.
        kind: &'static str,
        /// The content's size.
        bytes: usize,
    },
    /// Text that is not UTF-8.
    #[error("a {0} record with text that is not UTF-8")]
    NotText(&'static str),
}

/// Returns the bytes that precede a frame's payload.
pub fn data_header(number: u64, payload_bytes: usize) -> [u8; DATA_HEADER_BYTES] {
    assert!(
        payload_bytes <= PAYLOAD_BYTES_MAX,
        "a frame of {payload_bytes} bytes does not fit"
    );
    let mut header = [0; DATA_HEADER_BYTES];
    header[..4].copy_from_slice(&(payload_bytes as u32 + 9).to_le_bytes());
    header[4] = DATA;
    header[5..].copy_from_slice(&number.to_le_bytes());
    header
}

impl Record<'_> {
    /// Appends the encoded record.
    pub fn encode(&self, out: &mut Vec<u8>) {
        if let Record::Data { number, payload } = self {
            out.extend_from_slice(&data_header(*number, payload.len()));
            out.extend_from_slice(payload);
            return;
        }
        let begin = out.len();
        out.extend_from_slice(&[0; 4]);
        match self {
            Record::Welcome { incarnation, next } => {
                out.push(WELCOME);
                out.extend_from_slice(&incarnation.0.to_le_bytes());
                out.extend_from_slice(&next.to_le_bytes());
            }
            Record::Refused { reason } => {
                out.push(REFUSED);
                out.extend_from_slice(cut(reason).as_bytes());
            }
            Record::Data { .. } => unreachable!("written above"),
            Record::Ack { up_to } => {
                out.push(ACK);
                out.extend_from_slice(&up_to.to_le_bytes());
            }
            Record::Ping => out.push(PING),
            Record::Goodbye => out.push(GOODBYE),
        }
        let length = (out.len() - begin - 4) as u32;
        out[begin..begin + 4].copy_from_slice(&length.to_le_bytes());
    }
}

fn cut(reason: &str) -> &str {
    let mut end = reason.len().min(REASON_BYTES_MAX);
    while !reason.is_char_boundary(end) {
        end -= 1;
    }
    &reason[..end]
}

fn take_u64(rest: &mut &[u8]) -> Option<u64> {
    let bytes = rest.split_off(..8)?;
    Some(u64::from_le_bytes(bytes.try_into().ok()?))
}

fn parse(body: &[u8]) -> Result<Record<'_>, FrameError> {
    let (&kind, content) = body.split_first().ok_or(FrameError::Empty)?;
    let sized = |kind, rest: &[u8], value: Option<u64>| match value {
        Some(value) if rest.is_empty() => Ok(value),
        _ => Err(FrameError::WrongSize {
            kind,
            bytes: content.len(),
        }),
    };
    let mut rest = content;
    match kind {
        WELCOME => {
            let incarnation = take_u64(&mut rest);
            let next = take_u64(&mut rest);
            Ok(Record::Welcome {
                next: sized("Welcome", rest, next)?,
                incarnation: Incarnation(sized("Welcome", rest, incarnation)?),
            })
        }
        REFUSED => match std::str::from_utf8(content) {
            Ok(reason) => Ok(Record::Refused { reason }),
            Err(_) => Err(FrameError::NotText("Refused")),
        },
        DATA => {
            let number = take_u64(&mut rest);
            Ok(Record::Data {
                number: sized("Data", &[], number)?,
                payload: rest,
            })
        }
        ACK => {
            let up_to = take_u64(&mut rest);
            Ok(Record::Ack {
                up_to: sized("Ack", rest, up_to)?,
            })
        }
        PING => sized("Ping", rest, Some(0)).map(|_| Record::Ping),
        GOODBYE => sized("Goodbye", rest, Some(0)).map(|_| Record::Goodbye),
        other => Err(FrameError::UnknownKind(other)),
    }
}

/// Extracts records from a byte stream, however the reads split it.
#[derive(Debug)]
pub struct Decoder {
    buffer: BytesMut,
    /// Number of buffered bytes already returned as records.
    given: usize,
    limit: usize,
}

impl Decoder {
    /// Creates a decoder that rejects records of more than `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self {
            buffer: BytesMut::new(),
            given: 0,
            limit,
        }
    }

    /// Returns the buffer for the next read, after discarding bytes already returned as records.
    ///
    /// The buffer holds at most one incomplete record and what one read adds.
    pub fn space(&mut self) -> &mut BytesMut {
        self.buffer.advance(self.given);
        self.given = 0;
        let read_bytes = READ_BYTES.min(self.limit + 4);
        if self.buffer.is_empty() && self.buffer.capacity() > 4 * READ_BYTES {
            // One large record must not keep its memory for the lifetime of the connection.
            self.buffer = BytesMut::with_capacity(read_bytes);
        } else if self.buffer.capacity() - self.buffer.len() < read_bytes / 4 {
            self.buffer.reserve(read_bytes);
        }
        &mut self.buffer
    }

    /// Returns the complete records read so far, each once. Nothing follows an error.
    pub fn records(&mut self) -> Records<'_> {
        Records {
            bytes: &self.buffer,
            given: &mut self.given,
            limit: self.limit,
            failed: false,
        }
    }

    /// Returns the memory in use, in bytes.
    pub fn capacity(&self) -> usize {
        self.buffer.capacity()
    }
}

/// Iterator returned by [`Decoder::records`]. Payloads are borrowed from the read buffer.
#[derive(Debug)]
pub struct Records<'a> {
    bytes: &'a [u8],
    given: &'a mut usize,
    limit: usize,
    failed: bool,
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<Record<'a>, FrameError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let rest = &self.bytes[*self.given..];
        let (prefix, rest) = rest.split_first_chunk::<4>()?;
        let length = u32::from_le_bytes(*prefix) as usize;
        let record = if length > self.limit {
            Err(FrameError::TooLong {
                bytes: length,
                limit: self.limit,
            })
        } else {
            let body = rest.get(..length)?;
            *self.given += 4 + length;
            parse(body)
        };
        self.failed = record.is_err();
        Some(record)
    }
}
