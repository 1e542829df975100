//! Sessions that end with their client's process.
//!
//! The system tells the process that connected by its id. If that process ends before its hello is
//! read, within ten seconds, and another one has the connection, then the id may belong to a third
//! process by then, and the session ends with that one. `SO_PEERPIDFD` would rule this out, but
//! rustix does not have it yet. No other client is affected.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Weak};

use rustix::process::{Pid, PidfdFlags, pidfd_open};
use soloist_api::session::{Closed, Code, Hello};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio_util::task::AbortOnDropHandle;

use super::{Line, closed};
use crate::node::shared::Shared;
use soloist_core::sessions::{ConnectionId, SessionId};

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
    /// Watches the process until the returned value is dropped. When it has ended, so does the
    /// session that this connection has started or resumed.
    pub(super) fn watch(
        self,
        shared: &Arc<Shared>,
        session: SessionId,
        connection: ConnectionId,
    ) -> AbortOnDropHandle<()> {
        // The node keeps the task, so the task does not keep the node.
        let shared = Arc::downgrade(shared);
        let watching = self.end_session(shared, session, connection);
        AbortOnDropHandle::new(tokio::spawn(watching))
    }

    async fn end_session(self, shared: Weak<Shared>, id: SessionId, connection: ConnectionId) {
        let _ = self.0.readable().await;
        if let Some(shared) = shared.upgrade()
            && let Some(mut core) = shared.living()
        {
            core.end_session_with_process(&shared, id, connection);
        }
    }
}
