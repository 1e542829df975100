//! Refuses foreign web pages. Browsers let any page open a WebSocket to any address, also to this
//! machine, and send it a request without a body. They only say where the page came from.

use std::net::IpAddr;

use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use soloist_api::{ErrorKind, Host};

use super::error::Failure;
use super::session::LineKind;
use crate::config::Config;

fn text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name).map(|value| value.to_str().unwrap_or(""))
}

/// Checks the header `Host`, so that a foreign page cannot pass as this node's by its name.
pub(super) fn check_host(
    headers: &HeaderMap,
    kind: LineKind,
    config: &Config,
) -> Result<(), Failure> {
    let host = text(headers, header::HOST).unwrap_or_default();
    let listen = config.api.tcp.as_ref().map(|tcp| &tcp.listen.host);
    let configured = match listen {
        Some(Host::Name(name)) => Some(name.as_str()),
        Some(Host::Ip(_)) | None => None,
    };
    if kind == LineKind::Tcp && !is_known(host, configured) {
        return Err(forbidden(format!(
            "the host {host:?} is not this node's: use its address or `localhost`"
        )));
    }
    Ok(())
}

/// Checks the header `Origin`.
pub(super) fn check_page(headers: &HeaderMap) -> Result<(), Failure> {
    let host = text(headers, header::HOST).unwrap_or_default();
    match text(headers, header::ORIGIN) {
        Some(origin) if !is_own(origin, host) => Err(forbidden(format!(
            "the page at {origin:?} is not this node's, and may not use its locks"
        ))),
        _ => Ok(()),
    }
}

fn forbidden(detail: String) -> Failure {
    Failure::new(StatusCode::FORBIDDEN, ErrorKind::Unauthorized, detail)
}

/// Whether a page of this origin was served by this host.
fn is_own(origin: &str, host: &str) -> bool {
    let (_, of) = origin.split_once("://").unwrap_or_default();
    !host.is_empty() && of.eq_ignore_ascii_case(host)
}

/// Returns whether a host can only be this node's. The name of a foreign page may resolve to this
/// machine, so names are not accepted, but addresses are. Over TLS the certificate identifies the
/// node, and a Unix socket has no host.
fn is_known(host: &str, configured: Option<&str>) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let is_address = name.trim_matches(['[', ']']).parse::<IpAddr>().is_ok();
    let is = |known: &str| name.eq_ignore_ascii_case(known);
    is_address || is("localhost") || configured.is_some_and(is)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_and_own_names_are_known() {
        for good in [
            "127.0.0.1:7400",
            "127.0.0.1",
            "[::1]:7400",
            "localhost:1",
            "Node.example:5",
        ] {
            assert!(is_known(good, Some("node.example")), "{good}");
        }
        for bad in [
            "evil.example:7400",
            "",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
        ] {
            assert!(!is_known(bad, Some("node.example")), "{bad}");
        }
    }

    #[test]
    fn only_pages_of_the_same_host_are_own() {
        assert!(is_own("http://127.0.0.1:7400", "127.0.0.1:7400"));
        assert!(is_own("https://Node.example", "node.example"));
        for bad in [
            "null",
            "",
            "http://evil.example",
            "http://127.0.0.1:8000",
            "file://",
        ] {
            assert!(!is_own(bad, "127.0.0.1:7400"), "{bad}");
        }
        assert!(!is_own("http://", ""));
    }
}
