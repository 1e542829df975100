//! `/v1/holds`: renew, release and watch a hold. Knowing its id is enough.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Deserialize;
use soloist_api::{EndReason, Hold, RenewRequest};

use super::Api;
use super::error::Failure;
use super::request::{Content, Id, Params, Who, wait};
use crate::Moment;
use crate::node::event::milliseconds;
use crate::node::shared::Shared;
use crate::node::state::{NodeState, SharedHold};
use soloist_core::locks::{Grant, HoldError, HoldId};

/// Describes a hold to its holder. The holder's clock may run slower than this node's, so the
/// holder is promised less time than this node waits.
fn describe(shared: &Shared, core: &NodeState, grant: &Grant) -> Result<Hold, Failure> {
    let promise = core.promise(grant.hold);
    let until = promise.map_err(|error| gone(core, grant.hold, error))?;
    let now = Moment::now();
    let valid_for = until.map(|until| shared.lease().told(until.since(now)));
    let expires = core.table().expires(grant.hold);
    let expires = expires.expect("the table has the hold");
    let ending = core.is_draining().then_some(EndReason::NodeStopped);
    Ok(Hold {
        hold: grant.hold.to_string(),
        fence: grant.fence,
        lock: grant.lock.to_string(),
        valid_for_ms: valid_for.map_or(u64::MAX, milliseconds),
        expires_in_ms: expires.map_or(u64::MAX, |at| milliseconds(at.since(now))),
        ending,
    })
}

/// Returns the failure for a hold that has ended or is unknown.
pub(super) fn gone(core: &NodeState, hold: HoldId, error: HoldError) -> Failure {
    let ended = core.table().ended_at(hold);
    let ago = ended.map(|ended| milliseconds(Moment::now().since(ended)));
    Failure::from(error).ended_ago(ago)
}

/// Query of a request that watches a hold.
#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::IntoParams))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", into_params(parameter_in = Query))]
pub(super) struct Watch {
    /// Wait up to this many milliseconds for the hold to end.
    #[cfg_attr(feature = "schema", param(minimum = 0))]
    wait_ms: Option<u64>,
}

/// Check whether a hold is still held
///
/// Answers immediately, or, with `wait_ms`, as soon as the hold has ended or is `ending` because
/// the node is stopping.
#[cfg_attr(feature = "schema", utoipa::path(
    get, path = "/v1/holds/{hold}", tag = "holds",
    params(("hold" = String, Path, description = "The hold's id", pattern = "^[0-9a-fA-F]{32}$"), Watch),
    responses(
        (status = 200, description = "The lock is held", body = Hold),
        (status = 400, description = "Invalid time", body = soloist_api::Error),
        (status = 404, description = "Unknown hold", body = soloist_api::Error),
        (status = 410, description = "The hold has ended; `reason` says why", body = soloist_api::Error),
        (status = 429, description = "Too many requests wait on this node", body = soloist_api::Error),
    ),
))]
pub(super) async fn hold(
    State(api): State<Api>,
    Who(client): Who,
    Id(id): Id,
    Params(watch): Params<Watch>,
) -> Result<Json<Hold>, Failure> {
    let shared = &api.node.shared;
    let limit = watch.wait_ms.map_or(Ok(Duration::ZERO), wait)?;
    let held = {
        let mut core = shared.core();
        core.look(shared);
        let held = core.hold(id);
        held.map_err(|error| gone(&core, id, error))?
    };
    if !limit.is_zero() {
        let _one_of_many = api.long.place(&client)?;
        tokio::select! {
            _ = held.ended() => {}
            () = shared.draining.cancelled() => {}
            () = tokio::time::sleep(limit) => {}
            () = api.stopping.cancelled() => {}
        }
    }
    answer(shared, &held)
}

/// Describes a hold as of now.
pub(super) fn answer(shared: &Shared, held: &SharedHold) -> Result<Json<Hold>, Failure> {
    let mut core = shared.core();
    core.look(shared);
    Ok(Json(describe(shared, &core, &held.grant)?))
}

/// Renew a hold
///
/// The first renewal also confirms that the client has read the grant; see `request_id` in the
/// request to acquire a lock. While the node is stopping, a hold is no longer extended: the answer
/// says how long it remains valid, and that it is `ending`.
#[cfg_attr(feature = "schema", utoipa::path(
    post, path = "/v1/holds/{hold}/renew", tag = "holds",
    params(("hold" = String, Path, description = "The hold's id", pattern = "^[0-9a-fA-F]{32}$")),
    request_body = RenewRequest,
    responses(
        (status = 200, description = "The hold was extended", body = Hold),
        (status = 400, description = "Invalid time", body = soloist_api::Error),
        (status = 404, description = "Unknown hold", body = soloist_api::Error),
        (status = 410, description = "The hold has ended; `reason` says why", body = soloist_api::Error),
    ),
))]
pub(super) async fn renew(
    State(api): State<Api>,
    Id(id): Id,
    Content(request): Content<RenewRequest>,
) -> Result<Json<Hold>, Failure> {
    let shared = &api.node.shared;
    let ttl = request.ttl_ms.map(Duration::from_millis);
    let mut core = shared.core();
    let renewed = core.drive(shared, |part, now, out| {
        let table = part.table_mut(now, out);
        table.renew(now, id, ttl)?;
        table.grant(id)
    });
    let grant = renewed.map_err(|error| gone(&core, id, error))?;
    Ok(Json(describe(shared, &core, &grant)?))
}

/// Release a hold
#[cfg_attr(feature = "schema", utoipa::path(
    delete, path = "/v1/holds/{hold}", tag = "holds",
    params(("hold" = String, Path, description = "The hold's id", pattern = "^[0-9a-fA-F]{32}$")),
    responses(
        (status = 204, description = "Released"),
        (status = 404, description = "Unknown hold", body = soloist_api::Error),
        (status = 410, description = "The hold had already ended; `reason` says why", body = soloist_api::Error),
    ),
))]
pub(super) async fn release(State(api): State<Api>, Id(id): Id) -> Result<StatusCode, Failure> {
    let shared = &api.node.shared;
    let mut core = shared.core();
    let released = core.release(shared, id);
    released.map_err(|error| gone(&core, id, error))?;
    Ok(StatusCode::NO_CONTENT)
}
