//! The cases that are searched for every release. The claims about the algorithms rest on these.

use soloist_algorithms::{Channels, Choice, NodeId};

use super::case::Case;
use super::report::{Report, Verdict};
use super::{Crashes, ENDLESS};
use crate::ShapeSpec;

/// A case of the suite, with its expected verdict.
#[derive(Debug)]
pub struct Listed {
    /// The search.
    pub case: Case,
    /// The expected verdict.
    pub expected: Verdict,
    /// Whether the search takes minutes and gigabytes.
    pub long: bool,
}

/// The Fano plane of Maekawa 1985, Fig. 1b.
const FIGURE_1B: &str = "0: 0 1 2\n1: 1 3 5\n2: 2 4 5\n3: 0 3 4\n4: 1 4 6\n5: 0 5 6\n6: 2 3 6";

/// The tree of five nodes that is neither a line nor a star.
const FORK: &str = "0 1\n1 2\n2 3\n2 4";

/// Column headings of [`row`].
pub const HEAD: [&str; 7] = [
    "algorithm",
    "nodes",
    "shape",
    "channels",
    "requests",
    "verdict",
    "states",
];

/// Formats a report as a row of a table.
pub fn row(report: &Report) -> [String; 7] {
    let setting = &report.setting;
    let mut requests = setting.quota();
    if setting.crashes != Some(0) {
        requests += &format!(", {}", setting.crashes_text());
    }
    let mut verdict = report.verdict.text().to_owned();
    if !report.endless_runs {
        verdict += " (safety only)";
    }
    [
        setting.label(),
        setting.nodes.to_string(),
        setting.shape.clone(),
        setting.channels.clone(),
        requests,
        verdict,
        report
            .states
            .map_or_else(String::new, |states| states.to_string()),
    ]
}

struct List(Vec<Listed>);

impl List {
    /// Adds a case with the repaired rules, or variants of them, that holds unless the caller
    /// changes the expectation.
    fn holds(&mut self, algorithm: &str, shape: &str, nodes: usize, requests: u8) -> &mut Listed {
        let (name, variant) = algorithm.split_once('+').unwrap_or((algorithm, ""));
        let choice = Choice::parse(name, variant).expect("a known algorithm");
        let mut case = Case::new(choice, nodes, requests);
        case.shape = match shape {
            "" => ShapeSpec::Default,
            FIGURE_1B | FORK => ShapeSpec::Listing(shape.to_owned()),
            form => ShapeSpec::Form(form.to_owned()),
        };
        self.0.push(Listed {
            case,
            expected: Verdict::Holds,
            long: false,
        });
        self.0.last_mut().expect("it was just added")
    }

    /// Adds a case with the rules as printed. The caller sets the violation to expect.
    fn fails(&mut self, algorithm: &str, shape: &str, nodes: usize, requests: u8) -> &mut Listed {
        let published = format!("{algorithm}+as-published");
        self.holds(&published, shape, nodes, requests)
    }
}

impl Listed {
    fn expect(&mut self, verdict: Verdict) -> &mut Self {
        self.expected = verdict;
        self
    }

    fn fifo(&mut self) -> &mut Self {
        self.case.limits.channels = Channels::Fifo;
        self
    }

    fn by(&mut self, requesters: &[usize]) -> &mut Self {
        let nodes: Vec<_> = requesters
            .iter()
            .map(|&node| NodeId::from_index(node))
            .collect();
        let is_there = self.case.request_only(&nodes);
        is_there.expect("nodes that there are");
        self
    }

    fn crashes(&mut self, most: u8, neighbours_too: bool) -> &mut Self {
        self.case.limits.crashes = Crashes {
            most,
            neighbours_too,
            ..Crashes::default()
        };
        self
    }

    fn safety_only(&mut self) -> &mut Self {
        self.case.limits.endless_runs = false;
        self
    }

    fn long(&mut self) -> &mut Self {
        self.long = true;
        self.case.limits.states_max = 400_000_000;
        self
    }
}

/// All cases, those of the five papers first.
pub fn list() -> Vec<Listed> {
    let mut list = List(Vec::new());
    meshes(&mut list);
    quorums(&mut list);
    raymonds(&mut list);
    toruses(&mut list);
    fair(&mut list);
    baselines(&mut list);
    list.0
}

fn meshes(list: &mut List) {
    for (mesh, nodes, requests) in [("1x1x3", 3, 2), ("2x1x2", 4, 2), ("1x2x3", 6, 1)] {
        list.holds("chaudhuri-karaata", mesh, nodes, requests);
        list.holds("chaudhuri-karaata", mesh, nodes, ENDLESS);
    }
    list.holds("chaudhuri-karaata", "2x2x2", 8, 1);
    list.fails("chaudhuri-karaata", "1x1x3", 3, 2)
        .expect(Verdict::Deadlock);
}

