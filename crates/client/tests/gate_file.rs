//! Tests of `FileGate`: crashes at any time, damaged files, and concurrent use.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use proptest::prelude::*;
use soloist_client::Fence;
use soloist_client::gate::{FileGate, GateError, Stale};
use tempfile::{TempDir, tempdir};

fn fence(number: u64) -> Fence {
    Fence::from_number(number)
}

fn admit(gate: &FileGate, number: u64) -> Result<(), GateError> {
    gate.admit(fence(number))
}

/// The highest fence that the gate has admitted.
fn highest(gate: &FileGate) -> Option<u64> {
    gate.seen().unwrap().map(Fence::number)
}

/// Creates a folder with a gate that has admitted `fence`.
fn seen(fence: u64) -> (TempDir, FileGate) {
    let folder = tempdir().unwrap();
    let gate = FileGate::open(&folder.path().join("gate")).unwrap();
    admit(&gate, fence).unwrap();
    (folder, gate)
}

fn stale(result: Result<(), GateError>) -> Stale {
    match result {
        Err(GateError::Stale(stale)) => stale,
        other => panic!("expected a stale fence, got {other:?}"),
    }
}

fn is_damaged(gate: &FileGate) {
    for fence in [0, 41, 42, u64::MAX] {
        let error = admit(gate, fence).unwrap_err();
        assert!(matches!(error, GateError::Damaged { .. }), "{error}");
    }
    assert!(matches!(gate.seen(), Err(GateError::Damaged { .. })));
}

#[test]
fn the_highest_fence_survives() {
    let (folder, gate) = seen(42);
    assert_eq!(
        stale(admit(&gate, 41)),
        Stale {
            seen: fence(42),
            given: fence(41)
        }
    );
    admit(&gate, 42).unwrap();
    let again = FileGate::open(&folder.path().join("gate")).unwrap();
    assert_eq!(highest(&again), Some(42));
    assert_eq!(stale(admit(&again, 41)).seen, fence(42));
    admit(&again, 43).unwrap();
    assert_eq!(stale(admit(&gate, 42)).seen, fence(43));
}

#[test]
fn only_admitted_fences_do_work() {
    let (_folder, gate) = seen(42);
    assert_eq!(gate.run(fence(42), || "done").unwrap(), "done");
    let mut touched = false;
    assert!(gate.run(fence(41), || touched = true).is_err());
    assert!(!touched);
}

#[test]
fn a_file_truncated_at_any_byte_admits_nobody() {
    let (folder, gate) = seen(42);
    let path = folder.path().join("gate");
    let whole = fs::read(&path).unwrap();
    for length in 0..whole.len() {
        fs::write(&path, &whole[..length]).unwrap();
        is_damaged(&gate);
        // The damaged file is left as it is, for diagnosis.
        assert_eq!(fs::read(&path).unwrap(), &whole[..length]);
    }
    fs::write(&path, &whole).unwrap();
    assert_eq!(highest(&gate), Some(42));
}

#[test]
fn a_file_damaged_at_any_byte_admits_nobody() {
    let (folder, gate) = seen(42);
    let path = folder.path().join("gate");
    let whole = fs::read(&path).unwrap();
    for at in 0..whole.len() {
        let mut bent = whole.clone();
        bent[at] ^= 1;
        fs::write(&path, &bent).unwrap();
        is_damaged(&gate);
    }
    for junk in ["42\n", "\0\0\0\0", &"9".repeat(100_000)] {
        fs::write(&path, junk).unwrap();
        is_damaged(&gate);
    }
}

#[test]
fn a_crash_while_the_new_value_is_written_keeps_the_old_one() {
    let (folder, gate) = seen(42);
    let (path, new) = (folder.path().join("gate"), folder.path().join("gate.new"));
    let other = seen(43);
    let next = fs::read(other.0.path().join("gate")).unwrap();
    for length in 0..=next.len() {
        fs::write(&new, &next[..length]).unwrap();
        assert_eq!(highest(&gate), Some(42));
        assert_eq!(stale(admit(&gate, 41)).seen, fence(42));
        admit(&gate, 42).unwrap();
    }
    // A leftover `.new` file does no harm.
    admit(&gate, 44).unwrap();
    assert!(!new.exists());
    // After a crash just after the rename, the new value counts.
    fs::write(&path, &next).unwrap();
    assert_eq!(highest(&gate), Some(43));
}

