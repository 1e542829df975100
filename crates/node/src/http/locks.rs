//! `/v1/locks`: acquire locks, and list their holders and waiters.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use futures_util::stream::StreamExt;
use serde::Deserialize;
use soloist_api::{AcquireRequest, Hold, LockInfo, Locks};

use super::error::Failure;
use super::gather::{ask_all, look};
use super::request::{Content, Name, Params, Who, wait};
use super::{Api, holds};
use crate::node::inquiry::{Answer, Question};
use crate::node::lock::IfDropped;
use crate::node::state::Held;
use crate::{AcquireError, Moment};
use soloist_api::LockName;
use soloist_core::locks::{Ask, HoldError, LockView};

/// Maximum length of an owner's name in bytes.
const OWNER_MAX: usize = 256;

/// Owner of a request that names none.
const ANONYMOUS: &str = "anonymous";

/// Timeout for acquiring a lock that nobody holds.
const TRY_MAX: Duration = Duration::from_secs(1);

/// Interval at which the nodes are asked, in the meantime, whether anybody has got it.
const TRY_EVERY: Duration = Duration::from_millis(20);

/// Acquire a lock
///
/// Waits until the lock is granted, or for `wait_ms`. A client that disconnects stops waiting.
///
/// With a `request_id`, the request may be sent again, to the same node and as the same client
/// (Unix user, token or certificate). The same id is the same request: it keeps its place in the
/// queue, or gets the same hold again. The time to wait and the time to live are those of the first
/// one. A waiter keeps its place for 2 seconds after its connection broke.
///
/// A grant with a `request_id` must be confirmed: until the hold is renewed for the first time, it
/// is valid for at most 3 seconds, as `valid_for_ms` says. The renewal confirms that the grant was
/// read, and gives the hold its full time to live. A grant that nobody reads thus ends after 3
/// seconds. Without a `request_id` no confirmation is needed, and a grant that nobody reads lasts
/// for its time to live.
#[cfg_attr(feature = "schema", utoipa::path(
    post, path = "/v1/locks/{name}/acquire", tag = "locks",
    params(("name" = String, Path, description = "The lock's name: 1 to 256 bytes of UTF-8 without control characters; `/` as `%2F`", min_length = 1, max_length = 256, pattern = r"^[^\x00-\x1f\x7f-\x9f]+$")),
    request_body = AcquireRequest,
    responses(
        (status = 200, description = "It is held", body = Hold),
        (status = 400, description = "The name, a time or the owner cannot be", body = soloist_api::Error),
        (status = 409, description = "Not granted in time; or the same request was sent again or cancelled, or was for another lock", body = soloist_api::Error),
        (status = 410, description = "It was granted, and lost before this was answered", body = soloist_api::Error),
        (status = 429, description = "Beyond a quota of the client or of the node", body = soloist_api::Error),
        (status = 503, description = "Whether it is held is not known, `detail` says why; or the node stops", body = soloist_api::Error),
    ),
))]
pub(super) async fn acquire(
    State(api): State<Api>,
    Who(client): Who,
    Name(name): Name,
    Content(request): Content<AcquireRequest>,
) -> Result<Json<Hold>, Failure> {
    let owner = request.owner.as_deref().unwrap_or(ANONYMOUS);
    check_owner(owner)?;
    let ttl_default = api.node.shared.config.ttl.default;
    let mut ask = Ask {
        owner: owner.into(),
        ttl: Some(request.ttl_ms.map_or(ttl_default, Duration::from_millis)),
        until: None,
        client: client.clone(),
        request: request.request_id.as_deref().map(str::parse).transpose()?,
    };
    let limit = request.wait_ms.map(wait).transpose()?;
    let _one_of_many = api.long.place(&client)?;
    let granted = async {
        if limit.is_some_and(|limit| limit.is_zero()) {
            return try_acquire(&api, &name, ask).await;
        }
        ask.until = limit.map(|limit| Moment::now() + limit);
        let if_dropped = match ask.request {
            Some(_) => IfDropped::Stay,
            None => IfDropped::Cancel,
        };
        Ok(api.node.acquire(&name, ask, if_dropped).await?)
    };
    // No await between grant and response, so a client that disconnects first never holds the lock.
    let held = tokio::select! {
        biased;
        granted = granted => granted,
        () = api.stopping.cancelled() => return Err(Failure::stopping()),
    };
    let held = match held {
        Ok(held) => held,
        Err(error) => return Err(refused(&api, &name, error).await),
    };
    // The hold may have been lost since, if this machine slept.
    holds::answer(&api.node.shared, &held)
}

fn check_owner(owner: &str) -> Result<(), Failure> {
    if owner.len() > OWNER_MAX {
        return Err(Failure::bad_request(format!(
            "the owner has {} bytes: at most {OWNER_MAX} are allowed, shorten it",
            owner.len()
        )));
    }
    match owner.chars().find(|c| c.is_control()) {
        Some(control) => Err(Failure::bad_request(format!(
            "the owner has the control character {control:?}: leave it out"
        ))),
        None => Ok(()),
    }
}

/// Returns the response for a lock that was not acquired.
async fn refused(api: &Api, name: &LockName, error: NotAcquired) -> Failure {
    match error {
        NotAcquired::Taken | NotAcquired::Error(AcquireError::Late(_)) => why_not(api, name).await,
        NotAcquired::NotSeen => unknown(name, &api.node.shared.why_unknown().unwrap_or(format!(
            "nobody was seen with it, but it did not come within {TRY_MAX:?}: a node may be down or slow"
        ))),
        NotAcquired::Error(AcquireError::Ended(hold)) => {
            let shared = &api.node.shared;
            let core = shared.core();
            let error = core.table().expires(hold).err();
            holds::gone(&core, hold, error.unwrap_or(HoldError::Unknown))
        }
        NotAcquired::Error(error) => error.into(),
    }
}

