//! Every scenario in `tests/scenarios` and `tours` replays to exactly its own text. Set
//! `UPDATE_SCENARIOS=1` to write the actual transcripts, and review the diff before committing.

use std::path::{Path, PathBuf};

#[test]
fn every_scenario_replays_to_its_own_text() {
    let update = std::env::var("UPDATE_SCENARIOS").is_ok_and(|value| value == "1");
    let mut count = 0;
    for path in files("tests/scenarios").chain(files("tours")) {
        let text = std::fs::read_to_string(&path).unwrap();
        let name = path.file_name().unwrap().to_str().unwrap();
        let replayed = match name.starts_with("epochs-") {
            true => soloist_lab::epochs::text::replay(&text),
            false => soloist_lab::scenario::replay(&text),
        };
        let replayed = replayed.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        if update {
            std::fs::write(&path, &replayed).unwrap();
        } else {
            assert_eq!(text, replayed, "{}", path.display());
        }
        count += 1;
    }
    assert!(count > 90, "{count} scenarios");
}

/// The files of a folder of this crate.
fn files(folder: &str) -> impl Iterator<Item = PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let entries = std::fs::read_dir(&folder).unwrap();
    entries.map(|entry| entry.unwrap().path())
}

#[test]
fn an_invalid_scenario_is_refused_with_the_reason() {
    for (text, reason) in [
        ("nodes 3\n", "needs 'algorithm'"),
        ("algorithm raymond\n", "needs 'nodes'"),
        (
            "algorithm raymond\nnodes three\n",
            "line 2: nodes 'three': not a number",
        ),
        ("algorithm raymond\nnodes 0\n", "0 nodes"),
        (
            "algorithm raymond\nnodes 3\ninside 7\n",
            "line 3: inside '7': no such node",
        ),
        (
            "algorithm raymond\nnodes 3\nchanels any\n",
            "line 3: 'chanels' is not a key",
        ),
        (
            "algorithm raymond\nnodes 3\nchannels some\n",
            "use fifo or any",
        ),
        (
            "algorithm raymond\nnodes 3\n> dance 1\n",
            "line 3: 'dance 1' is not a step; use start, request NODE",
        ),
        (
            "algorithm raymond\nnodes 3\n> deliver 0 1\n",
            "no such message",
        ),
        (
            "algorithm ra\nnodes 3\n> crash 1\n",
            "does not support crashes",
        ),
    ] {
        let error = soloist_lab::scenario::replay(text).unwrap_err().to_string();
        assert!(error.contains(reason), "{text:?}: {error}");
    }
}

#[test]
fn an_invalid_text_of_epochs_is_refused_with_the_reason() {
    let head = "algorithm raymond\nnames a b c\n";
    for (text, reason) in [
        ("nodes 3\n", "needs 'algorithm'"),
        ("algorithm raymond\n", "needs 'nodes'"),
        ("algorithm raymnod\nnodes 3\n", "did you mean 'raymond'?"),
        (
            "algorithm raymond\nnodes 0\n",
            "line 2: nodes '0': use 1 to 16",
        ),
        ("algorithm raymond\nnodes 17\n", "use 1 to 16 nodes"),
        (
            "algorithm raymond\nnames A B\n",
            "line 2: names 'A B': invalid name \"A\"",
        ),
        ("algorithm raymond\nnames a a\n", "'a' is listed twice"),
        ("algorithm raymond\nnodes 2\nlease 1\n", "line 3: lease '1'"),
        ("algorithm raymond\nnodes 2\nlease 1ms\n", "use 500ms to"),
        (
            "algorithm raymond\nnodes 2\ndrift 51\n",
            "use a number from 0 to 50",
        ),
        (
            "algorithm raymond\nnodes 2\ndown n0 n1\n",
            "at least one node must be up",
        ),
        ("algorithm raymond\nnodes 2\ndown n2\n", "no such node"),
        (
            "algorithm raymond\nnodes 2\nshape line\n",
            "'shape' is not a key; use algorithm",
        ),
        (
            &format!("{head}> dance a\n"),
            "line 3: 'dance a' is not a step; use request NODE",
        ),
        (&format!("{head}> request d\n"), "no node 'd'"),
        (&format!("{head}> release a\n"), "no client is inside"),
        (&format!("{head}> start a\n"), "this node is already up"),
        (
            &format!("{head}> crash a\n> request a\n"),
            "line 4: a is down",
        ),
        (&format!("{head}> pause a\n> request a\n"), "a is paused"),
        (
            &format!("{head}> stop a\n> run\n> request a\n"),
            "a is down",
        ),
        (
            &format!("{head}> deliver a b\n"),
            "no such message is in flight",
        ),
        (
            &format!("{head}> deliver L1 b\n"),
            "no such message is in flight",
        ),
        (&format!("{head}> commit L2\n"), "no leader 'L2'"),
        (&format!("{head}> wait 2h\n"), "the longest wait is 3600s"),
        (&format!("{head}> wait soon\n"), "soon"),
        (
            &format!("{head}> cut a b\n> request a\n> deliver a b\n"),
            "is cut",
        ),
    ] {
        let error = soloist_lab::epochs::text::replay(text).unwrap_err();
        assert!(error.to_string().contains(reason), "{text:?}: {error}");
    }
}

