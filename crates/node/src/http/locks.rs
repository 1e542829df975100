//! `/v1/locks`: acquire locks, and list their holders and waiters.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use soloist_api::{AcquireRequest, Hold, LockInfo, LockList, check_owner};

use super::error::Failure;
use super::request::{Content, Name, Params, Who, wait};
use super::{Api, holds, lengths};
use crate::Moment;
use crate::node::acquire::{IfDropped, NotAcquired, Obstacle, earlier, held_by, unknown};
use soloist_core::locks::{HoldError, LockRequest};

/// Owner of a request that names none.
pub(super) const ANONYMOUS: &str = "anonymous";

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
        (status = 200, description = "The lock is held", body = Hold),
        (status = 400, description = "Invalid name, time or owner", body = soloist_api::Error),
        (status = 409, description = "Not granted in time; or the same request was sent again or cancelled, or its id was used for another lock", body = soloist_api::Error),
        (status = 410, description = "The lock was granted, but lost before the response", body = soloist_api::Error),
        (status = 429, description = "A quota of the client or of the node is used up", body = soloist_api::Error),
        (status = 503, description = "Whether the lock is held is unknown (`detail` has the reason), or the node is stopping", body = soloist_api::Error),
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
    let mut ask = LockRequest {
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
            return api.node.try_acquire(&name, ask).await;
        }
        ask.until = limit.map(|limit| Moment::now() + limit);
        let if_dropped = match ask.request {
            Some(_) => IfDropped::Stay,
            None => IfDropped::Cancel,
        };
        api.node.acquire(&name, ask, if_dropped).await
    };
    // No await between grant and response, so a client that disconnects first never holds the lock.
    let held = tokio::select! {
        biased;
        granted = granted => granted,
        () = api.stopping.cancelled() => return Err(Failure::stopping()),
    };
    let held = match held {
        Ok(held) => held,
        Err(error) => return Err(refused(&api, error).await),
    };
    // The hold may have been lost since, if this machine slept.
    holds::answer(&api.node.shared, &held)
}

/// Returns the response for a lock that was not acquired.
async fn refused(api: &Api, error: NotAcquired) -> Failure {
    let node = &api.node;
    match error {
        NotAcquired::NotGranted(name) => match node.obstacle(&name).await {
            Obstacle::Held { owner, node } => Failure::not_granted(held_by(&name, &owner, &node)),
            Obstacle::Earlier => Failure::not_granted(earlier(&name)),
            Obstacle::Unknown(reason) => Failure::unavailable(unknown(&name, &reason)),
        },
        NotAcquired::NotSeen(name) => Failure::unavailable(unknown(&name, &node.why_not_seen())),
        NotAcquired::Ended(hold) => {
            let core = node.shared.core();
            let error = core.table().expires(hold).err();
            holds::gone(&core, hold, error.unwrap_or(HoldError::Unknown))
        }
        NotAcquired::Refused(refused) => refused.into(),
        NotAcquired::NodeStopped(_) => Failure::stopping(),
        NotAcquired::Superseded(_) => Failure::conflict(error.to_string()),
    }
}

/// Show the holder and the waiters of a lock
///
/// As all nodes together see it.
#[cfg_attr(feature = "schema", utoipa::path(
    get, path = "/v1/locks/{name}", tag = "locks",
    params(("name" = String, Path, description = "The lock's name: 1 to 256 bytes of UTF-8 without control characters; `/` as `%2F`", min_length = 1, max_length = 256, pattern = r"^[^\x00-\x1f\x7f-\x9f]+$")),
    responses(
        (status = 200, description = "The lock", body = LockInfo),
        (status = 400, description = "Invalid name", body = soloist_api::Error),
    ),
))]
pub(super) async fn lock(State(api): State<Api>, Name(name): Name) -> Json<LockInfo> {
    Json(api.node.lock_info(&name).await)
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
        (status = 200, description = "The locks", body = LockList),
        (status = 400, description = "Invalid query", body = soloist_api::Error),
    ),
))]
pub(super) async fn locks(
    State(api): State<Api>,
    Params(from): Params<After>,
) -> Result<Json<LockList>, Failure> {
    let checked = lengths::check("cursor", from.after.as_deref());
    checked.map_err(|error| Failure::bad_request(error.to_string()))?;
    Ok(Json(api.node.lock_list(from.after).await))
}
