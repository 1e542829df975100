//! Messages that a node of Chaudhuri-Karaata refuses: it changes nothing and sends nothing.

use std::sync::Arc;

use soloist_algorithms::chaudhuri_karaata::{
    AS_PUBLISHED, ChaudhuriKaraata, ChaudhuriKaraataMessage,
};
use soloist_algorithms::shape::{Mesh, Shape};
use soloist_algorithms::{Algorithm, Config, NodeId, Outbox, Phase, Place, VariantSet};

use ChaudhuriKaraataMessage::{Interchange, Permit, Release, Request};

fn node(number: u32) -> NodeId {
    NodeId::new(number)
}

/// A node of the 27-node mesh of Fig. 2. The heads are 0, 9 and 18, and plane 0 is privileged.
fn of_figure_2(me: u32) -> ChaudhuriKaraata {
    ChaudhuriKaraata::new(&Config::first(27).at(node(me)))
}

fn as_published(me: u32) -> ChaudhuriKaraata {
    let config = Config {
        variants: VariantSet::default().with(AS_PUBLISHED),
        ..Config::first(27)
    };
    ChaudhuriKaraata::new(&config.at(node(me)))
}

#[track_caller]
fn refuses(state: &ChaudhuriKaraata, from: u32, message: ChaudhuriKaraataMessage, why: &str) {
    let mut after = state.clone();
    let mut out = Outbox::new();
    let refused = after.receive(node(from), message, &mut out).unwrap_err();
    assert!(refused.to_string().contains(why), "{refused}");
    assert_eq!(&after, state);
    assert!(out.is_empty());
}

#[track_caller]
fn takes(state: &mut ChaudhuriKaraata, from: u32, message: ChaudhuriKaraataMessage) {
    let mut out = Outbox::new();
    state.receive(node(from), message, &mut out).unwrap();
    state.invariant().unwrap();
}

const OFF_THE_WAY: &str = "not next to this node on the message's way";

#[test]
fn node_numbers_that_do_not_exist() {
    for message in [Request, Permit, Interchange, Release] {
        for me in [0, 4, 9] {
            let state = of_figure_2(me);
            refuses(&state, 1, message(node(27)), "no node 27");
            refuses(&state, 1, message(node(u32::MAX)), "no node");
            refuses(&state, 27, message(node(1)), "no node 27");
            refuses(&state, me, message(node(1)), "to itself");
        }
    }
}

/// In plane 0 of Fig. 2, (i,j,0) is node 3i + j: 4 is (1,1), between 1 above and 7 below.
#[test]
fn messages_off_their_way() {
    let relay = of_figure_2(4);
    refuses(&relay, 5, Request(node(5)), OFF_THE_WAY); // no link along row 1
    refuses(&relay, 1, Request(node(7)), OFF_THE_WAY); // from above
    refuses(&relay, 7, Request(node(8)), OFF_THE_WAY); // another column's
    refuses(&relay, 7, Request(node(4)), OFF_THE_WAY); // its own
    refuses(&relay, 7, Request(node(16)), OFF_THE_WAY); // another plane's
    refuses(&relay, 1, Release(node(7)), OFF_THE_WAY);
    refuses(&relay, 7, Permit(node(7)), OFF_THE_WAY); // from below
    refuses(&relay, 1, Permit(node(8)), OFF_THE_WAY);
    refuses(&relay, 1, Permit(node(0)), OFF_THE_WAY);
    refuses(&relay, 1, Interchange(node(9)), "only heads have tokens");

    let head = of_figure_2(9);
    refuses(&head, 13, Request(node(13)), OFF_THE_WAY); // not hop by hop
    refuses(&head, 0, Request(node(1)), OFF_THE_WAY); // a member of another plane
    refuses(&head, 18, Request(node(0)), OFF_THE_WAY); // from the wrong side
    refuses(&head, 10, Release(node(18)), OFF_THE_WAY);
    refuses(&head, 10, Permit(node(9)), "permits itself");
}

#[test]
fn a_second_request_before_the_grant() {
    let mut head = of_figure_2(9);
    takes(&mut head, 10, Request(node(13)));
    refuses(&head, 10, Request(node(13)), "has not been granted");
    takes(&mut head, 18, Request(node(18)));
    refuses(&head, 18, Request(node(18)), "has not been granted");
}

#[test]
fn a_token_that_was_not_asked_for() {
    let mut head = of_figure_2(9);
    refuses(&head, 0, Interchange(node(9)), "no token is expected");
    takes(&mut head, 10, Request(node(13)));
    refuses(&head, 18, Interchange(node(9)), "no token is expected");
    refuses(&head, 0, Interchange(node(18)), "no token is expected");
    takes(&mut head, 0, Interchange(node(9)));
    assert!(head.has_token());
    refuses(&head, 0, Interchange(node(9)), "no token is expected");
}

#[test]
fn a_request_from_the_side_where_the_token_is() {
    refuses(&of_figure_2(9), 0, Request(node(0)), "on its side");
}

#[test]
fn a_request_in_another_heads_name() {
    let mut head = ChaudhuriKaraata::new(&Config {
        place: Place {
            me: node(1),
            shape: Arc::new(Mesh::parse("1x1x4", 4).unwrap()),
        },
        ..Config::first(4)
    });
    refuses(&head, 2, Request(node(3)), "for itself");
    takes(&mut head, 2, Request(node(2)));
}

#[test]
fn a_permit_for_a_node_that_has_not_asked() {
    let mut member = of_figure_2(4);
    refuses(&member, 1, Permit(node(4)), "has not requested");
    member.request(&mut Outbox::new()).unwrap();
    takes(&mut member, 1, Permit(node(4)));
    assert_eq!(member.phase(), Phase::Inside);
    refuses(&member, 1, Permit(node(4)), "has not requested");
}

#[test]
fn a_release_by_another_than_the_one_inside() {
    let mut head = of_figure_2(0);
    refuses(&head, 1, Release(node(4)), "was not granted");
    takes(&mut head, 1, Request(node(4)));
    refuses(&head, 1, Release(node(1)), "was not granted");
    takes(&mut head, 1, Release(node(4)));
    refuses(&head, 1, Release(node(4)), "was not granted");
}

/// As published, tokens pass through heads and requests come from far away, but only along the line
/// of heads.
#[test]
fn as_published_messages_off_the_line_of_heads() {
    let head = as_published(9);
    refuses(&head, 18, Request(node(0)), OFF_THE_WAY);
    refuses(&head, 0, Request(node(1)), OFF_THE_WAY);
    refuses(&head, 0, Interchange(node(0)), OFF_THE_WAY);
    refuses(&head, 0, Interchange(node(19)), OFF_THE_WAY);
    refuses(&head, 10, Interchange(node(9)), OFF_THE_WAY);
    refuses(
        &as_published(0),
        9,
        Interchange(node(0)),
        "the token is here",
    );
}

/// A node that is not a head stores only its identity and its phase.
#[test]
fn a_million_nodes_stay_small() {
    assert!(size_of::<ChaudhuriKaraata>() <= 32);
}
