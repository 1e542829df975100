//! Authentication by token, for clients over TCP.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use soloist_api::ErrorKind;

use super::error::Failure;
use super::listen::ApiError;
use super::ui::Pass;
use soloist_transport::Stranger;
use soloist_transport::sha256;

/// Maximum length of a token in bytes.
const TOKEN_MAX: u64 = 4096;

/// A token, stored as its hash. Hashes are compared in constant time.
#[derive(Clone)]
pub(super) struct Token(Arc<[u8; 32]>);

impl Token {
    /// Reads a token from a file that only its owner may read. Surrounding whitespace is ignored.
    pub(super) fn load(path: &Path) -> Result<Self, ApiError> {
        let file = path.display().to_string();
        let unreadable = |source| ApiError::TokenUnreadable {
            file: file.clone(),
            source,
        };
        let open = File::open(path).map_err(unreadable)?;
        let mode = open.metadata().map_err(unreadable)?.mode() & 0o777;
        if mode & 0o077 != 0 {
            return Err(ApiError::TokenExposed { file, mode });
        }
        let mut text = String::new();
        let mut limited = open.take(TOKEN_MAX + 1);
        let length = limited.read_to_string(&mut text).map_err(unreadable)?;
        let token = text.trim();
        let unusable = |problem: String| ApiError::TokenUnusable {
            file: file.clone(),
            problem,
        };
        if length as u64 > TOKEN_MAX {
            let problem = format!("it has more than {TOKEN_MAX} bytes");
            return Err(unusable(problem));
        }
        if token.is_empty() {
            return Err(unusable("it is empty".to_owned()));
        }
        if let Some(bad) = token.chars().find(|c| !c.is_ascii_graphic()) {
            return Err(unusable(format!("it contains the character {bad:?}")));
        }
        Ok(Token(Arc::new(sha256(token.as_bytes()))))
    }

    fn is(&self, shown: &[u8]) -> bool {
        let differences = self.0.iter().zip(sha256(shown));
        differences.fold(0, |sum, (a, b)| sum | (a ^ b)) == 0
    }
}

/// What a request must carry.
#[derive(Clone)]
pub(super) struct Guard {
    pub token: Token,
    /// The cookie of pages that have shown the token, if the node serves a page.
    pub pass: Option<Pass>,
}

impl Guard {
    fn admits(&self, request: &Request) -> bool {
        let shown = bearer(request.headers());
        shown.is_some_and(|shown| self.token.is(shown))
            || self.pass.as_ref().is_some_and(|pass| pass.admits(request))
    }
}

/// Middleware that passes a request on if it carries the token.
pub(super) async fn check(State(guard): State<Guard>, request: Request, next: Next) -> Response {
    match bearer(request.headers()) {
        _ if guard.admits(&request) => {
            if let Some(stranger) = request.extensions().get::<Arc<Stranger>>() {
                stranger.recognize();
            }
            next.run(request).await
        }
        Some(_) => unauthorized("wrong token: the node's token_file has the right one"),
        None => unauthorized("a token is required: send the header `authorization: Bearer TOKEN`"),
    }
}

fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    const SCHEME: &[u8] = b"bearer ";
    let value = headers.get(header::AUTHORIZATION)?.as_bytes();
    let (scheme, token) = value.split_at_checked(SCHEME.len())?;
    scheme
        .eq_ignore_ascii_case(SCHEME)
        .then(|| token.trim_ascii())
}

fn unauthorized(detail: &str) -> Response {
    let failure = Failure::new(StatusCode::UNAUTHORIZED, ErrorKind::Unauthorized, detail);
    let mut response = failure.into_response();
    let scheme = HeaderValue::from_static("Bearer");
    response
        .headers_mut()
        .insert(header::WWW_AUTHENTICATE, scheme);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(header::AUTHORIZATION, HeaderValue::from_static(value))])
    }

    #[test]
    fn a_token_must_match_completely() {
        let token = Token(Arc::new(sha256(b"secret")));
        for good in ["Bearer secret", "bearer secret", "BEARER  secret"] {
            assert!(bearer(&shown(good)).is_some_and(|s| token.is(s)), "{good}");
        }
        for bad in [
            "Bearer secre",
            "Bearer secret2",
            "Bearer Secret",
            "Bearer ",
            "Basic secret",
        ] {
            assert!(!bearer(&shown(bad)).is_some_and(|s| token.is(s)), "{bad}");
        }
        for none in ["", "Bearer", "secret"] {
            assert_eq!(bearer(&shown(none)), None, "{none}");
        }
    }
}
