//! The papers' formulas, measured. Where a formula is exact, so is the comparison.

use soloist_algorithms::Choice;
use soloist_lab::ShapeSpec;
use soloist_lab::simulate::{Report, Setup, simulate};

/// A run without violations in which every request is served.
struct Run {
    setup: Setup,
}

impl Run {
    fn of(algorithm: &str, nodes: usize) -> Self {
        let (name, variants) = algorithm.split_once('+').unwrap_or((algorithm, ""));
        Run {
            setup: Setup {
                entries: 2000,
                ..Setup::new(Choice::parse(name, variants).unwrap(), nodes)
            },
        }
    }

    fn shape(mut self, form: &str) -> Self {
        self.setup.shape = ShapeSpec::Form(form.to_owned());
        self
    }

    fn load(mut self, load: &str) -> Self {
        self.setup.load = load.parse().unwrap();
        if load == "burst" {
            self.setup.entries = self.setup.nodes as u64;
        }
        self
    }

    fn delay(mut self, delay: &str) -> Self {
        self.setup.delay = delay.parse().unwrap();
        self
    }

    fn hold(mut self, hold: &str) -> Self {
        self.setup.hold = hold.parse().unwrap();
        self
    }

    fn entries(mut self, entries: u64) -> Self {
        self.setup.entries = entries;
        self
    }

    #[track_caller]
    fn report(self) -> Report {
        let report = simulate(&self.setup, &mut |_| ()).unwrap();
        assert!(report.is_well(), "{report:#?}");
        report
    }

    #[track_caller]
    fn messages_per_entry(self) -> f64 {
        self.report().measures.messages_per_entry
    }
}

#[track_caller]
fn assert_near(measured: f64, expected: f64, tolerance: f64) {
    assert!(
        (measured / expected - 1.0).abs() <= tolerance,
        "measured {measured}, expected {expected} within {tolerance}"
    );
}

const LOADS: [&str; 5] = ["light", "heavy", "burst", "poisson:0.1", "think:10"];

#[test]
fn ricart_agrawala_sends_2_n_minus_1_exactly() {
    for nodes in (1..=12).chain([20, 33, 64]) {
        for load in LOADS {
            let run = Run::of("ricart-agrawala", nodes).entries(200).load(load);
            assert_eq!(
                run.messages_per_entry(),
                2.0 * (nodes - 1) as f64,
                "{nodes} {load}"
            );
        }
    }
}

#[test]
fn lamport_sends_3_n_minus_1_exactly() {
    for nodes in (1..=12).chain([20, 33, 64]) {
        for load in LOADS {
            let run = Run::of("lamport", nodes).entries(200).load(load);
            assert_eq!(
                run.messages_per_entry(),
                3.0 * (nodes - 1) as f64,
                "{nodes} {load}"
            );
        }
    }
}

/// 3 for each entry except the coordinator's own, which are free.
#[test]
fn central_sends_3_for_each_entry_of_another_node() {
    for nodes in [1, 2, 5, 30] {
        let report = Run::of("central", nodes).load("burst").report();
        assert_eq!(report.measures.messages, 3 * (nodes as u64 - 1));
    }
}

/// Maekawa 1985, section 1: 3√N under light load, that is 3(K-1) without messages to oneself.
#[test]
fn maekawa_alone_sends_3_k_minus_1_exactly() {
    for order in [2, 3, 4, 5, 7, 8, 9] {
        let nodes = order * order + order + 1;
        let run = Run::of("maekawa", nodes).load("light").entries(500);
        assert_eq!(
            run.messages_per_entry(),
            3.0 * order as f64,
            "{nodes} nodes"
        );
    }
}

/// Maekawa 1985, abstract: c√N with c up to 5, that is, at most 5 messages with each of K-1 peers.
/// Under saturation, the measured number is closer to 4.
#[test]
fn maekawa_saturated_stays_below_5_k_minus_1() {
    for order in [2, 3, 5, 7] {
        let nodes = order * order + order + 1;
        let cost = Run::of("maekawa", nodes).messages_per_entry();
        let peers = order as f64;
        assert!(
            (3.0 * peers..=5.0 * peers).contains(&cost),
            "{nodes} nodes: {cost}"
        );
    }
}

