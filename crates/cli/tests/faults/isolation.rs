//! Whether this machine lets tests cut networks and fill disks.

use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::LazyLock;

/// Set by `./check`, under which no test is left out.
const ALL_TESTS: &str = "SOLOIST_ALL_TESTS";

/// What is missing for namespaces with a network or a mount of their own, or `None`.
static MISSING: LazyLock<Option<String>> = LazyLock::new(|| {
    let tools = [
        (&["unshare", "--version"][..], "unshare (util-linux)"),
        (&["nsenter", "--version"], "nsenter (util-linux)"),
        (&["ip", "-Version"], "ip (iproute2)"),
        (&["nft", "--version"], "nft (nftables)"),
        (&["unshare", "--net", "--mount", "true"], "root"),
    ];
    let missing = tools.into_iter().filter(|(command, _)| !works(command));
    let names: Vec<&str> = missing.map(|(_, name)| name).collect();
    (!names.is_empty()).then(|| names.join(", "))
});

fn works(command: &[&str]) -> bool {
    let mut run = Command::new(command[0]);
    run.args(&command[1..]).stdin(Stdio::null());
    run.stdout(Stdio::null()).stderr(Stdio::null());
    run.status().is_ok_and(|status| status.success())
}

/// Returns whether a test that needs namespaces has to be left out, and says so. Under `./check`
/// the test fails instead.
pub(crate) fn is_missing() -> bool {
    let Some(missing) = &*MISSING else {
        return false;
    };
    assert!(
        std::env::var_os(ALL_TESTS).is_none(),
        "this test needs {missing}"
    );
    let thread = std::thread::current();
    let test = thread.name().filter(|name| *name != "main");
    let test = test.unwrap_or("this test");
    // Not `eprintln!`, which is captured while a test passes.
    let line = format!("left out: {test} needs {missing}; `./check` runs all tests\n");
    let _ = std::io::stderr().write_all(line.as_bytes());
    true
}
