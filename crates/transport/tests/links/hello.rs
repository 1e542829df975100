//! The hello of all protocols: golden bytes, which clusters and generations may connect, and
//! malformed input.

use proptest::prelude::*;
use soloist_api::NodeName;
use soloist_core::Incarnation;
use soloist_core::cluster_identity::{ClusterId, ClusterIdentity, Generation};
use soloist_transport::hello::{
    Code, HELLO_BYTES_MAX, Hello, HelloError, PREFACE, Party, Purpose, Refusal, Reply, VERSIONS,
    Versions, check_cluster,
};

fn name(name: &str) -> NodeName {
    name.parse().unwrap()
}

fn cluster(id: u8, number: u8, nonce: u64) -> ClusterIdentity {
    ClusterIdentity {
        id: ClusterId::from_bytes([id; 16]),
        generation: Generation { number, nonce },
    }
}

fn link() -> Purpose {
    Purpose::Link {
        fingerprint: [0xab; 32],
        incarnation: Incarnation(0x0102),
        to_incarnation: Some(Incarnation(3)),
    }
}

fn member() -> Purpose {
    Purpose::Member {
        fingerprint: [0xcd; 32],
    }
}

fn keeper() -> Purpose {
    Purpose::Keeper {
        from_id: 5,
        to_id: 300,
    }
}

fn hello(purpose: Purpose) -> Hello {
    Hello {
        versions: VERSIONS,
        from: name("a"),
        to: name("bc"),
        cluster: Some(cluster(7, 1, 2)),
        purpose,
    }
}

#[test]
fn golden_bytes_of_hellos() {
    let common = [
        &[5, 5, 1, b'a', 2, b'b', b'c', 1][..],
        &[7; 16],
        &[1, 2], // generation
    ]
    .concat();
    let all = [
        (link(), [&[0][..], &[0xab; 32], &[0x82, 2, 1, 3]].concat()),
        (member(), [&[1][..], &[0xcd; 32]].concat()),
        (keeper(), vec![2, 5, 0xac, 2]),
        (Purpose::Forward, vec![3]),
    ];
    for (purpose, rest) in all {
        let length = (common.len() + rest.len()) as u16;
        let expected = [&b"SOLOIST\0"[..], &length.to_le_bytes(), &common, &rest].concat();
        let bytes = hello(purpose.clone()).encode();
        assert_eq!(bytes, expected, "{purpose:?}");
        assert_eq!(Hello::decode(&bytes[10..]), Ok((hello(purpose), 5)));
    }
    let stranger = Hello {
        cluster: None,
        ..hello(keeper())
    };
    let expected = b"SOLOIST\0\x0c\0\x05\x05\x01a\x02bc\0\x02\x05\xac\x02";
    assert_eq!(stranger.encode(), expected);
}

#[test]
fn golden_bytes_of_replies() {
    let version = 5;
    let welcome = Reply::Welcome {
        version,
        cluster: Some(cluster(7, 1, 2)),
    };
    let expected = [&[21, 0, 0, 5, 1][..], &[7; 16], &[1, 2]].concat();
    assert_eq!(welcome.encode(), expected);
    let cluster = None;
    let welcome = Reply::Welcome { version, cluster };
    assert_eq!(welcome.encode(), [3, 0, 0, 5, 0]);
    for (number, code) in [
        (0, Code::Malformed),
        (1, Code::Version),
        (2, Code::Name),
        (3, Code::Cluster),
        (4, Code::Configuration),
        (5, Code::KeeperId),
        (6, Code::Later),
        (7, Code::NotServed),
        (100, Code::Other(100)),
    ] {
        let refused = Reply::Refused(Refusal::new(code, "no"));
        let bytes = refused.encode();
        assert_eq!(bytes, [6, 0, 1, number, 2, b'n', b'o', 0]);
        assert_eq!(Reply::decode(&bytes[2..]), Ok(refused));
    }
}

#[test]
fn a_long_reason_is_truncated_at_a_character_boundary() {
    let refused = Reply::Refused(Refusal::new(Code::Name, "é".repeat(5000)));
    let bytes = refused.encode();
    let cut = Reply::Refused(Refusal::new(Code::Name, "é".repeat(512)));
    assert_eq!(Reply::decode(&bytes[2..]), Ok(cut));
}

#[test]
fn the_lowest_common_version_is_used() {
    let range = |lowest, highest| Versions { lowest, highest };
    for (one, other, common) in [
        (range(4, 4), range(4, 4), Some(4)),
        (range(4, 6), range(5, 9), Some(5)),
        (range(4, 9), range(5, 6), Some(5)),
        (range(4, 5), range(5, 9), Some(5)),
        (range(4, 4), range(5, 9), None),
        (
            range(0, u16::MAX),
            range(u16::MAX, u16::MAX),
            Some(u16::MAX),
        ),
    ] {
        assert_eq!(one.common(other), common, "{one} and {other}");
        assert_eq!(other.common(one), common, "{other} and {one}");
    }
}

#[test]
fn other_versions_are_recognized_regardless_of_what_follows() {
    for rest in [&b""[..], &[0xff; 100]] {
        let bytes = [&[7, 9][..], rest].concat();
        let theirs = Versions {
            lowest: 7,
            highest: 9,
        };
        assert_eq!(Hello::decode(&bytes), Err(HelloError::Version { theirs }));
    }
    // An inverted range.
    let error = Hello::decode(&[9, 7]).unwrap_err().to_string();
    assert!(error.contains("versions from 9 to 7"), "{error}");
}

