//! `soloist completions` and `soloist man`.

use std::process::Command;

fn soloist(arguments: &[&str]) -> std::process::Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_soloist"));
    command
        .args(arguments)
        .output()
        .expect("the executable starts")
}

#[test]
fn completions_name_the_commands() {
    for shell in ["bash", "zsh", "fish"] {
        let output = soloist(&["completions", shell]);
        assert!(output.status.success());
        let script = String::from_utf8(output.stdout).unwrap();
        for command in ["lock", "who", "cluster", "lab"] {
            assert!(script.contains(command), "{shell}: no {command}");
        }
    }
    let output = soloist(&["completions", "cobol"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn every_command_has_a_manual_page() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    assert!(soloist(&["man", path]).status.success());
    for page in ["soloist.1", "soloist-lock.1", "soloist-cluster-promote.1"] {
        let text = std::fs::read_to_string(folder.path().join(page)).unwrap();
        assert!(text.contains(".TH"), "{page}");
    }
    let output = soloist(&["man", "/no/such/folder"]);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("/no/such/folder"), "{said}");
}
