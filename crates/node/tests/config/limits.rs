//! `[limits]`: quotas of the node and of its clients.

use soloist_core::limits::{Limits, Quota};

use crate::{refused_with, with};

#[test]
fn limits_have_defaults_and_each_can_be_set() {
    assert_eq!(with("").limits, Limits::default());
    let usual = Limits::default();
    let limits = with("[limits]\nclient_holds = 5\nname_bytes = 1000\n").limits;
    let client = Quota {
        holds: 5,
        ..usual.client
    };
    let node = Quota {
        name_bytes: 1000,
        ..usual.node
    };
    assert_eq!(limits, Limits { node, client });
    // Limits may differ between nodes.
    assert_eq!(
        with("[limits]\nholds = 1\n").fingerprint(),
        with("").fingerprint()
    );
}

#[test]
fn a_limit_is_at_least_1() {
    let most = 1_073_741_824_i64;
    for key in [
        "holds",
        "waiters",
        "name_bytes",
        "client_holds",
        "client_waiters",
        "client_name_bytes",
    ] {
        for wrong in [0, -1, most + 1] {
            let text = format!("[limits]\n{key} = {wrong}\n");
            let (wrong, most) = (wrong.to_string(), most.to_string());
            refused_with(&text, &[&format!("limits.{key}"), &wrong, &most]);
        }
    }
    refused_with("[limits]\nholds = \"many\"\n", &["many"]);
    refused_with("[limits]\nhold = 1\n", &["hold"]);
}
