//! Acquiring a lock.
//!
//! Every request carries an id. If the connection breaks, the client sends the request again, and
//! it keeps its place in the queue. If the response to a grant is lost, the node ends the hold
//! after at most three seconds instead of the whole time to live.

use std::time::Duration;

use hyper::Method;
use soloist_api::ttl::grant_delay_max;
use soloist_api::{AcquireError, AcquireRequest, ErrorKind, Hold, LockName, Locks, Request};
use tokio::time::sleep;

use crate::client::{TIMEOUT, json, lock_path};
use crate::connection::Call;
use crate::guard::Held;
use crate::keeper::loss_in;
use crate::{Client, ClientError, ClientGuard, Moment};

impl Locks for Client {
    type Guard = ClientGuard;

    async fn request(&self, request: Request) -> Result<ClientGuard, AcquireError> {
        let asked = Moment::now();
        let answer = self.granted(&request, asked).await;
        let hold = answer.map_err(|error| acquire_error(&request.lock, error))?;
        self.confirmed(request.lock, hold, asked).await
    }
}

fn acquire_error(lock: &LockName, error: ClientError) -> AcquireError {
    let lock = lock.clone();
    match error {
        ClientError::Refused {
            kind: ErrorKind::NotGranted,
            detail,
            ..
        } => AcquireError::NotGranted { lock, detail },
        ClientError::Refused {
            kind: ErrorKind::Unavailable,
            detail,
            ..
        } => AcquireError::Unknown { lock, detail },
        error if error.is_unavailable() => AcquireError::Unavailable(error.into()),
        error => AcquireError::Refused(error.into()),
    }
}

impl Client {
    /// Sends a request, again if its connection breaks, and returns the granted hold.
    async fn granted(&self, request: &Request, asked: Moment) -> Result<Hold, ClientError> {
        let path = format!("{}/acquire", lock_path(request.lock.as_str())?);
        let owner = request.owner.as_deref().map_or_else(myself, str::to_owned);
        let pending = PendingRequest::new(self);
        let call = || {
            let left = |wait: Duration| wait.saturating_sub(Moment::now().since(asked));
            let body = AcquireRequest {
                wait_ms: request.wait.map(|wait| milliseconds(left(wait))),
                ttl_ms: self.ttl.map(milliseconds),
                owner: Some(owner.clone()),
                request_id: Some(pending.id.clone()),
            };
            Call {
                method: Method::POST,
                path: &path,
                body: Some(json(&body)),
            }
        };
        let patience = request.wait.map(|wait| wait.saturating_add(TIMEOUT));
        let mut breaks = RESENDS.iter();
        let answer = loop {
            let answer = self.node.exchange(&call, patience).await;
            match (answer, breaks.next()) {
                (Err(ClientError::Broken { .. }), Some(pause)) => sleep(*pause).await,
                (answer, _) => break answer?,
            }
        };
        // From here on, dropping `Held` releases a granted hold; the request is not cancelled.
        pending.answered();
        self.understand(&answer)
    }

    /// Creates the guard of a granted hold.
    ///
    /// The node granted the hold at some time between the request and the response. If both are
    /// close together, the hold's validity is counted from the request; otherwise the hold is
    /// renewed and its validity counted from the renewal. The first renewal also confirms to the
    /// node that the grant was received. If it is not sent here, the guard's background task sends
    /// it soon.
    async fn confirmed(
        &self,
        lock: LockName,
        hold: Hold,
        asked: Moment,
    ) -> Result<ClientGuard, AcquireError> {
        let ttl = Duration::from_millis(hold.valid_for_ms);
        let held = Held::new(self.clone(), lock, hold);
        if Moment::now().since(asked) < grant_delay_max(ttl) {
            return Ok(ClientGuard::new(held, ttl, asked, false));
        }
        let sent = Moment::now();
        match self.renew(held.id(), ttl).await {
            Ok(hold) => {
                let ttl = Duration::from_millis(hold.valid_for_ms);
                Ok(ClientGuard::new(held, ttl, sent, true))
            }
            Err(error) => match loss_in(&error) {
                Some(loss) => Err(AcquireError::Lost {
                    lock: held.lock().clone(),
                    loss,
                }),
                None => Err(acquire_error(held.lock(), error)),
            },
        }
    }
}

/// Delays before a request is sent again after its connection broke. The node keeps the request's
/// place in the queue for two seconds.
const RESENDS: [Duration; 3] = [
    Duration::ZERO,
    Duration::from_millis(100),
    Duration::from_millis(500),
];

/// A request in progress. Dropping it before [`answered`](PendingRequest::answered) cancels the
/// request at the node, in the background.
struct PendingRequest {
    client: Client,
    id: String,
    is_answered: bool,
}

impl PendingRequest {
    fn new(client: &Client) -> Self {
        PendingRequest {
            client: client.clone(),
            id: format!("{:032x}", rand::random::<u128>()),
            is_answered: false,
        }
    }

    fn answered(mut self) {
        self.is_answered = true;
    }
}

impl Drop for PendingRequest {
    fn drop(&mut self) {
        if self.is_answered {
            return;
        }
        let client = self.client.clone();
        let id = std::mem::take(&mut self.id);
        // If this fails, the node drops the request by itself a little later.
        let cancel = async move { drop(client.cancel(&id).await) };
        self.client.in_background(cancel);
    }
}

/// Converts to milliseconds, rounding up: a short wait must not become zero, which means not to
/// wait at all.
fn milliseconds(duration: Duration) -> u64 {
    let ms = duration.as_nanos().div_ceil(1_000_000);
    u64::try_from(ms).unwrap_or(u64::MAX)
}

/// The default owner: host name and process id.
fn myself() -> String {
    let system = rustix::system::uname();
    let machine = system.nodename().to_string_lossy();
    format!("{machine}, process {}", std::process::id())
}
