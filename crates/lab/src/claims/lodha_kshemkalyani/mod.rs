//! Lodha and Kshemkalyani 2000: its claims.

use super::Claim;

pub(super) fn claims() -> Vec<Claim> {
    Vec::new()
}