/// Later releases may add fields without a new version.
#[test]
fn fields_of_a_later_release_are_ignored() {
    let mut bytes = hello(link()).encode();
    bytes.extend(*b"more");
    assert_eq!(Hello::decode(&bytes[10..]), Ok((hello(link()), 5)));
    let refused = Reply::Refused(Refusal::new(Code::Cluster, "no"));
    let mut bytes = refused.encode();
    bytes.extend(*b"more");
    assert_eq!(Reply::decode(&bytes[2..]), Ok(refused));
}

fn allowed(
    purpose: &Purpose,
    from: Option<ClusterIdentity>,
    to: Option<ClusterIdentity>,
) -> Result<(), Refusal> {
    let (a, b) = (name("a"), name("b"));
    let from = Party {
        name: &a,
        cluster: from,
    };
    let to = Party {
        name: &b,
        cluster: to,
    };
    check_cluster(purpose, from, to)
}

#[test]
fn which_roles_may_dial_which() {
    let (mine, other) = (Some(cluster(1, 1, 7)), Some(cluster(2, 1, 7)));
    let (older, newer) = (Some(cluster(1, 0, 9)), Some(cluster(1, 2, 9)));
    // Two recoveries of the same cluster at the same time.
    let twin = Some(cluster(1, 1, 8));
    for (from, link_to, member_to, keeper_to) in [
        (None, false, true, true),
        (mine, true, true, true),
        (other, false, false, false),
        (older, false, true, false),
        (newer, false, false, false),
        (twin, false, false, false),
    ] {
        let is_allowed = |purpose: &Purpose| allowed(purpose, from, mine).is_ok();
        assert_eq!(is_allowed(&link()), link_to, "{from:?}");
        assert_eq!(is_allowed(&member()), member_to, "{from:?}");
        assert_eq!(is_allowed(&Purpose::Forward), member_to, "{from:?}");
        assert_eq!(is_allowed(&keeper()), keeper_to, "{from:?}");
    }
    for (from, member_to) in [(None, true), (mine, false)] {
        assert_eq!(allowed(&member(), from, None).is_ok(), member_to);
        assert!(allowed(&keeper(), from, None).is_ok());
        assert_eq!(allowed(&link(), from, None).is_ok(), from.is_none());
    }
}

#[test]
fn refusals_name_both_clusters_and_what_to_do() {
    let (mine, other, newer) = (cluster(1, 1, 7), cluster(2, 1, 7), cluster(1, 2, 9));
    let refusal = allowed(&member(), Some(other), Some(mine)).unwrap_err();
    assert_eq!((refusal.code, refusal.cluster), (Code::Cluster, Some(mine)));
    for text in [
        format!("node a belongs to cluster {other}"),
        format!("node b belongs to cluster {mine}"),
        "stop it, remove data/cluster, and start it again".to_owned(),
    ] {
        assert!(refusal.reason.contains(&text), "{}", refusal.reason);
    }
    let refusal = allowed(&keeper(), Some(mine), Some(newer)).unwrap_err();
    assert_eq!(
        refusal.cluster,
        Some(newer),
        "a learns that it was replaced"
    );
    let text = "the cluster was recovered, but node a is still in the previous generation";
    assert!(refusal.reason.contains(text), "{}", refusal.reason);
    let refusal = allowed(&link(), None, Some(mine)).unwrap_err();
    assert_eq!(refusal.code, Code::Later);
}

fn a_purpose() -> impl Strategy<Value = Purpose> {
    prop_oneof![
        any::<([u8; 32], u64, Option<u64>)>().prop_map(|(fingerprint, incarnation, to)| {
            Purpose::Link {
                fingerprint,
                incarnation: Incarnation(incarnation),
                to_incarnation: to.map(Incarnation),
            }
        }),
        any::<[u8; 32]>().prop_map(|fingerprint| Purpose::Member { fingerprint }),
        any::<[u64; 2]>().prop_map(|[from_id, to_id]| Purpose::Keeper { from_id, to_id }),
        Just(Purpose::Forward),
    ]
}

fn a_hello() -> impl Strategy<Value = Hello> {
    let node = "[a-z]([a-z0-9-]{0,61}[a-z0-9])?";
    let of_cluster = any::<Option<(u8, u8, u64)>>();
    (node, node, of_cluster, a_purpose()).prop_map(|(from, to, of_cluster, purpose)| Hello {
        versions: VERSIONS,
        from: name(&from),
        to: name(&to),
        cluster: of_cluster.map(|(id, number, nonce)| cluster(id, number, nonce)),
        purpose,
    })
}

proptest! {
    #[test]
    fn any_hello_is_read_as_it_was_written(hello in a_hello()) {
        let bytes = hello.encode();
        prop_assert!(bytes.len() < HELLO_BYTES_MAX / 4);
        prop_assert_eq!(&bytes[..8], &PREFACE);
        prop_assert_eq!(Hello::decode(&bytes[10..]), Ok((hello, 5)));
    }

    #[test]
    fn any_bytes_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        let _ = Hello::decode(&bytes);
        let _ = Reply::decode(&bytes);
    }

    /// Nearly valid input finds more bugs: real hellos, changed or truncated.
    #[test]
    fn changed_hellos_do_no_harm(
        hello in a_hello(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..10),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = hello.encode();
        for (place, value) in changes {
            *place.get_mut(&mut bytes) = value;
        }
        let _ = Hello::decode(&bytes[10..]);
        bytes.truncate(10 + cut.index(bytes.len() - 10));
        let _ = Hello::decode(&bytes[10..]);
    }
}
