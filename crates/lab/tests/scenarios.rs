//! Every scenario in `tests/scenarios` replays to exactly its own text. Set `UPDATE_SCENARIOS=1` to
//! write the actual transcripts, and review the diff before committing.

use std::path::Path;

#[test]
fn every_scenario_replays_to_its_own_text() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios");
    let update = std::env::var("UPDATE_SCENARIOS").is_ok_and(|value| value == "1");
    let mut count = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let replayed = soloist_lab::scenario::replay(&text)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        if update {
            std::fs::write(&path, &replayed).unwrap();
        } else {
            assert_eq!(text, replayed, "{}", path.display());
        }
        count += 1;
    }
    assert!(count > 0, "no scenario in {}", folder.display());
}

#[test]
fn what_is_no_scenario_is_refused_with_the_reason() {
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
        ("algorithm ra\nnodes 3\n> crash 1\n", "knows no recovery"),
    ] {
        let error = soloist_lab::scenario::replay(text).unwrap_err().to_string();
        assert!(error.contains(reason), "{text:?}: {error}");
    }
}
