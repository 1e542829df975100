//! Messages of a session: no input panics, what is read back is the same, and a table that handles
//! them keeps its rules.
#![no_main]

use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use soloist_algorithms::NodeId;
use soloist_api::Moment;
use soloist_api::session::{ClientMessage, NodeMessage};
use soloist_core::Incarnation;
use soloist_core::limits::Limits;
use soloist_core::locks::{Client, Effects, Epoch, Inside, Settings, Table};
use soloist_core::rules::{RuleSettings, Rules};
use soloist_core::sessions::ConnectionId;

const TTL: Duration = Duration::from_secs(10);

fn table() -> Table {
    let mut table = Table::new(Settings {
        rules: Rules::new(1, &RuleSettings::default(), &[]).expect("the defaults are valid"),
        ttl_max: TTL,
        limits: Limits::default(),
        locks_max: 100,
        forget_after: TTL,
        seed: [0; 32],
    });
    let epoch = Epoch {
        number: 1,
        me: NodeId::from_index(0),
        members: [Incarnation(0)].into(),
        inside: Inside::default(),
    };
    table.install(Moment::default(), epoch, &mut Effects::new());
    table
}

// Each line is a message. An empty one lets a second pass.
fuzz_target!(|bytes: &[u8]| {
    let mut table = table();
    let mut out = Effects::new();
    let mut now = Moment::default();
    let (client, connection) = (Client::new("fuzzer"), ConnectionId(0));
    let opened = table.open_session(now, client, "fuzzer".into(), TTL, connection, &mut out);
    let session = opened.expect("it is the first one");
    for line in bytes.split(|byte| *byte == b'\n') {
        let _ = serde_json::from_slice::<NodeMessage>(line);
        if line.is_empty() {
            now = now + Duration::from_secs(1);
            table.tick(now, &mut out);
        } else if let Ok(message) = serde_json::from_slice::<ClientMessage>(line) {
            let text = serde_json::to_vec(&message).expect("a message can be written");
            let again: ClientMessage = serde_json::from_slice(&text).expect("it was written");
            assert_eq!(again, message);
            table.receive_from_session(now, session, connection, message, &mut out);
        }
        out.clear();
    }
    // A silent session leaves nothing behind.
    table.tick(now + TTL, &mut out);
    assert_eq!((table.sessions(), table.holds(), table.waiters()), (0, 0, 0));
});
