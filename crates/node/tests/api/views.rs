//! Read-only views: locks, the cluster, events, metrics and the OpenAPI document.

use std::collections::BTreeSet;

use http_body_util::BodyExt;
use hyper::Method;
use hyper::body::Incoming;
use serde_json::{Value, json};
use soloist_api::{
    Cluster, EndReason, Event, EventKind, Fence, Hold, LockInfo, LockList, LockState, NodeState,
};
use soloist_node::config::{Api, Metrics};
use soloist_node::{Guard, Locks, http};
use tempfile::TempDir;

use crate::cluster::{lonely, served, until};
use crate::http::{Http, request};

#[tokio::test]
async fn waiters_of_all_nodes_are_seen_from_every_node_in_order() {
    let served = served(3).await;
    let hold = served.https[1].hold("a").await;
    let mut waits = Vec::new();
    for (number, http) in served.https.iter().enumerate() {
        let http = http.clone();
        waits.push(tokio::spawn(async move {
            let owner = format!("owner {number}");
            let hold: Hold = http.acquire("a", json!({ "owner": owner })).await.ok();
            assert_eq!(http.release(&hold).await.status, 204);
        }));
        // Waiters are ordered by times that nodes report to each other. Keep those times further
        // apart than the network delay.
        until("the last one has waited for a while", async || {
            let info = served.waiting("a", number as u64 + 1).await;
            let last = info.waiters.iter().map(|waiter| waiter.waited_for_ms).min();
            last.filter(|waited_for_ms| *waited_for_ms > 200)
        })
        .await;
    }
    for http in &served.https {
        let info: LockInfo = http.get("/v1/locks/a").await.ok();
        assert_eq!((info.state, info.waiting), (LockState::Held, 3));
        assert_eq!(info.algorithm, "raymond");
        assert!(info.silent.is_empty());
        let seen = info.waiters.iter();
        let seen: Vec<_> = seen
            .map(|w| (w.position, w.node.as_str(), w.owner.as_str()))
            .collect();
        let expected = [
            (1, "n1", "owner 0"),
            (2, "n2", "owner 1"),
            (3, "n3", "owner 2"),
        ];
        assert_eq!(seen, expected);
        let holder = info.holder.unwrap();
        assert_eq!((holder.node.as_str(), holder.fence), ("n2", hold.fence));
        assert!(holder.expires_in_ms.unwrap() <= 60_000);
    }
    assert_eq!(served.https[1].release(&hold).await.status, 204);
    for wait in waits {
        wait.await.unwrap();
    }
    let info = served.waiting("a", 0).await;
    assert_eq!((info.state, info.holder), (LockState::Free, None));
    served.stop().await;
}

#[tokio::test]
async fn pages_of_locks_are_complete() {
    let served = served(2).await;
    let mut held = Vec::new();
    for number in 0..2_500 {
        let node = &served.cluster.nodes[number % 2];
        let lock = node.lock(&format!("lock {number:04}")).unwrap();
        held.push(lock.acquire().await.unwrap());
    }
    let mut names = Vec::new();
    let mut pages = 0;
    let mut next: Option<String> = None;
    loop {
        let path = match &next {
            Some(next) => format!("/v1/locks?after={}", next.replace(" ", "%20")),
            None => "/v1/locks".to_owned(),
        };
        let page: LockList = served.https[0].get(&path).await.ok();
        assert!(page.locks.iter().all(|lock| lock.state == LockState::Held));
        names.extend(page.locks.into_iter().map(|lock| lock.name));
        pages += 1;
        next = page.next;
        if next.is_none() {
            break;
        }
    }
    let expected: Vec<_> = (0..2_500)
        .map(|number| format!("lock {number:04}"))
        .collect();
    assert_eq!(names, expected);
    assert!(pages >= 3, "{pages} pages");
    served.https[0].get("/v1/locks?before=a").await.error(400);
    served.stop().await;
}

