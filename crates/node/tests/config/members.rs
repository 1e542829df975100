//! Membership settings: keepers, and nodes that join them.

use std::path::Path;
use std::time::Duration;

use soloist_core::rules::{RuleSettings, Rules};
use soloist_node::config::{Config, Members};

use crate::{parse, refused};

const KEEPERS: &str = "[keepers]
a = \"127.0.0.1:7401\"
b = \"127.0.0.1:7402\"
c = \"127.0.0.1:7403\"
";

/// A configuration with this name and this line at the top level. `[keepers]` is line 4.
fn text(name: &str, top: &str) -> String {
    assert!(!top.contains('\n'), "one line");
    format!("name = \"{name}\"\ninsecure = true\n{top}\n{KEEPERS}")
}

fn members(config: &Config) -> &Members {
    &config.members
}

#[test]
fn a_minimal_keeper_configuration_is_enough() {
    let config = parse(&text("b", "")).unwrap();
    let members = members(&config);
    assert_eq!(members.address.to_string(), "127.0.0.1:7402");
    assert_eq!(config.address(), &members.address);
    assert_eq!(config.listens_on(), &members.address);
    assert_eq!(members.data, Path::new("conf/data"));
    assert_eq!(members.lease.length, Duration::from_secs(3));
    assert_eq!(members.lease.drift, 5);
    let names: Vec<_> = members
        .keepers
        .iter()
        .map(|(_, n, _)| n.to_string())
        .collect();
    assert_eq!(names, ["a", "b", "c"]);
}

#[test]
fn an_ordinary_node_needs_an_address() {
    let all = "address = \"localhost:9\"\nlisten = \"[::1]:8\"\ndata = \"/var/x\"\nlease = \"500ms\"\ndrift = 50";
    let config = parse(&text("d", "").replace("\n\n", &format!("\n{all}\n"))).unwrap();
    let members = members(&config);
    assert_eq!(config.address().to_string(), "localhost:9");
    assert_eq!(config.listens_on().to_string(), "[::1]:8");
    assert_eq!(members.data, Path::new("/var/x"));
    assert_eq!(members.lease.length, Duration::from_millis(500));
    assert_eq!(members.lease.drift, 50);
    refused(&text("d", ""), &[":1: address", "\"d\"", "HOST:PORT"]);
    let same = text("a", "address = \"127.0.0.1:7401\"");
    assert_eq!(
        parse(&same).unwrap().address().to_string(),
        "127.0.0.1:7401"
    );
    refused(
        &text("a", "address = \"127.0.0.1:9\""),
        &[":3: address", "127.0.0.1:9", "127.0.0.1:7401", "[keepers]"],
    );
}

#[test]
fn an_address_that_cannot_be_dialled_is_refused() {
    for (address, words) in [
        ("127.0.0.1", &["\"127.0.0.1\"", "HOST:PORT"][..]),
        ("127.0.0.1:0", &["port 0", "1 to 65535"]),
        ("0.0.0.0:7401", &["every address"]),
        ("127.0.0.1:7402", &["127.0.0.1:7402", "\"b\"", "its own"]),
    ] {
        let text = text("d", &format!("address = \"{address}\""));
        refused(&text, &[&[":3: address"], words].concat());
    }
}

#[test]
fn keepers_are_needed_and_fixed_nodes_are_refused_with_advice() {
    let none = "name = \"a\"\ninsecure = true\n";
    refused(none, &[":1: keepers", "[keepers] is missing", "HOST:PORT"]);
    let advice = ["no longer supported", "[keepers]", "soloist init"];
    let fixed = text("a", "").replace("[keepers]", "[nodes]");
    refused(&fixed, &[&[":4: nodes"], &advice[..]].concat());
    // Also beside `[keepers]`, and whatever its content.
    for nodes in ["[nodes]\n", "[nodes]\na = 1\n", "[[nodes]]\nx = []\n"] {
        let both = text("a", "") + nodes;
        refused(&both, &[&[":8: nodes"], &advice[..]].concat());
    }
}

#[test]
fn the_number_of_keepers_fits_the_cluster() {
    let list = |count: usize| {
        let all = (1..=count).map(|i| format!("k{i} = \"127.0.0.1:{i}\"\n"));
        let all: String = all.collect();
        format!("name = \"k1\"\ninsecure = true\n[keepers]\n{all}")
    };
    for count in [1, 3, 5, 7] {
        let config = parse(&list(count)).unwrap();
        assert_eq!(members(&config).keepers.len(), count);
    }
    refused(&list(0), &[":3: keepers", "no keepers", "3 or 5"]);
    for count in [2, 4, 6] {
        let fewer = format!("no more failures than {}", count - 1);
        refused(
            &list(count),
            &[":3: keepers", &format!("{count} keepers"), &fewer],
        );
    }
    for count in [8, 9] {
        let many = format!("{count} keepers");
        refused(&list(count), &[":3: keepers", &many, "(maximum: 7)"]);
    }
    let wrong = text("a", "").replace("127.0.0.1:7402", "127.0.0.1");
    refused(&wrong, &[":6: keepers.b", "HOST:PORT"]);
    let twice = text("a", "").replace("127.0.0.1:7402", "127.0.0.1:7401");
    refused(&twice, &[":6: keepers.b", "\"a\"", "its own"]);
}

