//! Acquiring a lock.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::time::Duration;

use hyper::Method;
use soloist_api::{AcquireRequest, ErrorKind, Hold};
use tokio::time::sleep;

use crate::client::{PATIENCE, json, lock_path};
use crate::connection::Call;
use crate::guard::Held;
use crate::keeper::loss_in;
use crate::{Client, ClientError, Guard, Loss, Moment};

/// Builder for a lock request. The request is sent when this is awaited; dropping the future before
/// it completes cancels the request.
///
/// Every request carries an id. If the connection breaks, the client sends the request again, and
/// it keeps its place in the queue. If the response to a grant is lost, the node ends the hold
/// after at most three seconds instead of the whole time to live.
#[must_use = "a lock is asked for only when this is awaited"]
pub struct Acquire {
    client: Client,
    name: String,
    wait: Option<Duration>,
    ttl: Option<Duration>,
    owner: Option<String>,
}

/// Why a lock was not acquired.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AcquireError {
    /// The lock was not granted in time: others hold it or were ahead in the queue.
    #[error("{reason}")]
    NotGranted {
        /// The lock's name.
        lock: String,
        /// The node's explanation.
        reason: String,
    },
    /// The lock was not granted in time, and it is not known whether it is held: the node is cut
    /// off from the cluster, or other nodes do not answer it.
    #[error("{reason}")]
    Unknown {
        /// The lock's name.
        lock: String,
        /// The node's explanation.
        reason: String,
    },
    /// The lock was granted, but lost before the client could confirm it.
    #[error("lock {lock:?} was granted but lost before the client could confirm it: {}", .loss.reason)]
    Lost {
        /// The lock's name.
        lock: String,
        /// Why and when it was lost.
        loss: Loss,
    },
    /// The node rejected the request or is unreachable.
    #[error(transparent)]
    Client(#[from] ClientError),
}

impl Acquire {
    pub(crate) fn new(client: Client, name: &str) -> Self {
        Acquire {
            client,
            name: name.to_owned(),
            wait: None,
            ttl: None,
            owner: None,
        }
    }

    /// Sets the maximum time to wait. By default, the request waits until the lock is granted. With
    /// zero, it does not queue behind others: it takes only as long as it takes to find out whether
    /// the lock is free.
    pub fn wait(mut self, within: Duration) -> Self {
        self.wait = Some(within);
        self
    }

    /// Sets the time to live of the hold. The guard renews the hold by itself. If this process
    /// dies, others wait this long for the lock. Defaults to the node's setting.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = Some(ttl);
        self
    }

    /// Sets the name of the holder, shown in lists of holders and waiters. Defaults to the host
    /// name and process id.
    pub fn owner(mut self, owner: &str) -> Self {
        self.owner = Some(owner.to_owned());
        self
    }

    async fn run(self) -> Result<Guard, AcquireError> {
        let path = format!("{}/acquire", lock_path(&self.name)?);
        let owner = self.owner.clone().unwrap_or_else(myself);
        let request = Asking::new(&self.client);
        let asked = Moment::now();
        let call = || {
            let left = |wait: Duration| wait.saturating_sub(Moment::now().since(asked));
            let body = AcquireRequest {
                wait_ms: self.wait.map(|wait| milliseconds(left(wait))),
                ttl_ms: self.ttl.map(milliseconds),
                owner: Some(owner.clone()),
                request_id: Some(request.id.clone()),
            };
            Call {
                method: Method::POST,
                path: &path,
                body: Some(json(&body)),
            }
        };
        let patience = self.wait.map(|wait| wait.saturating_add(PATIENCE));
        let mut breaks = RESENDS.iter();
        let answer = loop {
            let answer = self.client.node.exchange(call, patience).await;
            match (answer, breaks.next()) {
                (Err(ClientError::Broken { .. }), Some(pause)) => sleep(*pause).await,
                (answer, _) => break answer,
            }
        };
        let answer = answer?;
        // From here on, dropping `Held` releases a granted hold; the request is not cancelled.
        request.answered();
        let hold: Hold = self
            .client
            .understand(&answer)
            .map_err(|error| match error {
                ClientError::Refused {
                    kind: ErrorKind::NotGranted,
                    detail,
                    ..
                } => AcquireError::NotGranted {
                    lock: self.name.clone(),
                    reason: detail,
                },
                ClientError::Refused {
                    kind: ErrorKind::Unavailable,
                    detail,
                    ..
                } => AcquireError::Unknown {
                    lock: self.name.clone(),
                    reason: detail,
                },
                other => AcquireError::Client(other),
            })?;
        self.confirmed(hold, asked).await
    }

    /// Creates the guard of a granted hold.
    ///
    /// The node granted the hold at some time between the request and the response. If both are
    /// close together, the hold's validity is counted from the request; otherwise the hold is
    /// renewed and its validity counted from the renewal. The first renewal also confirms to the
    /// node that the grant was received. If it is not sent here, the guard's background task sends
    /// it soon.
    async fn confirmed(self, hold: Hold, asked: Moment) -> Result<Guard, AcquireError> {
        let ttl = Duration::from_millis(hold.valid_for_ms);
        let held = Held::new(self.client.clone(), hold);
        if Moment::now().since(asked) < ttl / 4 {
            return Ok(Guard::new(held, ttl, asked, false));
        }
        let sent = Moment::now();
        match self.client.renew(held.id(), ttl).await {
            Ok(hold) => {
                let ttl = Duration::from_millis(hold.valid_for_ms);
                Ok(Guard::new(held, ttl, sent, true))
            }
            Err(error) => match loss_in(&error) {
                Some(loss) => Err(AcquireError::Lost {
                    lock: self.name,
                    loss,
                }),
                None => Err(error.into()),
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

/// A request in progress. Dropping it before [`answered`](Asking::answered) cancels the request at
/// the node, in the background.
struct Asking {
    client: Client,
    id: String,
    is_answered: bool,
}

impl Asking {
    fn new(client: &Client) -> Self {
        Asking {
            client: client.clone(),
            id: format!("{:032x}", rand::random::<u128>()),
            is_answered: false,
        }
    }

    fn answered(mut self) {
        self.is_answered = true;
    }
}

impl Drop for Asking {
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

impl IntoFuture for Acquire {
    type Output = Result<Guard, AcquireError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
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