#[test]
fn links_lead_to_one_gate() {
    let (folder, gate) = seen(42);
    let link = folder.path().join("link");
    std::os::unix::fs::symlink("gate", &link).unwrap();
    let linked = FileGate::open(&link).unwrap();
    assert_eq!(stale(admit(&linked, 41)).seen, fence(42));
    admit(&linked, 50).unwrap();
    assert!(link.symlink_metadata().unwrap().is_symlink());
    assert_eq!(highest(&gate), Some(50));
    let nowhere = folder.path().join("nowhere");
    std::os::unix::fs::symlink("missing", &nowhere).unwrap();
    assert!(matches!(
        FileGate::open(&nowhere),
        Err(GateError::Io { .. })
    ));
}

#[test]
fn unusable_files_are_named() {
    let folder = tempdir().unwrap();
    let error = |path: &Path| {
        let opened = FileGate::open(path).and_then(|gate| admit(&gate, 1));
        opened.unwrap_err().to_string()
    };
    assert!(error(&folder.path().join("no/gate")).contains("no"));
    assert!(error(Path::new("")).contains("name a file"));
    assert!(error(folder.path()).contains(&folder.path().display().to_string()));
}

#[test]
fn many_at_once_are_admitted_in_order() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("gate");
    let log = folder.path().join("log");
    thread::scope(|scope| {
        for first in 0..4u64 {
            let (path, log) = (&path, &log);
            scope.spawn(move || {
                // Each thread opens its own gate, as a process would.
                let gate = FileGate::open(path).unwrap();
                for number in (first..60).step_by(4) {
                    let _ = gate.run(fence(number), || append(log, number));
                }
            });
        }
    });
    let text = fs::read_to_string(&log).unwrap();
    let fences: Vec<u64> = text.lines().map(|line| line.parse().unwrap()).collect();
    assert!(fences.is_sorted(), "{fences:?}");
    assert_eq!(fences.last(), Some(&59));
}

fn append(log: &Path, fence: u64) {
    use std::io::Write;
    let mut file = fs::File::options()
        .create(true)
        .append(true)
        .open(log)
        .unwrap();
    writeln!(file, "{fence}").unwrap();
}

const VICTIM: &str = "GATE_OF_THE_VICTIM";

/// Not a test by itself, but the process that [`killed_at_any_moment`] kills.
#[test]
fn victim() {
    let Some(path) = std::env::var_os(VICTIM) else {
        return;
    };
    let gate = FileGate::open(path.as_ref()).unwrap();
    for fence in highest(&gate).unwrap_or(0) + 1.. {
        admit(&gate, fence).unwrap();
        println!("admitted {fence}");
    }
}

#[test]
fn killed_at_any_moment() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("gate");
    let gate = FileGate::open(&path).unwrap();
    for round in 0..20 {
        let mut victim = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "victim", "--nocapture"])
            .env(VICTIM, &path)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(victim.stdout.take().unwrap()).lines();
        let mut admitted = || {
            let line = lines.find(|line| line.as_ref().is_ok_and(|l| l.contains("admitted ")))?;
            line.unwrap().rsplit_once(' ')?.1.parse::<u64>().ok()
        };
        let mut last = 0;
        for _ in 0..=round % 5 {
            last = admitted().unwrap();
        }
        victim.kill().unwrap();
        victim.wait().unwrap();
        // Read what it printed before it died.
        while let Some(fence) = admitted() {
            last = fence;
        }
        let seen = highest(&gate).unwrap();
        assert!(seen == last || seen == last + 1, "{seen} after {last}");
        assert_eq!(stale(admit(&gate, last - 1)).seen, fence(seen));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    #[test]
    fn as_the_gate_in_memory(fences in prop::collection::vec(0..20u64, 0..12)) {
        let folder = tempdir().unwrap();
        let file = FileGate::open(&folder.path().join("gate")).unwrap();
        let memory = soloist_client::gate::Gate::new();
        for fence in fences.into_iter().map(fence) {
            prop_assert_eq!(file.admit(fence).is_ok(), memory.admit(fence).is_ok());
            prop_assert_eq!(file.seen().unwrap(), memory.seen());
        }
    }
}
