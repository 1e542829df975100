//! Errors as clients see them: always a status and a [`soloist_api::Error`].

use axum::Json;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use soloist_api::{EndReason, Error, ErrorKind};

use soloist_api::{LockNameError, OwnerError};
use soloist_core::locks::{HoldError, NotAHold, NotARequestId, RequestError};

/// The response to a request that failed.
#[derive(Debug)]
pub(super) struct Failure {
    status: StatusCode,
    /// Boxed, because every request carries this in its result and most succeed.
    body: Box<Error>,
}

impl Failure {
    pub(super) fn new(status: StatusCode, error: ErrorKind, detail: impl Into<String>) -> Self {
        let body = soloist_api::Error {
            error,
            detail: detail.into(),
            reason: None,
            ended_ago_ms: None,
        };
        Failure {
            status,
            body: Box::new(body),
        }
    }

    pub(super) fn bad_request(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, ErrorKind::BadRequest, detail)
    }

    pub(super) fn not_granted(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, ErrorKind::NotGranted, detail)
    }

    pub(super) fn conflict(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, ErrorKind::Conflict, detail)
    }

    pub(super) fn unavailable(detail: impl Into<String>) -> Self {
        let status = StatusCode::SERVICE_UNAVAILABLE;
        Self::new(status, ErrorKind::Unavailable, detail)
    }

    pub(super) fn stopping() -> Self {
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            ErrorKind::Stopping,
            RequestError::Stopping.to_string(),
        )
    }

    pub(super) fn ended(end: EndReason) -> Self {
        let detail = HoldError::Ended(end).to_string();
        let mut failure = Self::new(StatusCode::GONE, ErrorKind::Ended, detail);
        failure.body.reason = Some(end);
        failure
    }

    /// Sets how long ago the hold ended, in milliseconds.
    pub(super) fn ended_ago(mut self, ms: Option<u64>) -> Self {
        self.body.ended_ago_ms = ms;
        self
    }

    fn no_such_hold(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, ErrorKind::NoSuchHold, detail)
    }

    pub(super) fn too_many(detail: String) -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, ErrorKind::TooMany, detail)
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        (self.status, Json(*self.body)).into_response()
    }
}

impl From<RequestError> for Failure {
    fn from(error: RequestError) -> Self {
        let detail = error.to_string();
        match error {
            RequestError::Ttl { .. } => Self::bad_request(detail),
            RequestError::OtherLock { .. } => Self::conflict(detail),
            RequestError::Stopping => Self::stopping(),
            RequestError::Quota(_) | RequestError::LocksFull(_) | RequestError::SessionsFull(_) => {
                Self::too_many(detail)
            }
        }
    }
}

impl From<HoldError> for Failure {
    fn from(error: HoldError) -> Self {
        match error {
            HoldError::Ended(end) => Self::ended(end),
            HoldError::Ttl(ttl) => ttl.into(),
            HoldError::Unknown => Self::no_such_hold(format!(
                "{error}: it may belong to another node, or have ended long ago"
            )),
        }
    }
}

impl From<NotAHold> for Failure {
    fn from(error: NotAHold) -> Self {
        Self::no_such_hold(error.to_string())
    }
}

impl From<NotARequestId> for Failure {
    fn from(error: NotARequestId) -> Self {
        Self::bad_request(error.to_string())
    }
}

impl From<OwnerError> for Failure {
    fn from(error: OwnerError) -> Self {
        Self::bad_request(error.to_string())
    }
}

impl From<LockNameError> for Failure {
    fn from(error: LockNameError) -> Self {
        Self::bad_request(error.to_string())
    }
}

/// Answers a request for a path that does not exist.
pub(super) async fn no_such_path(uri: axum::http::Uri) -> Failure {
    let path: String = uri.path().chars().take(80).collect();
    Failure::new(
        StatusCode::NOT_FOUND,
        ErrorKind::BadRequest,
        format!(
            "unknown path {path:?}: see /openapi.json; write `/` in a name as `%2F`, and do not \
             leave a name empty"
        ),
    )
}

/// Answers a request with a method that the path does not support. The router adds the `allow`
/// header.
pub(super) async fn no_such_method(method: Method) -> Response {
    if method == Method::OPTIONS {
        return StatusCode::NO_CONTENT.into_response();
    }
    let name: String = method.as_str().chars().take(20).collect();
    let detail = format!(
        "method {name:?} is not allowed for this path: the header `allow` lists those that are"
    );
    Failure::new(
        StatusCode::METHOD_NOT_ALLOWED,
        ErrorKind::BadRequest,
        detail,
    )
    .into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tests over HTTP do not reach this limit. The tests of the table check that it is enforced.
    #[test]
    fn too_many_requests_have_their_own_status_and_name_the_limit() {
        let failure = Failure::from(RequestError::LocksFull(2000));
        assert_eq!(failure.status, StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(failure.body.error, ErrorKind::TooMany);
        let detail = &failure.body.detail;
        assert!(detail.contains("2000 locks"), "{detail}");
    }
}
