//! The server, over real connections.

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use soloist_lab::scenario;

use super::*;
use crate::page::Server;

/// Longer than any answer takes on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A server that runs until the test ends, and its client.
struct Fixture {
    port: u16,
    key: String,
    /// Where the page is.
    path: String,
    task: JoinHandle<anyhow::Result<()>>,
    shared: Arc<Shared>,
}

impl Drop for Fixture {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct Reply {
    status: u16,
    head: String,
    body: String,
}

impl Reply {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).expect("JSON")
    }
}

impl Fixture {
    async fn start() -> Self {
        let shared = Arc::new(Shared::new(Start::default()));
        let server = Server::bind(0, SITE, routes(Arc::clone(&shared))).await;
        let server = server.expect("a server");
        let link = server.link().to_owned();
        let (address, key) = link.split_once("/?key=").expect("a key");
        let port = address.rsplit_once(':').expect("a port").1;
        let mut fixture = Fixture {
            port: port.parse().expect("a number"),
            key: key.to_owned(),
            path: String::new(),
            shared,
            task: tokio::spawn(server.run()),
        };
        let (line, host) = (format!("GET /?key={key}"), fixture.host());
        let first = fixture.ask(&line, &[("host", &host)], "").await;
        let location = first.head.split("location: ").nth(1).expect("a redirect");
        fixture.path = location.lines().next().expect("a path").to_owned();
        fixture
    }

    /// The path of an answer of the server.
    fn at(&self, name: &str) -> String {
        format!("{}{name}", self.path)
    }

    fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    fn cookie(&self) -> String {
        format!("soloist-play-{}={}", self.port, self.key)
    }

    /// Sends a request with these headers and returns the connection.
    async fn send(&self, line: &str, headers: &[(&str, &str)], body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))
            .await
            .expect("it listens");
        let mut text = format!("{line} HTTP/1.1\r\nconnection: close\r\n");
        for (name, value) in headers {
            text += &format!("{name}: {value}\r\n");
        }
        text += &format!("content-length: {}\r\n\r\n{body}", body.len());
        stream.write_all(text.as_bytes()).await.expect("it reads");
        stream
    }

    async fn ask(&self, line: &str, headers: &[(&str, &str)], body: &str) -> Reply {
        let mut stream = self.send(line, headers, body).await;
        let mut bytes = Vec::new();
        let read = stream.read_to_end(&mut bytes);
        timeout(TIMEOUT, read)
            .await
            .expect("in time")
            .expect("an answer");
        let text = String::from_utf8(bytes).expect("text");
        let (head, body) = text.split_once("\r\n\r\n").expect("a head");
        let status = head.split(' ').nth(1).expect("a status");
        Reply {
            status: status.parse().expect("a number"),
            head: head.to_owned(),
            body: body.to_owned(),
        }
    }

    /// Posts as the page does.
    async fn page(&self, name: &str, body: &Value) -> Reply {
        let (host, cookie) = (self.host(), self.cookie());
        let origin = format!("http://{host}");
        let headers = [
            ("host", host.as_str()),
            ("origin", &origin),
            ("cookie", &cookie),
            ("content-type", "application/json"),
        ];
        let line = format!("POST {}", self.at(name));
        self.ask(&line, &headers, &body.to_string()).await
    }
}

#[tokio::test]
async fn the_secret_moves_from_the_link_to_a_cookie() {
    let server = Fixture::start().await;
    let host = server.host();
    let first = server
        .ask(&format!("GET /?key={}", server.key), &[("host", &host)], "")
        .await;
    assert_eq!(first.status, 303);
    let (path, cookie) = (&server.path, server.cookie());
    // Browsers send cookies to every port of a host, so another server must not guess the path.
    let random = path.trim_matches('/');
    assert_eq!(random.len(), 32, "{path}");
    assert_ne!(
        random, server.key,
        "the address bar does not say the secret"
    );
    let set = format!("set-cookie: {cookie}; Path={path}; HttpOnly; SameSite=Lax");
    assert!(first.head.contains(&set), "{}", first.head);
    let headers = [("host", &*host), ("cookie", &cookie)];
    let page = server.ask("GET /", &headers, "").await;
    assert_eq!(page.status, 404, "nothing is served elsewhere");
    let page = server.ask(&format!("GET {path}"), &headers, "").await;
    assert_eq!(page.status, 200);
    assert!(page.body.contains("<so-stage"));
    assert!(
        page.head
            .contains("content-security-policy: default-src 'none'; script-src 'self'")
    );
}

