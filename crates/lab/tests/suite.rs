//! Searches the cases of the release suite, except those that take too long. Split into several
//! tests that run in parallel.

use soloist_algorithms::Kind;
use soloist_lab::search::suite;

/// The page whose table `soloist lab suite --long --markdown` generates.
const PAGE: &str = include_str!("../../../docs/searched.md");

/// Searches all cases whose algorithm `belongs` accepts.
fn search(belongs: impl Fn(Kind) -> bool) {
    let list = suite::list().into_iter().filter(|listed| !listed.long);
    let mut searched = 0;
    for listed in list.filter(|listed| belongs(listed.case.choice.kind)) {
        let report = listed.case.run(&mut |_| true).expect("a valid case");
        assert_eq!(report.verdict, listed.expected, "{report:#?}");
        let row = format!("| {} |", suite::row(&report).join(" | "));
        assert!(PAGE.contains(&row), "docs/searched.md does not say {row}");
        searched += 1;
    }
    assert!(searched > 0, "there are such cases");
}

/// Cases that take too long for a test have rows as well.
#[test]
fn the_page_has_every_case() {
    let rows = PAGE.lines().filter(|line| line.starts_with("| ")).count();
    assert_eq!(rows, 1 + suite::list().len());
}

#[test]
fn the_mesh() {
    search(|kind| kind == Kind::ChaudhuriKaraata);
}

#[test]
fn quorums() {
    search(|kind| kind == Kind::Maekawa);
}

#[test]
fn the_tree_and_the_torus() {
    search(|kind| [Kind::Raymond, Kind::Neamatollahi].contains(&kind));
}

#[test]
fn the_fair_algorithm() {
    search(|kind| kind == Kind::LodhaKshemkalyani);
}

#[test]
fn the_other_algorithms() {
    let of_the_papers = &Kind::ALL[..5];
    search(|kind| !of_the_papers.contains(&kind));
}
