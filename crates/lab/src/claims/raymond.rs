//! Raymond 1989: its claims.

use super::Claim;

pub(super) fn claims() -> Vec<Claim> {
    Vec::new()
}
