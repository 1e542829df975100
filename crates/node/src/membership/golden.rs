//! Golden bytes of the messages between nodes and keepers.

use std::time::Duration;

use soloist_algorithms::NodeId;
use soloist_api::NodeName;
use soloist_core::Incarnation;
use soloist_core::cluster_identity::{ClusterId, ClusterIdentity, Generation};
use soloist_core::epochs::message::{ToKeepers, ToMember};
use soloist_core::epochs::roster::{Change, Member};
use soloist_core::keepers::{EntryId, LeaderDecision, StoreClaim};
use soloist_core::locks::HeldLock;
use soloist_core::name_hash::{HashKey, NameHash};
use soloist_core::rows::Rows;

use super::wire::{ClusterView, FromKeeper, FromNode, LeaderQuestion, LeaderView, Reply};
use crate::golden::GoldenBytes;
use crate::keepers::KeeperNode;
use crate::keepers::rpc;

fn name(name: &str) -> NodeName {
    name.parse().unwrap()
}

fn hash(byte: u8) -> NameHash {
    NameHash::from_bytes([byte; 16])
}

fn member(node: &str, incarnation: u64) -> Member {
    Member {
        name: name(node),
        incarnation: Incarnation(incarnation),
        address: "127.0.0.1:7401".parse().unwrap(),
    }
}

