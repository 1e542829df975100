//! Checks docs/reproduced.md and its pictures against a fresh run at the same seeds. Set
//! `UPDATE_REPRODUCED=1` to regenerate them, and review the diff before committing.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use soloist_claims::reproduce::{Item, Reproduced, all, page};

/// Folder of the pictures, beside the page.
const FOLDER: &str = "reproduced";

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

fn kept(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The files of an item that are kept. Scenarios are kept where the lab has them.
fn files(item: &Item, reproduced: &Reproduced) -> Vec<(PathBuf, String)> {
    let files = reproduced.files(item).into_iter();
    let files = files.filter(|(name, _)| !name.ends_with(".txt"));
    files
        .map(|(name, text)| (docs().join(FOLDER).join(name), text))
        .collect()
}

/// Compares the section of an item and its files with a fresh run.
fn check(item: &Item, reproduced: &Reproduced, page: &str) {
    let section = page::section(item, reproduced, FOLDER);
    assert!(
        page.contains(&section),
        "docs/reproduced.md does not have this section; set UPDATE_REPRODUCED=1 to write it:\n{section}"
    );
    for (path, fresh) in files(item, reproduced) {
        let is_same = kept(&path) == fresh;
        assert!(is_same, "{} is not what a fresh run gives", path.display());
    }
}

#[test]
fn the_page_and_its_pictures_are_what_a_fresh_run_says() {
    let items = all().into_iter();
    let made: Vec<_> = items.map(|item| (item, item.reproduce())).collect();
    let path = docs().join("reproduced.md");
    let fresh = page::page(&made, FOLDER);
    if std::env::var("UPDATE_REPRODUCED").is_ok_and(|value| value == "1") {
        fs::create_dir_all(docs().join(FOLDER)).unwrap();
        fs::write(&path, &fresh).unwrap();
        for (item, reproduced) in &made {
            for (path, text) in files(item, reproduced) {
                fs::write(path, text).unwrap();
            }
        }
    }
    let page = kept(&path);
    for (item, reproduced) in &made {
        check(item, reproduced, &page);
    }
    assert_eq!(page, fresh, "the page has more, or in another order");
}

/// Every picture and every file of data that the page names exists, and no other.
#[test]
fn the_page_shows_every_file() {
    let page = kept(&docs().join("reproduced.md"));
    let start = format!("({FOLDER}/");
    let linked = page.split(&start).skip(1);
    let linked: BTreeSet<_> = linked.filter_map(|rest| rest.split(')').next()).collect();
    let folder = fs::read_dir(docs().join(FOLDER)).unwrap();
    let names = folder.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let names: BTreeSet<_> = names.filter(|name| !name.ends_with(".txt")).collect();
    assert_eq!(linked, names.iter().map(String::as_str).collect());
    for item in all() {
        assert!(
            page.contains(&format!("### {}: {}\n", item.place(), item.title)),
            "{item:?}"
        );
    }
}
