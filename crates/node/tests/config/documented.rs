//! `docs/configuration.md` lists exactly the keys that the code accepts.

use std::collections::{BTreeMap, BTreeSet};

use crate::parse;

const DOCUMENT: &str = include_str!("../../../../docs/configuration.md");

/// Heading of the section about keys outside of any table.
const TOP: &str = "Top level";

/// A key that no table has. The error about it lists the keys that the table accepts.
const UNKNOWN: &str = "no-such-key";

/// Parsed only to be refused with advice, so it is never in a valid file.
const REFUSED: &str = "nodes";

type Keys = BTreeSet<String>;

/// The documented keys, by the heading of their section.
fn documented() -> BTreeMap<String, Keys> {
    let mut sections: BTreeMap<String, Keys> = BTreeMap::new();
    let mut heading = None;
    for line in DOCUMENT.lines() {
        if let Some(text) = line.strip_prefix("## ") {
            heading = Some(text.trim_matches('`').to_owned());
        }
        let key = line.strip_prefix("| `").and_then(|row| row.split_once('`'));
        if let (Some(heading), Some((key, _))) = (&heading, key) {
            let keys = sections.entry(heading.clone()).or_default();
            assert!(keys.insert(key.to_owned()), "{key} is listed twice");
        }
    }
    sections
}

/// The last TOML block of the document.
fn complete_example() -> &'static str {
    let (_, block) = DOCUMENT.rsplit_once("```toml\n").expect("it has a block");
    block.split_once("```").expect("the block ends").0
}

/// The keys that the code accepts in a table, taken from its error about an unknown key.
fn accepted(heading: &str) -> Keys {
    let example = complete_example();
    let unknown = format!("{UNKNOWN} = 1\n");
    let text = match heading {
        TOP => unknown + example,
        table => {
            let header = format!("\n{table}\n");
            assert!(example.contains(&header), "no {table} in the example");
            example.replacen(&header, &format!("{header}{unknown}"), 1)
        }
    };
    let error = parse(&text).expect_err("the key is unknown");
    let (_, expected) = error
        .split_once(&format!("unknown field `{UNKNOWN}`, expected "))
        .unwrap_or_else(|| panic!("{error}"));
    let (expected, _) = expected.rsplit_once(", in `").expect("it quotes the line");
    let quoted = expected.split('`').skip(1).step_by(2);
    quoted.map(str::to_owned).collect()
}

#[test]
fn each_key_is_documented_and_each_documented_key_exists() {
    let sections = documented();
    assert_eq!(sections.len(), 8, "{:?}", sections.keys());
    for (heading, keys) in &sections {
        assert_eq!(*keys, accepted(heading), "in section {heading}");
    }
}

#[test]
fn no_table_lacks_a_section() {
    let sections = documented();
    let mut pending = vec![(String::new(), example_table())];
    while let Some((path, table)) = pending.pop() {
        for (key, value) in table {
            let (value, heading) = match value {
                toml::Value::Array(mut tables) => (tables.remove(0), format!("[[{path}{key}]]")),
                value => (value, format!("[{path}{key}]")),
            };
            // The keys of this table are names that the user chooses.
            let is_free = key == "keepers";
            if let toml::Value::Table(table) = value
                && !is_free
            {
                assert!(sections.contains_key(&heading), "no section {heading}");
                pending.push((format!("{path}{key}."), table));
            }
        }
    }
}

#[test]
fn the_complete_example_is_valid_and_has_every_key() {
    parse(complete_example()).unwrap();
    for (heading, keys) in documented() {
        let table = match heading.as_str() {
            TOP => example_table(),
            heading => {
                let path = heading.trim_matches(['[', ']']);
                path.split('.').fold(example_table(), |table, key| {
                    let value = match &table[key] {
                        toml::Value::Array(tables) => &tables[0],
                        value => value,
                    };
                    value.as_table().expect("it is a table").clone()
                })
            }
        };
        let present: Keys = table.keys().cloned().collect();
        let missing: Vec<_> = keys.difference(&present).collect();
        let expected: &[&str] = match heading.as_str() {
            TOP => &[REFUSED],
            _ => &[],
        };
        assert_eq!(missing, expected, "in {heading}");
    }
}

fn example_table() -> toml::Table {
    complete_example().parse().expect("the example is TOML")
}
