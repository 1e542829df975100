//! Numbers of states and transitions that another checker counts, which was written independently
//! and keeps the same things in a state. A state or a step missed here would show. The numbers of
//! the crash test are our own, as that test says.

use soloist_algorithms::Channels::{self, Any, Fifo};
use soloist_algorithms::{Choice, NodeId, Start};
use soloist_lab::ShapeSpec;
use soloist_lab::search::{Case, Crashes, ENDLESS, Limits, Report, Verdict};

/// Maekawa 1985, Figs. 1a and 1b.
const FIGURE_1A: &str = "0: 0 1\n1: 1 2\n2: 0 2";
const FIGURE_1B: &str = "0: 0 1 2\n1: 1 3 5\n2: 2 4 5\n3: 0 3 4\n4: 1 4 6\n5: 0 5 6\n6: 2 3 6";

/// A case without history. `algorithm` may have variants after a plus sign.
fn case(algorithm: &str, shape: &str, channels: Channels, requests: &[u8]) -> Case {
    let (name, variants) = algorithm.split_once('+').unwrap_or((algorithm, ""));
    let choice = Choice::parse(name, variants).unwrap();
    Case {
        shape: match shape {
            "" => ShapeSpec::Default,
            listing if listing.contains(':') && listing.contains('\n') => {
                ShapeSpec::Listing(listing.to_owned())
            }
            form => ShapeSpec::Form(form.to_owned()),
        },
        requests: requests.to_vec(),
        limits: Limits {
            keep_history: false,
            ..Limits::new(channels)
        },
        ..Case::new(choice, requests.len(), 1)
    }
}

fn run(case: &Case) -> Report {
    case.run(&mut |_| true).unwrap()
}

/// Algorithm, shape, channels, requests per node, and the states and transitions to expect.
type Row<'a> = (&'a str, &'a str, Channels, &'a [u8], usize, usize);

#[track_caller]
fn agree(rows: &[Row]) {
    for &(algorithm, shape, channels, requests, states, transitions) in rows {
        counts(
            &case(algorithm, shape, channels, requests),
            states,
            transitions,
        );
    }
}

#[track_caller]
fn counts(case: &Case, states: usize, transitions: usize) {
    let report = run(case);
    assert_eq!(report.verdict, Verdict::Holds, "{report:#?}");
    let counted = (report.states, report.transitions);
    assert_eq!(counted, (Some(states), Some(transitions)), "{report:#?}");
}

#[test]
fn trees_have_as_many_states_as_elsewhere() {
    let both = "raymond+greedy,piggyback";
    agree(&[
        ("raymond", "line", Any, &[ENDLESS; 4], 664, 1_880),
        ("raymond", "line", Any, &[ENDLESS; 5], 3_692, 12_494),
        ("raymond", "star:4", Any, &[ENDLESS; 5], 4_952, 14_336),
        ("raymond", "kary:2", Any, &[ENDLESS; 7], 115_872, 486_344),
        (
            "raymond+greedy",
            "kary:2",
            Any,
            &[ENDLESS; 6],
            9_280,
            41_084,
        ),
        (
            "raymond+piggyback",
            "kary:2",
            Any,
            &[ENDLESS; 6],
            24_556,
            91_022,
        ),
        (both, "kary:2", Any, &[ENDLESS; 6], 10_216, 44_492),
        ("raymond+piggyback", "line", Any, &[ENDLESS; 3], 120, 268),
        ("raymond+piggyback", "line", Any, &[ENDLESS; 4], 758, 2_086),
        (
            "raymond+piggyback",
            "star:3",
            Any,
            &[ENDLESS; 4],
            796,
            2_080,
        ),
        ("raymond", "kary:2", Any, &[2; 5], 182_762, 540_699),
    ]);
}

/// A node may request before INITIALIZE has reached it.
#[test]
fn a_tree_to_be_initialised_has_as_many_states_as_elsewhere() {
    let case = Case {
        start: Start::idle(NodeId::new(1)),
        ..case("raymond+initialize", "kary:2", Any, &[ENDLESS; 6])
    };
    counts(&case, 59_218, 275_652);
}

#[test]
fn meshes_have_as_many_states_as_elsewhere() {
    let mesh = "chaudhuri-karaata";
    let printed = "chaudhuri-karaata+as-published";
    agree(&[
        (mesh, "1x1x4", Any, &[ENDLESS; 4], 664, 1_880),
        (mesh, "1x1x4", Fifo, &[ENDLESS; 4], 486, 1_376),
        (mesh, "1x1x5", Fifo, &[ENDLESS; 5], 2_596, 8_798),
        (mesh, "1x2x3", Fifo, &[ENDLESS; 6], 11_921, 44_819),
        (mesh, "1x2x3", Any, &[ENDLESS; 6], 19_332, 71_505),
        (printed, "1x1x2", Fifo, &[ENDLESS; 2], 14, 24),
    ]);
    for (shape, requests, steps) in [("1x1x3", &[0, 1, 1][..], 10), ("1x2x2", &[1; 4], 8)] {
        deadlocks_in(&case(printed, shape, Fifo, requests), steps);
    }
}

