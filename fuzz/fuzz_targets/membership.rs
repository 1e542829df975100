//! Messages between members and the leader, to a leader without members and to a node that wants
//! to join.
#![no_main]

use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use soloist_api::Moment;
use soloist_core::Incarnation;
use soloist_core::epochs::leader::{Leader, LeaderEffects};
use soloist_core::epochs::lease::Lease;
use soloist_core::epochs::member::{MemberEffects, Participant};
use soloist_core::epochs::message::{ToKeepers, ToMember};
use soloist_core::epochs::roster::{Member, Roster};
use soloist_core::limits::Limits;
use soloist_core::locks::{Settings, Table};
use soloist_core::name_hash::HashKeys;
use soloist_core::rules::{RuleSettings, Rules};

fn member(incarnation: u64) -> Member {
    Member {
        address: "n0:7401".parse().expect("an address"),
        name: "n0".parse().expect("a name"),
        incarnation: Incarnation(incarnation),
    }
}

fn participant(now: Moment) -> Participant {
    let table = Table::new(Settings {
        rules: Rules::new(1, &RuleSettings::default(), &[]).expect("the default is valid"),
        ttl_max: Duration::from_secs(3600),
        limits: Limits::default(),
        locks_max: 100,
        forget_after: Duration::from_secs(10),
        turns_away_after: None,
        seed: [1; 32],
    });
    Participant::new(member(1), table, Lease::default(), now)
}

fuzz_target!(|messages: Vec<(u8, Vec<u8>)>| {
    let mut now = Moment::default();
    let roster = Roster::new(None);
    let keys = HashKeys::new([7; 16]);
    let mut leader = Leader::elected(Lease::default(), now, &roster, keys);
    let mut node = participant(now);
    let (mut decided, mut effects) = (LeaderEffects::default(), MemberEffects::default());
    for (later, bytes) in messages {
        now = now + Duration::from_millis(u64::from(later) * 20);
        if let Ok(message) = postcard::from_bytes::<ToKeepers>(&bytes) {
            leader.receive(now, &roster, &member(1), message, &mut decided);
        }
        if let Ok(message) = postcard::from_bytes::<ToMember>(&bytes) {
            node.receive_from_leader(now, message, &mut effects);
        }
        leader.tick(now, &roster, &mut decided);
        node.tick(now, &mut effects);
    }
});
