//! The dashboard's page at `/ui`, and the cookie for which it exchanges the token.

use hyper::Method;
use soloist_node::config::{Api, ApiTcp, Metrics};
use soloist_node::http::{self, ApiError, ApiServer};

use crate::cluster::{Lonely, lonely};
use crate::http::{Answer, Http, request};
use crate::sessions::Socket;
use crate::tcp::{Files, TOKEN, loopback, tls};

fn page(path: &str) -> Option<(&'static str, &'static str)> {
    match path {
        "" => Some(("text/html", "<p>the page")),
        "src/main.js" => Some(("text/javascript", "start()")),
        _ => None,
    }
}

async fn served(files: &Files, tcp: ApiTcp) -> (Lonely, ApiServer) {
    let api = Api {
        ui: true,
        ..files.api(tcp)
    };
    let node = lonely(api, Metrics::default()).await;
    let server = http::serve_with_page(&node, page).await.unwrap();
    (node, server)
}

async fn log_in(http: &Http, headers: &[(&'static str, &str)]) -> Answer {
    let mut login = request(Method::POST, "/ui/login", None);
    for (name, value) in headers {
        login.headers_mut().insert(*name, value.parse().unwrap());
    }
    http.send(login).await
}

#[tokio::test]
async fn the_page_needs_no_token_and_carries_a_strict_policy() {
    let files = Files::new();
    let (_node, server) = served(&files, loopback(Some(files.token()), None)).await;
    let http = Http::Tcp(server.addresses().tcp.unwrap());
    let index = http.get("/ui/").await;
    assert_eq!(
        (index.status.as_u16(), &index.body[..]),
        (200, &b"<p>the page"[..])
    );
    assert_eq!(index.headers["content-type"], "text/html; charset=utf-8");
    let policy = index.headers["content-security-policy"].to_str().unwrap();
    assert!(
        policy.starts_with("default-src 'none'; script-src 'self'"),
        "{policy}"
    );
    assert_eq!(http.get("/ui").await.headers["location"], "/ui/");
    assert_eq!(http.get("/ui/src/main.js").await.body, "start()");
    assert_eq!(http.get("/ui/nothing").await.status, 404);
    http.get("/ui/login").await.error(401);
    server.stop().await;
}

#[tokio::test]
async fn a_page_exchanges_the_token_for_a_cookie_that_opens_only_the_session() {
    let files = Files::new();
    let (_node, server) = served(&files, loopback(Some(files.token()), None)).await;
    let address = server.addresses().tcp.unwrap();
    let (http, host) = (Http::Tcp(address), address.to_string());
    let (origin, bearer) = (format!("http://{host}"), format!("Bearer {TOKEN}"));
    let own = [("host", host.as_str()), ("origin", &origin)];
    log_in(&http, &own).await.error(401);
    log_in(&http, &[own[0], own[1], ("authorization", "Bearer wrong")])
        .await
        .error(401);
    let foreign = [
        ("host", &*host),
        ("origin", "http://evil.example"),
        ("authorization", &bearer),
    ];
    log_in(&http, &foreign).await.error(403);
    let rebound = [
        ("host", "evil.example"),
        ("origin", "http://evil.example"),
        ("authorization", &bearer),
    ];
    log_in(&http, &rebound).await.error(403);
    let let_in = log_in(&http, &[own[0], own[1], ("authorization", &bearer)]).await;
    assert_eq!(let_in.status, 200);
    let set = let_in.headers["set-cookie"].to_str().unwrap();
    let (cookie, attributes) = set.split_once(';').unwrap();
    assert!(cookie.starts_with("soloist-ui-n1="), "{set}");
    // Browsers send cookies to every port of a host, so another server must not guess the path.
    let pass: serde_json::Value = let_in.ok();
    let pass = pass["pass"].as_str().unwrap();
    let random = pass.strip_prefix("pass/").unwrap().trim_end_matches('/');
    assert_eq!(random.len(), 32, "{pass}");
    assert!(!cookie.contains(random), "the path says the secret");
    let path = format!("/ui/{pass}");
    assert_eq!(
        attributes,
        format!(" Path={path}; HttpOnly; SameSite=Strict")
    );
    let session = format!("{path}session");
    let open_at = async |path: &str, cookie: &str, origin: &str| {
        let headers = [("host", &*host), ("origin", origin), ("cookie", cookie)];
        Socket::open_at(&http, path, &headers).await.is_ok()
    };
    let open = async |cookie: &str, origin: &str| open_at(&session, cookie, origin).await;
    for elsewhere in ["/v1/session", "/ui/pass/0/session"] {
        assert!(!open_at(elsewhere, cookie, &origin).await, "{elsewhere}");
    }
    assert!(open(cookie, &origin).await);
    assert!(open(&format!("a=b; {cookie}"), &origin).await);
    assert!(!open("soloist-ui-n1=0", &origin).await);
    assert!(!open("", &origin).await);
    assert!(!open(cookie, "http://evil.example").await);
    let known = async |cookie: &str| {
        let mut asked = request(Method::GET, &format!("{path}login"), None);
        let headers = asked.headers_mut();
        headers.insert("cookie", cookie.parse().unwrap());
        http.send(asked).await
    };
    assert_eq!(known(cookie).await.status, 204);
    known("soloist-ui-n1=0").await.error(401);
    for path in ["/v1/cluster", "/v1/locks", "/metrics", "/v1/events"] {
        let mut other = request(Method::GET, path, None);
        other
            .headers_mut()
            .insert("cookie", cookie.parse().unwrap());
        http.send(other).await.error(401);
    }
    server.stop().await;
}

#[tokio::test]
async fn over_tls_the_cookie_is_secure() {
    let files = Files::new();
    let tcp = loopback(Some(files.token()), Some(files.tls(false)));
    let (_node, server) = served(&files, tcp).await;
    let http = tls(server.addresses().tcp.unwrap(), files.stranger());
    let bearer = format!("Bearer {TOKEN}");
    let let_in = log_in(&http, &[("authorization", &bearer)]).await;
    let set = let_in.headers["set-cookie"].to_str().unwrap();
    assert!(set.ends_with("; SameSite=Strict; Secure"), "{set}");
    server.stop().await;
}

#[tokio::test]
async fn without_the_setting_or_without_files_there_is_no_page() {
    let files = Files::new();
    let node = lonely(files.api(loopback(None, None)), Metrics::default()).await;
    let server = http::serve_with_page(&node, page).await.unwrap();
    let http = Http::Tcp(server.addresses().tcp.unwrap());
    http.get("/ui/").await.error(404);
    server.stop().await;
    let api = Api {
        ui: true,
        ..files.api(loopback(None, None))
    };
    let node = lonely(api, Metrics::default()).await;
    let refused = http::serve(&node).await.err().unwrap();
    assert!(matches!(refused, ApiError::NoPage), "{refused}");
}
