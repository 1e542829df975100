//! Messages about idle locks, which [`forget`](super::forget) drops when all nodes agree.

/// Messages between nodes and a lock's home.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum IdleMessage {
    /// To the home: the sender's machine is idle and suspended. Carries its balance.
    Offer(u64),
    /// To the home: the sender's machine is needed again. Carries the balance that was offered.
    Withdraw(u64),
    /// From the home: the offer no longer counts.
    Resume,
    /// From the home: all nodes that offered drop their machines.
    Forget,
    /// From the home: the receiver offers the lock too, if it has no machine for it.
    Ask,
}

impl IdleMessage {
    pub(super) fn encode(self) -> ([u8; 9], usize) {
        let (kind, balance) = match self {
            IdleMessage::Offer(balance) => (0, Some(balance)),
            IdleMessage::Withdraw(balance) => (1, Some(balance)),
            IdleMessage::Resume => (2, None),
            IdleMessage::Forget => (3, None),
            IdleMessage::Ask => (4, None),
        };
        let mut bytes = [kind; 9];
        bytes[1..].copy_from_slice(&balance.unwrap_or(0).to_le_bytes());
        (bytes, if balance.is_some() { 9 } else { 1 })
    }

    pub(super) fn decode(payload: &[u8]) -> Option<Self> {
        let (&kind, balance) = payload.split_first()?;
        let number = || Some(u64::from_le_bytes(balance.try_into().ok()?));
        match kind {
            0 => Some(IdleMessage::Offer(number()?)),
            1 => Some(IdleMessage::Withdraw(number()?)),
            2 if balance.is_empty() => Some(IdleMessage::Resume),
            3 if balance.is_empty() => Some(IdleMessage::Forget),
            4 if balance.is_empty() => Some(IdleMessage::Ask),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn golden_bytes_of_each_message() {
        let balance = 0x0102_0304_0506_0708;
        for (message, bytes) in [
            (
                IdleMessage::Offer(balance),
                &[0, 8, 7, 6, 5, 4, 3, 2, 1][..],
            ),
            (IdleMessage::Withdraw(balance), &[1, 8, 7, 6, 5, 4, 3, 2, 1]),
            (IdleMessage::Resume, &[2]),
            (IdleMessage::Forget, &[3]),
            (IdleMessage::Ask, &[4]),
        ] {
            let (encoded, length) = message.encode();
            assert_eq!(&encoded[..length], bytes);
            assert_eq!(IdleMessage::decode(bytes), Some(message));
        }
    }
}
