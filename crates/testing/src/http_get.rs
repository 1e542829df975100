//! A request to the HTTP API of a node, without its client.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

/// Status and body of the API's response. This blocks, so the node must run in another thread.
pub fn get(socket: &Path, path: &str) -> (u16, String) {
    let mut stream = UnixStream::connect(socket).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, body.to_owned())
}

/// The value of a metric without labels.
pub fn metric(socket: &Path, name: &str) -> f64 {
    let (_, metrics) = get(socket, "/metrics");
    let mut lines = metrics.lines().filter_map(|line| line.split_once(' '));
    let found = lines.find(|(key, _)| *key == name);
    let (_, value) = found.unwrap_or_else(|| panic!("no {name} in {metrics}"));
    value.parse().unwrap()
}
