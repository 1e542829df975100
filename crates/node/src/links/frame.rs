//! What a connection carries, as bytes.
//!
//! A record is its length (4 bytes, little endian, counting what follows), its kind (1 byte) and its
//! content. Numbers are little endian. A record has at most [`RECORD_BYTES_MAX`] bytes. Records
//! follow the [hello](crate::transport::hello) that all connections begin with.

use bytes::{Buf, BytesMut};

/// The most bytes of a record, its length not counted.
pub const RECORD_BYTES_MAX: usize = 1 << 20;
/// The most bytes of a frame.
pub const PAYLOAD_BYTES_MAX: usize = RECORD_BYTES_MAX - 9;
/// What a frame costs on the wire beside its payload.
pub const DATA_HEADER_BYTES: usize = 13;

/// A longer reason is cut.
const REASON_BYTES_MAX: usize = 1 << 10;
/// Space that is asked for before a read.
const READ_BYTES: usize = 16 << 10;

const WELCOME: u8 = 2;
const REFUSED: u8 = 3;
const DATA: u8 = 4;
const ACK: u8 = 5;
const PING: u8 = 6;
const GOODBYE: u8 = 7;

/// One record. The sender is the node that dialled: frames go from it to the receiver.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Record<'a> {
    /// From the receiver, first of all.
    Welcome {
        /// The receiver's incarnation.
        incarnation: u64,
        /// The number of the frame that it expects next; everything before has arrived.
        next: u64,
    },
    /// From either, when it does not agree. The connection closes.
    Refused {
        /// Why, for a person to read.
        reason: &'a str,
    },
    /// From the sender: one frame.
    Data {
        /// Frames are numbered from 1, without a gap.
        number: u64,
        /// The frame.
        payload: &'a [u8],
    },
    /// From the receiver: all frames up to this number have arrived. Also its answer to a Ping.
    Ack {
        /// The number; 0 before the first frame.
        up_to: u64,
    },
    /// From the sender, when it had nothing to say for a while. The receiver answers with an Ack.
    Ping,
    /// From either, when its node stops, or has no links with the other any more. The connection closes.
    Goodbye,
}

/// Bytes that are no record of this protocol.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FrameError {
    /// A length beyond the limit.
    #[error("a record of {bytes} bytes, where at most {limit} are allowed")]
    TooLong {
        /// The length that was announced.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// A record without a kind.
    #[error("a record of 0 bytes")]
    Empty,
    /// A kind that this version does not have.
    #[error("a record of kind {0}, where kinds are {WELCOME} to {GOODBYE}")]
    UnknownKind(u8),
    /// Content of the wrong size for its kind.
    #[error("a {kind} record whose content has {bytes} bytes")]
    WrongSize {
        /// The kind.
        kind: &'static str,
        /// The content's size.
        bytes: usize,
    },
    /// Text that is not UTF-8.
    #[error("a {0} record whose text is not UTF-8")]
    NotText(&'static str),
}

/// The bytes before a frame's payload.
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
    /// Appends the record's bytes.
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
                out.extend_from_slice(&incarnation.to_le_bytes());
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
                incarnation: sized("Welcome", rest, incarnation)?,
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

/// Finds records in what reads give, however it is cut into pieces.
#[derive(Debug)]
pub struct Decoder {
    buffer: BytesMut,
    /// How much of the buffer was given out as records.
    given: usize,
    limit: usize,
}

impl Decoder {
    /// A decoder that refuses records of more than `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self {
            buffer: BytesMut::new(),
            given: 0,
            limit,
        }
    }

    /// Where a read puts its bytes: behind what is there already. What was given out is forgotten.
    ///
    /// It holds at most one record that is not complete, and what one read adds.
    pub fn space(&mut self) -> &mut BytesMut {
        self.buffer.advance(self.given);
        self.given = 0;
        let read_bytes = READ_BYTES.min(self.limit + 4);
        if self.buffer.is_empty() && self.buffer.capacity() > 4 * READ_BYTES {
            // One big record must not hold its memory for as long as the connection lives.
            self.buffer = BytesMut::with_capacity(read_bytes);
        } else if self.buffer.capacity() - self.buffer.len() < read_bytes / 4 {
            self.buffer.reserve(read_bytes);
        }
        &mut self.buffer
    }

    /// The complete records of what was read so far, each once. After an error nothing follows.
    pub fn records(&mut self) -> Records<'_> {
        Records {
            bytes: &self.buffer,
            given: &mut self.given,
            limit: self.limit,
            failed: false,
        }
    }

    /// How much memory is in use.
    pub fn capacity(&self) -> usize {
        self.buffer.capacity()
    }
}

/// See [`Decoder::records`]. Payloads are borrowed from what was read.
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
