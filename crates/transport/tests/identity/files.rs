//! Errors for unusable files: they name the file and the remedy.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use soloist_transport::identity::{Authority, Identity, Issued, Role, api_server};
use tempfile::TempDir;

use crate::{future, name, past};

struct Files {
    folder: TempDir,
    authority: Authority,
}

impl Files {
    fn new() -> Self {
        let files = Files {
            folder: TempDir::new().unwrap(),
            authority: Authority::new("orchestra").unwrap(),
        };
        let issued = files.authority.issue(&name("a"), &[]).unwrap();
        files.put("ca.pem", files.authority.certificate(), 0o644);
        files.put("ca.key", &files.authority.key(), 0o600);
        files.put_issued(&issued);
        files
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn put(&self, name: &str, text: &str, mode: u32) {
        fs::write(self.path(name), text).unwrap();
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(mode)).unwrap();
    }

    fn put_issued(&self, issued: &Issued) {
        self.put("node.pem", &issued.certificate, 0o644);
        self.put("node.key", &issued.key, 0o600);
    }

    fn load(&self) -> Result<Identity, String> {
        Identity::load(
            &self.path("ca.pem"),
            &self.path("node.pem"),
            &self.path("node.key"),
        )
        .map_err(|error| error.to_string())
    }

    /// Asserts that loading fails with an error that names `file` and contains `says`.
    fn refused(&self, file: &str, says: &str) {
        let text = self.load().unwrap_err();
        let file = self.path(file).display().to_string();
        assert!(text.contains(&file) && text.contains(says), "{text}");
    }
}

#[test]
fn good_files_are_loaded() {
    assert_eq!(Files::new().load().unwrap().name(), "a");
}

#[test]
fn a_missing_file_is_named() {
    for file in ["ca.pem", "node.pem", "node.key"] {
        let files = Files::new();
        fs::remove_file(files.path(file)).unwrap();
        files.refused(file, "cannot read");
    }
}

#[test]
fn a_file_that_is_not_pem_is_named() {
    for file in ["ca.pem", "node.pem", "node.key"] {
        for text in ["", "hello", "-----BEGIN CERTIFICATE-----\nAAAA"] {
            let files = Files::new();
            files.put(file, text, 0o600);
            files.refused(file, "in PEM");
        }
    }
    let files = Files::new();
    files.put("node.pem", &"x".repeat((1 << 20) + 1), 0o600);
    files.refused("node.pem", "longer than 1048576 bytes");
}

#[test]
fn pem_of_something_else_is_named() {
    let nothing = |label: &str| format!("-----BEGIN {label}-----\nAAAA\n-----END {label}-----\n");
    for file in ["ca.pem", "node.pem"] {
        let files = Files::new();
        files.put(file, &nothing("CERTIFICATE"), 0o600);
        files.refused(file, "not a certificate");
    }
    let files = Files::new();
    files.put("node.key", &nothing("PRIVATE KEY"), 0o600);
    files.refused("node.key", "cannot be used");
}

#[test]
fn a_key_that_others_may_read_is_refused() {
    for mode in [0o644, 0o640, 0o604, 0o660] {
        let files = Files::new();
        let issued = files.authority.issue(&name("a"), &[]).unwrap();
        files.put_issued(&issued);
        files.put("node.key", &issued.key, mode);
        files.refused("node.key", &format!("(mode {mode:o}): chmod 600"));
        files.put("node.key", &issued.key, 0o400);
        assert!(files.load().is_ok());
    }
}

#[test]
fn a_key_of_another_certificate_is_refused() {
    let files = Files::new();
    let other = files.authority.issue(&name("a"), &[]).unwrap();
    files.put("node.key", &other.key, 0o600);
    files.refused("node.key", "does not match");
    files.refused("node.pem", "does not match");
}

#[test]
fn dates_are_reported() {
    let files = Files::new();
    let issue = |validity| files.authority.issue_valid(&name("a"), &[], validity);
    files.put_issued(&issue(past()).unwrap());
    files.refused("node.pem", "expired at 20");
    files.put_issued(&issue(future()).unwrap());
    files.refused("node.pem", "is valid only from 20");
}

