//! Acquiring a lock, on the node that is used or on another one.

use std::sync::Arc;
use std::time::Duration;

use soloist_api::obstacle::{Obstacle, unknown};
use soloist_api::session::{Code, Failure};
use soloist_api::{AcquireError, LockName, Locks, Request};

use crate::session::{Denial, Session, Wait, Wish, refused};
use crate::{Client, ClientError, ClientGuard, Moment};

impl Locks for Client {
    type Guard = ClientGuard;

    async fn request(&self, request: Request) -> Result<ClientGuard, AcquireError> {
        let lock = request.lock.clone();
        let wish = Wish {
            lock: request.lock,
            owner: request.owner,
            wait: match request.wait {
                None => Wait::Forever,
                Some(wait) if wait.is_zero() => Wait::Try,
                Some(wait) => Wait::Until(Moment::now() + wait),
            },
        };
        let mut moves = Moves::new(wish.wait);
        let mut answer = None;
        loop {
            let session = self.session_of_member();
            let denial = match session.acquire(&self.inner.runtime, wish.clone()).await {
                Ok((id, fence)) => {
                    return Ok(ClientGuard::new(self.clone(), session, id, lock, fence));
                }
                Err(denial) => denial,
            };
            if !self.moved(&session, &denial, &mut moves).await {
                let denial = match denial {
                    // What a node has answered says more than that the wait is over.
                    Denial::GivenUp(_) => answer.unwrap_or(denial),
                    _ => denial,
                };
                return Err(self.acquire_error(lock, denial).await);
            }
            if let Denial::Refused(_) = denial {
                answer = Some(denial);
            }
        }
    }
}

/// How long a request moves from node to node without finding one that serves it, if it has no
/// deadline.
const MOVE_FOR: Duration = Duration::from_secs(60);

/// Pause after all nodes were tried.
const ROUND_PAUSE: Duration = Duration::from_millis(200);

/// A request on its way from node to node.
struct Moves {
    wait: Wait,
    /// Number of nodes that failed in a row.
    failed: usize,
    /// Since when no node has answered the request.
    since: Moment,
}

/// Why a request moves.
enum Cause {
    /// The node cannot be reached.
    Unreachable(ClientError),
    /// The node is stopping.
    Stopping(ClientError),
    /// The node is not a member of the cluster, or does not know who holds the lock.
    Unavailable(ClientError),
}

impl Cause {
    /// Why a request that was denied moves, or `None` if it does not.
    fn of(denial: &Denial) -> Option<Self> {
        match denial {
            Denial::Refused(failure) => {
                let error = refused(failure.code, failure.detail.clone());
                match failure.code {
                    Code::Stopping => Some(Cause::Stopping(error)),
                    Code::Unavailable => Some(Cause::Unavailable(error)),
                    _ => None,
                }
            }
            // Another request has moved the client on.
            Denial::GivenUp(error) if error.is_outside() => Some(Cause::Unavailable(error.copy())),
            Denial::GivenUp(error) if error.is_unavailable() => {
                Some(Cause::Unreachable(error.copy()))
            }
            Denial::GivenUp(_) | Denial::Lost(_) => None,
        }
    }
}

impl Moves {
    fn new(wait: Wait) -> Self {
        Moves {
            wait,
            failed: 0,
            since: Moment::now(),
        }
    }

    /// Whether to try another one of these `nodes`.
    fn may_continue(&self, nodes: usize) -> bool {
        let now = Moment::now();
        match self.wait {
            Wait::Forever => now.since(self.since) < MOVE_FOR,
            Wait::Try => self.failed < nodes,
            Wait::Until(moment) => now < moment,
        }
    }

    /// The pause after all nodes were tried. The last attempt is made at the deadline.
    fn pause(&self) -> Duration {
        match self.wait {
            Wait::Until(moment) => ROUND_PAUSE.min(moment.since(Moment::now())),
            Wait::Forever | Wait::Try => ROUND_PAUSE,
        }
    }
}

impl Client {
    /// The session to use. If the node of the last one may have lost the cluster, it is one on the
    /// next node: there, a request need not wait until its node comes back.
    fn session_of_member(&self) -> Arc<Session> {
        let session = self.session();
        if self.inner.nodes.len() > 1 && session.may_be_outside() {
            let detail = "the node may have lost its lease".to_owned();
            self.move_on(&session, refused(Code::Unavailable, detail), true);
            return self.session();
        }
        session
    }

    /// Moves to another node if a request failed because of its node. Returns whether to try again.
    async fn moved(&self, session: &Arc<Session>, denial: &Denial, moves: &mut Moves) -> bool {
        let Some(cause) = Cause::of(denial) else {
            return false;
        };
        let nodes = self.inner.nodes.len();
        let is_outside = matches!(cause, Cause::Unavailable(_));
        if session.has_begun() {
            moves.since = Moment::now();
            if !is_outside {
                moves.failed = 0;
            }
        }
        moves.failed += 1;
        // A node that is alone and outside may come back.
        if (nodes == 1 && !is_outside) || !moves.may_continue(nodes) {
            return false;
        }
        if nodes > 1 {
            match cause {
                Cause::Unreachable(error) => self.move_on(session, error, false),
                Cause::Stopping(error) | Cause::Unavailable(error) => {
                    self.move_on(session, error, true);
                }
            }
        }
        if moves.failed.is_multiple_of(nodes) {
            tokio::time::sleep(moves.pause()).await;
        }
        true
    }
}

impl Client {
    async fn acquire_error(&self, lock: LockName, denial: Denial) -> AcquireError {
        let error = match denial {
            Denial::Refused(failure) => match failure.code {
                Code::NotGranted | Code::Unavailable => return self.obstacle(lock, failure).await,
                code => refused(code, failure.detail),
            },
            Denial::Lost(loss) => return AcquireError::Lost { lock, loss },
            Denial::GivenUp(error) => error.copy(),
        };
        match error.is_unavailable() || error.is_outside() {
            true => AcquireError::Unavailable(error.into()),
            false => AcquireError::Refused(error.into()),
        }
    }

    /// Asks who holds a lock that was not granted in time.
    async fn obstacle(&self, lock: LockName, failure: Failure) -> AcquireError {
        let is_held = failure.code == Code::NotGranted;
        let asked: Result<_, ClientError> = self.lock_info(lock.as_str()).await;
        let detail = match (asked.map(Obstacle::of), is_held) {
            (Ok(obstacle), true) => return obstacle.error(lock),
            (Ok(Obstacle::Unknown(reason)), false) => unknown(&lock, &reason),
            (Ok(_), false) | (Err(_), _) => failure.detail,
        };
        match is_held {
            true => AcquireError::NotGranted { lock, detail },
            false => AcquireError::Unknown { lock, detail },
        }
    }
}

/// The default owner: host name and process id.
pub(crate) fn myself() -> String {
    let system = rustix::system::uname();
    let machine = system.nodename().to_string_lossy();
    format!("{machine}, process {}", std::process::id())
}
