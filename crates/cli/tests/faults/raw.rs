//! The API without the client, which would hide the node's response once a hold is lost.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use crate::TIMEOUT;

/// Sends a request and returns the status and the body of the response, `Null` if it is not JSON.
pub(crate) fn ask(socket: &Path, method: &str, path: &str, body: &str) -> (u16, Value) {
    let (status, content) = exchange(socket, method, path, body);
    (
        status,
        serde_json::from_str(&content).unwrap_or(Value::Null),
    )
}

/// Returns the sum of a histogram in the node's metrics, or 0 if it has no value yet.
pub(crate) fn metric_sum(socket: &Path, name: &str) -> f64 {
    metric(socket, &format!("{name}_sum")).unwrap_or(0.0)
}

/// Returns the value of a series in the node's metrics.
pub(crate) fn metric(socket: &Path, series: &str) -> Option<f64> {
    let (status, text) = exchange(socket, "GET", "/metrics", "");
    assert_eq!(status, 200, "{text}");
    let mut lines = text
        .lines()
        .filter_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    lines.next().map(|value| value.parse().expect("a number"))
}

fn exchange(socket: &Path, method: &str, path: &str, body: &str) -> (u16, String) {
    let mut stream = UnixStream::connect(socket).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    stream
        .set_write_timeout(Some(Duration::from_secs(5)))
        .unwrap();
    let length = body.len();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nhost: node\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, content) = answer.split_once("\r\n\r\n").expect("an answer");
    let status = head
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    (status.expect("a status"), content.to_owned())
}
