//! A keeper refuses a term far beyond its own. If it adopted such a term, it could never be elected
//! again.

use openraft::Vote;
use openraft::raft::{AppendEntriesRequest, VoteRequest};
use soloist_node::keepers::{ServeEnd, Types};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::hostile::{B, connect, frame, hello};
use crate::net::{Cluster, Site};

/// Sends one frame to a keeper, from a node that has a certificate but is not a keeper. Returns the
/// reason for the refusal.
async fn refusal(site: &Site, content: Vec<u8>) -> String {
    let (mut stream, serving) = connect(site.keeper(), site.node.name.as_str());
    let mut bytes = hello(site.node.name.as_str(), site.id());
    bytes.extend(content);
    stream.write_all(&bytes).await.unwrap();
    stream.shutdown().await.unwrap();
    let mut told = Vec::new();
    stream.read_to_end(&mut told).await.unwrap();
    match serving.await.unwrap() {
        ServeEnd::Refused(reason) => reason,
        end => panic!("{end:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_frame_does_not_end_the_keepers() {
    let mut cluster = Cluster::start(&["a", "x", "y"]).await;
    cluster.begin(1).await;
    cluster.all_have(1).await;
    for far in [u64::MAX >> 1, u64::MAX, (1 << 32) + 1000] {
        let append = AppendEntriesRequest::<Types> {
            vote: Vote::new_committed(far, B),
            prev_log_id: None,
            entries: Vec::new(),
            leader_commit: None,
        };
        let vote = VoteRequest::new(Vote::new(far, B), None);
        for site in &cluster.sites {
            for content in [frame(1, &(0_u8, &append)), frame(1, &(1_u8, &vote))] {
                let reason = refusal(site, content).await;
                let own = site.keeper().view().term;
                let names_both = reason.contains(&format!("the term {far},"))
                    && reason.contains(&format!("in term {own}:"));
                assert!(names_both, "{own}: {reason}");
            }
        }
    }
    cluster.begin(2).await;
    for site in &mut cluster.sites {
        site.stop().await;
    }
    for site in &mut cluster.sites {
        site.start().await;
    }
    cluster.begin(3).await;
    cluster.all_have(3).await;
}
