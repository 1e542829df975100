//! Programs that some tests need.

use std::io::Write;
use std::process::Command;

/// Returns whether a program is installed. A test that needs it is left out if it is not.
///
/// # Panics
/// If it is not, and no test may be left out.
pub fn has(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok();
    if !found {
        assert!(
            std::env::var_os("SOLOIST_ALL_TESTS").is_none(),
            "this test needs {program}"
        );
        // Not `eprintln!`, which is captured while a test passes.
        let line = format!("left out: this test needs {program}; `./check` runs all tests\n");
        let _ = std::io::stderr().write_all(line.as_bytes());
    }
    found
}
