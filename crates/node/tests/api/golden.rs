//! Pins what other programs read from a node: the metrics, and a transcript of requests and
//! responses with every kind of error.
//!
//! Set `UPDATE_GOLDEN=1` to rewrite the files, and read the diff before you commit it. A changed
//! metric breaks dashboards and alerts; a changed status or field breaks clients. Only the texts
//! in `detail` and `reason` of a lock or cluster are for people, and may change.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::{Method, Request};
use serde_json::json;
use soloist_api::{Hold, LockInfo};
use soloist_core::limits::{Limits, Quota};
use soloist_node::config::Metrics;
use soloist_node::http;
use soloist_testing::golden_file::assert_golden;

use crate::cluster::{limited, served, until};
use crate::http::{Answer, Http, request};
use crate::tcp::{Files, TOKEN, loopback};

/// For each metric and type, its series with the bounds of their buckets, if they have any.
type Families = BTreeMap<String, BTreeMap<String, Vec<String>>>;

/// Adds the metrics in a text.
fn collect(text: &str, families: &mut Families) {
    let mut current = String::new();
    let mut described = String::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, help) = help.split_once(' ').unwrap();
            assert!(!help.is_empty(), "{line}");
            described = name.to_owned();
        } else if let Some(declared) = line.strip_prefix("# TYPE ") {
            let (name, _kind) = declared.split_once(' ').unwrap();
            assert_eq!(name, described, "a metric has a description");
            current = declared.to_owned();
        } else {
            let (series, _value) = line.rsplit_once(' ').unwrap();
            let (series, bound) = match series.split_once("le=\"") {
                Some((before, bound)) => {
                    let series = before.trim_end_matches(',').trim_end_matches('{');
                    let closing = if series.contains('{') { "}" } else { "" };
                    let bound = bound.trim_end_matches("\"}").to_owned();
                    (format!("{series}{closing}"), Some(bound))
                }
                None => (series.to_owned(), None),
            };
            let series = series.replace(env!("CARGO_PKG_VERSION"), "VERSION");
            let family = families.entry(current.clone()).or_default();
            let bounds = family.entry(series).or_default();
            bounds.extend(bound.filter(|bound| !bounds.contains(bound)));
        }
    }
}

fn written(families: &Families) -> String {
    let mut text = String::new();
    for (family, series) in families {
        writeln!(text, "{family}").unwrap();
        for (series, bounds) in series {
            write!(text, "    {series}").unwrap();
            match bounds[..] {
                [] => text.push('\n'),
                _ => writeln!(text, " le {}", bounds.join(" ")).unwrap(),
            }
        }
    }
    text
}

#[tokio::test]
async fn metrics_keep_their_names_types_and_labels() {
    let mut families = Families::new();
    let served = served(2).await;
    for http in &served.https {
        let hold = http.hold("a").await;
        assert_eq!(http.release(&hold).await.status, 204);
    }
    for http in &served.https {
        let answer = http.get("/metrics").await;
        collect(str::from_utf8(&answer.body).unwrap(), &mut families);
    }
    served.stop().await;

    // Series that are there only after a quota was exceeded, or if lock names are labels.
    let files = Files::new();
    let limits = Limits {
        client: Quota {
            holds: 1,
            ..Limits::default().client
        },
        ..Limits::default()
    };
    let names = Metrics { lock_names: true };
    let node = limited(files.api(loopback(None, None)), names, limits).await;
    let server = http::serve(&node).await.unwrap();
    let http = Http::Unix(server.socket().to_owned());
    let hold = http.hold("a").await;
    http.acquire("b", json!({})).await.error(429);
    assert_eq!(http.release(&hold).await.status, 204);
    let answer = http.get("/metrics").await;
    collect(str::from_utf8(&answer.body).unwrap(), &mut families);
    node.stop(Duration::ZERO).await;
    server.stop().await;

    assert_golden("metrics.txt", &written(&families));
}

/// Fields whose values differ from run to run.
const VARYING: [&str; 13] = [
    "after_us",
    "at_unix_ms",
    "ended_ago_ms",
    "epoch",
    "expires_in_ms",
    "fence",
    "held_for_ms",
    "lease_ms",
    "links_up",
    "locks",
    "since_unix_ms",
    "valid_for_ms",
    "waited_for_ms",
];

