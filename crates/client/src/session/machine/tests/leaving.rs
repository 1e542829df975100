//! Leaving a session for one on another node.

use soloist_api::session::{MESSAGE_BYTES_MAX, NUMBER_MAX};

use super::*;

/// The node hangs, so the releases of very many dropped guards are not answered.
#[test]
fn the_next_nodes_hello_fits_a_message_with_any_number_of_releases() {
    let mut played = Played::connected();
    // With the longest numbers that occur.
    played.machine.last_n = NUMBER_MAX - 100_000;
    for seq in 1..=12_000 {
        let id = played.acquire(0);
        let n = played.machine.last_n;
        played.receive(0, granted(n, seq, promise(n, 3000)));
        played.machine.drop_request(at(0), id, &mut played.out);
    }
    let left = played.machine.leave(at(1), &"silent", &mut played.out);
    let left = left.expect("the session began");
    assert!(left.release.len() > 1000, "{} releases", left.release.len());
    let next: Client = Machine::new(Settings {
        name: "x".repeat(1024),
        ..Settings::default()
    });
    let hello = ClientMessage::Hello(next.hello(Some(left)));
    let bytes = serde_json::to_vec(&hello).unwrap().len();
    assert!(bytes < MESSAGE_BYTES_MAX, "{bytes} bytes");
    // The session sends those that are not listed again, or expires.
    assert!(!played.machine.is_settled());
}