/// Asserts that the shortest way to a deadlock has this many steps.
#[track_caller]
fn deadlocks_in(case: &Case, steps: usize) {
    let report = run(case);
    assert_eq!(report.verdict, Verdict::Deadlock, "{report:#?}");
    let transcript = report.transcript.unwrap();
    let taken = transcript
        .lines()
        .filter(|line| line.starts_with("> "))
        .count();
    // The first step is `start`.
    assert_eq!(taken - 1, steps, "{transcript}");
}

#[test]
fn toruses_have_as_many_states_as_elsewhere() {
    let row = [0, 0, 0, 0, 0, 0, ENDLESS, ENDLESS, ENDLESS];
    agree(&[
        ("neamatollahi", "2x2", Fifo, &[ENDLESS; 4], 48_566, 194_790),
        ("neamatollahi", "3x3", Fifo, &row, 19_491, 61_224),
    ]);
}

#[test]
fn permissions_have_as_many_states_as_elsewhere() {
    let four = [0, 1, 1, 1, 1, 0, 0];
    agree(&[
        ("ricart-agrawala", "", Fifo, &[3; 3], 178_147, 498_114),
        ("ricart-agrawala", "", Any, &[2; 3], 45_401, 147_460),
        ("lodha-kshemkalyani", "", Fifo, &[2; 3], 86_382, 233_920),
        ("maekawa", FIGURE_1B, Fifo, &four, 187_690, 872_983),
        ("maekawa", FIGURE_1A, Fifo, &[3; 3], 123_697, 306_358),
        ("maekawa", FIGURE_1A, Fifo, &[2; 3], 12_903, 29_931),
    ]);
}

/// Fig. 1b as printed, three and four requesters, one request each: two choices deadlock.
#[test]
#[ignore = "a minute"]
fn the_plane_as_printed_deadlocks_with_the_same_requesters_as_elsewhere() {
    let mut deadlocks = Vec::new();
    for bits in 0_u8..1 << 7 {
        if ![3, 4].contains(&bits.count_ones()) {
            continue;
        }
        let requests: Vec<u8> = (0..7).map(|node| bits >> node & 1).collect();
        let case = case("maekawa+as-published", FIGURE_1B, Fifo, &requests);
        match run(&case).verdict {
            Verdict::Holds => {}
            Verdict::Deadlock => deadlocks.push(requests),
            verdict => panic!("{verdict:?}: {requests:?}"),
        }
    }
    // The paper's nodes 2, 3, 4, 5 and 2, 5, 6, 7.
    let expected = [[0, 1, 1, 1, 1, 0, 0], [0, 1, 0, 0, 1, 1, 1]];
    assert_eq!(deadlocks, expected);
}

/// The middle node of a line crashes. Loss of what reaches it while it is down does no harm.
///
/// Unlike the other numbers in this file, these are our own. The other checker has the same verdict
/// and 16,473 states without losses. With the token at node 1 there are 17,123 here, and with the
/// longer wait of §8.7 17,377. No setting that we tried gives 16,473, and we do not know which part
/// of a state differs, so these counts only guard against changes.
#[test]
fn crashes_of_one_node_with_and_without_losses_hold() {
    let mut case = case("raymond", "line", Fifo, &[2; 3]);
    case.limits.crashes.most = 1;
    case.crash_only(&[NodeId::new(1)]).unwrap();
    counts(&case, 17_567, 56_789);
    case.limits.crashes.loses_messages = true;
    counts(&case, 19_318, 63_026);
}

#[test]
fn duplicates_after_two_crashes_never_rest() {
    let mut case = case("raymond+duplicates", "line", Fifo, &[1; 2]);
    case.limits.crashes = Crashes {
        most: 2,
        ..Crashes::default()
    };
    assert_eq!(run(&case).verdict, Verdict::Unrest);
}

#[test]
#[ignore = "minutes and gigabytes"]
fn large_clusters_have_as_many_states_as_elsewhere() {
    agree(&[
        (
            "chaudhuri-karaata",
            "2x2x2",
            Fifo,
            &[ENDLESS; 8],
            715_450,
            3_039_302,
        ),
        ("ricart-agrawala", "", Any, &[1; 4], 2_084_955, 13_433_284),
        (
            "lodha-kshemkalyani",
            "",
            Fifo,
            &[3; 3],
            1_433_323,
            4_084_920,
        ),
        (
            "lodha-kshemkalyani",
            "",
            Fifo,
            &[1; 4],
            1_445_916,
            7_011_177,
        ),
    ]);
}
