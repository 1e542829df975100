//! Arbitrary input from the network. Input that a tree algorithm refuses leaves it unchanged.

use proptest::prelude::*;
use soloist_algorithms::neilsen_mizuno::{NeilsenMizuno, NeilsenMizunoMessage};
use soloist_algorithms::raymond::{self, Raymond, RaymondMessage, Relation};
use soloist_algorithms::shape::{Shape, Tree};
use soloist_algorithms::{
    Algorithm, Config, NodeId, Outbox, Phase, Place, Start, VariantSet, Violation,
};

fn node(number: u32) -> NodeId {
    NodeId::new(number)
}

fn config(form: &str, nodes: usize, me: u32, home: u32) -> Config<Tree> {
    Config {
        place: Place {
            me: node(me),
            shape: Tree::parse(form, nodes).unwrap().into(),
        },
        start: Start::idle(node(home)),
        variants: VariantSet::default(),
    }
}

#[derive(Clone, Debug)]
enum Input<M> {
    Request,
    Release,
    Settled,
    Receive(u32, M),
}

fn inputs<M: Clone + std::fmt::Debug>(
    message: impl Strategy<Value = M>,
) -> impl Strategy<Value = Vec<Input<M>>> {
    let input = prop_oneof![
        1 => Just(Input::Request),
        1 => Just(Input::Release),
        1 => Just(Input::Settled),
        5 => (0..8_u32, message).prop_map(|(from, message)| Input::Receive(from, message)),
    ];
    prop::collection::vec(input, 0..60)
}

fn raymond_messages() -> impl Strategy<Value = RaymondMessage> {
    let relations = prop::sample::select(vec![
        Relation::Holder,
        Relation::HolderAsked,
        Relation::Queued,
        Relation::NotQueued,
        Relation::Unknown,
    ]);
    prop_oneof![
        Just(RaymondMessage::Request),
        Just(RaymondMessage::Privilege),
        Just(RaymondMessage::PrivilegeRequest),
        Just(RaymondMessage::Initialize),
        any::<u64>().prop_map(RaymondMessage::Restart),
        (0..3_u64, relations).prop_map(|(of, relation)| RaymondMessage::Advise(of, relation)),
    ]
}

/// Feeds arbitrary input to a node. Refused input has no effect, and accepted input preserves the
/// invariants.
fn stands<A: Algorithm>(mut state: A, inputs: Vec<Input<A::Message>>) -> Result<(), TestCaseError> {
    let mut out = Outbox::new();
    state.start(&mut out);
    for input in inputs {
        out.clear();
        let before = state.clone();
        let result = match input.clone() {
            Input::Request => state.request(&mut out),
            Input::Release => state.release(&mut out),
            Input::Settled => {
                state.settled(&mut out);
                Ok(())
            }
            Input::Receive(from, message) => state.receive(node(from), message, &mut out),
        };
        if result.is_err() {
            prop_assert_eq!(&state, &before, "{:?}", input);
            prop_assert!(out.is_empty(), "{:?}", input);
        }
        prop_assert_eq!(state.invariant(), Ok(()), "{:?}", input);
    }
    Ok(())
}

proptest! {
    #[test]
    fn raymond_tolerates_any_input(
        me in 0..6_u32,
        home in 0..6_u32,
        names in prop::sample::subsequence(
            vec!["piggyback", "greedy", "initialize", "second-wait", "duplicates"], 0..=5),
        recovers in any::<bool>(),
        inputs in inputs(raymond_messages()),
    ) {
        let variants = VariantSet::parse(&names.join(","), &Raymond::INFO).unwrap();
        let config = Config { variants, ..config("star:3", 6, me, home) };
        let state = match recovers {
            true => Raymond::recovering(&config, 1).unwrap(),
            false => Raymond::new(&config),
        };
        stands(state, inputs)?;
    }

    #[test]
    fn neilsen_mizuno_tolerates_any_input(
        me in 0..6_u32,
        home in 0..6_u32,
        inputs in inputs(prop_oneof![
            (0..8_u32).prop_map(|origin| NeilsenMizunoMessage::Request(node(origin))),
            Just(NeilsenMizunoMessage::Privilege),
        ]),
    ) {
        stands(NeilsenMizuno::new(&config("star:3", 6, me, home)), inputs)?;
    }
}

fn reason(result: Result<(), Violation>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn raymond_says_why_it_refuses() {
    use RaymondMessage::{Initialize, Privilege, PrivilegeRequest, Request};
    // A line 0 - 1 - 2 - 3, with the privilege at 0.
    let mut one = Raymond::new(&config("line", 4, 1, 0));
    let mut out = Outbox::new();
    let mut refusal = |from, message| reason(one.receive(node(from), message, &mut out));
    assert_eq!(
        refusal(3, Request),
        "REQUEST from node 3 refused: it is not a neighbour in the tree"
    );
    assert_eq!(
        refusal(0, Request),
        "REQUEST from node 0 refused: the privilege is on its own side and was not requested"
    );
    assert_eq!(
        refusal(0, Privilege),
        "PRIVILEGE from node 0 refused: no REQUEST for the privilege was sent to it"
    );
    assert_eq!(
        refusal(2, Privilege),
        "PRIVILEGE from node 2 refused: the privilege is not on its side"
    );
    assert_eq!(
        refusal(0, PrivilegeRequest),
        "PRIVILEGE+REQUEST from node 0 refused: nothing is piggybacked in this cluster"
    );
    assert_eq!(
        refusal(0, Initialize),
        "INITIALIZE from node 0 refused: this node knows where the privilege is"
    );
    one.receive(node(2), Request, &mut out).unwrap();
    assert_eq!(
        reason(one.receive(node(2), Request, &mut out)),
        "REQUEST from node 2 refused: its previous request has not been served"
    );
}

/// The hub of a star does not search its queue for each message, but the queue never grows beyond
/// all neighbours and the node itself.
#[test]
fn the_queue_of_a_hub_is_bounded() {
    let leaves = 100;
    let mut hub = Raymond::new(&config("star:100", leaves + 1, 0, 1));
    let mut out = Outbox::new();
    for leaf in 2..=leaves as u32 {
        hub.receive(node(leaf), RaymondMessage::Request, &mut out)
            .unwrap();
    }
    hub.request(&mut out).unwrap();
    assert_eq!(out.sends().count(), 1, "all of them are asked for once");
    let again = (0..10).filter(|_| {
        hub.receive(node(2), RaymondMessage::Request, &mut out)
            .is_ok()
    });
    assert!(again.count() <= 1);
}

/// A million nodes must fit in memory. The counters of Raymond's §8.4 take a pointer and a length.
#[test]
fn nodes_are_small() {
    assert!(size_of::<Raymond>() <= 88);
    assert!(size_of::<RaymondMessage>() <= 16);
    assert!(size_of::<NeilsenMizuno>() <= 40);
}

/// Raymond 1989, §8 without neighbours: the only node has the privilege.
#[test]
fn a_node_alone_recovers_at_once() {
    let mut alone = Raymond::recovering(&config("line", 1, 0, 0), 7).unwrap();
    let mut out = Outbox::new();
    alone.request(&mut out).unwrap();
    assert_eq!(alone.phase(), Phase::Waiting);
    assert!(alone.is_recovering() && out.is_empty());
    alone.start(&mut out);
    assert!(out.entered() && !alone.is_recovering());
}

#[test]
fn variants_that_contradict_each_other_are_refused() {
    let all = raymond::AS_PUBLISHED.name.to_owned() + "," + raymond::SECOND_WAIT.name;
    assert!(VariantSet::parse(&all, &Raymond::INFO).is_err());
}
