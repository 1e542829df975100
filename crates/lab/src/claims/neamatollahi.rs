//! Neamatollahi et al. 2017: its claims.

use super::Claim;

pub(super) fn claims() -> Vec<Claim> {
    Vec::new()
}
