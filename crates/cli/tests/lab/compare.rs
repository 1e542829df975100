//! `soloist lab compare`.

use serde_json::Value;

use super::{json, lab, lab_in};

#[test]
fn compare_covers_every_algorithm_size_and_load() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = "compare --algorithms all --nodes 3,8 --load light,heavy --entries 100";
    let output = lab_in(
        folder.path(),
        &format!("{arguments} --json --plot picture.svg"),
    );
    assert!(output.status.success(), "{output:?}");
    let reports: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    let algorithms = json("list --json");
    let names: Vec<_> = algorithms
        .as_array()
        .unwrap()
        .iter()
        .map(|listed| listed["name"].as_str().unwrap())
        .collect();
    assert!(names.len() >= 13, "{names:?}");
    for name in &names {
        let runs = reports
            .iter()
            .filter(|report| report["algorithm"] == **name);
        assert_eq!(runs.count(), 4, "{name}");
    }
    let svg = std::fs::read_to_string(folder.path().join("picture.svg")).unwrap();
    for name in names {
        assert!(svg.contains(name), "the picture does not name {name}");
    }
    let table = lab(arguments);
    assert_eq!(
        String::from_utf8(table.stdout).unwrap().lines().count(),
        reports.len() + 1
    );
    let csv = lab(&format!("{arguments} --csv"));
    assert_eq!(
        String::from_utf8(csv.stdout).unwrap().lines().count(),
        reports.len() + 1
    );
}

#[test]
fn compare_takes_variants_after_a_plus() {
    let reports = json(
        "compare --algorithms raymond,raymond+greedy+piggyback --nodes 5 --load heavy --entries 100 --json",
    );
    assert_eq!(reports[0]["variant"], "");
    assert_eq!(reports[1]["variant"], "piggyback,greedy");
}