#[test]
fn a_certificate_of_another_ca_is_refused() {
    let files = Files::new();
    let other = Authority::new("orchestra").unwrap();
    files.put_issued(&other.issue(&name("a"), &[]).unwrap());
    files.refused("node.pem", "is not accepted by the CA");
    files.refused("ca.pem", "is not accepted by the CA");
}

#[test]
fn the_ca_issues_again_from_its_files() {
    let files = Files::new();
    let again = Authority::load(&files.path("ca.pem"), &files.path("ca.key")).unwrap();
    files.put_issued(&again.issue(&name("b"), &[]).unwrap());
    assert_eq!(files.load().unwrap().name(), "b");
    let wrong = |ca: &str, key: &str| {
        let made = Authority::load(&files.path(ca), &files.path(key));
        made.unwrap_err().to_string()
    };
    assert!(wrong("ca.pem", "node.key").contains("does not match"));
    assert!(wrong("node.pem", "node.key").contains("not the certificate of a CA"));
    files.put("ca.key", &files.authority.key(), 0o644);
    assert!(wrong("ca.pem", "ca.key").contains("chmod 600"));
}

#[test]
fn a_key_in_the_ca_file_is_not_copied() {
    let files = Files::new();
    let both = format!("{}{}", files.authority.key(), files.authority.certificate());
    files.put("ca.pem", &both, 0o600);
    let again = Authority::load(&files.path("ca.pem"), &files.path("ca.key")).unwrap();
    assert_eq!(again.certificate(), files.authority.certificate());
}

#[test]
fn the_api_has_a_certificate_of_its_own() {
    let files = Files::new();
    let issued = files
        .authority
        .issue(&name("a"), &["db.example.org"])
        .unwrap();
    files.put_issued(&issued);
    let (ca, pem) = (files.path("ca.pem"), files.path("node.pem"));
    let (key, none) = (files.path("node.key"), files.path("none"));
    assert!(api_server(&pem, &key, None).is_ok());
    assert!(api_server(&pem, &key, Some(&ca)).is_ok());
    let refused = |pem, key, ca| {
        let made: Result<_, _> = api_server(pem, key, ca);
        made.unwrap_err().to_string()
    };
    assert!(refused(&pem, &key, Some(&none)).contains("cannot read"));
    assert!(refused(&ca, &key, None).contains("does not match"));
    files.put_issued(
        &files
            .authority
            .issue_valid(&name("a"), &[], past())
            .unwrap(),
    );
    assert!(refused(&pem, &key, None).contains("expired"));
}

#[test]
fn an_expired_ca_in_a_bundle_is_skipped_while_another_is_valid() {
    let files = Files::new();
    let expired = Authority::valid("orchestra", past()).unwrap();
    let both = format!("{}{}", expired.certificate(), files.authority.certificate());
    files.put("ca.pem", &both, 0o644);
    assert_eq!(files.load().unwrap().name(), "a");
    // The expired CA is not trusted, though.
    files.put_issued(&expired.issue(&name("a"), &[]).unwrap());
    files.refused("node.pem", "is not accepted by the CA");
    files.put("ca.pem", expired.certificate(), 0o644);
    files.refused("ca.pem", "expired at 20");
    let twice = format!("{0}{0}", expired.certificate());
    files.put("ca.pem", &twice, 0o644);
    files.refused("ca.pem", "expired at 20");
    let future = Authority::valid("orchestra", future()).unwrap();
    let both = format!("{}{}", future.certificate(), files.authority.certificate());
    files.put("ca.pem", &both, 0o644);
    files.refused("ca.pem", "is valid only from 20");
}

#[test]
fn a_node_does_not_start_with_a_certificate_of_another_role() {
    let files = Files::new();
    for (role, says) in [
        (
            Role::Client,
            "is a client's certificate, but a node's certificate is needed",
        ),
        (
            Role::ApiServer,
            "is an API server's certificate, but a node's certificate is needed",
        ),
    ] {
        files.put_issued(&files.authority.issue_as(role, &name("a"), &[]).unwrap());
        files.refused("node.pem", says);
    }
    let issued = files.authority.issue_as(Role::Node, &name("a"), &[]);
    files.put_issued(&issued.unwrap());
    assert_eq!(files.load().unwrap().name(), "a");
}
