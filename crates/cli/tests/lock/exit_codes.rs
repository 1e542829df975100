//! Exit codes of `soloist lock`, and the environment of its command.

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::{Nodes, Running, stderr, stdout, until};

#[test]
fn the_commands_exit_code_is_passed_on() {
    let nodes = Nodes::start(1);
    for (script, code) in [
        ("exit 0", 0),
        ("exit 7", 7),
        ("exit 255", 255),
        ("kill -TERM $$", 128 + 15),
        ("kill -KILL $$", 128 + 9),
    ] {
        let status = nodes.lock(0, "a", script).status().unwrap();
        assert_eq!(status.code(), Some(code), "{script}");
    }
}

#[test]
fn a_command_that_cannot_start_has_its_own_exit_code() {
    let nodes = Nodes::start(1);
    for (program, code) in [("no-such-program-anywhere", 127), ("/etc/passwd", 126)] {
        let output = nodes.soloist(0).args(["lock", "a", program]).output();
        let output = output.unwrap();
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        assert!(stderr(&output).contains(program), "{output:?}");
        // The lock was released.
        let again = nodes.lock(0, "-n a", "exit 0").status().unwrap();
        assert_eq!(again.code(), Some(0));
    }
}

#[test]
fn the_command_knows_its_lock_and_its_fence_and_fences_rise() {
    let nodes = Nodes::start(2);
    let mut last = 0;
    for round in 0..6 {
        let script = "echo $SOLOIST_LOCK; echo $SOLOIST_FENCE; env | grep -c SOLOIST_HOLD";
        let output = nodes.lock(round % 2, "some/lock", script).output();
        let text = stdout(&output.unwrap());
        let lines: Vec<&str> = text.lines().collect();
        let fence: u64 = lines[1].parse().unwrap();
        assert_eq!((lines[0], lines[2]), ("some/lock", "0"));
        assert!(fence > last, "{fence} after {last}");
        last = fence;
    }
}

