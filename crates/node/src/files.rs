//! The limit of open files, and how it is shared between clients and other nodes.
//!
//! A node that cannot open a file cannot accept a connection, so its clients could keep all other
//! nodes away from it. Therefore half of the limit is reserved for the node's own port and its
//! files.

pub(crate) use soloist_transport::files::limit;
pub use soloist_transport::files::raise_limit;

/// Maximum number of connections per listener of the API, however many files may be open.
const LISTENER_CONNECTIONS_MAX: usize = 4096;
/// Maximum number of connections that a follower forwards to the leader, however many files may be
/// open.
const FORWARDS_MAX: usize = 1024;

/// Returns the number of connections that each listener of the API may have, if this many files may
/// be open. Listeners do not share their connections, so that strangers on one do not keep the
/// clients of the other out.
pub(crate) fn api_connections_max(files_max: u64, listeners: usize) -> usize {
    let half = usize::try_from(files_max / 2).unwrap_or(usize::MAX);
    (half / listeners).clamp(1, LISTENER_CONNECTIONS_MAX)
}

/// Returns the number of members' connections that a follower may forward at a time. Each takes two
/// files.
pub(crate) fn forwards_max() -> usize {
    let eighth = usize::try_from(limit() / 8).unwrap_or(usize::MAX);
    eighth.clamp(1, FORWARDS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_get_at_most_half_of_the_files() {
        assert_eq!(api_connections_max(1024, 1), 512);
        assert_eq!(api_connections_max(1024, 2), 256);
        assert_eq!(api_connections_max(0, 2), 1);
        assert_eq!(api_connections_max(65_536, 2), LISTENER_CONNECTIONS_MAX);
        assert_eq!(api_connections_max(u64::MAX, 1), LISTENER_CONNECTIONS_MAX);
    }
}
