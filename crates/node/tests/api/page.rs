//! `docs/http-api.md` is what a client needs: its commands and its program run.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use soloist_testing::programs::has;

use crate::cluster::served;

const PAGE: &str = include_str!("../../../../docs/http-api.md");

/// The code blocks of this language.
fn blocks(language: &str) -> impl Iterator<Item = &'static str> {
    let begin = format!("```{language}\n");
    let mut blocks: Vec<&str> = PAGE.split(&begin).collect();
    blocks.remove(0);
    let end = |block: &'static str| block.split("```").next().expect("a block ends");
    blocks.into_iter().map(end)
}

/// The page's commands for a Unix socket, each with the answer that the page shows for it.
fn commands() -> Vec<(String, Option<Value>)> {
    let mut commands: Vec<(String, Option<Value>)> = Vec::new();
    for block in blocks("sh") {
        for line in block.replace("\\\n", " ").lines() {
            if line.starts_with("curl") && line.contains("--unix-socket") {
                commands.push((line.to_owned(), None));
            } else if let Some(json) = line.strip_prefix("# {") {
                let shown = serde_json::from_str(&format!("{{{json}"));
                commands.last_mut().expect("an answer follows a command").1 = shown.ok();
            }
        }
    }
    commands
}

/// Runs a command of the page, and returns the status and the body.
fn run(command: &str, socket: &Path, hold: &str) -> (u16, String) {
    let command = command
        .replacen("curl", "curl -sS --max-time 2 -w '\n%{http_code}'", 1)
        .replace("wait_ms=30000", "wait_ms=1");
    let output = Command::new("sh")
        .args(["-c", &command])
        .envs([("SOCKET", socket.as_os_str()), ("HOLD", hold.as_ref())])
        .output()
        .expect("a shell");
    let text = String::from_utf8(output.stdout).expect("it is text");
    let (body, status) = text.rsplit_once('\n').expect("curl writes the status");
    (status.parse().expect("a status"), body.to_owned())
}

/// The keys and the kinds of an answer's values.
fn shape(answer: &Value) -> BTreeMap<&str, bool> {
    let fields = answer.as_object().expect("an object").iter();
    let fields = fields.map(|(key, value)| (key.as_str(), value.is_string()));
    fields.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_commands_of_the_page_run() {
    if !has("curl") {
        return;
    }
    let served = served(1).await;
    let (mut ran, mut compared) = (0, 0);
    for (command, shown) in commands() {
        let held = served.https[0].hold("another").await;
        let (status, body) = run(&command, served.socket(0), &held.hold);
        // The page's cluster has a member d.
        let expected = match command.contains("/keepers/d") {
            true => 409,
            false if command.contains("DELETE") => 204,
            false => 200,
        };
        assert_eq!(status, expected, "{command}: {body}");
        if let Some(shown) = shown {
            let answer: Value = serde_json::from_str(&body).expect("it is JSON");
            assert_eq!(shape(&answer), shape(&shown), "{command}");
            compared += 1;
        }
        if !command.contains("-X DELETE http://localhost/v1/holds") {
            assert_eq!(served.https[0].release(&held).await.status, 204);
        }
        ran += 1;
    }
    assert!(
        ran >= 18 && compared >= 1,
        "{ran} commands, {compared} answers"
    );
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_program_of_the_page_runs() {
    if !has("python3") {
        return;
    }
    let served = served(1).await;
    let program = blocks("python").next().expect("the page has a program");
    let mut python = Command::new("python3");
    python.args(["-c", program]).arg(served.socket(0));
    let output = python.arg("a/b").output().expect("it starts");
    let lines = String::from_utf8(output.stdout).expect("it is text");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{}: {lines}{errors}",
        output.status
    );
    assert_eq!(lines.lines().count(), 5, "{lines}");
    assert!(lines.starts_with("step 0, fence "), "{lines}");
    served.stop().await;
}
