//! The key of a session: what another process needs to end it.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use soloist_api::session::{Code, Hello, Resume, Secret};
use tokio::time::sleep;

use super::socket::{self, Refusal, refused};
use crate::client::dialer;
use crate::{ClientError, Target};

/// Timeout for one attempt.
const ATTEMPT_WITHIN: Duration = Duration::from_secs(1);

/// Pause between attempts.
const PAUSE: Duration = Duration::from_millis(50);

/// Names a client's session on its node. A process that has it can end the
/// session, and all its holds.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionKey {
    /// Address of the node, as [`Target::parse`] reads it.
    pub(super) address: String,
    pub(super) session: String,
    pub(super) secret: Secret,
}

impl fmt::Debug for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionKey")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

impl SessionKey {
    /// Ends the session: releases its holds, and gives up its requests. Call this when nothing uses
    /// them any more, for example because the process that did has died. Authenticates as
    /// [`Target::from_env`] says, and tries again while the node cannot be reached.
    pub async fn end(&self) -> Result<(), ClientError> {
        let target = Target::parse(&self.address)?.with_env()?;
        let dialer = dialer(&target, &target.addresses[0])?;
        loop {
            let hello = Hello {
                resume: Some(Resume {
                    session: self.session.clone(),
                    secret: self.secret.clone(),
                    seen: 0,
                }),
                ..Hello::default()
            };
            let error = match socket::open(&dialer, None, hello, ATTEMPT_WITHIN).await {
                Ok((socket, _, welcome)) => match socket.end(welcome.handled + 1).await {
                    Ok(()) => return Ok(()),
                    Err(broken) => broken.with(&dialer),
                },
                Err(Refusal::Closed(closed)) if closed.code == Code::NoSuchSession => {
                    return Ok(());
                }
                Err(Refusal::Closed(closed)) => refused(closed.code, closed.detail),
                Err(Refusal::Error(error)) => error,
            };
            if !error.is_unavailable() {
                return Err(error);
            }
            sleep(PAUSE).await;
        }
    }
}
