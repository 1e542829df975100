//! Encodings that must not change, because other releases send them and older stores contain them.

use std::time::Duration;

use openraft::raft::{AppendEntriesRequest, VoteRequest};
use openraft::{CommittedLeaderId, Entry, EntryPayload, LogId, Vote};
use serde::Serialize;
use soloist_core::Term;
use soloist_core::cluster_identity::{ClusterId, ClusterIdentity, Generation};
use soloist_core::epochs::roster::{Command, Roster};
use soloist_node::keepers::{Proposal, StoreIdentity, Types};

use crate::net::begin;

/// [`begin`] of epoch 2.
const BEGIN: &str = "020201016d020e3132372e302e302e313a3734303130313233343536373839616263646566";

fn hex(value: &impl Serialize) -> String {
    let bytes = postcard::to_allocvec(value).unwrap();
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn cluster() -> ClusterIdentity {
    ClusterIdentity {
        id: ClusterId::from_bytes(*b"0123456789abcdef"),
        generation: Generation {
            number: 1,
            nonce: 0x0102_0304_0506_0708,
        },
    }
}

#[test]
fn requests_between_keepers() {
    let id = |index| LogId::new(CommittedLeaderId::new(3, 0xab), index);
    let vote = VoteRequest::new(Vote::new(4, 0xab), Some(id(7)));
    assert_eq!(hex(&(1_u8, &vote)), "0104ab01000103ab0107");
    let command = begin(2);
    let entry = Entry {
        log_id: id(8),
        payload: EntryPayload::Normal(Proposal {
            term: Term(3),
            command,
        }),
    };
    let append = AppendEntriesRequest::<Types> {
        vote: Vote::new_committed(4, 0xab),
        prev_log_id: Some(id(7)),
        entries: vec![entry],
        leader_commit: Some(id(6)),
    };
    let (before, after) = ("0004ab01010103ab01070103ab01080103", "0103ab0106");
    assert_eq!(hex(&(0_u8, &append)), format!("{before}{BEGIN}{after}"));
}

#[test]
fn commands_in_the_log() {
    let lease = Duration::from_millis(3150);
    let cluster = cluster();
    for (command, bytes) in [
        (Command::Lead { lease }, "000380a3c347"),
        (Command::Settle { lease }, "010380a3c347"),
        (begin(2), BEGIN),
        (Command::Install { epoch: 300 }, "03ac02"),
        (
            Command::Identify { cluster },
            "043031323334353637383961626364656601888e98a8c0e0808101",
        ),
    ] {
        assert_eq!(hex(&command), bytes);
    }
}

#[test]
fn a_new_store_contains_its_identity() {
    let identity = StoreIdentity {
        cluster: Some(cluster()),
        id: 0xab,
    };
    assert_eq!(
        hex(&identity),
        "013031323334353637383961626364656601888e98a8c0e0808101ab01"
    );
    let roster = Roster::new(Some(cluster()));
    assert_eq!(
        hex(&roster),
        "013031323334353637383961626364656601888e98a8c0e0808101000000000000"
    );
}