/// Raymond 1989, section 5.1: 4(N-1)/N under saturation.
#[test]
fn raymond_saturated_sends_4_n_minus_1_over_n() {
    for (nodes, shape) in [
        (10, "star:3"),
        (31, "kary:2"),
        (40, "kary:3"),
        (20, "line"),
        (9, "star:8"),
    ] {
        let run = Run::of("raymond", nodes)
            .shape(shape)
            .delay("constant")
            .hold("2")
            .entries(20_000);
        let expected = 4.0 * (nodes - 1) as f64 / nodes as f64;
        assert_near(run.messages_per_entry(), expected, 0.01);
    }
}

/// Raymond 1989, section 5: two uniformly chosen nodes of a line are (N² - 1)/3N apart on average,
/// with 2 messages per step.
#[test]
fn raymond_on_a_line_one_at_a_time_sends_about_two_thirds_of_n() {
    for nodes in [10, 50, 100] {
        let run = Run::of("raymond", nodes)
            .shape("line")
            .load("light")
            .entries(20_000);
        let n = nodes as f64;
        assert_near(
            run.messages_per_entry(),
            2.0 * (n * n - 1.0) / (3.0 * n),
            0.03,
        );
    }
}

/// Raymond 1989, section 5: at most 2D.
#[test]
fn raymond_alone_never_sends_more_than_twice_the_diameter() {
    // One entry per run, so the mean is the cost of that entry.
    for (nodes, shape, diameter) in [
        (10, "star:3", 4),
        (22, "star:3", 6),
        (20, "line", 19),
        (30, "star:29", 2),
    ] {
        for seed in 0..60 {
            let mut run = Run::of("raymond", nodes)
                .shape(shape)
                .load("light")
                .entries(1);
            run.setup.seed = seed;
            let cost = run.messages_per_entry();
            assert!(cost <= 2.0 * f64::from(diameter), "{shape}: {cost}");
        }
    }
}

/// Raymond 1989, section 6.1: under saturation, the share of REQUESTs that piggybacking saves is
/// the total valency of the nonleaf nodes divided by that of all nodes: 2/3 in Fig. 7; K/2(K-1) in
/// large complete trees.
#[test]
fn raymond_piggyback_saves_the_nonleaf_share_of_requests() {
    let saved = |nodes: usize, shape: &str| {
        let run = Run::of("raymond+piggyback", nodes)
            .shape(shape)
            .delay("constant")
            .hold("2")
            .entries(20_000 + 20 * nodes as u64);
        let report = run.report();
        let separate = report.measures.messages_by_kind["REQUEST"] as f64;
        let all = 2.0 * (nodes - 1) as f64 / nodes as f64 * report.measures.entries as f64;
        1.0 - separate / all
    };
    assert_near(saved(10, "star:3"), 2.0 / 3.0, 0.02);
    for valency in [3_usize, 4, 6] {
        // A complete radiating star of several levels.
        let levels = if valency == 3 { 8 } else { 5 };
        let nodes = 1
            + (0..levels)
                .map(|level| valency * (valency - 1).pow(level))
                .sum::<usize>();
        let expected = valency as f64 / (2.0 * (valency as f64 - 1.0));
        assert_near(saved(nodes, &format!("star:{valency}")), expected, 0.05);
    }
}

/// Raymond 1989, section 6.2: in Fig. 7, under saturation, a nonleaf enters three times as often as
/// a leaf. With 4 nonleaves and 6 leaves, Jain's index is then 18²/(10 · 42).
#[test]
fn raymond_greedy_gives_nonleaves_three_times_the_entries() {
    let run = Run::of("raymond+greedy", 10)
        .shape("star:3")
        .delay("constant")
        .hold("2")
        .entries(20_000);
    assert_near(run.report().measures.fairness.jain, 324.0 / 420.0, 0.01);
    let run = Run::of("raymond", 10)
        .shape("star:3")
        .delay("constant")
        .hold("2")
        .entries(20_000);
    assert_near(run.report().measures.fairness.jain, 1.0, 0.001);
}