#[tokio::test]
async fn requests_without_the_secret_are_refused() {
    let server = Fixture::start().await;
    let host = server.host();
    let wrong = format!("soloist-play-{}={}", server.port, "0".repeat(32));
    let other = format!("soloist-play-1={}", server.key);
    for path in [
        "/",
        "/?key=",
        "/?key=0",
        "/src/main.js",
        "/start",
        "/gallery",
    ] {
        for cookie in ["", &wrong, &other] {
            let headers = [("host", host.as_str()), ("cookie", cookie)];
            for path in [path, &server.at(path.trim_start_matches('/'))] {
                let reply = server.ask(&format!("GET {path}"), &headers, "").await;
                assert_eq!(reply.status, 403, "{path} with {cookie:?}");
            }
        }
    }
}

#[tokio::test]
async fn other_hosts_are_refused_so_that_dns_rebinding_fails() {
    let server = Fixture::start().await;
    let cookie = server.cookie();
    let port = server.port;
    let start = format!("GET {}", server.at("start"));
    let foreign = [
        format!("evil.example:{port}"),
        format!("127.0.0.1.evil.example:{port}"),
        "127.0.0.1".to_owned(),
        format!("127.0.0.1:{}", port.wrapping_add(1)),
        String::new(),
    ];
    for host in &foreign {
        let headers = [("host", host.as_str()), ("cookie", &cookie)];
        let reply = server.ask(&start, &headers, "").await;
        assert_eq!(reply.status, 403, "{host}");
        let first = server
            .ask(&format!("GET /?key={}", server.key), &headers[..1], "")
            .await;
        assert_eq!(first.status, 403, "{host} gets no cookie");
    }
    let own = format!("localhost:{port}");
    let reply = server
        .ask(&start, &[("host", &own), ("cookie", &cookie)], "")
        .await;
    assert_eq!(reply.status, 200);
}

#[tokio::test]
async fn pages_of_other_origins_are_refused() {
    let server = Fixture::start().await;
    let (host, cookie) = (server.host(), server.cookie());
    let local = format!("http://localhost:{}", server.port);
    let tls = format!("https://{host}");
    for origin in [
        "https://evil.example",
        "null",
        "http://127.0.0.1",
        &local,
        &tls,
    ] {
        let headers = [
            ("host", host.as_str()),
            ("cookie", &cookie),
            ("origin", origin),
        ];
        let run = format!("POST {}", server.at("run"));
        let reply = server.ask(&run, &headers, "{}").await;
        assert_eq!(reply.status, 403, "{origin}");
    }
}

#[tokio::test]
async fn a_text_becomes_a_run_and_a_mistake_a_sentence() {
    let server = Fixture::start().await;
    let text = "algorithm central\nnames A B\n\n> request B\n> run\n";
    let run = server.page("run", &json!({ "text": text })).await;
    assert_eq!(run.status, 200);
    assert_eq!(run.json()["steps"].as_array().map(Vec::len), Some(3));
    let rest = server
        .page("run", &json!({ "text": text, "from": 2 }))
        .await;
    assert_eq!(rest.json()["steps"].as_array().map(Vec::len), Some(1));
    let bad = json!({ "text": "algorithm central\nnodes 2\n> dance 1\n" });
    for path in ["run", "transcript"] {
        let reply = server.page(path, &bad).await;
        assert_eq!(
            (reply.status, &reply.json()["line"]),
            (400, &json!(3)),
            "{path}"
        );
        let error = reply.json()["error"].to_string();
        assert!(error.contains("line 3"), "{error}");
    }
    let saved = server.page("transcript", &json!({ "text": text })).await;
    let saved = saved.json()["text"].as_str().expect("text").to_owned();
    assert_eq!(scenario::replay(text).expect("a scenario"), saved);
}