fn quorums(list: &mut List) {
    list.holds("maekawa", "grid", 4, 1);
    list.holds("maekawa", "grid", 4, 2).by(&[1, 2, 3]);
    list.fails("maekawa", "grid", 4, 1)
        .expect(Verdict::Deadlock);
    for four in choices_of_four(7) {
        list.holds("maekawa", FIGURE_1B, 7, 1).by(&four);
    }
    list.holds("maekawa", FIGURE_1B, 7, 1)
        .by(&[0, 1, 2, 3, 4])
        .long();
}

fn raymonds(list: &mut List) {
    for tree in ["line", "star:4", FORK] {
        list.holds("raymond", tree, 5, 2);
        list.holds("raymond", tree, 5, ENDLESS);
    }
    list.holds("raymond+piggyback,greedy,initialize", "line", 4, 2);
    list.holds("raymond", "line", 3, 1).crashes(1, false).fifo();
    list.holds("raymond", "line", 3, 1).crashes(2, false).fifo();
    list.holds("raymond+second-wait", "line", 3, 1)
        .crashes(2, false);
    list.holds("raymond", "line", 2, 1)
        .crashes(2, true)
        .fifo()
        .expect(Verdict::Deadlock);
    list.holds("raymond", "line", 2, 1)
        .crashes(1, false)
        .expect(Verdict::Broken);
    list.holds("raymond+duplicates", "line", 2, 1)
        .crashes(2, false)
        .fifo()
        .expect(Verdict::Unrest);
    list.fails("raymond", "line", 2, 1)
        .crashes(1, false)
        .fifo()
        .expect(Verdict::Deadlock);
}

fn toruses(list: &mut List) {
    let row = [0, 1, 2];
    list.holds("neamatollahi", "2x2", 4, 2).fifo();
    list.holds("neamatollahi", "2x2", 4, 2).long();
    list.holds("neamatollahi", "2x2", 4, ENDLESS).fifo();
    list.holds("neamatollahi", "3x3", 9, 2).by(&row).fifo();
    list.holds("neamatollahi", "3x3", 9, 2).by(&row).long();
    list.holds("neamatollahi", "3x3", 9, ENDLESS)
        .by(&row)
        .fifo();
    list.holds("neamatollahi+resting", "2x2", 4, 2);
    list.holds("neamatollahi+resting", "2x2", 4, ENDLESS).fifo();
    list.holds("neamatollahi+resting", "3x3", 9, 2).by(&row);
    list.holds("neamatollahi+resting", "3x3", 9, ENDLESS)
        .by(&row)
        .fifo();
    let starves = Verdict::Starvation;
    list.fails("neamatollahi", "2x2", 4, 2).expect(starves);
    list.fails("neamatollahi", "3x3", 9, 2)
        .by(&row)
        .fifo()
        .expect(starves);
}

fn fair(list: &mut List) {
    list.holds("lodha-kshemkalyani", "", 3, 3);
    list.holds("lodha-kshemkalyani", "", 4, 1);
    list.fails("lodha-kshemkalyani", "", 3, 1)
        .expect(Verdict::Deadlock);
    list.fails("lodha-kshemkalyani", "", 3, 2)
        .expect(Verdict::Broken);
}

fn baselines(list: &mut List) {
    list.holds("central", "", 4, ENDLESS);
    list.holds("ricart-agrawala", "", 3, 2);
    list.holds("ricart-agrawala", "", 4, 1);
    list.fails("ricart-agrawala", "", 2, 2)
        .expect(Verdict::Broken);
    list.holds("suzuki-kasami", "", 3, 2);
    list.holds("suzuki-kasami", "", 4, 1);
    list.holds("suzuki-kasami", "", 4, 2).by(&[0, 1, 2]);
    list.holds("suzuki-kasami", "", 4, 2).by(&[1, 2, 3]);
    list.holds("suzuki-kasami", "", 4, 2)
        .by(&[1, 2, 3])
        .safety_only();
    // All runs end: each node requests at most twice, and each request causes at most four
    // messages.
    list.holds("suzuki-kasami", "", 4, 2).safety_only().long();
    list.holds("naimi-trehel", "", 4, 2);
    list.holds("naimi-trehel", "", 4, ENDLESS);
    list.holds("lamport", "", 3, 2);
    list.holds("carvalho-roucairol", "", 3, 2);
    list.holds("singhal-dynamic", "", 3, 2);
    list.holds("neilsen-mizuno", "", 4, 2);
    list.holds("neilsen-mizuno", "line", 5, ENDLESS);
    list.holds("le-lann", "", 4, ENDLESS);
    list.holds("le-lann+resting", "", 4, ENDLESS).fifo();
}

/// All ways to choose four of `nodes` nodes.
fn choices_of_four(nodes: usize) -> Vec<[usize; 4]> {
    let mut choices = Vec::new();
    for a in 0..nodes {
        for b in a + 1..nodes {
            for c in b + 1..nodes {
                choices.extend((c + 1..nodes).map(|d| [a, b, c, d]));
            }
        }
    }
    choices
}
