//! The file of the Unix socket.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;

use soloist_node::config::{Api, Metrics, SocketAccess};
use soloist_node::http::{self, ApiError};
use tempfile::TempDir;

use crate::cluster::{Lonely, lonely};
use crate::http::Http;

async fn node(socket: PathBuf) -> Lonely {
    lonely(Api::at(socket), Metrics::default()).await
}

#[tokio::test]
async fn only_its_owner_may_use_it_and_it_goes_when_the_api_stops() {
    let folder = TempDir::new().unwrap();
    let socket = folder.path().join("soloist.sock");
    let node = node(socket.clone()).await;
    let server = http::serve(&node).await.unwrap();
    let mode = std::fs::metadata(&socket).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(server.addresses().socket, socket);
    assert_eq!(server.addresses().tcp, None);
    // An idle connection does not delay the stop.
    let _idle = Http::Unix(socket.clone()).connect().await.unwrap();
    server.stop().await;
    assert!(!socket.exists());
    let server = http::serve(&node).await.unwrap();
    drop(server);
    assert!(!socket.exists());
}

#[tokio::test]
async fn its_mode_and_group_can_be_set() {
    let folder = TempDir::new().unwrap();
    let socket = folder.path().join("soloist.sock");
    let own = std::fs::metadata(folder.path()).unwrap().gid();
    let with_group = |group: &str| {
        let access = SocketAccess {
            mode: 0o660,
            group: Some(group.to_owned()),
        };
        let api = Api {
            access,
            ..Api::at(socket.clone())
        };
        lonely(api, Metrics::default())
    };
    let node = with_group(&own.to_string()).await;
    let _server = http::serve(&node).await.unwrap();
    let metadata = std::fs::metadata(&socket).unwrap();
    assert_eq!(metadata.permissions().mode() & 0o777, 0o660);
    assert_eq!(metadata.gid(), own);

    let node = with_group("no-such-group").await;
    let error = http::serve(&node).await.err().unwrap();
    assert!(matches!(error, ApiError::SocketGroup(_)), "{error}");
    assert!(error.to_string().contains("\"no-such-group\""), "{error}");
}

#[tokio::test]
async fn a_live_socket_is_kept_and_a_stale_one_replaced() {
    let folder = TempDir::new().unwrap();
    let socket = folder.path().join("soloist.sock");
    let other = UnixListener::bind(&socket).unwrap();
    let node = node(socket.clone()).await;
    let error = http::serve(&node).await.err().unwrap();
    assert!(matches!(error, ApiError::SocketInUse(_)), "{error}");
    assert!(error.to_string().contains("soloist.sock"), "{error}");
    assert!(socket.exists());
    drop(other);
    let server = http::serve(&node).await.unwrap();
    assert_eq!(Http::Unix(socket.clone()).get("/healthz").await.body, "ok");
    // A file that replaces the socket in the meantime is not removed.
    std::fs::remove_file(&socket).unwrap();
    std::fs::write(&socket, "of another program").unwrap();
    server.stop().await;
    assert!(socket.exists());
    let error = http::serve(&node).await.err().unwrap();
    assert!(matches!(error, ApiError::NotASocket(_)), "{error}");
}

#[tokio::test]
async fn an_invalid_path_is_refused_with_the_limit() {
    let folder = TempDir::new().unwrap();
    let long = node(folder.path().join("x".repeat(200))).await;
    let error = http::serve(&long).await.err().unwrap().to_string();
    assert!(error.contains("107"), "{error}");
    let nowhere = node(folder.path().join("no/such/folder")).await;
    let error = http::serve(&nowhere).await.err().unwrap().to_string();
    assert!(error.contains("no/such/folder"), "{error}");
}