fn keeper(node: &str) -> KeeperNode {
    KeeperNode {
        name: name(node),
        address: "[::1]:7401".parse().unwrap(),
    }
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

fn change() -> Change {
    Change {
        epoch: 7,
        members: vec![member("a", 1), member("b", 300)],
        key: HashKey::from_bytes(*b"0123456789abcdef"),
    }
}

fn piece() -> Rows<HeldLock> {
    let held = |byte, holder| HeldLock {
        lock: hash(byte),
        holder: NodeId::new(holder),
    };
    Rows::new(&[held(1, 0), held(2, 300)])
}

fn to_keepers() -> Vec<(&'static str, ToKeepers)> {
    // A new message goes into the list below.
    let _ = |message| match message {
        ToKeepers::Join
        | ToKeepers::Probed { .. }
        | ToKeepers::Renew { .. }
        | ToKeepers::Report { .. }
        | ToKeepers::SendHolds { .. }
        | ToKeepers::Leave
        | ToKeepers::Suspect { .. }
        | ToKeepers::Unreached { .. }
        | ToKeepers::Exhausted { .. } => {}
    };
    vec![
        ("join", ToKeepers::Join),
        ("probed", ToKeepers::Probed { number: 1 }),
        (
            "renew",
            ToKeepers::Renew {
                number: 2,
                installed: 300,
            },
        ),
        (
            "report",
            ToKeepers::Report {
                epoch: 7,
                pieces: 2,
                number: 1,
                held: Rows::new(&[hash(1), hash(2)]),
            },
        ),
        (
            "send-holds",
            ToKeepers::SendHolds {
                epoch: 7,
                number: 1,
            },
        ),
        ("leave", ToKeepers::Leave),
        ("suspect", ToKeepers::Suspect { epoch: 7 }),
        (
            "unreached",
            ToKeepers::Unreached {
                incarnations: [1, 300].map(Incarnation).into(),
            },
        ),
        ("exhausted", ToKeepers::Exhausted { epoch: 7 }),
    ]
}

fn to_member() -> Vec<(&'static str, ToMember)> {
    let _ = |message| match message {
        ToMember::Granted { .. }
        | ToMember::NoMember
        | ToMember::Probe { .. }
        | ToMember::TooSlow { .. }
        | ToMember::HeldOff { .. }
        | ToMember::NameTaken
        | ToMember::Begin(_)
        | ToMember::SendReport { .. }
        | ToMember::Install { .. }
        | ToMember::Holds { .. }
        | ToMember::Barred { .. } => {}
    };
    vec![
        ("granted", ToMember::Granted { number: 2 }),
        ("no-member", ToMember::NoMember),
        ("probe", ToMember::Probe { number: 1 }),
        (
            "too-slow",
            ToMember::TooSlow {
                took: Duration::from_millis(3_150),
                limit: Duration::from_secs(1),
            },
        ),
        (
            "held-off",
            ToMember::HeldOff {
                left: Duration::from_millis(3_150),
            },
        ),
        ("name-taken", ToMember::NameTaken),
        ("begin", ToMember::Begin(change())),
        (
            "send-report",
            ToMember::SendReport {
                epoch: 7,
                number: 1,
            },
        ),
        (
            "install",
            ToMember::Install {
                change: change(),
                pieces: 2,
                first: Some(piece()),
            },
        ),
        (
            "install without holds",
            ToMember::Install {
                change: change(),
                pieces: 0,
                first: None,
            },
        ),
        (
            "holds",
            ToMember::Holds {
                epoch: 7,
                number: 1,
                piece: piece(),
            },
        ),
        (
            "barred",
            ToMember::Barred {
                apart_from: vec![name("a"), name("b")],
            },
        ),
    ]
}

fn entry_id() -> EntryId {
    EntryId {
        term: 3,
        leader: 0xab,
        index: 8,
    }
}

fn from_node(golden: &mut GoldenBytes) {
    let _ = |message| match message {
        FromNode::Message { .. }
        | FromNode::Question { .. }
        | FromNode::Store(_)
        | FromNode::Declined { .. } => {}
    };
    for (label, message) in to_keepers() {
        let from = member("a", 300);
        let (clock, holds) = (1_000, 2);
        golden.add(
            label,
            &FromNode::Message {
                from,
                clock,
                holds,
                message,
            },
        );
    }
    for (label, question) in [
        ("ask for the cluster", LeaderQuestion::Cluster),
        ("ask to promote", LeaderQuestion::Promote(name("b"))),
        ("ask to demote", LeaderQuestion::Demote(name("b"))),
        ("ask for an overview", LeaderQuestion::Overview),
    ] {
        let number = 5;
        golden.add(label, &FromNode::Question { number, question });
    }
    let store = |cluster| StoreClaim {
        cluster,
        id: 0xab,
        membership: Some(entry_id()),
    };
    golden.add("no store", &FromNode::Store(None));
    let old = FromNode::Store(Some(store(None)));
    golden.add("store without a cluster", &old);
    golden.add("store", &FromNode::Store(Some(store(Some(cluster())))));
    let declined = FromNode::Declined {
        id: 0xab,
        reason: "because".to_owned(),
    };
    golden.add("declined", &declined);
}

fn from_keeper(golden: &mut GoldenBytes) {
    let _ = |message| match message {
        FromKeeper::Welcome { .. }
        | FromKeeper::Elsewhere { .. }
        | FromKeeper::Refused(_)
        | FromKeeper::Message { .. }
        | FromKeeper::Clock { .. }
        | FromKeeper::Reply { .. }
        | FromKeeper::Appoint(_)
        | FromKeeper::SetAside(_) => {}
    };
    let welcome = FromKeeper::Welcome {
        keepers: vec![keeper("a"), keeper("b")],
        cluster: cluster(),
        epoch: 7,
    };
    golden.add("welcome", &welcome);
    for (label, leader, has_past) in [
        ("elsewhere", Some(keeper("a")), true),
        ("elsewhere unknown", None, false),
    ] {
        golden.add(label, &FromKeeper::Elsewhere { leader, has_past });
    }
    golden.add("refused", &FromKeeper::Refused("because".to_owned()));
    golden.add("clock", &FromKeeper::Clock { percent: -3 });
    let view = ClusterView {
        leader: name("a"),
        keepers: vec![keeper("a"), keeper("b")],
        epoch: 7,
        is_changing: true,
        members: vec![(member("a", 1), 9_000)],
    };
    let overview = LeaderView {
        cluster: view.clone(),
        followers: vec![name("b")],
        joining: vec![name("c")],
        clocks: vec![(name("b"), -3)],
    };
    for (label, reply) in [
        ("reply with the cluster", Reply::Cluster(view)),
        ("reply: done", Reply::Done),
        ("reply: refused", Reply::Refused("because".to_owned())),
        ("reply: hands over", Reply::HandsOver(name("a"))),
        ("reply with an overview", Reply::Overview(overview)),
    ] {
        let number = 5;
        golden.add(label, &FromKeeper::Reply { number, reply });
    }
    let decision = || LeaderDecision {
        cluster: cluster(),
        id: 0xab,
        membership: Some(entry_id()),
    };
    golden.add("appoint", &FromKeeper::Appoint(decision()));
    golden.add("set aside", &FromKeeper::SetAside(decision()));
    for (label, message) in to_member() {
        let incarnation = Incarnation(300);
        golden.add(
            label,
            &FromKeeper::Message {
                incarnation,
                message,
            },
        );
    }
}

#[test]
fn messages_have_golden_bytes() {
    let mut golden = GoldenBytes::default();
    from_node(&mut golden);
    from_keeper(&mut golden);
    let frame = rpc::frame(0, &FromNode::Store(None)).unwrap();
    golden.add_bytes("frame with no store", &frame);
    golden.check("membership.txt");
}
