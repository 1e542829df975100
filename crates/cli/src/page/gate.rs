//! Lets only the page that this server has served send requests, in a browser that opened the
//! printed link.
//!
//! Any web page can send requests to 127.0.0.1, and any user of this machine can connect to it. So
//! each request must name this server as its host, come from no other origin, and carry the secret
//! of the link. The secret moves to a cookie and leaves the address bar.
//!
//! What protects against what:
//!
//! - The **secret** keeps out other users of this machine, who can connect but do not know it. It
//!   is in the printed link and in the cookie only.
//! - The **path** keeps the secret from them. Browsers send a cookie to every port of a host, so
//!   another user could listen on a port of 127.0.0.1, lead the browser there, and read the cookie.
//!   The page is below a random path, and the cookie is sent to that path only, on whatever port.
//!   The path stays in the address bar, and alone it opens nothing; pages send no `Referer`.
//! - **Host and origin** keep out web pages, which cannot read the cookie but make the browser send
//!   it: pages of names that resolve to this machine, and pages on other ports.
//! - `SameSite=Lax` keeps the cookie out of what other sites send in the background. `Strict` would
//!   keep out no more, since all ports of a host are one site, and a link to a moment of a run, in
//!   another page, would not work.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use ring::digest::{SHA256, digest};
use soloist_node::http::{PAGE_HEADERS, cookies};

use super::Site;

/// The address of this server and the secret in its link.
#[derive(Debug)]
pub(super) struct Gate {
    site: Site,
    port: u16,
    secret: String,
    /// The path of everything that is served, with a slash at both ends.
    path: String,
}

impl Gate {
    /// A gate with a fresh secret and a fresh path.
    pub(super) fn new(site: Site, port: u16) -> Self {
        let random = || format!("{:032x}", rand::random::<u128>());
        Gate {
            site,
            port,
            secret: random(),
            path: format!("/{}/", random()),
        }
    }

    /// The path of everything that is served, with a slash at both ends.
    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// The link for the user.
    pub(super) fn link(&self) -> String {
        format!("http://127.0.0.1:{}/?key={}", self.port, self.secret)
    }

    /// Cookies do not differ by port, so the name does.
    fn cookie(&self) -> String {
        format!("soloist-{}-{}", self.site.name, self.port)
    }

    /// Refuses other hosts, which is what DNS rebinding needs, and pages of other origins.
    fn check_source(&self, headers: &HeaderMap) -> Result<(), String> {
        let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or(""));
        let host = text(header::HOST).unwrap_or_default();
        let own = ["127.0.0.1", "localhost"].map(|name| format!("{name}:{}", self.port));
        if !own.iter().any(|it| it == host) {
            return Err(format!("the host {host:?} is not this server"));
        }
        match text(header::ORIGIN) {
            Some(origin) if origin.strip_prefix("http://") != Some(host) => {
                Err(format!("the page at {origin:?} is not this server's"))
            }
            _ => Ok(()),
        }
    }

    fn is_secret(&self, given: &str) -> bool {
        // Hashes, so that the time of the comparison says nothing about the secret.
        let hash = |text: &str| digest(&SHA256, text.as_bytes());
        hash(given).as_ref() == hash(&self.secret).as_ref()
    }

    fn has_cookie(&self, headers: &HeaderMap) -> bool {
        let name = self.cookie();
        cookies(headers, &name).any(|value| self.is_secret(value))
    }

    /// The redirect that takes the secret out of the address bar.
    fn let_in(&self) -> Response {
        let cookie = format!(
            "{}={}; Path={}; HttpOnly; SameSite=Lax",
            self.cookie(),
            self.secret,
            self.path
        );
        let headers = [
            (header::LOCATION, format!("{}{}", self.path, self.site.home)),
            (header::SET_COOKIE, cookie),
        ];
        (StatusCode::SEE_OTHER, headers).into_response()
    }

    /// The answer to a request that goes no further: it is refused, or gets the cookie.
    fn stop(&self, request: &Request) -> Option<Response> {
        let refuse = |why: &str| Some((StatusCode::FORBIDDEN, format!("{why}\n")).into_response());
        if let Err(why) = self.check_source(request.headers()) {
            return refuse(&why);
        }
        let key = request.uri().query().and_then(|it| it.strip_prefix("key="));
        if request.uri().path() == "/" && key.is_some_and(|key| self.is_secret(key)) {
            return Some(self.let_in());
        }
        match self.has_cookie(request.headers()) {
            true => None,
            false => refuse(&format!(
                "open the link that `{}` printed",
                self.site.command
            )),
        }
    }
}

/// Lets requests pass that may, and sets the policy of all answers.
pub(super) async fn guard(State(gate): State<Arc<Gate>>, request: Request, next: Next) -> Response {
    let mut response = match gate.stop(&request) {
        None => next.run(request).await,
        Some(response) => response,
    };
    let headers = response.headers_mut();
    for (name, value) in PAGE_HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}
