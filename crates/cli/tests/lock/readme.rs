//! The README's commands work, in the order in which they stand.

use rustix::process::Signal;

use crate::up::User;
use crate::{Running, stderr, stdout, until};

/// The lines of the README's shell blocks, without comments.
fn commands() -> Vec<&'static str> {
    let page = include_str!("../../../../README.md");
    let blocks = page.split("```sh\n").skip(1);
    let blocks = blocks.map(|rest| rest.split("```").next().expect("a block ends"));
    let lines = blocks.flat_map(str::lines);
    let without_comment = |line: &'static str| line.split(" # ").next().unwrap_or_default();
    lines.map(|line| without_comment(line).trim_end()).collect()
}

#[test]
fn each_command_works_in_the_order_in_which_it_stands() {
    let user = User::new();
    let mut background: Vec<Running> = Vec::new();
    let mut ran = 0;
    for line in commands() {
        if let Some(install) = line.strip_prefix("cargo install --locked --path ") {
            let manifest = format!("{}/../../{install}/Cargo.toml", env!("CARGO_MANIFEST_DIR"));
            let manifest = std::fs::read_to_string(manifest).expect("the crate is there");
            assert!(manifest.contains("name = \"soloist\""));
            continue;
        }
        let command = line.strip_prefix("cargo run --release -- ");
        let command = command.or_else(|| line.strip_prefix("soloist "));
        let command = command.unwrap_or_else(|| panic!("not a command of soloist: {line}"));
        ran += 1;
        match command.strip_suffix(" &") {
            // It runs in a terminal of its own.
            None if command == "up" => background.push(user.up(command).0),
            None if command.starts_with("lab play") => {
                let mut player = Running::start(&mut user.soloist(command));
                let link = player.line();
                assert!(link.starts_with("http://127.0.0.1:"), "{link}");
                background.push(player);
            }
            Some(command) => {
                background.push(Running::start(&mut user.soloist(command)));
                until("the lock is held", || {
                    let who = user.soloist("who nightly").status();
                    who.unwrap().code() == Some(0)
                });
            }
            None => {
                let output = user.soloist(command).output().unwrap();
                let finds_a_fault = command.contains("as-published");
                let expected = i32::from(finds_a_fault);
                let code = output.status.code();
                assert_eq!(code, Some(expected), "{command}: {}", stderr(&output));
                let said = stdout(&output);
                assert!(!finds_a_fault || said.contains("DEADLOCK"), "{said}");
                assert!(!command.starts_with("demo") || said.contains(" 0 overlaps"));
                assert!(
                    !command.starts_with("who") || said.contains("held by"),
                    "{said}"
                );
            }
        }
    }
    assert!(ran >= 8, "{ran} commands");
    for running in background.iter_mut().rev() {
        running.signal(Signal::INT);
    }
    for mut running in background {
        running.code();
    }
}

#[test]
fn it_is_short() {
    let lines = include_str!("../../../../README.md").lines().count();
    assert!(lines <= 120, "{lines} lines");
}