#[test]
fn leases_and_drift_have_limits() {
    for (top, words) in [
        ("lease = \"3\"", &[":3: lease", "\"3\"", "unit"][..]),
        ("lease = \"499ms\"", &[":3: lease", "499ms", "500ms"]),
        (
            "lease = \"3601s\"",
            &[":3: lease", "3601s", "out of range", "3600s"],
        ),
        ("lease = 3", &[":3:", "lease = 3", "string"]),
        ("drift = 0", &[":3: drift", "0 percent", "1 to 50"]),
        ("drift = 51", &[":3: drift", "51 percent", "1 to 50"]),
        ("drift = -1", &[":3: drift", "-1 percent"]),
        ("drift = \"5%\"", &[":3:", "drift", "expected i64"]),
        ("data = \"\"", &[":3: data", "empty"]),
    ] {
        refused(&text("a", top), words);
    }
    let most = parse(&text("a", "lease = \"1h\"")).unwrap();
    assert_eq!(members(&most).lease.length, Duration::from_secs(3600));
}

#[test]
fn plain_links_of_keepers_and_joiners_stay_on_this_machine() {
    let keeper = text("a", "").replace("127.0.0.1:7402", "10.0.0.2:7402");
    refused(&keeper, &[":2: insecure", "\"b\"", "10.0.0.2:7402"]);
    let own = text("d", "address = \"10.0.0.4:7401\"");
    refused(&own, &[":2: insecure", "\"d\"", "10.0.0.4:7401"]);
}

#[test]
fn members_agree_on_leases_not_on_names() {
    let config = parse(&text("a", "lease = \"1500ms\"")).unwrap();
    let expected = "soloist protocol 1
kept lease_ms=1500 drift=5
default algorithm=raymond variant= shape= max_local_turns=4
";
    assert_eq!(config.agreement(), expected);
    let fingerprint = |text: &str| parse(text).unwrap().fingerprint();
    let base = fingerprint(&text("a", ""));
    for same in [
        text("c", ""),
        text("d", "address = \"127.0.0.1:1\""),
        text("a", "data = \"elsewhere\""),
        text("a", "lease = \"3000ms\""),
        text("a", "").replace("c =", "x ="),
        text("a", "").replace("b =", "#b =").replace("c =", "#c ="),
    ] {
        assert_eq!(fingerprint(&same), base, "{same}");
    }
    for other in [
        text("a", "lease = \"3001ms\""),
        text("a", "drift = 6"),
        text("a", "") + "[locks]\nmax_local_turns = 2",
    ] {
        assert_ne!(fingerprint(&other), base, "{other}");
    }
}

#[test]
fn a_shape_fits_some_number_of_nodes() {
    let shaped = |algorithm: &str, shape: &str| {
        text("a", "") + &format!("[locks]\nalgorithm = \"{algorithm}\"\nshape = \"{shape}\"")
    };
    // With other numbers of nodes, the rule falls back to the algorithm's default shape.
    for (shape, fits) in [("2x1", 2), ("2x2", 4), ("8x8", 57), ("64x1", 64)] {
        let rules = parse(&shaped("torus", shape)).unwrap().rules;
        assert_eq!(rules.rule("x").cluster().nodes(), fits);
        for nodes in [1, 2, 3, 64, 100] {
            assert_eq!(rules.sized(nodes).rule("x").cluster().nodes(), nodes);
        }
    }
    refused(
        &shaped("torus", "65x1"),
        &[":10: locks.shape", "65x1", "1 to 64 nodes"],
    );
    refused(
        &shaped("raymond", "rnig"),
        &[":10: locks.shape", "'rnig'", "use "],
    );
}

#[test]
fn rules_made_for_several_numbers_are_all_sized() {
    let settings = |shape: &str| RuleSettings {
        algorithm: "torus".to_owned(),
        shape: shape.to_owned(),
        ..RuleSettings::default()
    };
    let locks = [
        ("two".to_owned(), settings("2x1")),
        ("three".to_owned(), settings("3x1")),
    ];
    let rules = Rules::for_any(&RuleSettings::default(), &locks).unwrap();
    for nodes in [2, 3, 4] {
        let sized = rules.sized(nodes);
        for lock in ["two", "three", "other"] {
            assert_eq!(sized.rule(lock).cluster().nodes(), nodes, "{lock}");
        }
    }
}

#[test]
fn another_nodes_file_differs_in_name_and_address_only() {
    let file = Path::new("conf/soloist.toml");
    let (name, address) = ("e".parse().unwrap(), "localhost:9".parse().unwrap());
    let other = |text: &str| Config::text_for(text, file, &name, &address).unwrap();
    let begin = "# mine\nname = 'a' # this one\nlease='2s'\n";
    let text = format!("{begin}insecure = true\n{KEEPERS}# more\n");
    let made = other(&text);
    let named = "name = \"e\" # this one\naddress = \"localhost:9\"\n";
    assert_eq!(made, text.replace("name = 'a' # this one\n", named));
    let (config, base) = (parse(&made).unwrap(), parse(&text).unwrap());
    assert_eq!(config.name, name);
    assert_eq!(*config.address(), address);
    assert_eq!(config.fingerprint(), base.fingerprint());
    // An existing address is replaced, whether it is before or after the name.
    for text in [
        format!("address = \"127.0.0.1:77\"\nname = \"d\"\ninsecure = true\n{KEEPERS}"),
        format!("name = \"d\"\ninsecure = true\naddress = \"127.0.0.1:77\"\n{KEEPERS}"),
    ] {
        let expected = text.replace("\"d\"", "\"e\"");
        let expected = expected.replace("127.0.0.1:77", "localhost:9");
        assert_eq!(other(&text), expected);
    }
    assert!(Config::text_for("name = ", file, &name, &address).is_err());
}
