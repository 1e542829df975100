//! `soloist lab replay --svg` and `soloist lab play --export`.

use std::path::{Path, PathBuf};

use super::{lab, lab_in, refused};

/// A file of the repository.
fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(path)
}

const DEADLOCK: &str = "crates/lab/tests/scenarios/maekawa-circle-as-published.txt";

#[test]
fn replay_draws_the_same_picture_each_time() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = repository(DEADLOCK);
    let plain = lab(&format!("replay {}", scenario.display()));
    let draw = |name: &str| {
        let arguments = format!("replay {} --svg {name}", scenario.display());
        let output = lab_in(folder.path(), &arguments);
        assert!(output.status.success(), "{output:?}");
        assert_eq!(output.stdout, plain.stdout, "the text is printed too");
        std::fs::read_to_string(folder.path().join(name)).unwrap()
    };
    let picture = draw("one.svg");
    assert_eq!(picture, draw("two.svg"));
    assert!(picture.contains("1 needs 0, which is locked for 2"));
}

#[test]
fn the_picture_of_the_readme_is_what_replay_draws() {
    let folder = tempfile::tempdir().unwrap();
    let command = format!("replay {DEADLOCK} --svg docs/deadlock.svg");
    let readme = std::fs::read_to_string(repository("README.md")).unwrap();
    assert!(readme.contains("](docs/deadlock.svg)"));
    let fresh = folder.path().join("fresh.svg");
    let scenario = repository(DEADLOCK);
    let output = lab(&format!(
        "replay {} --svg {}",
        scenario.display(),
        fresh.display()
    ));
    assert!(output.status.success(), "{output:?}");
    let kept = std::fs::read_to_string(repository("docs/deadlock.svg")).unwrap();
    assert!(
        kept == std::fs::read_to_string(fresh).unwrap(),
        "draw it again with: soloist lab {command}"
    );
}

#[test]
fn a_picture_that_cannot_be_drawn_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = repository(DEADLOCK);
    let scenario = scenario.display();
    refused(
        &format!("replay {scenario} --svg no/such/folder/a.svg"),
        &["no/such/folder"],
    );
    for name in ["a.png", "a", ".svg"] {
        refused(
            &format!("replay {scenario} --svg {name}"),
            &["--svg", name, "ends with .svg"],
        );
    }
    let bad = folder.path().join("bad.txt");
    std::fs::write(&bad, "algorithm central\nnodes 2\n> dance 1\n").unwrap();
    let picture = folder.path().join("bad.svg");
    refused(
        &format!("replay {} --svg {}", bad.display(), picture.display()),
        &["bad.txt", "line 3", "'dance 1' is not a step"],
    );
    assert!(!picture.exists());
}

#[test]
fn an_export_is_the_same_each_time() {
    let folder = tempfile::tempdir().unwrap();
    let export = |name: &str| {
        let run = "play --algorithm raymond --nodes 15 --export";
        let output = lab_in(folder.path(), &format!("{run} {name}"));
        assert!(output.status.success(), "{output:?}");
        std::fs::read(folder.path().join(name)).unwrap()
    };
    assert!(export("one.html") == export("two.html"));
    refused(
        "play --algorithm raymond --nodes 15 --export no/such/folder/a.html",
        &["no/such/folder/a.html"],
    );
}

/// Runs with crashes and with messages that overtake each other are played like others. Only what
/// a search cannot judge is refused.
#[test]
fn crashes_and_overtaking_messages_are_played() {
    let folder = tempfile::tempdir().unwrap();
    for run in [
        "--algorithm raymond --nodes 7 --crashes 20:3 --entries 20",
        "--algorithm ricart-agrawala --nodes 5 --channels any --delay exponential:1 --entries 20",
    ] {
        let output = lab_in(folder.path(), &format!("play {run} --export run.html"));
        assert!(output.status.success(), "{run}: {output:?}");
    }
    refused(
        "play --algorithm raymond --nodes 7 --crashes 0.5:3 --entries 200 --export no.html",
        &["crashes", "at most 15", "fewer entries"],
    );
}