/// Naimi, Trehel, Arnold 1996: one request at a time costs H(N-1) messages on average.
#[test]
fn naimi_trehel_one_at_a_time_sends_a_harmonic_number() {
    for nodes in [2, 5, 10, 50, 200] {
        let harmonic: f64 = (1..nodes).map(|k| 1.0 / k as f64).sum();
        let run = Run::of("naimi-trehel", nodes).load("light").entries(30_000);
        assert_near(run.messages_per_entry(), harmonic, 0.03);
    }
}

/// Suzuki, Kasami 1985: N messages, or none for the node that has the token.
#[test]
fn suzuki_kasami_sends_n_or_none() {
    for nodes in [1, 2, 5, 20, 40] {
        let report = Run::of("suzuki-kasami", nodes).load("burst").report();
        assert_eq!(report.measures.messages, (nodes * (nodes - 1)) as u64);
    }
}

/// Lodha, Kshemkalyani 2000, section 4.1: with all N requests concurrent, N-1 REQUESTs each, and
/// one FLUSH from each node but the last.
#[test]
fn lodha_kshemkalyani_with_all_concurrent_sends_requests_and_one_flush() {
    for nodes in [1, 2, 3, 5, 10, 30] {
        let report = Run::of("lodha-kshemkalyani", nodes)
            .load("burst")
            .delay("constant")
            .report();
        let kinds = &report.measures.messages_by_kind;
        let nodes = nodes as u64;
        assert_eq!(
            (kinds["REQUEST"], kinds["REPLY"], kinds["FLUSH"]),
            (nodes * (nodes - 1), 0, nodes - 1)
        );
    }
}

/// Lodha, Kshemkalyani 2000, section 4.1: a lone request costs 2(N-1).
#[test]
fn lodha_kshemkalyani_alone_sends_2_n_minus_1() {
    for nodes in [1, 2, 3, 10, 30] {
        let run = Run::of("lodha-kshemkalyani", nodes)
            .load("light")
            .entries(200);
        assert_eq!(run.messages_per_entry(), 2.0 * (nodes - 1) as f64);
    }
}

/// Chaudhuri, Karaata 1998, Theorems 2 and 3, after the repair.
#[test]
fn chaudhuri_karaata_keeps_its_bounds() {
    for c in [2_usize, 3, 4, 5] {
        let nodes = c.pow(3);
        let side = (c - 1) as f64;
        let cube = c as f64;
        let alone = Run::of("chaudhuri-karaata", nodes)
            .load("light")
            .entries(10_000)
            .messages_per_entry();
        // For a uniformly chosen node and plane of the token: 3(c-1) + 2(c²-1)/3c on average.
        assert_near(
            alone,
            3.0 * side + 2.0 * (cube * cube - 1.0) / (3.0 * cube),
            0.03,
        );
        assert!(alone <= 8.0 * side);
        for seed in 0..40 {
            let mut run = Run::of("chaudhuri-karaata", nodes).load("light").entries(1);
            run.setup.seed = seed;
            assert!(run.messages_per_entry() <= 8.0 * side);
        }
        let saturated = Run::of("chaudhuri-karaata", nodes)
            .entries(10_000)
            .messages_per_entry();
        assert!(
            saturated <= 3.0 * side + 2.0 * side / (cube * cube),
            "{c}: {saturated}"
        );
    }
}

