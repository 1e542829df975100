//! Messages of locks, to a member of three whose locks use the algorithm that the input chooses.
#![no_main]

use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use soloist_algorithms::{Kind, NodeId};
use soloist_api::{LockName, Moment};
use soloist_core::Incarnation;
use soloist_core::limits::Limits;
use soloist_core::locks::{Effects, Epoch, Inside, LockRequest, Settings, Table, wire};
use soloist_core::rules::{RuleSettings, Rules};

const NODES: usize = 3;

fn table(kind: Kind) -> Table {
    let settings = RuleSettings {
        algorithm: kind.to_string(),
        ..RuleSettings::default()
    };
    let mut table = Table::new(Settings {
        rules: Rules::new(NODES, &settings, &[]).expect("every algorithm takes three nodes"),
        ttl_max: Duration::from_secs(3600),
        limits: Limits::default(),
        locks_max: 100,
        forget_after: Duration::from_secs(10),
        turns_away_after: None,
        seed: [1; 32],
    });
    let epoch = Epoch {
        number: 1,
        me: NodeId::from_index(1),
        members: [0, 1, 2].map(Incarnation).into(),
        inside: Inside::default(),
    };
    table.install(Moment::default(), epoch, &mut Effects::new());
    table
}

/// Whether it is from node 0 rather than 2, whether it goes without a header, and its content.
type Message = (bool, bool, Vec<u8>);

fuzz_target!(|input: (u8, bool, Vec<Message>)| {
    let (kind, asks, messages) = input;
    let mut table = table(Kind::ALL[usize::from(kind) % Kind::ALL.len()]);
    let mut effects = Effects::new();
    let now = Moment::default();
    let lock = LockName::new("a").expect("a name");
    if asks {
        let _ = table.acquire(now, &lock, LockRequest::new("somebody"), &mut effects);
    }
    for (is_first, is_raw, content) in messages {
        let from = NodeId::from_index(if is_first { 0 } else { 2 });
        let mut bytes = content;
        if !is_raw {
            // A header that is accepted, so that the payload reaches the algorithm.
            let payload = std::mem::take(&mut bytes);
            let fence = soloist_api::Fence::first_of(1);
            wire::encode(wire::KIND, 1, fence, &lock, &payload, &mut bytes);
        }
        let _ = table.receive(now, from, &bytes, &mut effects);
    }
    table.tick(now + Duration::from_secs(60), &mut effects);
});
