//! `/ui`: the dashboard's page, for browsers that reach this node's TCP address.
//!
//! The files hold no secret and need no token. What the page shows comes over a session, which
//! does. A browser cannot send a token with a WebSocket, so the page exchanges the token for a
//! cookie (`/ui/login`).
//!
//! What protects against what:
//!
//! - The **cookie's path** keeps the cookie from other servers. Browsers send a cookie to every
//!   port of a host, so another user of the machine could listen on a port, lead the browser there,
//!   and read it. Only requests below a random path, `/ui/pass/..`, carry it. The node tells the
//!   page this path together with the cookie, and the page keeps it in storage, which browsers keep
//!   for each port. Alone it opens nothing.
//! - **Host and origin** keep out web pages that cannot read the cookie but make the browser send
//!   it ([`origin`]).
//! - The cookie opens **a session and nothing else**: only that is below the path.

use std::sync::Arc;

use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use axum::{Extension, Json, Router};
use serde_json::json;
use soloist_transport::sha256;

use super::error::Failure;
use super::session::{Line, LineKind, session};
use super::{Api, origin};

/// The files of the page, by their paths below `/ui/`: the media type, and the content.
pub type PageFiles = fn(&str) -> Option<(&'static str, &'static str)>;

/// Headers of a page and of its files: only files and answers of its own server, no inline code, no
/// frames.
pub const PAGE_HEADERS: [(HeaderName, &str); 4] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
         img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
         require-trusted-types-for 'script'; trusted-types 'none'",
    ),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::CACHE_CONTROL, "no-store"),
];

/// Path at which the page exchanges the token for a cookie.
const LOGIN: &str = "/ui/login";

/// The cookie of pages that have shown the token. It is valid until the node is restarted.
#[derive(Clone)]
pub(super) struct Pass(Arc<PassState>);

struct PassState {
    /// Cookies do not differ by port, so the name has the node's.
    name: String,
    secret: String,
    /// What the cookie opens is below this path, relative to `/ui/`. It ends with a slash.
    path: String,
}

impl Pass {
    pub(super) fn new(node: &str) -> Self {
        let random = || format!("{:032x}", rand::random::<u128>());
        Pass(Arc::new(PassState {
            name: format!("soloist-ui-{node}"),
            secret: random(),
            path: format!("pass/{}/", random()),
        }))
    }

    /// Returns whether the request carries the cookie, and may do so.
    pub(super) fn admits(&self, request: &Request) -> bool {
        let path = request.uri().path();
        let mut values = cookies(request.headers(), &self.0.name);
        path.starts_with(&self.path()) && values.any(|value| self.is(value))
    }

    /// The cookie's path.
    fn path(&self) -> String {
        format!("/ui/{}", self.0.path)
    }

    fn is(&self, given: &str) -> bool {
        // Hashes, so that the time of the comparison says nothing about the secret.
        sha256(given.as_bytes()) == sha256(self.0.secret.as_bytes())
    }

    fn cookie(&self, kind: LineKind) -> String {
        let PassState { name, secret, .. } = &*self.0;
        let path = self.path();
        let secure = match kind {
            LineKind::Tls => "; Secure",
            LineKind::Tcp | LineKind::Unix => "",
        };
        format!("{name}={secret}; Path={path}; HttpOnly; SameSite=Strict{secure}")
    }
}

/// The values of all cookies of this name.
pub fn cookies<'a>(headers: &'a HeaderMap, name: &'a str) -> impl Iterator<Item = &'a str> {
    let texts = headers.get_all(header::COOKIE).iter();
    texts
        .filter_map(|value| value.to_str().ok())
        .flat_map(|text| text.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .filter(move |(key, _)| *key == name)
        .map(|(_, value)| value)
}

/// A page that a node serves.
#[derive(Clone)]
pub(super) struct Page {
    pub files: PageFiles,
    pub pass: Pass,
}

impl Page {
    /// The files, for everybody.
    pub(super) fn open_routes(&self) -> Router<Api> {
        let files = self.files;
        let other = async move |Path(path): Path<String>| file(files, &path);
        Router::new()
            .route("/ui", get(async || Redirect::permanent("/ui/")))
            .route("/ui/", get(async move || file(files, "")))
            .route("/ui/{*path}", get(other))
    }

    /// What needs the token, if there is one.
    pub(super) fn guarded_routes(&self) -> Router<Api> {
        let pass = self.pass.clone();
        let log_in =
            async move |api: State<Api>, line: Extension<Arc<Line>>, headers: HeaderMap| {
                log_in(&pass, api, line, &headers)
            };
        let path = self.pass.path();
        let known = || get(async || StatusCode::NO_CONTENT);
        Router::new()
            .route(LOGIN, known().post(log_in))
            .route(&format!("{path}login"), known())
            .route(&format!("{path}session"), get(session))
    }
}

fn file(files: PageFiles, path: &str) -> Response {
    let Some((kind, content)) = files(path) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let kind = [(header::CONTENT_TYPE, format!("{kind}; charset=utf-8"))];
    let mut response = (kind, content).into_response();
    for (name, value) in PAGE_HEADERS {
        let headers = response.headers_mut();
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Answers a page that has shown the token with the cookie and its path.
fn log_in(
    pass: &Pass,
    State(api): State<Api>,
    Extension(line): Extension<Arc<Line>>,
    headers: &HeaderMap,
) -> Result<Response, Failure> {
    origin::check_host(headers, line.kind, &api.node.shared.config)?;
    origin::check_page(headers)?;
    let cookie = [(header::SET_COOKIE, pass.cookie(line.kind))];
    Ok((cookie, Json(json!({ "pass": pass.0.path }))).into_response())
}
