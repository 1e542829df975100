//! Parsing of configuration files, and the errors for invalid ones.

mod documented;
mod limits;
mod links;
mod members;

use std::path::Path;
use std::time::Duration;

use proptest::prelude::*;
use soloist_algorithms::{Kind, NodeId};
use soloist_core::rules::{RuleSettings, Rules};
use soloist_node::config::{ApiTls, Config, Nodes, Security};

const HEAD: &str = "name = \"a\"
insecure = true
[keepers]
a = \"127.0.0.1:7401\"
b = \"127.0.0.1:7402\"
c = \"127.0.0.1:7403\"
";

fn parse(text: &str) -> Result<Config, String> {
    Config::parse(text, Path::new("conf/soloist.toml")).map_err(|error| error.to_string())
}

/// Parses the smallest configuration plus `more`.
fn with(more: &str) -> Config {
    parse(&format!("{HEAD}{more}")).unwrap()
}

/// Asserts that the text is refused with a one-line error that contains all of `words`.
#[track_caller]
fn refused(text: &str, words: &[&str]) {
    let error = parse(text).expect_err("it is wrong");
    assert_eq!(error.lines().count(), 1, "{error}");
    assert!(error.starts_with("conf/soloist.toml:"), "{error}");
    for word in words {
        assert!(error.contains(word), "no {word:?} in {error}");
    }
}

#[track_caller]
fn refused_with(more: &str, words: &[&str]) {
    refused(&format!("{HEAD}{more}"), words);
}

#[test]
fn the_smallest_file_has_sensible_defaults() {
    let config = with("");
    assert_eq!(config.security, Security::Insecure);
    assert_eq!(config.rules.rule("x").choice().name, "raymond");
    assert_eq!(config.rules.rule("x").max_local_turns(), 4);
    assert_eq!(config.ttl.default, Duration::from_secs(10));
    assert_eq!(config.ttl.max, Duration::from_secs(3600));
    assert_eq!(config.api.socket, Path::new("conf/soloist.sock"));
    assert_eq!(config.api.tcp, None);
    assert!(!config.metrics.lock_names);
    assert_eq!(config.io_threads, 1);
    assert_eq!(config.address().to_string(), "127.0.0.1:7401");
}

#[test]
fn numbers_depend_on_names_and_not_on_order() {
    let config = parse(
        "name = \"b\"\ninsecure = true\n[keepers]\nz = \"[::1]:1\"\nb = \"localhost:2\"\na10 = \"127.0.0.1:3\"",
    )
    .unwrap();
    let nodes = &config.members.keepers;
    let names: Vec<String> = nodes.iter().map(|(_, n, _)| n.to_string()).collect();
    assert_eq!(names, ["a10", "b", "z"]);
    assert_eq!(nodes.id("b"), Some(NodeId::new(1)));
    assert_eq!(config.address().to_string(), "localhost:2");
    let address = nodes.address(NodeId::new(2)).unwrap();
    assert_eq!(address.to_string(), "[::1]:1");
    assert_eq!(nodes.name(NodeId::new(3)), None);
}

#[test]
fn the_first_matching_rule_applies_and_inherits() {
    let config = with(
        r#"
        [locks]
        algorithm = "raymond"
        variant = "greedy"
        shape = "line"
        max_local_turns = 3
        [[lock]]
        pattern = "a/*"
        algorithm = "fair"
        [[lock]]
        pattern = "a/**"
        shape = "kary:2"
        [[lock]]
        pattern = "b"
        algorithm = "raymond"
        max_local_turns = 7
    "#,
    );
    let rule = |name| {
        let rule = config.rules.rule(name);
        let choice = rule.choice();
        let variants = choice.variants.names(choice.kind.info());
        let shape = rule.shape().unwrap_or("-").to_owned();
        (choice.name, variants, shape, rule.max_local_turns())
    };
    let is = |name, variants: &str, shape: &str, turns| {
        (name, variants.to_owned(), shape.to_owned(), turns)
    };
    assert_eq!(rule("a/b"), is("lodha-kshemkalyani", "", "-", 3));
    assert_eq!(rule("a/b/c"), is("raymond", "greedy", "kary:2", 3));
    assert_eq!(rule("b"), is("raymond", "", "-", 7));
    assert_eq!(rule("c"), is("raymond", "greedy", "line", 3));
    assert_eq!(config.rules.sized(3).rule("c").cluster().nodes(), 3);
}

#[test]
fn ring_and_torus_rest_by_default() {
    let variants = |algorithm: &str, variant: &str| {
        let text = format!("[locks]\nalgorithm = \"{algorithm}\"\nvariant = \"{variant}\"");
        let choice = with(&text).rules.rule("x").choice();
        choice.variants.names(choice.kind.info())
    };
    assert_eq!(variants("le-lann", ""), "resting");
    assert_eq!(variants("torus", ""), "resting");
    assert_eq!(variants("raymond", ""), "");
}