/// Replaces what differs from run to run: ids of holds by `HOLD`; numbers in [`VARYING`] fields,
/// ports, users and the release by 0. Ids that begin with zeros are the test's own.
fn mask(text: &str) -> String {
    let mut text = text.replace(env!("CARGO_PKG_VERSION"), "0");
    let mut starts: Vec<String> = VARYING.map(|key| format!("\"{key}\":")).into();
    starts.extend(["127.0.0.1:", "Unix user id "].map(str::to_owned));
    for start in &starts {
        let mut parts = text.split(start.as_str());
        let mut masked = parts.next().unwrap().to_owned();
        for part in parts {
            masked.push_str(start);
            let quote = if part.starts_with('"') { "\"" } else { "" };
            let number = &part[quote.len()..];
            let rest = number.trim_start_matches(|c: char| c.is_ascii_digit());
            let value = if rest.len() < number.len() { "0" } else { "" };
            masked.push_str(quote);
            masked.push_str(value);
            masked.push_str(rest);
        }
        text = masked;
    }
    let is_id = |word: &str| word.len() == 32 && word.bytes().all(|b| b.is_ascii_hexdigit());
    let mut ids: Vec<String> = text
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| is_id(word) && !word.starts_with("0000"))
        .map(str::to_owned)
        .collect();
    ids.sort();
    ids.dedup();
    for id in ids {
        text = text.replace(&id, "HOLD");
    }
    if let Some(start) = text.find(&"x".repeat(100)) {
        let rest = text[start..].trim_start_matches('x');
        text = format!("{}xx...{rest}", &text[..start]);
    }
    text
}

#[derive(Default)]
struct Transcript(String);

impl Transcript {
    fn heading(&mut self, heading: &str) {
        let gap = if self.0.is_empty() { "" } else { "\n" };
        writeln!(self.0, "{gap}# {heading}").unwrap();
    }

    /// Sends a request and notes it with its response.
    async fn send(&mut self, http: &Http, method: Method, path: &str, body: &str) -> String {
        self.send_with(http, method, path, body, &[]).await
    }

    async fn send_with(
        &mut self,
        http: &Http,
        method: Method,
        path: &str,
        body: &str,
        headers: &[(&str, &str)],
    ) -> String {
        let mut request = Request::builder()
            .method(method.clone())
            .uri(path)
            .header("host", "node");
        if !body.is_empty() && !headers.iter().any(|(name, _)| *name == "content-type") {
            request = request.header("content-type", "application/json");
        }
        let mut line = format!("> {method} {path}");
        for (name, value) in headers {
            request = request.header(*name, *value);
            write!(line, " [{name}: {value}]").unwrap();
        }
        line.push_str(if body.is_empty() { "" } else { " " });
        line.push_str(body);
        let sent = request.body(Full::from(body.to_owned())).unwrap();
        let answer = http.send(sent).await;
        writeln!(self.0, "{}", mask(&line)).unwrap();
        self.note(&answer)
    }

    /// Notes a response, and returns its body.
    fn note(&mut self, answer: &Answer) -> String {
        let text = str::from_utf8(&answer.body).unwrap();
        let status = answer.status.as_u16();
        let headers = answer.headers.iter();
        let mut headers: Vec<_> = headers
            .filter(|(name, _)| *name != "date" && *name != "content-length")
            .map(|(name, value)| format!(" [{name}: {}]", value.to_str().unwrap()))
            .collect();
        headers.sort();
        let line = format!("< {status}{} {}", headers.concat(), mask(text));
        writeln!(self.0, "{}", line.trim_end()).unwrap();
        text.to_owned()
    }

    async fn get(&mut self, http: &Http, path: &str) -> String {
        self.send(http, Method::GET, path, "").await
    }

    async fn post(&mut self, http: &Http, path: &str, body: &str) -> String {
        self.send(http, Method::POST, path, body).await
    }

    async fn delete(&mut self, http: &Http, path: &str) -> String {
        self.send(http, Method::DELETE, path, "").await
    }

