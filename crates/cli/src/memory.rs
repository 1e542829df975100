//! How much memory is left.

/// Whether the machine has less than a tenth of its memory left. Where that cannot be found out,
/// it is not.
pub fn is_short() -> bool {
    let Ok(text) = std::fs::read_to_string("/proc/meminfo") else {
        return false;
    };
    let kilobytes = |key: &str| -> Option<u64> {
        let line = text.lines().find_map(|line| line.strip_prefix(key))?;
        line.split_whitespace().next()?.parse().ok()
    };
    match (kilobytes("MemTotal:"), kilobytes("MemAvailable:")) {
        (Some(total), Some(available)) => available < total / 10,
        _ => false,
    }
}
