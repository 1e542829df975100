//! Checks that docs/compatibility.md names the versions in use.

use crate::read;

/// The number that follows these words in a file.
fn number_after(name: &str, words: &str) -> String {
    let text = read(name);
    let (_, after) = text.split_once(words).expect("the words are in the file");
    after.chars().take_while(char::is_ascii_digit).collect()
}

#[test]
fn the_page_names_the_current_versions() {
    let page = read("docs/compatibility.md");
    let protocol = number_after("crates/transport/src/hello.rs", "highest: ");
    let store = "crates/node/src/keepers/store/tables.rs";
    let store = number_after(store, "FORMAT_VERSION: u32 = ");
    for line in [
        format!("\nThis release speaks version {protocol} only.\n"),
        format!("\n| `data/keeper.redb` | {store} |"),
    ] {
        assert!(page.contains(&line), "not in the page: {line}");
    }
}
