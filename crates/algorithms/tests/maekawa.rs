//! Maekawa 1985 without contention, and messages that it refuses.

use std::collections::VecDeque;

use soloist_algorithms::maekawa::{Maekawa, MaekawaMessage};
use soloist_algorithms::shape::Quorums;
use soloist_algorithms::{Algorithm, Config, Effect, NodeId, Outbox, Phase, Shape, Shown, Start};

use MaekawaMessage::{Failed, Inquire, Locked, Release, Relinquish, Request};

fn cluster(config: &Config<Quorums>) -> Vec<Maekawa> {
    NodeId::all(config.place.nodes())
        .map(|me| Maekawa::new(&config.at(me)))
        .collect()
}

/// Delivers the messages of `node` and all that result from them. Returns the number of messages.
fn settle(cluster: &mut [Maekawa], node: NodeId, out: &mut Outbox<MaekawaMessage>) -> usize {
    let mut under_way = VecDeque::new();
    let mut messages = 0;
    let mut sender = node;
    loop {
        for effect in out.drain() {
            if let Effect::Send { to, message } = effect {
                messages += 1;
                under_way.push_back((sender, to, message));
            }
        }
        let Some((from, to, message)) = under_way.pop_front() else {
            return messages;
        };
        cluster[to.index()].receive(from, message, out).unwrap();
        sender = to;
    }
}

/// §1: 3√N messages. Exactly 3(K-1), since a node sends no message to itself.
#[test]
fn an_entry_without_contention_costs_three_messages_a_member() {
    for (nodes, expected) in [
        (1, 0),
        (3, 3),
        (7, 6),
        (13, 9),
        (21, 12),
        (31, 15),
        (307, 51),
    ] {
        let mut cluster = cluster(&Config::first(nodes));
        let mut out = Outbox::new();
        for node in NodeId::all(nodes) {
            cluster[node.index()].request(&mut out).unwrap();
            let mut messages = settle(&mut cluster, node, &mut out);
            assert_eq!(cluster[node.index()].phase(), Phase::Inside);
            cluster[node.index()].release(&mut out).unwrap();
            messages += settle(&mut cluster, node, &mut out);
            assert_eq!(messages, expected, "node {node} of {nodes}");
        }
    }
}

/// Node 0 of three, with the sets {0,1,2}, {0,1}, {0,2}: its set contains all nodes, and all sets
/// contain it.
fn hub() -> Config<Quorums> {
    let mut config = Config::<Quorums>::first(3);
    let listing = "0: 0 1 2\n1: 0 1\n2: 0 2";
    config.place.shape = Quorums::from_listing(listing, 3).unwrap().into();
    config
}

fn node(number: u32) -> NodeId {
    NodeId::new(number)
}

/// Asserts that `message` from `from` is refused for a reason that contains `why`, and that nothing
/// changes.
#[track_caller]
fn refuses(state: &Maekawa, from: u32, message: MaekawaMessage, why: &str) {
    let mut after = state.clone();
    let mut out = Outbox::new();
    let refused = after.receive(node(from), message, &mut out).unwrap_err();
    assert!(refused.to_string().contains(why), "{refused}");
    assert_eq!(after, *state);
    assert!(out.is_empty());
}

#[test]
fn refuses_messages_that_no_correct_peer_sends() {
    let mut out = Outbox::new();
    let idle = Maekawa::new(&hub());
    refuses(&idle, 3, Request(1), "no node 3");
    refuses(&idle, 0, Request(1), "to itself");
    refuses(&idle, 1, Request(0), "a number that no request has");
    refuses(&idle, 1, Request(u64::MAX), "a number that no request has");
    refuses(&idle, 1, Locked(0), "no LOCKED is expected");
    refuses(&idle, 1, Locked(1), "no LOCKED is expected");
    refuses(&idle, 1, Failed(1), "no such request");
    refuses(&idle, 1, Inquire(0), "no such request");
    refuses(&idle, 1, Relinquish(1), "not locked for that request");
    refuses(&idle, 1, Release(1), "not locked for that request");

    let outsider = Maekawa::new(&hub().at(node(1)));
    refuses(&outsider, 2, Request(1), "not in its set");
    refuses(&outsider, 2, Locked(1), "not in this node's set");

    let mut locked = idle.clone();
    locked.receive(node(2), Request(3), &mut out).unwrap();
    refuses(&locked, 2, Request(3), "is locked for that request");
    refuses(&locked, 2, Release(2), "not locked for that request");
    refuses(&locked, 2, Relinquish(3), "not asked to relinquish");
    locked.receive(node(1), Request(3), &mut out).unwrap();
    refuses(&locked, 1, Request(4), "waits here");
    locked.receive(node(2), Relinquish(3), &mut out).unwrap();
    refuses(&locked, 2, Relinquish(3), "not locked for that request");

    let mut waiting = idle;
    waiting.request(&mut out).unwrap();
    waiting.receive(node(1), Locked(1), &mut out).unwrap();
    refuses(&waiting, 1, Locked(1), "no LOCKED is expected");
    refuses(&waiting, 2, Locked(2), "no LOCKED is expected");
    waiting.receive(node(1), Inquire(1), &mut out).unwrap();
    refuses(&waiting, 1, Inquire(1), "inquired before");
}

/// Step (1): a request's number is greater than those of all requests that the node has sent or
/// received.
#[test]
fn a_request_is_numbered_after_all_that_were_received() {
    let mut state = Maekawa::new(&hub());
    let mut out = Outbox::new();
    state.receive(node(1), Request(41), &mut out).unwrap();
    state.receive(node(2), Request(7), &mut out).unwrap();
    out.clear();
    state.request(&mut out).unwrap();
    let sent: Vec<_> = out.sends().collect();
    assert_eq!(sent, [(node(1), &Request(42)), (node(2), &Request(42))]);
}

/// The members of a node that starts inside know of it from the start, and accept its RELEASE.
#[test]
fn a_node_that_starts_inside_can_leave() {
    for inside in NodeId::all(13) {
        let start = Start::inside(inside);
        let mut cluster = cluster(&Config {
            start,
            ..Config::first(13)
        });
        let mut out = Outbox::new();
        cluster[inside.index()].release(&mut out).unwrap();
        assert_eq!(settle(&mut cluster, inside, &mut out), 3);
        for (state, me) in cluster.iter().zip(NodeId::all(13)) {
            let name = &|node: NodeId| node.to_string();
            let shown = Shown { state, me, name }.to_string();
            assert_eq!(shown, "idle locked-for=none asked-back=false waiting=[]");
        }
    }
}

#[test]
fn request_and_release_are_refused_out_of_turn() {
    let mut only = Maekawa::new(&Config::<Quorums>::first(1));
    let mut out = Outbox::new();
    assert!(only.release(&mut out).is_err());
    only.request(&mut out).unwrap();
    assert!(out.entered());
    assert!(only.request(&mut out).is_err());
    assert_eq!(Quorums::default_for(1).set(node(0)), [node(0)]);
}