    async fn acquire(&mut self, http: &Http, lock: &str, body: &str) -> Hold {
        let path = format!("/v1/locks/{lock}/acquire");
        serde_json::from_str(&self.post(http, &path, body).await).unwrap()
    }
}

/// Holds that each client of the node may have.
const QUOTA: usize = 3;

#[tokio::test]
async fn requests_and_responses_keep_their_form() {
    let files = Files::new();
    let limits = Limits {
        client: Quota {
            holds: QUOTA,
            ..Limits::default().client
        },
        ..Limits::default()
    };
    let api = files.api(loopback(Some(files.token()), None));
    let node = limited(api, Metrics::default(), limits).await;
    let server = http::serve(&node).await.unwrap();
    let user = Http::Unix(server.socket().to_owned());
    let remote = Http::Tcp(server.addresses().tcp.unwrap());
    let mut log = Transcript::default();
    log.holds(&user).await;
    log.malformed(&user).await;
    log.refused(&user).await;
    log.token(&remote).await;
    log.events(&user).await;
    log.keepers(&user).await;

    log.heading("A node that stops");
    let hold = log.acquire(&user, "a", "{}").await;
    node.stop(Duration::ZERO).await;
    let path = format!("/v1/holds/{}", hold.hold);
    log.get(&user, &path).await;
    log.post(&user, "/v1/locks/b/acquire", "{}").await;
    log.get(&user, "/healthz").await;
    log.get(&user, "/readyz").await;
    server.stop().await;
    assert_golden("http.txt", &log.0);
}

const ID: &str = "00000000000000000000000000000001";

