//! Pins the encoding of every message of every algorithm, so that each version can read what the
//! previous one sends. A line of `golden/<algorithm>.txt` is a message and its encoding in hex.
//!
//! Set `UPDATE_GOLDEN=1` to rewrite the files, and read the diff before you commit it: a changed
//! line means that old and new nodes do not understand each other.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use soloist_algorithms::kind::Visitor;
use soloist_algorithms::machine::{decode, encode};
use soloist_algorithms::{Algorithm, Kind, Message};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

fn bytes_of<M: Message>(message: &M) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(message, &mut bytes);
    bytes
}

#[test]
fn every_message_has_its_golden_bytes() {
    struct Lines;
    impl Visitor for Lines {
        type Output = String;
        fn visit<A: Algorithm>(self) -> String {
            let mut lines = String::new();
            for message in A::Message::examples() {
                let _ = write!(lines, "{message} =");
                for byte in bytes_of(&message) {
                    let _ = write!(lines, " {byte:02x}");
                }
                lines.push('\n');
            }
            lines
        }
    }
    let update = std::env::var("UPDATE_GOLDEN").is_ok_and(|value| value == "1");
    for kind in Kind::ALL {
        let path = folder().join(format!("{kind}.txt"));
        let lines = kind.visit(Lines);
        if update {
            std::fs::write(&path, lines).unwrap();
        } else {
            let golden = std::fs::read_to_string(&path)
                .unwrap_or_else(|error| panic!("{}: {error}; see UPDATE_GOLDEN", path.display()));
            assert_eq!(golden, lines, "{}", path.display());
        }
    }
}

#[test]
fn every_golden_file_belongs_to_an_algorithm() {
    let expected: BTreeSet<String> = Kind::ALL.iter().map(|kind| format!("{kind}.txt")).collect();
    let found: BTreeSet<String> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(expected, found);
}

#[test]
fn examples_show_every_kind_in_order() {
    struct Kinds;
    impl Visitor for Kinds {
        type Output = ();
        fn visit<A: Algorithm>(self) {
            let name = A::INFO.name;
            let examples = A::Message::examples();
            let mut kinds: Vec<usize> = examples.iter().map(Message::kind).collect();
            assert!(kinds.is_sorted(), "{name}: {examples:?}");
            kinds.dedup();
            let all: Vec<usize> = (0..A::Message::KINDS.len()).collect();
            assert_eq!(kinds, all, "{name}: a kind has no example, or no name");
            for message in &examples {
                let text = message.to_string();
                let first = text.split(' ').next();
                assert_eq!(first, Some(message.name()), "{name}: '{text}'");
            }
        }
    }
    for kind in Kind::ALL {
        kind.visit(Kinds);
    }
}

/// A receiver accepts exactly one whole message, nothing less and nothing more.
#[test]
fn only_whole_messages_are_read_back() {
    struct ReadBack;
    impl Visitor for ReadBack {
        type Output = ();
        fn visit<A: Algorithm>(self) {
            for message in A::Message::examples() {
                let name = A::INFO.name;
                let mut bytes = bytes_of(&message);
                assert_eq!(
                    decode::<A::Message>(&bytes).as_ref(),
                    Some(&message),
                    "{name}"
                );
                for length in 0..bytes.len() {
                    let cut = decode::<A::Message>(&bytes[..length]);
                    assert_eq!(cut, None, "{name}: {length} bytes of {message}");
                }
                for trailing in 0..=u8::MAX {
                    bytes.push(trailing);
                    let longer = decode::<A::Message>(&bytes);
                    assert_eq!(longer, None, "{name}: {message} and {trailing}");
                    bytes.pop();
                }
            }
        }
    }
    for kind in Kind::ALL {
        kind.visit(ReadBack);
    }
}