#[test]
fn every_algorithm_can_be_chosen() {
    for kind in Kind::ALL {
        let config = with(&format!("[locks]\nalgorithm = \"{kind}\""));
        assert_eq!(config.rules.rule("x").choice().kind, *kind);
    }
}

#[test]
fn wrong_keepers_are_reported() {
    let keepers = |text: &str| format!("name = \"a\"\ninsecure = true\n[keepers]\n{text}");
    refused(&keepers(""), &[":3: keepers", "no keepers"]);
    refused(
        &keepers("a = \"127.0.0.1\""),
        &[":4: keepers.a", "\"127.0.0.1\"", "HOST:PORT"],
    );
    refused(
        &keepers("a = \"127.0.0.1:0\""),
        &[":4: keepers.a", "port 0", "1 to 65535"],
    );
    refused(
        &keepers("a = \"127.0.0.1:70000\""),
        &[":4: keepers.a", "70000", "1 to 65535"],
    );
    refused(&keepers("a = \"::1:7401\""), &[":4: keepers.a", "brackets"]);
    refused(
        &keepers("a = \"0.0.0.0:7401\""),
        &[":4: keepers.a", "every address"],
    );
    refused(
        &keepers("A = \"127.0.0.1:1\""),
        &[":4: keepers", "'A'", "a-z"],
    );
    refused(
        &keepers("a = \"127.0.0.1:1\"\na = \"127.0.0.1:2\""),
        &[":5:", "duplicate key", "a = \"127.0.0.1:2\""],
    );
    refused(
        &keepers("a = \"localhost:1\"\nb = \"LOCALHOST:1\"\nc = \"localhost:2\""),
        &[":5: keepers.b", "localhost:1", "\"a\"", "its own"],
    );
    let listed = |count: u16| {
        let all = (1..=count).map(|i| {
            let address = format!("127.0.0.1:{i}").parse().unwrap();
            (format!("a{i}").parse().unwrap(), address)
        });
        Nodes::new(all)
    };
    let error = listed(4097).unwrap_err().to_string();
    assert!(error.contains("4097 (maximum: 4096)"), "{error}");
    assert_eq!(listed(4096).unwrap().len(), 4096);
}

#[test]
fn the_form_is_reported() {
    refused("", &["missing field `name`"]);
    refused("name = ", &[":1:"]);
    refused_with("[lokcs]\n", &[":7:", "unknown field `lokcs`", "`locks`"]);
    refused_with(
        "[locks]\nttl = \"1s\"",
        &[":8:", "unknown field `ttl`", "ttl_max"],
    );
    refused_with("[locks]\nttl_max = 10", &[":8:", "ttl_max = 10", "string"]);
    refused_with(
        "[[lock]]\nalgorithm = \"fair\"",
        &[":7:", "missing field `pattern`"],
    );
    refused_with(
        "[metrics]\nlock_name = true",
        &[":8:", "unknown field `lock_name`"],
    );
}

#[test]
fn wrong_rules_are_reported() {
    refused_with(
        "[locks]\nalgorithm = \"raymnod\"",
        &[
            ":8: locks.algorithm",
            "'raymnod'",
            "did you mean 'raymond'?",
        ],
    );
    refused_with(
        "[locks]\nalgorithm = \"raymond\"\nvariant = \"gredy\"",
        &[":9: locks.variant", "'gredy'", "'greedy'"],
    );
    refused_with(
        "[locks]\nalgorithm = \"torus\"\nshape = \"65x1\"",
        &[":9: locks.shape", "65x1", "1 to 64 nodes"],
    );
    refused_with(
        "[[lock]]\npattern = \"x\"\nalgorithm = \"torus\"\nshape = \"65x1\"",
        &[":10: lock.shape", "65x1"],
    );
    refused_with("[[lock]]\npattern = \"\"", &[":8: lock.pattern", "**"]);
    refused_with(
        "[[lock]]\npattern = \"a***\"",
        &[":8: lock.pattern", "a***"],
    );
    for turns in ["0", "-1", "1000001", "9223372036854775807"] {
        refused_with(
            &format!("[locks]\nmax_local_turns = {turns}"),
            &[":8: locks.max_local_turns", turns, "1 to 1000000"],
        );
    }
    for threads in ["0", "-1", "1025"] {
        let text = HEAD.replacen("name", &format!("io_threads = {threads}\nname"), 1);
        refused(&text, &["io_threads", threads, "1 to 1024"]);
    }
    let many = "[[lock]]\npattern = \"x\"\n".repeat(1025);
    refused_with(&many, &["1025 (maximum: 1024)"]);
}

