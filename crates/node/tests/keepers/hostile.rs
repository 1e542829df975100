//! Bytes that no keeper sends, and peers that lie about their identity.

use std::sync::Arc;
use std::time::Duration;

use openraft::raft::{AppendEntriesRequest, InstallSnapshotRequest, VoteRequest};
use openraft::{CommittedLeaderId, Entry, EntryPayload, LogId, Vote};
use serde::Serialize;
use soloist_core::Term;
use soloist_node::identity::Authority;
use soloist_node::keepers::rpc::{FRAME_BYTES_MAX, SNAPSHOT_BYTES_MAX};
use soloist_node::keepers::{Keeper, KeeperError, Proposal, ServeEnd, Types};
use soloist_transport::hello::VERSIONS;
use soloist_transport::{Endpoint, Hello, Purpose, Security};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::task::JoinHandle;

use crate::net::{Cluster, Site, begin, identity, name, until};

/// Id of a keeper that is unknown to the others.
pub(crate) const B: u64 = 0xb;

pub(crate) fn frame(number: u64, value: &impl Serialize) -> Vec<u8> {
    raw_frame(number, &postcard::to_allocvec(value).unwrap())
}

fn raw_frame(number: u64, content: &[u8]) -> Vec<u8> {
    let mut bytes = (8 + content.len() as u32).to_le_bytes().to_vec();
    bytes.extend(number.to_le_bytes());
    bytes.extend(content);
    bytes
}

/// Hello of node b, which claims to be keeper [`B`] and dials keeper `id` on node `to`.
pub(crate) fn hello(to: &str, id: u64) -> Vec<u8> {
    greeting("b", to, B, id)
}

pub(crate) fn greeting(from: &str, to: &str, from_id: u64, to_id: u64) -> Vec<u8> {
    let hello = Hello {
        versions: VERSIONS,
        from: name(from),
        to: name(to),
        cluster: None,
        purpose: Purpose::Keeper { from_id, to_id },
    };
    hello.encode()
}

/// Opens a connection to node `to` from a peer whose certificate is for b.
pub(crate) fn connect(keeper: &Arc<Keeper>, to: &str) -> (DuplexStream, JoinHandle<ServeEnd>) {
    let endpoint = Endpoint::new(name(to), Security::Plain);
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let keeper = keeper.clone();
    let serving = tokio::spawn(async move {
        let b = name("b");
        let greeted = endpoint.greet(Box::new(theirs), Some(&b), "b").await;
        match greeted {
            Ok(arrival) => keeper.serve(arrival).await,
            Err(declined) => {
                let reason = declined.error.to_string();
                endpoint.dismiss(declined).await;
                ServeEnd::Refused(reason)
            }
        }
    });
    (ours, serving)
}

/// Sends these bytes, and asserts that both sides learn the reason for the refusal.
async fn refused(keeper: &Arc<Keeper>, bytes: Vec<u8>, says: &str) {
    let (mut stream, serving) = connect(keeper, "a");
    // The connection may be closed before everything is sent.
    let _ = stream.write_all(&bytes).await;
    let mut told = Vec::new();
    stream.read_to_end(&mut told).await.unwrap();
    drop(stream);
    let end = serving.await.unwrap();
    assert!(
        matches!(&end, ServeEnd::Refused(reason) if reason.contains(says)),
        "{says}: {end:?}"
    );
    let told = String::from_utf8_lossy(&told);
    assert!(told.contains(says), "{says}: {told}");
}

fn by_b(to: u64, request: u8, value: &impl Serialize) -> Vec<u8> {
    let mut bytes = hello("a", to);
    bytes.extend(frame(1, &(request, value)));
    bytes
}

fn id(index: u64) -> LogId<u64> {
    LogId::new(CommittedLeaderId::new(1, 7), index)
}

