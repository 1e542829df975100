//! Errors as clients see them: always a status and a [`soloist_api::Error`].

use axum::Json;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use soloist_api::{Error, ErrorKind};

use crate::AcquireError;
use soloist_api::LockNameError;
use soloist_core::locks::{AskError, End, HoldError, NotAHold, NotARequestId};

/// The response to a request that failed.
#[derive(Debug)]
pub(super) struct Failure {
    status: StatusCode,
    /// Boxed, because every request carries this in its result and most succeed.
    body: Box<Error>,
}

impl Failure {
    pub fn new(status: StatusCode, error: ErrorKind, detail: impl Into<String>) -> Self {
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

    pub fn bad_request(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, ErrorKind::BadRequest, detail)
    }

    pub fn not_granted(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, ErrorKind::NotGranted, detail)
    }

    pub fn conflict(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, ErrorKind::Conflict, detail)
    }

    pub fn unavailable(detail: impl Into<String>) -> Self {
        let status = StatusCode::SERVICE_UNAVAILABLE;
        Self::new(status, ErrorKind::Unavailable, detail)
    }

    pub fn stopping() -> Self {
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            ErrorKind::Stopping,
            AskError::Stopping.to_string(),
        )
    }

    pub fn ended(end: End) -> Self {
        let detail = HoldError::Ended(end).to_string();
        let mut failure = Self::new(StatusCode::GONE, ErrorKind::Ended, detail);
        failure.body.reason = Some(end.name().to_owned());
        failure
    }

    /// Sets how long ago the hold ended, in milliseconds.
    pub fn ended_ago(mut self, ms: Option<u64>) -> Self {
        self.body.ended_ago_ms = ms;
        self
    }

    fn no_such_hold(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, ErrorKind::NoSuchHold, detail)
    }

    pub fn too_many(detail: String) -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, ErrorKind::TooMany, detail)
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        (self.status, Json(*self.body)).into_response()
    }
}

impl From<AskError> for Failure {
    fn from(error: AskError) -> Self {
        let detail = error.to_string();
        match error {
            AskError::Ttl { .. } => Self::bad_request(detail),
            AskError::OtherLock { .. } => Self::conflict(detail),
            AskError::Stopping => Self::stopping(),
            AskError::Quota(_) | AskError::LocksFull(_) => Self::too_many(detail),
        }
    }
}

impl From<AcquireError> for Failure {
    fn from(error: AcquireError) -> Self {
        match error {
            AcquireError::Refused(refused) => refused.into(),
            AcquireError::NodeStopped(_) => Self::stopping(),
            AcquireError::Superseded(_) => Self::conflict(error.to_string()),
            late => Self::not_granted(late.to_string()),
        }
    }
}

impl From<HoldError> for Failure {
    fn from(error: HoldError) -> Self {
        match error {
            HoldError::Ended(end) => Self::ended(end),
            HoldError::Ttl(ttl) => ttl.into(),
            HoldError::Unknown => Self::no_such_hold(format!(
                "{error}: it may be another node's, or have ended long ago"
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
            "there is no path {path:?}: see /openapi.json; `/` in a name is written `%2F`, and a name is not empty"
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
    let detail = format!("{name:?} is not for this path: the header `allow` has what is");
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
    fn too_many_is_a_status_of_its_own_that_names_the_limit() {
        for (error, limit) in [(AskError::LocksFull(2000), "2000 locks")] {
            let failures = [
                Failure::from(error.clone()),
                Failure::from(AcquireError::Refused(error)),
            ];
            for failure in failures {
                assert_eq!(failure.status, StatusCode::TOO_MANY_REQUESTS);
                assert_eq!(failure.body.error, ErrorKind::TooMany);
                let detail = &failure.body.detail;
                assert!(detail.contains(limit), "{detail}");
            }
        }
    }
}