#[test]
fn standard_input_and_arguments_pass_through() {
    let nodes = Nodes::start(1);
    let mut child = nodes
        .soloist(0)
        .args(["lock", "a", "--", "sh", "-c", "cat; echo \"$@\"", "sh"])
        .args(["--json", "-n", "--", "two words"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let text = "line\n".repeat(100_000);
    std::thread::spawn(move || stdin.write_all(text.as_bytes()).unwrap());
    let output = stdout(&child.wait_with_output().unwrap());
    assert_eq!(output.lines().count(), 100_001);
    assert_eq!(output.lines().last(), Some("--json -n -- two words"));
}

#[test]
fn waiting_for_a_held_lock_ends_at_the_requested_time() {
    let nodes = Nodes::start(2);
    let mut holder = Running::start(&mut nodes.lock(0, "a", "echo in; cat >&2; sleep 1000"));
    holder.line();
    for node in [0, 1] {
        let began = Instant::now();
        let status = nodes.lock(node, "-n a", "exit 0").status().unwrap();
        assert_eq!(status.code(), Some(75));
        // A generous limit: the holder stays for a thousand seconds.
        assert!(began.elapsed() < Duration::from_secs(10));
        let status = nodes.lock(node, "-n -E 9 a", "exit 0").status().unwrap();
        assert_eq!(status.code(), Some(9));
        let began = Instant::now();
        let status = nodes.lock(node, "-w 0.3 a", "exit 0").status().unwrap();
        assert_eq!(status.code(), Some(75));
        assert!(began.elapsed() >= Duration::from_millis(300));
    }
    let status = nodes.lock(0, "-n b", "exit 3").status().unwrap();
    assert_eq!(status.code(), Some(3), "another lock is free");
}

#[test]
fn verbose_names_the_holder_it_waits_for() {
    let nodes = Nodes::start(2);
    let mut holder =
        Running::start(&mut nodes.lock(0, "--owner ann a", "echo in; exec sleep 1000"));
    holder.line();
    let quiet = nodes.lock(1, "-w 1 a", "exit 0").output().unwrap();
    assert_eq!(stderr(&quiet), "");
    let told = nodes
        .lock(1, "--verbose -w 2 a", "exit 0")
        .output()
        .unwrap();
    assert_eq!(told.status.code(), Some(75));
    let words = "waiting for lock \"a\": held by ann on node n1";
    assert!(stderr(&told).contains(words), "{}", stderr(&told));
    let told = nodes.lock(1, "-v -n a", "exit 0").output().unwrap();
    assert_eq!(told.status.code(), Some(75));
    assert!(stderr(&told).contains("held by ann"), "{}", stderr(&told));
}

#[test]
fn a_waiter_gets_the_lock_when_it_is_released() {
    let nodes = Nodes::start(2);
    let mut holder = Running::start(nodes.lock(0, "a", "echo in; read go").stdin(Stdio::piped()));
    holder.line();
    let mut waiter = Running::start(&mut nodes.lock(1, "-w 1000 a", "echo in; exit 5"));
    until("the second waits", || nodes.waiting("a") == 1);
    assert!(waiter.child.try_wait().unwrap().is_none());
    drop(holder.child.stdin.take());
    assert_eq!(waiter.code(), Some(5));
}

#[test]
fn times_are_seconds_or_have_a_unit() {
    let nodes = Nodes::start(1);
    for arguments in [
        "-w 10",
        "-w 0.5",
        "-w 10s",
        "-w 500ms",
        "--ttl 10",
        "--ttl 10s",
        "--grace 1",
        "--grace 1s",
    ] {
        let output = nodes.lock(0, &format!("{arguments} a"), "true").output();
        let output = output.unwrap();
        assert_eq!(
            output.status.code(),
            Some(0),
            "{arguments}: {}",
            stderr(&output)
        );
    }
}

#[test]
fn wrong_input_is_refused_with_the_value_and_what_to_do() {
    let nodes = Nodes::start(1);
    let long = "x".repeat(257);
    for (arguments, words) in [
        (vec!["", "true"], ["empty", "1 to 256"]),
        (vec![long.as_str(), "true"], ["257", "256"]),
        (vec!["--ttl", "0s", "a", "true"], ["0ns", "more than 0"]),
        (vec!["--ttl", "10x", "a", "true"], ["'10x'", "unit"]),
        (vec!["--ttl", "-1", "a", "true"], ["'-1'", "seconds"]),
        (vec!["--ttl", "2h", "a", "true"], ["7200", "3600"]),
        (vec!["-w", "-1", "a", "true"], ["'-1'", "seconds"]),
        (vec!["-w", "nan", "a", "true"], ["'nan'", "unit"]),
        (vec!["-w", "2d", "a", "true"], ["'2d'", "24h"]),
        (vec!["-E", "256", "a", "true"], ["256", "255"]),
        (vec!["--api", "host", "a", "true"], ["\"host\"", "unix:"]),
        (vec!["-n", "-w", "1", "a", "true"], ["-n", "-w"]),
        (vec!["a"], ["COMMAND", "required"]),
    ] {
        let output = nodes.soloist(0).arg("lock").args(&arguments).output();
        let output = output.unwrap();
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        for word in words {
            assert!(said.contains(word), "{arguments:?}: no {word:?} in {said}");
        }
    }
}

#[test]
fn without_a_node_the_error_lists_what_was_tried() {
    let folder = tempfile::tempdir().unwrap();
    let soloist = |api: Option<&str>| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_soloist"));
        command
            .current_dir(folder.path())
            .env("XDG_RUNTIME_DIR", folder.path())
            .env_remove("SOLOIST_API")
            .args(["lock", "a", "true"]);
        if let Some(api) = api {
            command.env("SOLOIST_API", api);
        }
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(69), "{output:?}");
        stderr(&output)
    };
    let said = soloist(None);
    for word in ["up.sock", "soloist.sock", "no such socket", "soloist up"] {
        assert!(said.contains(word), "no {word:?} in {said}");
    }
    let dead = folder.path().join("dead.sock");
    drop(std::os::unix::net::UnixListener::bind(&dead).unwrap());
    let said = soloist(dead.to_str());
    for word in ["dead.sock", "refused", "soloist node"] {
        assert!(said.contains(word), "no {word:?} in {said}");
    }
}
