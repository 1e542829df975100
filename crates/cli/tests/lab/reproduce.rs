//! `soloist lab reproduce`.

use serde_json::Value;

use super::{json, lab, lab_in, refused};

#[test]
fn without_options_all_items_are_listed() {
    let items = json("reproduce --json");
    let items = items.as_array().unwrap();
    let papers = [
        "chaudhuri-karaata",
        "maekawa",
        "raymond",
        "neamatollahi",
        "lodha-kshemkalyani",
    ];
    for paper in papers {
        let own: Vec<_> = items.iter().filter(|item| item["paper"] == paper).collect();
        assert!(own.iter().any(|item| item["part"] == "figure"), "{paper}");
        assert!(own.iter().any(|item| item["part"] == "equation"), "{paper}");
    }
    let list = lab("reproduce");
    let list = String::from_utf8(list.stdout).unwrap();
    assert_eq!(list.lines().count(), items.len() + 1);
    assert!(list.contains("--equation 5.1"), "{list}");
}

#[test]
fn a_figure_is_replayed_and_a_formula_is_drawn() {
    let output = lab("reproduce --paper tree --figure 7");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success());
    assert!(text.starts_with("raymond-figure-7: "), "{text}");
    assert!(
        text.contains("  holds: ") && text.contains("1 enters"),
        "{text}"
    );
    let folder = tempfile::tempdir().unwrap();
    let options = "reproduce --paper torus --equation 5.1 --out new/pictures --json";
    let output = lab_in(folder.path(), options);
    assert!(output.status.success(), "{output:?}");
    let made: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(made[0]["verdict"], "fails");
    let read = |name: &str| {
        let path = folder.path().join("new/pictures").join(name);
        std::fs::read_to_string(path).unwrap()
    };
    assert!(read("neamatollahi-equation-5.1.svg").contains("3√N+1, claimed most"));
    let csv = read("neamatollahi-equation-5.1.csv");
    assert!(csv.starts_with("panel,series,look,x,y,low,high\n"), "{csv}");
    let kept = include_str!("../../../../docs/reproduced/neamatollahi-equation-5.1.csv");
    assert_eq!(csv, kept);
    let output = lab_in(
        folder.path(),
        "reproduce --paper raymond --figure 7 --out reproduced --markdown",
    );
    let page = String::from_utf8(output.stdout).unwrap();
    assert!(page.contains("### Fig. 7: "), "{page}");
}

#[test]
fn unknown_items_are_refused_with_the_known_ones() {
    refused(
        "reproduce --paper raymond --figure 12",
        &["'12'", "raymond-figure-7", "raymond-equation-5.1"],
    );
    refused("reproduce --table 9", &["'9'", "neamatollahi-table-1"]);
    refused("reproduce --paper raymnd", &["raymnd", "raymond"]);
    refused("reproduce --out pictures", &["--all"]);
    for both in [
        "--figure 1 --table 1",
        "--all --paper raymond",
        "--all --figure 1",
        "--all --json --markdown --out x",
        "--all --markdown",
    ] {
        let output = lab(&format!("reproduce {both}"));
        assert_eq!(output.status.code(), Some(2), "{both}");
    }
}

#[test]
fn a_folder_that_cannot_be_written_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("file"), "").unwrap();
    let output = lab_in(
        folder.path(),
        "reproduce --paper raymond --figure 7 --out file",
    );
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("'file'"), "{error}");
}
