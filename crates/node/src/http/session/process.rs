//! Sessions that end with their client's process.

use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, pidfd_open};
use soloist_api::session::{Closed, Code, Hello};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::{Line, closed};
use crate::Node;
use soloist_core::sessions::SessionId;

/// Interval at which to look whether the session still exists.
const LOOK_EVERY: Duration = Duration::from_secs(60);

/// The process of a client.
pub(super) struct Process(AsyncFd<OwnedFd>);

/// The process that the client wants its session to end with, if it does.
pub(super) fn watched(hello: &Hello, line: &Line) -> Result<Option<Process>, Closed> {
    if !hello.ends_with_process {
        return Ok(None);
    }
    let refused = |detail: &str| closed(Code::BadRequest, detail);
    let pid = line.process.and_then(Pid::from_raw);
    let pid = pid.ok_or_else(|| refused("`ends_with_process` works over Unix sockets only"))?;
    let process = pidfd_open(pid, PidfdFlags::NONBLOCK);
    let process = process.map_err(|error| {
        let detail = format!(
            "process {} cannot be watched: {error}",
            pid.as_raw_nonzero()
        );
        refused(&detail)
    })?;
    #[expect(
        deprecated,
        reason = "an `OwnedFd` is always the same descriptor, and the replacement is unsafe"
    )]
    let process = AsyncFd::with_interest(process, Interest::READABLE);
    let process = process.map_err(|error| refused(&error.to_string()))?;
    Ok(Some(Process(process)))
}

impl Process {
    /// Ends the session when the process has ended.
    pub(super) async fn end_with(self, node: Node, session: SessionId) {
        loop {
            let ended = tokio::time::timeout(LOOK_EVERY, self.0.readable()).await;
            let Some(mut core) = node.shared.living() else {
                return;
            };
            if ended.is_ok() {
                return core.end_session(&node.shared, session);
            }
            if !core.table().has_session(session) {
                return;
            }
        }
    }
}