fn append(
    vote: Vote<u64>,
    previous: Option<LogId<u64>>,
    at: &[u64],
) -> AppendEntriesRequest<Types> {
    let entry = |&index: &u64| Entry {
        log_id: id(index),
        payload: EntryPayload::Normal(Proposal {
            term: Term(1),
            command: begin(index),
        }),
    };
    AppendEntriesRequest {
        vote,
        prev_log_id: previous,
        entries: at.iter().map(entry).collect(),
        leader_commit: None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_that_no_keeper_sends_are_refused_with_a_reason() {
    let cluster = Cluster::start(&["a"]).await;
    cluster.begin(1).await;
    let keeper = cluster.sites[0].keeper();
    let (a, b) = (cluster.sites[0].id(), B);
    let http = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n".to_vec();
    refused(keeper, http, "does not come from a Soloist node").await;
    let of_c = greeting("c", "a", b, a);
    let text = "its hello names node c, but its certificate is for node b";
    refused(keeper, of_c, text).await;
    let elsewhere = "looks for node c at the address of node a";
    refused(keeper, hello("c", a), elsewhere).await;
    refused(keeper, hello("a", a ^ 1), "a node that is promoted again").await;

    let after_hello = |bytes: Vec<u8>| [hello("a", a), bytes].concat();
    let too_long = (FRAME_BYTES_MAX as u32 + 1).to_le_bytes().to_vec();
    refused(keeper, after_hello(too_long), "(allowed:").await;
    let too_short = 7_u32.to_le_bytes().to_vec();
    refused(keeper, after_hello(too_short), "a frame of 7 bytes").await;
    refused(keeper, after_hello(raw_frame(0, &[])), "without a number").await;
    refused(
        keeper,
        after_hello(raw_frame(1, &[9, 9])),
        "cannot be decoded",
    )
    .await;
    let vote = VoteRequest::new(Vote::new(1, b), None);
    let mut more = postcard::to_allocvec(&(1_u8, &vote)).unwrap();
    more.push(0);
    refused(keeper, after_hello(raw_frame(1, &more)), "1 extra bytes").await;

    let of_c = VoteRequest::new(Vote::new(9, b + 1), None);
    refused(keeper, by_b(a, 1, &of_c), "in the name of keeper").await;
    let last_term = VoteRequest::new(Vote::new(u64::MAX, b), None);
    refused(
        keeper,
        by_b(a, 1, &last_term),
        "the term 18446744073709551615",
    )
    .await;
    let leads = Vote::new_committed(1, b);
    let last_index = append(leads, Some(id(u64::MAX)), &[]);
    refused(
        keeper,
        by_b(a, 0, &last_index),
        "the index 18446744073709551615",
    )
    .await;
    let hole = append(leads, Some(id(3)), &[4, 6]);
    refused(keeper, by_b(a, 0, &hole), "the entry 6 instead of entry 5").await;
    let far = InstallSnapshotRequest::<Types> {
        vote: leads,
        meta: Default::default(),
        offset: SNAPSHOT_BYTES_MAX,
        data: vec![0],
        done: false,
    };
    refused(keeper, by_b(a, 2, &far), "a snapshot of").await;

    // The keeper still works.
    cluster.begin(2).await;
}

/// Random bytes, some of them after a valid beginning, from a fixed seed.
#[tokio::test(flavor = "multi_thread")]
async fn noise_does_no_harm() {
    let cluster = Cluster::start(&["a"]).await;
    cluster.begin(1).await;
    let keeper = cluster.sites[0].keeper();
    let a = cluster.sites[0].id();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for _ in 0..300 {
        let length = random() as usize % 200;
        let noise: Vec<u8> = (0..length).map(|_| random() as u8).collect();
        let kind = (random() % 3) as u8;
        let (mut stream, serving) = connect(keeper, "a");
        let bytes = match random() % 3 {
            0 => noise,
            1 => [hello("a", a), noise].concat(),
            _ => [hello("a", a), raw_frame(1, &[vec![kind], noise].concat())].concat(),
        };
        let _ = stream.write_all(&bytes).await;
        drop(stream);
        serving.await.unwrap();
    }
    cluster.begin(2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_connection_of_a_keeper_replaces_the_first() {
    let cluster = Cluster::start(&["a"]).await;
    let keeper = cluster.sites[0].keeper();
    let mut streams = Vec::new();
    let mut before: Option<JoinHandle<ServeEnd>> = None;
    for _ in 0..3 {
        let (mut stream, serving) = connect(keeper, "a");
        stream
            .write_all(&hello("a", cluster.sites[0].id()))
            .await
            .unwrap();
        stream.read_u8().await.unwrap();
        streams.push(stream);
        if let Some(before) = before.replace(serving) {
            assert_eq!(before.await.unwrap(), ServeEnd::Replaced);
        }
    }
    keeper.shutdown().await;
    assert_eq!(before.unwrap().await.unwrap(), ServeEnd::Stopping);
}

/// The node at b's address presents a certificate for another name. To a, b is unreachable.
#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_name_in_the_certificate_is_refused() {
    let cluster = Cluster::start(&["a"]).await;
    let mut b = cluster.site("b").await;
    let honest = b.identity.clone();
    b.identity = identity(&cluster.authority, "mallory");
    b.start().await;
    let chief = cluster.sites[0].keeper();
    let error = chief.appoint_learner(b.id(), b.node.clone()).await;
    assert!(
        matches!(error, Err(KeeperError::Behind { .. })),
        "{error:?}"
    );
    assert!(b.keeper().is_new());
    b.stop().await;
    b.identity = honest;
    b.start().await;
    chief.promote(b.id(), b.node.clone()).await.unwrap();
    until("the right one is heard", || {
        b.keeper().view().leader.is_some()
    })
    .await;
}

/// A certificate of another CA fails in the TLS handshake, before any hello.
#[tokio::test(flavor = "multi_thread")]
async fn another_authoritys_certificate_is_refused() {
    let mut cluster = Cluster::start(&["a"]).await;
    cluster.sites[0].stop().await;
    let mut settings = cluster.sites[0].settings();
    settings.majority_timeout = Duration::from_secs(1);
    cluster.sites[0].start_with(settings).await;
    cluster.begin(1).await;
    let other = Authority::new("other").unwrap();
    let mut stranger = Site::new(&other, cluster.identity, "b").await;
    stranger.start().await;
    let chief = cluster.sites[0].keeper();
    let promoted = chief.promote(stranger.id(), stranger.node.clone());
    assert!(promoted.await.is_err());
    assert!(stranger.keeper().view().keepers.is_empty());
    cluster.begin(2).await;
}
