//! The papers' comparisons of algorithms, measured.

use serde::Serialize;
use soloist_algorithms::Choice;
use soloist_lab::ShapeSpec;
use soloist_lab::replicate::Figures;
use soloist_lab::simulate::{Distribution, Load, Setup};
use soloist_lab::{Compared, compare};

use crate::tools::PLAN;

/// A table of a paper, with measured figures beside the claimed ones.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Table {
    /// What is compared, and the paper's table or section.
    pub title: String,
    /// The load, the sizes, and whatever else is needed to read the table.
    pub note: String,
    /// Names of the columns.
    pub head: Vec<String>,
    /// Rows, with one cell per column.
    pub rows: Vec<Vec<String>>,
}

/// Computes all tables.
pub fn tables() -> Vec<Table> {
    vec![
        evaluation(),
        waiting(),
        quorums(),
        trees(),
        meshes(),
        concurrency(),
        crate::worst::table(),
    ]
}

/// How the figures of the tables were measured.
const METHOD: &str = "10 replications of 1,000 entries after 500 that are not measured, or of one entry per node for bursts; means and their 99.9 % intervals";

/// Measured entries per replication, except for bursts.
const ENTRIES: u64 = 1000;

/// A row of a table: an algorithm, possibly with a shape, and what a paper claims about it.
struct Line {
    name: &'static str,
    shape: Option<String>,
    claimed: Vec<&'static str>,
}

impl Line {
    fn of(name: &'static str, claimed: &[&'static str]) -> Self {
        Line {
            name,
            shape: None,
            claimed: claimed.to_vec(),
        }
    }

    fn shaped(name: &'static str, shape: impl Into<String>, claimed: &[&'static str]) -> Self {
        Line {
            shape: Some(shape.into()),
            ..Line::of(name, claimed)
        }
    }

    fn label(&self) -> String {
        match &self.shape {
            None => self.name.to_owned(),
            Some(shape) => format!("{} ({shape})", self.name),
        }
    }

    fn setup(&self, nodes: usize, load: Load, delay: Distribution) -> Setup {
        let choice = Choice::parse(self.name, "").expect("a known algorithm");
        let form = |shape: &String| ShapeSpec::Form(shape.clone());
        Setup {
            shape: self.shape.as_ref().map_or(ShapeSpec::Default, form),
            load,
            delay: delay.into(),
            entries: if load == Load::Burst {
                nodes as u64
            } else {
                ENTRIES
            },
            ..Setup::new(choice, nodes)
        }
    }
}

/// A column: the number of nodes, the load, and the measure to show.
struct Column {
    nodes: usize,
    load: Load,
    delay: Distribution,
    show: fn(&Figures) -> String,
}

impl Column {
    fn messages(nodes: usize, load: Load) -> Self {
        Column {
            nodes,
            load,
            delay: Distribution::Exponential(1.0),
            show: |figures| figures.messages_per_entry.to_string(),
        }
    }

    fn response(nodes: usize) -> Self {
        Column {
            nodes,
            load: Load::Light,
            delay: Distribution::Constant(1.0),
            show: |figures| figures.response_time.mean.to_string(),
        }
    }

    fn sync_delay(nodes: usize) -> Self {
        Column {
            show: |figures| match figures.sync_delay {
                Some(delay) => delay.mean.to_string(),
                None => "no hand-over".to_owned(),
            },
            ..Column::messages(nodes, Load::Heavy)
        }
    }
}

/// Runs every row under every column, on all cores. Returns the names, claims and figures.
fn measure(lines: &[Line], columns: &[Column]) -> Vec<Vec<String>> {
    let setups: Vec<Setup> = lines
        .iter()
        .flat_map(|line| columns.iter().map(|c| line.setup(c.nodes, c.load, c.delay)))
        .collect();
    let compared = compare(&setups, &PLAN, &|| ()).expect("runs that can be simulated");
    let figures = |compared: &[Compared]| {
        let pairs = compared.iter().zip(columns);
        let shown = pairs.map(|(one, column)| {
            let report = &one.replicated.report;
            assert!(report.is_well(), "{report:#?}");
            let warnings = one.replicated.warnings();
            assert!(warnings.is_empty(), "{}: {warnings:?}", report.label());
            (column.show)(&report.measures)
        });
        shown.collect::<Vec<_>>()
    };
    let rows = lines.iter().zip(compared.chunks(columns.len()));
    rows.map(|(line, compared)| {
        let mut row = vec![line.label()];
        row.extend(line.claimed.iter().map(|claim| (*claim).to_owned()));
        row.extend(figures(compared));
        row
    })
    .collect()
}