#[tokio::test]
async fn a_text_that_is_too_long_is_refused_with_a_sentence() {
    let server = Fixture::start().await;
    let text = "#".repeat(REQUEST_BYTES_MAX);
    let reply = server.page("run", &json!({ "text": text })).await;
    assert_eq!(reply.status, 413);
    assert_eq!(
        reply.json()["error"],
        json!("the scenario is too long (maximum: 16 MB)")
    );
}

#[tokio::test]
async fn a_run_that_fills_the_memory_is_refused_and_few_are_played_at_once() {
    let server = Fixture::start().await;
    let requests: String = (1..1000)
        .map(|node| format!("> request {node}\n"))
        .collect();
    let text = format!("algorithm suzuki-kasami\nnodes 1000\n{requests}");
    for name in ["run", "transcript"] {
        let reply = server.page(name, &json!({ "text": text })).await;
        let error = reply.json()["error"].to_string();
        assert_eq!(reply.status, 400, "{error}");
        assert!(error.contains("the player keeps at most 200000"), "{error}");
    }
    let all = server.shared.runs.acquire_many(RUNS_MAX as u32).await;
    let small = json!({ "text": "algorithm central\nnodes 2\n> request 1\n" });
    let mut asked = std::pin::pin!(server.page("run", &small));
    let waits = timeout(Duration::from_millis(200), &mut asked).await;
    assert!(waits.is_err(), "it waits for its turn");
    drop(all.expect("it is not closed"));
    assert_eq!(timeout(TIMEOUT, asked).await.expect("in time").status, 200);
}

/// The next line of a stream of JSON, without the sizes of chunks.
async fn next_json(lines: &mut tokio::io::Lines<BufReader<TcpStream>>) -> Value {
    loop {
        let line = timeout(TIMEOUT, lines.next_line()).await.expect("in time");
        let line = line.expect("a connection").expect("more lines");
        if line.starts_with('{') {
            return serde_json::from_str(&line).expect("JSON");
        }
    }
}

impl Fixture {
    async fn search(&self, text: &str) -> tokio::io::Lines<BufReader<TcpStream>> {
        let (host, cookie) = (self.host(), self.cookie());
        let headers = [
            ("host", host.as_str()),
            ("cookie", &cookie),
            ("content-type", "application/json"),
        ];
        let query = json!({ "text": text, "states": 100_000_000, "seconds": 3600, "requests": 3 });
        let line = format!("POST {}", self.at("search"));
        let stream = self.send(&line, &headers, &query.to_string()).await;
        BufReader::new(stream).lines()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_streams_its_result() {
    let server = Fixture::start().await;
    let text = "algorithm maekawa\nvariant as-published\nnodes 4\nshape grid\n\n> request 1\n";
    let mut lines = server.search(text).await;
    let result = loop {
        let value = next_json(&mut lines).await;
        if value.get("progress").is_none() {
            break value;
        }
    };
    let found = &result["found"];
    assert!(
        found["steps"].as_u64().is_some_and(|steps| steps > 0),
        "{result}"
    );
    let run = play::run(found["text"].as_str().expect("text"), 0).expect("a run");
    assert!(run.steps.last().expect("a step").fault.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_stops_when_the_client_goes_away() {
    let server = Fixture::start().await;
    let endless = "algorithm ricart-agrawala\nnodes 5\n\n";
    let mut lines = server.search(endless).await;
    assert!(next_json(&mut lines).await["progress"]["states"].is_u64());
    assert_eq!(server.shared.searches.available_permits(), 0);
    drop(lines);
    // The search gives its permit back only when it has ended.
    let permit = timeout(TIMEOUT, server.shared.searches.acquire()).await;
    drop(permit.expect("the search stops").expect("it is not closed"));
}