#[test]
fn an_invalid_text_of_the_keepers_is_refused_with_the_reason() {
    let head = "keepers a b c\nothers d\n";
    for (text, reason) in [
        ("keepers\n", "line 1: keepers '': use 1 to 8 nodes"),
        ("keepers a b c d e f g h i\n", "use 1 to 8 nodes"),
        ("keepers A\n", "line 1: keepers 'A': invalid name \"A\""),
        (
            "keepers a a\n",
            "line 1: keepers 'a a': 'a' is listed twice",
        ),
        (
            "keepers a b\nothers a\n",
            "line 2: others 'a': 'a' is listed twice",
        ),
        ("keepers a b\ndown c\n", "line 2: down 'c': no such node"),
        (
            "keepers a b\ncluster old\n",
            "cluster 'old': use new, or leave it out",
        ),
        (
            "keepers a b\nreimage never\n",
            "use deployed, or leave it out",
        ),
        (
            "keepers a b\nvariant votes\n",
            "line 2: variant 'votes': use empty-store-votes",
        ),
        (
            "keepers a b\nalgorithm raymond\n",
            "'algorithm' is not a key; use keepers",
        ),
        (
            &format!("{head}> dance a\n"),
            "line 3: 'dance a' is not a step; use found NODE",
        ),
        (&format!("{head}> elect e\n"), "line 3: no node 'e'"),
        (
            &format!("{head}> elect a asking d\n"),
            "d is not another voter of this keeper",
        ),
        (&format!("{head}> forget a b\n"), "'b' is not an id"),
        (
            &format!("{head}> commit a\n"),
            "not possible now; these are: elect a, elect b, elect c, crash a",
        ),
        (&format!("{head}> elect d\n"), "not possible now"),
    ] {
        let error = soloist_lab::epochs::text::replay(text).unwrap_err();
        assert!(error.to_string().contains(reason), "{text:?}: {error}");
    }
}

/// A text may promote nodes as often as there are ids.
#[test]
fn a_text_of_the_keepers_has_a_limited_number_of_ids() {
    let mut text = "keepers a\nothers b\n> elect a\n> run\n".to_owned();
    for _ in 1..16 {
        text += "> appoint a b\n> set-aside a b\n";
    }
    let played = soloist_lab::epochs::text::replay(&text).unwrap();
    assert!(
        played.contains("b creates a store, as keeper 15"),
        "{played}"
    );
    text += "> appoint a b\n";
    let error = soloist_lab::epochs::text::replay(&text).unwrap_err();
    assert!(
        error.to_string().contains("at most 16 keepers' ids"),
        "{error}"
    );
}