/// Returns why a lock was not granted in time: it is held, or this node does not know.
async fn why_not(api: &Api, name: &LockName) -> Failure {
    let _one_of_few = api.looking.acquire().await;
    let seen = look(&api.node, Question::Lock(name.to_string())).await;
    let lock = seen.lock(name.as_str(), api.algorithm(name.as_str()));
    match (lock.holder, lock.reason) {
        (Some(holder), _) => Failure::not_granted(format!(
            "lock {name:?} is held by {} on node {}; give a longer wait_ms to wait for it",
            holder.owner, holder.node
        )),
        (None, Some(reason)) => unknown(name, &reason),
        (None, None) => Failure::not_granted(format!(
            "lock {name:?} was not granted in time: others were before this one"
        )),
    }
}

fn unknown(name: &LockName, reason: &str) -> Failure {
    Failure::unavailable(format!(
        "whether lock {name:?} is held is not known: {reason}"
    ))
}

/// Why a lock was not acquired.
enum NotAcquired {
    /// Another request was earlier.
    Taken,
    /// No holder or earlier waiter was seen, but the lock was not granted.
    NotSeen,
    Error(AcquireError),
}

impl From<AcquireError> for NotAcquired {
    fn from(error: AcquireError) -> Self {
        NotAcquired::Error(error)
    }
}

/// Acquires a lock unless another request is earlier. Requests the lock and asks all nodes at the
/// same time, so that a free lock is granted without extra delay.
async fn try_acquire(api: &Api, name: &LockName, mut ask: Ask) -> Result<Arc<Held>, NotAcquired> {
    let asked = Moment::now();
    let (is_resend, own) = {
        let core = api.node.shared.core();
        let known = ask
            .request
            .and_then(|id| core.table().request(&ask.client, id));
        (known.is_some(), core.table().view(asked, name))
    };
    ask.until = Some(asked + TRY_MAX);
    let late = |error| match error {
        AcquireError::Late(_) => NotAcquired::NotSeen,
        other => other.into(),
    };
    let mut acquire = pin!(api.node.acquire(name, ask, IfDropped::Cancel));
    // A request that is sent again does not count as its own predecessor, and it waits no longer
    // than it would have at first.
    if is_resend {
        return acquire.await.map_err(late);
    }
    if own.is_some() {
        return Err(NotAcquired::Taken);
    }
    let granted = tokio::select! {
        biased;
        granted = &mut acquire => granted,
        () = somebody_before(api, name, asked) => {
            // The holder seen may be this request itself, in which case the answer is already
            // there.
            tokio::select! {
                biased;
                granted = &mut acquire => granted,
                () = std::future::ready(()) => return Err(NotAcquired::Taken),
            }
        }
    };
    granted.map_err(late)
}

/// Returns when another request holds the lock, or certainly began to wait for it before `asked`.
async fn somebody_before(api: &Api, name: &LockName, asked: Moment) {
    let question = Question::Lock(name.to_string());
    loop {
        let mut answers = ask_all(&api.node, &question);
        while let Some((_, answer)) = answers.next().await {
            let Some(Answer::Lock(Some(view))) = answer else {
                continue;
            };
            if is_before(&view, Moment::now().since(asked)) {
                return;
            }
        }
        tokio::time::sleep(TRY_EVERY).await;
    }
}

/// Returns whether the lock is held there, or has a waiter that has waited for longer than this. If
/// two requests try at the same time, one of them gets the lock.
fn is_before(view: &LockView, waited_for: Duration) -> bool {
    let longest = view.waiters.iter().map(|waiter| waiter.waited_for).max();
    view.holder.is_some() || longest.is_some_and(|longest| longest > waited_for)
}

/// Show the holder and the waiters of a lock
///
/// As all nodes together see it.
#[cfg_attr(feature = "schema", utoipa::path(
    get, path = "/v1/locks/{name}", tag = "locks",
    params(("name" = String, Path, description = "The lock's name: 1 to 256 bytes of UTF-8 without control characters; `/` as `%2F`", min_length = 1, max_length = 256, pattern = r"^[^\x00-\x1f\x7f-\x9f]+$")),
    responses(
        (status = 200, description = "The lock", body = LockInfo),
        (status = 400, description = "The name cannot be", body = soloist_api::Error),
    ),
))]
pub(super) async fn lock(State(api): State<Api>, Name(name): Name) -> Json<LockInfo> {
    let _one_of_few = api.looking.acquire().await;
    let seen = look(&api.node, Question::Lock(name.to_string())).await;
    Json(seen.lock(name.as_str(), api.algorithm(name.as_str())))
}

/// Query of a list of locks.
#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::IntoParams))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", into_params(parameter_in = Query))]
pub(super) struct After {
    /// List only locks after this name: the `next` of the previous answer.
    after: Option<String>,
}

/// List all locks that are held or waited for
///
/// As all nodes together see them, sorted by name. Each answer has as many as fit.
#[cfg_attr(feature = "schema", utoipa::path(
    get, path = "/v1/locks", tag = "locks",
    params(After),
    responses(
        (status = 200, description = "The locks", body = Locks),
        (status = 400, description = "The question cannot be", body = soloist_api::Error),
    ),
))]
pub(super) async fn locks(State(api): State<Api>, Params(from): Params<After>) -> Json<Locks> {
    let _one_of_few = api.looking.acquire().await;
    let seen = look(&api.node, Question::Locks(from.after)).await;
    Json(seen.page(|name| api.algorithm(name).to_owned()))
}