fn head(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// Table 1 of Neamatollahi et al.: messages under light and heavy demand, and average waiting time.
const TABLE_1: [(&str, [&str; 3]); 8] = [
    ("le-lann", ["O(N)", "1", "O(N)"]),
    ("suzuki-kasami", ["N", "N", "O(1)"]),
    ("raymond", ["O(log N)", "4", "O(N)"]),
    ("naimi-trehel", ["O(log N)", "-", "O(N)"]),
    ("lamport", ["3(N-1)", "3(N-1)", "O(1)"]),
    ("ricart-agrawala", ["2(N-1)", "2(N-1)", "O(1)"]),
    ("maekawa", ["3(√N-1)", "5(√N-1)", "O(1)"]),
    ("neamatollahi", ["2(√N+1) to 3(√N+1)", "3", "O(√N)"]),
];

/// Rows for all algorithms, with these columns of Table 1 where it lists them.
fn all_lines(columns: &[usize]) -> Vec<Line> {
    let claimed = |name: &str| {
        let listed = TABLE_1.iter().find(|(listed, _)| *listed == name);
        let cell = |&column: &usize| listed.map_or("not listed", |(_, cells)| cells[column]);
        columns.iter().map(cell).collect::<Vec<_>>()
    };
    Choice::all()
        .map(|choice| Line::of(choice.name, &claimed(choice.name)))
        .collect()
}

fn evaluation() -> Table {
    let nodes = 64;
    let columns = [
        Column::messages(nodes, Load::Light),
        Column::messages(nodes, Load::Heavy),
        Column::sync_delay(nodes),
    ];
    Table {
        title: "Neamatollahi et al. 2017, Table 1: messages".to_owned(),
        note: format!(
            "Messages for an entry at N = {nodes}, where √N = 8: one request at a time (light), and all nodes requesting again at once (heavy). \
             Synchronisation delay under heavy load, in mean message delays. Exponential delays, one delay inside; {METHOD}. \
             Three algorithms of the table are not here: Razzaque et al., Paydar et al., Taheri et al."
        ),
        head: head(&[
            "algorithm",
            "light, claimed",
            "heavy, claimed",
            "light",
            "heavy",
            "sync. delay",
        ]),
        rows: measure(&all_lines(&[0, 1]), &columns),
    }
}

fn waiting() -> Table {
    let columns = [16, 64, 256].map(Column::response);
    Table {
        title: "Neamatollahi et al. 2017, Table 1: average waiting time".to_owned(),
        note: format!(
            "From request to entry, in message delays, one request at a time; every message takes one delay; {METHOD}. With all \
             nodes requesting, the wait grows with N for every algorithm."
        ),
        head: head(&["algorithm", "claimed", "N = 16", "N = 64", "N = 256"]),
        rows: measure(&all_lines(&[2]), &columns),
    }
}

/// Columns for light and then heavy load, for each of these sizes.
fn light_and_heavy(sizes: &[usize]) -> Vec<Column> {
    let loads =
        |&nodes: &usize| [Load::Light, Load::Heavy].map(|load| Column::messages(nodes, load));
    sizes.iter().flat_map(loads).collect()
}

fn head_of_light_and_heavy(sizes: &[usize]) -> Vec<String> {
    let names = |nodes: &usize| [format!("N = {nodes}, light"), format!("{nodes}, heavy")];
    let mut all = head(&["algorithm", "claimed"]);
    all.extend(sizes.iter().flat_map(names));
    all
}

fn messages_note(more: &str) -> String {
    format!(
        "Messages for an entry: one request at a time (light), and all nodes requesting again at once (heavy). Exponential delays, \
         one delay inside; {METHOD}. {more}"
    )
}

fn quorums() -> Table {
    let sizes = [13, 31, 57];
    let lines = [
        Line::of("lamport", &["not compared"]),
        Line::of("ricart-agrawala", &["2(N-1)"]),
        Line::shaped("maekawa", "majority", &["N/2 permissions at best"]),
        Line::shaped("maekawa", "grid", &["not compared"]),
        Line::shaped("maekawa", "singer", &["3√N to 5√N"]),
        Line::of("central", &["centralized"]),
    ];
    Table {
        title: "Maekawa 1985, §1 and §2: unanimity, majority, and sets of √N".to_owned(),
        note: messages_note(
            "Majority voting is Maekawa's rules with majorities for sets: a request, a permission and a release for each of N/2 others.",
        ),
        head: head_of_light_and_heavy(&sizes),
        rows: measure(&lines, &light_and_heavy(&sizes)),
    }
}

fn trees() -> Table {
    let sizes = [22, 46, 94];
    let lines = [
        Line::of("ricart-agrawala", &["2(N-1)"]),
        Line::of("suzuki-kasami", &["at most N"]),
        Line::of("maekawa", &["O(√N)"]),
        Line::shaped("raymond", "line", &["about 2N/3 light, 4 heavy"]),
        Line::shaped("raymond", "star:3", &["O(log N) light, 4 heavy"]),
        Line::shaped("raymond", "star:5", &["O(log N) light, 4 heavy"]),
    ];
    Table {
        title: "Raymond 1989, §1 and §5: trees against the others".to_owned(),
        note: messages_note(
            "star:3 is the radiating star of Fig. 6, complete at these sizes; a higher valency makes it flatter. The paper claims fewer messages than \
             Suzuki-Kasami even on a line.",
        ),
        head: head_of_light_and_heavy(&sizes),
        rows: measure(&lines, &light_and_heavy(&sizes)),
    }
}

fn meshes() -> Table {
    let sizes = [27, 64, 125];
    let lines = [
        Line::of("lamport", &["3(n-1)"]),
        Line::of("ricart-agrawala", &["2(n-1)"]),
        Line::of("carvalho-roucairol", &["0 to 2(n-1)"]),
        Line::of("suzuki-kasami", &["n"]),
        Line::of("maekawa", &["3√n to 5√n"]),
        Line::of("raymond", &["O(log n)"]),
        Line::of("chaudhuri-karaata", &["8(c-1) at most, 3(c-1) heavy"]),
        Line::of("naimi-trehel", &["not compared"]),
    ];
    Table {
        title: "Chaudhuri and Karaata 1998, §1 and §5: the mesh against the others".to_owned(),
        note: messages_note("c = n^1/3 = 3, 4, 5."),
        head: head_of_light_and_heavy(&sizes),
        rows: measure(&lines, &light_and_heavy(&sizes)),
    }
}

fn concurrency() -> Table {
    let nodes = 20;
    let loads = [Load::Light, Load::Think(100.0), Load::Heavy, Load::Burst];
    let lines = [
        Line::of("lamport", &["3(N-1)"]),
        Line::of("ricart-agrawala", &["2(N-1)"]),
        Line::of("carvalho-roucairol", &["0 to 2(N-1)"]),
        Line::of("singhal-dynamic", &["N-1 to 3(N-1)/2"]),
        Line::of("lodha-kshemkalyani", &["N-1 to 2(N-1)"]),
    ];
    Table {
        title: "Lodha and Kshemkalyani 2000, §1: what concurrency saves".to_owned(),
        note: format!(
            "Messages for an entry at N = {nodes}, where N-1 = 19: one request at a time; nodes that think for 100 delays on average; all requesting \
             again at once; all requesting once, at the same moment. Exponential delays, one delay inside; {METHOD}."
        ),
        head: head(&[
            "algorithm",
            "claimed",
            "light",
            "think:100",
            "heavy",
            "burst",
        ]),
        rows: measure(&lines, &loads.map(|load| Column::messages(nodes, load))),
    }
}