#[test]
fn wrong_durations_are_reported() {
    refused_with(
        "[locks]\nttl_max = \"10\"",
        &[":8: locks.ttl_max", "\"10\"", "unit"],
    );
    refused_with(
        "[locks]\nttl_max = \"0s\"",
        &[":8: locks.ttl_max", "0ns", "1ms"],
    );
    refused_with(
        "[locks]\nttl_max = \"367d\"",
        &[":8: locks.ttl_max", "out of range"],
    );
    refused_with(
        "[locks]\nttl_max = \"5s\"\nttl_default = \"6s\"",
        &[":9: locks.ttl_default", "6s", "5s"],
    );
    let config = with("[locks]\nttl_max = \"5s\"");
    assert_eq!(config.ttl.default, Duration::from_secs(5));
}

#[test]
fn the_dashboard_is_off_by_default_and_needs_a_tcp_address() {
    assert!(!with("").api.ui);
    assert!(with("[api]\nlisten = \"127.0.0.1:7400\"\nui = true").api.ui);
    assert!(!with("[api]\nui = false").api.ui);
    refused_with("[api]\nui = true", &[":8: api.ui", "soloist ui"]);
}

#[test]
fn the_api_is_not_open_to_others_unprotected() {
    let tls = "[api.tls]\ncertificate = \"api.pem\"\nkey = \"api.key\"\n";
    let open = "[api]\nlisten = \"0.0.0.0:7400\"\n";
    let token = "token_file = \"token\"\n";
    refused_with(
        open,
        &[":8: api.listen", "0.0.0.0:7400", "[api.tls] is missing"],
    );
    refused_with(
        &format!("{open}{token}"),
        &["api.listen", "[api.tls] is missing"],
    );
    refused_with(
        &format!("{open}{tls}"),
        &["api.listen", "token_file and client_ca are missing"],
    );
    refused_with(
        "[api]\nlisten = \"node.example.org:1\"",
        &["api.listen", "[api.tls]"],
    );
    refused_with("[api]\nlisten = \"127.0.0.1:0\"", &["api.listen", "port 0"]);
    refused_with(
        &format!("[api]\n{token}"),
        &[":8: api.token_file", "api.listen"],
    );
    refused_with(tls, &["api.tls", "api.listen"]);
    let tcp = |more: &str| with(more).api.tcp.unwrap();
    assert_eq!(tcp("[api]\nlisten = \"[::1]:7400\"").tls, None);
    let both = tcp(&format!("{open}{token}{tls}"));
    assert_eq!(both.token_file.unwrap(), Path::new("conf/token"));
    let certified = tcp(&format!("{open}{tls}client_ca = \"ca.pem\""));
    let expected = ApiTls {
        certificate: "conf/api.pem".into(),
        key: "conf/api.key".into(),
        client_ca: Some("conf/ca.pem".into()),
    };
    assert_eq!(certified.tls, Some(expected));
    let long = "s".repeat(120);
    refused_with(
        &format!("[api]\nsocket = \"{long}\""),
        &[":8: api.socket", "125 bytes", "107"],
    );
}

#[test]
fn files_are_named_when_they_cannot_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("soloist.toml");
    let load = || Config::load(&file).map_err(|error| error.to_string());
    let named = |error: String, what: &str| {
        assert!(
            error.contains("soloist.toml") && error.contains(what),
            "{error}"
        );
    };
    named(load().unwrap_err(), "cannot read");
    std::fs::write(&file, b"\xff\xfe").unwrap();
    named(load().unwrap_err(), "utf-8");
    std::fs::write(&file, " ".repeat((4 << 20) + 1)).unwrap();
    named(load().unwrap_err(), "longer than 4194304 bytes");
    std::fs::write(&file, HEAD).unwrap();
    assert_eq!(
        load().unwrap().api.socket,
        folder.path().join("soloist.sock")
    );
}

#[test]
fn the_certificate_must_be_this_nodes() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let put = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        path
    };
    let authority = soloist_node::identity::Authority::new("test").unwrap();
    let issued = authority.issue(&"a".parse().unwrap(), &[]).unwrap();
    put("ca.pem", authority.certificate());
    put("node.pem", &issued.certificate);
    put("node.key", &issued.key);
    let tls = "[tls]\nca = \"ca.pem\"\ncertificate = \"node.pem\"\nkey = \"node.key\"\n";
    let text = format!("{}{tls}", HEAD.replace("insecure = true", ""));
    let identity = |text: &str| Config::load(&put("soloist.toml", text)).unwrap().identity();
    assert_eq!(identity(&text).unwrap().unwrap().name(), "a");
    let error = identity(&text.replacen("\"a\"", "\"b\"", 1))
        .unwrap_err()
        .to_string();
    for word in ["node.pem", "\"a\"", "\"b\""] {
        assert!(error.contains(word), "{error}");
    }
    assert!(identity(HEAD).unwrap().is_none());
}

