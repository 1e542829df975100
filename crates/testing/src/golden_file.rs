//! Golden files: text that must not change by accident, because other releases or other programs
//! read it.

use std::path::Path;

/// Compares the text with `tests/golden/<name>` of the crate under test, or writes that file if
/// `UPDATE_GOLDEN` is 1.
#[track_caller]
pub fn assert_golden(name: &str, text: &str) {
    let tested = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it for tests");
    let path = Path::new(&tested).join("tests/golden").join(name);
    if std::env::var("UPDATE_GOLDEN").is_ok_and(|value| value == "1") {
        std::fs::write(&path, text).unwrap();
        return;
    }
    let golden = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}; see UPDATE_GOLDEN", path.display()));
    assert_eq!(golden, text, "{}", path.display());
}
