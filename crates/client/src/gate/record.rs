//! Content of a gate's file: one line with the fence and a checksum, so that a torn or altered file
//! is never read as some other fence.

use crate::Fence;

const BEGIN: &str = "soloist-fence 1 ";

/// Maximum length of a record. A longer file is damaged.
pub(super) const LONGEST: usize = BEGIN.len() + 20 + 1 + 8 + 1;

pub(super) fn write(fence: Fence) -> String {
    let body = format!("{BEGIN}{fence}");
    format!("{body} {:08x}\n", check_sum(body.as_bytes()))
}

/// Returns the fence if `bytes` are exactly what [`write()`] produces for it.
pub(super) fn read(bytes: &[u8]) -> Option<Fence> {
    let text = std::str::from_utf8(bytes).ok()?;
    let (fence, _) = text.strip_prefix(BEGIN)?.split_once(' ')?;
    let fence = fence.parse().ok()?;
    (write(fence) == text).then_some(fence)
}

/// CRC-32 as in IEEE 802.3.
fn check_sum(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| {
            (sum >> 1) ^ (0xedb8_8320 & (sum & 1).wrapping_neg())
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_matches_known_values() {
        assert_eq!(check_sum(b"123456789"), 0xcbf4_3926);
    }

    #[test]
    fn the_form_does_not_change() {
        // Files written by older versions must stay readable.
        assert_eq!(
            read(b"soloist-fence 1 42 195bbc66\n"),
            Some(Fence::from_number(42))
        );
    }

    #[test]
    fn only_what_was_written_is_read() {
        for fence in [0, 1, 9, 10, 12_345, u64::MAX].map(Fence::from_number) {
            let good = write(fence).into_bytes();
            assert!(good.len() <= LONGEST);
            assert_eq!(read(&good), Some(fence));
            for cut in 0..good.len() {
                assert_eq!(read(&good[..cut]), None);
            }
            for at in 0..good.len() {
                for bit in 0..8 {
                    let mut bent = good.clone();
                    bent[at] ^= 1 << bit;
                    assert_eq!(read(&bent), None, "{bent:?}");
                }
            }
            assert_eq!(read(&[good.as_slice(), b"\n"].concat()), None);
            assert_eq!(read(&[good.as_slice(), &good].concat()), None);
        }
    }
}
