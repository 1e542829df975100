//! Dialling a node that has several addresses.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::time::{Duration, Instant};

use soloist_api::NodeName;
use soloist_testing::swallowing::Swallowing;
use soloist_transport::{
    Code, ConnectionError, Dialled, Endpoint, Purpose, Refusal, Security, Stream,
};

/// Timeout of a dial. Far more than a handshake takes, also on a busy machine.
const WITHIN: Duration = Duration::from_secs(6);

fn name(name: &str) -> NodeName {
    name.parse().unwrap()
}

/// What a node does with a connection.
#[derive(Clone, Copy)]
enum Answer {
    Welcome,
    Refuse,
}

/// Starts the node `b`, which answers one connection.
fn answering(answer: Answer) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    listener.set_nonblocking(true).unwrap();
    let listener = tokio::net::TcpListener::from_std(listener).unwrap();
    tokio::spawn(async move {
        let endpoint = Endpoint::new(name("b"), Security::Plain);
        let (tcp, _) = listener.accept().await.unwrap();
        let (stream, _) = endpoint.take(tcp).await.unwrap();
        let arrival = endpoint.greet(stream, None, "a").await.unwrap();
        match answer {
            Answer::Welcome => {
                let _open: Stream = arrival.welcome(&[]).await.unwrap();
                std::future::pending::<()>().await;
            }
            Answer::Refuse => arrival.refuse(Refusal::new(Code::Later, "not yet")).await,
        }
    });
    address
}

/// Dials the node `b` at these addresses.
async fn dial(addresses: Vec<SocketAddr>) -> Result<Dialled, ConnectionError> {
    let addresses = [(name("b"), addresses)].into();
    let endpoint = Endpoint::new(name("a"), Security::Plain).reaching(addresses);
    let purpose = Purpose::Member {
        fingerprint: [0; 32],
    };
    endpoint.dial(&name("b"), "b:7401", purpose, WITHIN).await
}

#[tokio::test]
async fn an_address_that_swallows_packets_leaves_time_for_the_others() {
    let swallowing = [Swallowing::start(), Swallowing::start()];
    let [first, second] = swallowing.each_ref().map(Swallowing::address);
    let dialled = dial(vec![first, second, answering(Answer::Welcome)]).await;
    assert!(dialled.is_ok(), "{:?}", dialled.err());
}

#[tokio::test]
async fn an_address_that_accepts_and_says_nothing_leaves_time_for_the_others() {
    let silent = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let first = silent.local_addr().unwrap();
    let dialled = dial(vec![first, answering(Answer::Welcome)]).await;
    assert!(dialled.is_ok(), "{:?}", dialled.err());
}

#[tokio::test]
async fn a_refusal_is_an_answer_and_no_other_address_is_tried() {
    let addresses = vec![answering(Answer::Refuse), answering(Answer::Welcome)];
    let Err(ConnectionError::Refused(refusal)) = dial(addresses).await else {
        panic!("it was refused");
    };
    assert_eq!(refusal.code, Code::Later);
}

#[tokio::test]
async fn the_dial_ends_in_time_if_all_addresses_swallow_packets() {
    let swallowing = [Swallowing::start(), Swallowing::start()];
    let began = Instant::now();
    let failed = dial(swallowing.iter().map(Swallowing::address).collect()).await;
    let Err(ConnectionError::Failed(reason)) = failed else {
        panic!("the node does not answer");
    };
    assert!(reason.contains("no answer within"), "{reason}");
    assert!(began.elapsed() < WITHIN + Duration::from_secs(2));
}
