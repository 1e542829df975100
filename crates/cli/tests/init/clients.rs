//! Certificates for clients.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::Value;
use soloist_node::identity::Identity;
use tempfile::tempdir;

use crate::{NODES, made, nothing_made, refused};

#[test]
fn clients_get_certificates_that_no_node_can_use() {
    let folder = tempdir().unwrap();
    made(folder.path(), &format!("--nodes {NODES}"));
    let text = made(folder.path(), "--client backup,ci");
    assert!(
        text.contains("Made soloist-cluster/client-backup."),
        "{text}"
    );
    assert!(text.contains("client_ca"), "{text}");
    let cluster = folder.path().join("soloist-cluster");
    for name in ["backup", "ci"] {
        let client = cluster.join(format!("client-{name}"));
        let [ca, certificate, key] =
            ["ca.pem", "client.pem", "client.key"].map(|file| client.join(file));
        assert_eq!(
            fs::metadata(&key).unwrap().permissions().mode() & 0o777,
            0o600
        );
        let error = Identity::load(&ca, &certificate, &key).unwrap_err();
        let text = "is a client's certificate, but a node's certificate is needed";
        assert!(error.to_string().contains(text), "{error}");
    }
    // `--add` does not take the folders of clients for nodes.
    made(folder.path(), "--add d=10.0.0.4:7401");
    let json: Value = serde_json::from_str(&made(folder.path(), "--client x --json")).unwrap();
    let key = json["clients"][0]["key"].as_str().unwrap();
    assert_eq!(key, "soloist-cluster/client-x/client.key");
}

#[test]
fn invalid_client_names_are_refused() {
    let folder = tempdir().unwrap();
    refused(folder.path(), "--client x", &["needs the cluster's CA"]);
    made(folder.path(), &format!("--nodes {NODES}"));
    made(folder.path(), "--client x");
    refused(
        folder.path(),
        "--client y,x",
        &["client-x", "already exists"],
    );
    refused(
        folder.path(),
        "--client y,y",
        &["the same name is listed twice"],
    );
    nothing_made(folder.path(), "--client Y", &["'Y' at position 1"]);
    nothing_made(
        folder.path(),
        "--client y --add d=10.0.0.4:7401",
        &["cannot be used with"],
    );
}
