//! Nodes of another cluster whose certificates are from the same CA.

use soloist_api::NodeName;
use soloist_core::Incarnation;
use soloist_core::cluster_identity::{ClusterId, ClusterIdentity, Generation};
use soloist_node::identity::Identity;
use soloist_transport::hello::{PREFACE, VERSIONS};
use soloist_transport::{Code, ConnectionError, Endpoint, Purpose, Refusal, Reply, Security};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::{TIMEOUT, cluster};

fn purposes() -> [Purpose; 4] {
    let fingerprint = [7; 32];
    [
        Purpose::Link {
            fingerprint,
            incarnation: Incarnation(1),
            to_incarnation: None,
        },
        Purpose::Member { fingerprint },
        Purpose::Keeper {
            from_id: 1,
            to_id: 2,
        },
        Purpose::Forward,
    ]
}

fn a_cluster(id: u8) -> ClusterIdentity {
    ClusterIdentity {
        id: ClusterId::from_bytes([id; 16]),
        generation: Generation {
            number: 0,
            nonce: 7,
        },
    }
}

fn endpoint(security: Security, cluster: ClusterIdentity) -> Endpoint {
    let name: NodeName = "n2".parse().unwrap();
    Endpoint::new(name, security).in_cluster(watch::channel(Some(cluster)).1)
}

async fn refused(endpoint: &Endpoint, address: &str, purpose: Purpose) -> Refusal {
    let to: NodeName = "n1".parse().unwrap();
    match endpoint.dial(&to, address, purpose.clone(), TIMEOUT).await {
        Err(ConnectionError::Refused(refusal)) => refusal,
        Err(error) => panic!("{purpose:?}: {error}"),
        Ok(_) => panic!("{purpose:?}: the connection is welcome"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_refuses_a_node_of_another_cluster_whatever_it_wants() {
    let (cluster, _folder) = cluster(1, "raymond").await;
    let address = cluster.addresses[0].to_string();
    let authority = cluster.authority.as_ref().unwrap();
    let issued = authority.issue(&"n2".parse().unwrap(), &[]).unwrap();
    let identity = Identity::from_pem(authority.certificate(), &issued.certificate, &issued.key);
    let identity = identity.unwrap();
    let other = a_cluster(1);
    let endpoint = |cluster| endpoint(Security::tls(&identity), cluster);
    for purpose in purposes() {
        let refusal = refused(&endpoint(other), &address, purpose.clone()).await;
        assert_eq!(refusal.code, Code::Cluster, "{purpose:?}: {refusal:?}");
        let mine = refusal.cluster.expect("it says which cluster is its own");
        let says = format!(
            "n1 refused: node n2 belongs to cluster {other}, and node n1 belongs to cluster {mine}"
        );
        assert!(refusal.reason.starts_with(&says), "{}", refusal.reason);
        // Within the right cluster, these hellos are refused for another reason.
        let refusal = refused(&endpoint(mine), &address, purpose.clone()).await;
        assert_ne!(refusal.code, Code::Cluster, "{purpose:?}: {refusal:?}");
    }
    cluster.stop().await;
}

#[tokio::test]
async fn a_node_refuses_a_peer_of_another_cluster_that_accepts_it() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (mine, theirs) = (a_cluster(1), a_cluster(2));
    tokio::spawn(async move {
        loop {
            let (mut tcp, _) = listener.accept().await.unwrap();
            let mut preface = PREFACE;
            tcp.read_exact(&mut preface).await.unwrap();
            let bytes = tcp.read_u16_le().await.unwrap();
            tcp.read_exact(&mut vec![0; bytes.into()]).await.unwrap();
            let welcome = Reply::Welcome {
                version: VERSIONS.lowest,
                cluster: Some(theirs),
            };
            tcp.write_all(&welcome.encode()).await.unwrap();
        }
    });
    let endpoint = endpoint(Security::Plain, mine);
    for purpose in purposes() {
        let refusal = refused(&endpoint, &address, purpose.clone()).await;
        assert_eq!(refusal.code, Code::Cluster, "{purpose:?}: {refusal:?}");
        let says =
            format!("node n2 belongs to cluster {mine}, and node n1 belongs to cluster {theirs}");
        assert!(refusal.reason.starts_with(&says), "{}", refusal.reason);
    }
}
