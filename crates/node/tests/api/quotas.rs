//! Quotas: requests beyond a client's quota are refused, and other clients are served.

use serde_json::{Value, json};
use soloist_api::{ErrorKind, Hold};
use soloist_core::limits::{Limits, Quota};
use soloist_core::locks::{Quantity, RequestError};
use soloist_node::config::{Api, ApiTcp, Metrics};
use soloist_node::http::{self, ApiServer};
use soloist_node::{AcquireError, Guard, Locks};
use tempfile::TempDir;

use crate::cluster::{Lonely, limited, until};
use crate::http::Http;
use crate::tcp::{Files, loopback, tls};

struct Limited {
    node: Lonely,
    server: ApiServer,
    /// Client identified by its Unix user; `modest` is the client of all TCP connections.
    greedy: Http,
    modest: Http,
    _folder: TempDir,
}

/// Starts a node with this quota per client.
async fn node(client: Quota) -> Limited {
    let folder = TempDir::new().unwrap();
    let api = Api {
        tcp: Some(ApiTcp {
            listen: "127.0.0.1:0".parse().unwrap(),
            token_file: None,
            tls: None,
        }),
        ..Api::at(folder.path().join("s.sock"))
    };
    let limits = Limits {
        client,
        ..Limits::default()
    };
    let node = limited(api, Metrics::default(), limits).await;
    let server = http::serve(&node).await.unwrap();
    Limited {
        greedy: Http::Unix(server.socket().to_owned()),
        modest: Http::Tcp(server.addresses().tcp.unwrap()),
        node,
        server,
        _folder: folder,
    }
}

impl Limited {
    async fn refused(&self, lock: &str, body: Value, says: &[&str]) {
        let error = self.greedy.acquire(lock, body).await.error(429);
        assert_eq!(error.error, ErrorKind::TooMany);
        for part in says {
            assert!(error.detail.contains(part), "{}", error.detail);
        }
        let metrics = self.modest.get("/metrics").await;
        let text = str::from_utf8(&metrics.body).unwrap();
        let limit = says.last().unwrap();
        let counted = format!("soloist_requests_refused_total{{limit=\"{limit}\"}} 1");
        assert!(text.contains(&counted), "{counted} is not in {text}");
    }

    async fn stop(self) {
        self.node.stop(std::time::Duration::ZERO).await;
        self.server.stop().await;
    }
}

#[tokio::test]
async fn too_many_holds() {
    let quota = Limits::default().client;
    let limited = node(Quota { holds: 3, ..quota }).await;
    let mut holds = Vec::new();
    for lock in ["a", "b", "c"] {
        holds.push(limited.greedy.hold(lock).await);
    }
    let user = "Unix user id";
    limited
        .refused("d", json!({}), &[user, "3 holds", "limits.client_holds"])
        .await;
    limited.modest.hold("d").await;
    assert_eq!(limited.greedy.release(&holds[0]).await.status, 204);
    limited.greedy.hold("a").await;
    limited.stop().await;
}

#[tokio::test]
async fn too_many_waiters() {
    let quota = Limits::default().client;
    let limited = node(Quota {
        waiters: 2,
        ..quota
    })
    .await;
    let hold = limited.modest.hold("a").await;
    let waits = [1, 2].map(|_| {
        let http = limited.greedy.clone();
        tokio::spawn(async move { http.acquire("a", json!({})).await })
    });
    until("two wait", async || {
        let info: soloist_api::LockInfo = limited.modest.get("/v1/locks/a").await.ok();
        (info.waiting == 2).then_some(())
    })
    .await;
    let says = ["2 waiters", "limits.client_waiters"];
    limited.refused("a", json!({}), &says).await;
    limited.modest.hold("b").await;
    assert_eq!(limited.modest.release(&hold).await.status, 204);
    for wait in waits {
        let hold: Hold = wait.await.unwrap().ok();
        assert_eq!(limited.greedy.release(&hold).await.status, 204);
    }
    limited.stop().await;
}

#[tokio::test]
async fn too_many_bytes() {
    let quota = Limits::default().client;
    let limited = node(Quota {
        name_bytes: 300,
        ..quota
    })
    .await;
    limited.greedy.hold(&"x".repeat(256)).await;
    let says = ["300 bytes", "limits.client_name_bytes"];
    limited.refused(&"y".repeat(256), json!({}), &says).await;
    limited.modest.hold(&"y".repeat(256)).await;
    limited.greedy.hold("short").await;
    limited.stop().await;
}

#[tokio::test]
async fn clients_with_certificates_have_a_quota_each() {
    let files = Files::new();
    let limits = Limits {
        client: Quota {
            holds: 1,
            ..Limits::default().client
        },
        ..Limits::default()
    };
    let api = files.api(loopback(None, Some(files.tls(true))));
    let node = limited(api, Metrics::default(), limits).await;
    let server = http::serve(&node).await.unwrap();
    let address = server.addresses().tcp.unwrap();
    let client = |name: &str| tls(address, files.client(name));
    let hold = client("alice").hold("a").await;
    // Another connection and a new certificate still count as the same client.
    let error = client("alice").acquire("b", json!({})).await.error(429);
    assert_eq!(error.error, ErrorKind::TooMany);
    for part in ["CN=alice", "1 holds", "limits.client_holds"] {
        assert!(error.detail.contains(part), "{}", error.detail);
    }
    let others = client("bob").hold("b").await;
    let error = client("bob").acquire("c", json!({})).await.error(429);
    assert!(error.detail.contains("CN=bob"), "{}", error.detail);
    let user = Http::Unix(server.socket().to_owned());
    user.hold("c").await;
    assert_eq!(client("alice").release(&hold).await.status, 204);
    let hold = client("alice").hold("d").await;
    assert_eq!(client("alice").release(&hold).await.status, 204);
    assert_eq!(client("bob").release(&others).await.status, 204);
    node.stop(std::time::Duration::ZERO).await;
    server.stop().await;
}

#[tokio::test]
async fn a_program_with_a_node_inside_is_a_client_too() {
    let quota = Limits::default().client;
    let limited = node(Quota { holds: 1, ..quota }).await;
    let guard = limited.node.lock("a").unwrap().acquire().await.unwrap();
    let second = limited.node.lock("b").unwrap();
    let Err(AcquireError::Refused(refused)) = second.acquire().await else {
        panic!("it is beyond the quota");
    };
    let Some(RequestError::Quota(full)) = refused.downcast_ref() else {
        panic!("another refusal: {refused}");
    };
    assert_eq!((full.what, full.max), (Quantity::Holds, 1));
    limited.greedy.hold("b").await;
    guard.release().await.unwrap();
    let guard = limited.node.lock("c").unwrap().acquire().await.unwrap();
    guard.release().await.unwrap();
    limited.stop().await;
}
