//! Code that the lints of this crate must refuse. Compiled only to show that they do: see
//! `.ci/run`.

use std::collections::HashMap;

pub(crate) fn reads_a_clock() -> std::time::Instant {
    std::time::Instant::now()
}

pub(crate) fn walks_a_hash_map(map: &HashMap<u64, u64>) -> u64 {
    let mut last = 0;
    for value in map.values() {
        last = *value;
    }
    last
}

/// `Duration::from_mins` is newer than the oldest supported compiler.
pub(crate) fn needs_a_newer_compiler() -> std::time::Duration {
    std::time::Duration::from_mins(1)
}
