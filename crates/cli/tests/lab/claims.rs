//! `soloist lab claims`.

use serde_json::Value;

use super::{json, lab, refused};

#[test]
fn claims_of_one_paper_are_examined_with_their_verdicts() {
    let page = json("claims --paper tree --json");
    let claims = page["claims"].as_array().unwrap();
    assert!(claims.len() >= 10, "{page}");
    for claim in claims {
        assert_eq!(claim["paper"], "raymond");
        for field in ["section", "claimed", "found", "evidence"] {
            assert!(!claim[field].as_str().unwrap().is_empty(), "{claim}");
        }
    }
    let verdict = |section: &str| {
        let claim = claims.iter().find(|claim| claim["section"] == section);
        claim.unwrap()["verdict"].as_str().unwrap()
    };
    assert_eq!(verdict("§4.1"), "holds");
    assert_eq!(verdict("§8.1 to §8.3"), "holds-after-repair");
    assert_eq!(page["comparisons"], Value::Array(Vec::new()));
}

/// Every line of the printed page is in `docs/claims.md`, and the text has the same verdicts.
#[test]
fn claims_are_printed_as_a_page_and_as_text() {
    let print = |arguments| {
        let output = lab(arguments);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let kept = include_str!("../../../../docs/claims.md");
    let page = print("claims --paper raymond --markdown");
    assert!(page.lines().all(|line| kept.lines().any(|l| l == line)));
    assert!(page.contains("| **holds after repair** |"), "{page}");
    let text = print("claims --paper raymond");
    assert!(text.contains("\n      holds after repair: "), "{text}");
}

#[test]
fn claims_of_one_section_are_examined_alone() {
    let paper = "claims --paper lodha-kshemkalyani";
    let sections = |section: &str| {
        let page = json(&format!("{paper} --section {section} --json"));
        let claims = page["claims"].as_array().unwrap().iter();
        let sections = claims.map(|claim| claim["section"].as_str().unwrap().to_owned());
        sections.collect::<Vec<_>>()
    };
    assert_eq!(sections("§2.1"), ["§2.1"]);
    assert_eq!(sections("§3.2"), ["§3.2, §3.3.1", "§3.2"]);
    let what = ["no claim in section 'x'", "§2.1", "Theorem 1"];
    refused(&format!("{paper} --section x"), &what);
    assert_eq!(lab("claims --section x").status.code(), Some(2));
}

/// docs/lab.md shows the output for one section.
#[test]
fn the_manual_shows_what_is_printed() {
    let manual = include_str!("../../../../docs/lab.md");
    let command = "claims --paper raymond --section §3.5";
    let printed = String::from_utf8(lab(command).stdout).unwrap();
    let shown = format!(
        "```text\n$ soloist lab {command}\n{}\n```",
        printed.trim_end()
    );
    assert!(manual.contains(&shown), "docs/lab.md: {shown}");
}

#[test]
fn claims_of_an_unknown_paper_are_refused() {
    let papers = ["maekawa", "raymond", "lodha-kshemkalyani", "neamatollahi"];
    for given in ["central", "ra", "raymnd", "-1", "all"] {
        refused(&format!("claims --paper {given}"), &papers);
        refused(&format!("claims --paper {given}"), &[given]);
    }
    assert_eq!(lab("claims --json --markdown").status.code(), Some(2));
}
