//! Does every requesting node eventually enter? And does the check find a node that does not?

use soloist_algorithms::central::{Central, CentralMessage};
use soloist_algorithms::kind::Visitor;
use soloist_algorithms::shape::Complete;
use soloist_algorithms::{
    Algorithm, Channels, Config, Info, Kind, NodeId, NodeSet, Outbox, Phase, Place, Variant,
    VariantSet, Violation,
};
use soloist_lab::search::{Bounds, ENDLESS, Limits, Outcome, search};
use soloist_lab::world::Fault;

/// Like [`Bounds::of`], with unlimited requests at all nodes. Stops early if there are infinitely
/// many states.
pub(crate) fn endless<A: Algorithm>(nodes: usize) -> Bounds<A::Shape> {
    Bounds {
        limits: Limits {
            states_max: 1_000_000,
            ..Limits::new(A::INFO.channels)
        },
        ..Bounds::of::<A>(&vec![ENDLESS; nodes])
    }
}

/// Asserts that, with at most `messages_max` messages in flight, every requesting node enters in
/// every fair run.
#[track_caller]
pub(crate) fn serves_all<A: Algorithm>(bounds: &Bounds<A::Shape>, messages_max: usize) {
    let mut bounds = bounds.clone();
    bounds.limits.messages_max = messages_max;
    let outcome = search::<A>(&bounds);
    let Outcome::Holds { cut, .. } = outcome else {
        panic!("{outcome:#?}");
    };
    assert_eq!(
        cut > 0,
        messages_max < usize::MAX,
        "a bound that is reached"
    );
}

#[test]
fn an_algorithm_has_finitely_many_states_unless_it_counts_requests() {
    struct IsFinite;
    impl Visitor for IsFinite {
        type Output = bool;

        fn visit<A: Algorithm>(self) -> bool {
            let mut bounds = endless::<A>(2);
            bounds.limits.states_max = 20_000;
            bounds.limits.messages_max = 4;
            let is_finite = !matches!(search::<A>(&bounds), Outcome::NotExhausted { .. });
            assert_eq!(is_finite, !A::COUNTS_REQUESTS, "{}", A::INFO.name);
            is_finite
        }
    }
    let finite = Kind::ALL.iter().filter(|kind| kind.visit(IsFinite));
    assert_eq!(finite.count(), 7);
}

#[test]
fn a_queue_serves_all() {
    serves_all::<Central>(&endless::<Central>(3), usize::MAX);
}

/// A coordinator, node 0, that grants to the requesting node with the lowest number. It can always
/// serve every node, but need never serve the highest.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct LowestFirst {
    place: Place<Complete>,
    phase: Phase,
    asking: NodeSet,
    granted: bool,
    forgetful: bool,
}

/// A fault: after a RELEASE it grants nothing until the next REQUEST.
const FORGETFUL: Variant = Variant::new(0, "forgetful", "");

impl LowestFirst {
    fn grant(&mut self, out: &mut Outbox<CentralMessage>) {
        let lowest = self.asking.iter().next();
        if let Some(lowest) = lowest.filter(|_| !self.granted) {
            self.granted = true;
            self.asking.remove(lowest);
            out.send(lowest, CentralMessage::Grant);
        }
    }
}

impl Algorithm for LowestFirst {
    type Message = CentralMessage;
    type Shape = Complete;

    const INFO: Info = Info {
        name: "lowest-first",
        ..Central::INFO
    };

    fn new(config: &Config<Complete>) -> Self {
        LowestFirst {
            place: config.place.clone(),
            phase: Phase::Idle,
            asking: NodeSet::new(config.place.nodes()),
            granted: false,
            forgetful: config.variants.has(FORGETFUL),
        }
    }

    fn request(&mut self, out: &mut Outbox<CentralMessage>) -> Result<(), Violation> {
        self.phase.may_request()?;
        self.phase = Phase::Waiting;
        out.send(NodeId::new(0), CentralMessage::Request);
        Ok(())
    }

    fn receive(
        &mut self,
        from: NodeId,
        message: CentralMessage,
        out: &mut Outbox<CentralMessage>,
    ) -> Result<(), Violation> {
        match message {
            CentralMessage::Request => {
                self.asking.insert(from);
                self.grant(out);
            }
            CentralMessage::Grant => {
                self.phase = Phase::Inside;
                out.enter();
            }
            CentralMessage::Release => {
                self.granted = false;
                if !self.forgetful {
                    self.grant(out);
                }
            }
        }
        Ok(())
    }

    fn release(&mut self, out: &mut Outbox<CentralMessage>) -> Result<(), Violation> {
        self.phase.may_release()?;
        self.phase = Phase::Idle;
        out.send(NodeId::new(0), CentralMessage::Release);
        Ok(())
    }

    fn phase(&self) -> Phase {
        self.phase
    }
}

/// Nodes 1 and 2 take turns so fast that node 3 is never the lowest.
#[test]
fn a_node_that_is_never_the_lowest_starves() {
    let bounds = Bounds {
        requests: vec![0, ENDLESS, ENDLESS, ENDLESS],
        ..endless::<LowestFirst>(4)
    };
    let outcome = search::<LowestFirst>(&bounds);
    let Outcome::Starved { node, cycle, .. } = outcome else {
        panic!("{outcome:#?}");
    };
    assert_eq!(node, NodeId::new(3));
    assert!(!cycle.contains(&"request 3".to_owned()));
    for busy in [1, 2] {
        assert!(cycle.contains(&format!("request {busy}")), "{cycle:#?}");
        assert!(cycle.contains(&format!("release {busy}")), "{cycle:#?}");
    }
}

/// When node 1 leaves, node 2 is the only requester and gets its turn, unless node 1's next REQUEST
/// overtakes its RELEASE.
#[test]
fn order_of_messages_decides_who_starves() {
    let in_order = Bounds {
        requests: vec![0, ENDLESS, ENDLESS],
        ..endless::<LowestFirst>(3)
    };
    assert_eq!(in_order.limits.channels, Channels::Fifo);
    serves_all::<LowestFirst>(&in_order, usize::MAX);
    let mut any_order = in_order;
    any_order.limits.channels = Channels::Any;
    let outcome = search::<LowestFirst>(&any_order);
    let Outcome::Starved { node, .. } = outcome else {
        panic!("{outcome:#?}");
    };
    assert_eq!(node, NodeId::new(2));
}

/// No node is obliged to request, so a run may end with a forgotten waiter.
#[test]
fn a_request_that_is_forgotten_is_reported_as_a_deadlock() {
    let bounds = Bounds {
        requests: vec![0, ENDLESS, ENDLESS],
        variants: VariantSet::default().with(FORGETFUL),
        ..endless::<LowestFirst>(3)
    };
    let outcome = search::<LowestFirst>(&bounds);
    let Outcome::Broken { fault, trace } = outcome else {
        panic!("{outcome:#?}");
    };
    assert!(matches!(fault, Fault::Deadlock(_)), "{fault}");
    assert!(trace.last().unwrap().ends_with("0 RELEASE"), "{trace:#?}");
}
