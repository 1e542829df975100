//! Table 1 of Neamatollahi et al. 2017, cell by cell: what is claimed, and what was found.

use soloist_lab::replicate::{Estimate, Plan};

use super::curve::{ENTRIES, seeds};
use super::{Content, Reproduced};
use crate::comparison::Table;
use crate::exact::is_exactly;
use crate::single::{Range, known};
use crate::tools::Run;
use crate::worst::hunted;
use crate::{Finding, Verdict};

/// Runs that the adversarial scheduler tries for Maekawa's worst case.
const TRIES: u64 = 400;

/// √64 = 8, and 64 nodes are a torus of 8 by 8.
const NODES: usize = 64;
const ROOT: f64 = 8.0;

/// What a cell claims: its text, and its number unless it is of the form O(...) or empty.
type Claim = (&'static str, Option<f64>);

struct Row {
    name: &'static str,
    waiting: &'static str,
    worst: Claim,
    average: Claim,
    best: Claim,
    heavy: Claim,
    /// The least and the most; equal unless the cell has a range.
    light: (&'static str, Option<(f64, f64)>),
}

fn rows() -> [Row; 8] {
    const N: f64 = NODES as f64;
    const fn exactly(text: &'static str, value: f64) -> Claim {
        (text, Some(value))
    }
    const NONE: Claim = ("-", None);
    const LOG: Claim = ("O(log N)", None);
    // The same number in all columns of messages.
    let always = |name, text, value| Row {
        name,
        waiting: "O(1)",
        worst: exactly(text, value),
        average: exactly(text, value),
        best: exactly(text, value),
        heavy: exactly(text, value),
        light: (text, Some((value, value))),
    };
    [
        Row {
            name: "le-lann",
            waiting: "O(N)",
            worst: exactly("N", N),
            average: exactly("N/2", N / 2.0),
            best: exactly("1", 1.0),
            heavy: exactly("1", 1.0),
            light: ("O(N)", None),
        },
        always("suzuki-kasami", "N", N),
        Row {
            name: "raymond",
            waiting: "O(N)",
            worst: exactly("2(N-1)", 2.0 * (N - 1.0)),
            average: LOG,
            best: exactly("2", 2.0),
            heavy: exactly("4", 4.0),
            light: ("O(log N)", None),
        },
        Row {
            name: "naimi-trehel",
            waiting: "O(N)",
            worst: exactly("N", N),
            average: LOG,
            best: exactly("2", 2.0),
            heavy: NONE,
            light: ("O(log N)", None),
        },
        always("lamport", "3(N-1)", 3.0 * (N - 1.0)),
        always("ricart-agrawala", "2(N-1)", 2.0 * (N - 1.0)),
        Row {
            name: "maekawa",
            waiting: "O(1)",
            worst: exactly("5(√N-1)", 5.0 * (ROOT - 1.0)),
            average: NONE,
            best: exactly("3(√N-1)", 3.0 * (ROOT - 1.0)),
            heavy: exactly("5(√N-1)", 5.0 * (ROOT - 1.0)),
            light: ("3(√N-1)", Some((3.0 * (ROOT - 1.0), 3.0 * (ROOT - 1.0)))),
        },
        Row {
            name: "neamatollahi",
            waiting: "O(√N)",
            worst: exactly("3(√N+1)", 3.0 * (ROOT + 1.0)),
            average: NONE,
            best: exactly("3", 3.0),
            heavy: exactly("3", 3.0),
            light: (
                "2(√N+1) to 3(√N+1)",
                Some((2.0 * (ROOT + 1.0), 3.0 * (ROOT + 1.0))),
            ),
        },
    ]
}

/// Counts the cells that have a number, and those in which something else was found.
#[derive(Default)]
struct Score {
    judged: usize,
    wrong: Vec<String>,
}

impl Score {
    /// Text of a cell. If it claims a number, `agrees` judges it.
    fn cell(
        &mut self,
        place: (&str, &str),
        (claimed, value): Claim,
        found: &str,
        agrees: impl Fn(f64) -> bool,
    ) -> String {
        let Some(value) = value else {
            return format!("{claimed}: {found}");
        };
        self.judged += 1;
        if !agrees(value) {
            self.wrong.push(format!("{} {}", place.0, place.1));
            return format!("{claimed} = {value}: {found} (differs)");
        }
        format!("{claimed} = {value}: {found}")
    }
}

pub(super) fn table_1() -> Reproduced {
    let mut score = Score::default();
    let rows = rows().map(|row| line(&row, &mut score)).to_vec();
    let wrong = match score.wrong.as_slice() {
        [] => "none disagrees".to_owned(),
        wrong => format!("{} disagree: {}", wrong.len(), wrong.join(", ")),
    };
    let verdict = Verdict::of(score.wrong.is_empty(), score.wrong.is_empty());
    let head = [
        "algorithm",
        "worst",
        "average",
        "best",
        "heavy",
        "light",
        "waiting time",
    ];
    let found = format!("N = {NODES}, {} cells have a number; {wrong}", score.judged);
    let command = format!(
        "soloist lab compare --algorithms {} --nodes {NODES} --entries {ENTRIES}",
        rows_names()
    );
    Reproduced {
        finding: Finding::new(verdict, found, command),
        seeds: seeds(),
        content: Content::Table(Table {
            title: "Neamatollahi et al. 2017, Table 1: messages and waiting time".to_owned(),
            note: format!(
                "Each cell has what the table claims and, after the colon, what was found with {NODES} nodes. Worst and best: the most and the \
                 least messages of a request alone, counted from every node with the token at every node, equal delays; the most of Raymond on a \
                 line, of Naimi-Trehel after all nodes but one have requested at once, and of Maekawa the worst of {TRIES} runs that `soloist lab worst` tried, \
                 because requests that meet cost more than one alone. The light cell of Neamatollahi has the least and the most as well. Best of Neamatollahi: the fewer of that and of heavy \
                 demand. Average, light and waiting time: \
                 one request at a time. Heavy: all nodes request again at once. Means with 99.9 % intervals of 10 replications of \
                 {ENTRIES} entries; waiting time in message delays, every message takes one. A cell in O(...) is not judged by one size; \
                 claims.md has several. Three algorithms of the table are not here: Razzaque et al., Paydar et al., Taheri et al."
            ),
            head: head.map(str::to_owned).to_vec(),
            rows,
        }),
    }
}

fn rows_names() -> String {
    rows().map(|row| row.name).join(",")
}

/// A value that was counted, without chance.
fn exactly(value: u64) -> Estimate {
    Estimate::of(&[value as f64; 2], Plan::VERDICT_LEVEL)
}

/// A row of the table.
fn line(row: &Row, score: &mut Score) -> Vec<String> {
    let run = || Run::of(row.name, NODES);
    let Range { least, most } = known(row.name, NODES);
    let measure = |run: Run| run.entries(ENTRIES).replicated();
    let light = measure(run().load("light")).estimate(|m| m.messages_per_entry);
    let heavy = measure(run()).estimate(|m| m.messages_per_entry);
    let waiting = measure(run().load("light").delay("constant"));
    let waiting = waiting.estimate(|m| m.response_time.mean);
    let mut cell = |column: &str, claim: Claim, found: String, agrees: &dyn Fn(f64) -> bool| {
        score.cell((row.name, column), claim, &found, agrees)
    };
    let (light_text, range) = row.light;
    // Requests that meet cost more than one alone, which only arbiters have to settle.
    let (worst, worst_text) = match row.name {
        "maekawa" => {
            let hunted = hunted(row.name, ("", NODES, 1, 0.0), TRIES);
            (hunted, format!("{hunted:.1}"))
        }
        _ => (most as f64, most.to_string()),
    };
    let worst = cell("worst", row.worst, worst_text, &|claimed| worst <= claimed);
    let average = cell("average", row.average, light.to_string(), &|claimed| {
        is_exactly(light, claimed)
    });
    // The token of Neamatollahi et al. is cheapest under heavy demand, which the table has as its
    // best case.
    let (best_text, best_cost) = match row.name {
        "neamatollahi" if heavy.mean < least as f64 => (heavy.to_string(), heavy),
        _ => (least.to_string(), exactly(least)),
    };
    let best = cell("best", row.best, best_text, &|claimed| {
        is_exactly(best_cost, claimed)
    });
    let heavy = cell("heavy", row.heavy, heavy.to_string(), &|claimed| {
        is_exactly(heavy, claimed)
    });
    let light_cell = match range {
        Some((low, high)) if low < high => {
            let is_within = |_: f64| least as f64 >= low && most as f64 <= high;
            let claim = (light_text, Some(high));
            let text = format!("{least} to {most}, {light} on average");
            cell("light", claim, text, &is_within)
        }
        _ => {
            let claim = (light_text, range.map(|(low, _)| low));
            cell("light", claim, light.to_string(), &|claimed| {
                is_exactly(light, claimed)
            })
        }
    };
    vec![
        row.name.to_owned(),
        worst,
        average,
        best,
        heavy,
        light_cell,
        format!("{}: {waiting}", row.waiting),
    ]
}
