//! Extractors that parse and check the parts of a request.

use std::time::Duration;

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use serde::de::DeserializeOwned;
use soloist_api::ErrorKind;

use super::error::Failure;
use super::origin;
use soloist_api::LockName;
use soloist_api::{NodeName, NodeNameError};
use soloist_core::locks::{Client, HoldId, RequestId, WAIT_MAX};

/// Maximum length of a body in bytes.
const BODY_MAX: usize = 64 << 10;

/// Timeout for receiving it.
const BODY_WITHIN: Duration = Duration::from_secs(10);

/// Maximum time to wait, in milliseconds.
pub(super) const WAIT_MS_MAX: u64 = WAIT_MAX.as_millis() as u64;

/// Checks a time to wait.
pub(super) fn wait(wait_ms: u64) -> Result<Duration, Failure> {
    if wait_ms > WAIT_MS_MAX {
        return Err(Failure::bad_request(format!(
            "wait_ms is {wait_ms} (maximum: {WAIT_MS_MAX}, a day); repeat the request to wait \
             longer"
        )));
    }
    Ok(Duration::from_millis(wait_ms))
}

async fn segment<S: Send + Sync>(parts: &mut Parts, state: &S) -> Result<String, Failure> {
    let path = Path::<String>::from_request_parts(parts, state).await;
    let Path(segment) = path.map_err(|error| Failure::bad_request(error.body_text()))?;
    Ok(segment)
}

/// The lock's name in the path.
pub(super) struct Name(pub LockName);

impl<S: Send + Sync> FromRequestParts<S> for Name {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        Ok(Name(LockName::new(&segment(parts, state).await?)?))
    }
}

/// The hold's id in the path.
pub(super) struct Id(pub HoldId);

impl<S: Send + Sync> FromRequestParts<S> for Id {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        Ok(Id(segment(parts, state).await?.parse()?))
    }
}

/// The request's id in the path.
pub(super) struct RequestOf(pub RequestId);

impl<S: Send + Sync> FromRequestParts<S> for RequestOf {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        Ok(RequestOf(segment(parts, state).await?.parse()?))
    }
}

/// The client of the connection.
pub(super) struct Who(pub Client);

impl<S: Send + Sync> FromRequestParts<S> for Who {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Failure> {
        let client = parts.extensions.get::<Client>();
        Ok(Who(client.expect("each connection has a client").clone()))
    }
}

/// The node's name in the path.
pub(super) struct NodeOf(pub NodeName);

impl<S: Send + Sync> FromRequestParts<S> for NodeOf {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        let name = segment(parts, state).await?.parse();
        let name = name.map_err(|error: NodeNameError| Failure::bad_request(error.to_string()))?;
        Ok(NodeOf(name))
    }
}

/// The query string.
pub(super) struct Params<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Params<T> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        let query = Query::<T>::from_request_parts(parts, state).await;
        let Query(params) = query.map_err(|error| Failure::bad_request(error.body_text()))?;
        Ok(Params(params))
    }
}

/// The body, as JSON. An empty body has the default.
pub(super) struct Content<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned + Default> FromRequest<S> for Content<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, _: &S) -> Result<Self, Failure> {
        let is_json = is_json(&request);
        let (head, body) = request.into_parts();
        let body = whole(body, BODY_WITHIN).await?;
        // A page in a browser can send other types, and no body, to another origin without a
        // preflight request.
        if body.is_empty() {
            origin::check_page(&head.headers)?;
            return Ok(Content(T::default()));
        }
        if !is_json {
            return Err(Failure::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                ErrorKind::BadRequest,
                "the body must be JSON, with the header `content-type: application/json`",
            ));
        }
        // serde would accept an array as the fields in order.
        if body.trim_ascii_start().first() != Some(&b'{') {
            let detail = "the body must be a JSON object: send none for the defaults";
            return Err(Failure::bad_request(detail));
        }
        let content = serde_json::from_slice(&body);
        let wrong = |error| Failure::bad_request(format!("invalid body: {error}"));
        content.map(Content).map_err(wrong)
    }
}

/// Reads a whole body, with a timeout and a maximum length.
async fn whole(body: Body, within: Duration) -> Result<Bytes, Failure> {
    let reading = to_bytes(body, BODY_MAX);
    let Ok(read) = tokio::time::timeout(within, reading).await else {
        return Err(Failure::new(
            StatusCode::REQUEST_TIMEOUT,
            ErrorKind::BadRequest,
            format!("the body did not arrive within {within:?}: send it with the request"),
        ));
    };
    read.map_err(|_| {
        Failure::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            ErrorKind::BadRequest,
            format!("the body is longer than {BODY_MAX} bytes, or incomplete"),
        )
    })
}

fn is_json(request: &Request) -> bool {
    let kind = request.headers().get(header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let essence = kind.split(';').next().unwrap_or_default().trim();
    essence.eq_ignore_ascii_case("application/json")
}

#[cfg(test)]
mod tests {
    use axum::response::IntoResponse;
    use futures_util::StreamExt;
    use futures_util::stream::{self, pending};

    use super::*;

    type Piece = Result<Bytes, std::io::Error>;

    fn piece(bytes: &'static [u8]) -> Piece {
        Ok(Bytes::from_static(bytes))
    }

    async fn status(body: Body, within: Duration) -> StatusCode {
        let read = whole(body, within).await;
        let failure = read.expect_err("it does not come whole");
        failure.into_response().status()
    }

    #[tokio::test]
    async fn a_body_that_never_arrives_or_never_ends_times_out() {
        let soon = Duration::from_millis(5);
        let never = Body::from_stream(pending::<Piece>());
        assert_eq!(status(never, soon).await, StatusCode::REQUEST_TIMEOUT);
        let begun = stream::iter([piece(b"{")]).chain(pending());
        let begun = Body::from_stream(begun);
        assert_eq!(status(begun, soon).await, StatusCode::REQUEST_TIMEOUT);
    }

    #[tokio::test]
    async fn a_body_that_is_too_long_or_incomplete_is_rejected() {
        let long = Body::from_stream(stream::repeat_with(|| piece(&[b' '; 1024])));
        let refused = StatusCode::PAYLOAD_TOO_LARGE;
        assert_eq!(status(long, BODY_WITHIN).await, refused);
        let broken = [piece(b"{"), Err(std::io::ErrorKind::BrokenPipe.into())];
        let broken = Body::from_stream(stream::iter(broken));
        assert_eq!(status(broken, BODY_WITHIN).await, refused);
        let good = Body::from_stream(stream::iter([piece(b"{"), piece(b"}")]));
        assert_eq!(whole(good, BODY_WITHIN).await.unwrap(), b"{}"[..]);
    }
}