/// Neamatollahi et al. 2017, section 5.2: at most (2N + √N + 1)/N under saturation. The measured
/// number is lower: the node at which a round of the row begins and ends is read twice (lines 36-38
/// and 46-47), and has requested again by then. So a round of the row has √N + 1 entries, with
/// √N + 1 REQUESTs, √N moves along the row and one down; and a column has one more move:
/// 2 + 1/√N(√N + 1).
#[test]
fn neamatollahi_saturated_sends_about_two() {
    for side in [2_usize, 3, 4, 6, 8] {
        let nodes = side * side;
        let cost = Run::of("neamatollahi", nodes)
            .hold("2")
            .entries(10_000)
            .messages_per_entry();
        assert_near(cost, 2.0 + 1.0 / (side * (side + 1)) as f64, 0.01);
        assert!(cost <= (2 * nodes + side + 1) as f64 / nodes as f64);
    }
}

/// Neamatollahi et al. 2017, section 5.1: a lone request costs 2√N + 1 to 3√N + 1 on average.
#[test]
fn neamatollahi_alone_sends_two_to_three_roots_on_average() {
    for side in [3_usize, 5, 8] {
        let cost = Run::of("neamatollahi", side * side)
            .load("light")
            .messages_per_entry();
        let (low, high) = (2 * side + 1, 3 * side + 1);
        assert!(
            (low as f64..=high as f64).contains(&cost),
            "{side}: {cost} not in {low}..{high}"
        );
    }
}

/// The resting variant: at most (C-1) REQUEST + (R-1) CALL + R + C moves of the token, and no
/// messages when idle.
#[test]
fn neamatollahi_resting_sends_at_most_four_roots_alone_and_nothing_idle() {
    for (nodes, rows, columns) in [
        (1, 1, 1),
        (2, 1, 2),
        (9, 3, 3),
        (12, 3, 4),
        (23, 5, 5),
        (64, 8, 8),
    ] {
        for seed in 0..40 {
            let mut run = Run::of("neamatollahi+resting", nodes)
                .load("light")
                .entries(1);
            run.setup.seed = seed;
            let report = run.report();
            assert!(
                report.measures.messages <= 2 * (rows + columns) - 2,
                "{report:#?}"
            );
            assert_eq!(report.measures.idle_messages_per_time, 0.0);
        }
    }
}

/// Le Lann 1977: one message per entry under saturation. When idle, the restless token makes one
/// move per message delay.
#[test]
fn le_lann_saturated_sends_one() {
    for nodes in [2, 5, 30] {
        let run = Run::of("le-lann", nodes).hold("2").entries(10_000);
        assert_near(run.messages_per_entry(), 1.0, 0.01);
        let idle = Run::of("le-lann", nodes)
            .load("light")
            .delay("constant")
            .report();
        assert_near(idle.measures.idle_messages_per_time, 1.0, 1e-9);
        let idle = Run::of("le-lann+resting", nodes).load("light").report();
        assert_eq!(idle.measures.idle_messages_per_time, 0.0);
    }
}

/// Neilsen, Mizuno 1991: at most 3 messages on a star.
#[test]
fn neilsen_mizuno_on_a_star_sends_at_most_three() {
    for nodes in [2, 5, 30] {
        for load in ["light", "heavy"] {
            let run = Run::of("neilsen-mizuno", nodes)
                .shape(&format!("star:{}", (nodes - 1).max(2)))
                .load(load);
            assert!(run.messages_per_entry() <= 3.0);
        }
    }
}

/// Carvalho, Roucairol 1983: 0 to 2(N-1). A node that enters repeatedly without other requesters
/// sends nothing.
#[test]
fn carvalho_roucairol_sends_at_most_2_n_minus_1() {
    for nodes in [1, 2, 5, 20] {
        for algorithm in ["carvalho-roucairol", "singhal-dynamic"] {
            for load in LOADS {
                let cost = Run::of(algorithm, nodes)
                    .entries(300)
                    .load(load)
                    .messages_per_entry();
                assert!(
                    cost <= 2.0 * (nodes - 1) as f64,
                    "{algorithm} {nodes} {load}: {cost}"
                );
            }
        }
    }
}
