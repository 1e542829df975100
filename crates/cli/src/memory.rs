//! Available memory of the machine, and resident memory of this process.

use std::fs;

/// Returns whether less than a tenth of the machine's memory is available. Returns `false` if that
/// cannot be determined.
pub(crate) fn is_short() -> bool {
    let Ok(text) = fs::read_to_string("/proc/meminfo") else {
        return false;
    };
    let kilobytes = |key| kilobytes(&text, key);
    match (kilobytes("MemTotal:"), kilobytes("MemAvailable:")) {
        (Some(total), Some(available)) => available < total / 10,
        _ => false,
    }
}

/// Resident memory of this process in bytes, or `None` if it cannot be determined.
pub(crate) fn resident() -> Option<u64> {
    let text = fs::read_to_string("/proc/self/status").ok()?;
    Some(kilobytes(&text, "VmRSS:")? * 1024)
}

fn kilobytes(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    line.split_whitespace().next()?.parse().ok()
}
