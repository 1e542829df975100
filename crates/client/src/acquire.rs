//! Asking for a lock.

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

/// A lock that is asked for when this is awaited. Dropping the future in between cancels the request.
///
/// The request carries an id, so it is sent again when its connection breaks, and keeps its place in the
/// queue. A grant whose response is lost costs others three seconds at most, not the whole time to live.
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
    /// Not granted in time: others hold it, or wait for it.
    #[error("{reason}")]
    NotGranted {
        /// The lock's name.
        lock: String,
        /// Who, as the node says.
        reason: String,
    },
    /// Not granted in time, and whether somebody holds it is not known: the node is cut off, or others do not answer it.
    #[error("{reason}")]
    Unknown {
        /// The lock's name.
        lock: String,
        /// Why.
        reason: String,
    },
    /// It was granted, but lost before that was known here.
    #[error("lock {lock:?} was granted, and lost at once: {}", .loss.reason)]
    Lost {
        /// The lock's name.
        lock: String,
        /// How.
        loss: Loss,
    },
    /// The node refuses, or cannot be reached.
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

    /// Waits no longer than this; otherwise, until it is granted. Zero: not behind anybody, only as long as
    /// it takes to learn whether the lock is free.
    pub fn wait(mut self, within: Duration) -> Self {
        self.wait = Some(within);
        self
    }

    /// How long the hold lives when it is not renewed, which the guard does by itself. That long others wait when
    /// this process dies. Without it, as the node is configured.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = Some(ttl);
        self
    }

    /// As the holder is called, for those who look who holds and who waits; otherwise, this machine and process.
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
        // A request that was answered is not cancelled: its hold is released, if there is one.
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

    /// The hold's life began some time between question and answer. If little time went by, it is counted from the
    /// question; else it is renewed, and counted from then. The first renewal also confirms that the grant was read;
    /// if it is not sent here, the guard's keeper sends it soon.
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

/// Pauses before a request is sent again whose connection broke. A node keeps its place in the queue for
/// two seconds.
const RESENDS: [Duration; 3] = [
    Duration::ZERO,
    Duration::from_millis(100),
    Duration::from_millis(500),
];

/// A request that is under way. If it is dropped before it was answered, it is cancelled at the node in the background.
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
        // If it fails, the node gives up by itself, a little later.
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

/// Rounded up: somebody who would wait a little does not ask for no waiting at all.
fn milliseconds(duration: Duration) -> u64 {
    let ms = duration.as_nanos().div_ceil(1_000_000);
    u64::try_from(ms).unwrap_or(u64::MAX)
}

/// This machine and process.
fn myself() -> String {
    let system = rustix::system::uname();
    let machine = system.nodename().to_string_lossy();
    format!("{machine}, process {}", std::process::id())
}
