//! The address a node listens on for its peers, and the security of its links.

use std::path::Path;

use soloist_node::config::Security;

use crate::{HEAD, parse, refused, refused_with};

const TLS: &str = "[tls]\nca = \"ca.pem\"\ncertificate = \"node.pem\"\nkey = \"node.key\"\n";

fn listening(on: &str) -> String {
    format!("listen = \"{on}\"\n{HEAD}")
}

#[test]
fn a_node_listens_on_its_own_address_by_default() {
    let listens = |text: &str| parse(text).unwrap().listens_on().to_string();
    assert_eq!(listens(HEAD), "127.0.0.1:7401");
    assert_eq!(listens(&listening("[::1]:9")), "[::1]:9");
    let everywhere = listening("0.0.0.0:7500").replace("insecure = true", "");
    let config = parse(&format!("{everywhere}{TLS}")).unwrap();
    assert_eq!(config.listens_on().to_string(), "0.0.0.0:7500");
    // `listen` affects neither the address that peers dial nor the fingerprint.
    let dialled = config.address();
    assert_eq!(dialled.to_string(), "127.0.0.1:7401");
    let agreed = parse(HEAD).unwrap().fingerprint();
    assert_eq!(config.fingerprint(), agreed);
}

#[test]
fn an_address_that_cannot_be_listened_on_is_reported() {
    for (on, words) in [
        ("", &["no port", "HOST:PORT"][..]),
        ("127.0.0.1", &["\"127.0.0.1\"", "HOST:PORT"]),
        ("7401", &["\"7401\"", "HOST:PORT"]),
        (":7401", &["\":7401\"", "host name"]),
        ("::1:7401", &["brackets"]),
        ("127.0.0.1:70000", &["70000", "1 to 65535"]),
        ("127.0.0.1:0", &["127.0.0.1:0", "port 0", "1 to 65535"]),
        ("0.0.0.0:7401", &["insecure", "0.0.0.0:7401", "[tls]"]),
        ("10.0.0.1:7401", &["insecure", "10.0.0.1:7401", "127.0.0.1"]),
    ] {
        refused(&listening(on), &[&[":1: listen"], words].concat());
    }
    let number = listening("x").replace("\"x\"", "7401");
    refused(&number, &[":1:", "listen = 7401", "string"]);
}

#[test]
fn plain_links_stay_on_this_machine() {
    let text = HEAD.replace("127.0.0.1:7402", "10.0.0.2:7402");
    refused(&text, &[":2: insecure", "10.0.0.2:7402", "[tls]"]);
    refused(&HEAD.replace("true", "false"), &["tls", "soloist init"]);
    let tls = "[tls]\nca = \"ca.pem\"\ncertificate = \"/etc/node.pem\"\nkey = \"node.key\"\n";
    refused_with(tls, &[":2: insecure", "contradicts"]);
    let config = parse(&format!("{}{tls}", HEAD.replace("insecure = true", ""))).unwrap();
    let Security::Tls(files) = config.security else {
        panic!("there is [tls]");
    };
    assert_eq!(files.ca, Path::new("conf/ca.pem"));
    assert_eq!(files.certificate, Path::new("/etc/node.pem"));
    let empty = tls.replace("ca.pem", "");
    refused(
        &format!("{}{empty}", HEAD.replace("insecure = true", "")),
        &["tls.ca", "empty"],
    );
}
