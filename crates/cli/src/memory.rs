//! How much memory is left, and how much this process has.

use std::fs;

/// Whether the machine has less than a tenth of its memory left. Where that cannot be found out,
/// it is not.
pub fn is_short() -> bool {
    let Ok(text) = fs::read_to_string("/proc/meminfo") else {
        return false;
    };
    let kilobytes = |key| kilobytes(&text, key);
    match (kilobytes("MemTotal:"), kilobytes("MemAvailable:")) {
        (Some(total), Some(available)) => available < total / 10,
        _ => false,
    }
}

/// This process's memory, in bytes, where that can be found out.
pub fn resident() -> Option<u64> {
    let text = fs::read_to_string("/proc/self/status").ok()?;
    Some(kilobytes(&text, "VmRSS:")? * 1024)
}

fn kilobytes(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    line.split_whitespace().next()?.parse().ok()
}