#[tokio::test]
async fn a_node_that_has_left_hides_nothing() {
    let served = served(3).await;
    let hold = served.https[0].hold("held").await;
    let before: Cluster = served.https[0].get("/v1/cluster").await.ok();
    served.cluster.nodes[2]
        .stop(std::time::Duration::ZERO)
        .await;
    let cluster = until("it has left", async || {
        let cluster: Cluster = served.https[0].get("/v1/cluster").await.ok();
        let is_member = cluster.state == NodeState::Member;
        (is_member && cluster.epoch > before.epoch).then_some(cluster)
    })
    .await;
    assert_eq!((cluster.node.as_str(), cluster.reason), ("n1", None));
    assert_eq!(cluster.algorithm, "raymond");
    let health = cluster.nodes[0].health.as_ref().unwrap();
    assert_eq!((health.holds, health.waiters), (1, 0));
    let other = cluster.nodes.iter().find(|node| node.name == "n3");
    // It is still a keeper, and the leader reports that it has no lease.
    assert!(other.is_some_and(|node| node.lease_ms.is_none() && node.health.is_none()));
    until("the others know all", async || {
        let info: LockInfo = served.https[1].get("/v1/locks/other").await.ok();
        let is_known = info.silent.is_empty() && info.reason.is_none();
        (is_known && info.state == LockState::Free).then_some(())
    })
    .await;
    let info: LockInfo = served.https[1].get("/v1/locks/held").await.ok();
    assert_eq!(info.state, LockState::Held);
    let locks: LockList = served.https[0].get("/v1/locks").await.ok();
    assert_eq!((locks.locks.len(), locks.silent.len()), (1, 0));
    assert_eq!(served.https[0].release(&hold).await.status, 204);
    served.stop().await;
}

/// Reads server-sent events.
struct Watch {
    body: Incoming,
    text: String,
}

impl Watch {
    async fn open(http: &Http) -> Self {
        let request = request(Method::GET, "/v1/events", None);
        let response = http.open(request).await.unwrap();
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Watch {
            body: response.into_body(),
            text: String::new(),
        }
    }

    /// Returns the next event, or `None` at the end of the stream.
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some((block, rest)) = self.text.split_once("\n\n") {
                let field = |name: &str| {
                    let found = block.lines().find_map(|line| line.strip_prefix(name));
                    found.unwrap_or_else(|| panic!("{name} in {block:?}"))
                };
                let event: Event = serde_json::from_str(field("data: ")).unwrap();
                assert_eq!(field("event: "), event.event.name());
                self.text = rest.to_owned();
                return Some(event);
            }
            let data = self.body.frame().await?.unwrap().into_data().unwrap();
            self.text.push_str(str::from_utf8(&data).unwrap());
        }
    }
}

#[tokio::test]
async fn events_come_in_order_and_end_with_the_node() {
    let served = served(1).await;
    let http = &served.https[0];
    let mut watch = Watch::open(http).await;
    let first: Hold = http
        .acquire("a", json!({ "owner": "one", "ttl_ms": 60_000 }))
        .await
        .ok();
    let second = {
        let http = http.clone();
        let body = json!({ "owner": "two", "ttl_ms": 1 });
        tokio::spawn(async move { http.acquire("a", body).await.ok::<Hold>() })
    };
    served.waiting("a", 1).await;
    let body = json!({ "owner": "three", "wait_ms": 1 });
    assert_eq!(http.acquire("a", body).await.status, 409);
    assert_eq!(http.release(&first).await.status, 204);
    let second = second.await.unwrap();
    let mut seen = Vec::new();
    for _ in 0..7 {
        let event = watch.next().await.unwrap();
        assert_eq!((event.node.as_str(), event.lock.as_str()), ("n1", "a"));
        assert!(event.at_unix_ms > 1_700_000_000_000);
        seen.push((event.event, event.owner, event.fence, event.reason));
    }
    let event = |kind, owner: &str, fence: Option<Fence>, reason: Option<EndReason>| {
        (kind, owner.to_owned(), fence, reason)
    };
    let expected = [
        event(EventKind::Acquired, "one", Some(first.fence), None),
        event(EventKind::Waiting, "two", None, None),
        event(EventKind::Waiting, "three", None, None),
        event(EventKind::GaveUp, "three", None, None),
        event(EventKind::Released, "one", Some(first.fence), None),
        event(EventKind::Acquired, "two", Some(second.fence), None),
        event(
            EventKind::Lost,
            "two",
            Some(second.fence),
            Some(EndReason::Expired),
        ),
    ];
    assert_eq!(seen, expected);
    served.stop().await;
    assert_eq!(watch.next().await, None);
}

