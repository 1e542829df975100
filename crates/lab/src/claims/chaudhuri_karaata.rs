//! Chaudhuri and Karaata 1998: its claims.

use super::Claim;

pub(super) fn claims() -> Vec<Claim> {
    Vec::new()
}