impl Transcript {
    async fn holds(&mut self, http: &Http) {
        self.heading("Holds, locks and the cluster");
        let body =
            format!(r#"{{"wait_ms":0,"ttl_ms":60000,"owner":"cron@web1","request_id":"{ID}"}}"#);
        let hold = self.acquire(http, "db%2Fbackup", &body).await;
        let path = format!("/v1/holds/{}", hold.hold);
        self.post(http, &format!("{path}/renew"), r#"{"ttl_ms":60000}"#)
            .await;
        self.get(http, &path).await;
        self.get(http, "/v1/locks/db%2Fbackup").await;
        self.get(http, "/v1/locks/free").await;
        self.get(http, "/v1/locks").await;
        self.get(http, "/v1/locks?after=db%2Fbackup").await;
        self.get(http, "/v1/cluster").await;
        self.get(http, "/healthz").await;
        self.get(http, "/readyz").await;
        self.delete(http, &path).await;
        self.delete(http, &path).await;
        self.get(http, &path).await;
        self.post(http, &format!("{path}/renew"), "{}").await;
        self.post(http, "/v1/locks/db%2Fbackup/acquire", &body)
            .await;
        let hold = self.acquire(http, "a", r#"{"ttl_ms":1}"#).await;
        let path = format!("/v1/holds/{}?wait_ms=60000", hold.hold);
        self.get(http, &path).await;
    }

    async fn malformed(&mut self, http: &Http) {
        self.heading("Malformed requests");
        let acquire = "/v1/locks/a/acquire";
        for body in [
            "[]",
            "{",
            r#"{"wait":5}"#,
            r#"{"wait_ms":-1}"#,
            r#"{"wait_ms":86400001}"#,
            r#"{"ttl_ms":0}"#,
            r#"{"ttl_ms":3600001}"#,
            r#"{"owner":"\n"}"#,
            r#"{"request_id":"1"}"#,
        ] {
            self.post(http, acquire, body).await;
        }
        let text = [("content-type", "text/plain")];
        self.send_with(http, Method::POST, acquire, "{}", &text)
            .await;
        for path in [
            "/v1/locks/%00",
            "/v1/locks/%ff",
            "/v1/locks?before=a",
            "/v1/holds/1",
            "/v1/holds/00000000000000000000000000000000",
            "/v1/holds/00000000000000000000000000000000?wait_ms=x",
            "/v2/locks",
        ] {
            self.get(http, path).await;
        }
        self.delete(http, "/v1/requests/1").await;
        self.delete(http, "/v1/requests/00000000000000000000000000000002")
            .await;
        self.send(http, Method::PATCH, "/v1/locks", "").await;
        self.send(http, Method::OPTIONS, "/v1/locks", "").await;
        self.get(http, &format!("/v1/locks/{}", "x".repeat(257)))
            .await;
        for bytes in [257, 70_000] {
            let body = format!(r#"{{"owner":"{}"}}"#, "x".repeat(bytes));
            self.post(http, acquire, &body).await;
        }
    }

    /// Requests that are valid and not granted. Leaves the locks free.
    async fn refused(&mut self, http: &Http) {
        self.heading("Not granted");
        let holder = self.acquire(http, "a", r#"{"owner":"one"}"#).await;
        self.post(http, "/v1/locks/a/acquire", r#"{"wait_ms":0}"#)
            .await;
        self.post(http, "/v1/locks/a/acquire", r#"{"wait_ms":1}"#)
            .await;

        self.heading("The same request id: for another lock, sent again, and cancelled");
        let id = "00000000000000000000000000000003";
        let body = json!({ "request_id": id });
        let waiting = || {
            let (http, body) = (http.clone(), body.clone());
            tokio::spawn(async move { http.acquire("a", body).await })
        };
        let first = waiting();
        until("it waits", async || {
            let info: LockInfo = http.get("/v1/locks/a").await.ok();
            (info.waiting == 1).then_some(())
        })
        .await;
        self.post(http, "/v1/locks/b/acquire", &body.to_string())
            .await;
        let second = waiting();
        self.note(&first.await.unwrap());
        self.delete(http, &format!("/v1/requests/{id}")).await;
        self.note(&second.await.unwrap());
        self.delete(http, &format!("/v1/holds/{}", holder.hold))
            .await;

        self.heading("Beyond a quota");
        let mut holds = Vec::new();
        for number in 0..QUOTA {
            holds.push(http.hold(&format!("q{number}")).await);
        }
        self.post(http, "/v1/locks/q/acquire", "{}").await;
        for hold in holds {
            assert_eq!(http.release(&hold).await.status, 204);
        }
    }

    async fn token(&mut self, http: &Http) {
        self.heading("A token");
        self.get(http, "/v1/locks").await;
        let bearer = |token| format!("Bearer {token}");
        for token in ["wrong", TOKEN] {
            let headers = [("authorization", &*bearer(token))];
            self.send_with(http, Method::GET, "/v1/locks", "", &headers)
                .await;
        }
    }

    async fn events(&mut self, http: &Http) {
        self.heading("Events");
        writeln!(self.0, "> GET /v1/events").unwrap();
        let request = request(Method::GET, "/v1/events", None);
        let mut body = http.open(request).await.unwrap().into_body();
        let first: Hold = http.acquire("a", json!({ "owner": "one" })).await.ok();
        let second = {
            let http = http.clone();
            let body = json!({ "owner": "two", "ttl_ms": 1 });
            tokio::spawn(async move { http.acquire("a", body).await.ok::<Hold>() })
        };
        until("it waits", async || {
            let info: LockInfo = http.get("/v1/locks/a").await.ok();
            (info.waiting == 1).then_some(())
        })
        .await;
        assert_eq!(http.release(&first).await.status, 204);
        second.await.unwrap();
        let mut text = String::new();
        while text.matches("\n\n").count() < 5 {
            let data = body.frame().await.unwrap().unwrap().into_data().unwrap();
            text.push_str(str::from_utf8(&data).unwrap());
        }
        self.0.push_str(&mask(&text));
    }

    async fn keepers(&mut self, http: &Http) {
        self.heading("Keepers");
        self.send(http, Method::PUT, "/v1/cluster/keepers/n1", "")
            .await;
        self.send(http, Method::PUT, "/v1/cluster/keepers/n2", "")
            .await;
        self.send(http, Method::PUT, "/v1/cluster/keepers/%20", "")
            .await;
        self.delete(http, "/v1/cluster/keepers/n1").await;
        self.delete(http, "/v1/cluster/keepers/n2").await;
    }
}
