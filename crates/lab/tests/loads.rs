//! Which nodes request, how long they stay inside, how long messages take, and traces.

use soloist_algorithms::Choice;
use soloist_lab::simulate::{
    Setup, SimulateError, TraceEvent, TraceKind, simulate, simulate_traced,
};

fn setup(algorithm: &str, nodes: usize, load: &str) -> Setup {
    Setup {
        load: load.parse().unwrap(),
        entries: 600,
        ..Setup::new(Choice::parse(algorithm, "").unwrap(), nodes)
    }
}

/// The events of a run that goes well.
fn trace(setup: &Setup) -> Vec<TraceEvent> {
    let mut events = Vec::new();
    let report =
        simulate_traced(setup, &mut |_| (), &mut |event| events.push(event.clone())).unwrap();
    assert!(report.is_well(), "{report:#?}");
    let plain = simulate(setup, &mut |_| ()).unwrap();
    assert_eq!(report, plain, "tracing changes nothing");
    events
}

/// Number of requests of each node.
fn requests(events: &[TraceEvent], nodes: usize) -> Vec<u32> {
    let mut counts = vec![0; nodes];
    for event in events {
        counts[event.node as usize] += u32::from(event.event == TraceKind::Request);
    }
    counts
}

/// For a node, the spans from each event of one kind to its next event of the other kind.
fn spans(events: &[TraceEvent], node: u32, from: TraceKind, to: TraceKind) -> Vec<f64> {
    let (mut since, mut spans) = (None, Vec::new());
    for event in events.iter().filter(|event| event.node == node) {
        if event.event == to {
            spans.extend(since.take().map(|since: f64| event.time - since));
        }
        if event.event == from {
            since = Some(event.time);
        }
    }
    spans
}

#[test]
fn only_the_given_nodes_request() {
    for load in ["light", "heavy", "burst", "poisson:0.2", "think:5"] {
        for algorithm in ["raymond", "maekawa", "neamatollahi"] {
            let setup = Setup {
                requesters: "1,4-5".parse().unwrap(),
                entries: if load == "burst" { 3 } else { 300 },
                ..setup(algorithm, 7, load)
            };
            let counts = requests(&trace(&setup), 7);
            for (node, count) in counts.iter().enumerate() {
                let requests = [1, 4, 5].contains(&node);
                assert_eq!(*count > 0, requests, "{algorithm}, {load}: {counts:?}");
            }
        }
    }
}

#[test]
fn a_node_that_starts_inside_but_is_no_requester_never_requests() {
    for load in ["heavy", "burst", "think:5"] {
        let setup = Setup {
            requesters: "1-2".parse().unwrap(),
            start: soloist_algorithms::Start::inside(soloist_algorithms::NodeId::new(0)),
            entries: if load == "burst" { 2 } else { 100 },
            ..setup("raymond", 4, load)
        };
        assert_eq!(requests(&trace(&setup), 4)[0], 0, "{load}");
    }
}

#[test]
fn zipf_requests_in_proportion() {
    for load in ["light", "poisson:0.1", "think:200"] {
        let setup = Setup {
            requesters: "zipf:1".parse().unwrap(),
            entries: 6000,
            ..setup("central", 4, load)
        };
        let counts = requests(&trace(&setup), 4);
        // 12, 6, 4 and 3 of 25. Under think, nodes that request often also wait more often.
        for (count, share) in counts.iter().zip([12.0, 6.0, 4.0, 3.0]) {
            let expected = 6000.0 * share / 25.0;
            let error = (f64::from(*count) / expected - 1.0).abs();
            assert!(error < 0.12, "{load}: {counts:?}");
        }
    }
}

#[test]
fn requesters_that_do_not_fit_are_refused() {
    let run = |requesters: &str, load: &str| {
        let setup = Setup {
            requesters: requesters.parse().unwrap(),
            ..setup("raymond", 4, load)
        };
        simulate(&setup, &mut |_| ())
    };
    for (requesters, load) in [("4", "light"), ("zipf:1", "heavy"), ("zipf:1", "burst")] {
        let error = run(requesters, load).unwrap_err();
        assert!(matches!(error, SimulateError::Requesters(_)), "{error}");
    }
}

#[test]
fn holds_follow_their_distribution() {
    for (hold, low, mean, high) in [
        ("2", 2.0, 2.0, 2.0),
        ("uniform:1..3", 1.0, 2.0, 3.0),
        ("exponential:2", 0.0, 2.0, f64::INFINITY),
    ] {
        let setup = Setup {
            hold: hold.parse().unwrap(),
            entries: 4000,
            ..setup("raymond", 5, "heavy")
        };
        let events = trace(&setup);
        let of_node = |node| spans(&events, node, TraceKind::Enter, TraceKind::Leave);
        let holds: Vec<_> = (0..5).flat_map(of_node).collect();
        assert_eq!(holds.len(), 4000);
        let found = holds.iter().sum::<f64>() / 4000.0;
        assert!((found - mean).abs() < 0.15, "{hold}: {found}");
        assert!(
            holds.iter().all(|span| (low..=high).contains(span)),
            "{hold}"
        );
    }
}

/// Each node draws from its own stream: the same pauses and holds for every algorithm.
#[test]
fn all_algorithms_see_the_same_demand() {
    let runs = ["raymond", "naimi-trehel", "maekawa"].map(|algorithm| {
        let setup = Setup {
            hold: "exponential:1".parse().unwrap(),
            ..setup(algorithm, 6, "think:20")
        };
        trace(&setup)
    });
    for node in 0..6 {
        for (from, to) in [
            (TraceKind::Leave, TraceKind::Request),
            (TraceKind::Enter, TraceKind::Leave),
        ] {
            let [first, others @ ..] = runs.each_ref().map(|run| spans(run, node, from, to));
            for other in others {
                let common = first.len().min(other.len());
                assert!(common > 50, "node {node}");
                assert_eq!(first[..common], other[..common], "node {node}");
            }
        }
    }
}

#[test]
fn messages_between_zones_take_longer() {
    let setup = Setup {
        delay: "zones:2:1/8".parse().unwrap(),
        ..setup("ricart-agrawala", 4, "light")
    };
    let events = trace(&setup);
    for sent in events.iter().filter(|event| event.event == TraceKind::Send) {
        let peer = sent.peer.unwrap();
        let far = (sent.node < 2) != (peer < 2);
        let arrives = sent.time + if far { 8.0 } else { 1.0 };
        let arrival = events.iter().find(|event| {
            event.event == TraceKind::Receive
                && (event.node, event.peer) == (peer, Some(sent.node))
                && event.time == arrives
        });
        assert!(arrival.is_some(), "{sent:?}");
    }
}
