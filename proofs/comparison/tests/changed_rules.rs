//! A changed rule in a model breaks its proof.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A file of the proofs, a rule in it, and what the rule is changed to.
const CHANGES: [(&str, &str, &str); 15] = [
    // A grant does not advance the fence.
    (
        "Fence",
        "let k := S (fence f n) in",
        "let k := fence f n in",
    ),
    // The privilege is passed on while the node is inside.
    (
        "Raymond",
        "| Inside, _ => (s, [])",
        "| Inside, [] => (s, [])",
    ),
    // A node that knows its HOLDER is initialized again.
    (
        "RaymondInitialize",
        "if known s then (s, [])\n      else if",
        "if false then (s, [])\n      else if",
    ),
    // The token is sent and kept.
    (
        "NaimiTrehel",
        "(mk (father s) None Idle false, [(w, Token)])",
        "(mk (father s) None Idle true, [(w, Token)])",
    ),
    (
        "NeilsenMizuno",
        "(mk (Some from) (follow s) (ph s) false, [(origin, Privilege)])",
        "(mk (Some from) (follow s) (ph s) true, [(origin, Privilege)])",
    ),
    (
        "SuzukiKasami",
        "(mk Idle r None, [(from, Privilege t)])",
        "(mk Idle r (Some t), [(from, Privilege t)])",
    ),
    (
        "LeLann",
        "else (mk (ph s) false false false,",
        "else (mk (ph s) true false false,",
    ),
    // The token goes to two columns.
    (
        "Neamatollahi",
        "else (s, [(to, Token t')]) in",
        "else (s, [(to, Token t'); (to, Token t')]) in",
    ),
    (
        "NeamatollahiResting",
        "| Idle, Some t => set_out (with_token s Idle None) t",
        "| Idle, Some t => set_out s t",
    ),
    // A head that gives the token away stays green.
    (
        "ChaudhuriKaraata",
        "let h1 := mkh (Red towards false) rest in",
        "let h1 := mkh Green rest in",
    ),
    // A number that is received does not count as seen.
    (
        "RicartAgrawala",
        "let h := max (seen s) k in",
        "let h := seen s in",
    ),
    // A node that replies keeps the permission of the requester.
    (
        "CarvalhoRoucairol",
        "h (set (missing s) from true) (deferred s),",
        "h (missing s) (deferred s),",
    ),
    // Any message counts as later than the own request.
    (
        "Lamport",
        "match ph s with Waiting => my s <=? time m | _ => false end in",
        "match ph s with Waiting => true | _ => false end in",
    ),
    // Without repair (1): a FLUSH counts as an answer.
    (
        "LodhaKshemkalyani",
        "learn (of from (Some r)) (see h s)",
        "learn (of from (Some r)) (answered from (see h s))",
    ),
    // Without repair R2: a lock that is not held is given back.
    (
        "Maekawa",
        "match at_member s m with SLockedInquired => relinquish s m | _ => (s, []) end.",
        "match at_member s m with SLockedInquired | SInquired => relinquish s m | _ => (s, []) end.",
    ),
];

fn proofs() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Compiles a text under the name of a file. Returns what Coq prints if it refuses the text.
fn refusal(folder: &Path, file: &str, text: &str) -> Option<String> {
    let path = folder.join(format!("{file}.v"));
    fs::write(&path, text).expect("a writable folder");
    let output = Command::new("coqc")
        .arg("-R")
        .arg(proofs())
        .arg("Soloist")
        .arg(&path)
        .output()
        .expect("coqc starts");
    let says = String::from_utf8_lossy(&output.stderr).into_owned();
    (!output.status.success()).then_some(says)
}

#[test]
fn a_changed_rule_breaks_its_proof() {
    if soloist_proofs::is_missing() {
        return;
    }
    let folder = std::env::temp_dir().join(format!("soloist-proofs-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a writable folder");
    for (file, rule, changed) in CHANGES {
        let text = fs::read_to_string(proofs().join(format!("{file}.v"))).expect("a proof");
        assert_eq!(text.matches(rule).count(), 1, "{file}: {rule}");
        let says = refusal(&folder, file, &text.replace(rule, changed));
        let says = says.unwrap_or_else(|| panic!("{file} is proved although {changed}"));
        // Not a slip of syntax: a proof fails.
        assert!(says.contains("Error"), "{file}: {says}");
        assert!(!says.contains("Syntax error"), "{file}: {says}");
        println!(
            "{file}: {}",
            says.lines().take(2).collect::<Vec<_>>().join(" ")
        );
    }
    // Without a change it is accepted.
    let text = fs::read_to_string(proofs().join("NaimiTrehel.v")).expect("a proof");
    assert_eq!(refusal(&folder, "NaimiTrehel", &text), None);
    fs::remove_dir_all(&folder).expect("the folder of this test");
}
