//! The encoding of a lock message: its kind, one byte, which also distinguishes it from other
//! frames of a link; epoch and fence, 8 bytes each, little-endian; the length of the name, 2 bytes,
//! little-endian; the name; and the algorithm's payload.

use soloist_api::{Fence, LockName, LockNameError};

/// The first byte of an algorithm's message.
pub const KIND: u8 = 1;

/// The first byte of a message between a node and a lock's home about forgetting the lock.
pub const IDLE: u8 = 5;

/// Whether a frame of a link is a lock message, by its first byte.
pub fn is_lock(kind: u8) -> bool {
    matches!(kind, KIND | IDLE)
}

/// A decoded lock message that borrows its payload.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LockMessage<'a> {
    /// [`KIND`] or [`IDLE`].
    pub kind: u8,
    /// The epoch in which it was sent.
    pub epoch: u64,
    /// The highest fence that its sender knows.
    pub fence: Fence,
    /// The lock.
    pub name: LockName,
    /// The payload, for the algorithm or for forgetting.
    pub payload: &'a [u8],
}

/// Why bytes are not a lock message.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum WireError {
    /// An unknown first byte.
    #[error("unexpected frame kind {0} in a lock's message")]
    Kind(u8),
    /// Too few bytes.
    #[error("a lock's message was cut off after {0} bytes")]
    Short(usize),
    /// An invalid name.
    #[error(transparent)]
    Name(#[from] LockNameError),
    /// A fence of an epoch later than the message's.
    #[error("fence {fence} belongs to epoch {}, but the message to epoch {epoch}", .fence.epoch())]
    Fence {
        /// The fence of the message.
        fence: Fence,
        /// The epoch of the message.
        epoch: u64,
    },
}

/// Appends a message to `bytes`.
pub fn encode(
    kind: u8,
    epoch: u64,
    fence: Fence,
    name: &LockName,
    payload: &[u8],
    bytes: &mut Vec<u8>,
) {
    let name = name.as_str().as_bytes();
    bytes.push(kind);
    bytes.extend_from_slice(&epoch.to_le_bytes());
    bytes.extend_from_slice(&fence.number().to_le_bytes());
    bytes.extend_from_slice(&(name.len() as u16).to_le_bytes());
    bytes.extend_from_slice(name);
    bytes.extend_from_slice(payload);
}

/// The epoch of what may be a lock message, without decoding the rest.
pub fn epoch(bytes: &[u8]) -> Option<u64> {
    let (_, rest) = bytes.split_first()?;
    let (epoch, _) = rest.split_first_chunk()?;
    Some(u64::from_le_bytes(*epoch))
}

/// Decodes a message. The bytes may be anything.
pub fn decode(bytes: &[u8]) -> Result<LockMessage<'_>, WireError> {
    let short = WireError::Short(bytes.len());
    let (&kind, rest) = bytes.split_first().ok_or(short.clone())?;
    if !is_lock(kind) {
        return Err(WireError::Kind(kind));
    }
    let (epoch, rest) = rest.split_first_chunk().ok_or(short.clone())?;
    let (fence, rest) = rest.split_first_chunk().ok_or(short.clone())?;
    let (len, rest) = rest.split_first_chunk().ok_or(short.clone())?;
    let len = usize::from(u16::from_le_bytes(*len));
    let (name, payload) = rest.split_at_checked(len).ok_or(short)?;
    let epoch = u64::from_le_bytes(*epoch);
    let fence = Fence::from_number(u64::from_le_bytes(*fence));
    if fence.epoch() > epoch {
        return Err(WireError::Fence { fence, epoch });
    }
    Ok(LockMessage {
        kind,
        epoch,
        fence,
        name: LockName::from_bytes(name)?,
        payload,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn golden() -> Vec<u8> {
        let mut bytes = vec![1, 1, 0, 0, 0, 0, 0, 0, 0];
        bytes.extend([7, 0, 0, 0, 1, 0, 0, 0]);
        bytes.extend([3, 0, b'a', b'/', b'b', 9, 9]);
        bytes
    }

    #[test]
    fn the_bytes_do_not_change() {
        let name = LockName::new("a/b").unwrap();
        let fence = Fence::from_number(Fence::first_of(1).number() + 7);
        let mut bytes = Vec::new();
        encode(KIND, 1, fence, &name, &[9, 9], &mut bytes);
        assert_eq!(bytes, golden());
        let read = decode(&bytes).unwrap();
        assert_eq!(epoch(&bytes), Some(1));
        assert_eq!((read.epoch, read.fence, read.name), (1, fence, name));
        assert_eq!(read.payload, [9, 9]);
    }

    #[test]
    fn truncated_input_is_refused() {
        let bytes = golden();
        for end in 0..bytes.len() - 2 {
            assert_eq!(decode(&bytes[..end]), Err(WireError::Short(end)));
            assert_eq!(epoch(&bytes[..end]).is_some(), end >= 9);
        }
    }

    #[test]
    fn a_fence_of_a_later_epoch_is_refused() {
        let mut bytes = golden();
        bytes[13] = 2;
        let refused = decode(&bytes).unwrap_err();
        assert!(refused.to_string().contains("to epoch 2"), "{refused}");
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            if let Ok(read) = decode(&bytes) {
                let mut again = Vec::new();
                let LockMessage { kind, epoch, fence, name, payload } = read;
                encode(kind, epoch, fence, &name, payload, &mut again);
                prop_assert_eq!(again, bytes);
            }
        }
    }
}
