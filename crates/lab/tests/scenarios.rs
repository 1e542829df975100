//! Every scenario of `tests/scenarios` replays to exactly its own text. Set `UPDATE_SCENARIOS=1`
//! to write what really happens, and read the difference before you keep it.

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