#[tokio::test]
async fn a_slow_reader_of_events_is_told_how_many_it_missed() {
    let served = served(1).await;
    let mut watch = Watch::open(&served.https[0]).await;
    let lock = served.cluster.nodes[0].lock("a").unwrap().owner("fast");
    let turns = 20_000;
    for _ in 0..turns {
        lock.acquire().await.unwrap().release().await.unwrap();
    }
    let last = served.https[0].hold("last").await;
    let (mut seen, mut missed) = (0, 0);
    loop {
        let event = watch.next().await.unwrap();
        match event.event {
            EventKind::Missed => missed += event.missed.unwrap(),
            _ if event.lock == "last" => break,
            _ => seen += 1,
        }
    }
    assert!(missed > 0);
    assert_eq!(seen + missed, 2 * turns);
    assert_eq!(served.https[0].release(&last).await.status, 204);
    served.stop().await;
}

/// Returns the names of all metrics in a text. Asserts that the text is in Prometheus's format.
fn metric_names(text: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        if let Some(comment) = line.strip_prefix("# ") {
            assert!(
                comment.starts_with("HELP ") || comment.starts_with("TYPE "),
                "{line}"
            );
            continue;
        }
        let (series, value) = line.rsplit_once(' ').unwrap();
        assert!(value.parse::<f64>().is_ok(), "{line}");
        let name = series.split('{').next().unwrap();
        assert!(
            name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'),
            "{line}"
        );
        names.insert(name.to_owned());
    }
    names
}

#[tokio::test]
async fn metrics_have_their_names_and_no_lock_labels() {
    let served = served(2).await;
    for http in &served.https {
        let hold = http.hold("secret-name").await;
        assert_eq!(http.release(&hold).await.status, 204);
    }
    let mut names = BTreeSet::new();
    for http in &served.https {
        let answer = http.get("/metrics").await;
        assert_eq!(
            answer.headers["content-type"],
            "text/plain; version=0.0.4; charset=utf-8"
        );
        let text = str::from_utf8(&answer.body).unwrap();
        assert!(!text.contains("secret-name"), "{text}");
        assert!(text.contains("soloist_entries_total 1"), "{text}");
        assert!(
            text.contains("soloist_losses_total{reason=\"expired\"} 0"),
            "{text}"
        );
        names.extend(metric_names(text));
    }
    for name in [
        "soloist_wait_seconds_bucket",
        "soloist_hold_seconds_sum",
        "soloist_hand_over_seconds_count",
        "soloist_entries_total",
        "soloist_losses_total",
        "soloist_messages_total",
        "soloist_frames_resent_total",
        "soloist_frames_sent_total",
        "soloist_grants_unclaimed_total",
        "soloist_forget_messages_total",
        "soloist_messages_of_other_epochs_total",
        "soloist_connections_refused_total",
        "soloist_connections_hostile_total",
        "soloist_locks",
        "soloist_holds",
        "soloist_waiters",
        "soloist_links_up",
    ] {
        assert!(names.contains(name), "{name} is not in {names:?}");
    }
    served.stop().await;
}

/// Returns the value of a series in a node's metrics.
async fn metric(http: &Http, series: &str) -> Option<f64> {
    let answer = http.get("/metrics").await;
    let text = str::from_utf8(&answer.body).unwrap();
    let mut lines = text.lines().filter_map(|line| line.rsplit_once(' '));
    let (_, value) = lines.find(|(known, _)| *known == series)?;
    Some(value.parse().unwrap())
}

