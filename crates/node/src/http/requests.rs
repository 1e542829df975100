//! `/v1/requests`: cancel a request whose id the client chose.

use axum::extract::State;
use axum::http::StatusCode;
use soloist_api::ErrorKind;

use super::Api;
use super::error::Failure;
use super::request::{RequestOf, Who};

/// Cancel a request
///
/// The request stops waiting. If it was granted in the meantime, its hold is released.
#[cfg_attr(feature = "schema", utoipa::path(
    delete, path = "/v1/requests/{request}", tag = "locks",
    params(("request" = String, Path, description = "The `request_id` that the client chose", pattern = "^([0-9a-fA-F]{32}|[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})$")),
    responses(
        (status = 204, description = "Cancelled, or already over"),
        (status = 400, description = "Invalid id", body = soloist_api::Error),
        (status = 404, description = "Unknown request of this client", body = soloist_api::Error),
    ),
))]
pub(super) async fn give_up(
    State(api): State<Api>,
    Who(client): Who,
    RequestOf(id): RequestOf,
) -> Result<StatusCode, Failure> {
    let shared = &api.node.shared;
    if shared.core().give_up(shared, &client, id) {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(Failure::new(
            StatusCode::NOT_FOUND,
            ErrorKind::BadRequest,
            format!(
                "unknown request {id} of this client: it may be over, or belong to another node"
            ),
        ))
    }
}
