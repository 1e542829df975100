//! `docs/sessions.md` is what a client needs: its program runs, and its transcript is valid.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::json;
use soloist_api::Hold;
use soloist_api::session::{ClientMessage, NodeMessage};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::cluster::served;

const PAGE: &str = include_str!("../../../../../docs/sessions.md");

/// The Python with the package `websockets` that `./check` installs.
const PYTHON: &str = "SOLOIST_PYTHON";

/// The first code block of this language.
fn block(language: &str) -> &'static str {
    let begin = format!("```{language}\n");
    let (_, rest) = PAGE.split_once(&begin).expect("the page has one");
    rest.split("```").next().expect("a block ends")
}

#[test]
fn the_transcript_has_valid_messages() {
    let mut lines = 0;
    for line in block("text").lines() {
        let (side, json) = line.split_once(' ').expect("a side and a message");
        let error = match side {
            ">" => serde_json::from_str::<ClientMessage>(json).err(),
            "<" => serde_json::from_str::<NodeMessage>(json).err(),
            _ => panic!("{line}"),
        };
        assert!(error.is_none(), "{line}: {error:?}");
        lines += 1;
    }
    assert!(lines >= 8, "{lines} lines");
}

/// The interpreter, or `None` if tests with Python are left out.
fn python() -> Option<OsString> {
    let python = std::env::var_os(PYTHON);
    if python.is_none() {
        assert!(
            std::env::var_os("SOLOIST_ALL_TESTS").is_none(),
            "this test needs Python with `websockets`, in {PYTHON}"
        );
        // Not `eprintln!`, which is captured while a test passes.
        let line = format!("left out: this test needs {PYTHON}; `./check` runs all tests\n");
        let _ = std::io::stderr().write_all(line.as_bytes());
    }
    python
}

/// A Python program, and the lines that it prints.
struct Program {
    child: Child,
    lines: UnboundedReceiver<String>,
}

impl Program {
    fn start(python: OsString, text: &str, socket: &Path) -> Self {
        let mut program = Command::new(python);
        program
            .args(["-c", text])
            .arg(socket)
            .stdout(Stdio::piped());
        let mut child = program.spawn().unwrap();
        let stdout = child.stdout.take().unwrap();
        let (sender, lines) = unbounded_channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines() {
                let _ = sender.send(line.unwrap());
            }
        });
        Program { child, lines }
    }

    async fn line(&mut self) -> String {
        self.lines.recv().await.expect("it runs")
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_in_python_follows_the_page() {
    let Some(python) = python() else { return };
    let served = served(1).await;
    let mut client = Program::start(python, block("python"), served.socket(0));
    let granted = client.line().await;
    assert!(granted.starts_with("granted "), "{granted}");
    assert_eq!(client.line().await, "resumed nightly");
    served.cluster.nodes[0].stop(Duration::ZERO).await;
    assert_eq!(client.line().await, "lost node-stopped True");
    // It has released the lock before it ended.
    assert_eq!(client.lines.recv().await, None);
    assert!(client.child.wait().unwrap().success());
    served.stop().await;
}

/// The time to live is ten minutes, and the lock is free at once.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_ends_with_its_process_if_its_client_asks_for_it() {
    const HOLDS: &str = r#"
import json, sys, time
from websockets.sync.client import unix_connect
socket = unix_connect(sys.argv[1], "ws://localhost/v1/session")
socket.send(json.dumps({"hello": {"ttl_ms": 600000, "ends_with_process": True}}))
print(socket.recv())
socket.send(json.dumps({"acquire": {"n": 1, "lock": "a"}}))
print(socket.recv(), flush=True)
time.sleep(1000)
"#;
    let Some(python) = python() else { return };
    let served = served(1).await;
    let http = &served.https[0];
    let mut client = Program::start(python, HOLDS, served.socket(0));
    let welcome = client.line().await;
    assert!(welcome.contains("welcome"), "{welcome}");
    let granted = client.line().await;
    assert!(granted.contains("granted"), "{granted}");
    let taken = http.acquire("a", json!({ "wait_ms": 0 })).await;
    taken.error(409);
    drop(client);
    let hold = http.acquire("a", json!({ "wait_ms": 20_000 })).await;
    let hold: Hold = hold.ok();
    assert_eq!(http.release(&hold).await.status, 204);
    served.stop().await;
}