#[tokio::test]
async fn metrics_show_the_longest_wait_and_the_links() {
    let served = served(2).await;
    let [http, other] = &served.https[..] else {
        panic!("two nodes");
    };
    let version = env!("CARGO_PKG_VERSION");
    let build = format!("soloist_build_info{{version=\"{version}\"}}");
    assert_eq!(metric(http, &build).await, Some(1.0));
    let store = "soloist_keeper_store_ok";
    let stores = [metric(http, store).await, metric(other, store).await];
    assert!(stores.contains(&Some(1.0)), "{stores:?}");
    let oldest = "soloist_oldest_waiter_seconds";
    assert_eq!(metric(http, oldest).await, Some(0.0));
    let hold = http.hold("a").await;
    let waits = http.acquire("a", json!({ "ttl_ms": 60_000 }));
    let longer = until("the waiter has waited", async || {
        let first = metric(http, oldest).await.filter(|waited| *waited > 0.0)?;
        let second = metric(http, oldest).await?;
        (second > first).then_some(())
    });
    let release = async {
        longer.await;
        assert_eq!(http.release(&hold).await.status, 204);
    };
    let (granted, ()) = tokio::join!(waits, release);
    let granted: Hold = granted.ok();
    assert_eq!(metric(http, oldest).await, Some(0.0));
    assert_eq!(http.release(&granted).await.status, 204);
    let link = r#"soloist_link_up{peer="n2"}"#;
    until("the link is up", async || {
        (metric(http, link).await == Some(1.0)).then_some(())
    })
    .await;
    served.stop().await;
}

#[tokio::test]
async fn lock_names_are_labels_if_enabled() {
    let folder = TempDir::new().unwrap();
    let api = Api::at(folder.path().join("s.sock"));
    let node = lonely(api, Metrics { lock_names: true }).await;
    let server = http::serve(&node).await.unwrap();
    let http = Http::Unix(server.socket().to_owned());
    let hold = http.hold("a%22b%5C").await;
    assert_eq!(http.release(&hold).await.status, 204);
    let answer = http.get("/metrics").await;
    let text = str::from_utf8(&answer.body).unwrap();
    assert!(
        text.contains(r#"soloist_hold_seconds_count{lock="a\"b\\"} 1"#),
        "{text}"
    );
    metric_names(text);
    server.stop().await;
}

/// A test beside the router compares the paths, and the file `openapi.json` is compared with the
/// code.
#[tokio::test]
async fn the_description_has_the_methods_of_every_path_and_their_failures() {
    let served = served(1).await;
    let http = &served.https[0];
    let document: Value = http.get("/openapi.json").await.ok();
    for (path, item) in document["paths"].as_object().unwrap() {
        let answer = http.send(request(Method::OPTIONS, path, None)).await;
        let allowed = answer.headers["allow"].to_str().unwrap().to_lowercase();
        let allowed = allowed.split(',').filter(|method| *method != "head");
        let described = item.as_object().unwrap().keys().map(String::as_str);
        assert_eq!(
            allowed.collect::<BTreeSet<_>>(),
            described.collect::<BTreeSet<_>>(),
            "{path}"
        );
        for (method, operation) in item.as_object().unwrap() {
            let responses = operation["responses"].as_object().unwrap();
            let is_open = ["/healthz", "/readyz"].contains(&path.as_str());
            assert!(responses.contains_key("503"), "{method} {path}");
            assert_eq!(responses.contains_key("401"), !is_open, "{method} {path}");
            let has_body = operation.get("requestBody").is_some();
            assert_eq!(responses.contains_key("415"), has_body, "{method} {path}");
        }
    }
    assert_eq!(document["servers"][0]["url"], "/");
    let schemes = document["components"]["securitySchemes"].as_object();
    assert!(schemes.unwrap().keys().eq(["certificate", "token"]));
    let schemas = document["components"]["schemas"].as_object().unwrap();
    let acquire = &schemas["AcquireRequest"]["properties"];
    assert_eq!(acquire["ttl_ms"]["maximum"], 3_600_000);
    assert_eq!(acquire["wait_ms"]["maximum"], 86_400_000);
    assert_eq!(schemas["Hold"]["properties"]["fence"]["type"], "string");
    assert!(schemas["Error"]["properties"]["reason"].is_object());
    served.stop().await;
}