fn fingerprint(more: &str) -> [u8; 32] {
    with(more).fingerprint()
}

#[test]
fn nodes_agree_only_on_what_matters() {
    let base = fingerprint("");
    // Settings that may differ between nodes.
    for more in [
        "[locks]\nttl_default = \"1s\"\nttl_max = \"2h\"",
        "[api]\nsocket = \"other\"\nlisten = \"127.0.0.1:1\"",
        "[metrics]\nlock_names = true",
        "[locks]\nalgorithm = \"tree\"",
        "[locks]\nalgorithm = \"raymond\"\nvariant = \"\"\nshape = \" \"\nmax_local_turns = 4",
    ] {
        assert_eq!(fingerprint(more), base, "{more}");
    }
    let moved = HEAD
        .replace("127.0.0.1", "localhost")
        .replacen("\"a\"", "\"b\"", 1);
    assert_eq!(parse(&moved).unwrap().fingerprint(), base);
    // Settings that must be the same on all nodes.
    let lock = |more: &str| format!("[[lock]]\npattern = \"x\"\n{more}");
    let both = |first: &str, second: &str| {
        format!("[[lock]]\npattern = \"{first}\"\n[[lock]]\npattern = \"{second}\"")
    };
    let mut all = vec![
        base,
        fingerprint("[locks]\nalgorithm = \"naimi-trehel\""),
        fingerprint("[locks]\nalgorithm = \"raymond\"\nvariant = \"greedy\""),
        fingerprint("[locks]\nalgorithm = \"raymond\"\nshape = \"line\""),
        fingerprint("[locks]\nmax_local_turns = 2"),
        fingerprint(&lock("")),
        fingerprint(&lock("algorithm = \"naimi-trehel\"")),
        fingerprint(&lock("max_local_turns = 2")),
        fingerprint(&both("x", "y")),
        fingerprint(&both("y", "x")),
    ];
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 10);
}

#[test]
fn the_agreement_is_text_that_can_be_compared() {
    let config = with("[[lock]]\npattern = \"a b/*\"\nalgorithm = \"ring\"");
    let expected = "soloist protocol 1
kept lease_ms=3000 drift=5
lock 5:a b/* algorithm=le-lann variant=resting shape= max_local_turns=4
default algorithm=raymond variant= shape= max_local_turns=4
";
    assert_eq!(config.agreement(), expected);
    // SHA-256 of the text, computed by sha256sum. Other versions must produce the same hash.
    let hex: String = config
        .fingerprint()
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect();
    assert_eq!(
        hex,
        "15f8bb9783bee2b8f19a9e45a0e1345859f4b0158ef42e1c2e4c6020ef63596b"
    );
}

#[test]
fn rules_made_by_a_program_are_checked_too() {
    let node = |name: &str, port| {
        let address = format!("127.0.0.1:{port}");
        (name.parse().unwrap(), address.parse().unwrap())
    };
    assert!(Nodes::new([node("a", 1), node("a", 2)]).is_err());
    assert!(Nodes::new([]).is_err());
    let turns = RuleSettings {
        max_local_turns: 0,
        ..RuleSettings::default()
    };
    let error = Rules::new(1, &turns, &[]).unwrap_err();
    assert_eq!(
        (error.place, error.problem.key()),
        (None, "max_local_turns")
    );
    let long = [("x".repeat(257), RuleSettings::default())];
    let error = Rules::new(1, &RuleSettings::default(), &long).unwrap_err();
    assert_eq!((error.place, error.problem.key()), (Some(0), "pattern"));
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(at in 0..HEAD.len(), junk in "\\PC{0,6}", cut in 0..8usize) {
        let end = (at + cut).min(HEAD.len());
        let _ = parse(&format!("{}{junk}{}", &HEAD[..at], &HEAD[end..]));
    }
}

#[test]
fn variants_for_the_lab_alone_are_refused() {
    for (algorithm, variant, why) in [
        ("maekawa", "as-published", "use it in the lab only"),
        (
            "lodha-kshemkalyani",
            "as-published",
            "use it in the lab only",
        ),
        ("raymond", "initialize", "sends messages before any request"),
    ] {
        let settings = RuleSettings {
            algorithm: algorithm.to_owned(),
            variant: variant.to_owned(),
            ..RuleSettings::default()
        };
        for rules in [
            Rules::new(4, &settings, &[]),
            Rules::for_any(&settings, &[]),
        ] {
            let refused = rules.unwrap_err();
            assert!(refused.to_string().contains(why), "{refused}");
            assert_eq!(refused.problem.key(), "variant");
        }
    }
}
